"""Names of the sources in words: whose a statement is, and where its bibliography has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: What the entry of a source says in its note.
_KEY = re.compile(r"\bShort key (\w+)")


@dataclass(frozen=True)
class Source:
    """A source as its bibliography has it.

    Attributes
    ----------
    name : str
        Family names of its authors.
    entry : str
        Key of its entry.
    """

    name: str
    entry: str


def read(bibliographies: Iterable[Path]) -> dict[str, Source]:
    """Read the sources of a book.

    Parameters
    ----------
    bibliographies : iterable of Path
        BibTeX files. The note of a source gives the key that the registry has for it, as in
        ``note = {Short key MW}``.

    Returns
    -------
    dict
        By the key of the registry.
    """
    from pybtex.database import parse_file
    from pybtex.richtext import Text

    found = {}
    for path in bibliographies:
        for name, entry in parse_file(str(path)).entries.items():
            if key := _KEY.search(entry.fields.get("note", "")):
                people = entry.persons.get("author", [])
                families = [" ".join([*one.prelast_names, *one.last_names]) for one in people]
                if families:
                    names = [str(Text.from_latex(family)) for family in families]
                    found[key[1]] = Source(_listed(names), name)
    return found


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
