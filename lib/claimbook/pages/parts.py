"""What the pages of the ledger share: anchors, links, text, tables and their style.

The pages are MyST, so that mathematics and links between pages are the book's own (and
checked by its build), with raw HTML around them for tables. They stand in the folder that
holds the chapters' folders: a chapter is linked by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from claimbook.evidence import Evidence
from claimbook.registry import Finding, Matters
from claimbook.render import evidence_list

#: A ledger as read from its file, and one of its claims.
Ledger = Mapping[str, Any]
Entry = Mapping[str, Any]

MEANING: dict[Finding, str] = {
    "confirmed": "holds, as far as its entry says under *Tested*",
    "corrected": "our formula holds, the printed one fails the same check",
    "false": "the entry gives the counter-example, and the repair if there is one",
    "partial": "holds in part; the entry says which",
    "data": "the method was tested on a substitute",
}

#: Title of each class of errata, and what it means, the heaviest first.
ERRATA: dict[Literal["false"] | Matters, tuple[str, str]] = {
    "false": (
        "False as stated",
        "A hypothesis is missing, a quantifier is wrong, or what is described does not happen. "
        "Where there is a repaired statement it stands beside, and is tested by the same checks.",
    ),
    "number": (
        "Misprints that change a formula or a number",
        "The statement survives, but what one computes from the print is wrong: a sign, a "
        "factor, an exponent, an order.",
    ),
    "slip": (
        "Slips",
        "The source has it right elsewhere, or the context leaves no doubt: an index, a letter, "
        "a factor lost on one line.",
    ),
}

STYLE = """\
<style>
.td-table {width: 100%; border-collapse: collapse; font-size: .9em; table-layout: fixed}
.td-table th, .td-table td {text-align: left; vertical-align: top; padding: .5em .6em;
  border-bottom: 1px solid var(--pst-color-border, #8886); overflow-wrap: break-word}
#td-ledger th:nth-child(-n+2) {width: 22%}
.td-measured th:nth-child(2) {width: 18%}
.td-measured th:nth-child(3) {width: 10%}
.td-figures th {width: 18%}
.td-figures th:nth-child(2) {width: auto}
.td-table td p {margin: 0 0 .4em; overflow-x: auto; overflow-y: hidden}
.td-table td ul {margin: 0; padding: 0; list-style: none}
.td-table details > summary {cursor: pointer}
.td-table td[data-label] {font-variant-numeric: tabular-nums}
.td-thumb {width: 20rem; max-width: 100%}
.td-thumb img {width: 100%; height: auto; margin: 0}
.td-filter {display: flex; flex-wrap: wrap; gap: .5em 1em; margin: 1em 0; align-items: end}
.td-filter[hidden] {display: none}
.td-filter label {display: flex; flex-direction: column; font-size: .85em}
.td-filter :is(select, input, button) {font: inherit; padding: .25em .4em; margin: 0;
  max-width: 80vw}
.td-scroll {overflow-x: auto; max-width: 100%}
.td-scroll mjx-container > svg {max-width: none}
.td-counts {border-collapse: collapse; font-size: .9em; font-variant-numeric: tabular-nums}
.td-counts :is(th, td) {padding: .3em .6em; text-align: right; vertical-align: bottom;
  border-bottom: 1px solid var(--pst-color-border, #8886)}
.td-counts thead th {min-width: 4.5em}
.td-counts :is(th, td):first-child {text-align: left}
.td-printed, .td-ours {border-left: .25em solid var(--td-false, #c0392b); padding-left: .8em;
  margin: .4em 0}
.td-ours {border-left-color: var(--td-confirmed, #2e8b57)}
:is(.td-printed, .td-ours) :is(p, div.math, mjx-container[display="true"]) {margin: 0 !important;
  text-align: left !important}
@media (max-width: 48rem) {
  .td-table thead {position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%)}
  .td-table, .td-table tbody, .td-table > tbody > tr, .td-table > tbody > tr > td {display: block}
  .td-table > tbody > tr {border-bottom: 2px solid var(--pst-color-border, #8886)}
  .td-table > tbody > tr > td {border-bottom: 0; padding: .25em .6em}
  .td-table > tbody > tr[hidden] {display: none}
  .td-table td[data-label]::before {content: attr(data-label) ": "; opacity: .8}
}
</style>
"""


def anchor(prefix: str, id: str) -> str:
    """Name of a place on a page.

    Examples
    --------
    >>> anchor("claim", "BGHJ-T2.3")
    'claim-bghj-t2-3'
    """
    return f"{prefix}-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def chapter_link(chapter: str) -> str:
    """Link to a chapter, with its title."""
    return f"{{doc}}`{chapter}`"


def ledger_link(id: str) -> str:
    """Link to the row of a claim."""
    return f"{{ref}}`{id} <{anchor('claim', id)}>`"


def text(written: str) -> str:
    """One line of MyST that starts no block and holds no HTML, outside mathematics."""
    parts = " ".join(written.split()).split("$")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    line = "$".join(parts)
    return "\\" + line if re.match(r"[#>]|[-+*] |\$\$", line) else line


def formula(written: str) -> str:
    r"""Display mathematics; a line with words in it becomes text, which a phone can fold.

    Examples
    --------
    >>> formula(r"\dot m=-m")
    '$$\n\\dot m=-m\n$$'
    >>> formula(r"R=0\text{ for every }k\ge3")
    '$R=0$ for every $k\\ge3$'
    """
    if "$" in written:
        return text(written)
    pieces = list(_pieces(written))
    if len(pieces) < 2 or re.search(r"\\(left|right|begin|end|middle)\b", written):
        return f"$$\n{' '.join(written.split())}\n$$"
    line = ""
    for piece in pieces:
        touching = line[-1:] + piece[:1]
        line += f" {piece}" if re.fullmatch(r"\w\$|\$\w", touching) else piece
    return text(line)


def _pieces(written: str) -> Iterator[str]:
    """Cut a formula at the words that stand outside all braces."""
    depth = start = 0
    for match in re.finditer(r"\\text\{([^{}$]*)\}|\\[{}]|[{}]", written):
        if match.group(1) is not None and depth == 0:
            yield _inline(written[start : match.start()])
            yield match.group(1)
            start = match.end()
        elif match.group() == "{":
            depth += 1
        elif match.group() == "}":
            depth -= 1
    yield _inline(written[start:])


def _inline(formula: str) -> str:
    """Put a piece of a formula between dollars; its spaces and stops at the ends outside."""
    space = r"(?:\\[ ,;]|\\quad|\s)"
    found = re.fullmatch(rf"({space}*[,;]?{space}*)(.*?)([,;:]?{space}*)", formula, re.DOTALL)
    assert found is not None
    before, middle, after = found.groups()
    ends = [re.sub(rf"{space}+", " ", end) for end in (before, after)]
    return f"{ends[0]}${middle}${ends[1]}" if middle else "".join(ends)


def box(name: str, block: str) -> str:
    """Put a block into an element of a class of the style."""
    return f'<div class="{name}">\n\n{block}\n\n</div>\n'


def table(name: str, heads: Iterable[str], rows: Iterable[str], *, id: str = "") -> str:
    """Return a table that becomes a list on a phone."""
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    body = "\n\n".join(rows)
    place = f' id="{id}"' if id else ""
    return (
        f'<table class="{name}"{place}><thead><tr>{head}</tr></thead><tbody>\n\n'
        f"{body}\n\n</tbody></table>\n"
    )


def counts(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a small table of numbers, the first column of which names the rows."""
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    body = []
    for first, *others in rows:
        cells = "".join(f"<td>{value}</td>" for value in others)
        body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return (
        '<div class="td-scroll" tabindex="0"><table class="td-counts">'
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>\n"
    )


def evidence(claim: Entry) -> list[Evidence]:
    """Return the checks of a claim."""
    return [Evidence.from_json(item) for item in claim["evidence"]]


def details(claim: Entry) -> str:
    """All checks of a claim, folded."""
    found = evidence(claim)
    checks = "1 check" if len(found) == 1 else f"{len(found)} checks"
    return f"<details><summary>{checks}</summary>{evidence_list(found)}</details>"


def scope(claim: Entry) -> Iterator[str]:
    """Yield what was tested of a claim, what was not, and whose it is, each a paragraph."""
    for name, title in (("tested", "Tested"), ("not_tested", "Not tested"), ("credit", "Credit")):
        if name in claim:
            yield f"*{title}:* {text(claim[name])}"
            yield ""


def checks(claims: Iterable[Entry]) -> int:
    """Count the checks of some claims."""
    return sum(len(claim["evidence"]) for claim in claims)


def by_source(ledger: Ledger, claims: Iterable[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    """Yield the claims of each source that has some, sources in the order of the registry."""
    chosen = list(claims)
    present = dict.fromkeys(claim["source"] for claim in ledger["claims"])
    for source in dict.fromkeys([*ledger["sources"], *present]):
        mine = [claim for claim in chosen if claim["source"] == source]
        if mine:
            yield source, mine


def numerically(number: str) -> list[tuple[int, str]]:
    """Sort key under which 9 comes before 10.

    Examples
    --------
    >>> sorted(["Figure B.1", "Figure 10", "Figure 9"], key=numerically)
    ['Figure 9', 'Figure 10', 'Figure B.1']
    """
    parts = re.split(r"(\d+)", number)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def duration(seconds: float) -> str:
    """Return a time in words of its size.

    Examples
    --------
    >>> duration(4.26), duration(75), duration(3700)
    ('4.3 s', '1 min 15 s', '1 h 1 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
