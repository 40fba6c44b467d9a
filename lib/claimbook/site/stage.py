"""Assemble the pages of the book, build the site and check it.

Sources, executed notebooks and the pages of the ledger are copied into an empty folder,
Jupyter Book builds that folder with execution off and every warning an error, and the
result replaces the former site only if all expected pages are there and all links
resolve: Jupyter Book alone exits with 0 on much that is not a success.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib

from claimbook import proofs, report
from claimbook.pages import performance
from claimbook.registry import ClaimError
from claimbook.run import chapters
from claimbook.site import api, cards, figures, links, meta, policy, reuse, sources, weight

#: Pages that are made from measurements, where these are committed.
MEASURED = {
    "performance": (Path("benchmarks", "results.json"), performance.write_page),
    "breakdown": (Path("benchmarks", "breakdown.json"), performance.write_breakdown),
}

_ICON = '<link rel="icon" href="data:,"/>\n'
#: Style and script of the ledger's pages, which join the book's own.
_STATIC = Path(report.__file__).with_name("static")
#: What Sphinx needs for every book, added to its configuration. The command of Jupyter Book handles
#: one page after the other. Sphinx itself, given its configuration, has a process for each core, if
#: all extensions allow it; this one, which numbers sections when all pages are read, does not say.
_CONFIGURATION = """
extensions = [*extensions, "claimbook.site.meta", "claimbook.site.weight"]


def setup(app):
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True
    app.add_css_file("claimbook.css", priority=900)  # after those of the book
    app.add_js_file("fold.js", defer="defer")  # before what opens sections
    app.add_js_file("ledger.js", defer="defer")
    app.add_js_file("map.js", defer="defer")
    app.add_js_file("search.js", defer="defer")
