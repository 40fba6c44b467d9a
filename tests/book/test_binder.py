"""The launch buttons open a notebook that reads and runs, in the locked environment."""

from __future__ import annotations

import ast
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import nbformat
import pytest
import yaml

from claimbook.run import chapters, execute
from claimbook.site import links, stage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: What only the site knows how to show.
RAW = re.compile(r"\{[a-z:]+\}`")
#: The same on the screen, where what stands between backticks has become code.
ROLE = re.compile(r"\{[a-z:]+\}")
#: A chapter that is short, with numbers in its text, references and a figure with parameters.
SHORT = "catapults/one-example"
#: What JupyterLab and a run of that chapter may take.
PATIENCE = 300_000  # milliseconds


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
    for name in ("postBuild", "_config.yml"):
        shutil.copy(root / name, copy / name)
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
    assert packages == {"pip": ["-r requirements-lab.lock"]}
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
    lock = (root / "requirements-lab.lock").read_text(encoding="utf8")

    def dry_run(folder: Path, content: str) -> subprocess.CompletedProcess[str]:
        folder.mkdir()
        (folder / "requirements-lab.lock").write_text(content, encoding="utf8")
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
    assert {"numpy", "numba", "jupyterlab", "jupytext", "setuptools"} <= satisfied

    other = dry_run(tmp_path / "other", re.sub(r"^tqdm==", "tqdm==0.", lock, flags=re.MULTILINE))
    assert other.returncode != 0


def test_lock_of_rerunning_is_a_part_of_the_whole(root: Path) -> None:
    """Binder could have other versions than the book, or the tools of its tests."""

    def pinned(name: str) -> set[str]:
        text = (root / name).read_text(encoding="utf8")
        return set(re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE))

    part = pinned("requirements-lab.lock")
    assert part < pinned("requirements.lock")
    names = {line.partition("==")[0] for line in part}
    assert not names & {"pytest", "mypy", "ruff", "hypothesis", "playwright", "sphinx"}


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
    branch = stage.reference(root, config["repository"]["branch"])
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


def test_links_of_a_release_lead_to_its_tag(tmp_path: Path) -> None:
    """Readers of a release could rerun other chapters than they read."""

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True)

    assert stage.reference(tmp_path, "main") == "main"
    git("init", "--quiet")
    for message in ("first", "second"):
        assert stage.reference(tmp_path, "main") == "main"
        git("commit", "--quiet", "--allow-empty", "--message", message)
        git("tag", f"v-{message}")
        assert stage.reference(tmp_path, "main") == f"v-{message}"
        git("commit", "--quiet", "--allow-empty", "--message", "work")


def test_launched_notebooks_are_those_of_the_book(root: Path, site: Path, launched: Path) -> None:
    """The notebook that opens could be another one than the notebook that was run."""
    for chapter in chapters.chapters(root / "book"):
        opened = nbformat.read(launched / "book" / f"{chapter}.ipynb", as_version=4)
        nbformat.validate(opened)
        assert opened.metadata.kernelspec.name == "python3"
        texts = [cell for cell in opened.cells if "claimbook.run.lab import text" in cell.source]
        for cell in opened.cells:
            assert bool(cell.get("outputs")) == (cell in texts)
            # A text that waits for its numbers keeps the names that they go by.
            assert cell in texts or not RAW.search(cell.source)
            for output in cell.get("outputs", []):
                assert not RAW.search(output.data["text/markdown"])
        run = nbformat.read(site / "_sources" / "book" / f"{chapter}.ipynb", as_version=4)
        code = [
            cell.source.replace("from myst_nb import", "from claimbook.run.lab import")
            for cell in run.cells
            if cell.cell_type == "code"
            and "injected-parameters" not in cell.metadata.get("tags", [])
        ]
        kept = [cell for cell in opened.cells if cell.cell_type == "code" and cell not in texts]
        assert [cell.source for cell in kept] == code
        assert all(ast.parse(cell.source) for cell in texts)


def test_a_launched_notebook_runs(root: Path, launched: Path) -> None:
    """The notebook could lack its kernel or not find the library where it is opened.

    The first two code cells are run, the parameters and the imports, those of all chapters in one
    kernel that changes to the folder of each. The remaining ones are those of the build (see the
    previous test).
    """
    import nbclient

    together = nbformat.v4.new_notebook()
    for chapter in chapters.chapters(root / "book"):
        path = launched / "book" / f"{chapter}.ipynb"
        opened = nbformat.read(path, as_version=4)
        together.metadata.setdefault("kernelspec", opened.metadata.kernelspec)
        assert together.metadata.kernelspec == opened.metadata.kernelspec, chapter
        code = [
            cell.source
            for cell in opened.cells
            if cell.cell_type == "code" and "lab import text" not in cell.source
        ]
        sources = [f"import os; os.chdir({str(path.parent)!r})", *code[:2]]
        together.cells += map(nbformat.v4.new_code_cell, sources)
    client = nbclient.NotebookClient(
        together, timeout=120, resources={"metadata": {"path": str(launched / "book")}}
    )
    client.execute(env={**os.environ, **execute.environment(root / "_build")})


