"""The page of what could not be reproduced, why, and what would settle it."""

from __future__ import annotations

from claimbook.pages import parts
from claimbook.pages.parts import Ledger
from claimbook.pages.templates import render
from claimbook.registry import UNSETTLED, Finding

_SECTIONS: dict[Finding, tuple[str, str]] = {
    "partial": (
        "Holds in part",
        "One part was tested and holds; the entry says what does not, or was not tested.",
    ),
    "data": (
        "Needs data that are not shipped",
        "The experiment runs on a substitute, named in the entry, which says whether it shows "
        "there what the source describes. The source's own data, or which part of a public set it "
        "took, are not known.",
    ),
}


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
    chosen = [claim for claim in ledger["claims"] if claim["verdict"] in UNSETTLED]
    chosen.sort(key=lambda claim: parts.numerically(claim["number"]))
    sections = [
        parts.Section("limits", name, *_SECTIONS[name], mine)
        for name in _SECTIONS
        if (mine := [claim for claim in chosen if claim["verdict"] == name])
    ]
    return render(
        "limits",
        number=len(chosen),
        of=len(ledger["claims"]),
        rows=[[source, *counts] for source, counts in parts.overview(ledger, sections)],
        sections=[(section, list(parts.by_source(ledger, section.claims))) for section in sections],
        # Sizes that stay below those of the source even at paper sizes.
        smaller=ledger["smaller"],
    )
