"""One function per data set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from os import PathLike
from typing import Literal, TypeAlias

import numpy as np

from traindyn import _validate
from traindyn._types import RNG
from traindyn.data import files
from traindyn.data.formats import file_labels, read_idx, read_matlab, read_records
from traindyn.data.images import Images, Raw, Scale, choose

__all__ = ["cifar10", "digits", "mnist", "svhn"]

Split = Literal["train", "test"]
ClassNames: TypeAlias = Sequence[int | str]
Folder: TypeAlias = str | PathLike[str]

_DIGITS = tuple("0123456789")
_OBJECTS = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_COLOUR = (3, 32, 32)


def digits(
    *,
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
) -> Images:
    """Return handwritten digits of 8 x 8 pixels, 1797 of them, which come with scikit-learn.

    Parameters
    ----------
    classes : sequence of int or str, optional
        Numbers or names of the classes to keep; labels follow their order here. All, unless
        given.
    samples : int, optional
        How many images to keep; all, unless given.
    scale : {'unit', 'standard'}
        'unit': pixels from 0 to 1. 'standard': every image less its mean and divided by its own
        standard deviation, so that ``|x|**2 == d``; no image depends on the others.
    rng : int, SeedSequence or Generator, optional
        Draws the images without replacement, in random order. Unless given, the first ones are
        kept, in the order of the file.

    Raises
    ------
    ValueError
        If a class is unknown or named twice, there are fewer images than asked for, or a
        constant image was to be standardised.
    ImportError
        If scikit-learn is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.data import digits
    >>> found = digits(classes=(3, 8), samples=100, scale="standard", rng=1)
    >>> found.inputs.shape, found.shape, found.names
    ((100, 64), (8, 8), ('3', '8'))
    >>> bool(np.allclose(np.square(found.inputs).sum(axis=1), 64))
    True
    """
    return choose(_digits(), classes=classes, samples=samples, scale=scale, rng=rng)


@cache
def _digits() -> Raw:
    """Read the file once: a chapter draws from it hundreds of times. Every draw is a copy."""
    bunch = files.optional("sklearn.datasets").load_digits()
    return Raw(bunch.images, bunch.target.astype(np.int64), _DIGITS, top=16)


def mnist(
    *,
    part: Split = "train",
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
    folder: Folder | None = None,
) -> Images:
    """Return handwritten digits of 28 x 28 pixels: 60000 for training, 10000 for testing.

    Parameters
    ----------
    part : {'train', 'test'}
        Images for training or for testing, as published.
    classes, samples, scale, rng
        As in :func:`digits`.
    folder : path, optional
        Where the files are, or are put after the download (11 MB); the cache folder of the
        system unless given.

    Raises
    ------
    ValueError
        As in :func:`digits`, and if a file is not the published one.
    ConnectionError
        If a file is missing and cannot be downloaded.
    ImportError
        If pooch is missing.
    """
    _part(part)
    images, marks = (files.fetch(file, folder) for file in files.MNIST[part])
    pixels = read_idx(images, axes=3)
    labels = file_labels(marks, read_idx(marks, axes=1), least=0, most=9)
    if len(pixels) != len(labels):
        raise ValueError(f"{marks} must hold {len(pixels)} labels, got {len(labels)}")
    raw = Raw(pixels, labels, _DIGITS)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def cifar10(
    *,
    part: Split = "train",
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
    folder: Folder | None = None,
) -> Images:
    """Return colour images of ten kinds of objects, 32 x 32: 50000 for training, 10000 for testing.

    CIFAR-2, as the subset of two classes is called, is ``classes=("airplane", "bird")``.

    Parameters
    ----------
    part : {'train', 'test'}
        Images for training or for testing, as published.
    classes, samples, scale, rng
        As in :func:`digits`.
    folder : path, optional
        As in :func:`mnist` (170 MB).

    Returns
    -------
    Images
        The whole training part takes 1.2 GB.

    Raises
    ------
    ValueError, ConnectionError, ImportError
        As in :func:`mnist`.
    """
    _part(part)
    batches = ["test_batch"] if part == "test" else [f"data_batch_{k}" for k in range(1, 6)]
    members = [f"cifar-10-batches-bin/{batch}.bin" for batch in batches]
    archive = files.fetch(files.CIFAR10, folder)
    pixels, labels = read_records(archive, members, shape=_COLOUR, classes=len(_OBJECTS))
    raw = Raw(pixels, labels, _OBJECTS)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def svhn(
    *,
    part: Split = "train",
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
    folder: Folder | None = None,
) -> Images:
    """Return digits of house numbers in colour, 32 x 32: 73257 for training, 26032 for testing.

    Parameters
    ----------
    part : {'train', 'test'}
        Images for training or for testing, as published.
    classes, samples, scale, rng
        As in :func:`digits`.
    folder : path, optional
        As in :func:`mnist` (182 and 64 MB).

    Returns
    -------
    Images
        The whole training part takes 1.8 GB.

    Raises
    ------
    ValueError, ConnectionError, ImportError
        As in :func:`mnist`.
    """
    _part(part)
    pixels, labels = read_matlab(files.fetch(files.SVHN[part], folder), shape=_COLOUR)
    raw = Raw(pixels, labels, _DIGITS)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def _part(part: Split) -> None:
    _validate.choice("part", part, ("train", "test"))
