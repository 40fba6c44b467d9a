"""Infinite-precision dynamics of the k-Gaussian mixture in closed form (BGHJ Sections 5.2.2, 5.3).

For orthonormal means started from m = 0 the k^2 equations collapse to one scalar equation
per class: column b of m stays of the form :math:`m_{bb}` on the diagonal and
:math:`-m_{bb} / (k - 1)` elsewhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import logsumexp

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.k_gmm import KGaussianMixture, Statistics
from traindyn.problems.k_gmm.limit import own_probability
from traindyn.problems.k_gmm.mixture import checked

__all__ = [
    "energy",
    "fixed_point",
    "fixed_point_diagonal",
    "from_diagonal",
    "scalar_drift",
]


def scalar_drift(problem: KGaussianMixture, diagonal: ArrayLike) -> Array:
    r"""Drift of the diagonal overlaps, :math:`\dot m_b = p_b (1 - q(m_b)) - \beta m_b`.

    Parameters
    ----------
    problem : KGaussianMixture
        With orthonormal means.
    diagonal : array_like, shape (..., k)
        Values of :math:`m_{bb}`.

    Returns
    -------
    ndarray, shape (..., k)

    Raises
    ------
    ValueError
        If the means are not orthonormal.
    """
    _need_orthonormal(problem)
    m = _validate.ending("diagonal", diagonal, (problem.k,))
    return np.asarray(problem.weights * (1.0 - own_probability(m, problem.k)) - problem.ridge * m)


def from_diagonal(problem: KGaussianMixture, diagonal: ArrayLike, t: float = np.inf) -> Statistics:
    r"""Statistics at time t of the limit dynamics from (m, R_perp) = (0, I).

    Parameters
    ----------
    problem : KGaussianMixture
        With orthonormal means.
    diagonal : array_like, shape (k,)
        Solution of :func:`scalar_drift` at time t.
    t : float
        Fixes :math:`R^\perp = e^{-2 \beta t} I`; infinite at the fixed point.
    """
    _need_orthonormal(problem)
    if t != np.inf:
        t = _validate.non_negative("t", t)
    k = problem.k
    own = _validate.finite("diagonal", diagonal, shape=(k,))
    m = np.tile(-own / (k - 1), (k, 1))
    np.fill_diagonal(m, own)
    return Statistics(m, np.exp(-2.0 * problem.ridge * t) * np.eye(k))


def fixed_point_diagonal(problem: KGaussianMixture) -> Array:
    r"""Diagonal overlaps at the fixed point, shape (k,).

    The unique root in :math:`(0, p_b / \beta)` of (from BGHJ (5.19))

    .. math:: m = \frac{p_b}{\beta} \Big(1 - \frac{e^m}{e^m + (k-1) e^{-m/(k-1)}}\Big).

    Raises
    ------
    ValueError
        If the means are not orthonormal.

    Examples
    --------
    >>> from companion.alignment.training_dynamics.limit import fixed_point_diagonal
    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(10, 500, precision=10.0, ridge=0.01)
    >>> round(fixed_point_diagonal(problem)[0].item(), 3)
    2.819
    """
    _need_orthonormal(problem)

    def excess(m: float, weight: float) -> float:
        q = own_probability(m, problem.k).item()
        return float(weight * (1.0 - q) - problem.ridge * m)

    roots = [
        brentq(excess, 0.0, weight / problem.ridge, args=(weight,), xtol=1e-15, rtol=1e-15)
        for weight in problem.weights
    ]
    return np.array(roots)


def fixed_point(problem: KGaussianMixture) -> Statistics:
    """Return the fixed point for orthonormal means (BGHJ Proposition 5.14)."""
    return from_diagonal(problem, fixed_point_diagonal(problem))


def energy(problem: KGaussianMixture, statistics: Statistics) -> float:
    r"""Evaluate the energy of the limit dynamics (BGHJ Lemma 5.13, corrected, any means).

    .. math::

        H = -\sum_a p_a m_{aa} + \sum_c p_c \log \sum_b e^{m_{bc}}
            + \frac\beta2 \mathrm{tr} (m \overline m^{-1} m^T + R^\perp),

    the regularised population loss at infinite precision. It is strictly convex, and
    :math:`\dot m_a = -\overline m\, \nabla_{m_a} H`, so there is one fixed point for any
    linearly independent means. The source prints :math:`e^{m_{cb}}` in the sum, see
    :func:`companion.alignment.training_dynamics.printed.printed_energy`.
    """
    m, R_perp = checked(problem, statistics, single=True)
    fit = problem.weights @ (logsumexp(m, axis=0) - np.diag(m))
    size = np.sum(problem.coordinates(m) ** 2) + np.trace(R_perp)
    return float(fit + 0.5 * problem.ridge * size)


def _need_orthonormal(problem: KGaussianMixture) -> None:
    worst = np.abs(problem.gram - np.eye(problem.k)).max()
    if worst > 1e-12:
        raise ValueError(
            "problem.gram must be the identity for the scalar reduction, "
            f"got an off-diagonal entry of {worst:.3g}"
        )
