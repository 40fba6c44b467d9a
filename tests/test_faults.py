"""Files that are damaged and disks that fail: nothing wrong is read, nothing half-written stays.

Every kind of file that the project reads back is damaged in every way of one table, and every step
of a write fails in every way of another.
"""

from __future__ import annotations

import builtins
import errno
import gzip
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from claimbook import files
from claimbook.run import stamps
from traindyn import parallel
from traindyn.data.formats import read_idx

pytestmark = pytest.mark.fault

#: From what a file held to what it holds after a fault.
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "the first byte alone": lambda whole: whole[:1],
    "the first half": lambda whole: whole[: len(whole) // 2],
    "without its last byte": lambda whole: whole[:-1],
    "without its first byte": lambda whole: whole[1:],
    "without its middle": lambda whole: whole[: len(whole) // 3] + whole[2 * len(whole) // 3 :],
    "zeros": lambda whole: bytes(len(whole)),
    "zeros at the end": lambda whole: whole[: len(whole) // 2] + bytes(len(whole) // 2),
    "all bits set": lambda whole: b"\xff" * len(whole),
    "a bit of the first byte": lambda whole: bytes([whole[0] ^ 128]) + whole[1:],
    "noise": lambda whole: np.random.default_rng(0).bytes(len(whole)),
    "words": lambda whole: b"No space left on device\n",
    "a list": lambda whole: b"[1, 2]",
    "a pickle": lambda whole: pickle.dumps({"a": 1}),
    "backwards": lambda whole: whole[::-1],
}
CASES = [{"scale": 1.0}, {"scale": 2.0}]


def scaled(scale: float, rng: np.random.Generator) -> float:
    """Return a draw."""
    return scale * rng.random()


sweep = partial(parallel.sweep, scaled, CASES, rng=1, workers=1)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what the files of a folder hold."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_made_again(tmp_path: Path, damage: str) -> None:
    """A sweep would go on with a number that nobody has computed."""
    found = sweep(store=tmp_path)
    whole = contents(tmp_path)
    for name, content in whole.items():
        (tmp_path / name).write_bytes(DAMAGES[damage](content))
    assert sweep(store=tmp_path) == found
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_stamp_is_written_again(tmp_path: Path, damage: str) -> None:
    """A chapter would never run again, or the build stop until the file is found."""
    stamp, content = tmp_path / "one.json", {"a": "1", "b": "2"}
    stamps.update(stamp, content)
    whole = stamp.read_bytes()
    stamp.write_bytes(DAMAGES[damage](whole))
    stamps.update(stamp, content)
    assert json.loads(stamp.read_bytes()) == content


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["notebooks/part/one.ipynb", "ledger.json"])
def test_a_damaged_product_is_removed(tmp_path: Path, name: str, damage: str) -> None:
    """It is newer than its sources, so that nothing else would make it again."""
    path = tmp_path / name
    whole = json.dumps({"cells": [{"source": "x = 1"}], "metadata": {}}).encode()
    files.write(path, whole)
    assert stamps.discard(tmp_path) == []
    path.write_bytes(DAMAGES[damage](whole))
    assert stamps.discard(tmp_path) == [path]
    assert not path.exists()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
def test_a_damaged_data_file_is_named(tmp_path: Path, damage: str, compressed: bool) -> None:
    """Images would be read that nobody has published."""
    path = tmp_path / "labels"
    whole = bytes([0, 0, 8, 1, 0, 0, 0, 40]) + bytes(range(100, 140))
    whole = gzip.compress(whole, mtime=0) if compressed else whole
    path.write_bytes(DAMAGES[damage](whole))
    if not compressed and damage == "zeros at the end":
        # Of a file without a checksum of its own the checksum of `fetch` alone knows.
        assert len(read_idx(path, axes=1)) == 40
        return
    with pytest.raises((ValueError, OSError)) as caught:
        read_idx(path, axes=1)
    assert str(path) in str(caught.value)


# --- Writes that fail ---------------------------------------------------------------------------

#: What can come up at any step.
ERRORS: dict[str, Callable[[], BaseException]] = {
    "a full disk": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "a quota": lambda: OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
    "a broken disk": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "an interrupt": KeyboardInterrupt,
    "no memory": MemoryError,
}
STEPS = ("open", "write", "rename")


def fail(monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException) -> None:
    """Let one step of every write into a file fail; a write leaves the first half."""
    opened = io.open

    def broken(*arguments: Any, **options: Any) -> Any:
        raise error

    def wrapped(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if "w" not in mode:
            return opened(file, mode, *arguments, **options)
        if step == "open":
            raise error
        stream = opened(file, mode, *arguments, **options)

        class Half:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: Any) -> None:
                stream.close()

            def write(self, content: Any) -> None:
                stream.write(bytes(content)[: len(content) // 2])
                raise error

        return Half()

    if step == "rename":
        monkeypatch.setattr(os, "replace", broken)
        monkeypatch.setattr(Path, "replace", broken)
    else:
        monkeypatch.setattr(io, "open", wrapped)
        monkeypatch.setattr(builtins, "open", wrapped)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("step", STEPS)
def test_a_sweep_that_cannot_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: str
) -> None:
    """And goes on from there when the disk is mended."""
    raised = ERRORS[error]()
    with monkeypatch.context() as patch, pytest.raises(type(raised)) as caught:
        fail(patch, step, raised)
        sweep(store=tmp_path)
    assert caught.value is raised
    assert list(tmp_path.iterdir()) == []
    assert sweep(store=tmp_path) == sweep()
    assert len(contents(tmp_path)) == len(CASES)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("step", STEPS)
def test_a_file_that_cannot_be_replaced_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: str
) -> None:
    """A reader would find a part of the new content."""
    path = files.write(tmp_path / "ledger.json", b"old")
    raised = ERRORS[error]()
    with monkeypatch.context() as patch, pytest.raises(type(raised)):
        fail(patch, step, raised)
        files.write(path, b"new and longer")
    assert contents(tmp_path) == {"ledger.json": b"old"}


KILLED = """
import os, signal, sys
from pathlib import Path
from claimbook import files
from traindyn import parallel

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def scaled(scale, rng):
    return scale * rng.random()

folder = Path(sys.argv[1])
if sys.argv[2] == "sync":
    os.fsync = die
else:
    os.replace = Path.replace = die
if sys.argv[2] == "file":
    files.write(folder / "ledger.json", b"new and longer")
parallel.sweep(scaled, [{"scale": 1.0}], rng=1, workers=1, store=folder)
"""


@pytest.mark.parametrize("where", ["sync", "rename", "file"])
def test_what_a_killed_process_leaves_is_no_result(tmp_path: Path, where: str) -> None:
    """Nobody has cleaned up after it: the file beside the wanted one is not taken for it."""
    files.write(tmp_path / "ledger.json", b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), where], check=False)
    assert done.returncode == -9
    (left,) = {path.name for path in tmp_path.iterdir()} - {"ledger.json"}
    assert left.endswith(".part")
    assert (tmp_path / "ledger.json").read_bytes() == b"old"
    assert sweep(store=tmp_path) == sweep()
    assert len(list(tmp_path.glob("*.pkl"))) == len(CASES)
