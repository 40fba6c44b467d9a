"""Calls on a Dask cluster: two worker processes of this machine."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chapters import HEAD

from claimbook.run import execute
from traindyn import _cluster, parallel

#: The functions that travel stand in no module a worker could import, as in a notebook.
NOTEBOOK: dict[str, Any] = {"__name__": "__main__"}
exec(
    """
import os, signal, time
import numpy as np
from threadpoolctl import threadpool_info
from traindyn import parallel

class Found:
    def __init__(self, law, values):
        self.law, self.values = law, values

class Calls(list):
    def __reduce__(self):  # results do not depend on the calls that were made
        return Calls, ()

calls = Calls()
ballast = np.zeros(20_000)

def found(size, rng):
    calls.append(size)
    assert not ballast.any()
    time.sleep(0.1)
    return Found({"size": size, "name": "normal"}, rng.spawn(1)[0].standard_normal((size, 2)))

def here(_):
    np.eye(2) @ np.eye(2)
    return os.getpid(), max(pool["num_threads"] for pool in threadpool_info())

def nested(n):
    return {os.getpid(), *(pid for pid, _ in parallel.map_ordered(here, range(n), workers=-1))}

def deadly(size, rng):
    if size == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return size
""",
    NOTEBOOK,
)
N = SimpleNamespace(**NOTEBOOK)
CASES = [{"size": size} for size in range(1, 13)]

ELSEWHERE = """
```{code-cell} ipython3
import os
from traindyn.parallel import map_ordered
print("elsewhere:", os.getpid() not in map_ordered(lambda _: os.getpid(), range(4), workers=-1))
```
"""


@pytest.fixture(scope="module")
def two() -> Iterator[Any]:
    """A cluster of two worker processes; a call may take one of them down once."""
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set(
            {
                "distributed.scheduler.allowed-failures": 1,
                "distributed.scheduler.worker-saturation": 1.0,
            }
        ),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(autouse=True)
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find the notebook's classes, as pickle does there."""
    monkeypatch.setattr("__main__.Found", N.Found, raising=False)


@pytest.fixture
def cluster(two: Any) -> Iterator[Any]:
    """The calls of a test go there."""
    with parallel.cluster(two.scheduler_address):
        yield two


