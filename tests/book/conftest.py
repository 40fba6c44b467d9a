"""What the tests of the book share: the built site, a server, a toy project."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from claimbook.report import PAGES
from claimbook.site import serve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(root: Path) -> Path:
    """The built site, quick profile."""
    html = root / "_build" / "quick" / "html"
    if not (html / "index.html").is_file():
        pytest.fail("the site is not built: run `make book` (`make test` does) before these tests")
    return html


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Address under which the built site is served."""
    with serve.server(site, 0) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


# ----------------------------------------------------------------------------- toy project

_CHAPTER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# {title}

With $x^2$ in it.

```{{code-cell}} ipython3
:tags: [parameters]

profile = "quick"
seed = 1
```

```{{code-cell}} ipython3
{code}
```
"""

_CLAIM = """\
from claimbook import Chapter, Control, identity
from toy.{module} import answer

chapter = Chapter("part/{name}", profile=profile, seed=seed)
_ = chapter.claim(
    "OWN-{name}",
    identity(
        "answer",
        observed=float(answer()),
        expected=42.0,
        tolerance=1e-12,
        control=Control("off by one", observed=43.0),
    ),
)
"""

_ENTRY = """\
[[claim]]
id = "OWN-{name}"
source = "OWN"
number = "Answer {name}"
kind = "formula"
chapter = "part/{name}"
statement = "The answer of chapter {name} is 42."
tested = "The answer."
not_tested = "Nothing: there is no other."
credit = "Known: Adams (1979)."
"""


@dataclass(frozen=True)
class Toy:
    """A project in miniature under the real Makefile: chapters `one` and `two`.

    Chapter `one` imports ``toy.first``, chapter `two` ``toy.second``.
    """

    root: Path

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf8")

    def chapter(self, name: str, code: str) -> None:
        """Write a chapter with a parameters cell and one code cell."""
        text = _CHAPTER.format(title=f"Chapter {name}", code=textwrap.dedent(code).strip())
        self.write(f"book/part/{name}.md", text)

    def claim_chapter(self, name: str, module: str) -> None:
        """Write a chapter that records its claim with a function of the library."""
        self.chapter(name, _CLAIM.format(name=name, module=module))

    def environment(self) -> dict[str, str]:
        """Environment of make: the toy's library first, no trace of an outer make."""
        outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PROFILE", "SEED", "VENV")
        kept = {key: value for key, value in os.environ.items() if key not in outer}
        return {**kept, "PYTHONPATH": os.pathsep.join([str(self.root / "lib"), str(ROOT / "lib")])}

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run make in the project."""
        return subprocess.run(
            ["make", *arguments],
            cwd=self.root,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start make in the project, in its own process group, where Ctrl-C reaches it."""
        # A job that a script puts into the background ignores interrupts, and so do its children.
        listening = (
            "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
            "os.execvp('make', ['make', *sys.argv[1:]])"
        )
        return subprocess.Popen(
            [sys.executable, "-c", listening, *arguments],
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def interrupt(self, process: subprocess.Popen[str]) -> str:
        """Do what Ctrl-C does, and return what the process said."""
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        return output

    def generated(self) -> list[str]:
        """Names of the generated files, caches and the note of who builds left out."""
        build = self.root / "_build" / "quick"
        return sorted(
            path.relative_to(build).as_posix()
            for path in build.rglob("*")
            if path.is_file() and path.name != "lock"
        )


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A project of two chapters that has not been built."""
    project = Toy(tmp_path)
    for name in ("Makefile", "_config.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("requirements.lock", "requirements-uv.lock", "pyproject.toml"):
        project.write(name, "")
    shutil.copytree(ROOT / "book" / "_static", tmp_path / "book" / "_static")
    shutil.copy(ROOT / "book" / "references.bib", tmp_path / "book" / "references.bib")
    project.write("lib/toy/__init__.py", "")
    for module in ("first", "second"):
        project.write(f"lib/toy/{module}.py", "def answer():\n    return 42\n")
    home = "# Home\n\nSee {doc}`part/one`, one of {{ chapters }} chapters.\n\n{{ verdicts }}\n"
    project.write("book/intro.md", home)
    project.write(
        "_toc.yml",
        "format: jb-book\nroot: book/intro\nchapters:\n"
        + "".join(f"  - file: book/{name}\n" for name in ("part/one", "part/two", *PAGES)),
    )
    project.write("book/claims.toml", "\n".join(_ENTRY.format(name=n) for n in ("one", "two")))
    project.claim_chapter("one", "first")
    project.claim_chapter("two", "second")
    # The interpreter that runs the tests stands in for the virtual environment.
    python = tmp_path / ".venv" / "bin" / "python"
    project.write(".venv/bin/python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    for name in (".locked", ".ready"):
        project.write(f".venv/{name}", "")
    return project
