"""Calls on the workers of a Dask cluster, for :mod:`traindyn.parallel`.

Dask's own client is used, not the backend for it in joblib: that one hands out results only
when all are there, so that a crash loses everything, and copies arguments to one worker, with
which they die.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import logging
import os
import pickle
import platform
import reprlib
import sys
import time
import uuid
from asyncio import CancelledError
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache, partial
from importlib import metadata
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from traindyn import __version__

T = TypeVar("T")

ADDRESS = "TRAINDYN_CLUSTER"

#: Seconds for the scheduler to answer, and then for a first worker to appear.
PATIENCE = 10.0
#: Seconds without any worker after which calls that are under way are given up.
DESERTED = 60.0
#: Seconds between two looks at the workers while no result comes.
_LOOK = 1.0
#: Transports of Dask that reach another machine.
_SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")
#: Settings of Dask that name what ``tls`` cannot do without.
_CERTIFICATES = ("distributed.comm.tls.ca-file", "distributed.comm.tls.client.cert")
#: Bytes up to which the function simply travels with each call.
_LARGE = 100_000
#: What has to agree between the workers and here: with another version come other numbers.
_PACKAGES = ("numpy", "scipy", "numba", "jax")

_named: ContextVar[Any] = ContextVar("named", default=None)
_inside: ContextVar[bool] = ContextVar("inside", default=False)
_from_environment: dict[str, Any] = {}


def current() -> Any:
    """Return the client to send calls to, None to make them here.

    The innermost :func:`using`, else the cluster that the environment names. A call that
    runs on a cluster makes its own calls where it is.
    """
    if _inside.get():
        return None
    address = os.environ.get(ADDRESS)
    if _named.get() is not None or not address:
        return _named.get()
    client = _from_environment.get(address)
    if client is None or client.status != "running":
        client = _from_environment[address] = connect(address, f"{ADDRESS}={address}")
    return client


@contextmanager
def using(address: str) -> Iterator[None]:
    """Send calls to a cluster inside the ``with`` block."""
    client = connect(address, repr(address))
    token = _named.set(client)
    try:
        yield
    finally:
        _named.reset(token)
        client.close()


def connect(address: str, named: str) -> Any:
    """Connect to a scheduler with at least one worker.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://host:8786``.
    named : str
        How the caller gave it, for messages.

    Raises
    ------
    ImportError
        If Dask is missing.
    ValueError
        If `address` is not of the form ``tcp://host:port``, or one of TLS and Dask's
        configuration names no certificates that can be read.
    ConnectionError
        If there is no scheduler at that address, or the cluster has no workers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            f"calls on the cluster {named} need Dask: pip install 'traindyn[cluster]'"
        ) from error
    # A worker that died is no reason to write to standard error: its calls are made again.
    logging.getLogger("distributed.client").setLevel(logging.ERROR)
    _check(address, named)
    _check_certificates(address, named)
    client: Any = Client.__new__(Client)
    try:
        client.__init__(address, timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        raise ConnectionError(f"no Dask scheduler answers at {named}: {error}") from None
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        # A transport that is not installed, or not encrypted where Dask is told to insist. Dask
        # leaves such a client half made, and would wait for it at the end of the program.
        with suppress(TimeoutError, OSError):
            client.close()
        raise ValueError(f"Dask cannot use the address {named}: {error}") from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        client.close()
        raise ConnectionError(
            f"the Dask cluster {named} has no workers, after {PATIENCE:g} s"
        ) from None
    return client


def _check(address: str, named: str) -> None:
    """Refuse what cannot be the address of a scheduler; Dask fails late or strangely on it."""
    try:
        parts = urlsplit(address)
        whole = bool(parts.scheme and parts.hostname and parts.port)
        # What is not a name is sent to the resolver as it is, which answers with other errors.
        (parts.hostname or "").encode("idna")
    except (AttributeError, TypeError, ValueError):
        whole = False
    more = whole and (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if not whole or more or any(map(str.isspace, address)):
        raise ValueError(f"address must have the form tcp://host:8786, got {named}")
    if parts.scheme not in _SCHEMES:
        raise ValueError(
            f"address must begin with one of {', '.join(f'{each}://' for each in _SCHEMES)}, "
            f"got {named}"
        )


def _check_certificates(address: str, named: str) -> None:
    """Refuse TLS without certificates: Dask fails too, but does not say what is missing."""
    import dask
    from distributed.security import Security

    if urlsplit(address).scheme != "tls":
        return
    files = {setting: dask.config.get(setting, None) for setting in _CERTIFICATES}
    missing = [setting for setting, file in files.items() if not file]
    if missing:
        raise ValueError(
            f"address {named} needs certificates: Dask's configuration names no "
            f"{' and no '.join(missing)}"
        )
    try:
        Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        given = ", ".join(f"{setting}={file}" for setting, file in files.items())
        raise ValueError(
            f"address {named} needs certificates that can be read, got {given}: {error}"
        ) from error


def results(
    client: Any, function: Callable[[Any], Any], items: Sequence[Any]
) -> Generator[tuple[int, Any], None, None]:
    """Call a function on every item, and yield ``(index, result)`` as they come.

    If a worker is lost, its calls are made again elsewhere. Leaving the iterator early cancels
    what is left.

    Raises
    ------
    RuntimeError
        If workers are lost on one item again and again, or a worker has other versions than this
        process.
    ConnectionError
        If the scheduler is lost, or all workers are gone for a minute.
    """
    import cloudpickle  # type: ignore[import-untyped]
    import dask
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    address = client.scheduler.address
    label = f"traindyn-{uuid.uuid4().hex}"
    # Pickled here: Dask looks into arguments for names of its own, and gives back arrays
    # that cannot be written to.
    shared: Any = pickle.dumps((versions(), cloudpickle.dumps(function)))
    payloads = [cloudpickle.dumps(item) for item in items]
    # A large graph is what was asked for, and a warning would stop a chapter.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        if len(shared) > _LARGE:
            # As a result it goes once to each worker, and is made again if one is lost with it.
            shared = client.submit(bytes, shared, key=f"{label}-function", pure=False)
        futures = client.map(
            _remote,
            payloads,
            key=[(label, index) for index in range(len(items))],
            pure=False,
            shared=shared,
        )
    waiting = dict(zip(futures, range(len(items)), strict=True))
    completed: SimpleQueue[Any] = SimpleQueue()
    for future in futures:
        future.add_done_callback(completed.put)
    del future, futures
    try:
        while waiting:
            batch = _until(partial(_next, completed), client, address)
            done = [future for future in batch if future.status == "finished"]
            for future, result in zip(done, _gathered(client, done, address), strict=True):
                yield waiting.pop(future), pickle.loads(result)
            for future in set(batch) - set(done):
                yield waiting[future], pickle.loads(future.result())  # raises its error
    except KilledWorker as error:
        index = cast(Any, error).task[1]
        raise RuntimeError(
            f"worker after worker died (out of memory?) with item {index} on it, "
            f"{reprlib.repr(items[index])}"
        ) from None
    except (CancelledError, FutureCancelledError, OSError) as error:
        # A connection may break a moment before the client notices that the scheduler is gone.
        # A ConnectionError, ours or that of a call, already says what was lost.
        explained = isinstance(error, ConnectionError)
        if client.status == "running" and (explained or _workers(client) is not None):
            raise
        raise ConnectionError(f"lost the Dask scheduler at {address}") from None
    finally:
        if client.status == "running":
            with suppress(TimeoutError, OSError):
                client.cancel(list(waiting))


def _next(completed: SimpleQueue[Any]) -> list[Any]:
    """Return the calls that have ended, none if none ends for a while."""
    batch: list[Any] = []
    with suppress(Empty):
        batch.append(completed.get(timeout=_LOOK))
        while True:
            batch.append(completed.get_nowait())
    return batch


def _gathered(client: Any, done: Sequence[Any], address: str) -> Any:
    """Fetch results, which may have been lost with their worker and are then made again."""
    loop = client.loop.asyncio_loop
    fetched = asyncio.run_coroutine_threadsafe(client.gather(done, asynchronous=True), loop)
    _until(lambda: concurrent.futures.wait([fetched], timeout=_LOOK).done, client, address)
    return fetched.result()


def _until(attempt: Callable[[], T], client: Any, address: str) -> T:
    """Repeat an attempt until something comes, as long as there are workers to make it."""
    since: float | None = None
    while not (found := attempt()):
        # Dask itself takes a worker for lost that is silent (`distributed.scheduler.worker-ttl`,
        # five minutes), but waits for ever for a new one.
        if client.status != "running":
            raise ConnectionError(f"lost the Dask scheduler at {address}")
        if _workers(client):
            since = None
            continue
        since = time.monotonic() if since is None else since
        if time.monotonic() - since > DESERTED:
            raise ConnectionError(
                f"the Dask cluster at {address} has had no workers for {DESERTED:g} s; "
                "a sweep with a store continues where it stopped"
            )
    return found


def _workers(client: Any) -> int | None:
    """Count the workers; None if the scheduler does not answer."""
    try:
        return len(client.sync(client.scheduler.ncores, callback_timeout=PATIENCE))
    except (TimeoutError, OSError):
        return None


def _remote(payload: bytes, shared: bytes) -> bytes:
    """Make one call; runs in a worker."""
    import cloudpickle

    function = _unpacked(shared)
    token = _inside.set(True)
    try:
        result = function(cloudpickle.loads(payload))
    finally:
        _inside.reset(token)
    return cloudpickle.dumps(result)  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Any:
    """Return the function, the same object in every call: what it compiles is kept."""
    import cloudpickle

    wanted, function = pickle.loads(packed)
    found = versions()
    other = [
        f"{name} is {found.get(name, 'missing')} there, {wanted.get(name, 'missing')} here"
        for name in sorted(wanted.keys() | found.keys())
        if wanted.get(name) != found.get(name)
    ]
    if other:
        raise RuntimeError(
            f"the worker on {platform.node()} would give other numbers: {'; '.join(other)}"
        )
    return cloudpickle.loads(function)


@cache
def versions() -> dict[str, str]:
    """Return what has to agree between two processes that compute the same numbers."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    found = {
        "Python": ".".join(map(str, sys.version_info[:2])),
        "traindyn": f"{__version__} of source {digest.hexdigest()[:12]}",
    }
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
