"""The page of errata, ordered by how much they matter."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from claimbook.evidence import Evidence
from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.registry import PRINTED_MUST_FAIL
from claimbook.render import comparison, number

#: Statements come before what illustrates or proves them.
_KINDS = ("theorem", "formula", "remark", "table", "figure", "erratum")


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
    return "\n".join(
        [
            "# Errata\n",
            "Formulas and statements of the sources that do not hold as printed, those first that "
            "matter most and, among these, theorems before proofs and captions. For each, ours "
            "and the printed version went through the same check.\n",
            parts.STYLE,
            *(_contents(ledger, chosen) if chosen else ["None.\n"]),
        ]
    )


def _contents(ledger: Ledger, chosen: list[Entry]) -> Iterator[str]:
    yield _overview(ledger, chosen)
    for name, (title, meaning) in parts.ERRATA.items():
        mine = [claim for claim in chosen if weight(claim) == name]
        if mine:
            yield f"({_place(name)})="
            yield f"## {title}\n"
            yield f"{meaning}\n"
            yield from map(_erratum, mine)


def _place(name: str) -> str:
    return parts.anchor("errata", name)


def _overview(ledger: Ledger, chosen: list[Entry]) -> str:
    """How many errata of each class every source has."""
    groups = [*parts.by_source(ledger, chosen), ("all", chosen)]
    classes = [name for name in parts.ERRATA if any(weight(c) == name for c in chosen)]
    heads = [f'<a href="#{_place(name)}">{parts.ERRATA[name][0].lower()}</a>' for name in classes]
    rows = [
        [source, *(sum(weight(c) == name for c in mine) for name in classes), len(mine)]
        for source, mine in groups
    ]
    return parts.counts(["source", *heads, "all"], rows)


def _erratum(claim: Entry) -> str:
    # The statement of a false claim is the source's; those of misprints are put right.
    verdict = "**False as stated.** " if claim["verdict"] == "false" else ""
    lines = [
        f"({parts.anchor('erratum', claim['id'])})=",
        f"### {claim['source']}, {claim['number']}\n",
        f"{verdict}{parts.text(claim['statement'])}\n",
    ]
    for name in ("printed", "ours"):
        if name in claim:
            shown = parts.box("td-scroll", parts.formula(claim[name]))
            lines.append(parts.box(f"td-{name}", f"**{name.capitalize()}**\n\n{shown}"))
    if "reason" in claim:
        lines.append(f"**Why** {parts.text(claim['reason'])}\n")
    deciders = "".join(map(_decider, parts.evidence(claim)))
    lines += parts.scope(claim)
    lines += ["**The numbers that decide**\n", f"<ul>{deciders}</ul>\n"]
    lines.append(f"{parts.details(claim)}\n")
    lines.append(f"{parts.chapter_link(claim['chapter'])} · {parts.ledger_link(claim['id'])}\n")
    return "\n".join(lines)


def _decider(item: Evidence) -> str:
    """One list entry for a check whose control is the printed version; empty otherwise."""
    if not item.control.printed:
        return ""
    variant = item.control.variant
    printed = "as printed" if variant == "as printed" else f"as printed ({escape(variant)})"
    return (
        f"<li>{escape(item.check)}: ours {comparison(item.observed, item.expected)} "
        f"(error {number(item.error)}); {printed} "
        f"{comparison(item.control.observed, item.control.expected)}</li>"
    )
