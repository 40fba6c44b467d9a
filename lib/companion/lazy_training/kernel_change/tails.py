r"""Tails of Gaussian series of matrices under a shift, with constants (ZHU Lemma A.11.8).

Each threshold is exceeded by a norm with probability at most p, whatever the shift of the Gaussian
variables within a ball of radius R, which may depend on them: the proof of the transition to
linearity needs all weights of the ball at once.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate

__all__ = ["printed_series_threshold", "series_threshold", "series_variance"]


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

    >>> import numpy as np
    >>> from companion.lazy_training.kernel_change.tails import series_threshold
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
