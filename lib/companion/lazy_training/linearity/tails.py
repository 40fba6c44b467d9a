"""The largest product of two vectors over a ball of shifts of both."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn.problems.base import Array

__all__ = ["product_supremum"]


def product_supremum(left: ArrayLike, right: ArrayLike, radius: float) -> Array:
    r"""Largest :math:`|(a + \delta) \cdot (b + \zeta)|` over a ball of both shifts together.

    Over :math:`|\delta|^2 + |\zeta|^2 \le R^2`, exactly: with :math:`p = (a + b)/\sqrt2` and
    :math:`q = (a - b)/\sqrt2` the product is :math:`(|p|^2 - |q|^2)/2`, so that the best shift
    lengthens one of the two and shortens the other. It is the supremum over a ball of weights of
    a neuron of the second layer of a linear network, times the root of the width (ZHU Lemma
    A.11.2).

    Parameters
    ----------
    left, right : array_like, shape (n, m)
        Rows a and b.
    radius : float
        R.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    Two numbers: the best shift of (0, 0) is to equal ones, of product R²/2.

    >>> product_supremum([[0.0]], [[0.0]], 2.0).round(12)
    array([2.])
    """
    a = _validate.finite("left", left, shape=(None, None))
    b = _validate.finite("right", right, shape=a.shape)
    radius = _validate.non_negative("radius", radius)
    sums, differences = (np.linalg.norm(one, axis=1) / sqrt(2) for one in (a + b, a - b))

    def best(longer: Array, shorter: Array) -> Array:
        """Maximum of ((P + s)² - (Q - c)²)/2 over s² + c² = R², c at most Q."""
        # Where Q survives, the shift has s/c = (P + s)/(Q - c); a bisection in c finds it.
        low, high = np.zeros_like(shorter), np.minimum(shorter, radius)
        for _ in range(60):
            c = (low + high) / 2
            s = np.sqrt(np.maximum(radius**2 - c**2, 0.0))
            rising = s * (shorter - c) > c * (longer + s)
            low, high = np.where(rising, c, low), np.where(rising, high, c)
        s = np.sqrt(np.maximum(radius**2 - low**2, 0.0))
        found: Array = ((longer + s) ** 2 - (shorter - low) ** 2) / 2
        return found

    return np.maximum(best(sums, differences), best(differences, sums))
