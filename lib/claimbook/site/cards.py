"""What a chapter's page shows of a claim: the statement beside the verdict.

A chapter records its claims as badges, which name a claim and its checks. The site knows more: the
statement, the reason, what was tested and what was not. So the output of a claim becomes a card
when the site is staged, and a change of these texts does not run the chapter again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from claimbook.numbering import statement_of
from claimbook.pages import parts
from claimbook.pages.parts import Entry
from claimbook.pages.templates import render
from claimbook.proofs import Node
from claimbook.registry import PRINTED_MUST_FAIL
from claimbook.render import excludes
from claimbook.site.figures import Shown
from claimbook.verdict import MIME

#: Statements by source and number.
Graphs = Mapping[str, Mapping[str, Node]]


def put(
    notebook: Any,
    claims: Mapping[str, Entry],
    figures: Mapping[str, Shown],
    graphs: Graphs | None = None,
) -> None:
    """Replace the badges in an executed notebook by cards.

    Parameters
    ----------
    notebook : NotebookNode
        Changed in place.
    claims : mapping
        Claims of the ledger by id; the badge of one that is not there stays.
    figures : mapping
        Figures of the page by label.
    graphs : mapping, optional
        What proofs use, of :func:`claimbook.proofs.graphs`.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(MIME)
            if record and record["id"] in claims:
                # The text is MyST, so that formulas and links are those of the page.
                output["data"] = {
                    "text/markdown": card(claims[record["id"]], figures, graphs),
                    MIME: record,
                }


def card(claim: Entry, figures: Mapping[str, Shown], graphs: Graphs | None = None) -> str:
    """Return the card of a claim as MyST text.

    Parameters
    ----------
    claim : mapping
        Of the ledger.
    figures, graphs : mapping
        As for :func:`put`.
    """
    nodes = (graphs or {}).get(claim["source"], {})
    node = nodes.get(statement_of(claim["number"]))
    relations = []
    if node:
        names = (
            ("Rests on", list(node.uses.items())),
            ("Used by", list(_users(claim, node, nodes))),
        )
        relations = [
            (name, [_link(claim, nodes[number], parts_used) for number, parts_used in found])
            for name, found in names
            if found
        ]
    wrong = claim["verdict"] in PRINTED_MUST_FAIL
    formulas = [
        (name, _inline(claim[key]))
        for key, name in (("printed", "Printed"), ("ours", "Right"))
        if wrong and key in claim
    ]
    excluded = list(dict.fromkeys(map(excludes, parts.evidence(claim))))
    text = render(
        "card",
        claim=claim,
        formulas=formulas,
        excluded=excluded,
        figure=figures.get(claim["figure"]),
        relations=relations,
        map=f"{_relative('map', claim)}?focus={node.key}&amp;way=both" if node else "",
    )
    # The registry names chapters from the folder of the book, the page stands in one of its parts.
    return re.sub(r"(\{doc\}`(?:[^`<]*<)?)(?=[\w-])", r"\1/book/", text)


def _users(
    claim: Entry, node: Node, nodes: Mapping[str, Node]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what uses the part of a statement that a claim is on."""
    for number in node.used_by:
        used = nodes[number].uses[node.number]
        if not used or claim["id"] in used:
            yield number, ()


def _link(claim: Entry, target: Node, used: Sequence[str]) -> str:
    """Return the number of a statement as HTML, with a link to its card if it has one."""
    chosen = [other for other in target.claims if other["id"] in used]
    other = chosen[0] if chosen else target.first
    if other is None:
        return escape(target.number)
    place = f"#{parts.anchor('claim', other['id'])}"
    page = "" if other["chapter"] == claim["chapter"] else _relative(other["chapter"], claim)
    return f'<a href="{page}{place}">{escape(target.number)}</a>'


def _relative(page: str, claim: Entry) -> str:
    """Address of a page of the book, from the page that a claim is on."""
    return posixpath.relpath(page, posixpath.dirname(claim["chapter"]) or ".") + ".html"


def _inline(formula: str) -> str:
    """Return a formula of the registry as a part of a line."""
    return formula if "$" in formula else f"${' '.join(formula.split())}$"
