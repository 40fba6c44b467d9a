"""The index of statements: from a number in a source to its verdict, its code and its tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.render import verdict_word
from claimbook.statements import Place, Statement


def page(ledger: Ledger, statements: Iterable[Statement], *, tests: Path, address: str) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    statements : iterable of Statement
        Of :func:`claimbook.statements.index`; those without a claim are left out.
    tests : Path
        Folder of the tests.
    address : str
        Where the folder of the tests is published; empty if it is not.

    Returns
    -------
    str
    """
    entries = {claim["id"]: claim for claim in ledger["claims"]}
    chosen = [item for item in statements if item.claims]
    lines = [
        "# Index of statements\n",
        "Each numbered statement of the sources that this book takes up: the verdicts on its "
        "parts, the chapter, the functions whose documentation cites it and the tests that do. "
        "A statement without a function is checked by what stands in its chapter alone.\n",
        parts.STYLE,
    ]
    if not chosen:
        return "\n".join([*lines, "None.\n"])
    for source in dict.fromkeys(item.reference.source for item in chosen):
        mine = [item for item in chosen if item.reference.source == source]
        mine.sort(key=lambda item: parts.numerically(item.reference.number))
        rows = (_row(item, entries, tests, address) for item in mine)
        heads = ("Statement", "Verdicts", "Functions", "Tests")
        lines += [f"## {source}\n", parts.table("td-table", heads, rows)]
    return "\n".join(lines)


def _row(item: Statement, entries: dict[str, Entry], tests: Path, address: str) -> str:
    place = parts.anchor("statement", " ".join(item.reference))
    chapters = dict.fromkeys(claim.chapter for claim in item.claims)
    verdicts = (
        f"{verdict_word(entries[claim.id]['verdict'])} {parts.ledger_link(claim.id)}"
        for claim in item.claims
        if claim.id in entries
    )
    cells = (
        ("", [f"**{item.reference.number}**", *map(parts.chapter_link, chapters)]),
        ("Verdicts", verdicts),
        ("Functions", map(_function, item.functions)),
        ("Tests", (_test(test, tests, address) for test in item.tests)),
    )
    blocks = [f'<tr id="{place}">']
    for label, content in cells:
        named = f' data-label="{label}"' if label else ""
        blocks += [f"<td{named}>", "", *_lines(content), "</td>"]
    return "\n".join([*blocks, "</tr>"])


def _lines(items: Iterable[str]) -> Iterator[str]:
    """Yield paragraphs, or a dash if there are none."""
    found = list(items)
    for item in found or ["–"]:
        yield item
        yield ""


def _function(place: Place) -> str:
    """Link to the API reference; private names have no place there."""
    short = ".".join(place.name.split(".")[-2:])
    if any(part.startswith("_") for part in place.name.split(".")):
        return f"`{short}`"
    role = "mod" if place.line == 1 else "obj"
    return f"{{py:{role}}}`{short} <{place.name}>`"


def _test(place: Place, tests: Path, address: str) -> str:
    name = place.name.rpartition(".")[2].removeprefix("test_").replace("_", " ")
    if not address:
        return name
    return f"[{name}]({address}/{place.path.relative_to(tests).as_posix()}#L{place.line})"
