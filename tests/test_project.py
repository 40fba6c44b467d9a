"""What those meet who find the project, install it, cite it, or want to change it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

#: An action of GitHub's, pinned by commit, with the version behind it.
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def test_readme_lines_draw_its_picture(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first lines that somebody pastes could fail, or draw something else than is shown."""
    readme = (root / "README.md").read_text(encoding="utf8")
    (lines,) = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"\]\((\S+\.svg)\)", readme)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    found: dict[str, Any] = {}
    exec(lines, found)
    found["plt"].close(found["figure"])
    # Fluctuations of SGD are of order d^(-1/2), those of outliers too.
    seen, limit = found["run"].statistics, found["limit"].statistics
    np.testing.assert_allclose(seen.m, limit.m, atol=2 / np.sqrt(500))
    outliers = found["predicted"].outliers["hessian"][:, 0]
    measured = found["seen"].eigenvalues["hessian"][:, 0]
    np.testing.assert_allclose(measured[:, :3], outliers, rtol=2 / np.sqrt(500))
    drawn = Path(shown).name
    old, new = (marks(place) for place in (root / shown, tmp_path / drawn))
    assert old.shape == new.shape
    # Other versions of Matplotlib may lay the panels out a little differently.
    np.testing.assert_allclose(new, old, atol=3)


def marks(picture: Path) -> np.ndarray:
    """Where the marks of a picture stand, in points."""
    text = picture.read_text(encoding="utf8")
    found = re.findall(r'<use [^>]*\bx="([\d.]+)" y="([\d.]+)"', text)
    assert len(found) > 100
    return np.array(found, dtype=float)


def test_building_leaves_nothing_that_git_sees(root: Path, tmp_path: Path) -> None:
    """`pip install .` could leave folders in a checkout."""
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(root / name, tmp_path)
    shutil.copytree(
        root / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
    )
    before = set(tmp_path.iterdir())
    code = "from setuptools import build_meta; build_meta.build_wheel('_build')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert list((tmp_path / "_build").glob("traindyn-*.whl"))
    ignored = (tmp_path / ".gitignore").read_text(encoding="utf8").splitlines()
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"_build"}
    assert {"_build/", "*.egg-info/"} <= set(ignored)
    left = {path.name for path in (tmp_path / "lib").iterdir()}
    assert left == {"claimbook", "companion", "traindyn", "traindyn.egg-info"}


def workflows(root: Path) -> list[Path]:
    """All workflows."""
    return sorted((root / ".github" / "workflows").glob("*.yml"))


def test_actions_are_pinned(root: Path) -> None:
    """A tag can be moved to other code; the version behind a commit must be readable."""
    uses = [
        line.partition("uses:")[2].strip()
        for path in workflows(root)
        for line in path.read_text(encoding="utf8").splitlines()
        if "uses:" in line
    ]
    assert len(uses) >= 10
    assert [action for action in uses if not PINNED.fullmatch(action)] == []
    # One version of each, or an update would have been half made.
    assert len(set(uses)) == len({action.partition("@")[0] for action in uses})


def test_jobs_may_do_what_they_need(root: Path) -> None:
    """A job that runs code of the project or of its packages could publish or write."""
    rights = {}
    for path in workflows(root):
        content = yaml.safe_load(path.read_text(encoding="utf8"))
        assert content["permissions"] == {"contents": "read"}, path.name
        for name, job in content["jobs"].items():
            if "permissions" in job:
                rights[f"{path.stem}.{name}"] = job["permissions"]
                assert not any("checkout" in step.get("uses", "") for step in job["steps"])
            for step in job["steps"]:
                if "actions/checkout" in step.get("uses", ""):
                    assert step["with"]["persist-credentials"] is False, (path.name, name)
    assert rights == {
        "nightly.report": {"contents": "read", "issues": "write"},
        "publish.deploy": {"pages": "write", "id-token": "write"},
    }
