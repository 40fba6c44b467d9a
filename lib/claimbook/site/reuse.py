"""A figure of a chapter on another page.

A page that is not run can show a figure of a chapter: where it stands, the page has a line

    <!-- figure: catapults/one-example moving-catapult -->

with the name of the chapter and the label of the figure. When the site is staged, the output of
the executed chapter takes the place of this line, so that both pages show the same figure.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from claimbook.registry import ClaimError

_PLACE = re.compile(r"^<!-- figure: (\S+) (\S+) -->$", re.MULTILINE)


def put(page: Path, notebooks: Path) -> bool:
    """Put the figures that a staged page asks for in their places.

    Parameters
    ----------
    page : Path
        MyST text; written anew if it asks for one.
    notebooks : Path
        Folder of executed chapters.

    Returns
    -------
    bool
        Whether it asks for one that readers can move.

    Raises
    ------
    ClaimError
        If a chapter has no figure of that label.
    """
    text = page.read_text(encoding="utf8")
    filled = _PLACE.sub(lambda found: markup(notebooks / f"{found[1]}.ipynb", found[2]), text)
    if filled != text:
        page.write_text(filled, encoding="utf8")
    return filled != text and "interactive-figure" in filled


def markup(notebook: Path, label: str) -> str:
    """Return what a page shows of a figure.

    Parameters
    ----------
    notebook : Path
        Executed chapter.
    label : str
        Of the figure.

    Returns
    -------
    str
        MyST text.

    Raises
    ------
    ClaimError
        If there is no such notebook, or no figure of that label in it.
    """
    try:
        content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise ClaimError(f"figure {label!r}: cannot read {notebook}: {error}") from error
    for cell in content["cells"]:
        for output in cell.get("outputs", []):
            if output.get("metadata", {}).get("claimbook", {}).get("figure") == label:
                data = output["data"]
                return "".join(data.get("text/markdown") or data["text/html"])
    raise ClaimError(f"{notebook} has no figure {label!r}")