def files(folder: Path) -> dict[str, bytes]:
    """Content of every file."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.fault
def test_a_killed_worker_loses_nothing_and_changes_no_byte(two, tmp_path):
    """Whoever computes a case, and how often, must not show in the result."""
    plain = parallel.sweep(N.found, CASES, rng=1, store=tmp_path / "plain")
    seen = []

    def kill_once(done, total):
        seen.append((done, total))
        if done == 3:
            os.kill(next(iter(two.workers.values())).pid, signal.SIGKILL)

    before = {nanny.pid for nanny in two.workers.values()}
    with parallel.cluster(two.scheduler_address):
        sent = parallel.sweep(N.found, CASES, rng=1, store=tmp_path / "sent", progress=kill_once)
    assert {nanny.pid for nanny in two.workers.values()} != before
    assert seen == [(i, 12) for i in range(1, 13)]
    assert [pickle.dumps(each) for each in sent] == [pickle.dumps(each) for each in plain]
    assert all(isinstance(each, N.Found) and each.values.flags.writeable for each in sent)
    assert files(tmp_path / "sent") == files(tmp_path / "plain")
    parallel.sweep(N.found, CASES, rng=2, store=tmp_path / "other")
    assert not set(files(tmp_path / "other").values()) & set(files(tmp_path / "plain").values())


def test_replicas_and_items_are_called_there_in_order(cluster):
    """The calling process must do nothing itself but what it is asked to."""
    draws = parallel.map_replicas(lambda rng: rng.standard_normal(), 5, rng=3, workers=2)
    assert draws == parallel.map_replicas(lambda rng: rng.standard_normal(), 5, rng=3, workers=1)
    assert parallel.map_ordered(lambda i: i**2, range(20)) == [i**2 for i in range(20)]

    mine = os.getpid()
    pids, threads = zip(*parallel.map_ordered(N.here, range(6), workers=-1))
    assert mine not in pids
    assert set(threads) == {1}
    for options in ({"workers": 1}, {"shared_memory": True, "workers": 2}):
        assert {pid for pid, _ in parallel.map_ordered(N.here, range(2), **options)} == {mine}
    assert [len(pids) for pids in parallel.map_ordered(N.nested, [3, 3])] == [1, 1]


def test_large_functions_are_told_apart(cluster):
    """What Dask keeps of one map must not be taken for what another needs."""
    client = _cluster.current()
    maps = [
        _cluster.results(client, partial(np.take, np.full(50_000, n)), range(4)) for n in range(3)
    ]
    assert [next(each)[1] for each in maps] == [0, 1, 2]
    assert [dict(each).popitem()[1] for each in maps] == [0, 1, 2]


def test_the_environment_names_the_cluster_of_a_chapter(two, tmp_path, monkeypatch):
    """`TRAINDYN_CLUSTER=... make book` must reach the notebooks' processes."""
    source = tmp_path / "chapter.md"
    source.write_text(HEAD + ELSEWHERE, encoding="utf8")
    for address, there in ((two.scheduler_address, True), ("", False)):
        monkeypatch.setenv("TRAINDYN_CLUSTER", address)
        execute.execute(source, tmp_path / "chapter.ipynb", build=tmp_path, report=lambda _: None)
        assert f"elsewhere: {there}" in (tmp_path / "chapter.ipynb").read_text(encoding="utf8")


def test_errors_of_a_call_reach_the_caller_with_its_case(cluster):
    """An error in a sweep of thousands is worth little without its case."""
    with pytest.raises(ZeroDivisionError) as caught:
        parallel.sweep(lambda x, rng: 1 / x, [{"x": 1}, {"x": 0}], rng=1)
    assert caught.value.__notes__ == ["in the sweep's case {'x': 0}"]
    assert parallel.map_ordered(abs, [-1]) == [1]


@pytest.mark.fault
def test_a_case_that_kills_its_workers_is_named(cluster, tmp_path):
    """Dask's own error names a key that says nothing; the other cases must be kept."""
    with pytest.raises(
        RuntimeError, match=r"worker after worker died .* item 2 on it, case \{'size': 3\}"
    ):
        parallel.sweep(N.deadly, CASES[:4], rng=1, store=tmp_path)
    assert parallel.map_ordered(abs, [-1]) == [1]


def test_other_versions_are_refused(cluster, monkeypatch):
    """With another library come other numbers, silently."""
    found = _cluster.versions()
    monkeypatch.setattr(_cluster, "versions", lambda: found | {"numpy": "0.1"})
    said = f"would give other numbers: numpy is {np.__version__} there, 0.1 here$"
    with pytest.raises(RuntimeError, match=said):
        parallel.map_ordered(abs, [-1])


def test_unreachable_addresses(monkeypatch):
    """The message names the address, within seconds, and where it came from."""
    monkeypatch.setattr(_cluster, "PATIENCE", 0.5)
    with pytest.raises(
        ConnectionError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9"
    ):
        parallel.cluster("tcp://127.0.0.1:9").__enter__()
    monkeypatch.setenv("TRAINDYN_CLUSTER", "127.0.0.1")
    with pytest.raises(ValueError, match=r"tcp://host:8786, got TRAINDYN_CLUSTER=127\.0\.0\.1"):
        parallel.map_ordered(abs, [-1])
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"traindyn\[cluster\]"):
        parallel.map_ordered(abs, [-1])


