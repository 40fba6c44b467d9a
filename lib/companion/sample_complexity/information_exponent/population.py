r"""What the population loss says: information exponent, consistency, equator, threshold.

Expanding the loss in Hermite polynomials of t and the law of the data in those of s
(Mehler's formula) gives the population loss of any single-index model as a power series,

.. math:: \phi(m) = \sum_k a_k m^k, \qquad a_k = E_{(s,y)} E_z\, \ell(z, y)\, h_k(z)\, h_k(s),

with z normal and independent of (s, y). For teacher and student
:math:`a_k = -2 u_k(f) u_k(g)`, :math:`k \ge 1` (MDL Section 11.2.3). The information
exponent (MDL Definition 11.9) is the least :math:`k \ge 1` with :math:`a_k \ne 0`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad

from companion.sample_complexity.information_exponent.links import hermite_table, line_rule
from companion.sample_complexity.information_exponent.model import SingleIndex, Statistics
from traindyn import _validate
from traindyn._types import Array
from traindyn.diffusion import LinearDiffusion

__all__ = [
    "InformationExponent",
    "critical_step",
    "equator",
    "fisher_consistent",
    "information_exponent",
    "steepest_slope",
    "taylor",
    "travel_time",
]


class InformationExponent(NamedTuple):
    r"""Order of the zero of :math:`\phi - \phi(0)` at the equator.

    Attributes
    ----------
    order : int
    derivative : float
        :math:`\phi^{(k)}(0)`.
    pull : float
        :math:`-\phi^{(k)}(0) / (k-1)!`: near the equator :math:`-\phi'(m) = ` this times
        :math:`m^{k-1}`.
    """

    order: int
    derivative: float
    pull: float


def taylor(problem: SingleIndex, count: int) -> Array:
    """Coefficients of the population loss as a power series of the overlap.

    Parameters
    ----------
    problem : SingleIndex
        Gives loss and law of the data; its dimension does not enter.
    count : int
        At most 40.

    Returns
    -------
    ndarray, shape (count,)
        Entry k is :math:`a_k`, the coefficient of :math:`m^k`.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.population import taylor
    >>> from companion.sample_complexity.information_exponent.models import OnlinePCA
    >>> (taylor(OnlinePCA(100, signal=3.0), 4).round(9) + 0.0).tolist()
    [-1.0, 0.0, -3.0, 0.0]
    """
    count = _validate.integer("count", count, least=1, most=40)
    data = problem.data_rule()
    line = line_rule(data.kinks)
    z = line.nodes[:, 0]
    values = data.weights[:, None] * problem.loss_at(z[None, :], data.y[:, None]) * line.weights
    left, right = hermite_table(data.s, count), hermite_table(z, count)
    return np.asarray(np.sum((values.T @ left) * right, axis=0))


def information_exponent(
    problem: SingleIndex, *, largest: int = 12, tolerance: float = 1e-9
) -> InformationExponent:
    """Find the information exponent of a population loss (MDL Definition 11.9).

    Parameters
    ----------
    problem : SingleIndex
        Whose :math:`a_k` are looked at; its dimension does not enter.
    largest : int, default 12
        Where the search ends.
    tolerance : float, default 1e-9
        Size below which a coefficient of the power series counts as zero, relative to the
        largest one.

    Raises
    ------
    ValueError
        If all coefficients vanish, or the first that does not is positive: then the loss
        pushes back to the equator, and the definition does not apply.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.population import information_exponent
    >>> from companion.sample_complexity.information_exponent.links import ABSOLUTE
    >>> from companion.sample_complexity.information_exponent.models import BinaryMixture
    >>> from companion.sample_complexity.information_exponent.models import TeacherStudent
    >>> information_exponent(TeacherStudent(100, ABSOLUTE)).order
    2
    >>> [information_exponent(BinaryMixture(100, h)).order for h in (0.0, 1.0)]
    [2, 1]
    """
    most = _validate.integer("largest", largest, least=1)
    level = _validate.positive("tolerance", tolerance)
    found = taylor(problem, most + 1)
    seen = np.flatnonzero(np.abs(found[1:]) > level * np.abs(found).max())
    if seen.size == 0:
        raise ValueError(f"problem must have an information exponent of at most {most}, got none")
    order = int(seen[0]) + 1
    if found[order] > 0:
        raise ValueError(
            f"problem must have a loss that falls from the equator, got one that rises like "
            f"{found[order]:.3g} m^{order}"
        )
    derivative = float(math.factorial(order) * found[order])
    return InformationExponent(order, derivative, -derivative / math.factorial(order - 1))


def steepest_slope(problem: SingleIndex, *, points: int = 200) -> tuple[float, float]:
    r"""Where :math:`\phi'` is largest in (0, 1), relative to its size there, and its value.

    Near an equator of order k the slope vanishes like :math:`m^{k-1}`; what is returned is the
    largest :math:`\phi'(m) / m^{k-1}` on a grid, with k the information exponent.

    Parameters
    ----------
    problem : SingleIndex
        Whose population loss is :math:`\phi`.
    points : int, default 200
        Of the grid, in the middles of so many equal parts of (0, 1).

    Returns
    -------
    overlap, slope : float
    """
    count = _validate.integer("points", points, least=2)
    order = information_exponent(problem).order
    m = (np.arange(count) + 0.5) / count
    slopes = problem.moments(m).pull / (1 - m * m) / m ** (order - 1)
    worst = int(np.argmax(slopes))
    return float(m[worst]), float(slopes[worst])


def fisher_consistent(problem: SingleIndex, *, points: int = 200) -> bool:
    r"""Whether Assumption B holds, :math:`\phi' < 0` on (0, 1), looked at on a grid.

    Parameters
    ----------
    problem : SingleIndex
        Whose population loss is :math:`\phi`.
    points : int, default 200
        Of the grid, as in :func:`steepest_slope`.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.population import fisher_consistent
    >>> from companion.sample_complexity.information_exponent.links import TANH
    >>> from companion.sample_complexity.information_exponent.models import TeacherStudent
    >>> fisher_consistent(TeacherStudent(100, TANH))
    True
    """
    return steepest_slope(problem, points=points)[1] < 0


def equator(problem: SingleIndex, *, c_delta: float) -> LinearDiffusion:
    r"""Limit of :math:`\sqrt N\, m` near the equator for information exponents from two on.

    .. math:: d\tilde m = \big(-\phi''(0) - \tfrac\delta2 v(0)\big)\tilde m\, dt
              + \sqrt{\delta\, \mathrm{Var} \langle \nabla L, v_0 \rangle}\, dB,

    of Ornstein–Uhlenbeck type if the first factor is negative.

    Parameters
    ----------
    problem : SingleIndex
        Whose population loss is :math:`\phi`.
    c_delta : float
        Step size, which the algorithm divides by N; positive.

    Raises
    ------
    ValueError
        If the loss has a slope at the equator.

    Examples
    --------
    The stationary variance of PCA below threshold is
    c_delta (1 + signal) / (c_delta - signal):

    >>> from companion.sample_complexity.information_exponent.population import equator
    >>> from companion.sample_complexity.information_exponent.models import OnlinePCA
    >>> float(equator(OnlinePCA(100, signal=0.2), c_delta=0.6).stationary().round(9)[0, 0])
    1.8
    """
    size = _validate.positive("c_delta", c_delta)
    found = information_exponent(problem)
    if found.order == 1:
        raise ValueError("problem must have an information exponent of at least 2, got 1")
    curvature = found.derivative if found.order == 2 else 0.0
    at = problem.moments(0.0)
    rate = -curvature - 0.5 * size * float(at.power)
    return LinearDiffusion(("m",), np.array([[rate]]), np.array([[size * float(at.noise)]]))


def critical_step(problem: SingleIndex) -> float:
    r"""Step size :math:`-2 \phi''(0) / v(0)` above which the equator is stable.

    Parameters
    ----------
    problem : SingleIndex
        Of information exponent two.

    Raises
    ------
    ValueError
        If the information exponent is not two.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.population import critical_step
    >>> from companion.sample_complexity.information_exponent.models import OnlinePCA
    >>> from companion.sample_complexity.information_exponent.models import TeacherStudent
    >>> from companion.sample_complexity.information_exponent.links import hermite
    >>> critical_step(OnlinePCA(100, signal=0.7)), round(critical_step(
    ...     TeacherStudent(100, hermite(2))), 9)
    (0.7, 0.166666667)
    """
    found = information_exponent(problem)
    if found.order != 2:
        raise ValueError(f"problem must have information exponent 2, got {found.order}")
    return round(-2 * found.derivative / float(problem.moments(0.0).power), 12)


def travel_time(problem: SingleIndex, low: float, high: float, *, c_delta: float) -> float:
    """Time ``steps * c_delta / N`` that the effective dynamics takes from one overlap to another.

    It is the length of the descent in MDL Theorem 11.12, corrected.

    Parameters
    ----------
    problem : SingleIndex
        Whose effective dynamics is followed.
    low, high : float
        In (-1, 1), increasing.
    c_delta : float
        Zero for gradient flow.

    Returns
    -------
    float
        Infinite if a fixed point lies between them (looked at on a grid).

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.population import travel_time
    >>> from companion.sample_complexity.information_exponent.models import OnlinePCA
    >>> round(travel_time(OnlinePCA(100, signal=1.0), 0.1, 0.9, c_delta=0.0), 6)
    1.511283
    """
    size = _validate.non_negative("c_delta", c_delta)
    a, b = _validate.number("low", low), _validate.number("high", high)
    if not -1 < a < b < 1:
        raise ValueError(f"low and high must be increasing in (-1, 1), got {low!r} and {high!r}")

    def speed(m: Array | float) -> Array:
        return np.asarray(problem.drift(Statistics(np.asarray(m)), c_delta=size).m)

    speeds = speed(np.linspace(a, b, 101))
    # Rounding makes a place of rest move.
    if np.any(speeds <= 1e-12 * np.abs(speeds).max()):
        return math.inf
    return float(quad(lambda m: 1 / float(speed(m)), a, b, epsabs=1e-10, epsrel=1e-8)[0])
