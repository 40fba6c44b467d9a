"""The index of the search page: claims with their reasons and checks, figures, and pages.

The search of Sphinx covers the words of pages. It finds no number of a formula and no letter, and
leads to the top of a page. So the site has an index of its own, a script that needs no server and
that only the search page loads, and ``static/search.js`` looks in it for what a reader asks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from claimbook.pages import contents, parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.pages.plain import plain
from claimbook.render import MARKS, WORDS
from claimbook.run import chapters
from claimbook.statements import Statement

#: The file, from the folder of the pages.
FILE = Path("_static", "claims-index.js")

_WORD = re.compile(r"[^\W\d_][\w-]{2,}")


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
        Folder of the sources, for what :mod:`claimbook.pages.contents` reads.

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
        `verdicts`, `sources`, `chapters`, `claims`, `figures`, `pages`, `letters`, `terms`,
        `synonyms`.
    """
    functions = {
        claim.id: [place.name for place in item.functions if "._" not in f".{place.name}"]
        for item in statements
        for claim in item.claims
    }
    names = dict.fromkeys([claim["chapter"] for claim in ledger["claims"]])
    names.update(dict.fromkeys(figure["chapter"] for figure in ledger["figures"]))
    asked = contents.questions(book) if book else {"page": [], "synonyms": []}
    return {
        "verdicts": {name: f"{MARKS[name]} {WORDS[name]}" for name in MARKS},
        "sources": list(dict.fromkeys(claim["source"] for claim in ledger["claims"])),
        "chapters": {
            name: (contents.title(book / f"{name}.md") if book else "") or name for name in names
        },
        "claims": [_claim(claim, functions.get(claim["id"], [])) for claim in ledger["claims"]],
        "figures": list(_figures(ledger)),
        "pages": [*(_chapters(book) if book else ()), *asked["page"]],
        "letters": list(contents.letters(book / f"{contents.NOTATION}.md") if book else ()),
        "terms": list(contents.terms(book / f"{contents.GLOSSARY}.md") if book else ()),
        "synonyms": asked["synonyms"],
    }


def _claim(claim: Entry, functions: list[str]) -> dict[str, Any]:
    """Return what is known of a claim; of what was tested the words that it does not say before."""
    said = {"text": plain(claim["statement"]), "reason": plain(claim.get("reason", ""))}
    known = set(_WORD.findall(" ".join(said.values()).lower()))
    tested = dict.fromkeys(_WORD.findall(plain(claim.get("tested", "")).lower()))
    return {
        **{key: claim[key] for key in ("id", "source", "number", "chapter", "verdict")},
        **said,
        "tested": " ".join(word for word in tested if word not in known),
        "place": parts.anchor("claim", claim["id"]),
        "terms": claim.get("terms", []),
        "functions": functions,
    }


def _figures(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield the figures with their captions, numbered as on their pages."""
    count = Counter[str]()
    for figure in ledger["figures"]:
        chapter = figure["chapter"]
        count[chapter] += 1
        yield {
            "chapter": chapter,
            "number": count[chapter],
            "text": figure["alt"],
            "place": parts.anchor("figure", figure["label"]),
        }


def _chapters(book: Path) -> Iterator[dict[str, Any]]:
    """Yield the pages that ask a question."""
    for name in (*chapters.chapters(book), *chapters.plain_pages(book)):
        page = book / f"{name}.md"
        if text := contents.question(page):
            yield {"place": name, "title": contents.title(page), "text": text, "words": []}
