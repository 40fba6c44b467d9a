"""The page of errata, ordered by how much they matter."""

from __future__ import annotations

from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.pages.templates import render
from claimbook.registry import PRINTED_MUST_FAIL

#: Statements come before what illustrates or proves them.
_KINDS = ("theorem", "formula", "remark", "table", "figure", "erratum")

#: What the errata can be narrowed to.
CHOICES = ("source", "verdict", "kind")


def errata(ledger: Ledger) -> list[Entry]:
    """Claims that do not hold as printed, in the order of the page.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.

    Returns
    -------
    list
        By how much they matter, then by kind; otherwise in the order of the registry.
    """
    chosen = [claim for claim in ledger["claims"] if claim["verdict"] in PRINTED_MUST_FAIL]
    classes = [*map(str, parts.ERRATA)]
    return sorted(
        chosen,
        key=lambda claim: (classes.index(weight(claim)), _KINDS.index(claim["kind"])),
    )


def weight(claim: Entry) -> str:
    """Return the class of an erratum, a key of `parts.ERRATA`."""
    return "false" if claim["verdict"] == "false" else str(claim["matters"])


def page(ledger: Ledger) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.

    Returns
    -------
    str
    """
    chosen = errata(ledger)
    sections = [
        parts.Section("errata", name, *meaning, mine)
        for name, meaning in parts.ERRATA.items()
        if (mine := [claim for claim in chosen if weight(claim) == name])
    ]
    rows = [[source, *counts, sum(counts)] for source, counts in parts.overview(ledger, sections)]
    ordered = [claim for _, mine in parts.by_source(ledger, chosen) for claim in mine]
    return render(
        "errata",
        rows=rows,
        sections=sections,
        choices=parts.choices(ordered, CHOICES),
        of=lambda claim: {key: claim[key] for key in CHOICES},
    )
