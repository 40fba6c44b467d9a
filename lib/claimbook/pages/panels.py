"""The page of figures and tables that are judged panel by panel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from claimbook.pages import parts
from claimbook.pages.parts import Ledger
from claimbook.pages.templates import render
from claimbook.registry import PANEL_FINDINGS


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
    chosen = [claim for claim in ledger["claims"] if "panels" in claim]
    chosen.sort(key=lambda claim: parts.numerically(claim["number"]))
    groups = list(parts.by_source(ledger, chosen))
    rows = list(_rows(groups))
    return render("panels", groups=groups, rows=rows, sources=ledger["sources"])


def _rows(groups: list[tuple[str, list[parts.Entry]]]) -> Iterator[list[object]]:
    """Count the panels of each source by what was found."""
    for source, claims in groups:
        found = Counter(panel["finding"] for claim in claims for panel in claim["panels"])
        yield [source, *(found[name] for name in PANEL_FINDINGS), found.total()]
