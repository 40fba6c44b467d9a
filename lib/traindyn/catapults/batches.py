"""Which examples each step of SGD takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traindyn import _validate

__all__ = ["batch_order"]


def batch_order(
    n: int, size: int, steps: int, *, rng: int | np.random.SeedSequence | np.random.Generator
) -> NDArray[np.int64]:
    """Draw the batches of SGD: epochs in random order, an incomplete last batch dropped.

    Parameters
    ----------
    n : int
        Number of examples, at least 1.
    size : int
        Examples in a batch, from 1 to n.
    steps : int
        Number of batches, one per step.
    rng : int, SeedSequence or Generator
        Draws the order of each epoch.

    Returns
    -------
    ndarray of int, shape (steps, size)
        Rows of the examples of each batch.

    Raises
    ------
    ValueError
        If a batch is larger than n.

    Examples
    --------
    >>> from traindyn.catapults import batch_order
    >>> sorted(batch_order(4, 2, 2, rng=0).ravel().tolist())
    [0, 1, 2, 3]
    """
    total = _validate.integer("n", n, least=1)
    each = _validate.integer("size", size, least=1, most=total)
    count = _validate.integer("steps", steps, least=0)
    generator = _validate.generator("rng", rng)
    per_epoch = total // each
    epochs = [
        generator.permutation(total)[: per_epoch * each].reshape(per_epoch, each)
        for _ in range(-(-count // per_epoch))
    ]
    return np.concatenate([np.empty((0, each), dtype=np.int64), *epochs])[:count]
