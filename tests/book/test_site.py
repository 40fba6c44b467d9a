"""What the built site and the project around it must contain."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from itertools import chain, pairwise
from pathlib import Path

import nbformat
import pytest
import yaml

from claimbook import cli
from claimbook.report import PAGES
from claimbook.run import chapters, execute
from claimbook.site import stage


def check_jsonschema(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Validate a file against a schema that ships with the validator (no network)."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# ------------------------------------------------------------------------------ the site


def test_measurements_get_a_page(tmp_path: Path) -> None:
    """Measurements could be committed and shown nowhere, or their page be asked for too early."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "home.md").write_text("# Home\n", encoding="utf8")
    (tmp_path / "_toc.yml").write_text(
        "root: book/home\nchapters:\n" + "".join(f"  - file: book/{name}\n" for name in PAGES),
        encoding="utf8",
    )
    assert stage.expected(tmp_path) == ["book/home", *(f"book/{n}" for n in PAGES)]
    (tmp_path / "benchmarks").mkdir()
    for name, (results, _) in stage.MEASURED.items():
        (tmp_path / results).write_text("{}", encoding="utf8")
        with pytest.raises(stage.SiteError, match=f"does not list: .*book/{name}"):
            stage.expected(tmp_path)


def test_every_page_is_there_in_order(root: Path, site: Path) -> None:
    """A page could be missing, or previous and next not follow the table of contents."""
    toc = stage.expected(root)
    assert len(toc) > len(PAGES)
    for before, after in pairwise(toc):
        html = (site / f"{before}.html").read_text(encoding="utf8")
        following = re.search(r'<a class="right-next"\s+href="([^"]+)"', html)
        assert following is not None, before
        target = (site / before).parent / following.group(1)
        assert target.resolve() == (site / f"{after}.html").resolve()


def test_site_is_light(site: Path) -> None:
    """A page could weigh megabytes again, or the site more than a person sends by mail."""
    pages = {path: path.stat().st_size for path in site.rglob("*.html")}
    assert max(pages.values()) < 1_000_000, max(pages, key=lambda path: pages[path])
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 80_000_000


def test_equations_are_counted_on_their_page(site: Path) -> None:
    """A page could begin with equation thirteen, and a reference have another number than it."""
    numbered = 0
    for page in (site / "book").rglob("*.html"):
        text = page.read_text(encoding="utf8")
        found = re.findall(r'class="eqno">\((\d+)\)', text)
        assert found == [str(number) for number in range(1, len(found) + 1)], page
        referred = re.findall(r'href="#equation-[^"]*">\((\d+)\)</a>', text)
        assert set(referred) <= set(found), page
        numbered += len(found)
    assert numbered > 40


def test_executed_notebooks_can_be_downloaded(root: Path, site: Path) -> None:
    """The download of a chapter could lack outputs or the parameters it ran with."""
    for chapter in chapters.chapters(root / "book"):
        html = (site / "book" / f"{chapter}.html").read_text(encoding="utf8")
        assert re.search(r'href="[^"]*_sources/[^"]*\.ipynb"', html), chapter
        path = site / "_sources" / "book" / f"{chapter}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert all(cell.execution_count for cell in code if cell.source.strip())
        injected = [cell for cell in code if "injected-parameters" in cell.metadata.get("tags", [])]
        assert len(injected) == 1
        assert 'profile = "quick"' in injected[0].source
        text = path.read_text(encoding="utf8")
        assert str(root) not in text
        metadata = json.dumps(notebook.metadata)
        assert not any(f'"{name}"' in metadata for name in ("seconds", "workers", "memory_mib"))


def test_injected_parameters_are_shown_and_defaults_hidden(root: Path, site: Path) -> None:
    """The reader could see default parameters that were not the ones used, or both."""
    for chapter in chapters.chapters(root / "book"):
        html = (site / "book" / f"{chapter}.html").read_text(encoding="utf8")
        shown = re.sub(r"<[^>]+>", "", html)
        assert shown.count("# Parameters") == 1, chapter
        assert len(re.findall(r"^profile = ", shown, re.MULTILINE)) == 1, chapter


def test_search_index_knows_the_chapters(root: Path, site: Path) -> None:
    """Search could have no index, or one that lacks the chapters."""
    index = (site / "searchindex.js").read_text(encoding="utf8")
    for chapter in chapters.chapters(root / "book"):
        assert f"book/{chapter}" in index


def test_chapters_default_to_the_seed_of_the_makefile(root: Path) -> None:
    """A notebook opened by hand, or `traindyn verify`, could show other numbers than the book."""
    makefile = (root / "Makefile").read_text(encoding="utf8")
    seed = re.search(r"^SEED\s*\?= (\d+)$", makefile, re.MULTILINE)
    assert seed is not None
    assert int(seed.group(1)) == cli.SEED
    for chapter in chapters.chapters(root / "book"):
        notebook = execute.read(root / "book" / f"{chapter}.md")
        tagged = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
        values: dict[str, object] = {}
        exec(tagged[0].source, values)
        assert values["profile"] == "quick"
        assert values["seed"] == int(seed.group(1))


