r"""A chapter as JupyterLab shows it: a notebook that reads like the page.

The site shows the numbers, references and citations of a chapter through Sphinx, which JupyterLab
does not have. Here references and citations become links to the site, and a text with numbers
becomes a cell of its own: it shows the text, with an ellipsis for each number that is still to
come, and writes the numbers in when the cells that find them have run, each time that they run.

    python -m claimbook.run.lab --output book

writes the notebooks of all chapters, and with ``--settings`` a folder for JUPYTER_CONFIG_PATH, in
which JupyterLab finds that the arrow keys belong to the sliders of figures.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claimbook.files import write
from claimbook.registry import ClaimError
from claimbook.run import chapters, execute

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ROLE = re.compile(r"\{([a-z:]+)\}`([^`]+)`")
_NUMBER = re.compile(r"\{glue:text\}`([^`:]+):?([^`]*)`")
_DIRECTIVE = re.compile(r"^```\{(.+?)\}.*\n((?::.*\n)*)((?:.*\n)*?)```$", re.MULTILINE)
_LABEL = re.compile(r"^:label: (.+)$", re.MULTILINE)
_EXPLICIT = re.compile(r"(.+?)\s*<(.+)>")
#: The import of a chapter that JupyterLab needs from here.
_GLUE = "from myst_nb import glue"
#: A cell that shows a text; folded, only the first line is to be seen.
_TEXT = '''\
# A text with numbers of this run
from claimbook.run.lab import text

text(r"""
{}
""")'''
#: Where the arrow keys are JupyterLab's, and what it does at each of them.
_COMMAND_MODE = ".jp-Notebook.jp-mod-commandMode:not(.jp-mod-readWrite) :focus"
_ARROWS = {
    "ArrowDown": "notebook:move-cursor-down",
    "ArrowUp": "notebook:move-cursor-up",
    "ArrowLeft": "notebook:move-cursor-heading-above-or-collapse",
    "ArrowRight": "notebook:move-cursor-heading-below-or-expand",
}

_values: dict[str, Any] = {}
_shown: dict[str, Any] = {}


def glue(name: str, variable: Any, display: bool = True) -> None:
    """Give a number its name, and write it into the texts that ask for it.

    Parameters
    ----------
    name : str
        What texts call it.
    variable : object
        Any that the formats in the texts can print.
    display : bool
        Whether the cell shows it too.

    Examples
    --------
    >>> from claimbook.run.lab import glue
    >>> glue("share", 0.25, display=False)
    """
    from IPython.display import Markdown
    from IPython.display import display as show

    _values[name] = variable
    for markdown, handle in _shown.items():
        if any(match[1] == name for match in _NUMBER.finditer(markdown)):
            handle.update(Markdown(_filled(markdown, _values)))
    if display:
        show(variable)


def text(markdown: str) -> None:
    """Show a text of a notebook with the numbers that are known, and the others once they are.

    Parameters
    ----------
    markdown : str
        With ``{glue:text}`` where numbers go, each with its name and format.
    """
    from IPython.display import Markdown, display

    _shown[markdown] = display(Markdown(_filled(markdown, _values)), display_id=True)


def _filled(markdown: str, values: dict[str, Any]) -> str:
    """Return a text with its numbers, or an ellipsis for those that are not known."""

    def number(match: re.Match[str]) -> str:
        return format(values[match[1]], match[2]) if match[1] in values else "…"

    return _NUMBER.sub(number, markdown).strip()


def notebook(source: Path, book: Path, site: str) -> NotebookNode:
    """Return a chapter as a notebook without markup that only the site can render.

    Parameters
    ----------
    source : Path
        MyST text notebook.
    book : Path
        Folder of all pages, with ``references.bib`` if there are citations.
    site : str
        Address under which the site has its pages; ends with a slash.

    Returns
    -------
    NotebookNode
        Not run; its code is that of the chapter but for the import of ``glue``.

    Raises
    ------
    ClaimError
        If the chapter has markup that is not known here, or refers to a page that is not there.
    ChapterError
        As :func:`claimbook.run.execute.read`.
    """
    from nbformat.v4 import new_code_cell, new_output

    content = execute.read(source)
    content.metadata.pop("jupytext", None)
    # A formula may stand below the text that refers to it.
    labels = _LABEL.findall(source.read_text(encoding="utf8"))
    for index, cell in enumerate(content.cells):
        if cell.cell_type == "markdown":
            plain = _DIRECTIVE.sub(lambda found: _formula(found, source, labels), cell.source)
            plain = _ROLE.sub(lambda found: _words(found, source, book, site, labels), plain)
            if _NUMBER.search(plain):
                shown = {"text/markdown": _filled(plain, {})}
                cell = new_code_cell(
                    _TEXT.format(plain),
                    metadata={"jupyter": {"source_hidden": True}},
                    outputs=[new_output("display_data", shown)],
                )
                content.cells[index] = cell
            else:
                cell.source = plain
        elif cell.cell_type == "code":
            cell.source = cell.source.replace(_GLUE, "from claimbook.run.lab import glue")
        cell["id"] = f"cell-{index + 1}"
    return content


def _formula(found: re.Match[str], source: Path, labels: list[str]) -> str:
    """Return a displayed formula with its number."""
    if found[1] != "math":
        raise ClaimError(f"{source}: JupyterLab cannot show the directive {found[1]!r}")
    label = _LABEL.search(found[2])
    tag = rf"\tag{{{labels.index(label[1]) + 1}}}" if label else ""
    return f"$$\n{found[3]}{tag}\n$$"


def _words(found: re.Match[str], source: Path, book: Path, site: str, labels: list[str]) -> str:
    """Return a reference or a citation as a link to the site; a number stays what it is."""
    role, content = found[1], found[2]
    explicit = _EXPLICIT.fullmatch(content)
    words, target = explicit.groups() if explicit else (content, content)
    if role == "glue:text":
        return found[0]
    if role == "eq":
        if target not in labels:
            raise ClaimError(f"{source}: no formula has the label {target!r}")
        return f"({labels.index(target) + 1})"
    if role == "doc":
        page = (source.parent / f"{target}.md").resolve()
        if not page.is_file():
            raise ClaimError(f"{source}: there is no page {target!r}")
        title = re.search(r"^# (.+)$", page.read_text(encoding="utf8"), re.MULTILINE)
        words = words if explicit or not title else title[1]
        return f"[{words}]({site}book/{chapters.name(page, book.resolve())}.html)"
    if role == "term":
        return f"[{words}]({site}book/glossary.html)"
    if role in ("cite", "cite:t"):
        works = [_work(key.strip(), book, role) for key in content.split(",")]
        linked = "; ".join(f"[{work}]({site}book/references.html)" for work in works)
        return linked if role == "cite:t" else f"[{linked}]"
    raise ClaimError(f"{source}: JupyterLab cannot show the role {role!r}")


def _work(key: str, book: Path, role: str) -> str:
    """Return authors and year of a work."""
    from pybtex.database import parse_file
    from pybtex.richtext import Text

    entries = parse_file(str(book / "references.bib")).entries
    if key not in entries:
        raise ClaimError(f"{book / 'references.bib'} has no work {key!r}")
    entry = entries[key]
    people = [
        str(Text.from_latex(" ".join([*person.prelast_names, *person.last_names])))
        for person in entry.persons["author"]
    ]
    names = " and ".join(people) if len(people) < 3 else f"{people[0]} et al."
    year = entry.fields["year"]
    return f"{names} ({year})" if role == "cite:t" else f"{names} {year}"


def settings() -> dict[str, Any]:
    """Return what JupyterLab has to be told so that the keyboard moves sliders and lists.

    By itself it takes an arrow key for the notebook, whose next cell is then chosen, unless text is
    being written. Its shortcuts are replaced by the same ones for all but sliders and lists.

    Returns
    -------
    dict
        Settings by plugin, as in ``labconfig/default_setting_overrides.json``.

    Examples
    --------
    >>> from claimbook.run.lab import settings
    >>> shortcuts = settings()["@jupyterlab/shortcuts-extension:shortcuts"]["shortcuts"]
    >>> [each["keys"] for each in shortcuts if "disabled" in each]
    [['ArrowDown'], ['ArrowUp'], ['ArrowLeft'], ['ArrowRight']]
    """
    shortcuts: list[dict[str, Any]] = []
    for key, command in _ARROWS.items():
        one = {"command": command, "keys": [key]}
        shortcuts += [
            {**one, "selector": _COMMAND_MODE, "disabled": True},
            {**one, "selector": f"{_COMMAND_MODE}:not([type=range], select)"},
        ]
    return {"@jupyterlab/shortcuts-extension:shortcuts": {"shortcuts": shortcuts}}


def main(arguments: list[str] | None = None) -> int:
    """Write the notebooks of all chapters (command line)."""
    import nbformat
    import yaml

    parser = argparse.ArgumentParser(prog="python -m claimbook.run.lab", description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the notebooks")
    parser.add_argument("--settings", type=Path, help="folder of JupyterLab's configuration")
    options = parser.parse_args(arguments)
    output = options.output
    book = Path("book")
    config = yaml.safe_load(Path("_config.yml").read_text(encoding="utf8"))
    for name in chapters.chapters(book):
        source, target = book / f"{name}.md", output / f"{name}.ipynb"
        # What a reader changed stays until the chapter itself changes.
        if target.is_file() and target.stat().st_mtime > source.stat().st_mtime:
            continue
        content = notebook(source, book, config["html"]["baseurl"])
        write(target, f"{nbformat.writes(content)}\n".encode())
    if options.settings:
        place = options.settings / "labconfig" / "default_setting_overrides.json"
        write(place, f"{json.dumps(settings(), indent=2)}\n".encode())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