"""
#: Terms of what the bundle of Vega holds; it carries no notices of its own.
_LICENCES = Path(report.__file__).with_name("templates") / "vega-licences.txt"
#: Notebooks as they are downloaded, each whole; those that Sphinx reads refer to files of the site.
_DOWNLOADS = Path("_build", "downloads")
_PROBLEM = re.compile(r"WARNING|ERROR|Error|Exception|Traceback|exception")


class SiteError(Exception):
    """A site that cannot be built, or is not complete."""


def listed(toc: Any) -> Iterator[str]:
    """Files a table of contents lists, in order.

    Parameters
    ----------
    toc : mapping
        Content of ``_toc.yml``.

    Yields
    ------
    str
        Without suffix, relative to the table of contents.

    Examples
    --------
    >>> from claimbook.site.stage import listed
    >>> list(listed({"root": "a", "parts": [{"chapters": [{"file": "b"}]}]}))
    ['a', 'b']
    """
    if isinstance(toc, dict):
        for key, value in toc.items():
            if key in ("root", "file"):
                yield value
            elif key in ("parts", "chapters", "sections", "subtrees", "entries"):
                yield from listed(value)
    elif isinstance(toc, list):
        for entry in toc:
            yield from listed(entry)


def expected(root: Path) -> list[str]:
    """Pages the site must have, checked against the table of contents.

    Parameters
    ----------
    root : Path
        Folder with ``_toc.yml`` and ``book``.

    Returns
    -------
    list of str
        Names relative to `root`, without suffix, in the order of the table of contents.

    Raises
    ------
    SiteError
        If a page is not in the table of contents, or the other way round.
    """
    import yaml

    toc = list(listed(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf8"))))
    book = root / "book"
    have = [*chapters.chapters(book), *chapters.plain_pages(book), *report.PAGES]
    have += [name for name, (results, _) in MEASURED.items() if (root / results).is_file()]
    if _has_reference(toc):
        have += [f"{api.FOLDER}/{name}" for name in ("index", *api.packages(root / "lib"))]
    names = {f"book/{name}" for name in have if not name.startswith("_")}
    missing = [name for name in toc if name not in names]
    if missing:
        raise SiteError(f"_toc.yml lists pages that do not exist: {', '.join(missing)}")
    unlisted = sorted(names - set(toc))
    if unlisted:
        raise SiteError(f"pages that _toc.yml does not list: {', '.join(unlisted)}")
    return toc


def _has_reference(pages: list[str]) -> bool:
    """Whether a book lists an API reference among its pages."""
    return f"book/{api.FOLDER}/index" in pages


def assemble(root: Path, stage: Path, *, notebooks: Path, ledger: Path) -> None:
    """Fill an empty folder with everything the site is made of.

    Parameters
    ----------
    root : Path
        Folder with ``_config.yml``, ``_toc.yml``, ``book`` and ``benchmarks``.
    stage : Path
        Created; whatever was there is removed.
    notebooks : Path
        Folder of executed chapters.
    ledger : Path
        ``ledger.json``.

    Raises
    ------
    SiteError
        If a chapter was not executed.
    ClaimError
        If the ledger is not valid, or a figure is missing.
    """
    import nbformat

    shutil.rmtree(stage, ignore_errors=True)
    (stage / "book").mkdir(parents=True)
    shutil.copy(root / "_toc.yml", stage / "_toc.yml")
    _configure(root / "_config.yml", stage / "_config.yml", ledger)
    book = root / "book"
    if (book / "_static").is_dir():
        shutil.copytree(book / "_static", stage / "book" / "_static")
    plain = [name for name in chapters.plain_pages(book) if not name.startswith("_")]
    for name in plain:
        _copy(book / f"{name}.md", stage / "book" / f"{name}.md")
    for path in [*book.glob("*.bib"), *_figures(book)]:
        _copy(path, stage / path.relative_to(root))
    content = report.read_ledger(ledger)
    claims = {claim["id"]: claim for claim in content["claims"]}
    graphs = proofs.graphs(content)
    statements = report.index_of(root)
    code = cards.codes(statements, root, _address(stage))
    authors = sources.read(book.glob("*.bib"))
    moving = False
    for name in chapters.chapters(book):
        source = notebooks / f"{name}.ipynb"
        if not source.is_file():
            raise SiteError(f"chapter {name} was not executed: {source} is missing")
        notebook = nbformat.read(source, as_version=4)
        for key in ("seconds", "workers", "memory_mib"):
            notebook.metadata.get("claimbook", {}).pop(key, None)
        kept = copy.deepcopy(notebook)
        figures.compact(kept)
        _write(_on_one_line(kept), stage / _DOWNLOADS / "book" / f"{name}.ipynb")
        static = stage / "book" / "_static"
        shown = figures.put(notebook, name, static, claims.values())
        try:
            figures.lead(notebook, shown)
        except ValueError as error:
            raise SiteError(f"chapter {name}: {error}") from error
        cards.put(notebook, claims, shown, graphs, code, authors)
        text = nbformat.writes(notebook)
        _write(text, stage / "book" / f"{name}.ipynb")
        moving = moving or "interactive-figure" in text
    for name in plain:
        reuse.put(name, stage / "book")
    if moving:
        _copy_vega(stage / "book" / "_static" / "vega.js")
    report.write_pages(ledger, stage / "book", root=root, address=_address(stage), found=statements)
    meta.write_previews(content, stage / "book")
    if _has_reference(expected(root)):
        api.write_pages(root / "lib", stage / "book")
    for name, (results, write) in MEASURED.items():
        if (root / results).is_file():
            write(root / results, stage / "book" / f"{name}.md")


def _on_one_line(notebook: Any) -> str:
    """Return a notebook as JSON without blanks, where nbformat gives each number a line."""
    import nbformat

    content = json.loads(nbformat.writes(notebook))
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _write(text: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"{text}\n", encoding="utf8")


def _home(stage: Path) -> str:
    """Name of the home page."""
    import yaml

    return str(yaml.safe_load((stage / "_toc.yml").read_text(encoding="utf8"))["root"])


def _configure(source: Path, target: Path, ledger: Path) -> None:
    """Copy the configuration with the numbers of the ledger, which a page shows by name.

    The links of a release lead to its tag. A page that asks for a number that is not there makes
    MyST warn, which stops the build.
    """
    import yaml

    config = yaml.safe_load(source.read_text(encoding="utf8"))
    if "repository" in config:
        config["repository"]["branch"] = reference(source.parent, config["repository"]["branch"])
    numbers = report.substitutions(report.read_ledger(ledger))
    config.setdefault("parse", {})["myst_substitutions"] = numbers
    target.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf8")


def reference(root: Path, branch: str) -> str:
    """Where the links of the pages lead: to the release that is built, if it is one.

    Parameters
    ----------
    root : Path
        The checkout.
    branch : str
        What its configuration names.

    Returns
    -------
    str
        The tag of the commit that is checked out, or `branch` if it has none.

    Examples
    --------
    >>> from pathlib import Path
    >>> from claimbook.site.stage import reference
    >>> reference(Path("/"), "main")
    'main'
    """
    command = ["git", "-C", str(root), "describe", "--tags", "--exact-match"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git
        return branch
    return done.stdout.strip() or branch


def _figures(book: Path) -> Iterator[Path]:
    """Pictures that pages include."""
    for suffix in ("svg", "png"):
        yield from (path for path in book.rglob(f"*.{suffix}") if "_static" not in path.parts)


def _copy_vega(target: Path) -> None:
    """Write the scripts that draw figures with parameters, as one file without imports."""
    import vl_convert

    # A module in the strict sense would not load from a folder; its names stay inside all the same.
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    licences = f"/*!\n{_LICENCES.read_text(encoding='utf8')}*/\n"
    target.write_text(f"{licences}(() => {{{bundle}\n}})();\n", encoding="utf8")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def _address(root: Path) -> str:
    """Where the files of a checkout are published; empty if the configuration does not say."""
    import yaml

    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf8"))
    repository = config.get("repository")
    return f"{repository['url']}/blob/{repository['branch']}" if repository else ""


def build(stage: Path, log: Path, *, library: Path | None = None) -> Path:
    """Run Jupyter Book on a staged folder.

    Parameters
    ----------
    stage : Path
        As :func:`assemble` fills it.
    log : Path
        Receives everything it says.
    library : Path, optional
        Source root whose docstrings the API reference shows.

    Returns
    -------
    Path
        Folder of the HTML pages.

    Raises
    ------
    SiteError
        On any warning, with the lines that say why.
    """
    html = stage / "_build" / "html"
    log.write_text("", encoding="utf8")
    shutil.copytree(_STATIC, stage / "book" / "_static", dirs_exist_ok=True)
    book = ["-c", "from jupyter_book.cli.main import main; main()"]
    _call(log, stage, [*book, "config", "sphinx", str(stage)])
    with (stage / "conf.py").open("a", encoding="utf8") as configuration:
        configuration.write(_CONFIGURATION)
        if library:
            configuration.write(api.configuration(library, _address(stage)))
    options = ["--jobs", str(joblib.cpu_count()), "--nitpicky", "--fail-on-warning", "--keep-going"]
    options += ["--doctree-dir", str(html.parent / ".doctrees")]
    _call(log, stage, ["-m", "sphinx", *options, str(stage), str(html)])
    weight.reduce(html)
    if (stage / _DOWNLOADS).is_dir():
        shutil.copytree(stage / _DOWNLOADS, html / "_sources", dirs_exist_ok=True)
    # The page that leads to the first chapter names no icon; browsers would then ask for
    # one that is not there. Its address is the one that people send, so it has the card too.
    index = html / "index.html"
    home = meta.card(html / f"{_home(stage)}.html")
    index.write_text(_ICON + home + index.read_text(encoding="utf8"), encoding="utf8")
    policy.put(html)
    return html


def _call(log: Path, stage: Path, arguments: list[str]) -> None:
    """Run Python and add what it says to a file; raise SiteError if it failed."""
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode("utf8", "replace"))
    with log.open("a", encoding="utf8") as file:
        file.write(text)
    if done.returncode:
        lines = [line for line in text.splitlines() if _PROBLEM.search(line)]
        shown = "\n".join(lines or text.splitlines()[-20:]).replace(f"{stage.resolve()}/", "")
        raise SiteError(f"Jupyter Book failed:\n{shown}\n(all it said: {log})")


def publish(root: Path, html: Path, target: Path) -> None:
    """Check a built site and put it in its place.

    Parameters
    ----------
    root : Path
        Folder of the sources, see :func:`expected`.
    html : Path
        The built site; moved.
    target : Path
        Where it goes; the former site there is removed.

    Raises
    ------
    SiteError
        If a page is missing or a link does not resolve.
    """
    absent = [name for name in expected(root) if not (html / f"{name}.html").is_file()]
    if absent:
        raise SiteError(f"pages missing from the site: {', '.join(absent)}")
    problems = links.check(html)
    if problems:
        raise SiteError("links that do not resolve:\n" + "\n".join(problems))
    former = target.with_name(target.name + ".former")
    shutil.rmtree(former, ignore_errors=True)
    if target.exists():
        target.rename(former)
    html.rename(target)
    shutil.rmtree(former, ignore_errors=True)
    # Jupyter Book wrote this file before the last pages; make compares its time stamp.
    (target / "index.html").touch()


def main(arguments: list[str] | None = None) -> int:
    """Assemble, build and check the site (command line)."""
    parser = argparse.ArgumentParser(prog="python -m claimbook.site.stage", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("."))
    parser.add_argument("--build", type=Path, required=True, help="such as _build/quick")
    options = parser.parse_args(arguments)
    root, folder = options.root, options.build
    start = time.perf_counter()
    try:
        number = len(expected(root))
        print(f"site: {number} pages", flush=True)
        stage = folder / "stage"
        assemble(root, stage, notebooks=folder / "notebooks", ledger=folder / "ledger.json")
        html = build(stage, folder / "site.log", library=root / "lib")
        publish(root, html, folder / "html")
    except (SiteError, ClaimError) as error:
        print(f"\nsite: {error}\n", file=sys.stderr)
        return 1
    print(f"site: {folder / 'html'} done in {time.perf_counter() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
