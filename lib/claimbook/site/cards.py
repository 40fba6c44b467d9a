"""What a chapter's page shows of a claim: the statement beside the verdict.

A chapter records its claims as badges, which name a claim and its checks. The site knows more: the
statement, the reason, what was tested and what was not. So the output of a claim becomes a card
when the site is staged, and a change of these texts does not run the chapter again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from claimbook.pages import parts
from claimbook.pages.parts import Entry
from claimbook.pages.templates import render
from claimbook.registry import PRINTED_MUST_FAIL
from claimbook.render import excludes
from claimbook.site.figures import Shown
from claimbook.verdict import MIME


def put(notebook: Any, claims: Mapping[str, Entry], figures: Mapping[str, Shown]) -> None:
    """Replace the badges in an executed notebook by cards.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place.
    claims : mapping
        Claims of the ledger by id; the badge of one that is not there stays.
    figures : mapping
        Figures of the page by label.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(MIME)
            if record and record["id"] in claims:
                # The text is MyST, so that formulas and links are those of the page.
                output["data"] = {
                    "text/markdown": card(claims[record["id"]], figures),
                    MIME: record,
                }


def card(claim: Entry, figures: Mapping[str, Shown]) -> str:
    """Return the card of a claim as MyST text.

    Parameters
    ----------
    claim : mapping
        Of the ledger.
    figures : mapping
        As for :func:`put`.
    """
    wrong = claim["verdict"] in PRINTED_MUST_FAIL
    formulas = [
        (name, _inline(claim[key]))
        for key, name in (("printed", "Printed"), ("ours", "Right"))
        if wrong and key in claim
    ]
    excluded = list(dict.fromkeys(map(excludes, parts.evidence(claim))))
    figure = figures.get(claim["figure"])
    text = render("card", claim=claim, formulas=formulas, excluded=excluded, figure=figure)
    # The registry names chapters from the folder of the book, the page stands in one of its parts.
    return re.sub(r"(\{doc\}`(?:[^`<]*<)?)(?=[\w-])", r"\1/book/", text)


def _inline(formula: str) -> str:
    """Return a formula of the registry as a part of a line."""
    return formula if "$" in formula else f"${' '.join(formula.split())}$"
