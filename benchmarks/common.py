"""What all benchmarks share: a row of results, the clock, a process of one's own."""

from __future__ import annotations

import importlib.util
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]


def row(
    group: str, name: str, value: float, unit: str, accuracy: str, ratio: float | None = None
) -> Row:
    """One line of the page *Performance*.

    Parameters
    ----------
    group, name : str
        Table and line.
    value : float
        What was measured.
    unit : str
        Such as ``s`` or ``MB``.
    accuracy : str
        How exact it is, and notes.
    ratio : float, optional
        To our time, above one when slower; left out where it makes no sense.
    """
    return {
        "group": group,
        "name": name,
        "value": value,
        "unit": unit,
        "accuracy": accuracy,
        "ratio": ratio,
    }


def best(work: Callable[[], Any], steps: int, repeats: int = 5) -> float:
    """Least time per step over repeats, in microseconds."""
    return 1e6 * min(seconds(work) for _ in range(repeats)) / steps


def seconds(work: Callable[[], Any]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def available(module: str) -> bool:
    """Whether a comparison can be made here."""
    return importlib.util.find_spec(module) is not None


def peak() -> float:
    """Peak memory of this process so far, in MB.

    Unlike ``ru_maxrss``, Linux's own figure leaves out what the process that started this one had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for entry in status.read_text(encoding="utf8").splitlines():
            if entry.startswith("VmHWM:"):
                return int(entry.split()[1]) / 2**10
    unit = 1 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a fresh process, so that peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)
