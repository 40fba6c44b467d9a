"""Readers of the formats the data sets are published in; none of them can run code."""

from __future__ import annotations

import gzip
import math
import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import io

__all__ = ["file_labels", "read_idx", "read_matlab", "read_records"]

Bytes: TypeAlias = NDArray[np.uint8]
Labels: TypeAlias = NDArray[np.int64]

_UNSIGNED_BYTE = 8


def read_idx(path: Path, *, axes: int) -> Bytes:
    """Read a compressed IDX file of bytes, the format of MNIST.

    The file starts with two zeros, the type and the number of axes, a byte each, then the lengths
    of the axes as big-endian 32-bit integers; the entries follow, last axis fastest.

    Parameters
    ----------
    path : Path
        The file, compressed by gzip.
    axes : int
        How many there must be.

    Returns
    -------
    ndarray of uint8
        Of the shape that the header names.

    Raises
    ------
    ValueError
        If the file is not of this form.
    """
    with gzip.open(path) as stream:
        content = stream.read()
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
