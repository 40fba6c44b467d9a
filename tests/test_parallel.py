"""Replicas and resumable sweeps."""

import os
import subprocess
import sys
import threading
import time
from functools import partial
from operator import methodcaller

import joblib
import numpy as np
import psutil
import pytest
import tally
from joblib.parallel import ThreadingBackend
from numba import njit
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

    def __getstate__(self):
        """Say that results depend neither on the counts nor on the interruption."""
        return {}


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


@pytest.mark.fault
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


@pytest.mark.fault
def test_interrupted_write_leaves_no_file(tmp_path, monkeypatch):
    """A write that stops halfway must not be found by the next run."""

    def fail(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        parallel.sweep(scaled, CASES, rng=1, store=tmp_path)
    assert list(tmp_path.iterdir()) == []


class Waiting(Counter):
    """Computes its first case only when the others are there."""

    others = None

    def __call__(self, scale, rng):
        """Wait, or compute."""
        return self.others.wait(30) if scale == 0 else scaled(scale, rng)


def test_a_slow_case_does_not_hold_back_the_results_of_others(tmp_path):
    """A crash would lose all that had been found while the first case was under way."""
    waiting = Waiting()
    waiting.others = threading.Event()

    def watch(done, total):
        if len(list(tmp_path.glob("*.pkl"))) == done == 4:
            waiting.others.set()

    found = parallel.sweep(waiting, CASES, rng=1, store=tmp_path, workers=2, progress=watch)
    assert found[0] is True
    assert found[1:] == parallel.sweep(scaled, CASES, rng=1)[1:]


@pytest.mark.fault
def test_unreadable_results_are_redone(tmp_path):
    """A file cut short by the operating system is recomputed, not trusted."""
    found = parallel.sweep(scaled, CASES, rng=1, store=tmp_path)
    whole = {path.read_bytes() for path in tmp_path.iterdir()}
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:3])
    assert parallel.sweep(scaled, CASES, rng=1, store=tmp_path) == found
    assert {p.read_bytes() for p in tmp_path.iterdir()} == whole


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


OVERLAP = """
import sys, threading
from threadpoolctl import threadpool_info
from traindyn import parallel

def threads():
    return max(pool["num_threads"] for pool in threadpool_info())

inside, ended = threading.Event(), threading.Event()
seen = []

def first(_):
    inside.wait(30)

def second(_):
    inside.set()
    ended.wait(30)
    seen.append(threads())

before = threads()
if sys.argv[1] == "threads":
    early = threading.Thread(target=parallel.map_ordered, args=(first, [0]))
    late = threading.Thread(target=parallel.map_ordered, args=(second, [0]))
    early.start()
    late.start()
    early.join()
else:
    late = threading.Thread(target=parallel.map_ordered, args=(second, [0]))
    parallel.map_ordered(lambda _: (late.start(), inside.wait(30)), [0])
ended.set()
late.join()
parallel.map_ordered(abs, [0])
print(before, *seen, threads())
"""


