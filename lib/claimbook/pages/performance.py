"""The pages of measured speed and of where the time goes, made from committed measurements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
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


def write_breakdown(results: Path, output: Path) -> None:
    """Write the page that says what a run of the book or of its tests spends its time on.

    Parameters
    ----------
    results : Path
        ``benchmarks/breakdown.json``: `kinds` of work, and under `runs` for each run `wall`
        seconds, those of all `processors` together, `cores`, `date` and `places`: sampled seconds
        by chapter or folder of tests and by kind.
    output : Path
        Page to write.
    """
    data = json.loads(results.read_text(encoding="utf8"))
    runs = [(name, run, *_busy(run["places"], data["kinds"])) for name, run in data["runs"].items()]
    output.write_text(render("breakdown", kinds=data["kinds"], runs=runs), encoding="utf8")


def _busy(places: dict[str, dict[str, float]], kinds: list[str]) -> tuple[list[list[str]], float]:
    """Rows of a table, the busiest place first, and the sum of all seconds."""
    total: Counter[str] = Counter()
    for found in places.values():
        total.update(found)
    busiest = sorted(places, key=lambda name: -sum(places[name].values()))
    tables: dict[str, Mapping[str, float]] = {
        "all": total,
        **{name: places[name] for name in busiest},
    }
    rows = [
        [name, f"{sum(found.values()):.0f}", *(f"{found.get(kind, 0):.0f}" for kind in kinds)]
        for name, found in tables.items()
    ]
    return rows, sum(total.values())
