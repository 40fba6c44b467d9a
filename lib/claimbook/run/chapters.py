"""Which files of a book folder are chapters, and which are plain pages."""

from __future__ import annotations

import re
from pathlib import Path

#: A MyST text notebook announces its kernel in the front matter; a plain page does not.
_KERNEL = re.compile(r"\A---\n(?:.*\n)*?kernelspec:", re.MULTILINE)


def is_chapter(source: Path) -> bool:
    """Return whether a markdown file is a text notebook.

    Parameters
    ----------
    source : Path
        A ``.md`` file.

    Returns
    -------
    bool
        True if the front matter names a kernel.
    """
    text = source.read_text(encoding="utf8")
    front_matter = text.split("\n---\n", 1)[0]
    return _KERNEL.match(front_matter) is not None


def chapters(book: Path) -> list[str]:
    """Names of the chapters of a book, such as ``alignment/training-dynamics``.

    Parameters
    ----------
    book : Path
        Folder searched recursively.

    Returns
    -------
    list of str
        Sorted; path relative to `book` without suffix.
    """
    return sorted(name(source, book) for source in book.rglob("*.md") if is_chapter(source))


def plain_pages(book: Path) -> list[str]:
    """Names of the pages of a book that are not run, in the form of :func:`chapters`."""
    return sorted(name(source, book) for source in book.rglob("*.md") if not is_chapter(source))


def name(source: Path, book: Path) -> str:
    """Name of a page: its path relative to the book, without suffix.

    Examples
    --------
    >>> from pathlib import Path
    >>> from claimbook.run.chapters import name
    >>> name(Path("book/alignment/beyond.md"), Path("book"))
    'alignment/beyond'
    """
    return source.relative_to(book).with_suffix("").as_posix()
