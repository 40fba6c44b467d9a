"""What those meet who find the project, install it, cite it, or want to change it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

#: An action of GitHub's, pinned by commit, with the version behind it.
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


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
