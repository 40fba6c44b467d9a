"""The Makefile and the pipeline, on a toy project of two chapters."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Toy

HTML = "_build/quick/html"


def ran(output: str) -> set[str]:
    """Names of the chapters that were executed."""
    return {name for name in ("one", "two") if f"book/part/{name}.md: done" in output}


def test_book_is_built_once_and_follows_changes(toy: Toy) -> None:
    """The book could lack a page, rebuild for nothing, or miss a change of the library."""
    first = toy.make("-j2", "book")
    assert first.returncode == 0, first.stdout + first.stderr
    assert ran(first.stdout) == {"one", "two"}
    for page in ("index", "book/part/one", "book/part/two", "book/ledger", "book/errata"):
        assert (toy.root / HTML / f"{page}.html").is_file()
    home = (toy.root / HTML / "book/intro.html").read_text(encoding="utf8")
    assert "one of 2 chapters" in home
    assert '<a href="ledger.html?verdict=confirmed">2 confirmed</a>' in home

    again = toy.make("book")
    assert again.returncode == 0
    assert again.stdout.splitlines() == [
        "book: _build/quick/html is complete; make serve PROFILE=quick opens it"
    ]

    # Time stamps and explanations are no reason to run a chapter again.
    before = (toy.root / "lib/toy/first.py").read_text(encoding="utf8")
    toy.write("lib/toy/first.py", f'"""A number."""\n\n{before}  # explained\n')
    (toy.root / "book/part/one.md").touch()
    assert ran(toy.make("ledger").stdout) == set()

    toy.write("lib/toy/first.py", "def answer():\n    return 6 * 7\n")
    library = toy.make("ledger")
    assert ran(library.stdout) == {"one"}
    assert "changed: lib/toy/first.py" in library.stdout

    claims = (toy.root / "book/claims.toml").read_text(encoding="utf8")
    toy.write("book/claims.toml", claims.replace("chapter two is 42", "chapter two is forty-two"))
    assert ran(toy.make("ledger").stdout) == set()
    ledger = json.loads((toy.root / "_build/quick/ledger.json").read_text(encoding="utf8"))
    assert "forty-two" in json.dumps(ledger["claims"])

    toy.write("requirements.lock", "# another version\n")
    (toy.root / ".venv/.locked").touch()
    (toy.root / ".venv/.ready").touch()
    assert ran(toy.make("ledger").stdout) == {"one", "two"}
    assert ran(toy.make("ledger", "SEED=5").stdout) == {"one", "two"}


def test_executed_notebooks_do_not_depend_on_the_run(toy: Toy) -> None:
    """Cell ids, times or paths could make two identical runs differ."""
    notebook = toy.root / "_build/quick/notebooks/part/one.ipynb"
    contents = []
    for _ in range(2):
        done = toy.make(str(notebook.relative_to(toy.root)))
        assert done.returncode == 0, done.stderr
        content = json.loads(notebook.read_text(encoding="utf8"))
        for name in ("seconds", "memory_mib"):
            del content["metadata"]["claimbook"][name]
        for cell in content["cells"]:
            for output in cell.get("outputs", []):
                for data in output.get("data", {}).values():
                    if isinstance(data, dict):
                        data.pop("seconds", None)
        contents.append(json.dumps(content))
        notebook.unlink()
    assert contents[0] == contents[1]
    assert str(toy.root) not in contents[0]
    assert "papermill" not in contents[0]
    tags = [cell["metadata"].get("tags", []) for cell in json.loads(contents[0])["cells"]]
    assert ["parameters", "remove-cell"] in tags
    assert ["injected-parameters"] in tags


def test_failing_cell_stops_the_build_and_is_shown(toy: Toy) -> None:
    """A failing cell could pass unnoticed, or leave a notebook that looks complete."""
    toy.chapter("one", "total = 1\ntotal / 0")
    done = toy.make("book")
    assert done.returncode != 0
    assert "book/part/one.md:25: cell 4 failed" in done.stderr
    assert "    | total / 0" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert not [name for name in toy.generated() if name.endswith("one.ipynb")]
    assert not (toy.root / HTML).exists()


def test_warning_stops_the_build(toy: Toy) -> None:
    """A warning in a cell could be published."""
    toy.chapter("one", "import warnings\nwarnings.warn('look out')")
    done = toy.make("book")
    assert done.returncode != 0
    assert "wrote to standard error" in done.stderr
    assert "look out" in done.stderr


def test_dying_kernel_stops_the_build(toy: Toy) -> None:
    """A killed process could hang the build or leave it without an explanation."""
    toy.chapter("one", "import os\nos._exit(1)")
    done = toy.make("book")
    assert done.returncode != 0
    assert "book/part/one.md: the Python process of the chapter died" in done.stderr


def test_failed_claim_stops_the_build(toy: Toy) -> None:
    """A claim that does not hold could reach the ledger."""
    toy.write("lib/toy/second.py", "def answer():\n    return 41\n")
    done = toy.make("book")
    assert done.returncode != 0
    assert "OWN-two" in done.stderr
    assert not (toy.root / "_build/quick/ledger.json").exists()


@pytest.mark.nightly
def test_missing_page_and_broken_link_stop_the_build(toy: Toy) -> None:
    """Jupyter Book alone exits with 0 although the table of contents is not what is there."""
    toc = (toy.root / "_toc.yml").read_text(encoding="utf8")
    toy.write("_toc.yml", toc + "  - file: book/absent\n")
    absent = toy.make("-j2", "book")
    assert absent.returncode != 0
    assert "lists pages that do not exist: book/absent" in absent.stderr

    toy.write("_toc.yml", toc)
    toy.write("book/forgotten.md", "# Forgotten\n")
    forgotten = toy.make("book")
    assert forgotten.returncode != 0
    assert "does not list: book/forgotten" in forgotten.stderr

    (toy.root / "book/forgotten.md").unlink()
    toy.write("book/intro.md", '# Home\n\n<a href="nowhere.html">nowhere</a>\n')
    broken = toy.make("book")
    assert broken.returncode != 0
    assert "book/intro.html: no such file: nowhere.html" in broken.stderr

    home = "# Home\n\n{doc}`nowhere`\n\n{{ claims }} claims, {{ clams }} clams\n"
    toy.write("book/intro.md", home)
    warnings = toy.make("book")
    assert warnings.returncode != 0
    assert "book/intro.md:3: WARNING: unknown document: 'nowhere'" in warnings.stderr
    assert "'clams' is undefined" in warnings.stderr and "'claims'" not in warnings.stderr
    assert not (toy.root / HTML).exists()


def test_interrupt_leaves_nothing_half_written(toy: Toy) -> None:
    """Ctrl-C could leave a notebook that counts as done, or stop the next run."""
    toy.chapter("two", "import time\nprint('started', flush=True)\ntime.sleep(60)")
    process = toy.start("book")
    one = toy.root / "_build/quick/notebooks/part/one.ipynb"
    deadline = time.monotonic() + 60
    while not one.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    output = toy.interrupt(process)
    assert process.returncode != 0
    assert "interrupted, nothing written" in output
    made = [name for name in toy.generated() if not name.startswith("stamps/")]
    assert made == ["notebooks/part/one.ipynb"]

    toy.claim_chapter("two", "second")
    done = toy.make("ledger")
    assert done.returncode == 0, done.stderr
    assert ran(done.stdout) == {"two"}


def test_ending_make_ends_its_chapters(toy: Toy) -> None:
    """A chapter could run on, beside the next build that writes the same notebook."""
    toy.chapter("two", "import time\nprint('started', flush=True)\ntime.sleep(60)")
    process = toy.start("ledger")
    assert process.stdout
    while "two.md: running" not in (line := process.stdout.readline()):
        assert line, "make ended before the chapter began"
    process.terminate()
    output = process.communicate(timeout=50)[0]  # until the last that holds the pipe has ended
    assert process.returncode != 0
    assert "interrupted, nothing written" in output


def test_damaged_files_are_mended_by_running_again(toy: Toy) -> None:
    """Files cut short, by a full disk, say, had to be found and deleted by hand."""
    assert toy.make("ledger").returncode == 0
    build = toy.root / "_build/quick"
    for name in ("stamps/part/one.json", "notebooks/part/two.ipynb", "ledger.json"):
        path = build / name
        path.write_bytes(path.read_bytes()[:20])
    done = toy.make("ledger")
    assert done.returncode == 0, done.stderr
    assert "_build/quick/notebooks/part/two.ipynb: damaged, to be made again" in done.stdout
    assert "two" in ran(done.stdout)
    assert len(json.loads((build / "ledger.json").read_text(encoding="utf8"))["claims"]) == 2


def test_a_second_build_in_the_same_folder_is_refused(toy: Toy) -> None:
    """Two builds at once could mix the numbers of two seeds."""
    toy.chapter("two", "import time\nprint('started', flush=True)\ntime.sleep(60)")
    process = toy.start("ledger")
    stamp = toy.root / "_build/quick/stamps/part/two.json"
    deadline = time.monotonic() + 60
    while not stamp.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    content = stamp.read_bytes()
    second = toy.make("ledger", "SEED=7")
    toy.interrupt(process)
    assert second.returncode != 0
    assert f"_build/quick is being built already, by process {process.pid}" in second.stderr
    assert stamp.read_bytes() == content


def test_removed_chapter_leaves_no_notebook(toy: Toy) -> None:
    """A notebook of a chapter that is gone could be collected into the ledger."""
    notebook = "_build/quick/notebooks/part/two.ipynb"
    assert toy.make(notebook).returncode == 0
    (toy.root / "book/part/two.md").unlink()
    done = toy.make("stamps")
    assert done.returncode == 0, done.stderr
    assert f"{notebook}: removed, its chapter is gone" in done.stdout
    assert not (toy.root / notebook).exists()


def test_profile_is_checked(toy: Toy) -> None:
    """A misspelt profile could build something."""
    done = toy.make("book", "PROFILE=fast")
    assert done.returncode != 0
    assert "PROFILE must be quick or paper, got 'fast'" in done.stderr
