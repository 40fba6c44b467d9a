"""A tiny copy of every published file, behind a server of this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from traindyn.data import files
from traindyn.data.files import Published

COUNT = 12


def idx(array: np.ndarray, *, kind: int = 8) -> bytes:
    """An IDX file, compressed."""
    header = bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes())


def archive(members: dict[str, bytes]) -> bytes:
    """A compressed tar archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as out:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def records(labels: np.ndarray, pixels: np.ndarray) -> bytes:
    """CIFAR-10 records, one after the other, byte by byte."""
    return b"".join(
        bytes([label]) + image.tobytes() for label, image in zip(labels.tolist(), pixels)
    )


def matlab(**arrays: np.ndarray) -> bytes:
    """A MATLAB file."""
    from scipy.io import savemat

    stream = io.BytesIO()
    savemat(stream, arrays)
    return stream.getvalue()


@pytest.fixture(scope="session")
def write() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(idx=idx, archive=archive, records=records, matlab=matlab)


@pytest.fixture
def contents() -> SimpleNamespace:
    """Pixels and labels of the tiny copies."""
    rng = np.random.default_rng(0)

    def pixels(*shape: int) -> np.ndarray:
        return rng.integers(0, 256, (COUNT, *shape), dtype=np.uint8)

    return SimpleNamespace(
        labels=np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 0], dtype=np.uint8),
        grey=pixels(28, 28),
        colour=pixels(3, 32, 32),
    )


@pytest.fixture
def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contents: SimpleNamespace
) -> Iterator[SimpleNamespace]:
    """Serve the tiny copies, and have the loaders know these instead of the published files."""
    pytest.importorskip("pooch", reason="pooch is not installed (extra 'data')")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"

        def publish(name: str, content: bytes) -> Published:
            (folder / name).write_bytes(content)
            return Published(f"{address}/{name}", hashlib.sha256(content).hexdigest())

        _publish(publish, monkeypatch, contents)
        asked = server.asked  # type: ignore[attr-defined]
        yield SimpleNamespace(folder=folder, publish=publish, asked=asked)
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    """Prints nothing, and has the server remember what was asked for."""

    def log_request(self, *_: Any) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]

    def log_message(self, *_: Any) -> None:
        pass


def _publish(publish: Any, monkeypatch: pytest.MonkeyPatch, contents: SimpleNamespace) -> None:
    labels = contents.labels
    pair = (publish("images-idx3.gz", idx(contents.grey)), publish("labels-idx1.gz", idx(labels)))
    # The training batches together are the test batch the other way round.
    turned = records(labels[::-1], contents.colour[::-1])
    length = len(turned) // COUNT
    parts = [turned[: 2 * length], turned[2 * length : 3 * length], b"", turned[3 * length :], b""]
    members = {f"data_batch_{k + 1}.bin": part for k, part in enumerate(parts)}
    members |= {"readme.html": b"?", "test_batch.bin": records(labels, contents.colour)}
    tar = archive({f"cifar-10-batches-bin/{name}": each for name, each in members.items()})
    marks = np.where(labels == 0, 10, labels)[:, None]
    numbers = matlab(X=contents.colour.transpose(2, 3, 1, 0), y=marks)
    monkeypatch.setattr(files, "MNIST", {"train": pair, "test": pair})
    monkeypatch.setattr(files, "CIFAR10", publish("cifar.tar.gz", tar))
    mat = publish("numbers.mat", numbers)
    monkeypatch.setattr(files, "SVHN", {"train": mat, "test": mat})
