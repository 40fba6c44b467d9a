"""What the pages of a book that are written by hand say: questions, letters, words.

Besides the search page has to know what readers call a thing, and where the pages lie that they ask
for: a file of the book, `QUESTIONS`, says so. It has `synonyms`, lists of phrases that mean the
same, and a table ``page`` for each place that is found by words of its own: `place`, its page and
anchor, `title`, `text`, and `words`, the phrases that readers type.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from claimbook.pages.plain import plain

#: A page of a book in which letters are explained: tables and lists of definitions.
NOTATION = "notation"
#: A page of a book in which words are explained: a glossary of Sphinx.
GLOSSARY = "glossary"
#: The file of what readers ask in other words.
QUESTIONS = "search.toml"

#: The heading of a chapter, and under it what it asks: its first section, or its first paragraph.
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_ASKED = re.compile(r"^## The question\n+((?:.+\n)+)", re.MULTILINE)


def title(page: Path) -> str:
    """Return the first heading of a page as plain text; empty without a page or a heading.

    Parameters
    ----------
    page : Path
        MyST text.
    """
    found = _TITLE.search(page.read_text(encoding="utf8")) if page.is_file() else None
    return plain(found[1]) if found else ""


def question(page: Path) -> str:
    """Return the first paragraph on the question of a chapter as plain text.

    Parameters
    ----------
    page : Path
        MyST text; empty if it asks none.
    """
    found = _ASKED.search(page.read_text(encoding="utf8") + "\n")
    return plain(found[1]) if found else ""


def questions(book: Path) -> Mapping[str, Any]:
    """Return what readers ask in other words, see :mod:`claimbook.pages.contents`.

    Parameters
    ----------
    book : Path
        Folder of the sources; without the file nothing is known.

    Returns
    -------
    mapping
        `synonyms` and `page`.
    """
    file = book / QUESTIONS
    return {"synonyms": [], "page": []} | (
        tomllib.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
    )


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
        letters = unicodedata.normalize("NFKD", found[1]).encode("ascii", "ignore").decode()
        place = "term-" + re.sub(r"[^a-zA-Z0-9._]+", "-", letters).strip("-")
        yield {"name": plain(found[1]), "text": plain(" ".join(found[2].split())), "place": place}


def _slug(heading: str) -> str:
    """Name that the site gives to the place of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _cells(row: str) -> list[str]:
    return [cell.replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]
