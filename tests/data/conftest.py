"""A tiny copy of every published file, behind a server of this machine."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import struct
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

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


def libsvm(labels: np.ndarray, pixels: np.ndarray) -> bytes:
    """A file of LIBSVM, compressed: labels from 1, pixels from -1 to 1."""
    rows = [
        f"{label + 1} "
        + " ".join(f"{k + 1}:{value / 127.5 - 1:.6f}" for k, value in enumerate(row))
        for label, row in zip(labels.tolist(), pixels.reshape(len(pixels), -1).tolist())
    ]
    return bz2.compress(("\n".join(rows) + "\n").encode())


def faces(pixels: np.ndarray) -> bytes:
    """A zip archive of pictures, named as in CelebA, without loss (the name notwithstanding)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as out:
        for number, picture in enumerate(pixels, start=1):
            held = io.BytesIO()
            Image.fromarray(picture).save(held, "PNG")
            out.writestr(f"img_align_celeba/{number:06}.jpg", held.getvalue())
    return stream.getvalue()


def matlab(**arrays: np.ndarray) -> bytes:
    """A MATLAB file."""
    from scipy.io import savemat

    stream = io.BytesIO()
    savemat(stream, arrays)
    return stream.getvalue()


@pytest.fixture(scope="session")
def write() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(
        idx=idx, archive=archive, records=records, matlab=matlab, libsvm=libsvm, faces=faces
    )


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
        small=pixels(16, 16),
        faces=pixels(20, 12, 3),
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
            held = gzip.decompress(content) if name.endswith("ubyte.gz") else None
            inside = None if held is None else hashlib.sha256(held).hexdigest()
            return Published(f"{address}/{name}", hashlib.sha256(content).hexdigest(), 1, inside)

        _publish(publish, monkeypatch, contents)
        asked = server.asked  # type: ignore[attr-defined]
        yield SimpleNamespace(folder=folder, publish=publish, asked=asked, handler=_Quiet)
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    """Prints nothing, has the server remember what was asked for, and sends the rest of a file."""

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        if wanted is None:
            return super().do_GET()
        rest = Path(self.translate_path(self.path)).read_bytes()[int(wanted[6:-1]) :]
        self.send_response(206 if rest else 416)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)
        return None

    def log_request(self, *_: Any) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]

    def log_message(self, *_: Any) -> None:
        pass


def _publish(publish: Any, monkeypatch: pytest.MonkeyPatch, contents: SimpleNamespace) -> None:
    labels = contents.labels

    def known(name: str, published: dict[str, Published]) -> None:
        monkeypatch.setattr(files, name, getattr(files, name)._replace(files=published))

    for name, stem in (("MNIST", "digits"), ("FASHION_MNIST", "clothes")):
        images = publish(f"{stem}-images-ubyte.gz", idx(contents.grey))
        marks = publish(f"{stem}-labels-ubyte.gz", idx(labels))
        parts = (("images", images), ("labels", marks))
        known(name, {f"{part} {what}": file for part in ("train", "test") for what, file in parts})
    # The training batches together are the test batch the other way round.
    turned = records(labels[::-1], contents.colour[::-1])
    length = len(turned) // COUNT
    parts = [turned[: 2 * length], turned[2 * length : 3 * length], b"", turned[3 * length :], b""]
    members = {f"data_batch_{k + 1}.bin": part for k, part in enumerate(parts)}
    members |= {"readme.html": b"?", "test_batch.bin": records(labels, contents.colour)}
    tar = archive({f"cifar-10-batches-bin/{name}": each for name, each in members.items()})
    known("CIFAR10", {"archive": publish("cifar.tar.gz", tar)})
    marks = np.where(labels == 0, 10, labels)[:, None]
    mat = publish("numbers.mat", matlab(X=contents.colour.transpose(2, 3, 1, 0), y=marks))
    known("SVHN", {"train": mat, "test": mat})
    envelopes = publish("envelopes.bz2", libsvm(labels, contents.small))
    known("USPS", {"train": envelopes, "test": envelopes})
    people = [f"{k + 1:06}.jpg" for k in range(COUNT)]
    rows = [f"{name}  {1 if k % 3 else -1} {-1 if k % 2 else 1}" for k, name in enumerate(people)]
    table = "\n".join([str(COUNT), "Bald Eyeglasses", *rows]) + "\n"
    parts_of = "".join(f"{name} {(0, 0, 2, 1)[k % 4]}\n" for k, name in enumerate(people))
    known(
        "CELEBA",
        {
            "images": publish("faces.zip", faces(contents.faces)),
            "attributes": publish("list_attributes.txt", table.encode()),
            "partition": publish("list_partition.txt", parts_of.encode()),
        },
    )
