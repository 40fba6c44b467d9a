r"""Counting learned classes on few samples: the error rate at infinite precision.

Without noise all samples of a centroid are equal. Where every neuron answers at most one
centroid, as at the fixed points of :mod:`traindyn.problems.two_layer.equilibria`, the block of
the second layer made of M samples, :math:`N_c` of them of centroid c, is

.. math:: \frac1M \sum_c N_c w_c\, g(W s_c) g(W s_c)^T

with orthogonal vectors, so that its eigenvalues are those of the population, each multiplied by
:math:`N_c / (M p_c)`. Whether a threshold finds a class is then a matter of the counts
:math:`N_c` alone, which are multinomial.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from traindyn import _validate
from traindyn._types import Array

__all__ = ["count_law", "missed_probability"]


def missed_probability(
    samples: int, least: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    r"""Probability that some learned class has too few samples to be counted.

    .. math:: 1 - P(N_1 \ge l_1, \dots, N_r \ge l_r)

    for counts that are multinomial with the probabilities of the learned classes, and any
    number of other classes.

    Parameters
    ----------
    samples : int
        Number M of samples.
    least : array_like of int, shape (r,)
        Counts :math:`l_c \ge 0` of the learned classes. A threshold :math:`\tau` on the
        eigenvalues finds a class of eigenvalue :math:`\theta_c` if
        :math:`N_c > M p_c \tau / \theta_c`; a gap in the spectrum, if :math:`N_c \ge 1`.
    weights : array_like, shape (r,), optional
        Probabilities of the learned classes, positive, of sum at most one; 1/4 each unless
        given, for the XOR mixture.

    Raises
    ------
    ValueError
        If a number is out of range or the lengths differ.

    Examples
    --------
    A class is not seen at all; two of them, by inclusion and exclusion:

    >>> from companion.alignment.xor_rank.rank import missed_probability
    >>> missed_probability(2, [1])
    0.5625
    >>> missed_probability(3, [1, 1]) == 2 * 0.75**3 - 0.5**3
    True
    """
    samples = _validate.integer("samples", samples, least=1)
    wanted = np.asarray(least)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu" or np.any(wanted < 0):
        raise ValueError(f"least must be a list of integers, none negative, got {least!r}")
    given = np.full(wanted.size, 0.25) if weights is None else weights
    shares = _validate.finite("weights", given, shape=(wanted.size,))
    if np.any(shares <= 0) or shares.sum() > 1 + 1e-12:
        raise ValueError(f"weights must be positive with a sum of at most 1, got {shares.tolist()}")
    # Law of the samples left over, given that the classes so far have enough.
    left = np.zeros(samples + 1)
    left[samples] = 1.0
    counts, rest = np.arange(samples + 1), 1.0
    for share, enough in zip(shares, wanted, strict=True):
        taken = stats.binom.pmf(counts[:, None], counts, min(share / rest, 1.0))
        taken[:enough] = 0.0
        after = np.zeros_like(left)
        for total in np.flatnonzero(left):
            after[: total + 1] += left[total] * taken[total::-1, total]
        left, rest = after, rest - share
    return float(1.0 - left.sum())


def count_law(width: int, classes: int = 4) -> Array:
    r"""Law of the number of non-empty classes when neurons choose uniformly and independently.

    .. math:: P(r) = \binom nr \frac{\mathrm{Surj}(K, r)}{n^K}, \qquad
              \mathrm{Surj}(K, r) = \sum_j (-1)^j \binom rj (r - j)^K.

    At infinite precision it is the law of the number of outliers of the second-layer blocks
    of the XOR mixture after training. Its last entry is
    :func:`~traindyn.problems.two_layer.equilibria.success_probability`.

    Parameters
    ----------
    width : int
        Number of neurons K.
    classes : int, default 4
        Number of classes n.

    Returns
    -------
    ndarray, shape (classes + 1,)
        Probability of 0, 1, ... non-empty classes.

    Examples
    --------
    >>> from companion.alignment.xor_rank.rank import count_law
    >>> count_law(4).tolist()
    [0.0, 0.015625, 0.328125, 0.5625, 0.09375]
    """
    width = _validate.integer("width", width, least=1)
    count = _validate.integer("classes", classes, least=1)
    ways = [
        comb(count, r) * sum((-1) ** j * comb(r, j) * (r - j) ** width for j in range(r + 1))
        for r in range(count + 1)
    ]
    return np.array([float(Fraction(way, count**width)) for way in ways])
