r"""Tails of Gaussian forms and matrices under a shift, with constants (ZHU Lemmas A.11.4-A.11.8).

Each function returns a threshold that a norm exceeds with probability at most p, whatever the
shift of the Gaussian variables within a ball of radius R, which may depend on them: the proof of
the transition to linearity needs all weights of the ball at once. The source leaves constants
open in two lemmas; here they are explicit.

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
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate

__all__ = [
    "columns_threshold",
    "linear_threshold",
    "printed_series_threshold",
    "series_threshold",
    "series_variance",
    "vector_threshold",
]

Array = NDArray[np.float64]


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


def series_variance(matrices: ArrayLike) -> float:
    r"""Matrix variance :math:`\nu = \max(|\sum B_k B_k^T|, |\sum B_k^T B_k|)` (ZHU (A.31)).

    Parameters
    ----------
    matrices : array_like, shape (n, d1, d2)
        The :math:`B_k`.
    """
    array = _validate.finite("matrices", matrices, shape=(None, None, None))
    rows = np.einsum("kij,klj->il", array, array)
    columns = np.einsum("kij,kil->jl", array, array)
    return float(max(np.linalg.norm(rows, 2), np.linalg.norm(columns, 2)))


def series_threshold(matrices: ArrayLike, radius: float, probability: float) -> float:
    r"""Threshold of :math:`|\sum_k (\gamma_k + \Delta_k) B_k|` (ZHU Lemma A.11.8, corrected).

    :math:`\sqrt\nu (\sqrt{2 \log((d_1 + d_2)/p)} + R)`: the shift moves the sum by at most
    :math:`R \sqrt\nu`, and does so if one :math:`B_k` carries all of the variance.

    Parameters
    ----------
    matrices : array_like, shape (n, d1, d2)
        The :math:`B_k`; the :math:`\gamma_k` are independent standard Gaussians.
    radius, probability : float
        R bounds the length of :math:`\Delta`; p is in (0, 1).

    Examples
    --------
    One number: the law of :math:`|\gamma + R| / 10`.

    >>> round(series_threshold([[[0.1]]], radius=3.0, probability=2 * np.exp(-2)), 12)
    0.5
    """
    noise, spread = _series(matrices, probability)
    return noise + _validate.non_negative("radius", radius) * spread


def printed_series_threshold(matrices: ArrayLike, radius: float, probability: float) -> float:
    r"""Evaluate ZHU Lemma A.11.8 as printed, with :math:`R \nu` for :math:`R \sqrt\nu`.

    It is false where :math:`\nu < 1`, which is where the source uses the lemma.

    Parameters
    ----------
    matrices, radius, probability
        As in :func:`series_threshold`.
    """
    noise, spread = _series(matrices, probability)
    return noise + _validate.non_negative("radius", radius) * spread**2


def _series(matrices: ArrayLike, probability: float) -> tuple[float, float]:
    """Threshold without a shift, and root of the matrix variance."""
    spread = sqrt(series_variance(matrices))
    _, rows, columns = np.shape(matrices)
    return spread * sqrt(2 * log((rows + columns) / _probability(probability))), spread


def _probability(value: float) -> float:
    p = _validate.positive("probability", value)
    if p >= 1:
        raise ValueError(f"probability must be in (0, 1), got {value!r}")
    return p