def test_only_a_cluster_needs_dask():
    """Whoever computes here must not wait for what computes elsewhere."""
    code = "import sys, traindyn.parallel; print({'dask', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def start(role: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start a scheduler or worker and read the address it announces."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{role}",
            *arguments,
            "--dashboard-address",
            "127.0.0.1:0",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if " at: " in line and "tcp://" in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, line[line.index("tcp://") :].strip()
    raise AssertionError(f"the {role} announced no address")


@pytest.mark.fault
def test_a_lost_scheduler_ends_the_sweep_which_then_continues(tmp_path, monkeypatch):
    """Without a word the sweep would wait for ever; cases that were done must not be redone."""
    scheduler, address = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    monkeypatch.setattr(_cluster, "PATIENCE", 0.2)
    with pytest.raises(ConnectionError, match="has no workers"):
        parallel.cluster(address).__enter__()
    monkeypatch.setattr(_cluster, "PATIENCE", 2.0)
    worker, _ = start("worker", address, "--nthreads", "1", "--no-nanny", "--death-timeout", "5")

    def kill(done, total):
        if done == 4:
            scheduler.kill()

    try:
        with (
            parallel.cluster(address),
            pytest.raises(ConnectionError, match=f"lost the Dask scheduler at {address}"),
        ):
            parallel.sweep(N.found, CASES, rng=1, store=tmp_path, progress=kill)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
            process.stderr.close()
    kept = len(files(tmp_path))
    assert 4 <= kept < 12
    N.calls.clear()
    started = []
    found = parallel.sweep(
        N.found, CASES, rng=1, store=tmp_path, progress=lambda *at: started.append(at)
    )
    assert started == [(i, 12) for i in range(kept, 13)]
    assert len(N.calls) == 12 - kept
    plain = parallel.sweep(N.found, CASES, rng=1)
    assert [pickle.dumps(each) for each in found] == [pickle.dumps(each) for each in plain]


@pytest.mark.fault
def test_a_connection_that_breaks_before_the_client_notices(monkeypatch):
    """The scheduler is asked whether it is there; where it answers, the error stays as it is."""
    scheduler, address = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    worker, _ = start("worker", address, "--nthreads", "1", "--no-nanny", "--death-timeout", "5")
    silent = [False, True]

    def broken(client, done, address):
        if silent.pop(0):  # not killed: the client would notice at once
            monkeypatch.setattr(_cluster, "PATIENCE", 0.5)
            scheduler.send_signal(signal.SIGSTOP)
        raise OSError("the stream is closed")

    monkeypatch.setattr(_cluster, "_gathered", broken)
    monkeypatch.setattr(_cluster, "PATIENCE", 5.0)
    try:
        with parallel.cluster(address):
            with pytest.raises(OSError, match="the stream is closed"):
                list(parallel.map_ordered(N.here, range(2), workers=-1))
            with pytest.raises(ConnectionError, match=f"lost the Dask scheduler at {address}"):
                list(parallel.map_ordered(N.here, range(2), workers=-1))
            scheduler.kill()
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
            process.stderr.close()


@pytest.mark.fault
@pytest.mark.parametrize(
    "how", ["all workers are gone", "the only worker hangs", "the scheduler hangs"]
)
def test_a_map_that_nobody_works_on_is_given_up(tmp_path, monkeypatch, how):
    """Dask waits for new workers, or for an answer, for ever and without a word."""
    # Dask takes a worker for lost after ten of its heartbeats, if this is shorter.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "1s")
    scheduler, address = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    worker, _ = start("worker", address, "--nthreads", "1", "--no-nanny", "--death-timeout", "5")
    monkeypatch.setattr(_cluster, "PATIENCE", 5.0)

    def act(done, total):
        if done == 2:
            monkeypatch.setattr(_cluster, "PATIENCE", 0.2)
            monkeypatch.setattr(_cluster, "DESERTED", 0.5)
            if how == "the scheduler hangs":
                scheduler.send_signal(signal.SIGSTOP)
            elif how == "the only worker hangs":
                worker.send_signal(signal.SIGSTOP)
            else:
                worker.kill()

    try:
        with (
            pytest.raises(ConnectionError, match=r"has had no workers for 0\.5 s"),
            parallel.cluster(address),
        ):
            parallel.sweep(N.found, CASES, rng=1, store=tmp_path, progress=act)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
            process.stderr.close()
    assert 2 <= len(files(tmp_path)) < 12


