"""The API reference: a page for each package of the source root, made by autodoc.

A page has the docstring of the package and a section for each of its public modules; modules
that begin with an underscore do not appear. A package on the way that only hands on names shows
its docstring alone, so that each object is described where it is defined.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Folder of the pages, and the page that lists them.
FOLDER = "api"

#: What puts the pages of this package behind all others that the search of Sphinx finds.
_SCORER = Path(__file__).parents[1] / "templates" / "scorer.js"

#: What Sphinx needs for the pages, added to its configuration. Types are words for readers, such
#: as "ndarray, shape (n, d)", and no names to be linked.
_CONFIGURATION = """
import inspect
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, {root!r})
extensions = [*extensions, "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.linkcode"]
extensions += ["claimbook.site.api"]
html_search_scorer = {scorer!r}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_use_rtype = False
# Two classes may have one name; where it stands for the type of an argument it is a word.
suppress_warnings = [*suppress_warnings, "ref.python"]
nitpick_ignore_regex = [("py:class", r"(?!({packages})\\.).*")]


def linkcode_resolve(domain, info):
    found = import_module(info["module"])
    try:
        for name in info["fullname"].split("."):
            found = inspect.unwrap(getattr(found, name))
        found = getattr(found, "py_func", getattr(found, "fget", found))
        lines, first = inspect.getsourcelines(found)
        path = Path(inspect.getsourcefile(found)).relative_to({root!r})
    except (AttributeError, OSError, TypeError, ValueError):
        return None
    return f"{address}/lib/{{path.as_posix()}}#L{{first}}-L{{first + len(lines) - 1}}"
"""


def setup(app: Any) -> dict[str, bool]:
    """Leave out what Python says of the fields of a named tuple: its docstring lists them."""
    app.connect("autodoc-skip-member", _is_field)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _is_field(app: Any, what: str, name: str, found: Any, skip: bool, options: Any) -> bool | None:
    said = getattr(found, "__doc__", None) or ""
    return True if said.startswith("Alias for field number") else None


def configuration(root: Path, address: str) -> str:
    """Return Python source to be added to the configuration of Sphinx.

    Parameters
    ----------
    root : Path
        Source root; without packages in it nothing has to be added.
    address : str
        Where the checkout is published.
    """
    tops = [name for name in packages(root) if "." not in name]
    if not tops:
        return ""
    return _CONFIGURATION.format(
        root=str(root.resolve()), packages="|".join(tops), address=address, scorer=str(_SCORER)
    )


def packages(root: Path) -> Iterator[str]:
    """Yield the packages that have a page.

    Parameters
    ----------
    root : Path
        Source root, such as ``lib``; it may be missing.

    Yields
    ------
    str
        The packages in it, each followed by its packages of the next level.
    """
    for package in sorted(path.parent for path in root.glob("*/__init__.py")):
        yield package.name
        for inner in sorted(path.parent for path in package.glob("*/__init__.py")):
            if not inner.name.startswith("_"):
                yield f"{package.name}.{inner.name}"


def modules(package: str, root: Path) -> Iterator[str]:
    """Yield the public modules on the page of a package, without the package itself."""
    folder = root.joinpath(*package.split("."))
    top = "." not in package
    for path in sorted(folder.glob("*.py") if top else folder.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        inner = parts[:-1] if parts[-1] == "__init__" else parts
        name = ".".join(inner)
        if name != package and not any(part.startswith("_") for part in inner):
            yield name


def page(package: str, root: Path) -> str:
    """Return the page of a package as MyST text.

    Parameters
    ----------
    package : str
        One of :func:`packages`.
    root : Path
        Source root.
    """
    blocks = [f"# {package}\n", _directive(package, root)]
    if package.partition(".")[0] == __name__.partition(".")[0]:
        # Who searches a book looks for what it is about, not for the tools that made it.
        blocks.insert(0, "---\nnosearch: true\n---\n")
    for module in modules(package, root):
        blocks += [f"## {module.removeprefix(f'{package}.')}\n", _directive(module, root)]
    return "\n".join(blocks)


def _directive(module: str, root: Path) -> str:
    members = root.joinpath(*module.split("."), "__init__.py").is_file()
    options = "" if members else "   :members:\n"
    return f"```{{eval-rst}}\n.. automodule:: {module}\n{options}```\n"


def overview(root: Path) -> str:
    """Return the page that leads to the others."""
    lines = [
        "# API reference\n",
        "What the docstrings of the source say, a page for each package. Each object links to its "
        "source. Which function holds the content of a theorem is listed in the "
        "{doc}`../statements`.\n",
    ]
    for package in packages(root):
        indent = "" if "." not in package else "  "
        lines.append(f"{indent}- {{doc}}`{package} <{package}>`: {_purpose(package, root)}")
    return "\n".join([*lines, ""])


def _purpose(package: str, root: Path) -> str:
    """First sentence of the docstring of a package."""
    text = root.joinpath(*package.split("."), "__init__.py").read_text(encoding="utf8")
    said = ast.get_docstring(ast.parse(text)) or "no description."
    first = said.partition("\n\n")[0].replace("\n", " ")
    # From the markup of docstrings to that of pages.
    return re.sub(r":math:`([^`]*)`", r"$\1$", first).replace("``", "`")


def write_pages(root: Path, out: Path) -> list[str]:
    """Write the reference of a source root.

    Parameters
    ----------
    root : Path
        Source root; nothing is written if it is missing.
    out : Path
        Folder of the book; the pages go to ``api`` in it.

    Returns
    -------
    list of str
        Names of the pages, relative to `out` and without suffix, the overview first.
    """
    found = list(packages(root))
    if not found:
        return []
    texts = {"index": overview(root), **{name: page(name, root) for name in found}}
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / FOLDER / f"{name}.md").write_text(text, encoding="utf8")
    return [f"{FOLDER}/{name}" for name in texts]
