r"""Gaussian vectors under a shift: products and tails (ZHU Lemmas A.11.2, A.11.4-A.11.7).

The functions on tails return a threshold that a norm exceeds with probability at most p, whatever
the shift of the Gaussian variables within a ball of radius R, which may depend on them. The source
leaves constants open in two lemmas; here they are explicit.

- A Lipschitz function of a Gaussian vector exceeds its mean by t with probability at most
  :math:`e^{-t^2 / (2 Lip^2)}`; this is the constant c = 1/2 of Lemma A.11.7.
- A net of the sphere with mesh 1/4 has at most :math:`9^n` points, and the norm of a matrix is at
  most 4/3 of its maximum on the net; this gives Lemmas A.11.5 and A.11.6 with
  :math:`C = \frac43 \sqrt{2 \log 9} < 2.8`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["columns_threshold", "linear_threshold", "product_supremum", "vector_threshold"]


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

    >>> from companion.lazy_training.linearity.tails import product_supremum
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


def linear_threshold(vector: ArrayLike, radius: float, probability: float) -> float:
    r"""Threshold of :math:`|b^T (a_0 + \Delta)|` (ZHU Lemma A.11.4).

    :math:`|b| (\sqrt{2 \log(2/p)} + R)`.

    Parameters
    ----------
    vector : array_like, shape (n,)
        b; the law of :math:`a_0` is standard Gaussian.
    radius : float
        R.
    probability : float
        p, in (0, 1).
    """
    length = float(np.linalg.norm(_validate.finite("vector", vector, shape=(None,))))
    radius, p = _validate.non_negative("radius", radius), _probability(probability)
    return length * (sqrt(2 * log(2 / p)) + radius)


def vector_threshold(matrix: ArrayLike, radius: float, probability: float) -> float:
    r"""Threshold of :math:`|B (a_0 + \Delta)|` (ZHU Lemma A.11.7).

    :math:`|B|_F + |B| (\sqrt{2 \log(1/p)} + R)`.

    Parameters
    ----------
    matrix : array_like, shape (m, n)
        B.
    radius, probability : float
        R bounds the length of :math:`\Delta`; p is in (0, 1).
    """
    array = _validate.finite("matrix", matrix, shape=(None, None))
    radius, p = _validate.non_negative("radius", radius), _probability(probability)
    norm = float(np.linalg.norm(array, 2))
    return float(np.linalg.norm(array)) + norm * (sqrt(2 * log(1 / p)) + radius)


def columns_threshold(matrices: Sequence[ArrayLike], radius: float, probability: float) -> float:
    r"""Threshold of :math:`|[B_1 a_1, \dots, B_n a_n]|` (ZHU Lemmas A.11.5, A.11.6).

    .. math::

       \tfrac43 \Big(\max_i |B_i|_F + \max_i |B_i| \sqrt{2 (n \log 9 + \log(1/p))}\Big)
       + R \max_i |B_i|

    Parameters
    ----------
    matrices : sequence of array_like, shape (m, N)
        The :math:`B_i`; the columns of the random matrix are independent.
    radius, probability : float
        R bounds the Frobenius norm of the shift of all :math:`a_i` together.
    """
    arrays = [
        _validate.finite(f"matrices[{i}]", b, shape=(None, None))
        for i, b in enumerate(_validate.listed("matrices", matrices))
    ]
    if not arrays:
        raise ValueError("matrices must not be empty")
    radius, p = _validate.non_negative("radius", radius), _probability(probability)
    norm = max(float(np.linalg.norm(array, 2)) for array in arrays)
    frobenius = max(float(np.linalg.norm(array)) for array in arrays)
    noise = norm * sqrt(2 * (len(arrays) * log(9) + log(1 / p)))
    return 4 / 3 * (frobenius + noise) + radius * norm


def _probability(value: float) -> float:
    p = _validate.positive("probability", value)
    if p >= 1:
        raise ValueError(f"probability must be in (0, 1), got {value!r}")
    return p
