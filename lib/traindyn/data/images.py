"""The result type of the loaders, and how a part of a data set is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.data.formats import Pictures

__all__ = ["Images", "Raw", "Scale", "choose"]

Scale = Literal["unit", "standard"]


@dataclass(frozen=True, eq=False)
class Images:
    """Images as vectors, with labels.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
        One image per row: channel by channel, row by row.
    labels : ndarray of int, shape (n,)
        Positions in `names`.
    shape : tuple of int
        Of one image: (height, width), or (channels, height, width).
    names : tuple of str
        Of the classes.
    """

    inputs: Array
    labels: NDArray[np.int64]
    shape: tuple[int, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        """Count the images."""
        return len(self.labels)

    @property
    def pictures(self) -> Array:
        """The inputs as images, shape (n, ...)."""
        return self.inputs.reshape(len(self), *self.shape)

    @property
    def signs(self) -> Array:
        """Labels of two classes as -1 and 1, shape (n,).

        Raises
        ------
        ValueError
            If there are more classes, or one.
        """
        if len(self.names) != 2:
            raise ValueError(f"signs need two classes, got {len(self.names)}")
        return np.where(self.labels == 1, 1.0, -1.0)

    def take(self, rows: ArrayLike | slice) -> Images:
        """Choose some of the images.

        Parameters
        ----------
        rows : slice, or array_like of int or bool
            As for an array.
        """
        chosen: slice | NDArray[Any] = slice(None)
        if isinstance(rows, slice):
            chosen = rows
        elif np.asarray(rows).dtype == bool:
            chosen = _validate.mask("rows", rows, size=len(self))
        else:
            chosen = _validate.integers(
                "rows", rows, least=-len(self), most=len(self) - 1, shape=(None,)
            )
        return replace(self, inputs=self.inputs[chosen], labels=self.labels[chosen])


@dataclass(frozen=True, eq=False)
class Raw:
    """A data set as it is stored.

    Attributes
    ----------
    pixels : ndarray, shape (n, ...), or Pictures
        From 0 to `top`.
    labels : ndarray of int, shape (n,)
        Positions in `names`.
    names : tuple of str
    top : int
        The largest value a pixel can have.
    """

    pixels: NDArray[Any] | Pictures
    labels: NDArray[np.int64]
    names: tuple[str, ...]
    top: int = 255


def choose(
    raw: Raw,
    *,
    classes: Sequence[int | str] | None,
    samples: int | None,
    scale: Scale,
    rng: RNG | None,
) -> Images:
    """Choose classes and images, then scale; only what was chosen becomes floating point.

    Parameters
    ----------
    raw : Raw
        The whole data set, as it is stored.
    classes, samples, scale, rng
        As in :func:`~traindyn.data.loaders.digits`.

    Raises
    ------
    ValueError
        As in :func:`~traindyn.data.loaders.digits`.
    """
    _validate.choice("scale", scale, ("unit", "standard"))
    wanted = _positions(raw.names, classes)
    place = np.full(len(raw.names), -1)
    place[wanted] = np.arange(len(wanted))
    rows = np.flatnonzero(place[raw.labels] >= 0)
    count = rows.size
    if samples is not None:
        count = _validate.integer("samples", samples, least=1, most=count)
    if rng is None:
        rows = rows[:count]
    else:
        rows = _validate.generator("rng", rng).choice(rows, count, replace=False)
    pixels = raw.pixels[rows].reshape(count, -1)
    inputs = pixels / float(raw.top)
    if scale == "standard":
        if np.any(pixels.min(axis=1) == pixels.max(axis=1)):
            raise ValueError("scale must be 'unit' where an image is constant, got 'standard'")
        inputs -= inputs.mean(axis=1, keepdims=True)
        inputs /= inputs.std(axis=1, keepdims=True)
    labels = place[raw.labels[rows]].astype(np.int64)
    return Images(inputs, labels, raw.pixels.shape[1:], tuple(raw.names[k] for k in wanted))


def _positions(names: tuple[str, ...], classes: Sequence[int | str] | None) -> list[int]:
    if classes is None:
        return list(range(len(names)))
    if isinstance(classes, str) or not _validate.listed("classes", classes):
        raise ValueError(f"classes must be a list of at least one class, got {classes!r}")
    found = [
        names.index(_validate.choice("classes", each, names))
        if isinstance(each, str)
        else _validate.integer("classes", each, least=0, most=len(names) - 1)
        for each in classes
    ]
    if len(set(found)) < len(found):
        raise ValueError(f"classes must differ, got {list(classes)}")
    return found