def test_status_names_what_ci_runs(root: Path, site: Path) -> None:
    """The page could tell of other versions, or other runs, than the workflows have."""
    html = (site / "book" / "status.html").read_text(encoding="utf8")
    workflows = root / ".github" / "workflows"
    test = yaml.safe_load((workflows / "test.yml").read_text(encoding="utf8"))
    versions = test["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert f"on Python\n{' and '.join(versions)}." in html
    nightly, publish = (
        (workflows / f"{name}.yml").read_text(encoding="utf8") for name in ("nightly", "publish")
    )
    assert "make -j2 book" in nightly and "date +%Y%m%d" in nightly
    assert "PROFILE=paper" in publish


# ------------------------------------------------------------------------------ the house


def test_workflows_are_valid(root: Path, tmp_path: Path) -> None:
    """A workflow could be refused by GitHub; the validator itself could accept anything."""
    workflows = sorted((root / ".github" / "workflows").glob("*.yml"))
    assert [path.stem for path in workflows] == ["nightly", "publish", "test"]
    for path in workflows:
        done = check_jsonschema("vendor.github-workflows", path)
        assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(workflows[0].read_text(encoding="utf8").replace("runs-on", "run-on"))
    assert check_jsonschema("vendor.github-workflows", wrong).returncode != 0


def test_citation_is_valid(root: Path) -> None:
    """CITATION.cff could be unreadable for those who cite."""
    done = check_jsonschema("vendor.citation-file-format", root / "CITATION.cff")
    assert done.returncode == 0, done.stdout


def test_codecheck_manifest_is_what_the_build_makes(root: Path) -> None:
    """codecheck.yml could promise files that no build writes."""
    check = yaml.safe_load((root / "codecheck.yml").read_text(encoding="utf8"))
    made = {f"_build/paper/html/{name}.html" for name in stage.expected(root)}
    made.add("_build/paper/ledger.json")
    assert {entry["file"] for entry in check["manifest"]} <= made


def test_readme_commands_exist(root: Path) -> None:
    """README.md could name a target, a setting or a file that does not exist."""
    readme = (root / "README.md").read_text(encoding="utf8")
    makefile = (root / "Makefile").read_text(encoding="utf8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    settings = set(re.findall(r"^([A-Z]+)\s*\?=", makefile, re.MULTILINE))
    commands = re.findall(r"^make (.*)$", readme, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        for word in command.split():
            name, _, value = word.partition("=")
            assert word.startswith("-") or (name in settings if value else word in targets), word
    scripts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf8"))["project"]
    used = set(re.findall(r"^\.venv/bin/(\S+)", readme, re.MULTILINE))
    assert used == set(scripts["scripts"])


def test_ci_runs_the_readme_test_command_and_the_book(root: Path) -> None:
    """Continuous integration could test something else than what README.md says."""
    readme = (root / "README.md").read_text(encoding="utf8")
    section = readme.split("\n## Test\n", 1)[1]
    command = re.search(r"```sh\n(.+)\n```", section)
    assert command is not None
    script = (root / ".ci" / "run").read_text(encoding="utf8").splitlines()
    assert [line for line in script if line.startswith("make")] == [command.group(1), "make book"]


def test_lock_holds_the_project_and_no_address(root: Path) -> None:
    """The lock could miss a dependency or a hash, or name a host."""
    text = (root / "requirements.lock").read_text(encoding="utf8")
    assert not [lock.name for lock in root.glob("*.lock") if "://" in lock.read_text("utf8")]
    assert not re.search(r"^\s*-(?!-hash)", text.replace("    --hash", "--hash"), re.MULTILINE)
    entries = re.findall(r"^([a-z0-9-]+)==\S+(?: ;[^\\]*)? \\\n((?:    --hash=.*\n?)+)", text, re.M)
    lines = re.findall(r"^[a-z].*==", text, re.MULTILINE)
    assert len(entries) == len(lines)
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf8"))["project"]
    extras = project["optional-dependencies"]
    # The book and the tests take the extras of the library with them.
    own = {"traindyn[data,deep]", "traindyn[lab]", "traindyn[cluster]"}
    assert own <= {*extras["lab"], *extras["book"], *extras["test"]}
    taken = [extras[name] for name in ("book", "cluster", "data", "deep", "lab", "test")]
    wanted = [*project["dependencies"], *chain.from_iterable(taken)]
    names = {re.split(r"[<>=]", requirement)[0] for requirement in wanted}
    assert names - own <= {name for name, _ in entries}


@pytest.mark.parametrize("name", ["_build", ".venv"])
def test_generated_files_are_not_committed(root: Path, name: str) -> None:
    """Build products or notebooks could end up in the repository."""
    ignored = (root / ".gitignore").read_text(encoding="utf8").splitlines()
    assert f"{name}/" in ignored
    assert "*.ipynb" in ignored
