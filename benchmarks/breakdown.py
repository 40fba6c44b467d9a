"""Where the seconds go: sample every process of a build or of the tests, and name its work.

``make profile`` runs the book from nothing, and then the tests, under py-spy, which looks at the
stack of each busy thread of each process five times a second. A sample belongs to the innermost
frame that names a kind of work, and to the chapter or the folder of tests that it was made for.
The page *Where the time goes* of the book shows the committed results.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import psutil

from claimbook import files

RESULTS = Path(__file__).with_name("breakdown.json")
#: Samples a second of each thread.
RATE = 5
#: Kinds of work, each with what the innermost frame that decides looks like.
WORK = {
    "compilation": (
        r"\(numba/(?!cuda)|llvmlite/|\(jax/_src/(compiler|compilation_cache|core|linear_util"
        r"|pjit|api|dispatch|interpreters/(mlir|partial_eval|ad|batching))\b"
        r"|\(jaxlib/mlir"
    ),
    "start and imports": r"importlib\._bootstrap|\((ipykernel_launcher|traitlets|runpy)",
    "drawing": r"\((matplotlib|PIL|fontTools|mpl_toolkits)/|traindyn/(figures|interactive)\.py",
    "linear algebra": r"\((numpy/linalg|scipy/(linalg|sparse))/|traindyn/linalg\.py",
    "theory": (
        r"\(scipy/(integrate|optimize|special|stats|interpolate)/"
        r"|traindyn/(spectra/(?!film|network)|laws|effective|dmft|gaussian|kernels/(?!training|flow))"
        r"|traindyn/(relu|diffusion)\.py"
    ),
    "checks and ledger": r"claimbook/(?!run|site|pages)",
    "simulation": r"\((traindyn|companion|jax|jaxlib|joblib|optax)/",
    "pages": r"claimbook/(site|pages)|\((sphinx|docutils|jupyter_book|myst_nb|jinja2)/",
    "notebook": r"\((papermill|nbclient|nbformat|jupyter_client|jupytext|zmq|asyncio|IPython)/"
    r"|claimbook/run",
}
#: Innermost frames of threads that wait.
_WAITS = re.compile(r"\((selectors|threading|subprocess|queue)\.py|\((zmq|ipykernel/(io|parent))")
_RULES = [(name, re.compile(pattern)) for name, pattern in WORK.items()]
_CHAPTER = re.compile(r"claimbook\.run\.execute \S*book/(\S+)\.md")
_TESTS = re.compile(r"\(tests/(\w+)")


def work(frames: Iterable[str]) -> str:
    """Kind of work of one stack, whose innermost frame comes last."""
    for frame in reversed(list(frames)):
        for name, pattern in _RULES:
            if pattern.search(frame):
                return name
    return "other"


def place(stack: str, frames: list[str]) -> str:
    """Chapter or folder of tests that a stack belongs to."""
    chapter = _CHAPTER.search(stack)
    if chapter:
        return chapter[1]
    folders = (_TESTS.search(frame) for frame in frames)
    return next((f"tests/{found[1]}" for found in folders if found), "all others")


def table(raw: str, rate: int = RATE) -> dict[str, dict[str, float]]:
    """Busy seconds by place and kind of work, from collapsed stacks with their counts."""
    seconds: dict[str, Counter[str]] = {}
    # The command of a process may have several lines.
    for stack, count in re.findall(r"(.+?) (\d+)$", raw, re.DOTALL | re.MULTILINE):
        frames = [frame for frame in stack.split(";") if not frame.startswith("process ")]
        if not frames or _WAITS.search(frames[-1]):
            continue
        where = seconds.setdefault(place(stack, frames), Counter())
        where[work(frames)] += int(count) / rate
    return {where: dict(found) for where, found in seconds.items()}


def sample(command: list[str], raw: Path) -> dict[str, Any]:
    """Run a command with all that it starts under py-spy: seconds by the clock, and of processors.

    The latter count py-spy too, and what it could not read.
    """
    raw.parent.mkdir(parents=True, exist_ok=True)
    # py-spy follows what a Python process starts; make is none.
    call = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    recorder = [str(Path(sys.executable).with_name("py-spy")), "record", "--subprocesses"]
    recorder += ["--nonblocking", "--rate", str(RATE), "--format", "raw", "--output", str(raw)]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*recorder, "--", sys.executable, "-c", call, *command], check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    places = table(raw.read_text(encoding="utf8"))
    if not places:
        raise SystemExit(f"no sample of {' '.join(command)} in {raw}: nothing was kept")
    return {"wall": round(wall, 1), "processors": round(busy, 1), "places": places}


def main() -> None:
    """Sample one run and put its table among the results (command line)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="what is run, such as 'quick book': heads its table")
    parser.add_argument("--raw", type=Path, default=Path("_build", "breakdown.txt"))
    parser.add_argument("command", nargs="+", help="after --")
    options = parser.parse_args()
    found = sample(options.command, options.raw)
    results = json.loads(RESULTS.read_text(encoding="utf8")) if RESULTS.exists() else {"runs": {}}
    results["kinds"] = [*WORK, "other"]
    results["runs"][options.run] = {
        "date": date.today().isoformat(),
        "cores": psutil.cpu_count(),
        "wall": found["wall"],
        "processors": found["processors"],
        "places": {
            where: {kind: round(seconds, 1) for kind, seconds in sorted(kinds.items())}
            for where, kinds in sorted(found["places"].items())
        },
    }
    files.write(RESULTS, f"{json.dumps(results, indent=1, ensure_ascii=False)}\n".encode())


if __name__ == "__main__":
    main()
