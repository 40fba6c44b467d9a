"""What a chapter's page shows of a claim: the statement beside the verdict.

A chapter records its claims as badges, which name a claim and its checks. The site adds the
statement, the reason, what was tested and what was not. So the output of a claim becomes a card
when the site is staged, and a change of these texts does not run the chapter again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from claimbook.numbering import statement_of
from claimbook.pages import parts
from claimbook.pages.map import UNCLAIMED
from claimbook.pages.parts import Entry
from claimbook.pages.templates import render
from claimbook.proofs import Node
from claimbook.registry import PRINTED_MUST_FAIL, UNSETTLED, Finding
from claimbook.render import MARKS, WORDS, excludes
from claimbook.site.figures import Shown
from claimbook.site.sources import Source
from claimbook.statements import Cell, Place, Statement, cell
from claimbook.verdict import MIME

#: Statements by source and number.
Graphs = Mapping[str, Mapping[str, Node]]


@dataclass(frozen=True)
class Code:
    """Where the content of a claim is computed and tested.

    Attributes
    ----------
    functions, tests : list of Place
        What the reference has of the statement, and its tests.
    cell : Cell
        Where the chapter records the claim.
    folder : Path
        Of the tests.
    address : str
        Where the checkout is published; empty if it is not.
    index : str
        Address of the statement on its page, from the page of the claim; empty without one.
    """

    functions: list[Place]
    tests: list[Place]
    cell: Cell
    folder: Path
    address: str
    index: str


def codes(statements: Iterable[Statement], root: Path, address: str = "") -> dict[str, Code]:
    """Collect the code of each claim, by its id.

    Parameters
    ----------
    statements : iterable of Statement
        Of :func:`claimbook.statements.index`.
    root : Path
        The checkout, with ``book`` and ``tests``.
    address : str
        Where it is published; empty if it is not.
    """
    found = {}
    for item in statements:
        place = parts.anchor("statement", " ".join(item.reference))
        for claim in item.claims:
            page = _relative("statements", claim.chapter)
            found[claim.id] = Code(
                functions=item.public,
                tests=item.tests,
                cell=cell(claim, root / "book"),
                folder=root / "tests",
                address=address,
                index=f"{page}#{place}" if item.listed else "",
            )
    return found


def put(
    notebook: Any,
    claims: Mapping[str, Entry],
    figures: Mapping[str, Shown],
    graphs: Graphs | None = None,
    code: Mapping[str, Code] | None = None,
    sources: Mapping[str, Source] | None = None,
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
    code : mapping, optional
        Of :func:`codes`.
    sources : mapping, optional
        Of :func:`claimbook.site.sources.read`.
    """
    for executed in notebook.cells:
        for output in executed.get("outputs", []):
            record = output.get("data", {}).get(MIME)
            if record and record["id"] in claims:
                # The text is MyST, so that formulas and links are those of the page.
                output["data"] = {
                    "text/markdown": card(claims[record["id"]], figures, graphs, code, sources),
                    MIME: record,
                }


def card(
    claim: Entry,
    figures: Mapping[str, Shown],
    graphs: Graphs | None = None,
    code: Mapping[str, Code] | None = None,
    sources: Mapping[str, Source] | None = None,
) -> str:
    """Return the card of a claim as MyST text.

    Parameters
    ----------
    claim : mapping
        Of the ledger.
    figures, graphs, code, sources : mapping
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
    mine = (code or {}).get(claim["id"])
    excluded = list(dict.fromkeys(map(excludes, parts.evidence(claim))))
    text = render(
        "card",
        claim=claim,
        detail=_is_detail(claim),
        formulas=formulas,
        excluded=excluded,
        figure=figures.get(claim["figure"]),
        relations=relations,
        foot=list(_foot(claim, (sources or {}).get(claim["source"]), mine)),
        code=mine,
        map=f"{_relative('map', claim['chapter'])}?focus={node.key}&amp;way=both" if node else "",
    )
    # The registry names chapters from the folder of the book, the page stands in one of its parts.
    return re.sub(r"(\{doc\}`(?:[^`<]*<)?)(?=[\w-])", r"\1/book/", text)


def _is_detail(claim: Entry) -> bool:
    """Whether a claim is a formula or a remark that identities confirm, without a figure."""
    identities = all(check["kind"] == "identity" for check in claim["evidence"])
    small = claim["kind"] in ("formula", "remark") and not claim["figure"]
    return small and identities and claim["verdict"] == "confirmed"


def _foot(claim: Entry, source: Source | None, code: Code | None) -> Iterator[str]:
    """Yield as MyST whose a claim is, which pages say more of it, and where it is computed."""
    if source:
        yield f"*Source:* {source.name} {{cite}}`{source.entry}`"
    entries = []
    if claim["verdict"] in PRINTED_MUST_FAIL:
        entries.append(("erratum", "errata", "erratum"))
    if claim["verdict"] in UNSETTLED:
        entries.append(("what would settle it", "limits", "limit"))
    if "panels" in claim:
        entries.append(("panel by panel", "panels", "panels"))
    for words, page, prefix in entries:
        place = parts.anchor(prefix, claim["id"])
        yield f'<a href="{_relative(page, claim["chapter"])}#{place}">{words}</a>'
    if code and code.cell.line:
        words = f"code cell {code.cell.number}"
        address = f"{code.address}/book/{claim['chapter']}.md#L{code.cell.line}"
        yield f"[{words}]({address})" if code.address else words


def _users(
    claim: Entry, node: Node, nodes: Mapping[str, Node]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what uses the part of a statement that a claim is on."""
    for number in node.used_by:
        used = nodes[number].uses[node.number]
        if not used or claim["id"] in used:
            yield number, ()


def _link(claim: Entry, target: Node, used: Sequence[str]) -> str:
    """Return the number of a statement with its verdict, as a link to its card if it has one."""
    chosen = [other for other in target.claims if other["id"] in used]
    other = chosen[0] if chosen else target.first
    if other is None:
        return _marked(escape(target.number), None)
    place = f"#{parts.anchor('claim', other['id'])}"
    page = (
        ""
        if other["chapter"] == claim["chapter"]
        else _relative(other["chapter"], claim["chapter"])
    )
    verdict = other["verdict"] if chosen else target.verdict
    return _marked(f'<a href="{page}{place}">{escape(target.number)}</a>', verdict)


def _marked(name: str, verdict: Finding | None) -> str:
    """Return a name with the mark of its verdict, which does not begin a line."""
    words = WORDS[verdict] if verdict else UNCLAIMED
    mark = MARKS[verdict] if verdict else "–"
    return f'{name}&nbsp;<span role="img" aria-label="{words}">{mark}</span>'


def _relative(page: str, chapter: str) -> str:
    """Address of a page of the book, from the page of a chapter."""
    return posixpath.relpath(page, posixpath.dirname(chapter) or ".") + ".html"


def _inline(formula: str) -> str:
    """Return a formula of the registry as a part of a line."""
    return formula if "$" in formula else f"${' '.join(formula.split())}$"
