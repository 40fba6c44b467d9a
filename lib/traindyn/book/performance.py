"""The page of measured speed and memory, made from the committed benchmark results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any


def write_page(results: Path, output: Path) -> None:
    """Write the page as MyST text.

    Parameters
    ----------
    results : Path
        ``benchmarks/results.json``.
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
        "Measured side by side in one run, on a quiet machine, by `make benchmark`: the "
        "alternatives are what a user would otherwise write or install, at equal accuracy. "
        "The column *ratio* is the time of a row over ours; above one, ours is faster.",
        "",
        "```{list-table} Machine and versions",
        ":header-rows: 0",
        "",
    ]
    for key, value in data["environment"].items():
        text += [f"* - {key}", f"  - {value}"]
    text += ["```", ""]
    for group, rows in groupby(data["rows"], key=lambda row: str(row["group"])):
        text += _table(group, list(rows))
    output.write_text("\n".join(text) + "\n", encoding="utf8")


def _table(group: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"## {group}", "", "```{list-table}", ":header-rows: 1", ""]
    lines += ["* - what", "  - measured", "  - ratio", "  - accuracy, notes"]
    for row in rows:
        missing = {"name", "value", "unit", "accuracy"} - row.keys()
        if missing:
            raise ValueError(f"rows must have the fields {sorted(missing)}, got {dict(row)}")
        ratio = row.get("ratio")
        lines += [
            f"* - {row['name']}",
            f"  - {row['value']:.3g} {row['unit']}",
            f"  - {'' if ratio is None else format(ratio, '.3g')}",
            f"  - {row['accuracy']}",
        ]
    return [*lines, "```", ""]
