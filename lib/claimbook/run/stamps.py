"""What an executed chapter depends on, as a stamp file.

A stamp holds a digest of everything that can change a chapter's numbers: its source, the library
files it can reach through imports (their syntax, without docstrings, comments and lists of public
names), the lock file, what its records repeat of the registry of claims, the Python version and
the build settings (profile, seed). It is rewritten only when one of these changes, so make reruns
a chapter exactly when its stamp is newer. Digests, unlike time stamps, survive a fresh clone and
ignore a mere ``touch``.

Library files are found by walking ``import`` statements, wherever they stand, from the
chapter's code cells through the packages of the source root. A package that hands on names from
its modules is followed to the modules of the names that are asked for, and no further.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from claimbook.files import write
from claimbook.run import caches, lock
from claimbook.run import chapters as sources

#: These read executed notebooks or start the run of one; no number of a chapter depends on them.
OUTSIDE = (
    "claimbook.cli",
    "claimbook.collect",
    "claimbook.compare",
    "claimbook.pages",
    "claimbook.report",
    "claimbook.run",
    "claimbook.seeds",
    "claimbook.site",
)

#: Number of threads of linear algebra: one, unless one of these is set.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

#: What a record in a notebook repeats of its claim; texts are read when the ledger is built.
RECORDED = ("id", "number", "kind", "finding")

_CODE_CELL = re.compile(r"^(`{3,}|~{3,})\{code-cell\}.*?\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
_CELL_OPTIONS = re.compile(r"\A(?:---\n(?:[^\n]*\n)*?---\n|(?::[^\n]*\n)+)")
_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)


def code(text: str) -> str:
    r"""Python source of a MyST text notebook, cell after cell.

    Parameters
    ----------
    text : str
        The notebook.

    Returns
    -------
    str
        Without cell options and IPython magics.

    Examples
    --------
    >>> from claimbook.run.stamps import code
    >>> code("# Title\n```{code-cell} ipython3\n:tags: [parameters]\n\nseed = 1\n```\n")
    '\nseed = 1\n'
    """
    cells = (_CELL_OPTIONS.sub("", match.group(2)) for match in _CODE_CELL.finditer(text))
    return _MAGIC.sub("", "".join(cells))


class Import(NamedTuple):
    """One name that a piece of source imports.

    Attributes
    ----------
    module : str
        Dotted name.
    name : str or None
        What is taken from the module; None if it is imported as a whole.
    local : str
        The name it gets.
    """

    module: str
    name: str | None
    local: str


@cache
def imports(source: str, package: str = "") -> tuple[Import, ...]:
    r"""List what a piece of Python source imports, in functions too.

    Parameters
    ----------
    source : str
        Of a module or a cell; a SyntaxError is passed on.
    package : str
        Package the source belongs to, for relative imports.

    Returns
    -------
    tuple of Import

    Examples
    --------
    >>> from claimbook.run.stamps import imports
    >>> [item[:2] for item in imports("from . import a\nimport p.b", package="p")]
    [('p', 'a'), ('p.b', None)]
    """
    return tuple(_imports(ast.parse(source), package))


def _imports(tree: ast.AST, package: str) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.partition(".")[0]
                yield Import(alias.name, None, local)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            for alias in node.names:
                yield Import(base, alias.name, alias.asname or alias.name)


def imported(source: str, package: str = "") -> set[str]:
    """Dotted names a piece of Python source imports.

    Parameters
    ----------
    source, package : str
        As in :func:`imports`.

    Returns
    -------
    set of str
        For ``from a import b`` both ``a`` and ``a.b``: `b` may be a module.

    Examples
    --------
    >>> from claimbook.run.stamps import imported
    >>> sorted(imported("from . import a", package="p")), sorted(imported("import p.b"))
    (['p', 'p.a'], ['p.b'])
    """
    found = imports(source, package)
    return {item.module for item in found} | {
        f"{item.module}.{item.name}" for item in found if item.name is not None
    }


def _find(module: str, root: Path) -> Path | None:
    """File of a module below a source root, or None if it is not there."""
    base = root.joinpath(*module.split("."))
    for candidate in (base / "__init__.py", base.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def reachable(source: str, root: Path) -> list[Path]:
    """Files below a source root that running a piece of Python can import.

    Parameters
    ----------
    source : str
        Python source.
    root : Path
        Folder that holds the packages (``lib``).

    Returns
    -------
    list of Path
        Sorted; Python files, and the data files that lie next to them in a package. All
        Python files if one of the sources met cannot be parsed: better run once too often.
    """
    try:
        return _walk(source, root)
    except SyntaxError:
        return sorted(root.rglob("*.py"))


def _walk(source: str, root: Path) -> list[Path]:
    found: set[Path] = set()
    queue = list(_requests(imports(source)))
    seen: set[tuple[str, str | None]] = set()
    while queue:
        module, name = item = queue.pop()
        if item in seen or any(f"{module}.".startswith(f"{out}.") for out in OUTSIDE):
            continue
        seen.add(item)
        path = _find(module, root)
        if path is None:
            continue
        if parent := module.rpartition(".")[0]:  # importing a module runs its packages first
            queue.append((parent, ""))
        text = path.read_text(encoding="utf8")
        if path.name != "__init__.py":
            found.add(path)
            queue.extend(_requests(imports(text, module.rpartition(".")[0])))
            continue
        found.update(_data(path.parent))
        face, own = _face(text, module)
        if own:
            found.add(path)
        queue.extend(
            _requests(
                item for item in face if name is None or item.local == name or item.local in own
            )
        )
        if name:
            queue.append((f"{module}.{name}", None))
    return sorted(found)


def _requests(found: Iterable[Import]) -> Iterator[tuple[str, str | None]]:
    """Yield modules and what is asked of them; ``import a.b`` gives all of `a` to who writes it."""
    for module, name, _ in found:
        yield module, name
        if name is None:
            parts = module.split(".")
            yield from ((".".join(parts[:i]), None) for i in range(1, len(parts)))


@cache
def _face(source: str, package: str) -> tuple[tuple[Import, ...], frozenset[str]]:
    """Return what a package imports, and the names that its other statements use.

    A package that only hands on names has no such statement: `__all__` and the docstring, which
    run nothing, do not count.
    """
    tree = ast.parse(source)
    own: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) or _idle(node):
            continue
        own.update(item.id for item in ast.walk(node) if isinstance(item, ast.Name))
    return imports(source, package), frozenset(own)


def _idle(node: Any) -> bool:
    """Whether a statement can change nothing that a chapter computes."""
    if isinstance(node, ast.Assign):
        return all(isinstance(item, ast.Name) and item.id == "__all__" for item in node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.target.id == "__all__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _data(folder: Path) -> set[Path]:
    """Return the data files that lie in a package."""
    return {
        path
        for path in folder.iterdir()
        if path.is_file()
        and path.suffix in (".json", ".toml", ".csv", ".gz", ".mplstyle")
        and not path.name.endswith(".schema.json")  # says what is allowed, no more
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@cache
def meaning(source: str) -> str:
    """Return the syntax of a piece of Python without what cannot change a number.

    Comments, docstrings (those of attributes too) and the lists `__all__` of modules are left out.

    Parameters
    ----------
    source : str
        Of a module, or of cells.

    Returns
    -------
    str
        The source itself if it cannot be parsed.

    Examples
    --------
    >>> from claimbook.run.stamps import meaning
    >>> meaning("x = 1  # one") == meaning("'Numbers.'; x = 1")
    True
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        for block in vars(node).values():
            if isinstance(block, list):
                block[:] = [item for item in block if not _idle(item)]
    return ast.dump(tree)


