"""The launch buttons open a notebook that runs, in the locked environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest
import yaml

from claimbook.run import chapters, execute
from claimbook.site import links


@pytest.fixture(scope="module")
def environment(root: Path) -> dict[str, Any]:
    """Content of environment.yml."""
    content = yaml.safe_load((root / "environment.yml").read_text(encoding="utf8"))
    assert isinstance(content, dict)
    return content


@pytest.fixture(scope="module")
def launched(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository in which postBuild ran, as repo2docker runs it."""
    home = tmp_path_factory.mktemp("binder")
    copy = home / "repository"
    copy.mkdir()
    shutil.copytree(root / "book", copy / "book")
    shutil.copy(root / "postBuild", copy / "postBuild")
    # Everything is real but pip, which would re-install this very environment.
    tools = home / "tools"
    tools.mkdir()
    pip = tools / "pip"
    pip.write_text(f'#!/bin/sh\necho "$@" >> "{home}/pip.log"\n', encoding="utf8")
    pip.chmod(pip.stat().st_mode | stat.S_IXUSR)
    path = [str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]
    subprocess.run(
        [str(copy / "postBuild")],
        cwd=copy,
        env={**os.environ, "PATH": os.pathsep.join(path), "HOME": str(home)},
        check=True,
        capture_output=True,
        timeout=300,
    )
    return copy


def test_environment_is_the_lock_and_nothing_else(root: Path, environment: dict[str, Any]) -> None:
    """Conda could bring its own versions, or pip packages that are not in the lock."""
    python, pip, packages = environment["dependencies"]
    assert re.fullmatch(r"python=3\.\d+", python)
    assert pip == "pip"
    # repo2docker copies the whole repository before installing exactly when pip reads a file.
    assert packages == {"pip": ["-r requirements.lock"]}
    # Where these exist, repo2docker uses them instead of the files in the root.
    assert not (root / "binder").exists()
    assert not (root / ".binder").exists()
    assert not (root / "requirements.txt").exists()


def test_environment_installs_the_lock(
    root: Path, environment: dict[str, Any], tmp_path: Path
) -> None:
    """Read the way conda reads it, the file could ask pip for something else than the lock.

    Conda writes the pip section to a file next to environment.yml and gives it to pip. This
    interpreter runs in the locked environment: pip must find nothing to install, and must find
    something as soon as one version in the lock differs.
    """
    requirements = environment["dependencies"][-1]["pip"]
    lock = (root / "requirements.lock").read_text(encoding="utf8")

    def dry_run(folder: Path, content: str) -> subprocess.CompletedProcess[str]:
        folder.mkdir()
        (folder / "requirements.lock").write_text(content, encoding="utf8")
        (folder / "condaenv.requirements.txt").write_text("\n".join(requirements), encoding="utf8")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index"]
        command += ["--requirement", "condaenv.requirements.txt"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    same = dry_run(tmp_path / "same", lock)
    if "No matching distribution" in same.stderr and not (root / ".venv" / ".ready").exists():
        pytest.skip("the tests do not run in the locked environment; `make test` does")
    assert same.returncode == 0, same.stderr
    assert "Would install" not in same.stdout
    satisfied = set(re.findall(r"already satisfied: ([\w.-]+)==", same.stdout))
    assert {"numpy", "numba", "jupyter-book", "jupytext", "setuptools"} <= satisfied

    other = dry_run(tmp_path / "other", re.sub(r"^tqdm==", "tqdm==0.", lock, flags=re.MULTILINE))
    assert other.returncode != 0


def test_post_build_installs_the_package_only(launched: Path) -> None:
    """postBuild could pull other versions over the locked ones, or forget the package."""
    calls = (launched.parent / "pip.log").read_text(encoding="utf8").splitlines()
    assert len(calls) == 1
    assert calls[0].startswith("install ")
    assert {"--no-deps", "--no-build-isolation", "."} <= set(calls[0].split())


def test_every_launch_link_has_its_notebook(root: Path, site: Path, launched: Path) -> None:
    """A launch button could point at a file that Binder does not have."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf8"))
    owner = urlsplit(config["repository"]["url"]).path.strip("/")
    branch = config["repository"]["branch"]
    hub = config["launch_buttons"]["binderhub_url"]
    found = set()
    for path in site.rglob("*.html"):
        for link in links.read(path).links:
            if not link.startswith(hub):
                continue
            parts = urlsplit(link)
            assert parts.path == f"/v2/gh/{owner}/{branch}"
            (target,) = parse_qs(parts.query)["urlpath"]
            assert target.startswith("lab/tree/")
            found.add(target.removeprefix("lab/tree/"))
    assert found == {f"book/{chapter}.ipynb" for chapter in chapters.chapters(root / "book")}
    for target in found:
        assert (launched / target).is_file()


def test_launched_notebooks_are_those_of_the_book(root: Path, site: Path, launched: Path) -> None:
    """The notebook that opens could be another one than the notebook that was run."""
    for chapter in chapters.chapters(root / "book"):
        opened = nbformat.read(launched / "book" / f"{chapter}.ipynb", as_version=4)
        nbformat.validate(opened)
        assert opened.metadata.kernelspec.name == "python3"
        assert not any(cell.get("outputs") for cell in opened.cells)
        run = nbformat.read(site / "_sources" / "book" / f"{chapter}.ipynb", as_version=4)
        sources = [
            cell.source
            for cell in run.cells
            if "injected-parameters" not in cell.metadata.get("tags", [])
        ]
        assert [cell.source for cell in opened.cells] == sources


def test_a_launched_notebook_runs(root: Path, launched: Path, tmp_path: Path) -> None:
    """The notebook could lack its kernel or not find the library where it is opened.

    The first two code cells are run: the parameters and the imports. The remaining ones are
    those of the build (see the previous test).
    """
    import nbclient

    for chapter in chapters.chapters(root / "book"):
        path = launched / "book" / f"{chapter}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        notebook.cells = code[:2]
        client = nbclient.NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}
        )
        client.execute(env={**os.environ, **execute.environment(tmp_path)})


def test_text_notebooks_open_as_notebooks(launched: Path) -> None:
    """JupyterLab could open the sources as plain text."""
    files = list(launched.parent.glob(".jupyter/labconfig/*.json"))
    assert len(files) == 1
    settings = json.loads(files[0].read_text(encoding="utf8"))
    viewers = settings["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]
    assert viewers["markdown"] == viewers["myst"] == "Jupytext Notebook"
