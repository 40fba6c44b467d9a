"""A step size that rises and falls in a triangle."""

from __future__ import annotations

import numpy as np

from traindyn import _validate
from traindyn._types import Array

__all__ = ["triangular"]


def triangular(low: float, high: float, *, period: int, steps: int) -> Array:
    """Return step sizes that rise and fall linearly, again and again (ZHU Figure C.12).

    Parameters
    ----------
    low, high : float
        The first step size, and that half a period later.
    period : int
        In steps, at least two.
    steps : int
        How many to return; the last period may be cut short.

    Returns
    -------
    ndarray, shape (steps,)

    Raises
    ------
    ValueError
        If `low` is not positive, or `high` is below it.

    Examples
    --------
    >>> from companion.catapults.sgd.schedules import triangular
    >>> triangular(1.0, 3.0, period=4, steps=6).tolist()
    [1.0, 2.0, 3.0, 2.0, 1.0, 2.0]
    """
    least, most = _validate.positive("low", low), _validate.positive("high", high)
    if most < least:
        raise ValueError(f"high must be at least low = {least:g}, got {most:g}")
    length = _validate.integer("period", period, least=2)
    phase = np.arange(_validate.integer("steps", steps, least=0)) % length / length
    return np.asarray(least + (most - least) * (1 - np.abs(1 - 2 * phase)))
