r"""Law of the preactivations :math:`W_i \cdot X` of one class (BGJ Section 8, Lemmas 8.1-8.3, 9.1).

An input of a class with centroid s is :math:`s + Z / \sqrt\lambda`. The coordinates of Z in the
signal space are common to all neurons, so that the preactivations are jointly Gaussian with
means :math:`m_i \cdot s` and covariance :math:`(m_i \cdot m_j + R^\perp_{ij}) / \lambda`; the
source prints independent signal noise for each neuron. One of them, with mean m and
:math:`q = |W_i|^2`, is negative with a probability, and has an exponential moment after the ReLU,
that are elementary; the source bounds them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr, ndtr

from traindyn import _validate

__all__ = [
    "FOURTH_MOMENT_CONSTANT",
    "exponential_moment",
    "exponential_moment_bound",
    "fourth_moment",
    "negative_probability",
    "negative_probability_bound",
]

#: Least constant C of the bound ``E (X . w)^4 <= C (m^4 + |w|^4 / lambda^2)``, see
#: :func:`fourth_moment`.
FOURTH_MOMENT_CONSTANT = 2.0 + math.sqrt(10.0)


def negative_probability(m: float, square: float, *, precision: float) -> float:
    r"""Probability :math:`\Phi(-\sqrt\lambda\, m / |W_i|)` that an input is not answered.

    For m > 0 it vanishes as the precision grows (BGJ Lemma 8.3).

    Parameters
    ----------
    m : float
        Mean of the preactivation.
    square : float
        :math:`|W_i|^2 > 0`.
    precision : float
        :math:`\lambda`, positive and finite.

    Examples
    --------
    >>> from companion.effective_dynamics.binary_mixture.preactivation import negative_probability
    >>> round(negative_probability(0.5, 1.0, precision=4.0), 6)
    0.158655
    """
    return float(ndtr(-_height(m, square, precision)))


def negative_probability_bound(m: float, square: float, *, precision: float) -> float:
    r"""Return the bound :math:`e^{-\lambda m^2 / (2 |W_i|^2)}` for m > 0 (BGJ Lemma 10.2).

    The proof there prints an equality.
    """
    return math.exp(-0.5 * _height(m, square, precision) ** 2)


def fourth_moment(m: float, square: float, *, precision: float) -> float:
    r"""Fourth moment of :math:`X \cdot w`, with mean m or -m and :math:`q = |w|^2`, exact.

    .. math:: E (X \cdot w)^4 = m^4 + 6 m^2 \frac q\lambda + 3 \frac{q^2}{\lambda^2}
              \le (2 + \sqrt{10}) \Big( m^4 + \frac{q^2}{\lambda^2} \Big),

    a quadratic form of matrix ((1, 3), (3, 3)) in :math:`(m^2, q / \lambda)`, whose largest
    eigenvalue is the constant that BGJ Lemmas 8.2 and 10.1 leave open.

    Examples
    --------
    >>> from companion.effective_dynamics.binary_mixture.preactivation import fourth_moment
    >>> fourth_moment(1.0, 2.0, precision=2.0)
    10.0
    """
    m = _validate.number("m", m)
    spread = _validate.positive("square", square) / _validate.positive("precision", precision)
    return m**4 + 6.0 * m**2 * spread + 3.0 * spread**2


def exponential_moment(slope: float, m: float, square: float, *, precision: float) -> float:
    r"""Exact :math:`E \exp(\theta v_i\, g(W_i \cdot X))`, with the slope :math:`\theta v_i`.

    .. math:: \Phi(-h) + e^{a m + a^2 q / (2 \lambda)}\, \Phi(h + a \sqrt{q / \lambda}), \qquad
              h = m \sqrt{\lambda / q}.

    Examples
    --------
    >>> from companion.effective_dynamics.binary_mixture.preactivation import exponential_moment
    >>> exponential_moment(0.0, 0.3, 1.0, precision=2.0)
    1.0
    """
    slope = _validate.number("slope", slope)
    height = _height(m, square, precision)
    spread = math.sqrt(square / precision)
    tilt = slope * m + 0.5 * (slope * spread) ** 2
    return float(ndtr(-height) + np.exp(tilt + log_ndtr(height + slope * spread)))


def exponential_moment_bound(slope: float, m: float, square: float, *, precision: float) -> float:
    r"""Return the bound :math:`1 + e^{a m + a^2 |W_i|^2 / (2 \lambda)}` on the moment.

    It takes the place of BGJ Fact 8.1, which lacks the one and the part of :math:`|W_i|^2` in
    the signal space, and fails for m < 0 < slope.
    """
    slope, m = _validate.number("slope", slope), _validate.number("m", m)
    precision = _validate.positive("precision", precision)
    spread = math.sqrt(_validate.positive("square", square) / precision)
    return 1.0 + math.exp(slope * m + 0.5 * (slope * spread) ** 2)


def _height(m: float, square: float, precision: float) -> float:
    """Mean of the preactivation in standard deviations."""
    precision = _validate.positive("precision", precision)
    return _validate.number("m", m) * math.sqrt(precision / _validate.positive("square", square))
