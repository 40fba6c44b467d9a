"""The page of measured speed and memory, made from the committed benchmark results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from traindyn.ledger import page_parts as parts

#: The chapter that uses most what a group of measurements is about.
CHAPTERS = {
    "Attention": "attention/particles",
    "Catapults": "catapults/many-examples",
    "Double descent": "foundations/double-descent",
    "Effective dynamics": "effective-dynamics/theorem",
    "Hessian norms of deep networks": "lazy-training/linearity",
    "Kernels of wide networks": "lazy-training/tangent-kernel",
    "Mean-field theory and full-batch descent": "phase-transitions/mean-field",
    "SGD on the sphere, one step": "sample-complexity/information-exponent",
    "SGD, one step": "alignment/training-dynamics",
    "Spectra along a run": "alignment/alignment",
    "Spectra of two layers": "alignment/xor-alignment",
    "Training with catapults": "catapults/sgd",
}


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
    for group, rows in groupby(data["rows"], key=lambda row: str(row["group"])):
        text += _table(group, list(rows))
    output.write_text("\n".join(text) + "\n", encoding="utf8")


def _table(group: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"## {group}", ""]
    if group in CHAPTERS:
        lines += [f"Used in {{doc}}`{CHAPTERS[group]}`.", ""]
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
