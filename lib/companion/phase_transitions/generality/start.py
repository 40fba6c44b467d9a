r"""How the initial threshold depends on the norm of the start, to second order.

Let a single neuron have the norm :math:`\rho` and let one direction be hard. At initialisation the
preactivation is :math:`\rho Z` with Z standard normal and independent of the sample, so that odd
powers of :math:`\rho` have mean zero. With :math:`\kappa = a / \delta` and
:math:`T = \kappa G / (1 + \kappa G)` the threshold at a negative edge solves

.. math:: E[T (1 - s^2)] = E[T^2] , \qquad \delta^* = 1 / E[T^2] ,

first for :math:`\kappa`. For a function :math:`\varphi` of the weight G, with its derivatives
:math:`G_1, G_2` in the preactivation at zero,

.. math:: \frac{d}{d\rho^2} E[\varphi(G)] =
          \tfrac12 E\big[\varphi'(G) G_2 + \varphi''(G) G_1^2\big] ,

and the slope of :math:`\delta^*` in :math:`\rho^2` follows by differentiating both equations
(derived here).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from traindyn._types import Array
from traindyn.dmft import initial_threshold
from traindyn.gaussian import gauss_hermite
from traindyn.laws import HardSubspace
from traindyn.problems.multi_index import MultiIndex

__all__ = ["SmallStart", "small_start"]

_ORDER, _STEP = 201, 1e-3


class SmallStart(NamedTuple):
    r"""The initial threshold for small norms, to second order in the norm.

    Attributes
    ----------
    value : float
    slope : float
    without_squares : float
        The slope without the terms in :math:`G_1^2`: wrong on purpose.
    """

    value: float
    slope: float
    without_squares: float


def small_start(problem: MultiIndex) -> SmallStart:
    r"""Expand the initial threshold in the squared norm of the start.

    Parameters
    ----------
    problem : MultiIndex
        One neuron, and a target without noise whose only direction is hard.

    Raises
    ------
    ValueError
        If there are several neurons or directions, the labels are noisy, or the edge at the
        threshold is positive.

    Examples
    --------
    >>> from companion.phase_transitions.generality.start import small_start
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> found = small_start(MultiIndex())
    >>> print(f"{found.value:.3f} + {found.slope:.2f} rho^2")
    0.881 + 0.35 rho^2
    """
    if problem.width != 1 or problem.k != 1 or problem.target.noise:
        raise ValueError(
            f"problem must have one neuron, one direction and no noise, got {problem.width} "
            f"neurons and {problem.target!r}"
        )
    rule = gauss_hermite(1, _ORDER)
    s, masses = rule.nodes[:, 0], rule.weights
    labels = problem.target.signal(rule.nodes)

    def weights(v: float) -> Array:
        return np.asarray(problem.block_weights(np.full((s.size, 1), v), labels)[:, 0])

    g, up, down = weights(0.0), weights(_STEP), weights(-_STEP)
    first, second = (up - down) / (2 * _STEP), (up - 2 * g + down) / _STEP**2
    defect = 1 - s * s

    def gap(kappa: float) -> float:
        t = kappa * g / (1 + kappa * g)
        return float(masses @ (t * defect - t * t))

    two = gauss_hermite(2, _ORDER)
    threshold = initial_threshold(problem, radius=1e-6, rule=two)
    side = HardSubspace(g, s, threshold, probabilities=masses)
    if side.edge > 0:
        raise ValueError("problem must have a negative edge at the threshold, got a positive one")
    # The parameter that the quadrature of two variables finds, sharpened in one.
    near = side.end_parameter / threshold
    kappa = brentq(gap, 0.99 * near, min(1.01 * near, 0.999999 / max(-g.min(), 1e-300)), xtol=1e-14)

    base = 1 + kappa * g
    t, slope, bend = kappa * g / base, kappa / base**2, -2 * kappa**2 / base**3
    by_kappa = g / base**2
    value = float(1 / (masses @ t**2))

    def of(squares: Array) -> float:
        signal = masses @ (defect * (slope * second + bend * squares)) / 2
        size = masses @ (2 * t * slope * second + 2 * (slope**2 + t * bend) * squares) / 2
        steep = masses @ (by_kappa * defect - 2 * t * by_kappa)
        moved = -(signal - size) / steep
        return float(-(value**2) * (size + 2 * (masses @ (t * by_kappa)) * moved))

    return SmallStart(value, of(first**2), of(np.zeros_like(first)))
