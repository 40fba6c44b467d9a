"""Replicas and resumable sweeps."""

import os
import pickle
import threading
from functools import partial
from operator import methodcaller

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
from threadpoolctl import threadpool_info

from traindyn import parallel


def draw(rng):
    """One normal."""
    return float(rng.standard_normal())


def scaled(scale, rng):
    """Depend on both case and stream."""
    return scale + float(rng.random())


def blas_threads(_):
    """Largest number of threads any linear-algebra library may use here."""
    np.eye(2) @ np.eye(2)
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


class Counter:
    """Counts its calls, and fails like an interruption at a chosen case."""

    def __init__(self, interrupt_at=None):
        self.calls = []
        self.interrupt_at = interrupt_at

    def __call__(self, scale, rng):
        """Count, then compute."""
        if scale == self.interrupt_at:
            raise KeyboardInterrupt
        self.calls.append(scale)
        return scaled(scale, rng)


CASES = [{"scale": float(s)} for s in range(5)]


def test_replicas_do_not_depend_on_the_number_of_workers():
    """A stream shared between threads would make results depend on scheduling."""
    one = parallel.map_replicas(draw, 20, rng=3, workers=1)
    assert one == parallel.map_replicas(draw, 20, rng=3, workers=2)
    assert len(set(one)) == 20
    assert one != parallel.map_replicas(draw, 20, rng=4)


class ListOnly(ThreadingBackend):
    """A backend that, like Ray's, cannot hand out results one by one."""

    supports_return_generator = False


@pytest.mark.parametrize("backend", ["loky", "list-only"])
def test_replicas_agree_across_backends(backend):
    """Processes pickle the generators, and some backends return only whole lists."""
    joblib.register_parallel_backend("list-only", ListOnly)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = parallel.map_replicas(methodcaller("standard_normal"), 3, rng=3)
    assert found == parallel.map_replicas(draw, 20, rng=3)[:3]


def test_shared_memory_stays_in_this_process():
    """Other processes would each get a copy of the same large arrays."""
    mine = os.getpid()
    with joblib.parallel_config(backend="loky", n_jobs=2):
        shared = parallel.map_ordered(lambda _: os.getpid(), range(4), shared_memory=True)
        assert set(shared) == {mine}
        assert mine not in parallel.map_ordered(lambda _: os.getpid(), range(4))


def test_a_generator_gives_new_streams_at_each_call():
    """Two experiments on one Generator must not repeat each other."""
    rng = np.random.default_rng(0)
    assert parallel.map_replicas(draw, 3, rng=rng) != parallel.map_replicas(draw, 3, rng=rng)


def test_linear_algebra_is_pinned_inside_and_restored_outside():
    """Nested threads oversubscribe; a limit that stays would slow the caller."""
    outside = blas_threads(None)
    assert set(parallel.map_ordered(blas_threads, range(4), workers=2)) == {1}
    assert blas_threads(None) == outside


def test_order_and_progress():
    """Results come in order, and progress counts every item once."""
    seen = []
    found = parallel.map_ordered(
        lambda i: i**2, range(6), workers=2, progress=lambda done, total: seen.append((done, total))
    )
    assert found == [0, 1, 4, 9, 16, 25]
    assert seen == [(i, 6) for i in range(1, 7)]


def test_progress_bar_is_written_to_standard_error(capsys):
    """A label asks for a bar; the default is silent."""
    parallel.map_ordered(abs, [1, 2], progress="squares")
    assert "squares: 100%" in capsys.readouterr().err
    parallel.map_ordered(abs, [1, 2])
    assert capsys.readouterr().err == ""


def test_errors_of_a_task_reach_the_caller():
    """An error in a worker must not be swallowed."""
    with pytest.raises(ZeroDivisionError):
        parallel.map_ordered(lambda x: 1 / x, [1, 0], workers=2)


