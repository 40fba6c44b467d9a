"""Spiked matrix PCA without ridge: the law of the escape from a random start.

The closed solution on which it rests is :func:`traindyn.problems.spiked.matrix.solution`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.spiked.matrix import need_order_two
from traindyn.problems.spiked.tensor import SpikedTensor

__all__ = ["escape_curve", "escape_probability", "escape_quantile", "escape_variance"]


def escape_variance(problem: SpikedTensor, *, c_delta: float) -> float:
    r"""Variance of the Gaussian G that decides when a random start escapes the equator.

    .. math:: \sqrt n\, m(t) \approx G\, e^{4 (\lambda - c_\delta) t}, \qquad
              G \sim N\Big(0, \frac{c_\delta \lambda}{\lambda - c_\delta}\Big),

    for any start with law :math:`N(0, s I_n / n)`: the share of the start, :math:`c_\delta`
    after the transient of the radius, plus :math:`c_\delta^2 / (\lambda - c_\delta)` from
    the noise.

    Raises
    ------
    ValueError
        If the order is not two, there is a ridge, or the signal is not above c_delta.
    """
    c = _need_escape(problem, c_delta)
    return c * problem.signal / (problem.signal - c)


def escape_curve(
    problem: SpikedTensor, times: ArrayLike, *, c_delta: float, gaussian: float
) -> Array:
    r"""Squared overlap during the escape from a random start, at large n.

    .. math:: m(t)^2 \approx \frac{\lambda - c_\delta}
              {1 + n (\lambda - c_\delta) G^{-2} e^{-8 (\lambda - c_\delta) t}} :

    the diffusion at the equator (BGJ (3.2)) stitched to the flow that leaves it. A start whose
    radius is not c_delta adds an error of order :math:`n^{-c_\delta / (\lambda - c_\delta)}`,
    what is left of it at the time of the escape.

    Parameters
    ----------
    problem : SpikedTensor
        Of order two, without ridge, the signal above c_delta.
    times : array_like
        Steps times step size, of any shape.
    c_delta : float
        Limit of ``step_size * dimension``, in (0, signal).
    gaussian : float
        The value of G, see :func:`escape_variance`.

    Returns
    -------
    ndarray, shape of `times`
    """
    c = _need_escape(problem, c_delta)
    gap = problem.signal - c
    grid = _validate.finite("times", times)
    gaussian = _validate.number("gaussian", gaussian)
    growth = np.exp(8.0 * gap * grid) * gaussian**2 / problem.dimension
    return np.asarray(gap * growth / (gap + growth))


def escape_probability(problem: SpikedTensor, times: ArrayLike, *, c_delta: float) -> Array:
    """Probability that a random start has half its final squared overlap by given times.

    The inverse of :func:`escape_quantile`.

    Parameters
    ----------
    problem : SpikedTensor
        Of order two, without ridge, the signal above c_delta.
    times : array_like
        Steps times step size, of any shape.
    c_delta : float
        Limit of ``step_size * dimension``, in (0, signal).

    Returns
    -------
    ndarray, shape of `times`

    Examples
    --------
    >>> from companion.effective_dynamics.pca.escape import escape_probability
    >>> from traindyn.problems import SpikedTensor
    >>> problem = SpikedTensor(2, 1500, signal=1.5)
    >>> print(escape_probability(problem, [1.0, 2.0, 4.0], c_delta=1.0).round(3))
    [0.032 0.772 0.996]
    """
    variance = escape_variance(problem, c_delta=c_delta)
    gap = problem.signal - c_delta
    grid = _validate.finite("times", times)
    square = problem.dimension * gap * np.exp(-8.0 * gap * grid)
    return np.asarray(stats.chi2(1).sf(square / variance))


def escape_quantile(problem: SpikedTensor, probability: ArrayLike, *, c_delta: float) -> Array:
    r"""Quantiles of the time at which a random start has half its final squared overlap.

    .. math:: t_{1/2} = \frac{\log(n (\lambda - c_\delta)) - \log G^2}
              {8 (\lambda - c_\delta)},

    that is :math:`n\, t_{1/2} / c_\delta` steps: the O(n log n) of BGJ Section 3, with its
    constant and its law.

    Parameters
    ----------
    problem : SpikedTensor
        Of order two, without ridge, the signal above c_delta.
    probability : array_like
        In (0, 1).
    c_delta : float
        Limit of ``step_size * dimension``, in (0, signal).

    Returns
    -------
    ndarray, shape of `probability`
        In units of steps times step size.

    Examples
    --------
    >>> from companion.effective_dynamics.pca.escape import escape_quantile
    >>> from traindyn.problems import SpikedTensor
    >>> problem = SpikedTensor(2, 1500, signal=1.5)
    >>> print(escape_quantile(problem, [0.1, 0.5, 0.9], c_delta=1.0).round(2))
    [1.13 1.58 2.42]
    """
    level = _validate.finite("probability", probability)
    if level.size and (level.min() <= 0 or level.max() >= 1):
        raise ValueError(f"probability must lie in (0, 1), got {level.min():g} to {level.max():g}")
    variance = escape_variance(problem, c_delta=c_delta)
    gap = problem.signal - c_delta
    # The escape is early where G^2 is large.
    square = variance * stats.chi2(1).isf(level)
    return np.asarray((math.log(problem.dimension * gap) - np.log(square)) / (8.0 * gap))


def _need_escape(problem: SpikedTensor, c_delta: float) -> float:
    need_order_two(problem)
    c = _validate.positive("c_delta", c_delta)
    if problem.ridge != 0:
        raise ValueError(f"problem.ridge must be 0 for the law of the escape, got {problem.ridge}")
    if problem.signal <= c:
        raise ValueError(
            f"problem.signal must be greater than c_delta = {c:g} to escape the equator, got "
            f"{problem.signal:g}"
        )
    return c
