"""What those meet who find the project, install it, cite it, or want to change it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

#: An action of GitHub's, pinned by commit, with the version behind it.
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    """The table that describes the package."""
    text = (root / "pyproject.toml").read_text(encoding="utf8")
    return dict(tomllib.loads(text)["project"])


@pytest.fixture(scope="module")
def citation(root: Path) -> dict[str, Any]:
    """How the project is cited."""
    return dict(yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf8")))


def test_names_and_addresses_agree(
    root: Path, project: dict[str, Any], citation: dict[str, Any]
) -> None:
    """Version, licence or repository could differ between the files that state them."""
    archive = json.loads((root / ".zenodo.json").read_text(encoding="utf8"))
    changes = (root / "CHANGELOG.md").read_text(encoding="utf8")
    newest = re.search(r"^## \[(.*?)\]", changes, re.MULTILINE)
    assert newest is not None
    versions = {project["version"], str(citation["version"]), archive["version"], newest.group(1)}
    assert len(versions) == 1
    assert project["license"] == citation["license"] == archive["license"] == "BSD-3-Clause"
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf8"))
    check = yaml.safe_load((root / "codecheck.yml").read_text(encoding="utf8"))
    repository = config["repository"]["url"]
    assert repository == citation["repository-code"] == check["repository"]
    assert repository == project["urls"]["Repository"]
    places = [*root.glob("*.md"), root / ".github" / "ISSUE_TEMPLATE" / "config.yml"]
    text = "\n".join(place.read_text(encoding="utf8") for place in places)
    assert set(re.findall(r"https://github\.com/[\w.-]+/[\w-]+", text)) == {repository}


def test_readme_launches_the_version_it_is_of(root: Path, project: dict[str, Any]) -> None:
    """Readers of a release could rerun a branch that changes under them, or an older release."""
    readme = (root / "README.md").read_text(encoding="utf8")
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf8"))
    hub = config["launch_buttons"]["binderhub_url"]
    owner = config["repository"]["url"].removeprefix("https://github.com/")
    # The buttons of the site are made in the same way, see tests/book/test_binder.py.
    expected = f"{hub}/v2/gh/{owner}/v{project['version']}"
    assert re.findall(rf"{re.escape(hub)}[^)\s]*", readme) == [expected]


def test_archive_says_what_the_citation_says(root: Path, citation: dict[str, Any]) -> None:
    """A reader of the archive could be told of other authors, or of another project."""
    archive = json.loads((root / ".zenodo.json").read_text(encoding="utf8"))
    assert archive["title"] == citation["title"]
    assert archive["description"] == citation["abstract"]
    assert archive["keywords"] == citation["keywords"]
    assert archive["upload_type"] == citation["type"] == "software"
    creators = [creator["name"] for creator in archive["creators"]]
    assert creators == [author["name"] for author in citation["authors"]]
    addresses = [work["url"] for work in citation["references"] if "url" in work]
    assert [work["identifier"] for work in archive["related_identifiers"]] == addresses


def test_a_check_of_the_code_knows_the_papers_of_the_citation(
    root: Path, citation: dict[str, Any]
) -> None:
    """A codechecker could be told of some of the sources alone, or of other authors."""
    check = yaml.safe_load((root / "codecheck.yml").read_text(encoding="utf8"))
    papers = [check["paper"], *check["traindyn_other_papers"]]
    assert [
        (paper["title"], [author["name"] for author in paper["authors"]], paper["reference"])
        for paper in papers
    ] == [
        (
            work["title"],
            [f"{author['given-names']} {author['family-names']}" for author in work["authors"]],
            work.get("url", work.get("notes")),
        )
        for work in citation["references"]
    ]


def test_guides_name_what_exists(root: Path) -> None:
    """A guide could send people to a file, a target or a claim that is not there."""
    guides = (
        "CONTRIBUTING.md",
        "RELEASING.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "CHANGELOG.md",
    )
    text = "\n".join((root / name).read_text(encoding="utf8") for name in guides)
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    code = "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])
    places = {
        word
        for word in re.findall(r"[^\s\"'(),=]+", code)
        if re.search(r"/|\.(cff|json|lock|md|toml|yml)$", word) and "<" not in word
    }
    made = {place for place in places if place.startswith(("_build/", ".venv/"))}
    assert len(places - made) >= 20
    for place in sorted(places - made):
        assert (root / place).exists(), place
    for chapter in re.findall(r"_build/quick/notebooks/(\S+)\.ipynb", code):
        assert (root / "book" / f"{chapter}.md").is_file(), chapter
    makefile = (root / "Makefile").read_text(encoding="utf8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert {"book", "test"} <= set(re.findall(r"^make ([a-z]+)", code, re.MULTILINE)) <= targets
    assert set(re.findall(r"`make (?:-\S+ )?([a-z]+)", text)) <= targets
    claims = (root / "book" / "claims.toml").read_text(encoding="utf8")
    mutations = (root / "tests" / "mutation" / "mutations.toml").read_text(encoding="utf8")
    (claim,) = re.findall(r"traindyn verify (\S+) --seed", code)
    (mutation,) = re.findall(r"mutate\.py (\S+)", code)
    assert f'id = "{claim}"' in claims and f'name = "{mutation}"' in mutations


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


# ------------------------------------------------------------------------- the workflows


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


def test_readme_names_what_is_tested(root: Path) -> None:
    """Readers could rely on a system or on a Python that is never tried."""
    readme = " ".join((root / "README.md").read_text(encoding="utf8").split())
    jobs = yaml.safe_load((root / ".github/workflows/test.yml").read_text(encoding="utf8"))["jobs"]
    assert jobs["test"]["runs-on"] == "ubuntu-latest"
    versions = " and ".join(jobs["test"]["strategy"]["matrix"]["python"])
    assert f"does it on Linux, with Python {versions}." in readme


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


def test_pages_are_published_from_tags_alone(root: Path) -> None:
    """Started by hand on a branch, it would publish links to what changes under its readers."""
    content = (root / ".github/workflows/publish.yml").read_text(encoding="utf8")
    jobs = yaml.safe_load(content)["jobs"]
    first = jobs["build"]["steps"][0]
    assert first["if"] == "github.ref_type != 'tag'"
    branch = os.environ | {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main"}
    done = subprocess.run(
        ["bash", "-e", "-c", first["run"]], env=branch, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "must be built from a tag, got branch main" in done.stdout
    assert jobs["deploy"]["needs"] == "build"


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.citation-file-format", "CITATION.cff"),
        ("vendor.dependabot", ".github/dependabot.yml"),
        ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
    ],
)
def test_forms_are_valid(root: Path, schema: str, pattern: str) -> None:
    """GitHub could refuse a form, or how to cite, and nobody would see it."""
    files = sorted(map(str, root.glob(pattern)))
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_form_of_a_wrong_verdict_lists_the_sources(root: Path) -> None:
    """A source could be missing from the form."""
    form = yaml.safe_load((root / ".github/ISSUE_TEMPLATE/wrong-verdict.yml").read_text("utf8"))
    (source,) = (field for field in form["body"] if field.get("id") == "source")
    claims = tomllib.loads((root / "book" / "claims.toml").read_text(encoding="utf8"))
    assert source["attributes"]["options"] == list(claims["sources"])