def _content(path: Path) -> bytes:
    """Return what of a file can change a number."""
    if path.suffix == ".py":
        return meaning(path.read_text(encoding="utf8")).encode()
    return path.read_bytes()


def library(text: str, root: Path) -> str:
    """Short digest of the library files that a chapter can reach.

    Parameters
    ----------
    text : str
        The chapter, a MyST text notebook.
    root : Path
        Source root of the library.

    Returns
    -------
    str
        Of the places of the files and of what of them can change a number.
    """
    files = {
        path.relative_to(root).as_posix(): _digest(_content(path))
        for path in reachable(code(text), root)
    }
    return _digest(json.dumps(files, sort_keys=True).encode())


def recorded(stamp: Path, root: Path) -> str:
    """Short digest of the library files that a chapter can reach, from its stamp.

    Parameters
    ----------
    stamp : Path
        Written by :func:`update`; it has to be there.
    root : Path
        Source root of the library, as it was given to :func:`inputs`.

    Returns
    -------
    str
        As :func:`library` finds it, which has to parse every file.
    """
    below = f"{root.as_posix()}/"
    known = json.loads(stamp.read_bytes())
    files = {path.removeprefix(below): known[path] for path in known if path.startswith(below)}
    return _digest(json.dumps(files, sort_keys=True).encode())


