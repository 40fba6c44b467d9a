"""Inputs made of images: averages of neighbouring pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["pooled"]


def pooled(inputs: ArrayLike, *, side: int) -> Array:
    """Average square images over blocks of two by two pixels, and drop the pixels that never vary.

    Parameters
    ----------
    inputs : array_like, shape (n, side**2)
        One image per row.
    side : int
        Even number of pixels on a side.

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    ValueError
        If the side is odd or the images have another size.

    Examples
    --------
    >>> from traindyn.data import pooled
    >>> pooled([[1, 3, 0, 0] * 4, [0] * 16], side=4).tolist()
    [[2.0, 2.0], [0.0, 0.0]]
    """
    side = _validate.integer("side", side, least=2)
    if side % 2:
        raise ValueError(f"side must be even, got {side}")
    rows = _validate.finite("inputs", inputs, shape=(None, side**2))
    half = side // 2
    small = rows.reshape(-1, half, 2, half, 2).mean(axis=(2, 4)).reshape(len(rows), -1)
    return np.ascontiguousarray(small[:, np.ptp(small, axis=0) > 0])
