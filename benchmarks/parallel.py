"""What it costs to hand out calls: threads, processes and a cluster, beside joblib and Dask.

The calls do nothing, so that all of the time is the handing out; a sweep of calls of about ten
milliseconds shows what is left of it. Everything must return the same before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import joblib
import numpy as np
from common import Row, available, row, seconds

from traindyn import parallel

GROUP = "Handing out calls"
CALLS, WORKERS = 1000, 2
LONG, SIZE = 100, 250

Work = Callable[[], list[Any]]


def nothing(item: int) -> int:
    """Do nothing."""
    return item


def spectrum(generator: np.random.Generator) -> float:
    """Take about ten milliseconds."""
    return float(np.linalg.eigvalsh(generator.standard_normal((SIZE, SIZE)))[-1])


def ours(backend: str, workers: int = WORKERS) -> list[int]:
    """`map_ordered` with a backend of joblib."""
    with joblib.parallel_config(backend=backend, n_jobs=workers):
        return parallel.map_ordered(nothing, range(CALLS))


def plain(backend: str) -> list[int]:
    """Joblib itself."""
    calls = (joblib.delayed(nothing)(i) for i in range(CALLS))
    return cast(list[int], joblib.Parallel(WORKERS, backend=backend)(calls))


@contextmanager
def cluster() -> Iterator[Any]:
    """Connect to two worker processes, and let our calls go there as well."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as local,
        Client(local, set_as_default=False) as client,
        parallel.cluster(local.scheduler_address),
    ):
        yield client


def best(work: Work, expected: list[Any]) -> float:
    """Least time of three, in microseconds per call, after a first one that is checked."""
    if work() != expected:
        raise AssertionError("calls came back different or out of order")
    return 1e6 * min(seconds(work) for _ in range(3)) / len(expected)


def measure() -> list[Row]:
    """All rows of this benchmark."""
    expected = list(range(CALLS))
    what = f"{CALLS} calls that do nothing"
    order = "in order, one thread for linear algebra, results as they come"
    loop = best(lambda: [nothing(i) for i in range(CALLS)], expected)
    rows = [row(GROUP, f"{what}: loop", loop, "µs per call", "")]
    for backend, name in (("threading", "threads"), ("loky", "processes")):
        mine = best(partial(ours, backend), expected)
        theirs = best(partial(plain, backend), expected)
        rows += [
            row(GROUP, f"{what}: {WORKERS} {name}", mine, "µs per call", order, 1.0),
            row(GROUP, f"{what}: {WORKERS} {name}, joblib", theirs, "µs per call", "in order",
                theirs / mine),
        ]  # fmt: skip
    long = f"{LONG} spectra of {SIZE} x {SIZE} matrices"
    repeat = partial(parallel.map_replicas, spectrum, LONG, rng=1)
    found = repeat()
    alone = best(partial(repeat, workers=1), found)
    rows += [
        row(GROUP, f"{long}: one thread", alone, "µs per call", "", 1.0),
        row(GROUP, f"{long}: {WORKERS} threads", best(partial(repeat, workers=WORKERS), found),
            "µs per call", "same bytes"),
    ]  # fmt: skip
    if available("distributed"):
        with cluster() as client:
            mine = best(lambda: parallel.map_ordered(nothing, range(CALLS)), expected)
            theirs = best(
                lambda: client.gather(client.map(nothing, range(CALLS), pure=False)), expected
            )
            rows += [
                row(GROUP, f"{what}: Dask, {WORKERS} processes", mine, "µs per call",
                    f"{order}, kept if a worker or the scheduler dies", 1.0),
                row(GROUP, f"{what}: Dask, map and gather", theirs, "µs per call",
                    "in order, at the end", theirs / mine),
                row(GROUP, f"{long}: Dask, {WORKERS} processes", best(repeat, found),
                    "µs per call", "same bytes"),
            ]  # fmt: skip
    return rows