def inputs(
    chapter: str,
    *,
    book: Path,
    root: Path,
    shared: Iterable[Path] = (),
    settings: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Everything an executed chapter depends on, with a digest of each.

    Parameters
    ----------
    chapter : str
        Name of the chapter, such as ``alignment/beyond``.
    book : Path
        Folder of the sources, with ``claims.toml`` if there is one.
    root : Path
        Source root of the library.
    shared : iterable of Path
        Further files every chapter depends on (the lock file).
    settings : mapping
        Build settings.

    Returns
    -------
    dict
        What (a path, or words) to digest or value.
    """
    source = (book / chapter).with_suffix(".md")
    text = source.read_text(encoding="utf8")
    registry = book / "claims.toml"
    claims: list[object] = []
    if registry.is_file():
        with registry.open("rb") as file:
            entries = tomllib.load(file).get("claim", [])
        claims = [
            [entry.get(key) for key in RECORDED]
            for entry in entries
            if entry.get("chapter") == chapter
        ]
    files = [source, *shared, *reachable(code(text), root)]
    return {
        **{path.as_posix(): _digest(_content(path)) for path in files},
        "its claims": _digest(json.dumps(claims, sort_keys=True).encode()),
        "the Python version": ".".join(map(str, sys.version_info[:2])),
        # They change the last digits of sums; one each is what the numbers are quoted for.
        **{
            f"the threads by {name}": count
            for name in THREADS
            if (count := os.environ.get(name, "1")) != "1"
        },
        **{f"the {key}": value for key, value in (settings or {}).items()},
    }


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """List what differs between two results of :func:`inputs`.

    Examples
    --------
    >>> from claimbook.run.stamps import changes
    >>> changes({"a": "1", "b": "2"}, {"b": "3", "c": "4"})
    ['a', 'b', 'c']
    """
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def update(stamp: Path, current: Mapping[str, str]) -> list[str]:
    """Rewrite a stamp file if it does not say what it should.

    Parameters
    ----------
    stamp : Path
        Its folder is made if there is none.
    current : mapping
        Result of :func:`inputs`.

    Returns
    -------
    list of str
        What changed since the stamp was written; empty if nothing did, or if there was
        no readable stamp.
    """
    before = _loaded(stamp)
    if before == current:
        return []
    write(stamp, json.dumps(current, indent=1, sort_keys=True).encode())
    return changes(before, current) if isinstance(before, dict) else []


def _loaded(path: Path) -> Any:
    """Content of a JSON file; None if there is none, or it is damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def discard(build: Path) -> list[Path]:
    """Remove notebooks and a ledger that are damaged, such as cut short by a full disk.

    They are newer than what they were made from, so that nothing else would make them again.

    Parameters
    ----------
    build : Path
        Such as ``_build/quick``.

    Returns
    -------
    list of Path
        The files removed.
    """
    made = [*sorted((build / "notebooks").rglob("*.ipynb")), build / "ledger.json"]
    damaged = [path for path in made if path.is_file() and not isinstance(_loaded(path), dict)]
    for path in damaged:
        path.unlink()
    return damaged


def prune(folder: Path, chapters: Iterable[str]) -> list[Path]:
    """Remove what was made from chapters that no longer exist.

    Parameters
    ----------
    folder : Path
        Stamps or executed notebooks, one per chapter, under the chapter's name.
    chapters : iterable of str
        Names of the chapters that exist.

    Returns
    -------
    list of Path
        The files removed.
    """
    keep = set(chapters)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stale = [path for path in files if sources.name(path, folder) not in keep]
    for path in stale:
        path.unlink()
    return stale


def main(arguments: list[str] | None = None) -> int:
    """Bring the stamps of chapters up to date (command line)."""
    parser = argparse.ArgumentParser(prog="python -m claimbook.run.stamps", description=__doc__)
    parser.add_argument("--book", type=Path, default=Path("book"))
    parser.add_argument("--root", type=Path, default=Path("lib"))
    parser.add_argument("--shared", type=Path, nargs="*", default=[])
    parser.add_argument("--settings", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--build", type=Path, required=True, help="such as _build/quick")
    parser.add_argument("--owner", type=int, help="id of the process that builds, such as make's")
    options = parser.parse_args(arguments)
    if options.owner is not None:
        try:
            lock.take(options.build, options.owner)
        except lock.LockedError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    settings = dict(setting.split("=", 1) for setting in options.settings)
    chapters = sources.chapters(options.book)
    for folder in (options.build / "stamps", options.build / "notebooks"):
        for path in prune(folder, chapters):
            print(f"{path}: removed, its chapter is gone")
    for path in [*discard(options.build), *caches.mend(os.environ)]:
        print(f"{path}: damaged, to be made again")
    for chapter in chapters:
        current = inputs(
            chapter,
            book=options.book,
            root=options.root,
            shared=options.shared,
            settings=settings,
        )
        stamp = options.build / "stamps" / f"{chapter}.json"
        because = _summary(update(stamp, current))
        if because:
            print(f"{chapter}: to be run again, changed: {because}")
    return 0


def _summary(changed: list[str], most: int = 3) -> str:
    """List of changes for one line of output."""
    shown = ", ".join(changed[:most])
    return shown if len(changed) <= most else f"{shown} and {len(changed) - most} more"


if __name__ == "__main__":
    sys.exit(main())