@pytest.mark.parametrize("workers", [0, 1.5])
def test_bad_worker_counts(workers):
    """The error names the argument."""
    with pytest.raises(ValueError, match="workers must be"):
        parallel.map_ordered(abs, [1], workers=workers)


def test_sweep_stores_and_reuses(tmp_path):
    """A second sweep must read, not recompute, and give the same numbers."""
    first = Counter()
    found = parallel.sweep(first, CASES, rng=1, store=tmp_path / "s")
    second = Counter()
    assert parallel.sweep(second, CASES, rng=1, store=tmp_path / "s", workers=2) == found
    assert (len(first.calls), len(second.calls)) == (5, 0)
    assert parallel.sweep(Counter(), CASES, rng=1) == found


def test_interrupted_sweep_leaves_whole_files_and_continues(tmp_path):
    """An interruption keeps the finished cases and nothing half-written."""
    with pytest.raises(KeyboardInterrupt):
        parallel.sweep(Counter(interrupt_at=3.0), CASES, rng=1, store=tmp_path)
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 3
    assert {path.suffix for path in kept} == {".pkl"}
    rest = Counter()
    found = parallel.sweep(rest, CASES, rng=1, store=tmp_path)
    assert rest.calls == [3.0, 4.0]
    assert found == parallel.sweep(Counter(), CASES, rng=1)


def test_interrupted_write_leaves_no_file(tmp_path, monkeypatch):
    """A write that stops halfway must not be found by the next run."""

    def fail(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        parallel.sweep(scaled, CASES, rng=1, store=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_slow_case_does_not_hold_back_the_results_of_others(tmp_path):
    """A crash would lose all that had been found while the first case was under way."""
    others = threading.Event()

    def case(scale, rng):
        return others.wait(30) if scale == 0 else scaled(scale, rng)

    def watch(done, total):
        if len(list(tmp_path.glob("*.pkl"))) == done == 4:
            others.set()

    found = parallel.sweep(case, CASES, rng=1, store=tmp_path, workers=2, progress=watch)
    assert found[0] is True
    assert found[1:] == parallel.sweep(scaled, CASES, rng=1)[1:]


def test_unreadable_results_are_redone(tmp_path):
    """A file cut short by the operating system is recomputed, not trusted."""
    found = parallel.sweep(scaled, CASES, rng=1, store=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:3])
    assert parallel.sweep(scaled, CASES, rng=1, store=tmp_path) == found
    assert all(isinstance(pickle.loads(p.read_bytes()), float) for p in tmp_path.iterdir())


def test_sweep_may_be_reordered_and_extended(tmp_path):
    """The stream of a case belongs to the case, not to its place in the list."""
    found = dict(zip(range(5), parallel.sweep(scaled, CASES, rng=1, store=tmp_path), strict=True))
    longer = [{"scale": 9.0}, *CASES[::-1]]
    again = parallel.sweep(scaled, longer, rng=1, store=tmp_path)
    assert again[1:] == [found[i] for i in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    "other",
    [
        {"rng": 2},
        {"version": "2"},
        {"function": partial(lambda scale, rng, extra: 7.0, extra=1)},
    ],
)
def test_another_seed_version_or_function_is_another_result(tmp_path, other):
    """Reading a result computed under other conditions would be silently wrong."""
    parallel.sweep(scaled, CASES, rng=1, store=tmp_path)
    options = {"function": scaled, "rng": 1, "version": ""} | other
    function = options.pop("function")
    parallel.sweep(function, CASES, store=tmp_path, **options)
    assert len(list(tmp_path.iterdir())) == 10


def test_bad_cases():
    """Equal cases would share a stream; a case may not bring its own."""
    with pytest.raises(ValueError, match="all different"):
        parallel.sweep(scaled, [CASES[0], CASES[0]], rng=1)
    with pytest.raises(ValueError, match="'rng'"):
        parallel.sweep(scaled, [{"scale": 1.0, "rng": 3}], rng=1)
    assert parallel.sweep(scaled, [], rng=1) == []
