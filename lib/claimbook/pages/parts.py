"""What the pages of the ledger share: anchors, text, formulas, groups and counts.

The pages are MyST, so that mathematics and links between pages are the book's own (and
checked by its build), with raw HTML around them for tables. They stand in the folder that
holds the chapters' folders: a chapter is linked by its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from claimbook.evidence import Evidence
from claimbook.registry import FINDINGS, Finding, Matters

#: A ledger as read from its file, and one of its claims.
Ledger = Mapping[str, Any]
Entry = Mapping[str, Any]

MEANING: dict[Finding, str] = {
    "confirmed": "holds, as far as its card says under *Tested*",
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


def anchor(prefix: str, id: str) -> str:
    """Name of a place on a page.

    Examples
    --------
    >>> from claimbook.pages.parts import anchor
    >>> anchor("claim", "BGHJ-T2.3")
    'claim-bghj-t2-3'
    """
    return f"{prefix}-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


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
    >>> from claimbook.pages.parts import formula
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


#: What only Markdown can turn into HTML: roles, links, lists of links, footnotes.
_MARKDOWN = re.compile(r"\{[\w:]+\}`|\]\(|\[\^|<\w")


def paragraph(written: str, lead: str = "") -> str:
    r"""Return a paragraph whose formulas are typeset when a reader comes to see them.

    A page of some hundred entries that were typeset when it opens would be slow. So the text is
    HTML, in which MathJax does not look by itself, see ``static/ledger.js``. A text with links of
    the book in it stays MyST.

    Parameters
    ----------
    written : str
        Of the registry.
    lead : str
        Words in front of it.

    Examples
    --------
    >>> from claimbook.pages.parts import paragraph
    >>> paragraph("The `path` is *not* short.", "Why:")
    '<p class="td-tex"><em>Why:</em> The <code>path</code> is <em>not</em> short.</p>'
    >>> paragraph("See {doc}`ledger`.")
    'See {doc}`ledger`.'
    """
    pieces = " ".join(written.split()).split("$")
    if any(map(_MARKDOWN.search, pieces[::2])):
        return f"*{lead}* {text(written)}" if lead else text(written)
    pieces[::2] = [_emphasised(escape(piece, quote=False)) for piece in pieces[::2]]
    pieces[1::2] = [rf"\({escape(piece, quote=False)}\)" for piece in pieces[1::2]]
    before = f"<em>{lead}</em> " if lead else ""
    return f'<p class="td-tex">{before}{"".join(pieces)}</p>'


def _emphasised(words: str) -> str:
    words = re.sub(r"`([^`]+)`", r"<code>\1</code>", words)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", words)


def display(written: str) -> str:
    """Return what `formula` makes of a formula, to be typeset as a `paragraph` is."""
    found = formula(written)
    if not found.startswith("$$\n"):
        return paragraph(found.removeprefix("\\"))
    return rf'<p class="td-tex">\[{escape(found[3:-3], quote=False)}\]</p>'


def evidence(claim: Entry) -> list[Evidence]:
    """Return the checks of a claim."""
    return [Evidence.from_json(item) for item in claim["evidence"]]


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


def choices(claims: Iterable[Entry], keys: Iterable[str]) -> dict[str, list[str]]:
    """Return what a filter of a page offers: for each key of a claim the values that there are.

    Parameters
    ----------
    claims : iterable of mapping
        Those of the page, in the order of the registry.
    keys : iterable of str
        Such as ``source``; with ``words`` also the keys of the address of the page.

    Returns
    -------
    dict
        Verdicts in their own order, sources in that of the claims, others sorted.
    """
    chosen = list(claims)
    found = {key: list(dict.fromkeys(str(claim[key]) for claim in chosen)) for key in keys}
    for key, values in found.items():
        if key == "verdict":
            values.sort(key=[*map(str, FINDINGS)].index)
        elif key != "source":
            values.sort()
    return found


@dataclass(frozen=True)
class Section:
    """The claims of one class, and the heading above them."""

    page: str
    name: str
    title: str
    meaning: str
    claims: list[Entry]

    @property
    def place(self) -> str:
        """Its place on the page."""
        return anchor(self.page, self.name)


def overview(ledger: Ledger, sections: Iterable[Section]) -> Iterator[tuple[str, list[int]]]:
    """Yield how many claims each section has of every source, then of all of them."""
    found = [Counter(claim["source"] for claim in section.claims) for section in sections]
    for source, _ in by_source(ledger, ledger["claims"]):
        counts = [section[source] for section in found]
        if any(counts):
            yield source, counts
    if found:
        yield "all", [section.total() for section in found]


def numerically(number: str) -> list[tuple[int, str]]:
    """Sort key under which 9 comes before 10.

    Examples
    --------
    >>> from claimbook.pages.parts import numerically
    >>> sorted(["Figure B.1", "Figure 10", "Figure 9"], key=numerically)
    ['Figure 9', 'Figure 10', 'Figure B.1']
    """
    parts = re.split(r"(\d+)", number)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def duration(seconds: float) -> str:
    """Return a time in words of its size.

    Examples
    --------
    >>> from claimbook.pages.parts import duration
    >>> duration(4.26), duration(75), duration(3700)
    ('4.3 s', '1 min 15 s', '1 h 1 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
