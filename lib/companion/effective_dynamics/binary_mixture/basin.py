r"""How noise in the data enlarges the basin of the best classifier (beyond the source).

In the binary mixture with two neurons the outcome at infinite precision is decided by the sign
of :math:`v_1 v_2` at the start. At precision :math:`\lambda` the side of a neuron is not decided
at once: from :math:`W \sim N(0, I / (\lambda N))` it answers both classes equally until its
overlap is of order :math:`1 / \lambda`. Meanwhile the other neuron, the *leader*, learns the
class it shares with it, the errors in that class fall below those in the other one, and the noise
that passes the ReLU pulls the second layer of the undecided neuron towards the class left alone.
With :math:`v_2 = x / \lambda`, :math:`m_2 = y / \lambda` and :math:`s(t) = e^{-\alpha t}`, the
length of its weights over :math:`\lambda^{-1/2}`, the leading order of the effective dynamics is

.. math::

    \dot x &= \tfrac12 a\, \psi_s(y) - \tfrac14 \psi_s(-y) - \alpha x, \qquad
    \dot y = \tfrac12 \big[ a\, \Phi(y / s) + \tfrac12 \Phi(-y / s) \big] x - \alpha y, \\
    \psi_s(y) &= y\, \Phi(y / s) + s\, \varphi(y / s), \qquad x(0) > 0,\ y(0) = 0,

where :math:`a = \sigma(-v_1 m_1)` is the error in the class of the leader, which follows the
dynamics of infinite precision. Below a *critical weight* x(0) the neuron changes sides.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit, ndtr

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer.thresholds import BINARY_RIDGE

__all__ = ["critical_weight", "success_slope"]

# At this distance from zero, in units of the noise, the side of a neuron is settled.
_SETTLED = 8.0
_TOLERANCE = 1e-8
# Legendre nodes for the leader, and the size beyond which a normal variable is neglected.
_ORDER = 16
_LARGEST = 6.0
# Beyond this weight of the leader the solver's steps are lost in rounding, and it never ends.
_STRONGEST = 1e8
_MAX_DOUBLINGS = 64


def critical_weight(leader: float, ridge: float, *, accuracy: float = 1e-6) -> float:
    r"""Limit of :math:`\lambda v_2(0)` below which the second neuron leaves the leader's class.

    Parameters
    ----------
    leader : float
        :math:`v_1(0)` in (0, 1e8]; both neurons start with :math:`m = 0`,
        :math:`R^\perp = I / \lambda`.
    ridge : float
        In (0, 1/4).
    accuracy : float, default 1e-6
        Of the result, by bisection, as far as floating-point numbers reach.

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If no weight is found from which the second neuron follows the leader.

    Examples
    --------
    >>> from companion.effective_dynamics.binary_mixture.basin import critical_weight
    >>> round(critical_weight(1.0, 0.1), 4)
    0.1297
    """
    leader = _validate.positive("leader", leader)
    if leader > _STRONGEST:
        raise ValueError(f"leader must be at most {_STRONGEST:g}, got {leader:g}")
    accuracy = _validate.positive("accuracy", accuracy)
    ridge = _checked_ridge(ridge)
    low, high = 0.0, 0.2 * leader
    for _ in range(_MAX_DOUBLINGS):
        if _follows(high, leader, ridge):
            break
        low, high = high, 2.0 * high
    else:
        raise FloatingPointError(
            f"leader must be followed from some weight, got none up to {low:g} at leader = "
            f"{leader:g}, ridge = {ridge:g}"
        )
    while high - low > accuracy:
        middle = 0.5 * (low + high)
        if middle in (low, high):  # neighbouring numbers
            break
        if _follows(middle, leader, ridge):
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def success_slope(ridge: float) -> float:
    r"""Slope :math:`\kappa` of the probability :math:`\tfrac12 + \kappa / \lambda` of success.

    From the random start of the source, to first order in :math:`1 / \lambda`: either neuron
    may be the one with a small weight of the leader's sign, hence
    :math:`\kappa = 2\, \varphi(0)\, E\, x_c(|v|)` with v normal and :math:`x_c` the
    :func:`critical_weight`.

    Parameters
    ----------
    ridge : float
        In (0, 1/4).

    Returns
    -------
    float
        Accurate to about 1e-4.

    Examples
    --------
    >>> from companion.effective_dynamics.binary_mixture.basin import success_slope
    >>> round(success_slope(0.1), 3)
    0.08
    """
    ridge = _checked_ridge(ridge)
    nodes, weights = np.polynomial.legendre.leggauss(_ORDER)
    leaders = 0.5 * _LARGEST * (1.0 + nodes)
    density = np.exp(-0.5 * leaders**2) / math.sqrt(2.0 * math.pi)
    mass = _LARGEST * weights * density
    critical = [critical_weight(float(v), ridge, accuracy=1e-4) for v in leaders]
    return float(2.0 / math.sqrt(2.0 * math.pi) * (mass @ np.array(critical)))


def _follows(weight: float, leader: float, ridge: float) -> bool:
    """Whether a neuron with this scaled weight ends in the class of the leader."""

    def flow(t: float, u: Array) -> list[float]:
        v, m, x, y = u
        error = float(expit(-v * m))
        spread = math.exp(-ridge * t)
        height = y / spread
        bump = spread * math.exp(-0.5 * height**2) / math.sqrt(2.0 * math.pi)
        with_, against = ndtr(height), ndtr(-height)
        noise = 0.5 * error * (y * with_ + bump) - 0.25 * (bump - y * against)
        return [
            0.5 * error * m - ridge * v,
            0.5 * error * v - ridge * m,
            noise - ridge * x,
            0.5 * (error * with_ + 0.5 * against) * x - ridge * y,
        ]

    def settled(t: float, u: Array) -> float:
        return _SETTLED - abs(float(u[3])) * math.exp(ridge * t)

    settled.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(
        flow,
        (0.0, 40.0 / ridge),
        [leader, 0.0, weight, 0.0],
        method="LSODA",
        events=settled,
        rtol=_TOLERANCE,
        atol=1e-3 * _TOLERANCE,
    )
    return bool(found.y[3, -1] > 0)


def _checked_ridge(ridge: float) -> float:
    ridge = _validate.positive("ridge", ridge)
    if ridge >= BINARY_RIDGE:
        raise ValueError(f"ridge must be below {BINARY_RIDGE:g}, got {ridge:g}")
    return ridge
