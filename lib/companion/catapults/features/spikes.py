"""Steps at which the training loss rises."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate

__all__ = ["spikes"]


def spikes(losses: ArrayLike, *, factor: float) -> NDArray[np.int64]:
    """Return the steps at which the loss rises by more than a factor.

    Parameters
    ----------
    losses : array_like, shape (T,)
        Losses, one after each step.
    factor : float
        At least one. With one every increase counts, also that of ordinary noise.

    Returns
    -------
    ndarray of int
        t such that ``losses[t + 1] > factor * losses[t]``.

    Raises
    ------
    ValueError
        If the factor is below one.

    Examples
    --------
    >>> from companion.catapults.features.spikes import spikes
    >>> spikes([1.0, 1.1, 3.0, 2.0], factor=1.5)
    array([1])
    """
    values = _validate.finite("losses", losses, shape=(None,))
    if _validate.number("factor", factor) < 1:
        raise ValueError(f"factor must be at least 1, got {factor!r}")
    return np.flatnonzero(values[1:] > factor * values[:-1])
