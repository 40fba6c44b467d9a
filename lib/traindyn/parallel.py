"""Independent repetitions and resumable sweeps, on this machine or on a cluster.

Every repetition or case gets its own random stream, made in the calling thread, so results
depend neither on the number of workers nor on where these run. Workers are threads by default
(the simulators release the global interpreter lock). Another backend of joblib, processes for
many short steps in Python, say, is chosen from outside::

    with joblib.parallel_config(backend="loky", n_jobs=-1):
        map_replicas(...)

and a Dask cluster by naming the address of its scheduler, for a whole program or book in the
environment (``TRAINDYN_CLUSTER=tcp://host:8786 make book``) or for some calls::

    with parallel.cluster("tcp://host:8786"):
        sweep(...)

The cluster then takes every call that does not ask for ``workers=1`` or shared memory, whatever
is configured for this machine. Functions and cases travel there by cloudpickle, those of a
notebook included; results come back as they are found, and only this process reads and writes
files, so that no file system need be shared.

Linear algebra runs on one thread in each worker: nested threads oversubscribe the
cores and slow skinny products down by orders of magnitude. No compiled kernel here has threads
of its own. So a cluster is best made of workers with one thread, one per core (``dask worker
tcp://host:8786 --nworkers 64 --nthreads 1``), that share a folder for compiled code
(``NUMBA_CACHE_DIR``, ``JAX_COMPILATION_CACHE_DIR``). Results agree to the last bit on processors
of one kind; linear algebra has other kernels on another.

Sizes and costs on a thousand cores. Measured per call, in processor time, with Dask 2026.8 on
two cores of a Xeon: 0.6 ms here, 1 ms in the scheduler, 2 ms in the worker; 8 and 5 kB of memory
here and in the scheduler until the result is there; 0.5 kB on the wire for a stream or 0.3 kB for a
small case, and the function itself, a few kB, or once per worker above 100 kB. A scheduler thus
hands out a thousand calls a second at most: calls of 1 s keep a thousand cores busy, calls of 10 s
do so without noticing the cost. Against that:

- gradient descent at d = 800 up to time 800, with 6 samples per dimension, takes 0.9 s where it
  does not succeed, the worst case (a replica of the success probabilities of `thresholds`); a point
  of 24 replicas, 21 s, is the right size for a call, and a diagram of 10^4 points is at most 58
  core hours: 4 minutes on a thousand cores, 10 s of them for handing out;
- the time of the last merger of 32 tokens takes 0.005 s (a point of the plane of `particles`, nine
  flows, 0.04 s): 10^4 points are 7 minutes on one core, and not worth sending; on a cluster, make a
  row of the plane one case.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import joblib
import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from traindyn import _cluster, _validate
from traindyn._fingerprint import fingerprint
from traindyn._threads import one_thread
from traindyn._types import RNG

__all__ = ["Progress", "cluster", "map_ordered", "map_replicas", "reporter", "sweep"]

Progress: TypeAlias = bool | str | Callable[[int, int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Modules that a worker process had loaded when it limited its threads.
_seen = 0
#: Whether a worker process ends with the one that started it.
_watching = False


def cluster(address: str) -> AbstractContextManager[None]:
    """Send the calls inside a ``with`` block to a Dask cluster.

    Parameters
    ----------
    address : str
        Of the scheduler, ``tcp://host:8786``. Its workers must have this version of traindyn
        and the same of Python, NumPy, SciPy, Numba and JAX, or refuse to work.

    Returns
    -------
    context manager
        Closes the connection at the end.

    Raises
    ------
    ImportError
        If Dask is missing (``pip install 'traindyn[cluster]'``).
    ValueError
        If `address` has another form.
    ConnectionError
        If no scheduler answers there within ten seconds, or it has no workers. Later, if the
        scheduler is lost or has had no workers for a minute; a sweep with a store then
        continues where it stopped.

    Notes
    -----
    A call whose worker is lost is made again by another. One whose worker is lost four
    times in a row, for want of memory, say, ends the map with a RuntimeError that names the
    item (the number is Dask's ``distributed.scheduler.allowed-failures``). A worker that is
    silent for five minutes counts as dead (``distributed.scheduler.worker-ttl``). The time
    of a call has no limit.
    """
    return _cluster.using(address)


def map_ordered(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int | None = None,
    progress: Progress = False,
    shared_memory: bool = False,
) -> list[Result]:
    """Call a function on each item; results come in the order of the items.

    Parameters
    ----------
    function : callable
        ``function(item)``.
    items : iterable
        Made a list before the first call.
    workers : int, optional
        Number of workers (-1: all cores). Default: that of the enclosing
        ``joblib.parallel_config``, else one. On a cluster 1 keeps the calls in this
        process, and anything else uses all of it.
    progress : bool, str or callable
        Show a progress bar (a string is its label), or call ``progress(done, total)`` in
        the calling thread after each item.
    shared_memory : bool
        Make the calls in threads of this process wherever other calls go, because they
        read the same large arrays.

    Examples
    --------
    >>> from traindyn.parallel import map_ordered
    >>> map_ordered(abs, [-1, 2, -3], workers=2)
    [1, 2, 3]
    """
    return _run(function, list(items), workers, progress, shared_memory=shared_memory)


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
    >>> from traindyn.parallel import map_replicas
    >>> draws = map_replicas(lambda rng: float(rng.random()), 3, rng=1)
    >>> draws == map_replicas(lambda rng: float(rng.random()), 3, rng=1, workers=2)
    True
    """
    n = _validate.integer("n", n, least=1)
    children = _validate.generator("rng", rng).spawn(n)
    return _run(function, children, workers, progress)


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
        Keyword arguments, all different. The stream of a case depends on the values of the
        case and on the root seed only, so a sweep may be extended or reordered without
        redoing it.
    rng : int, SeedSequence or Generator
        Root of the streams.
    store : path, optional
        Folder for the results, created if missing. A result is looked up under a hash of
        the case, the seed, the function, `version`, and the versions of Python, of this
        package and of NumPy, SciPy, Numba and JAX. The function counts with its code, its
        defaults, what it is bound to or encloses, the globals it reads, and the functions
        it calls, except those of installed packages; an object counts with the state that
        pickle keeps.
        This process writes it as soon as it is there, to a temporary file that is then
        renamed: an interrupted sweep leaves whole results only, has lost no more than
        what was under way, and continues there. A file that is damaged, or not the one
        that was written under its name, is made again. Files are pickles: read only
        folders to which no other user could write.
    version : str
        Change it when something else the results depend on has changed, such as a file.
    workers, progress
        As in :func:`map_ordered`. Stored results count as done.

    Returns
    -------
    list
        One result per case, in order.

    Raises
    ------
    ValueError
        If two cases are equal, or a case has a key ``rng``; if the value of a case, or with
        a store what the function depends on, cannot be told, such as an open file; if `store`
        is no folder.

    Examples
    --------
    >>> from traindyn.parallel import sweep
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
    jobs = [_Job(case, _child(root, key)) for case, key in zip(listed, hashes, strict=True)]
    if store is None:
        return _run(partial(_call, function), jobs, workers, progress)
    folder = _folder(store)
    known = _known_by(function, version)
    paths = [_path(folder, known, key, job.seed) for key, job in zip(hashes, jobs, strict=True)]
    found: dict[int, Result] = _stored(paths)
    missing = [index for index in range(len(jobs)) if index not in found]
    report = reporter(progress)
    if found:
        report(len(found), len(jobs))

    def keep(index: int, result: Result) -> None:
        content = pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL)
        _write_atomically(paths[missing[index]], content)

    fresh = _run(
        partial(_call, function),
        [jobs[index] for index in missing],
        workers,
        lambda done, _: report(len(found) + done, len(jobs)),
        keep=keep,
    )
    found |= zip(missing, fresh, strict=True)
    return [found[index] for index in range(len(jobs))]


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
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int | None,
    progress: Progress,
    *,
    shared_memory: bool = False,
    keep: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Call a function on every item; `keep` is called with each result as soon as it is there."""
    if workers is not None and (workers == 0 or not isinstance(workers, (int, np.integer))):
        raise ValueError(f"workers must be a non-zero integer or None, got {workers!r}")
    report = reporter(progress)
    client = None if shared_memory or workers == 1 or not items else _cluster.current()
    results: dict[int, Result] = {}
    # Limits are global to a process: set once around the whole region here, and once in
    # each foreign process by `_pinned`, never per task in a thread.
    with one_thread:
        if client is None:
            pairs = _here(function, items, workers, shared_memory)
        else:
            pairs = _cluster.results(client, partial(_pinned, function, None), items)
        with closing(pairs):
            for index, result in pairs:
                if keep is not None:
                    keep(index, result)
                results[index] = result
                report(len(results), len(items))
    return [results[index] for index in range(len(items))]


def _here(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int | None,
    shared_memory: bool,
) -> Generator[tuple[int, Result], None, None]:
    """Yield ``(index, result)`` as they come, from joblib."""
    task = joblib.delayed(partial(_numbered, partial(_pinned, function, os.getpid())))
    options = {"require": "sharedmem"} if shared_memory else {"prefer": "threads"}
    try:
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", **options)
    except ValueError:  # some backends, Ray's among them, can only report at the end
        parallel = joblib.Parallel(n_jobs=workers, **options)
    yield from parallel(task(index, item) for index, item in enumerate(items))


def _numbered(function: Callable[[Item], Result], index: int, item: Item) -> tuple[int, Result]:
    return index, function(item)


def _pinned(function: Callable[[Item], Result], home: int | None, item: Item) -> Result:
    """Call a function on an item, with one thread if this is not the process `home`."""
    global _seen
    if os.getpid() != home and len(sys.modules) != _seen:
        # It takes a millisecond, and has to be done again only if another library came in.
        threadpool_limits(limits=1)
        _seen = len(sys.modules)
        _end_with(home)
    try:
        return function(item)
    except SystemExit as error:
        # Which would end a worker, the whole program or nothing, according to the backend.
        raise RuntimeError(f"a call asked its process to exit: {error!r}") from error
    except StopIteration as error:
        # Which would pass for the end of the generators that results come through.
        raise RuntimeError(f"a call let an iterator's end pass: {error!r}") from error


def _end_with(home: int | None) -> None:
    """End this process when the one that started it is gone.

    A worker of joblib outlives a program that is killed, finishes its call and waits for others.
    """
    global _watching
    if _watching or os.getppid() != home:
        return
    _watching = True

    def watch() -> None:
        while os.getppid() == home:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Job(NamedTuple):
    """A case of a sweep and its stream; errors show the case."""

    case: dict[str, Any]
    seed: np.random.SeedSequence

    def __repr__(self) -> str:
        return f"case {self.case!r}"


def _call(function: Callable[..., Result], job: _Job) -> Result:
    try:
        return function(**job.case, rng=np.random.default_rng(job.seed))
    except Exception as error:
        error.add_note(f"in the sweep's {job!r}")
        raise


def _case_hash(case: dict[str, Any]) -> str:
    if "rng" in case:
        raise ValueError("cases must not have a key 'rng': each case is given its own stream")
    try:
        return fingerprint(case)
    except TypeError as error:
        raise ValueError(
            f"cases must consist of values that can be told apart, got {case!r}: {error}"
        ) from error


def _root(rng: RNG) -> np.random.SeedSequence:
    # Spawned, so that two sweeps from one Generator do not share their streams.
    root = _validate.generator("rng", rng).bit_generator.seed_seq
    if not isinstance(root, np.random.SeedSequence):
        raise ValueError(f"rng must come from a SeedSequence, got {type(root).__name__}")
    return root.spawn(1)[0]


def _child(root: np.random.SeedSequence, key: str) -> np.random.SeedSequence:
    words = tuple(int(key[i : i + 8], 16) for i in range(0, 32, 8))
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *words))


def _known_by(function: Callable[..., Any], version: str) -> str:
    """Return a hash of what the results depend on beside case and seed."""
    try:
        return fingerprint((function, version, _cluster.versions()))
    except TypeError as error:
        raise ValueError(
            "function must depend on values that can be told apart, or its results cannot be "
            f"kept, got {function!r}: {error}"
        ) from error


def _folder(store: str | os.PathLike[str]) -> Path:
    """Return the folder of a store, made if it is missing."""
    try:
        folder = Path(store)
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, TypeError, ValueError) as error:
        raise ValueError(f"store must be a folder, or not exist yet, got {store!r}") from error
    return folder


def _path(folder: Path, function: str, case: str, seed: np.random.SeedSequence) -> Path:
    """Return where a result is kept."""
    key = fingerprint((function, case, seed.entropy, seed.spawn_key))
    return folder / f"{key[:32]}.pkl"


def _stored(paths: Sequence[Path]) -> dict[int, Any]:
    """Return the results that are on disk, by their places."""
    found = {}
    for index, path in enumerate(paths):
        # A file that cannot be read (damaged, or of a class that moved) is made again.
        with suppress(Exception):
            digest, content = path.read_bytes().split(b"\n", 1)
            if digest == _checksum(path, content):
                found[index] = pickle.loads(content)
    return found


def _checksum(path: Path, content: bytes) -> bytes:
    """Return the first line of a file: of its content, and of the name that it belongs under."""
    return hashlib.sha256(path.name.encode() + b"\n" + content).hexdigest().encode()


def _write_atomically(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with part.open("wb") as handle:
            handle.write(_checksum(path, content) + b"\n" + content)
            handle.flush()
            os.fsync(handle.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
