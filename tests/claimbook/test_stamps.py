"""What an executed chapter depends on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claimbook.run import chapters, stamps


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A source root with a package `p` of a few modules."""
    files = {
        "p/__init__.py": "",
        "p/a.py": "from . import b\n",
        "p/b.py": "def late():\n    import p.sub.c\n",
        "p/sub/__init__.py": "from p.sub.d import thing\n",
        "p/sub/c.py": "import numpy\n",
        "p/sub/d.py": "thing = 1\n",
        "p/sub/table.json": "{}",
        "p/unused.py": "",
        "p/face/__init__.py": '"""Face."""\nfrom p.face.one import f\nfrom p.face.two import g\n'
        '__all__ = ["f", "g"]\n',
        "p/face/one.py": "",
        "p/face/two.py": "",
        "p/face/three.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")
    return tmp_path / "lib"


def reached(source: str, library: Path) -> set[str]:
    """Names of the files below the source root that a source reaches."""
    return {path.relative_to(library).as_posix() for path in stamps.reachable(source, library)}


def test_walk_follows_every_kind_of_import(library: Path) -> None:
    """Relative imports, imports in functions, packages or their data could be missed."""
    everything = {"p/a.py", "p/b.py", "p/sub/c.py", "p/sub/d.py", "p/sub/table.json"}
    for source in ("import p.a", "from p import a", "from p.a import b as c", "if x:\n import p.a"):
        assert reached(source, library) == everything, source
    assert reached("from p.sub import thing", library) == {"p/sub/d.py", "p/sub/table.json"}
    assert reached("import numpy", library) == set()


def test_a_face_is_followed_to_the_names_that_are_asked_for(library: Path) -> None:
    """A change of one module would run every chapter again that uses another of its package."""
    assert reached("from p.face import f", library) == {"p/face/one.py"}
    assert reached("from p.face import f as h, g", library) == {"p/face/one.py", "p/face/two.py"}
    assert reached("from p import face", library) == {"p/face/one.py", "p/face/two.py"}
    assert reached("from p.face import three", library) == {"p/face/three.py"}
    face = library / "p/face/__init__.py"
    face.write_text(face.read_text(encoding="utf8") + "f(1)\n", encoding="utf8")
    needed = {"p/face/__init__.py", "p/face/one.py", "p/face/two.py"}
    assert reached("from p.face import g", library) == needed


def test_source_that_cannot_be_parsed_depends_on_everything(library: Path) -> None:
    """A magic in the middle of a line could hide the imports around it."""
    assert "p/unused.py" in reached("x = %who\nimport p.a", library)


def test_what_cannot_change_a_number_does_not_count() -> None:
    """A word in the documentation of an attribute would run every chapter again."""
    plain = "class A:\n    x = 1\n\ndef f():\n    return 'said'\n"
    told = plain.replace("x = 1", "x = 1\n    'Its meaning.'")
    assert stamps.meaning(f"{told}'Said last.'\n") == stamps.meaning(plain)
    listed = f"__all__ = ['A']\n{plain}__all__ += ['f']\n"
    assert stamps.meaning(listed) == stamps.meaning(plain)
    assert stamps.meaning(plain.replace("said", "meant")) != stamps.meaning(plain)
    assert stamps.meaning(f"{plain}names = ['A']\n") != stamps.meaning(plain)


def test_code_cells_are_read_with_and_without_options() -> None:
    """Options of a cell, magics or prose could be taken for code, or code be dropped."""
    text = """\
import prose

```{code-cell} ipython3
:tags: [hide-input]
:label: first

import a
%matplotlib inline
```

```python
import example
```

````{code-cell} ipython3
---
tags: [x]
---
import b
text = '''
```
'''
````

```{code-cell} ipython3
import c
```
"""
    assert stamps.imported(stamps.code(text)) == {"a", "b", "c"}


def test_chapters_reach_the_rooms_they_name(root: Path) -> None:
    """On the real book: a chapter must depend on its rooms and not on the site's tools."""
    for chapter in chapters.chapters(root / "book"):
        text = (root / "book" / f"{chapter}.md").read_text(encoding="utf8")
        files = {
            path.relative_to(root / "lib").as_posix()
            for path in stamps.reachable(stamps.code(text), root / "lib")
        }
        # A page that shows a tool records no claim.
        assert ("claimbook/chapter.py" in files) == ("chapter.claim(" in text)
        assert not any(
            name.startswith(("claimbook/run/", "claimbook/site/", "claimbook/cli"))
            for name in files
        )
        rooms = {name for name in stamps.imported(stamps.code(text)) if name.count(".") == 1}
        for room in rooms & {f"traindyn.{name}" for name in ("spectra", "sgd", "problems", "laws")}:
            folder = f"{room.replace('.', '/')}/"
            assert any(name.startswith(folder) for name in files), room
        # Only what names the data sets reaches them: no room may import the whole library.
        if "traindyn/data/loaders.py" in files:
            assert any(f"{name}.".startswith("traindyn.data.") for name in rooms), chapter


