r"""Discrete Bihari–LaSalle inequality (MDL Section 11.5), with its constant.

A sequence with :math:`m_t \ge a + b \sum_{j<t} m_j^{k-1}` stays above the solution of
:math:`m_{t+1} = m_t + b m_t^{k-1}`, :math:`m_0 = a`. With :math:`w = m^{-(k-2)}` a step of that
lowers w by :math:`b F(b m^{k-2})`, :math:`F(\beta) = (1 - (1+\beta)^{-(k-2)})/\beta`, which
decreases in :math:`\beta` from :math:`F(0) = k - 2`. So while :math:`m \le 1`

.. math:: m_t \ge \frac{a}{(1 - c\, b\, a^{k-2} t)^{1/(k-2)}},
          \qquad c = F(b) = \frac{1 - (1+b)^{-(k-2)}}{b} < k - 2,

and :math:`k - 2`, the constant of the differential equation, is the limit of c for small b.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["bihari_lasalle", "comparison_constant", "slowest_growth"]


def slowest_growth(a: float, b: float, k: int, steps: int) -> Array:
    """Smallest sequence under the hypothesis, until it exceeds one.

    Parameters
    ----------
    a, b : float
        Positive, a below one.
    k : int
        At least 2.
    steps : int
        Largest number of steps.

    Returns
    -------
    ndarray, shape (at most steps + 1,)

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.comparison import slowest_growth
    >>> slowest_growth(0.1, 0.5, 2, 3).round(6).tolist()
    [0.1, 0.15, 0.225, 0.3375]
    """
    value, rate, order = _checked(a, b, k, least=2)
    found = [value]
    for _ in range(_validate.integer("steps", steps, least=0)):
        value += rate * value ** (order - 1)
        if value > 1:
            break
        found.append(value)
    return np.array(found)


def comparison_constant(b: float, k: int) -> float:
    """Constant c of the inequality for sequences up to one.

    Parameters
    ----------
    b : float
        Positive.
    k : int
        At least 3.

    Returns
    -------
    float
        Below k - 2.
    """
    _, rate, order = _checked(0.5, b, k, least=3)
    return float(-np.expm1(-(order - 2) * np.log1p(rate)) / rate)


def bihari_lasalle(t: ArrayLike, a: float, b: float, k: int, *, constant: float) -> Array:
    """Lower bound ``a / (1 - constant b a^(k-2) t)^(1/(k-2))``, infinite after its blow-up.

    Parameters
    ----------
    t : array_like
        Numbers of steps.
    a, b : float
        Start in (0, 1), and positive rate.
    k : int
        At least 3.
    constant : float
        :func:`comparison_constant`; k - 2 for the differential equation; the source prints 1.

    Returns
    -------
    ndarray, shape of `t`
    """
    value, rate, order = _checked(a, b, k, least=3)
    factor = _validate.positive("constant", constant)
    left = 1 - factor * rate * value ** (order - 2) * _validate.finite("t", t)
    with np.errstate(divide="ignore"):
        return np.asarray(value * np.maximum(left, 0.0) ** (-1 / (order - 2)))


def _checked(a: float, b: float, k: int, *, least: int) -> tuple[float, float, int]:
    value = _validate.positive("a", a)
    if value >= 1:
        raise ValueError(f"a must be below one, got {a!r}")
    return value, _validate.positive("b", b), _validate.integer("k", k, least=least)
