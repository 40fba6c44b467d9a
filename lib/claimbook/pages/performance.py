"""The page of measured speed and memory, made from the committed benchmark results."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from claimbook.pages.templates import render

_FIELDS = {"group", "name", "value", "unit", "accuracy"}


def write_page(results: Path, output: Path) -> None:
    """Write the page as MyST text.

    Parameters
    ----------
    results : Path
        ``benchmarks/results.json``: `environment`, `rows`, and under `chapters` the chapter that
        uses most what a group of rows is about.
    output : Path
        Page to write.

    Raises
    ------
    ValueError
        If a row lacks a field.
    """
    data = json.loads(results.read_text(encoding="utf8"))
    for row in data["rows"]:
        if not row.keys() >= _FIELDS:
            raise ValueError(f"rows must have the fields {sorted(_FIELDS)}, got {row}")
    groups = groupby(data["rows"], key=lambda row: str(row["group"]))
    text = render(
        "performance",
        environment=data["environment"],
        groups=[(group, list(rows)) for group, rows in groups],
        chapters=data.get("chapters", {}),
    )
    output.write_text(text, encoding="utf8")
