"""The number of workers must not show in a claim or a figure, in the last bit of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import pytest

from claimbook import MIME

if TYPE_CHECKING:
    from conftest import Toy

#: The quickest of those that share their work out. `make repeat` takes them all.
CHAPTER = "lazy-training/kernels"


def found(notebook: dict[str, Any]) -> dict[str, Any]:
    """Claims without their times, and figures, of an executed chapter."""
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
    data = [(out.get("metadata", {}), out.get("data", {})) for out in outputs]
    claims = {
        each[MIME]["id"]: {key: value for key, value in each[MIME].items() if key != "seconds"}
        for _, each in data
        if MIME in each
    }
    figures = {
        meta["claimbook"]["figure"]: (each["image/png"], each.get("text/html"))
        for meta, each in data
        if "figure" in meta.get("claimbook", {})
    }
    assert claims
    assert figures
    return claims | figures


@pytest.mark.nightly
@pytest.mark.skipif(joblib.cpu_count() < 2, reason="one core makes one worker")
def test_other_workers_find_the_same(root: Path, site: Path, tmp_path: Path) -> None:
    """Threads that share a stream, or sums in the order of arrival, would differ."""
    built = json.loads((site.parent / "notebooks" / f"{CHAPTER}.ipynb").read_text(encoding="utf8"))
    made = built["metadata"]["claimbook"]
    workers = 2 if made["workers"] == 1 else 1
    target = tmp_path / "again.ipynb"
    options = {"profile": made["profile"], "seed": made["seed"], "output": target}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "claimbook.run.execute", f"book/{CHAPTER}.md"),
            *(f"--{name}={value}" for name, value in options.items()),
            f"--build={site.parent.parent}",
        ],
        cwd=root,
        env={
            **os.environ,
            "LOKY_MAX_CPU_COUNT": str(workers),
            "NUMBA_NUM_THREADS": str(workers),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    again = json.loads(target.read_text(encoding="utf8"))
    assert again["metadata"]["claimbook"]["workers"] == workers
    first, second = found(built), found(again)
    assert [key for key in first | second if first.get(key) != second.get(key)] == []


def test_make_repeat_names_what_depends_on_the_workers(toy: Toy) -> None:
    """A claim that passes either way, with other digits, is what the comparison is for."""
    toy.write(
        "lib/toy/second.py",
        "import joblib\ndef answer():\n    return 42 + 1e-13 * joblib.cpu_count()\n",
    )
    done = toy.make("-j2", "repeat", "CORES=2")
    assert done.returncode != 0
    assert "1 differences between" in done.stderr
    assert "OWN-two (part/two): evidence[0].observed is 42.0" in done.stdout
    assert "OWN-one (part/one)" not in done.stdout
