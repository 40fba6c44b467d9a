r"""Fixed points of the effective dynamics of spiked PCA (BGJ Proposition 3.2, Section 7.1).

With :math:`\beta = \alpha / (2k)`, :math:`\rho = R^2`, :math:`Q = \rho^{k-1} + \beta` and
:math:`P = Q - c_\delta \rho^{k-2}`, the fixed points are the origin, the solutions
:math:`P(\rho) = 0` on the equator m = 0, and

.. math:: \lambda m^{k-2} = Q, \qquad r_\perp^2 = c_\delta \rho^{k-1} / Q, \qquad
          m^2 = \rho P / Q ,

so that all of them come from scalar equations, for every order, step size and ridge. BGJ
prints :math:`\alpha / k` for :math:`\alpha / (2k)` and, for odd k, fixed points of both signs:
there m must be positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from traindyn import _validate
from traindyn.problems.spiked.tensor import SpikedTensor, Statistics

__all__ = ["Equilibrium", "critical_ridge", "critical_signal", "equilibria", "informative"]

# Finite stand-in for the logarithm of zero in a root search: exp of it underflows.
_LOG_ZERO = -1e3


@dataclass(frozen=True)
class Equilibrium:
    """A fixed point of the effective dynamics.

    Attributes
    ----------
    statistics : Statistics
    eigenvalues : ndarray of complex, shape (2,)
        Of the Jacobian of the drift, decreasing real part.
    stable : bool
        Whether both real parts are negative. At a threshold, and at the origin for order
        three and more without ridge, an eigenvalue vanishes and this is False.
    """

    statistics: Statistics
    eigenvalues: NDArray[np.complex128]
    stable: bool


def equilibria(problem: SpikedTensor, *, c_delta: float) -> tuple[Equilibrium, ...]:
    """All fixed points of the effective dynamics.

    For matrices the list in MDL Section 12.4.1 is another, with points that are not fixed.

    Parameters
    ----------
    problem : SpikedTensor
        Any order and ridge.
    c_delta : float
        Limit of step_size * dimension.

    Returns
    -------
    tuple of Equilibrium
        The origin; then those with m = 0 by increasing r2; then those with a signal by
        increasing abs(m), of even order each followed by its mirror image.

    Examples
    --------
    >>> from traindyn.problems import SpikedTensor
    >>> from traindyn.problems.spiked.equilibria import equilibria
    >>> for found in equilibria(SpikedTensor(2, 100, signal=5.0), c_delta=1.0):
    ...     m, r2 = found.statistics
    ...     print(round(float(m), 12), round(float(r2), 12), found.stable)
    0.0 0.0 False
    0.0 1.0 False
    2.0 1.0 True
    -2.0 1.0 True
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    places = [(0.0, 0.0)]
    places += [(0.0, r2) for r2 in _equators(problem.order, c_delta, problem.ridge)]
    signs = (1.0, -1.0) if problem.order % 2 == 0 else (1.0,)
    for m, r2 in _with_signal(problem, c_delta):
        places += [(sign * m, r2) for sign in signs]
    return tuple(_classified(problem, m, r2, c_delta) for m, r2 in places)


