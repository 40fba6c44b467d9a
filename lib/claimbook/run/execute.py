"""Run one chapter as a notebook: jupytext reads it, papermill executes it.

The executed notebook appears under its name only when every cell succeeded, so an
interrupted or failed run leaves nothing that looks like a result. Nothing in it depends
on when, where or by whom it was run (cell ids are numbered, papermill's times and paths
are dropped) except ``seconds``, ``workers`` and ``memory_mib`` in ``metadata.claimbook``, which are
removed before publishing.

A cell fails the run when it raises, and also when it writes to standard error: that is
where Python puts warnings, and a published chapter has none.
"""

from __future__ import annotations

import argparse
import ast
import logging
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import psutil

from claimbook import files
from claimbook.run import caches, stamps

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from traitlets.config import Config

PROFILES = ("quick", "paper")
PARAMETERS = ("profile", "seed")

#: Seconds between two progress lines.
_PATIENCE = 10.0
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class ChapterError(Exception):
    """A chapter that cannot be read, or a cell of it that failed."""


def environment(build: Path) -> dict[str, str]:
    """Environment variables a chapter runs under, for the same numbers everywhere.

    Linear algebra uses one thread: the number of threads changes the last bits of sums,
    and threads inside the workers of a chapter slow each other down.
    Variables of the thread libraries that are already set are kept.

    Parameters
    ----------
    build : Path
        Folder for caches.

    Returns
    -------
    dict
    """
    caches = build.resolve()
    for name in ("ipython", "matplotlib", "numba"):
        (caches / name).mkdir(parents=True, exist_ok=True)
    threads = {key: os.environ.get(key, "1") for key in stamps.THREADS}
    return {
        **threads,
        "NUMBA_CACHE_DIR": str(caches / "numba"),
        "IPYTHONDIR": str(caches / "ipython"),
        "MPLCONFIGDIR": str(caches / "matplotlib"),
        # A figure reaches the page only as an output that is published with its description.
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
        "JUPYTER_PREFER_ENV_PATH": "1",
        # The kernel's debugger otherwise warns about frozen modules on every start.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def execute(
    source: Path,
    output: Path,
    *,
    profile: str = "quick",
    seed: int = 1,
    build: Path = Path("_build"),
    root: Path = Path("lib"),
    stamp: Path | None = None,
    report: Callable[[str], None] = print,
) -> float:
    """Run a chapter and write the executed notebook.

    Parameters
    ----------
    source : Path
        MyST text notebook with one cell tagged ``parameters`` that sets `profile` and
        `seed`. Cells run in its folder.
    output : Path
        Notebook to write (``.ipynb``); replaced only by a complete run.
    profile : {"quick", "paper"}
        Whether with reduced sizes or with those of the source.
    seed : int
        Root seed of the chapter.
    build : Path
        Folder for caches of compiled code.
    root : Path
        Source root of the library; the notebook records a digest of what the chapter reaches.
    stamp : Path, optional
        Stamp of the chapter, which saves reading the library for that digest, and looking for
        damaged caches: a build does so when it brings the stamps up to date.
    report : callable
        Receives lines of progress.

    Returns
    -------
    float
        Elapsed seconds.

    Raises
    ------
    ChapterError
        If the chapter is malformed or a cell fails; the message shows the cell.
    ValueError
        If `profile` is not known.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile must be one of {PROFILES}, got {profile!r}")
    notebook = read(source)
    report(f"{source}: running {len(notebook.cells) + 1} cells, profile {profile}, seed {seed}")
    if stamp:
        library = stamps.recorded(stamp, root)
    else:
        library = stamps.library(source.read_text(encoding="utf8"), root)
    start = time.perf_counter()
    with _environment(environment(build)):
        for path in [] if stamp else caches.mend(os.environ):
            report(f"{path}: damaged, to be made again")
        executed = _run(notebook, source, {"profile": profile, "seed": seed}, report)
    seconds = time.perf_counter() - start
    _refuse_warnings(executed, source)
    _publishable(executed)
    executed.metadata["claimbook"] = {
        "profile": profile,
        "seed": seed,
        "seconds": round(seconds, 1),
        "workers": joblib.cpu_count(),
        **_memory(),
        "library": library,
    }
    _write(executed, output)
    output.with_suffix(".failed").unlink(missing_ok=True)
    report(f"{source}: done in {seconds:.1f} s")
    return seconds


def _memory() -> dict[str, int]:
    """Return the most that one process of the chapter held, in MiB, where the system counts it.

    It counts for all processes that this one has started: of the first chapter it runs this is
    right, of a later one a bound.
    """
    if sys.platform == "win32":
        return {}
    import resource

    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"memory_mib": round(most / (1024**2 if sys.platform == "darwin" else 1024))}


def read(source: Path) -> NotebookNode:
    """Read a text notebook and check that it can be run with parameters.

    Parameters
    ----------
    source : Path
        MyST text notebook.

    Returns
    -------
    NotebookNode

    Raises
    ------
    ChapterError
        If there is no kernel specification with a language, or not exactly one cell
        tagged ``parameters`` that sets `profile` and `seed`.
    """
    import jupytext

    notebook: NotebookNode = jupytext.read(source, fmt="md:myst")
    kernel = notebook.metadata.get("kernelspec", {})
    if not (kernel.get("name") and kernel.get("language")):
        raise ChapterError(f"{source}: the kernelspec must have a name and a language")
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise ChapterError(f"{source}: {len(tagged)} cells are tagged `parameters`, expected one")
    missing = set(PARAMETERS) - _assigned(tagged[0].source)
    if missing:
        raise ChapterError(
            f"{source}: the cell tagged `parameters` must set {', '.join(sorted(missing))}"
        )
    return notebook


def _assigned(source: str) -> set[str]:
    """Names that the statements of a cell assign to."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _run(
    notebook: NotebookNode, source: Path, parameters: dict[str, Any], report: Callable[[str], None]
) -> NotebookNode:
    """Execute in memory, in the folder of the source, reporting every few seconds."""
    import papermill
    from nbclient.exceptions import DeadKernelError

    start = last = time.perf_counter()
    others = set(psutil.Process().children())

    def progress(cell_index: int, **_: object) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= _PATIENCE:
            last = now
            report(
                f"{source}: cell {cell_index + 1} of {len(notebook.cells) + 1} done "
                f"after {now - start:.0f} s"
            )

    try:
        with _kernel_config() as config, _interruptible(others):
            executed: NotebookNode = papermill.execute_notebook(
                notebook,
                None,
                parameters=parameters,
                kernel_name=notebook.metadata.kernelspec.name,
                progress_bar=False,
                cwd=source.parent,
                on_cell_executed=progress,
                config=config,
                # Otherwise the kernel reports, now and then, that it was asked to stop.
                extra_arguments=["--log-level=CRITICAL"],
            )
            return executed
    except papermill.PapermillExecutionError as error:
        trace = _ANSI.sub("", "\n".join(error.traceback)) or f"{error.ename}: {error.evalue}"
        raise ChapterError(
            _failure(source, error.cell_index, error.source, "failed", trace)
        ) from None
    except DeadKernelError:
        raise ChapterError(
            f"{source}: the Python process of the chapter died (out of memory?)"
        ) from None


