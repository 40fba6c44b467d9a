r"""Average gradient outer products, and what they should become.

The features a model uses are read off :math:`G = \frac1n \sum_i \nabla f(x_i) \nabla f(x_i)^\top`,
gradients in the *input*; those that matter are in
:math:`G^* = \mathbb E[\nabla f^* \nabla f^{*\top}]` of the target, which for these targets and
standard normal inputs has a closed form. The alignment is the cosine of the two (ZHU (4.6)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["TARGETS", "Target", "agop", "alignment", "target"]


class Target(NamedTuple):
    """A regression function of standard normal inputs.

    Attributes
    ----------
    name : str
    value : callable
        From inputs of shape (n, d) to shape (n,).
    gradient : callable
        To shape (n, d).
    egop : ndarray, shape (d, d)
        Expected gradient outer product.
    """

    name: str
    value: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    egop: Array


def agop(gradients: ArrayLike) -> Array:
    """Return the average outer product of gradients in the input.

    Parameters
    ----------
    gradients : array_like, shape (n, d) or (n, k, d)
        Of one output, or of k, whose products are added.

    Returns
    -------
    ndarray, shape (d, d)

    Raises
    ------
    ValueError
        If the shape is another, or an entry is not finite.

    Examples
    --------
    >>> from traindyn.catapults import agop
    >>> agop([[1.0, 0.0], [1.0, 2.0]]).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """
    found = _validate.finite("gradients", gradients)
    if found.ndim not in (2, 3):
        raise ValueError(f"gradients must have shape (n, d) or (n, k, d), got {found.shape}")
    rows = found.reshape(-1, found.shape[-1])
    return np.asarray(rows.T @ rows / len(found))


def alignment(first: ArrayLike, second: ArrayLike) -> float:
    """Return the cosine of two matrices, ``tr(A^T B) / |A| |B|``.

    Parameters
    ----------
    first, second : array_like, shape (d, d)
        Not zero.

    Raises
    ------
    ValueError
        If shapes differ or a matrix is zero.

    Examples
    --------
    The isotropic matrix against two directions of a hundred:

    >>> import numpy as np
    >>> from traindyn.catapults import alignment
    >>> round(alignment(np.eye(100), np.diag([1.0, 1.0] + [0.0] * 98)), 4)
    0.1414
    """
    a = _validate.finite("first", first, shape=(None, None))
    b = _validate.finite("second", second, shape=a.shape)
    size = np.linalg.norm(a) * np.linalg.norm(b)
    if size == 0:
        raise ValueError("first and second must not be zero")
    return float(np.sum(a * b) / size)


def _products(x: Array) -> Array:
    """Return the partial products x1, x1 x2, ..., shape (n, 4)."""
    return np.asarray(np.cumprod(x[:, :4], axis=1))


def _rank_two(d: int) -> Target:
    def gradient(x: Array) -> Array:
        found = np.zeros_like(x)
        found[:, 0], found[:, 1] = x[:, 1], x[:, 0]
        return found

    return Target("rank-2", lambda x: x[:, 0] * x[:, 1], gradient, _diagonal(d, [1.0, 1.0]))


def _rank_three(d: int) -> Target:
    def gradient(x: Array) -> Array:
        found, total = np.zeros_like(x), x[:, :10].sum(axis=1)
        product = x[:, 0] * x[:, 1]
        found[:, :10] = product[:, None]
        found[:, 0] += x[:, 1] * total
        found[:, 1] += x[:, 0] * total
        return found

    # Second moments of the gradient by Wick's rule.
    egop = np.zeros((d, d))
    egop[:10, :10] = 1.0
    egop[:2, :10], egop[:10, :2] = 2.0, 2.0
    egop[:2, :2] = [[15.0, 5.0], [5.0, 15.0]]
    return Target("rank-3", lambda x: x[:, 0] * x[:, 1] * x[:, :10].sum(axis=1), gradient, egop)


def _rank_four(d: int) -> Target:
    def gradient(x: Array) -> Array:
        found = np.zeros_like(x)
        for j in range(4):
            # Terms that contain x_j: the products up to k >= j without that factor.
            others = x[:, :4].copy()
            others[:, j] = 1.0
            found[:, j] = np.cumprod(others, axis=1)[:, j:].sum(axis=1)
        return found

    return Target(
        "rank-4", lambda x: _products(x).sum(axis=1), gradient, _diagonal(d, [4.0, 3.0, 2.0, 1.0])
    )


def _full_rank(d: int) -> Target:
    return Target(
        "full rank",
        lambda x: np.linalg.norm(x, axis=1) / np.sqrt(d),
        lambda x: x / (np.sqrt(d) * np.linalg.norm(x, axis=1, keepdims=True)),
        np.eye(d) / d**2,
    )


def _diagonal(d: int, entries: list[float]) -> Array:
    return np.diag(np.array(entries + [0.0] * (d - len(entries))))


TARGETS: dict[str, tuple[Callable[[int], Target], int]] = {
    "rank-2": (_rank_two, 2),
    "rank-3": (_rank_three, 10),
    "rank-4": (_rank_four, 4),
    "full rank": (_full_rank, 1),
}
"""By name: the target in dimension d, and the least d it is defined in."""


def target(name: str, dimension: int) -> Target:
    """Return one of the source's synthetic targets (ZHU, Section 4.4).

    Parameters
    ----------
    name : {"rank-2", "rank-3", "rank-4", "full rank"}
        ``x1 x2``; ``x1 x2 (x1 + ... + x10)``; ``x1 + x1 x2 + x1 x2 x3 + x1 x2 x3 x4``;
        ``|x| / sqrt(d)``.
    dimension : int
        d; at least 2, 10, 4 and 1 for the four names, in this order.

    Raises
    ------
    ValueError
        If the name is unknown or the dimension too small.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.catapults import target
    >>> np.linalg.eigvalsh(target("rank-3", 12).egop)[-4:].round(6).tolist()
    [0.0, 4.0, 10.0, 24.0]
    """
    _validate.choice("name", name, tuple(TARGETS))
    make, least = TARGETS[name]
    return make(_validate.integer("dimension", dimension, least=least))