def informative(problem: SpikedTensor, *, c_delta: float) -> tuple[Equilibrium, ...]:
    r"""Return the fixed points with positive m, by increasing m.

    Without ridge: :math:`(m_\star, c_\delta)` for order two, the saddle
    :math:`(m_\dagger, c_\delta)` and the stable :math:`(m_\star, c_\delta)` for higher orders
    (BGJ (7.5)). The last one has the largest overlap that training can settle at. With ridge
    and order three or more there can be two further ones near the origin.

    Raises
    ------
    ValueError
        If the signal is not above its threshold (:func:`critical_signal`).

    Examples
    --------
    >>> from traindyn.problems import SpikedTensor
    >>> from traindyn.problems.spiked.equilibria import informative
    >>> saddle, best = informative(SpikedTensor(3, 100, signal=5.0), c_delta=1.0)
    >>> saddle.stable, best.stable
    (False, True)
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    found = _with_signal(problem, c_delta)
    threshold = critical_signal(problem.order, c_delta=c_delta, ridge=problem.ridge)
    if problem.signal <= threshold or not found:
        raise ValueError(
            f"signal must be above the threshold {threshold:.6g} of order {problem.order} at "
            f"c_delta = {c_delta:g}, ridge = {problem.ridge:g} for informative fixed points, "
            f"got {problem.signal:g}"
        )
    return tuple(_classified(problem, m, r2, c_delta) for m, r2 in found)


def critical_signal(order: int, *, c_delta: float, ridge: float = 0.0) -> float:
    r"""Signal above which the dynamics has informative fixed points.

    .. math:: \lambda_c(k) = \Big(\frac{c_\delta}{k}\Big)^{k/2}
              \frac{(2k-2)^{k-1}}{(k-2)^{(k-2)/2}}, \qquad 0^0 = 1,

    without ridge (BGJ (7.4)). With ridge it is :math:`\max(c_\delta, \alpha / 4)` for order
    two; for higher orders it is found numerically, as the signal at which the outermost pair
    of fixed points appears. A ridge also makes a pair close to the origin, which exists at
    much smaller signals (at any signal as the ridge tends to zero) and does not count.

    Parameters
    ----------
    order : int
        k, at least 2.
    c_delta : float
        Limit of ``step_size * dimension``, not negative.
    ridge : float, optional
        :math:`\alpha \ge 0`; none unless given.

    Examples
    --------
    >>> from traindyn.problems.spiked.equilibria import critical_signal
    >>> critical_signal(2, c_delta=1.0), critical_signal(4, c_delta=1.0)
    (1.0, 6.75)
    """
    k = _validate.integer("order", order, least=2)
    c = _validate.non_negative("c_delta", c_delta)
    ridge = _validate.non_negative("ridge", ridge)
    if k == 2:
        return max(c, ridge / 4.0)
    if ridge == 0:
        return float((c / k) ** (k / 2) * (2 * k - 2) ** (k - 1) / (k - 2) ** ((k - 2) / 2))
    return math.exp(-_log_ratio(_turning_points(k, c, ridge)[-1], k, c, ridge))


def critical_ridge(order: int, *, c_delta: float) -> float:
    r"""Ridge above which the origin is the only fixed point with m = 0.

    .. math:: \alpha_c(k) = 2 k c_\delta^{k-1} (k-2)^{k-2} (k-1)^{-(k-1)}, \qquad 0^0 = 1,

    the formula of BGJ Section 7.1, which is :math:`4 c_\delta` for order two; the source
    prints :math:`2 c_\delta` there.

    Examples
    --------
    >>> from traindyn.problems.spiked.equilibria import critical_ridge
    >>> critical_ridge(2, c_delta=1.0)
    4.0
    """
    k = _validate.integer("order", order, least=2)
    c_delta = _validate.non_negative("c_delta", c_delta)
    return float(2 * k * c_delta ** (k - 1) * (k - 2) ** (k - 2) / (k - 1) ** (k - 1))


def _classified(problem: SpikedTensor, m: float, r2: float, c_delta: float) -> Equilibrium:
    statistics = Statistics(np.array(m), np.array(r2))
    jacobian = problem.jacobian(statistics, c_delta=c_delta)
    eigenvalues = np.linalg.eigvals(jacobian).astype(np.complex128)
    eigenvalues = eigenvalues[np.argsort(-eigenvalues.real, kind="stable")]
    return Equilibrium(statistics, eigenvalues, bool(eigenvalues[0].real < 0))


def _equators(k: int, c: float, ridge: float) -> list[float]:
    """Positive solutions u of 2 k u^(k-2) (c - u) = ridge, increasing."""
    if ridge == 0:
        return [c] if c > 0 else []
    if k == 2:
        return [c - ridge / 4.0] if c > ridge / 4.0 else []
    if ridge >= critical_ridge(k, c_delta=c):
        return []
    top = c * (k - 2) / (k - 1)

    def excess(u: float) -> float:
        return 2 * k * u ** (k - 2) * (c - u) - ridge

    return [_root(excess, 0.0, top), _root(excess, top, c)]


def _with_signal(problem: SpikedTensor, c: float) -> list[tuple[float, float]]:
    """All (m, r2) with m > 0 that stand still, by increasing m."""
    k, signal, ridge = problem.order, problem.signal, problem.ridge
    beta = ridge / (2 * k)
    if k == 2:
        if signal <= max(c, ridge / 4.0):
            return []
        return [(math.sqrt((signal - c) * (signal - beta) / signal), c * (1.0 - beta / signal))]
    if beta == 0 and c == 0:
        return [(signal ** (1.0 / k), 0.0)]

    def excess(rho: float) -> float:
        return math.log(signal) + _log_ratio(rho, k, c, ridge)

    # m^2 <= rho bounds rho^k by signal^2.
    breaks = [*_turning_points(k, c, ridge), *_positive_roots(_p(k, c, beta))]
    breaks = sorted({0.0, *breaks, 2.0 * max(signal ** (2.0 / k), *breaks)})
    found = []
    for low, high in pairwise(breaks):
        if excess(low) * excess(high) < 0:
            rho = _root(excess, low, high)
            q = rho ** (k - 1) + beta
            found.append(((q / signal) ** (1.0 / (k - 2)), c * rho ** (k - 1) / q))
    return sorted(found)


def _log_ratio(rho: float, k: int, c: float, ridge: float) -> float:
    r"""Logarithm of m^(k-2) / Q as a function of rho; a zero of it plus log signal is sought.

    It is minus infinity, cut off, where there is no m: P is negative.
    """
    q = rho ** (k - 1) + ridge / (2 * k)
    p = q - c * rho ** (k - 2)
    if rho <= 0 or p <= 0:
        return _LOG_ZERO
    return max(0.5 * ((k - 2) * math.log(rho * p) - k * math.log(q)), _LOG_ZERO)


def _turning_points(k: int, c: float, ridge: float) -> list[float]:
    """Positive stationary points of :func:`_log_ratio` (k >= 3), increasing."""
    beta = ridge / (2 * k)
    p, q = _p(k, c, beta), _p(k, 0.0, beta)
    rho = np.poly1d([1.0, 0.0])
    slope = (k - 2) * (p + rho * p.deriv()) * q - k * rho * p * q.deriv()
    return [point for point in _positive_roots(slope) if p(point) > 0]


def _p(k: int, c: float, beta: float) -> np.poly1d:
    """Polynomial rho^(k-1) - c rho^(k-2) + beta, of which Q is the case c = 0."""
    coefficients = np.zeros(k)
    coefficients[:2] = 1.0, -c
    coefficients[-1] += beta
    return np.poly1d(coefficients)


def _positive_roots(polynomial: np.poly1d) -> list[float]:
    roots = polynomial.roots
    real = np.abs(roots.imag) <= 1e-7 * np.abs(roots)
    return sorted(float(root) for root in roots[real].real if root > 0)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-15 * high, rtol=1e-15))
