"""The index of the claims for the search page: their numbers, letters and words.

The search of Sphinx covers the words of pages. It finds no number of a formula and no letter, and
leads to the top of a page. So the site has an index of the claims, a script that needs no server,
and ``static/search.js`` looks in it for what a reader asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from claimbook.pages import parts
from claimbook.pages.parts import Ledger
from claimbook.pages.plain import plain
from claimbook.render import MARKS, WORDS
from claimbook.statements import Statement

#: The file, from the folder of the pages.
FILE = Path("_static", "claims-index.js")
#: A page of a book in which letters are explained: tables and lists of definitions.
NOTATION = "notation"
#: A page of a book in which words are explained: a glossary of Sphinx.
GLOSSARY = "glossary"


def script(
    ledger: Ledger, statements: Iterable[Statement], *, folder: str, book: Path | None = None
) -> str:
    """Return the index as a script, which a page can load from a folder of files.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    statements : iterable of Statement
        Of :func:`claimbook.statements.index`: the functions that cite what is claimed.
    folder : str
        Address of the pages from the root of the site.
    book : Path, optional
        Folder of the sources, for the titles of chapters and the pages `NOTATION`
        and `GLOSSARY`.

    Returns
    -------
    str
    """
    content = index(ledger, statements, book)
    text = json.dumps({"folder": folder, **content}, ensure_ascii=False, indent=0)
    return f"window.claimsIndex = {text};\n"


def index(
    ledger: Ledger, statements: Iterable[Statement], book: Path | None = None
) -> dict[str, Any]:
    """Return the index, see :func:`script`.

    Returns
    -------
    dict
        `verdicts`, `sources`, `chapters`, `claims`, `letters`, `terms`.
    """
    functions = {
        claim.id: [place.name for place in item.functions if "._" not in f".{place.name}"]
        for item in statements
        for claim in item.claims
    }
    chapters = dict.fromkeys(claim["chapter"] for claim in ledger["claims"])
    return {
        "verdicts": {name: f"{MARKS[name]} {WORDS[name]}" for name in MARKS},
        "sources": list(dict.fromkeys(claim["source"] for claim in ledger["claims"])),
        "chapters": {name: _title(book, name) for name in chapters},
        "claims": [
            {
                **{key: claim[key] for key in ("id", "source", "number", "chapter", "verdict")},
                "text": plain(claim["statement"]),
                "place": parts.anchor("claim", claim["id"]),
                "terms": claim.get("terms", []),
                "functions": functions.get(claim["id"], []),
            }
            for claim in ledger["claims"]
        ],
        "letters": list(letters(book / f"{NOTATION}.md") if book else ()),
        "terms": list(terms(book / f"{GLOSSARY}.md") if book else ()),
    }


def _title(book: Path | None, chapter: str) -> str:
    """Return the first heading of a chapter, or its name."""
    path = book / f"{chapter}.md" if book else None
    if path and path.is_file():
        found = re.search(r"^# (.+)$", path.read_text(encoding="utf8"), re.MULTILINE)
        if found:
            return plain(found.group(1))
    return chapter


def letters(page: Path) -> Iterator[Mapping[str, str]]:
    """Yield what a page of notation explains.

    Parameters
    ----------
    page : Path
        MyST text with tables, the first column of which is a name, and lists of definitions; no
        such file explains nothing.

    Yields
    ------
    mapping
        `name`, `text`, and `place`, the heading above it.
    """
    if not page.is_file():
        return
    place, heads = "", list[str]()
    for block in re.split(r"\n{2,}|\n(?=[#|])", page.read_text(encoding="utf8")):
        if heading := re.match(r"#+ (.+)", block):
            place, heads = _slug(heading.group(1)), []
        elif block.startswith("|"):
            cells = [plain(cell.replace("<br>", ", ")) for cell in _cells(block)]
            if not heads:
                heads = cells
            elif any(cell.strip("-: ") for cell in cells):
                said = [
                    f"{cell} ({head})"
                    for head, cell in zip(heads[1:], cells[1:])
                    if cell not in ("", "–", "-")
                ]
                yield {"name": cells[0], "text": "; ".join(said), "place": place}
        elif found := re.match(r"(.+)\n: +(.+)", block, re.DOTALL):
            name, text = map(plain, found.groups())
            yield {"name": name, "text": text, "place": place}


def terms(page: Path) -> Iterator[Mapping[str, str]]:
    """Yield the words that a glossary explains.

    Parameters
    ----------
    page : Path
        MyST text with directives ``glossary``; no such file explains nothing.

    Yields
    ------
    mapping
        `name`, `text`, and `place`, the anchor that Sphinx gives to the word.
    """
    if not page.is_file():
        return
    blocks = re.findall(
        r"^```\{glossary\}\n(.*?)^```", page.read_text("utf8"), re.DOTALL | re.MULTILINE
    )
    for found in re.finditer(r"^(\S.*)\n((?:  .+\n?)+)", "\n".join(blocks), re.MULTILINE):
        place = "term-" + re.sub(r"[^a-zA-Z0-9]+", "-", found[1]).strip("-")
        yield {"name": plain(found[1]), "text": plain(" ".join(found[2].split())), "place": place}


def _slug(heading: str) -> str:
    """Name that the site gives to the place of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _cells(row: str) -> list[str]:
    return [cell.replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]
