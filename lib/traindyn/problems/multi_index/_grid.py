"""What the quadratures over a target's coordinates share: midpoint grids, label features."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.polynomial.hermite_e import hermevander

from traindyn._types import Array
from traindyn.gaussian import Rule

_REACH = 8.6
"""Half-width of the grids; the Gaussian mass beyond it is 1e-17."""
_SPACINGS = {1: 0.02, 2: 0.06, 3: 0.17, 4: 0.5}
LARGEST_DIMENSION = max(_SPACINGS)
LABEL_FUNCTIONS = 8


@lru_cache(maxsize=8)
def midpoint(dim: int, scale: float = 1.0) -> Rule:
    """Midpoint rule for the Gaussian law: as symmetric as the law, no node on an axis.

    For functions analytic in a strip it converges exponentially, faster than Gauss-Hermite
    rules where the strip is narrow; symmetries under permutations and signs of the
    coordinates hold to rounding even for discontinuous ones.
    """
    count = 2 * int(np.ceil(_REACH / (scale * _SPACINGS[dim])))
    nodes, weights = product_grid(dim, count, least=1e-18)
    return Rule(nodes, weights / weights.sum())


def product_grid(dim: int, count: int, *, least: float) -> tuple[Array, Array]:
    """Return the points of a grid with `count` points a side, and their masses.

    Points whose mass is below that share of the largest are left out.
    """
    axis = (np.arange(count) + 0.5) * (2 * _REACH / count) - _REACH
    mass = np.exp(-axis * axis / 2)
    mass /= mass.sum()
    nodes = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = mass
    for _ in range(dim - 1):
        weights = np.multiply.outer(weights, mass)
    weights = weights.ravel()
    kept = weights > least * weights.max()
    return nodes[kept], weights[kept]


def label_functions(labels: Array) -> Array:
    """Bounded smooth functions of the label, shape (n, LABEL_FUNCTIONS).

    Chebyshev polynomials, from degree 1, of the label squeezed into (-1, 1).
    """
    squeezed = labels / np.sqrt(1 + labels**2)
    return np.asarray(chebvander(squeezed, LABEL_FUNCTIONS)[:, 1:])


def multi_indices(dim: int, order: int) -> list[tuple[int, ...]]:
    """Return all tuples of `dim` non-negative integers with this sum."""
    if dim == 0:
        return [()] if order == 0 else []
    return [
        (first, *rest)
        for first in range(order, -1, -1)
        for rest in multi_indices(dim - 1, order - first)
    ]


def hermite(coordinates: Array, order: int) -> Array:
    """Products of normalised Hermite polynomials of total degree `order`, shape (n, count)."""
    n, dim = coordinates.shape
    indices = multi_indices(dim, order)
    norms = np.sqrt(np.cumprod([1.0, *range(1, order + 1)]))
    tables = [hermevander(coordinates[:, j], order) / norms for j in range(dim)]
    result = np.ones((n, len(indices)))
    for column, powers in enumerate(indices):
        for table, power in zip(tables, powers):
            result[:, column] *= table[:, power]
    return result


def orthonormal_columns(functions: Array, weights: Array) -> Array:
    """Orthonormal functions, in the mean over the weights, with the same span (n, rank)."""
    rooted = functions * np.sqrt(weights)[:, None]
    values, vectors = np.linalg.eigh(rooted.T @ rooted)
    kept = values > 1e-10 * values[-1]
    return np.asarray(functions @ (vectors[:, kept] / np.sqrt(values[kept])))
