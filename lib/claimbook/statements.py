r"""The index: from the statement of a source to its claims, its functions and its tests.

A docstring that cites a source marks what it documents: ``BGJ Theorem 2.2``, ``MDL Theorems 8.4
and 8.6``, ``ABC Lemmas 5.6-5.9``, ``ZHU (3.11), (3.12)``, the key of the source first and the
number as the registry has it. So the marker is what a reader of the docstring sees, a function
that is moved takes it along, and nothing has to be imported to read it. Tests are marked in the
same way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from claimbook.numbering import KINDS, NUMBER, statement_of
from claimbook.registry import Claim, Registry

_KIND = re.compile(rf"({'|'.join(KINDS)})s?\s+(?={NUMBER}|[A-Z]\b)")
_JOIN = r"\s*(?:,\s*and\s+|,\s*|;\s*|\s+and\s+|\s+or\s+|\s+to\s+|\s*[-–]\s*)"
_SPAN = re.compile(r"\s*(?:\s+to\s+|[-–])\s*\Z")


class Reference(NamedTuple):
    """A number of a source.

    Attributes
    ----------
    source : str
        Key of the source.
    number : str
        Such as ``Theorem 2.2``, ``Equation 3.3``, ``Chapter 14, Equation 1.2``.
    """

    source: str
    number: str


class Place(NamedTuple):
    """Where a reference stands.

    Attributes
    ----------
    name : str
        Dotted name of the function, class or module, or of the test.
    path : Path
        Its file.
    line : int
    """

    name: str
    path: Path
    line: int


@dataclass
class Statement:
    """One numbered statement of a source, and what the project has of it."""

    reference: Reference
    claims: list[Claim] = field(default_factory=list)
    functions: list[Place] = field(default_factory=list)
    tests: list[Place] = field(default_factory=list)

    @property
    def public(self) -> list[Place]:
        """The functions that the reference has: those without a private name in theirs."""
        return [place for place in self.functions if "._" not in f".{place.name}"]

    @property
    def listed(self) -> bool:
        """Whether the page of statements has it: one of a source that is among the claims."""
        # What the book adds has no number in a source. A claim of a source may have a credit too.
        return bool(self.claims) and self.reference.source != "OWN"


class Cell(NamedTuple):
    """Where a chapter records a claim.

    Attributes
    ----------
    path : Path
        Source of the chapter.
    line : int or None
        None if the claim stands nowhere in it.
    number : int
        Of the code cell, counted from 1; 0 without a line.
    """

    path: Path
    line: int | None
    number: int


def cell(claim: Claim, book: Path) -> Cell:
    """Find where a chapter records a claim.

    Parameters
    ----------
    claim : Claim
        Of the registry.
    book : Path
        Folder of the chapters.

    Returns
    -------
    Cell
    """
    path = book / f"{claim.chapter}.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    count = 0
    for number, line in enumerate(lines, 1):
        count += line.startswith("```{code-cell}")
        if f'"{claim.id}"' in line:
            return Cell(path, number, count)
    return Cell(path, None, 0)


def references(text: str, known: Mapping[str, Iterable[str]]) -> list[Reference]:
    """List the numbers that a text cites.

    Parameters
    ----------
    text : str
        Such as a docstring; line breaks count as spaces.
    known : mapping
        Numbers of the registry by the key of their source; those that are words, such as
        ``Easy and hard directions``, are recognised from it.

    Returns
    -------
    list of Reference
        In the order of the text, without repetition.

    Examples
    --------
    >>> from claimbook.statements import references
    >>> found = references("See BGJ Theorem 2.2 and Lemmas 8.1-8.3 (BGJ (3.3)).", {"BGJ": []})
    >>> [item.number for item in found]
    ['Theorem 2.2', 'Lemma 8.1', 'Lemma 8.2', 'Lemma 8.3', 'Equation 3.3']
    """
    line = " ".join(text.split())
    found: dict[Reference, None] = {}
    for key, numbers in known.items():
        words = sorted(numbers, key=len, reverse=True)
        for match in re.finditer(rf"(?<![\w-]){re.escape(key)}(?:'s?)?,?\s+", line):
            rest = line[match.end() :]
            named = next((w for w in words if re.match(rf"{re.escape(w)}(?!\.?\d)", rest)), None)
            items = [named] if named and not _KIND.match(named) else _listed(rest)
            found |= dict.fromkeys(Reference(key, item) for item in items)
    return list(found)


def _listed(text: str) -> Iterator[str]:
    """Yield the numbers that a text begins with."""
    kind, last, join = "", "", ""
    while True:
        if chapter := re.match(r"Chapter \d+, (?=[A-Z])", text):
            prefix, text = chapter.group(), text[chapter.end() :]
        else:
            prefix = ""
        if word := _KIND.match(text):
            kind, last = prefix + KINDS[word.group(1)], ""
            text = text[word.end() :]
        if number := re.match(rf"\(({NUMBER})\)", text):
            here, kind = number.group(1), "Equation"
        elif number := re.match(rf"({NUMBER}|[A-Z])(?!\w|\.\d|-[a-z])", text):
            here = number.group(1)
            if re.fullmatch("[A-Z]", here) and kind != "Appendix":
                return
        else:
            return
        if not kind:
            return  # a bare number does not say of what
        for item in _span(last, here) if _SPAN.match(join) and last else [here]:
            yield f"{kind} {item}"
        last, text = here, text[number.end() :]
        following = re.match(rf"({_JOIN})(?=\(?{NUMBER}|{_KIND.pattern})", text)
        if following is None:
            return
        join, text = following.group(1), text[following.end() :]


def _span(first: str, last: str) -> list[str]:
    """Numbers after the first up to the last of a range, as 8.2 and 8.3 of 8.1-8.3."""
    (head, _, low), (other, _, high) = first.rpartition("."), last.rpartition(".")
    if head != other or not (low.isdigit() and high.isdigit()):
        return [last]
    dot = "." if head else ""
    return [f"{head}{dot}{i}" for i in range(int(low) + 1, int(high) + 1)]


def documented(root: Path) -> Iterator[tuple[Place, str]]:
    """Yield what has a docstring below a folder of Python files, with the docstring.

    Parameters
    ----------
    root : Path
        A source root, such as ``lib``, or a folder of tests.

    Yields
    ------
    tuple
        Place and docstring of each module, class and function.
    """
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield from _documented(ast.parse(path.read_text(encoding="utf-8")), module, path)


def _documented(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str, path: Path
) -> Iterator[tuple[Place, str]]:
    text = ast.get_docstring(node, clean=False)
    if text:
        yield Place(name, path, getattr(node, "lineno", 1)), text
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(child, f"{name}.{child.name}", path)


def index(registry: Registry, *, library: Path, tests: Path) -> dict[Reference, Statement]:
    """Collect what the project has of each numbered statement.

    Parameters
    ----------
    registry : Registry
        Its claims, and the keys of the sources that are looked for.
    library, tests : Path
        Folders of Python files.

    Returns
    -------
    dict
        By reference: first those of the registry in its order, then what docstrings cite
        beside them.
    """
    keys = dict.fromkeys([*registry.sources, *(claim.source for claim in registry)])
    known: dict[str, list[str]] = {key: [] for key in keys}
    found: dict[Reference, Statement] = {}

    def of(reference: Reference) -> Statement:
        return found.setdefault(reference, Statement(reference))

    for claim in registry:
        reference = Reference(claim.source, statement_of(claim.number))
        known[claim.source].append(reference.number)
        of(reference).claims.append(claim)
    for place, text in documented(library):
        if place.name.partition(".")[0] == __name__.partition(".")[0]:
            continue  # this package belongs to no source; its examples cite some
        for reference in references(text, known):
            of(reference).functions.append(place)
    for place, text in documented(tests):
        if place.name.rpartition(".")[2].startswith("test_"):
            for reference in references(text, known):
                of(reference).tests.append(place)
    return found


def search(query: str, statements: Mapping[Reference, Statement]) -> list[Statement]:
    """Find statements, by number or by words.

    Parameters
    ----------
    query : str
        Such as ``BGJ Theorem 2.2``, ``Theorem 2.2``, ``(3.3)``, ``2.2``, ``delta_NN`` or
        ``grokking``.
    statements : mapping
        Of :func:`index`.

    Returns
    -------
    list of Statement
        Those whose number is asked for; if there are none, those with a claim, a chapter or a
        function in which all the words occur: first those that have the words among their
        `terms`, then those of which they are the number or that define them, then mere mentions.

    Examples
    --------
    >>> from claimbook.statements import Reference, Statement, search
    >>> search("Lemma 1", {Reference("A", "Lemma 1"): Statement(Reference("A", "Lemma 1"))})[0]
    Statement(reference=Reference(source='A', number='Lemma 1'), claims=[], functions=[], tests=[])
    """
    every = list(statements.values())
    sources = {item.reference.source for item in every}
    key, _, rest = query.strip().partition(" ")
    source, wanted = (key, rest) if key in sources and rest else (None, query.strip())
    equation = re.fullmatch(rf"\(({NUMBER})\)", wanted)
    wanted = f"Equation {equation.group(1)}" if equation else wanted
    mine = [item for item in every if source in (None, item.reference.source)]
    exact = [
        item
        for item in mine
        if wanted.casefold()
        in (
            (number := item.reference.number.casefold()),
            number.rpartition(" ")[2],
            *(claim.id.casefold() for claim in item.claims),
        )
    ]
    words = plain(wanted).split()
    found = [item for item in mine if _mentions(item, words)]
    return exact or sorted(found, key=lambda item: _distance(item, words))


def _mentions(statement: Statement, words: Sequence[str]) -> bool:
    texts = [
        statement.reference.number,
        *(f"{claim.id} {claim.statement} {claim.chapter}" for claim in statement.claims),
        *(term for claim in statement.claims for term in claim.terms),
        *(place.name for place in statement.functions),
    ]
    return any(_has(text, words) for text in texts)


def _has(text: str, words: Iterable[str]) -> bool:
    return all(word in plain(text) for word in words)


#: What follows a name where a statement says what it is.
_DEFINES = r"\s*(:?=|is the\b|is defined\b|is called\b|denotes\b)"


def _distance(statement: Statement, words: Sequence[str]) -> int:
    """Say how far a statement is from a definition of some words: 0 to 3."""
    claims = statement.claims
    if any(_has(term, words) for claim in claims for term in claim.terms):
        return 0
    numbers = [statement.reference.number, *(claim.number for claim in claims)]
    if any(_has(number, words) for number in numbers):
        return 1
    defined = re.compile(rf"(?<!\w){re.escape(' '.join(words))}{_DEFINES}")
    return 2 if any(defined.search(plain(claim.statement)) for claim in claims) else 3


def plain(text: str) -> str:
    r"""Return a text in small letters without the signs of TeX.

    Examples
    --------
    >>> from claimbook.statements import plain
    >>> plain(r"At $\delta_{NN}$ the"), plain("delta_NN")
    ('at delta_nn the', 'delta_nn')
    """
    return re.sub(r"[\\{}$]", "", text).replace("δ", "delta").casefold()
