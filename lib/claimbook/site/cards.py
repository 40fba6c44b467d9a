"""What a chapter's page shows of a claim: the statement beside the verdict.

A chapter records its claims as badges, which name a claim and its checks. The site knows more: the
statement, the reason, what was tested and what was not. So the output of a claim becomes a card
when the site is staged, and a change of these texts does not run the chapter again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from claimbook.evidence import Evidence
from claimbook.pages import parts
from claimbook.pages.parts import Entry
from claimbook.registry import PRINTED_MUST_FAIL
from claimbook.render import WORDS, colour, evidence_list, excludes, verdict_word
from claimbook.verdict import MIME


def put(notebook: Any, claims: Mapping[str, Entry]) -> None:
    """Replace the badges in an executed notebook by cards.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place.
    claims : mapping
        Claims of the ledger by id; the badge of one that is not there stays.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(MIME)
            if record and record["id"] in claims:
                # The text is MyST, so that formulas and links are those of the page.
                output["data"] = {"text/markdown": card(claims[record["id"]]), MIME: record}


def card(claim: Entry) -> str:
    """Return the card of a claim as MyST text.

    Parameters
    ----------
    claim : mapping
        Of the ledger.
    """
    id, verdict = claim["id"], claim["verdict"]
    label = escape(f"{claim['number']}: {WORDS[verdict]}", quote=True)
    border = f"border-left:.35em solid {colour(verdict)}"
    head = (
        f'<div class="td-card" id="{parts.anchor("claim", id)}" role="group" '
        f'aria-label="{label}" style="{border}">'
    )
    title = f"**{escape(claim['number'])}** · {verdict_word(verdict)} · {parts.ledger_link(id)}"
    lines = [head, "", title, "", *_body(claim), *_checks(claim), "", "</div>"]
    # The registry names chapters from the folder of the book, the page stands in one of its parts.
    return re.sub(r"(\{doc\}`(?:[^`<]*<)?)(?=[\w-])", r"\1/book/", "\n".join(lines))


def _body(claim: Entry) -> Iterator[str]:
    yield parts.text(claim["statement"])
    yield ""
    for key, name in (("printed", "Printed"), ("ours", "Right")):
        if claim["verdict"] in PRINTED_MUST_FAIL and key in claim:
            yield f"*{name}:* {_inline(claim[key])}"
            yield ""
    if "reason" in claim:
        yield f"*Reason:* {parts.text(claim['reason'])}"
        yield ""
    yield from parts.scope(claim)


def _inline(formula: str) -> str:
    """Return a formula of the registry as a part of a line."""
    return parts.text(formula if "$" in formula else f"${' '.join(formula.split())}$")


def _checks(claim: Entry) -> Iterator[str]:
    """Yield what the checks exclude, each check in a line, and the numbers behind it, folded."""
    found = [Evidence.from_json(item) for item in claim["evidence"]]
    if not found:
        return
    count = "1 check excludes" if len(found) == 1 else f"{len(found)} checks exclude"
    lines = "; ".join(dict.fromkeys(excludes(item) for item in found))
    yield (f"<details><summary>{count} {lines}</summary>{evidence_list(found)}</details>")
