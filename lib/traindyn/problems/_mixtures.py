"""What the problems on Gaussian mixtures share: components, and Gram matrices of what is left.

Beside the directions of the means the weights are known through a Gram matrix alone.
"""

from __future__ import annotations

import numpy as np

from traindyn._types import Array, IntArray
from traindyn.gaussian import symmetric_sqrt

__all__ = ["components", "draw_factor", "factor", "upper_factor"]

# Directions below this share of the largest are rounding noise.
_RANK_TOLERANCE = 1e-13


def components(weights: Array, uniform: Array) -> IntArray:
    """Return the component that each uniform variable selects, with these probabilities."""
    found = np.searchsorted(np.cumsum(weights), uniform, side="right")
    return np.minimum(found, weights.size - 1).astype(np.int64)


def draw_factor(size: int, freedom: int, generator: np.random.Generator) -> Array:
    """Draw a matrix F for which F F^T is a Wishart matrix: its triangular (Bartlett) factor."""
    if freedom < size:
        return generator.standard_normal((size, freedom))
    drawn = np.tril(generator.standard_normal((size, size)), -1)
    drawn += np.diag(np.sqrt(generator.chisquare(freedom - np.arange(size))))
    return drawn


def factor(gram: Array) -> Array:
    """Return a matrix F of as few columns as F F^T = gram allows."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK_TOLERANCE * max(values[-1], 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def upper_factor(gram: Array) -> Array:
    """Return an upper triangular U with U^T U = gram, also where that is singular."""
    # gram = S S with S = Q U.
    return np.triu(np.linalg.qr(symmetric_sqrt(gram, scale=1.0), mode="r"))
