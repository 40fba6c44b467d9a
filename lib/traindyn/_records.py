"""Results that take hours, found once and kept in a module of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def rewrite(file: Path, template: Path, opening: str, entries: Iterable[str]) -> None:
    """Write a module whose last statement is a dictionary, whole or not at all.

    Parameters
    ----------
    file : Path
        What is written.
    template : Path
        Module whose text up to `opening` is taken over.
    opening : str
        Line with which the dictionary begins.
    entries : iterable of str
        Its lines.
    """
    head = template.read_text(encoding="utf-8").partition(opening)[0]
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_text("\n".join([head + opening, *entries, "}\n"]), encoding="utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
