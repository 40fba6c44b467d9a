"""A figure of a chapter on another page.

A page that is not run can show a figure of a chapter: where it stands, the page has a line

    <!-- figure: catapults/one-example moving-catapult -->

with the name of the chapter and the label of the figure. When the site is staged, what the page of
the chapter shows takes the place of this line, so that both pages have the same figure.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from claimbook.registry import ClaimError

_PLACE = re.compile(r"^<!-- figure: (\S+) (\S+) -->$", re.MULTILINE)
#: What the page of a chapter puts around a figure: number and caption, which are its own.
_FRAME = re.compile(r"<figure\b[^>]*>\n(.*?)\n<figcaption>.*</figcaption>\n</figure>", re.DOTALL)
_ALT = re.compile(r'alt="Figure \d+(?:, panel (\d+))?, described below"')


def put(name: str, book: Path) -> None:
    """Put the figures that a staged page asks for in their places.

    Parameters
    ----------
    name : str
        The page, MyST text, written anew if it asks for one.
    book : Path
        Folder of the staged pages and chapters.

    Raises
    ------
    ClaimError
        If a chapter has no figure of that label.
    """
    page = book / f"{name}.md"
    text = page.read_text(encoding="utf8")
    filled = _PLACE.sub(lambda found: markup(name, book, found[1], found[2]), text)
    if filled != text:
        page.write_text(filled, encoding="utf8")


def markup(name: str, book: Path, chapter: str, label: str) -> str:
    """Return what a page shows of a figure of a chapter.

    Parameters
    ----------
    name : str
        The page.
    book : Path
        Folder of the staged pages and chapters.
    chapter : str
        Such as ``alignment/beyond``.
    label : str
        Of the figure.

    Returns
    -------
    str
        MyST text, without the number and caption that the chapter gives the figure.

    Raises
    ------
    ClaimError
        If there is no such chapter, or no figure of that label in it.
    """
    notebook = book / f"{chapter}.ipynb"
    try:
        content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise ClaimError(f"figure {label!r}: cannot read {notebook}: {error}") from error
    for cell in content["cells"]:
        for output in cell.get("outputs", []):
            entry = output.get("metadata", {}).get("claimbook", {})
            if entry.get("figure") == label:
                data = output["data"]
                text = "".join(data.get("text/markdown") or data["text/html"]).strip()
                return _moved(text, entry.get("alt", ""), _up(chapter), _up(name))
    raise ClaimError(f"{notebook} has no figure {label!r}")


def _up(page: str) -> str:
    """Way from a page to the folder of the site."""
    return "../" * (page.count("/") + 1)


def _moved(text: str, alt: str, before: str, after: str) -> str:
    """Take a figure out of its frame, describe it, and let its files be found."""
    found = _FRAME.search(text)
    text = (found[1] if found else text).replace(f'"{before}_static/', f'"{after}_static/')

    def described(match: re.Match[str]) -> str:
        panel = f" (panel {match[1]})" if match[1] else ""
        return f'alt="{escape(alt + panel)}"'

    return _ALT.sub(described, text)