@pytest.mark.fault
def test_the_calls_of_a_frozen_worker_are_made_again(tmp_path, monkeypatch):
    """A machine that hangs, unlike one that is gone, keeps its connections open."""
    # Dask takes a worker for lost after ten of its heartbeats, if this is shorter.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "1s")
    scheduler, address = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    options = ("worker", address, "--nthreads", "1", "--no-nanny", "--death-timeout", "5")
    with ThreadPoolExecutor() as pool:
        workers = [made.result()[0] for made in [pool.submit(start, *options) for _ in range(2)]]

    def freeze(done, total):
        if done == 2:
            workers[0].send_signal(signal.SIGSTOP)

    try:
        with parallel.cluster(address):
            found = parallel.sweep(N.found, CASES[:6], rng=1, store=tmp_path, progress=freeze)
    finally:
        for process in (scheduler, *workers):
            process.kill()
            process.wait()
            process.stderr.close()
    plain = parallel.sweep(N.found, CASES[:6], rng=1)
    assert [pickle.dumps(each) for each in found] == [pickle.dumps(each) for each in plain]


@pytest.mark.fault
def test_a_call_cannot_end_its_worker(cluster):
    """Worker after worker would end with it, for want of memory as the message said."""
    with pytest.raises(RuntimeError, match=r"a call asked its process to exit: SystemExit\(3\)"):
        parallel.map_ordered(sys.exit, [3, 3])


@pytest.mark.parametrize(
    "address",
    [
        "tcp://:8786",
        "tcp://host:0",
        "tcp://host:99999",
        "tcp://ho st:8786",
        "tcp://host:8786/place",
        "tcp://host:87x6",
        "http://host:8786",
        "inproc://host:8786",
        "tcp://user:word@host:8786",
        "tcp://host:8786#here",
        f"tcp://{'x' * 64}.org:8786",
        8786,
    ],
)
def test_addresses_that_dask_would_choke_on(address, monkeypatch):
    """Dask fails on these with errors that do not name the address, or after a long time."""
    monkeypatch.setattr(_cluster, "PATIENCE", 2.0)
    named = "address.*tcp://host:8786|address must begin with one of tcp://"
    with pytest.raises(ValueError, match=named):
        parallel.cluster(address).__enter__()


def test_missing_certificates_are_named(tmp_path):
    """Dask says that it expected an SSLContext, or that some file does not exist."""
    import dask

    tls = {"distributed.comm.tls.ca-file": None, "distributed.comm.tls.client.cert": None}
    with (
        dask.config.set(tls),
        pytest.raises(ValueError, match=r"names no .*tls\.ca-file and no .*tls\.client\.cert$"),
    ):
        parallel.cluster("tls://127.0.0.1:9").__enter__()
    absent = str(tmp_path / "absent.pem")
    with (
        dask.config.set(dict.fromkeys(tls, absent)),
        pytest.raises(ValueError, match=rf"can be read, got .*client\.cert={absent}: "),
    ):
        parallel.cluster("tls://127.0.0.1:9").__enter__()


def test_a_refused_address_does_not_hold_up_the_end_of_the_program():
    """Dask waited for its half-made client for twenty seconds, and then wrote a traceback."""
    code = """
import dask
from traindyn import parallel

if __name__ == "__main__":
    dask.config.set({"distributed.comm.require-encryption": True})
    try:
        parallel.cluster("tcp://127.0.0.1:9").__enter__()
    except ValueError as error:
        kept = error
        print("encryption required" in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=15
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
