"""The pages of benchmark results and of where the time goes."""

import importlib.util
import json
from pathlib import Path

import pytest

from claimbook.pages.performance import write_breakdown, write_page
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


def breakdown():
    """The script behind ``make profile``."""
    path = ROOT / "benchmarks" / "breakdown.py"
    spec = importlib.util.spec_from_file_location("breakdown", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_samples_count_for_the_innermost_work_and_for_their_chapter():
    """Linear algebra inside a prediction is linear algebra; a worker counts for its chapter."""
    run = 'process 7:"python -m claimbook.run.execute book/sgd/one.md --seed 1"'
    kernel = 'process 8:"python -m ipykernel_launcher"'
    block = "block (traindyn/spectra/predict.py:10)"
    raw = "\n".join(
        f"{stack} {count}"
        for stack, count in (
            (f"{run};{kernel};{block};eigh (numpy/linalg/_linalg.py:5)", 30),
            (f"{run};{kernel};{block}", 10),
            (f"{run};{kernel};{block};compile (numba/core/dispatcher.py:5);_find (re.py:1)", 20),
            ('process 1:"pytest";test_a (tests/laws/test_mp.py:3);show (matplotlib/a.py:1)', 4),
            ('process 1:"make";text (textwrap.py:3)', 2),
            ('process 1:"make";wait (subprocess.py:3)', 50),
        )
    )
    assert breakdown().table(raw, rate=20) == {
        "sgd/one": {"linear algebra": 1.5, "theory": 0.5, "compilation": 1.0},
        "tests/laws": {"drawing": 0.2},
        "all others": {"other": 0.1},
    }


def test_the_page_of_seconds_adds_up(tmp_path):
    """The first row is the sum of the others, and the busiest chapter comes before the rest."""
    places = {"one": {"drawing": 3.0}, "two": {"drawing": 4.0, "theory": 60.0}}
    run = {"wall": 50.0, "processors": 72.0, "cores": 2, "date": "2026-01-01", "places": places}
    results = tmp_path / "breakdown.json"
    found = {"kinds": ["theory", "drawing"], "runs": {"the quick book": run}}
    results.write_text(json.dumps(found), encoding="utf8")
    write_breakdown(results, tmp_path / "breakdown.md")
    text = (tmp_path / "breakdown.md").read_text(encoding="utf8")
    row = '<th scope="row">{}</th><td>{}</td><td>{}</td><td>{}</td>'
    shown = [row.format("all", 67, 60, 7), row.format("two", 64, 60, 4), row.format("one", 3, 0, 3)]
    assert [text.index(each) for each in shown] == sorted(text.index(each) for each in shown)
    assert "used 1.2 minutes of one core" in text and "account for 1.1 of" in text
