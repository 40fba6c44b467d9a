"""The page of measured speed and memory, made from the committed benchmark results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from claimbook.pages import parts


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
    text = [
        "# Performance",
        "",
        "Measured side by side in one run of `make benchmark`, on a quiet machine: the one "
        "below, not that of {doc}`status`. The alternatives are what a user would otherwise "
        "write or install, at equal accuracy. The column *ratio* is the time of a row over ours; "
        "above one, ours is faster.",
        "",
        "```{list-table} Machine, date and versions",
        ":header-rows: 0",
        "",
    ]
    for key, value in data["environment"].items():
        text += [f"* - {key}", f"  - {value}"]
    text += ["```", "", parts.STYLE]
    chapters = data.get("chapters", {})
    for group, rows in groupby(data["rows"], key=lambda row: str(row["group"])):
        text += _table(group, list(rows), chapters.get(group))
    output.write_text("\n".join(text) + "\n", encoding="utf8")


def _table(group: str, rows: Sequence[Mapping[str, Any]], chapter: str | None) -> list[str]:
    lines = [f"## {group}", ""]
    if chapter:
        lines += [f"Used in {{doc}}`{chapter}`.", ""]
    heads = ("what", "measured", "ratio", "accuracy, notes")
    return [*lines, parts.table("td-table td-measured", heads, map(_row, rows)), ""]


def _row(row: Mapping[str, Any]) -> str:
    missing = {"name", "value", "unit", "accuracy"} - row.keys()
    if missing:
        raise ValueError(f"rows must have the fields {sorted(missing)}, got {dict(row)}")
    ratio = row.get("ratio")
    compared = "<td></td>" if ratio is None else f'<td data-label="ratio">{ratio:.3g}</td>'
    return (
        f"<tr><td>{escape(row['name'])}</td><td>{row['value']:.3g} {escape(row['unit'])}</td>"
        f"{compared}<td>{escape(row['accuracy'])}</td></tr>"
    )
