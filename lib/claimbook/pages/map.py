"""The map of statements: which statement rests on which, and where errata propagate to.

Drawn as SVG when the page is written, so that it needs no script; the script adds a view of one
statement with its surroundings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from claimbook import proofs
from claimbook.pages import layers, parts
from claimbook.pages.parts import Ledger
from claimbook.pages.templates import render
from claimbook.proofs import GROUNDS, Ground, Node
from claimbook.render import MARKS, WORDS

#: What a statement rests on: a mark, and words for it.
RESTS: dict[Ground, tuple[str, str]] = {
    "confirmed": ("✓", "confirmed statements alone"),
    "corrected": ("✎", "a misprint whose corrected form was tested"),
    "undecided": ("?", "something undecided, or not among the claims"),
    "false": ("✗", "something false as stated"),
}
#: Words for a statement of which nothing was checked.
UNCLAIMED = "not among the claims"
#: Kinds of statements as the boxes have them; others are written out.
_SHORT = {
    "Corollary": "Cor.",
    "Definition": "Def.",
    "Equation": "Eq.",
    "Example": "Ex.",
    "Observation": "Obs.",
    "Proposition": "Prop.",
    "Remark": "Rem.",
    "Section": "Sec.",
    "Theorem": "Thm",
}
_LINE = 18  # letters that fit into a line of a box
_LETTER = 7.5


@dataclass(frozen=True)
class Section:
    """What the page shows of one source."""

    source: str
    title: str
    nodes: list[Node]
    svg: str
    #: How many of the statements rest on what, in the order of `proofs.GROUNDS`.
    counts: list[int]


def sections(ledger: Ledger) -> list[Section]:
    """Return what the page shows, by source.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.

    Returns
    -------
    list of Section
        Sources in the order of the ledger, statements in the order of their numbers.
    """
    found = proofs.graphs(ledger)
    order = [source for source in ledger["sources"] if source in found]
    result = []
    for source in dict.fromkeys([*order, *found]):
        nodes = [node for node in found[source].values() if node.read or node.used_by]
        nodes.sort(key=lambda node: parts.numerically(node.number))
        if not nodes:
            continue
        counts = [sum(node.read and node.rests == name for node in nodes) for name in GROUNDS]
        title = str(ledger["sources"].get(source, ""))
        result.append(Section(source, title, nodes, picture(nodes), counts))
    return result


def picture(nodes: Sequence[Node]) -> str:
    """Return a graph of statements as SVG on one line, which Markdown leaves as it is.

    Parameters
    ----------
    nodes : sequence of Node
        Statements of one source; what they use is among them.
    """
    connected = [node for node in nodes if node.uses or node.used_by]
    labels = {node.number: _fold(node.number) for node in connected}
    widths = {
        node.number: (62 if node.uses else 42) + _LETTER * max(map(len, labels[node.number]))
        for node in connected
    }
    uses = {node.number: list(node.uses) for node in connected}
    kept = layers.reduced(uses)
    drawing = layers.draw(kept, widths)
    by_number = {node.number: node for node in connected}
    lines = []
    for above, targets in uses.items():
        for below in targets:
            implied = below not in kept[above]
            points = drawing.lines.get((above, below)) or layers.direct(drawing, above, below)
            lines.append(_line(by_number[above], by_number[below], points, implied=implied))
    boxes = [
        _box(node, drawing.places[node.number], widths[node.number], labels[node.number])
        for node in connected
    ]
    width, height = (f"{size:g}" for size in (drawing.width, drawing.height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="group" '
        f'aria-label="Which statement uses which">{"".join(lines + boxes)}</svg>'
    )


def _fold(number: str) -> list[str]:
    """Return a number on at most two lines, its kind in short.

    Examples
    --------
    >>> from claimbook.pages.map import _fold
    >>> _fold("Fixed points in the proof of Theorem 2"), _fold("Theorem 2.3")
    (['Fixed points in', 'the proof of Thm 2'], ['Thm 2.3'])
    """
    lines = [""]
    for whole in number.split():
        word = _SHORT.get(whole, whole)
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= _LINE or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1]} …"]
    return lines


def weight(above: Node, below: Node) -> Ground:
    """Return the worst verdict that comes with one step: on what is used, or on its grounds."""
    used = above.uses[below.number]
    own = proofs.ground(claim for claim in below.claims if not used or claim["id"] in used)
    return max(own, below.rests, key=GROUNDS.index)


def _line(above: Node, below: Node, points: Sequence[tuple[float, float]], *, implied: bool) -> str:
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        path += (
            f"V{to_y:g}"
            if x == to_x
            else f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"
        )
    return (
        f'<path class="td-line td-on-{weight(above, below)}{" td-implied" if implied else ""}" '
        f'data-from="{escape(above.key)}" '
        f'data-to="{escape(below.key)}" d="{path}"/>'
    )


def describe(node: Node) -> str:
    """Say in a line what is known of a statement.

    Examples
    --------
    >>> from claimbook.pages.map import describe
    >>> from claimbook.proofs import Node
    >>> describe(Node("A", "Lemma 1", (), False, {}, (), "confirmed", ()))
    'Lemma 1: not among the claims'
    """
    words = WORDS[node.verdict] if node.verdict else UNCLAIMED
    if len(node.claims) > 1:
        words += f", the worst of {len(node.claims)} verdicts"
    return f"{node.number}: {words}{'; rests on ' + RESTS[node.rests][1] if node.uses else ''}"


def _box(node: Node, place: tuple[float, float], width: float, lines: Sequence[str]) -> str:
    x, y = place[0] - width / 2, place[1] - layers.BOX / 2
    right = x + width
    name = node.verdict or "none"
    texts = "".join(
        f'<text x="{x + 26:g}" y="{y + 19.5 + 11 * (index - (len(lines) - 1) / 2):g}"'
        f"{' class=' + chr(34) + 'td-small' + chr(34) if len(lines) > 1 else ''}>"
        f"{escape(line)}</text>"
        for index, line in enumerate(lines)
    )
    rests = ""
    if node.uses:
        rests = (
            f'<circle class="td-rests td-on-{node.rests}" cx="{right - 14:g}" cy="{y + 15:g}" '
            f'r="9"/><text class="td-mark" x="{right - 14:g}" y="{y + 19.5:g}">'
            f"{RESTS[node.rests][0]}</text>"
        )
    mark = MARKS[node.verdict] if node.verdict else "–"
    content = (
        f"<title>{escape(describe(node))}</title>"
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{layers.BOX}" rx="4"/>'
        f'<text class="td-mark" x="{x + 14:g}" y="{y + 19.5:g}">{mark}</text>{texts}{rests}'
    )
    attributes = f'class="td-node td-is-{name}" data-node="{escape(node.key)}"'
    claim = node.first
    if claim is None:
        label = escape(describe(node))
        return f'<g {attributes} tabindex="0" role="img" aria-label="{label}">{content}</g>'
    address = f"{claim['chapter']}.html#{parts.anchor('claim', claim['id'])}"
    return f'<a {attributes} href="{escape(address)}">{content}</a>'


@dataclass(frozen=True)
class Fault:
    """A statement of which something is false, and what rests on it."""

    node: Node
    #: Its false claims.
    claims: list[Mapping[str, object]]
    above: list[Node]


def faults(section: Section) -> list[Fault]:
    """Return the false statements of a source that others rest on, most of these first."""
    found = []
    for node in section.nodes:
        above = [other for other in section.nodes if node.number in other.through]
        above = [other for other in above if other.rests == "false"]
        false = [claim for claim in node.claims if claim["verdict"] == "false"]
        if above and false:
            found.append(Fault(node, false, above))
    return sorted(found, key=lambda fault: -len(fault.above))


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
    chosen = sections(ledger)
    rows = [[section.source, *section.counts, sum(section.counts)] for section in chosen]
    return render(
        "map",
        sections=chosen,
        rows=rows,
        faults=[fault for section in chosen for fault in faults(section)],
        grounds=GROUNDS,
        rests=RESTS,
        marks=MARKS,
        unclaimed=UNCLAIMED,
    )
