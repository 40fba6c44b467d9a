"""The page of benchmark results."""

import json
from pathlib import Path

import pytest

from claimbook.pages.performance import write_page
from claimbook.run import chapters

ROOT = Path(__file__).parents[2]
ROW = {"group": "SGD", "name": "ours", "value": 3.961, "unit": "µs", "accuracy": "exact"}


def page(tmp_path, rows):
    """Write the page of some rows and return its text."""
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"environment": {"cores": 2}, "rows": rows}), encoding="utf8")
    write_page(results, tmp_path / "performance.md")
    return (tmp_path / "performance.md").read_text(encoding="utf8")


def test_every_row_is_shown_in_its_group(tmp_path):
    """Numbers with units, the ratio where there is one, the machine they were measured on."""
    rows = [ROW | {"ratio": 1}, ROW | {"name": "theirs", "value": 98.4, "ratio": 24.84}]
    text = page(tmp_path, [*rows, ROW | {"group": "memory"}])
    row = '<tr><td>{}</td><td>{} µs</td><td data-label="ratio">{}</td><td>exact</td></tr>'
    assert row.format("ours", "3.96", "1") in text
    assert row.format("theirs", "98.4", "24.8") in text
    assert "<td>3.96 µs</td><td></td><td>exact</td>" in text
    assert text.index("## SGD") < text.index("## memory")
    assert "* - cores\n  - 2" in text


def test_an_incomplete_row_is_refused(tmp_path):
    """A result without its accuracy means nothing."""
    row = {key: value for key, value in ROW.items() if key != "accuracy"}
    with pytest.raises(ValueError, match="accuracy"):
        page(tmp_path, [row])


def test_groups_lead_to_chapters(tmp_path):
    """A group could be renamed, or its chapter moved, and the link be lost in silence."""
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf8"))
    assert set(results["chapters"].values()) <= set(chapters.chapters(ROOT / "book"))
    assert results["chapters"].keys() <= {row["group"] for row in results["rows"]}
    path = tmp_path / "results.json"
    found = {"environment": {}, "chapters": {"SGD": "part/one"}, "rows": [ROW]}
    path.write_text(json.dumps(found), encoding="utf8")
    write_page(path, tmp_path / "performance.md")
    assert "{doc}`part/one`" in (tmp_path / "performance.md").read_text(encoding="utf8")
    assert "{doc}`part" not in page(tmp_path, [ROW])
