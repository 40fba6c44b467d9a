"""Readers of the formats the data sets are published in; none of them can run code."""

from __future__ import annotations

import gzip
import math
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import io

from traindyn import _validate
from traindyn._types import Array
from traindyn.data.files import GZIP, optional

__all__ = [
    "Pictures",
    "file_labels",
    "read_attributes",
    "read_idx",
    "read_matlab",
    "read_partition",
    "read_records",
    "read_sparse",
]

Bytes: TypeAlias = NDArray[np.uint8]
Labels: TypeAlias = NDArray[np.int64]

_UNSIGNED_BYTE = 8


def read_idx(path: Path, *, axes: int) -> Bytes:
    """Read an IDX file of bytes, compressed or not, the format of MNIST.

    The file starts with two zeros, the type and the number of axes, a byte each, then the lengths
    of the axes as big-endian 32-bit integers; the entries follow, last axis fastest.

    Parameters
    ----------
    path : Path
        The file, perhaps compressed by gzip.
    axes : int
        How many there must be.

    Returns
    -------
    ndarray of uint8
        Of the shape that the header names.

    Raises
    ------
    ValueError
        If the file is not of this form, or damaged.
    """
    content = path.read_bytes()
    if content.startswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} must be whole, as gzip compressed it: {error}") from error
    magic, wanted = content[:4], bytes([0, 0, _UNSIGNED_BYTE, axes])
    if magic != wanted:
        raise ValueError(f"{path} must start with {wanted.hex(' ')}, got {magic.hex(' ')}")
    start = 4 + 4 * axes
    if len(content) < start:
        raise ValueError(f"{path} must have a header of {start} bytes, got {len(content)}")
    lengths = struct.unpack(f">{axes}I", content[4:start])
    size = len(content) - start
    if size != math.prod(lengths):
        raise ValueError(f"{path} must hold {math.prod(lengths)} entries, got {size}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(lengths)


def read_records(
    path: Path, members: Sequence[str], *, shape: tuple[int, ...], classes: int
) -> tuple[Bytes, Labels]:
    """Read records of a label and an image from files of a tar archive, the format of CIFAR-10.

    Nothing is unpacked.

    Parameters
    ----------
    path : Path
        The archive.
    members : sequence of str
        Names in the archive, in the order wanted.
    shape : tuple of int
        Of one image; its bytes follow that of its label.
    classes : int
        Labels are below it.

    Returns
    -------
    pixels : ndarray of uint8, shape (n, ...)
    labels : ndarray of int, shape (n,)

    Raises
    ------
    ValueError
        If a member is missing or not of this form.
    """
    length = 1 + math.prod(shape)
    found: dict[str, Bytes] = {}
    with tarfile.open(path) as archive:
        for entry in archive:
            stream = archive.extractfile(entry) if entry.name in members else None
            if stream is None:
                continue
            content = np.frombuffer(stream.read(), np.uint8)
            if content.size % length:
                raise ValueError(
                    f"{entry.name} in {path} must hold records of {length} bytes, "
                    f"got {content.size} bytes"
                )
            found[entry.name] = content.reshape(-1, length)
    missing = [name for name in members if name not in found]
    if missing:
        raise ValueError(f"{path} must hold {', '.join(missing)}, got {sorted(found)}")
    records = np.concatenate([found[name] for name in members])
    labels = file_labels(path, records[:, 0], least=0, most=classes - 1)
    return records[:, 1:].reshape(-1, *shape), labels


def read_matlab(path: Path, *, shape: tuple[int, int, int]) -> tuple[Bytes, Labels]:
    """Read the arrays X and y of a MATLAB file, the format of SVHN.

    Images lie along the last axis of X and channels along the last but one; labels go from 1 to
    10, and 10 means the digit 0.

    Parameters
    ----------
    path : Path
        A file of MATLAB up to version 7.2, which is what SciPy reads.
    shape : tuple of int
        Of one image: (channels, height, width).

    Returns
    -------
    pixels : ndarray of uint8, shape (n, channels, height, width)
    labels : ndarray of int, shape (n,)
        The digits.

    Raises
    ------
    ValueError
        If the file is not of this form.
    """
    content = io.loadmat(path, variable_names=("X", "y"))
    missing = sorted({"X", "y"} - content.keys())
    if missing:
        raise ValueError(f"{path} must hold X and y, got no {', '.join(missing)}")
    images, marks = content["X"], content["y"].ravel()
    wanted = (*shape[1:], shape[0], marks.size)
    if images.shape != wanted or images.dtype != np.uint8:
        raise ValueError(
            f"X in {path} must have shape {wanted} of uint8, got {images.shape} of {images.dtype}"
        )
    labels = file_labels(path, marks, least=1, most=10) % 10
    return images.transpose(3, 2, 0, 1), labels


def read_sparse(path: Path, *, shape: tuple[int, int]) -> tuple[Array, Labels]:
    """Read a file of LIBSVM, the format in which USPS is handed on.

    A line holds a label from 1 to 10, which stands for the digits 0 to 9, and the pixels that are
    not zero, from -1 to 1, each after its place.

    Parameters
    ----------
    path : Path
        The file, perhaps compressed: then its name says how.
    shape : tuple of int
        Of one image: (height, width).

    Returns
    -------
    pixels : ndarray, shape (n, height, width)
        From 0 to 1.
    labels : ndarray of int, shape (n,)
        The digits.

    Raises
    ------
    ValueError
        If the file is not of this form.
    """
    size = math.prod(shape)
    try:
        found, marks = optional("sklearn.datasets").load_svmlight_file(str(path), n_features=size)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(
            f"{path} must be a file of LIBSVM with {size} features: {error}"
        ) from error
    pixels = (found.toarray() + 1) / 2
    if pixels.size and not (pixels.min() >= 0 and pixels.max() <= 1):
        raise ValueError(
            f"{path} must hold pixels from -1 to 1, got {2 * pixels.min() - 1:g} to "
            f"{2 * pixels.max() - 1:g}"
        )
    return pixels.reshape(-1, *shape), file_labels(path, marks, least=1, most=10) - 1


def read_attributes(path: Path, attribute: str) -> tuple[list[str], Labels]:
    """Read who has an attribute from the table that comes with CelebA.

    The first line holds the number of images, the second the names of the attributes, and every
    other a file and 1 or -1 for each attribute.

    Parameters
    ----------
    path : Path
        The table.
    attribute : str
        One of its names.

    Returns
    -------
    names : list of str
        Of the files.
    labels : ndarray of int, shape (n,)
        1 where the attribute is there, otherwise 0.

    Raises
    ------
    ValueError
        If the file is not of this form, or has no such attribute.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(lines) < 2:
        raise ValueError(
            f"{path} must begin with a number of images and names of attributes, "
            f"got {len(lines)} lines"
        )
    names = lines[1].split()
    column = names.index(_validate.choice("attribute", attribute, tuple(names))) + 1
    rows = [line.split() for line in lines[2:] if line.strip()]
    wrong = next((row for row in rows if len(row) != len(names) + 1), None)
    if wrong or lines[0].strip() != str(len(rows)):
        raise ValueError(
            f"{path} must have {lines[0].strip()} rows of a file and {len(names)} marks, got "
            + (f"the row {' '.join(wrong)[:60]!r}" if wrong else f"{len(rows)} rows")
        )
    marks = np.array([row[column] == "1" for row in rows], dtype=np.int64)
    return [row[0] for row in rows], marks


def read_partition(path: Path, names: Sequence[str]) -> Labels:
    """Read to which part of CelebA files belong: 0 for training, 1 validation, 2 testing.

    Parameters
    ----------
    path : Path
        A table with a file and its part in every line.
    names : sequence of str
        Files, in the order wanted.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    ValueError
        If a file is missing, or its part is none of these.
    """
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    parts = {row[0]: row[1] for row in rows if len(row) == 2}
    unknown = next((name for name in names if parts.get(name) not in ("0", "1", "2")), None)
    if unknown:
        raise ValueError(
            f"{path} must give {unknown} the part 0, 1 or 2, got {parts.get(unknown)!r}"
        )
    return np.array([int(parts[name]) for name in names], dtype=np.int64)


class Pictures:
    """Pictures in a zip archive, decoded and shrunk when they are asked for.

    Parameters
    ----------
    path : Path
        The archive.
    members : sequence of str
        The pictures, by their names in the archive.
    shape : tuple of int
        Of one picture after the middle square was cut out and shrunk: (3, side, side).
    """

    def __init__(self, path: Path, members: Sequence[str], shape: tuple[int, int, int]) -> None:
        self._path, self._members = path, members
        self.shape = (len(members), *shape)

    def __getitem__(self, rows: NDArray[np.intp]) -> Bytes:
        """Decode some of them, shape (len(rows), 3, side, side).

        Raises
        ------
        ValueError
            If one is missing or no picture.
        """
        from PIL import Image

        found = np.empty((len(rows), *self.shape[1:]), np.uint8)
        side = self.shape[-1]
        with zipfile.ZipFile(self._path) as archive:
            for place, row in enumerate(rows):
                name = self._members[row]
                try:
                    with archive.open(name) as stream, Image.open(stream) as picture:
                        least = min(picture.size)
                        left, top = ((length - least) // 2 for length in picture.size)
                        square = picture.convert("RGB").resize(
                            (side, side), box=(left, top, left + least, top + least)
                        )
                except (KeyError, OSError) as error:
                    raise ValueError(
                        f"{self._path} must hold the picture {name}: {error}"
                    ) from error
                found[place] = np.asarray(square).transpose(2, 0, 1)
        return found


def file_labels(path: Path, marks: NDArray[Any], *, least: int, most: int) -> Labels:
    """Return the labels of a file as integers, if there are any and they are in the range.

    Parameters
    ----------
    path : Path
        For the message.
    marks : ndarray, shape (n,)
        What the file holds, of any type of number.
    least, most : int
        Range of the labels, ends included.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    ValueError
        If there are none, or one is out of range.
    """
    if marks.size == 0:
        raise ValueError(f"{path} must hold at least one image, got none")
    if marks.min() < least or marks.max() > most:
        raise ValueError(
            f"{path} must have labels from {least} to {most}, got {marks.min()} to {marks.max()}"
        )
    return marks.astype(np.int64)
