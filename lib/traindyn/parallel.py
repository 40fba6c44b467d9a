"""Independent repetitions and resumable sweeps on several workers.

Every repetition or case gets its own random stream, made in the calling thread, so
results do not depend on the number of workers. Workers are threads by default (the
simulators release the global interpreter lock); another backend of joblib, Dask or Ray
included, is chosen from outside::

    with joblib.parallel_config(backend="loky"):
        map_replicas(...)

Linear algebra runs on one thread in each worker: nested threads oversubscribe the
cores and slow skinny products down by orders of magnitude.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import joblib
import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from traindyn import _validate

__all__ = ["Progress", "map_ordered", "map_replicas", "reporter", "sweep"]

RNG: TypeAlias = int | np.random.SeedSequence | np.random.Generator
Progress: TypeAlias = bool | str | Callable[[int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ordered(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int | None = None,
    progress: Progress = False,
) -> list[Result]:
    """Call a function on each item; results come in the order of the items.

    Parameters
    ----------
    function : callable
        ``function(item)``.
    items : iterable
    workers : int, optional
        Number of workers (-1: all cores). Default: that of the enclosing
        :func:`joblib.parallel_config`, else one.
    progress : bool, str or callable
        Show a progress bar (a string is its label), or call ``progress(done, total)`` in
        the calling thread after each item.

    Returns
    -------
    list

    Examples
    --------
    >>> map_ordered(abs, [-1, 2, -3], workers=2)
    [1, 2, 3]
    """
    return _run([partial(function, item) for item in items], workers, progress)


def map_replicas(
    function: Callable[[np.random.Generator], Result],
    n: int,
    *,
    rng: RNG,
    workers: int | None = None,
    progress: Progress = False,
) -> list[Result]:
    """Call a function with `n` independent random generators.

    Parameters
    ----------
    function : callable
        ``function(generator)``.
    n : int
        Number of replicas.
    rng : int, SeedSequence or Generator
        Root of the streams; one child is spawned per replica.
    workers, progress
        As in :func:`map_ordered`.

    Returns
    -------
    list
        In the order of the replicas; the same whatever the number of workers.

    Examples
    --------
    >>> draws = map_replicas(lambda rng: float(rng.random()), 3, rng=1)
    >>> draws == map_replicas(lambda rng: float(rng.random()), 3, rng=1, workers=2)
    True
    """
    n = _validate.integer("n", n, least=1)
    children = np.random.default_rng(rng).spawn(n)
    return _run([partial(function, child) for child in children], workers, progress)


def sweep(
    function: Callable[..., Result],
    cases: Iterable[Mapping[str, Any]],
    *,
    rng: RNG,
    store: str | os.PathLike[str] | None = None,
    version: str = "",
    workers: int | None = None,
    progress: Progress = False,
) -> list[Result]:
    """Call a function on every case, keeping finished results on disk.

    Parameters
    ----------
    function : callable
        ``function(**case, rng=generator)``; its result must be picklable to be stored.
    cases : iterable of mapping
        Keyword arguments, all different. The stream of a case depends on the case and
        the root seed only, so a sweep may be extended or reordered without redoing it.
    rng : int, SeedSequence or Generator
        Root of the streams.
    store : path, optional
        Folder for the results, created if missing. A result is looked up under a hash of
        the case, the seed, the qualified name and source of the function, and `version`;
        it is written to a temporary file and renamed, so an interrupted sweep leaves
        whole results only and continues where it stopped.
    version : str
        Change it when something the function calls has changed: only the source of the
        function itself enters the hash.
    workers, progress
        As in :func:`map_ordered`. Stored results count as done.

    Returns
    -------
    list
        One result per case, in order.

    Raises
    ------
    ValueError
        If two cases are equal, or a case has a key ``rng``.

    Examples
    --------
    >>> def scaled_draw(scale, rng):
    ...     return scale * rng.random()
    >>> small, large = sweep(scaled_draw, [{"scale": 1.0}, {"scale": 2.0}], rng=0)
    >>> (small, large) == tuple(sweep(scaled_draw, [{"scale": 1.0}, {"scale": 2.0}], rng=0))
    True
    """
    listed = [dict(case) for case in cases]
    if not listed:
        return []
    hashes = [_case_hash(case) for case in listed]
    if len(set(hashes)) < len(hashes):
        twice = next(i for i, key in enumerate(hashes) if key in hashes[:i])
        raise ValueError(f"cases must be all different, got {listed[twice]!r} twice")
    root = _root(rng)
    tasks: list[Callable[[], Result]] = []
    for case, key in zip(listed, hashes, strict=True):
        seed = _child(root, key)
        path = None if store is None else Path(store) / f"{_key(function, key, seed, version)}.pkl"
        tasks.append(partial(_stored_call, function, case, seed, path))
    if store is not None:
        Path(store).mkdir(parents=True, exist_ok=True)
    return _run(tasks, workers, progress)


def reporter(progress: Progress) -> Callable[[int, int], None]:
    """Turn a `progress` argument into ``report(done, total)``.

    Parameters
    ----------
    progress : bool, str or callable
        False: report nothing. True or a label: a progress bar on standard error. A
        callable is returned as it is.
    """
    if callable(progress):
        return progress
    if progress is False:
        return lambda done, total: None
    label = progress if isinstance(progress, str) else None
    bar: tqdm[None] | None = None

    def report(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(total=total, desc=label)
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return report


def _run(
    tasks: Sequence[Callable[[], Result]], workers: int | None, progress: Progress
) -> list[Result]:
    if workers is not None and (workers == 0 or not isinstance(workers, (int, np.integer))):
        raise ValueError(f"workers must be a non-zero integer or None, got {workers!r}")
    home = os.getpid()
    report = reporter(progress)
    results: list[Result] = []
    # Limits are global to a process: set once around the whole region here, and once in
    # each foreign process by `_pinned`, never per task in a thread, where two tasks that
    # overlap would restore each other's limit.
    with threadpool_limits(limits=1):
        calls = (joblib.delayed(_pinned)(task, home) for task in tasks)
        try:
            parallel = joblib.Parallel(n_jobs=workers, prefer="threads", return_as="generator")
        except ValueError:  # some backends, Ray's among them, can only report at the end
            parallel = joblib.Parallel(n_jobs=workers, prefer="threads")
        for result in parallel(calls):
            results.append(result)
            report(len(results), len(tasks))
    return results


def _pinned(task: Callable[[], Result], home: int) -> Result:
    if os.getpid() != home:
        threadpool_limits(limits=1)
    return task()


def _case_hash(case: dict[str, Any]) -> str:
    if "rng" in case:
        raise ValueError("cases must not have a key 'rng': each case is given its own stream")
    return str(joblib.hash(sorted(case.items()), hash_name="sha1"))


def _root(rng: RNG) -> np.random.SeedSequence:
    # Spawned, so that two sweeps from one Generator do not share their streams.
    root = np.random.default_rng(rng).bit_generator.seed_seq
    if not isinstance(root, np.random.SeedSequence):
        raise ValueError(f"rng must come from a SeedSequence, got {type(root).__name__}")
    return root.spawn(1)[0]


def _child(root: np.random.SeedSequence, key: str) -> np.random.SeedSequence:
    words = tuple(int(key[i : i + 8], 16) for i in range(0, 32, 8))
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *words))


def _key(
    function: Callable[..., Any], case: str, seed: np.random.SeedSequence, version: str
) -> str:
    inner: Any = function
    bound: tuple[Any, ...] = ()
    if isinstance(function, partial):
        inner, bound = function.func, (function.args, sorted(function.keywords.items()))
    try:
        source = inspect.getsource(inner)
    except (OSError, TypeError):  # a callable object, or code typed into an interpreter
        source = ""
    name = f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', repr(type(inner)))}"
    parts = (name, source, str(joblib.hash(bound)), case, repr(seed.entropy), repr(seed.spawn_key))
    return hashlib.sha256("\0".join((*parts, version)).encode()).hexdigest()[:32]


def _stored_call(
    function: Callable[..., Result],
    case: dict[str, Any],
    seed: np.random.SeedSequence,
    path: Path | None,
) -> Result:
    if path is not None and path.exists():
        # A file that cannot be read (another Python, a class that moved) is redone.
        with suppress(OSError, EOFError, ImportError, AttributeError, pickle.UnpicklingError):
            stored: Result = pickle.loads(path.read_bytes())
            return stored
    result = function(**case, rng=np.random.default_rng(seed))
    if path is not None:
        _write_atomically(path, pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL))
    return result


def _write_atomically(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
