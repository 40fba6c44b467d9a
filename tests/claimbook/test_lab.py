"""Notebooks for JupyterLab: what only the site can show becomes links, words and live numbers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from claimbook.registry import ClaimError
from claimbook.run import lab

SITE = "https://example.org/site/"
CHAPTER = """\
---
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Title

The share is {glue:text}`share:.2f` of {glue:text}`all`, see {doc}`other`.

```{code-cell} ipython3
:tags: [parameters]

profile, seed = "quick", 1
```

PROSE

```{code-cell} ipython3
from myst_nb import glue

glue("share", seed / 3, display=False)
glue("all", "both", display=False)
```
"""
WORKS = """\
@misc{one, author = {{\\L}ukasz, Jan and van der Berg, An}, title = {A}, year = {1999}}
@misc{many, author = {B, X and C, Y and D, Z}, title = {E}, year = {2001}}
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of a page and a bibliography, to which chapters are added."""
    folder = tmp_path / "book"
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "other.md").write_text("# Another page\n", encoding="utf8")
    (folder / "references.bib").write_text(WORKS, encoding="utf8")
    return folder


def written(book: Path, prose: str = "Words.") -> Path:
    """A chapter with this text."""
    source = book / "part" / "chapter.md"
    source.write_text(CHAPTER.replace("PROSE", prose), encoding="utf8")
    return source


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("{doc}`other`", f"[Another page]({SITE}book/part/other.html)"),
        ("{doc}`the page <../part/other>`", f"[the page]({SITE}book/part/other.html)"),
        ("{term}`blocks <block>`", f"[blocks]({SITE}book/glossary.html)"),
        ("{cite}`one`", f"[[Łukasz and van der Berg 1999]({SITE}book/references.html)]"),
        ("{cite:t}`many`", f"[B et al. (2001)]({SITE}book/references.html)"),
        (
            "By {eq}`second`:\n\n```{math}\n:label: first\nx\n```\n\n"
            "```{math}\n:label: second\ny\n```",
            "By (2):\n\n$$\nx\n\\tag{1}\n$$\n\n$$\ny\n\\tag{2}\n$$",
        ),
    ],
)
def test_markup_becomes_what_jupyterlab_shows(book: Path, markup: str, words: str) -> None:
    """A reference could be raw on the screen, or lead to another page."""
    content = lab.notebook(written(book, markup), book, SITE)
    assert words in [cell.source for cell in content.cells]


@pytest.mark.parametrize(
    "markup",
    ["{doc}`nowhere`", "{cite}`nobody`", "{eq}`none`", "{numref}`x`", "```{note}\nWords.\n```"],
)
def test_markup_that_cannot_be_shown_is_refused(book: Path, markup: str) -> None:
    """A new kind of markup could reach JupyterLab unseen."""
    with pytest.raises(ClaimError):
        lab.notebook(written(book, markup), book, SITE)


def test_numbers_appear_when_their_cells_have_run(book: Path) -> None:
    """A text above the cell that finds its numbers could wait for them for ever."""
    import nbclient

    content = lab.notebook(written(book), book, SITE)
    shown = content.cells[0].outputs[0].data["text/markdown"]
    assert "share is … of …, see [Another page](" in shown
    nbclient.NotebookClient(content, timeout=120).execute()
    shown = content.cells[0].outputs[0].data["text/markdown"]
    assert "share is 0.33 of both, see [Another page](" in shown


def test_what_a_reader_changed_stays(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening JupyterLab once more could undo the work of a reader."""
    root = book.parent
    written(book)
    (root / "_config.yml").write_text(f"html: {{baseurl: {SITE}}}", encoding="utf8")
    monkeypatch.chdir(root)
    assert lab.main(["--output", "lab"]) == 0
    notebook = root / "lab" / "part" / "chapter.ipynb"
    assert "Another page" in notebook.read_text(encoding="utf8")
    notebook.write_text("changed", encoding="utf8")
    assert lab.main(["--output", "lab"]) == 0
    assert notebook.read_text(encoding="utf8") == "changed"


def test_settings_replace_shortcuts_that_jupyterlab_has(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer JupyterLab could have other shortcuts, of which these would be copies."""
    root = book.parent
    (root / "_config.yml").write_text(f"html: {{baseurl: {SITE}}}", encoding="utf8")
    monkeypatch.chdir(root)
    assert lab.main(["--output", "lab", "--settings", "here"]) == 0
    text = (root / "here/labconfig/default_setting_overrides.json").read_text(encoding="utf8")
    ((plugin, told),) = json.loads(text).items()
    schemas = Path(sys.prefix) / "share/jupyter/lab/schemas/@jupyterlab"
    if not schemas.is_dir():
        pytest.skip("JupyterLab is not installed here; the locked environment has it")
    assert plugin == "@jupyterlab/shortcuts-extension:shortcuts"
    assert (schemas / "shortcuts-extension/shortcuts.json").is_file()
    tracker = json.loads((schemas / "notebook-extension/tracker.json").read_text(encoding="utf8"))
    arrows = {"ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"}
    own = {
        (one["command"], *one["keys"], one["selector"])
        for one in tracker["jupyter.lab.shortcuts"]
        if one["selector"].endswith(":focus") and one["keys"] and arrows.issuperset(one["keys"])
    }
    replaced = [one for one in told["shortcuts"] if one.get("disabled")]
    assert {(one["command"], *one["keys"], one["selector"]) for one in replaced} == own
    for off, on in zip(told["shortcuts"][::2], told["shortcuts"][1::2]):
        assert off == {**on, "selector": off["selector"], "disabled": True}
        assert on["selector"] == f"{off['selector']}:not([type=range], select)"