@contextmanager
def _kernel_config() -> Iterator[Config]:
    """Talk to the kernel through sockets in a private folder where the system has them.

    Ports, the default, are shared by the whole machine: two chapters started at once may
    pick the same, and anybody can listen.
    """
    from traitlets.config import Config

    if sys.platform == "win32":
        yield Config()
        return
    # A short name: the path of a socket has at most about 100 characters.
    with tempfile.TemporaryDirectory(prefix="td-") as folder:
        # The file that says so lies there too, and goes with the folder whatever happens.
        places = {"ip": f"{folder}/k", "connection_file": f"{folder}/kernel.json"}
        yield Config({"KernelManager": {"transport": "ipc", **places}})


@contextmanager
def _interruptible(others: Collection[psutil.Process]) -> Iterator[None]:
    """End a kernel that is still starting when the run is interrupted, which nothing else does.

    What the interrupt has cut off goes on while a kernel is shut down, and would report twice
    that it died: at once in the log of papermill, and at the end in that of the event loop.
    """
    from jupyter_core.utils import ensure_event_loop

    log = logging.getLogger("papermill")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    except KeyboardInterrupt:
        ensure_event_loop().set_exception_handler(lambda *_: None)
        for child in psutil.Process().children():
            if child not in others:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
        raise
    finally:
        log.setLevel(level)


def _refuse_warnings(notebook: NotebookNode, source: Path) -> None:
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                what = "wrote to standard error (a warning?)"
                raise ChapterError(_failure(source, index, cell.source, what, output.text))


def _failure(source: Path, index: int, cell: str, what: str, details: str) -> str:
    """Message that shows a cell, where it stands and what happened."""
    text = source.read_text(encoding="utf8")
    place = text.find(cell)
    where = f"{source}:{text.count(chr(10), 0, place) + 1}" if place >= 0 else str(source)
    code = "\n".join(f"    | {row}" for row in cell.splitlines())
    return f"{where}: cell {index + 1} {what}\n{code}\n\n{details.strip()}"


def _publishable(notebook: NotebookNode) -> None:
    """Drop what depends on when and where the notebook ran; hide the default parameters."""
    notebook.metadata.pop("papermill", None)
    for index, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{index + 1}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]


def _write(notebook: NotebookNode, output: Path) -> None:
    """Write under another name, then rename: the name never holds half a notebook."""
    import nbformat

    files.write(output, f"{nbformat.writes(notebook)}\n".encode())


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Run one chapter (command line)."""
    parser = argparse.ArgumentParser(prog="python -m claimbook.run.execute", description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--profile", choices=PROFILES, default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=Path("_build"), help="folder for caches")
    parser.add_argument("--root", type=Path, default=Path("lib"), help="source of the library")
    parser.add_argument("--stamp", type=Path, help="of the chapter, see claimbook.run.stamps")
    options = parser.parse_args(arguments)
    # make stops its children with SIGTERM; the kernel has to be shut down all the same.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        execute(
            options.source,
            options.output,
            profile=options.profile,
            seed=options.seed,
            build=options.build,
            root=options.root,
            stamp=options.stamp,
            report=lambda line: print(line, flush=True),
        )
    except ChapterError as error:
        print(f"\n{error}\n", file=sys.stderr)
        if os.environ.get("CLAIMBOOK_TALLY"):
            # The tally of seeds counts a chapter that ran and came to no end, too.
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.with_suffix(".failed").write_text(f"{error}\n", encoding="utf8")
        return 1
    except KeyboardInterrupt:
        print(f"{options.source}: interrupted, nothing written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
