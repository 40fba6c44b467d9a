"""The page of benchmark results."""

import json

import pytest

from traindyn.book.performance import write_page

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
    assert "* - ours\n  - 3.96 µs\n  - 1\n  - exact" in text
    assert "* - theirs\n  - 98.4 µs\n  - 24.8\n" in text
    assert text.index("## SGD") < text.index("## memory")
    assert "* - cores\n  - 2" in text


def test_an_incomplete_row_is_refused(tmp_path):
    """A result without its accuracy means nothing."""
    row = {key: value for key, value in ROW.items() if key != "accuracy"}
    with pytest.raises(ValueError, match="accuracy"):
        page(tmp_path, [row])