def test_a_stamp_knows_the_library(root: Path, tmp_path: Path) -> None:
    """A run could record another digest of the library than the page of runs compares with."""
    name, library = chapters.chapters(root / "book")[0], root / "lib"
    found = stamps.inputs(name, book=root / "book", root=library, shared=[root / "Makefile"])
    stamps.update(tmp_path / "one.json", found)
    text = (root / "book" / f"{name}.md").read_text(encoding="utf8")
    assert stamps.recorded(tmp_path / "one.json", library) == stamps.library(text, library)


def test_stamp_changes_only_with_its_content(tmp_path: Path) -> None:
    """An unchanged stamp could get a new time stamp, or a changed one keep the old."""
    stamp = tmp_path / "part" / "one.json"
    assert stamps.update(stamp, {"a": "1"}) == []
    before = stamp.stat().st_mtime_ns
    assert stamps.update(stamp, {"a": "1"}) == []
    assert stamp.stat().st_mtime_ns == before
    assert stamps.update(stamp, {"a": "2", "b": "1"}) == ["a", "b"]
    assert json.loads(stamp.read_text(encoding="utf8")) == {"a": "2", "b": "1"}
    assert [path.name for path in stamp.parent.iterdir()] == ["one.json"]


@pytest.mark.fault
@pytest.mark.parametrize("damaged", [b"", b'{"a": "1', b"\x80\xff", b"[]", b"null"])
def test_damaged_files_are_mended_by_running_again(tmp_path: Path, damaged: bytes) -> None:
    """A full disk cuts files short; nobody should have to find out which to delete."""
    stamp = tmp_path / "stamps" / "one.json"
    whole = {"a": "1"}
    stamps.update(stamp, whole)
    stamp.write_bytes(damaged)
    assert stamps.update(stamp, whole) == []
    assert json.loads(stamp.read_text(encoding="utf8")) == whole
    kept, lost = tmp_path / "notebooks" / "kept.ipynb", tmp_path / "notebooks" / "p" / "lost.ipynb"
    lost.parent.mkdir(parents=True)
    kept.write_text('{"cells": []}', encoding="utf8")
    ledger = tmp_path / "ledger.json"
    for path in (lost, ledger):
        path.write_bytes(damaged)
    assert stamps.discard(tmp_path) == [lost, ledger]
    assert kept.is_file()
    assert stamps.discard(tmp_path) == []


def test_threads_of_linear_algebra_change_a_stamp(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two threads sums end in other digits, and the notebooks are kept all the same."""
    book = tmp_path / "book"
    book.mkdir()
    (book / "one.md").write_text("```{code-cell}\nimport p.b\n```\n", encoding="utf8")

    def inputs() -> dict[str, str]:
        return stamps.inputs("one", book=book, root=library)

    for name in stamps.THREADS:
        monkeypatch.delenv(name, raising=False)
    unset = inputs()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert inputs() == unset
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert stamps.changes(unset, inputs()) == ["the threads by OMP_NUM_THREADS"]


def test_two_builds_do_not_share_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers of one build could come under the settings of the other."""
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    book, build = tmp_path / "book", tmp_path / "build"
    book.mkdir()
    arguments = ["--book", str(book), "--root", str(book), "--build", str(build), "--owner"]
    try:
        assert stamps.main([*arguments, str(other.pid)]) == 0
        assert stamps.main([*arguments, str(other.pid)]) == 0
        assert stamps.main([*arguments, str(os.getpid())]) == 1
        said = f"error: {build} is being built already, by process {other.pid}; wait for it"
        assert said in capsys.readouterr().err
    finally:
        other.communicate()
    # What a process has left that was killed, or a full disk, is no lock.
    assert stamps.main([*arguments, str(os.getpid())]) == 0
    (build / "lock").write_text("[", encoding="utf8")
    assert stamps.main([*arguments, str(os.getpid())]) == 0
    # Nor is that of a process whose id was given to another.
    (build / "lock").write_text(f"[{os.getppid()}, 1.0]", encoding="utf8")
    assert stamps.main([*arguments, str(os.getpid())]) == 0