@pytest.mark.parametrize("where", ["threads", "one in the main thread"])
def test_overlapping_maps_restore_the_threads_of_linear_algebra(where):
    """Whoever ends last must not put back the limit that the other had set."""
    done = subprocess.run(
        [sys.executable, "-c", OVERLAP, where],
        env={**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2", "1", "2"]


SCALE = 2.0


def by_global(scale, rng):
    """Read a global, through a function that reads it."""
    return scaled_by_global(scale)


def scaled_by_global(scale):
    """Read a global."""
    return SCALE * scale


def enclosing(factor):
    """Return a closure."""
    return lambda scale, rng: factor * scale


def defaulting(factor):
    """Return a function with a default."""

    def function(scale, rng, factor=factor):
        return factor * scale

    return function


class Scaled:
    """Scales by what it holds."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, scale, rng):
        """Scale."""
        return self.factor * scale

    def method(self, scale, rng):
        """Scale."""
        return self.factor * scale


TWICE, THRICE = (lambda scale, rng: 2.0 * scale), (lambda scale, rng: 3.0 * scale)


@pytest.mark.parametrize(
    "make",
    [
        enclosing,
        defaulting,
        Scaled,
        lambda factor: Scaled(factor).method,
        lambda factor: partial(Scaled.method, Scaled(factor)),
        lambda factor: partial(defaulting(0.0), factor=factor),
        lambda factor: TWICE if factor == 2.0 else THRICE,
        lambda factor: njit(TWICE) if factor == 2.0 else njit(THRICE),
    ],
    ids=["closure", "default", "object", "method", "of-partial", "partial", "line", "compiled"],
)
def test_results_of_another_function_are_never_returned(tmp_path, make):
    """Functions of one name and one source may compute different things."""
    for factor in (2.0, 3.0, 2.0):
        found = parallel.sweep(make(factor), CASES, rng=1, store=tmp_path)
        assert found == [factor * case["scale"] for case in CASES]
    assert len(list(tmp_path.iterdir())) == 2 * len(CASES)


def test_a_changed_global_is_another_function(tmp_path, monkeypatch):
    """Neither the name nor the source of the function shows it."""
    for factor in (2.0, 3.0, 2.0):
        monkeypatch.setattr(f"{__name__}.SCALE", factor, raising=True)
        found = parallel.sweep(by_global, CASES, rng=1, store=tmp_path)
        assert found == [factor * case["scale"] for case in CASES]
    assert len(list(tmp_path.iterdir())) == 2 * len(CASES)


def test_streams_depend_on_values_and_not_on_identity():
    """Equal cases must draw equal numbers, whoever holds the arrays in them."""

    def first(grid, other, rng):
        return rng.random()

    ones = np.ones(3)
    names = "same", "".join(["sa", "me"])
    cases = [
        {"grid": ones, "other": (ones, names[0], names[0])},
        {"grid": np.ones(3), "other": (np.ones(3, ">f8"), names[0], names[1])},
        {"grid": np.ones((3, 2))[:, 0], "other": (ones.copy(), names[1], names[0])},
    ]
    assert len({parallel.sweep(first, [case], rng=1)[0] for case in cases}) == 1
    other = {"grid": ones, "other": (2 * ones, names[0], names[0])}
    assert parallel.sweep(first, [other], rng=1) != parallel.sweep(first, [cases[0]], rng=1)


@pytest.mark.fault
def test_damaged_results_are_made_again(tmp_path):
    """One flipped bit of a number in a pickle gives another number without a word."""
    found = parallel.sweep(scaled, CASES, rng=1, store=tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.iterdir()}
    rng = np.random.default_rng(0)
    for _ in range(200):
        for path, content in whole.items():
            damaged = bytearray(content)
            kind = rng.integers(3)
            place = int(rng.integers(len(damaged)))
            if kind == 0:
                damaged[place] ^= 1 << int(rng.integers(8))
            elif kind == 1:
                del damaged[place:]
            else:
                damaged = bytearray(rng.choice([value for value in whole.values()]))
            path.write_bytes(bytes(damaged))
            tally.fault()
        assert parallel.sweep(scaled, CASES, rng=1, store=tmp_path) == found
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == whole


def test_what_cannot_be_told_by_its_value_is_refused(tmp_path):
    """Such a case or function could be taken for another."""
    with pytest.raises(ValueError, match=r"cases must consist of values .* cannot pickle"):
        parallel.sweep(scaled, [{"scale": threading.Lock()}], rng=1)
    lock = threading.Lock()
    with pytest.raises(ValueError, match=r"function must depend on values .* cannot pickle"):
        parallel.sweep(lambda scale, rng: lock, CASES, rng=1, store=tmp_path)


KILLED = """
import os, sys, time, joblib
from traindyn import parallel

def call(_):
    print(os.getpid(), flush=True)
    time.sleep(60)

with joblib.parallel_config(backend="loky", n_jobs=2):
    parallel.map_ordered(call, range(4))
"""


@pytest.mark.fault
def test_workers_end_with_the_program_that_started_them():
    """They would finish their calls, and wait five minutes for others."""
    program = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    pids = [int(program.stdout.readline()) for _ in range(2)]
    program.terminate()
    program.communicate()
    deadline = time.monotonic() + 30
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(psutil.pid_exists, pids))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_cannot_end_the_program(workers):
    """``sys.exit`` in a call would end the program, a worker or nothing."""

    def leave(_):
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match=r"a call asked its process to exit: SystemExit\(3\)"):
        parallel.map_ordered(leave, range(3), workers=workers)


@pytest.mark.parametrize("workers", [None, 1, 2])
@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
def test_the_end_of_an_iterator_in_a_call_is_an_error_of_it(kind, workers):
    """It ended the generator of the results, whose own error hid where it came from."""

    def last(_):
        raise kind("nothing left")

    with pytest.raises((RuntimeError, kind), match="nothing left"):
        parallel.map_ordered(last, range(3), workers=workers)


@pytest.mark.parametrize("store", ["a file", "a file/below", "a\0b", 3])
def test_a_store_that_is_no_folder_is_named(tmp_path, store):
    """The error of the file system named a path, and not the argument."""
    (tmp_path / "a file").touch()
    given = str(tmp_path / store) if isinstance(store, str) else store
    with pytest.raises(ValueError, match="store must be a folder, or not exist yet, got "):
        parallel.sweep(lambda x, rng: x, [{"x": 1}], rng=0, store=given)
