"""One function per data set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from traindyn import _validate
from traindyn._types import RNG
from traindyn.data import files
from traindyn.data.formats import (
    Bytes,
    Labels,
    Pictures,
    file_labels,
    read_attributes,
    read_idx,
    read_matlab,
    read_partition,
    read_records,
    read_sparse,
)
from traindyn.data.images import Images, Raw, Scale, choose

__all__ = ["celeba", "cifar10", "digits", "fashion_mnist", "mnist", "mnist_sample", "svhn", "usps"]

Split = Literal["train", "test"]
ClassNames: TypeAlias = Sequence[int | str]
Folder: TypeAlias = str | PathLike[str]

#: The files of `mnist_sample`.
_HERE = Path(__file__).parent
_DIGITS = tuple("0123456789")
_OBJECTS = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_CLOTHES = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot",
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
        Where the files are, or are put after the download (12 MB). Unless given, the folder that
        the environment variable ``TRAINDYN_DATA`` names, or the cache folder of the system; see
        :func:`~traindyn.data.files.fetch`.

    Raises
    ------
    ValueError
        As in :func:`digits`, and if a file is not the published one.
    ConnectionError
        If a file is missing and cannot be downloaded.
    OSError
        If it cannot be written.
    ImportError
        If pooch is missing.
    """
    raw = _pair(files.MNIST, part, folder, _DIGITS)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def mnist_sample(
    *,
    part: Split = "train",
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
) -> Images:
    """Return 5000 images of MNIST, which come with the library.

    They are the first 400 of each digit among the images for training and the first 100 of each
    among those for testing, as published; their licence is CC BY-SA 3.0.

    Parameters
    ----------
    part : {'train', 'test'}
        Images for training or for testing.
    classes, samples, scale, rng
        As in :func:`digits`.

    Raises
    ------
    ValueError
        As in :func:`digits`.

    Examples
    --------
    >>> from traindyn.data import mnist_sample
    >>> found = mnist_sample(part="test", classes=(0, 2), samples=50, rng=1)
    >>> found.inputs.shape, found.names
    ((50, 784), ('0', '2'))
    """
    _part(part)
    images, marks = (_HERE / f"mnist-{part}-{what}.gz" for what in ("images", "labels"))
    raw = Raw(*_paired(images, marks), _DIGITS)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def fashion_mnist(
    *,
    part: Split = "train",
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
    folder: Folder | None = None,
) -> Images:
    """Return pictures of clothes, 28 x 28 pixels: 60000 for training, 10000 for testing.

    Parameters
    ----------
    part : {'train', 'test'}
        Images for training or for testing, as published.
    classes, samples, scale, rng
        As in :func:`digits`.
    folder : path, optional
        As in :func:`mnist` (31 MB).

    Raises
    ------
    ValueError, ConnectionError, OSError, ImportError
        As in :func:`mnist`.
    """
    raw = _pair(files.FASHION_MNIST, part, folder, _CLOTHES)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def usps(
    *,
    part: Split = "train",
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
    folder: Folder | None = None,
) -> Images:
    """Return digits of envelopes, 16 x 16 pixels: 7291 for training, 2007 for testing.

    Parameters
    ----------
    part : {'train', 'test'}
        Images for training or for testing, as published.
    classes, samples, scale, rng
        As in :func:`digits`.
    folder : path, optional
        As in :func:`mnist` (9 MB).

    Raises
    ------
    ValueError, ConnectionError, OSError, ImportError
        As in :func:`mnist`.
    """
    _part(part)
    pixels, labels = read_sparse(files.fetch(files.USPS, part, folder), shape=(16, 16))
    raw = Raw(pixels, labels, _DIGITS, top=1)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def celeba(
    attribute: str = "Eyeglasses",
    *,
    side: int = 32,
    part: Split = "train",
    classes: ClassNames | None = None,
    samples: int | None = None,
    scale: Scale = "unit",
    rng: RNG | None = None,
    folder: Folder | None = None,
) -> Images:
    """Return faces in colour, with or without something: 162770 for training, 19962 for testing.

    The middle square of each picture, 178 pixels wide, is shrunk.

    Parameters
    ----------
    attribute : str
        One of the forty of the data set.
    side : int
        Pixels in a row of an image; at most 178.
    part : {'train', 'test'}
        Images for training or for testing, as published.
    classes : sequence of int or str, optional
        ``("no", "yes")`` unless given.
    samples, scale, rng
        As in :func:`digits`. Only images that are chosen are decoded, a thousand in some seconds.
    folder : path, optional
        As in :func:`mnist`, but the files (1.5 GB) can be downloaded by hand only; the error says
        where they are and where they belong.

    Raises
    ------
    ValueError, ConnectionError
        As in :func:`mnist`, and if there is no such attribute.
    """
    _part(part)
    side = _validate.integer("side", side, least=1, most=178)
    archive, table, parts = (
        files.fetch(files.CELEBA, key, folder) for key in ("images", "attributes", "partition")
    )
    names, labels = read_attributes(table, attribute)
    kept = np.flatnonzero(read_partition(parts, names) == {"train": 0, "test": 2}[part])
    members = [f"img_align_celeba/{names[k]}" for k in kept]
    pictures = Pictures(archive, members, (3, side, side))
    return choose(
        Raw(pictures, file_labels(table, labels[kept], least=0, most=1), ("no", "yes")),
        classes=classes, samples=samples, scale=scale, rng=rng,
    )  # fmt: skip


def _pair(data: files.DataSet, part: Split, folder: Folder | None, names: tuple[str, ...]) -> Raw:
    """Read images and labels from two files."""
    _part(part)
    images, marks = (files.fetch(data, f"{part} {what}", folder) for what in ("images", "labels"))
    return Raw(*_paired(images, marks), names)


@lru_cache(maxsize=4)
def _paired(images: Path, marks: Path) -> tuple[Bytes, Labels]:
    """Read files that were checked, once: a chapter draws from them hundreds of times."""
    pixels = read_idx(images, axes=3)
    labels = file_labels(marks, read_idx(marks, axes=1), least=0, most=9)
    if len(pixels) != len(labels):
        raise ValueError(f"{marks} must hold {len(pixels)} labels, got {len(labels)}")
    labels.setflags(write=False)
    return pixels, labels


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
    ValueError, ConnectionError, OSError, ImportError
        As in :func:`mnist`.
    """
    _part(part)
    batches = ["test_batch"] if part == "test" else [f"data_batch_{k}" for k in range(1, 6)]
    members = [f"cifar-10-batches-bin/{batch}.bin" for batch in batches]
    archive = files.fetch(files.CIFAR10, "archive", folder)
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
    ValueError, ConnectionError, OSError, ImportError
        As in :func:`mnist`.
    """
    _part(part)
    pixels, labels = read_matlab(files.fetch(files.SVHN, part, folder), shape=_COLOUR)
    raw = Raw(pixels, labels, _DIGITS)
    return choose(raw, classes=classes, samples=samples, scale=scale, rng=rng)


def _part(part: Split) -> None:
    _validate.choice("part", part, ("train", "test"))