@pytest.fixture(scope="module")
def lab(root: Path, launched: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a JupyterLab that serves the launched repository."""
    if not find_spec("jupyterlab"):
        pytest.skip("JupyterLab is not installed here; the locked environment has it")
    home = tmp_path_factory.mktemp("lab")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {f"JUPYTER_{name}_DIR": str(home) for name in ("DATA", "RUNTIME")}
    variables["JUPYTER_CONFIG_DIR"] = str(launched.parent / ".jupyter")  # where postBuild writes
    address = f"http://127.0.0.1:{port}"
    options = [f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="]
    options += [f"--LabApp.workspaces_dir={home}", f"--LabApp.user_settings_dir={home}"]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", *options],
            cwd=launched,
            env={**os.environ, **execute.environment(root / "_build"), **variables},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            for _ in range(120):
                try:
                    urlopen(f"{address}/api", timeout=10).close()
                    break
                except OSError:
                    assert server.poll() is None, (home / "log").read_text(encoding="utf8")
                    time.sleep(0.5)
            yield address
        finally:
            server.terminate()
            server.wait(timeout=60)


@dataclass(frozen=True)
class Notebook:
    """A notebook that JupyterLab shows."""

    page: Page

    def run(self) -> None:
        """Choose *Run All Cells*, and wait for the last one."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_text("Run All Cells", exact=True).click()
        prompts = "[...document.querySelectorAll('.jp-InputPrompt')]"
        self.page.wait_for_function(f"{prompts}.some(prompt => prompt.innerText.includes('*'))")
        self.page.wait_for_function(f"{prompts}.every(prompt => !prompt.innerText.includes('*'))")

    def screens(self) -> Iterator[tuple[str, list[str]]]:
        """Yield what a reader sees who scrolls to the end: all words, and those of the texts."""
        panel = self.page.locator(".jp-WindowedPanel-outer")
        panel.locator(".jp-RenderedMarkdown").first.wait_for()
        for place in range(0, panel.evaluate("panel => panel.scrollHeight"), 700):
            panel.evaluate("(panel, place) => panel.scrollTo(0, place)", place)
            yield panel.inner_text(), panel.locator(".jp-RenderedMarkdown").all_inner_texts()

    def roles(self) -> set[str]:
        """Roles that stand raw in the texts on the screen."""
        texts = [text for _, texts in self.screens() for text in texts]
        return {role for text in texts for role in ROLE.findall(text)}


@pytest.fixture
def opened(lab: str, browser: Browser) -> Iterator[Callable[[str], Notebook]]:
    """Opens a notebook in JupyterLab."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(viewport={"width": 1280, "height": 900})

    def show(name: str) -> Notebook:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{lab}/lab/tree/book/{name}.ipynb?reset")  # no notebook opened before
        return Notebook(page)

    yield show
    context.close()


@pytest.mark.nightly
def test_a_chapter_in_jupyterlab(opened: Callable[[str], Notebook]) -> None:
    """Markup, or a text without its numbers, could be on the screen where the site has numbers."""
    from playwright.sync_api import expect

    notebook = opened(SHORT)
    page = notebook.page
    text = page.locator(".jp-RenderedMarkdown", has_text="the kernel lies outside")
    expect(text).to_have_text(re.compile(r"probability …; the bound\s+is …"))
    notebook.run()
    expect(text).to_have_text(re.compile(r"probability 0\.\d+; the bound\s+is 0\.\d+"))
    found = re.search(r"probability 0\.\d+", text.inner_text())
    assert found
    page.locator(".cm-line", has_text="seed = 2024").click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.type("seed = 1")
    notebook.run()
    expect(text).not_to_contain_text(found[0])
    seen = [words for words, _ in notebook.screens()]
    assert any("misprint, corrected" in words for words in seen)
    assert not [words for words in seen if "Traceback" in words]
    assert notebook.roles() == set()
    moves_by_the_keyboard(notebook)


def moves_by_the_keyboard(notebook: Notebook) -> None:
    """Move the slider of the first figure that has one: its picture follows, and comes back.

    JupyterLab draws with its own Vega on a canvas, on which the reading in words stands too.
    """
    from playwright.sync_api import expect

    figure = notebook.page.locator(".vega-embed").first
    slider, value = figure.locator("input[type=range]"), figure.locator("input[type=range] + span")
    slider.scroll_into_view_if_needed()

    def picture() -> str:
        return str(figure.locator("canvas").evaluate("canvas => canvas.toDataURL()"))

    def wait_for(condition: str, known: str) -> None:
        notebook.page.wait_for_function(
            f"([box, known]) => box.querySelector('canvas').toDataURL() {condition} known",
            arg=[figure.element_handle(), known],
            timeout=30_000,
        )

    before, start = picture(), float(slider.input_value())
    step = float(slider.get_attribute("step") or 1)
    slider.focus()
    notebook.page.keyboard.press("Shift")
    notebook.page.wait_for_timeout(300)
    assert picture() == before
    moved = f"{start + step:g}"
    for there, back in (("ArrowRight", "ArrowLeft"), ("ArrowUp", "ArrowDown")):
        notebook.page.keyboard.press(there)
        expect(slider).to_have_value(moved, timeout=30_000)
        expect(value).to_have_text(moved)
        wait_for("!==", before)
        expect(slider).to_be_focused()
        notebook.page.keyboard.press(back)
        expect(slider).to_have_value(f"{start:g}", timeout=30_000)
        wait_for("===", before)


@pytest.mark.nightly
def test_raw_markup_in_jupyterlab_is_seen(
    launched: Path, opened: Callable[[str], Notebook]
) -> None:
    """The look at a chapter could miss the markup, of which JupyterLab shows a part as code."""
    raw = "The share is {glue:text}`share:.2f`, see {doc}`other` and {cite:t}`many`; $x_{a}^{b}$."
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(raw)])
    nbformat.write(content, launched / "book" / "raw.ipynb")
    assert opened("raw").roles() == {"{glue:text}", "{doc}", "{cite:t}"}
