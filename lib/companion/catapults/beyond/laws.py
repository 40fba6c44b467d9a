r"""Exact laws of the one-example map without label: products, series and the tripling of an angle.

For y = 0 the map of :mod:`traindyn.catapults.maps` is
:math:`u' = (1 - v + u)^2 u,\; v' = v - u (4 - v)`. It has two product formulas,

.. math:: 4 - v' = (4 - v)(1 + u), \qquad v'^2 - 4 u' = (v^2 - 4 u)(1 - u)^2 .

With :math:`p = v - 2`, and weight one for p and two for u, it is the identity plus terms that raise
the weight. Hence it has a formal invariant :math:`I(p, u)`, a power series with rational
coefficients that starts with :math:`\frac12 p^2 + u`, unique if no even power of p alone occurs
beyond the second. A catapult from :math:`(u, v) = (0, 2 + \delta)` runs along
:math:`I = I(\delta, 0)` and ends where :math:`I(v - 2, 0) = I(\delta, 0)`. The series are
asymptotic: what they leave out is of the order :math:`e^{-\pi^2/\delta}`, and depends on the phase
in which the orbit passes its peak.

At v = 4 the kernel stays, and :math:`u = 4 \sin^2 \pi x` turns the map into
:math:`x \mapsto 3 x`.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import log, pi, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = [
    "DEPARTURE_RATE",
    "LYAPUNOV_EXPONENT",
    "PeakSeries",
    "PhaseEffect",
    "final_kernel_series",
    "peak_series",
    "periodic_angles",
    "phase_effect",
    "phase_ends",
    "threshold_slope",
    "triple_exactly",
]

Series: TypeAlias = tuple[Fraction, ...]
Polynomial: TypeAlias = dict[tuple[int, int], Fraction]

LYAPUNOV_EXPONENT = log(3)
"""Of u at v = 4."""

DEPARTURE_RATE = 2 * log((1 + sqrt(5)) / 2)
r"""Mean of :math:`\log(1 + u)` under the arcsine law on [0, 4], twice the logarithm of the golden
ratio: the rate at which :math:`4 - v` grows close to the threshold."""


class PeakSeries(NamedTuple):
    """Coefficients of the largest u of a catapult in powers of the excess, constant term first.

    Attributes
    ----------
    lower : tuple of Fraction
        At the worst phase, when two neighbouring steps share the peak.
    upper : tuple of Fraction
        At the best, when a step meets the top of the curve.
    """

    lower: Series
    upper: Series


class PhaseEffect(NamedTuple):
    """What the phase of the start does to the final kernel.

    Attributes
    ----------
    mean : float
        Of the final v over the phases.
    log_amplitude : float
        Natural logarithm of the amplitude of the first harmonic.
    """

    mean: float
    log_amplitude: float


def _product(a: Polynomial, b: Polynomial, most: int) -> Polynomial:
    """Multiply polynomials in p and u, up to a weight."""
    found: Polynomial = {}
    for (i, j), left in a.items():
        for (k, n), right in b.items():
            if i + k + 2 * (j + n) <= most:
                found[i + k, j + n] = found.get((i + k, j + n), Fraction(0)) + left * right
    return found


def _powers(a: Polynomial, count: int, most: int) -> list[Polynomial]:
    found: list[Polynomial] = [{(0, 0): Fraction(1)}]
    for _ in range(count):
        found.append(_product(found[-1], a, most))
    return found


@lru_cache
def _invariant(order: int) -> Polynomial:
    """Return the coefficients of the formal invariant, up to a weight.

    At each weight w what is left over at weight w + 1 is removed by the leading part of the map,
    which takes p^i u^j to 2 j p^(i+1) u^j - 2 i p^(i-1) u^(j+1).
    """
    most, one = order + 1, Fraction(1)
    p = _powers({(1, 0): one, (0, 1): -2 * one, (1, 1): one}, most, most)
    factor = {(0, 0): one, (1, 0): one, (0, 1): -one}
    u = _powers(_product({(0, 1): one}, _product(factor, factor, most), most), most // 2, most)
    found: Polynomial = {}
    left: Polynomial = {}

    def add(key: tuple[int, int], value: Fraction) -> None:
        found[key] = value
        left[key] = left.get(key, Fraction(0)) - value
        for place, image in _product(p[key[0]], u[key[1]], most).items():
            left[place] = left.get(place, Fraction(0)) + value * image

    add((2, 0), Fraction(1, 2))
    for w in range(2, order + 1):
        places = range(1, w // 2 + 1) if w % 2 == 0 else range((w + 1) // 2, 0, -1)
        for j in places:
            over = left.get((w + 1 - 2 * j, j), Fraction(0))
            if w % 2 == 0:
                add((w - 2 * j, j), -over / (2 * j))
            else:
                add((w + 2 - 2 * j, j - 1), over / (2 * (w + 2 - 2 * j)))
    return found


def _times(a: Series, b: Series) -> Series:
    """Multiply power series of one length."""
    return tuple(sum((a[i] * b[k - i] for i in range(k + 1)), Fraction(0)) for k in range(len(a)))


def _at(polynomial: Polynomial, p: Series, u: Series) -> Series:
    """Insert power series without constant term."""
    unit = (Fraction(1),) + (Fraction(0),) * (len(p) - 1)
    by_p, by_u = [unit], [unit]
    for powers, base in ((by_p, p), (by_u, u)):
        for _ in range(len(p)):
            powers.append(_times(powers[-1], base))
    total = [Fraction(0)] * len(p)
    for (i, j), value in polynomial.items():
        for k, term in enumerate(_times(by_p[i], by_u[j])):
            total[k] += value * term
    return tuple(total)


def _add(series: Series, k: int, change: Fraction) -> Series:
    return (*series[:k], series[k] + change, *series[k + 1 :])


def final_kernel_series(order: int) -> Series:
    r"""Return the expansion of step size times kernel after a catapult, from 2 + excess.

    .. math:: v_\infty = 2 - \delta - \tfrac23 \delta^2 - \tfrac49 \delta^3 - \dots

    Parameters
    ----------
    order : int
        Of the last term, at least one.

    Returns
    -------
    tuple of Fraction
        Constant term first.

    Raises
    ------
    ValueError
        If the order is not positive.

    Examples
    --------
    >>> from companion.catapults.beyond.laws import final_kernel_series
    >>> [str(each) for each in final_kernel_series(5)]
    ['2', '-1', '-2/3', '-4/9', '-14/135', '76/405']
    """
    return _final_kernel_series(_validate.integer("order", order, least=1))


@lru_cache
def _final_kernel_series(order: int) -> Series:
    invariant = _invariant(order + 1)
    zero = (Fraction(0),) * (order + 2)
    start = _add(zero, 1, Fraction(1))
    target, end = _at(invariant, start, zero), _add(zero, 1, Fraction(-1))
    for k in range(2, order + 1):
        end = _add(end, k, _at(invariant, end, zero)[k + 1] - target[k + 1])
    return _add(end, 0, Fraction(2))[: order + 1]


def peak_series(order: int) -> PeakSeries:
    r"""Return the expansions of the largest u of a catapult, at the worst and at the best phase.

    An orbit meets the curve :math:`I(p, u) = I(\delta, 0)` at single points. The largest u is at
    most that of the curve, and at least that where u' = u, which is p = u.

    Parameters
    ----------
    order : int
        Of the last term, at least two.

    Raises
    ------
    ValueError
        If the order is below two.

    Examples
    --------
    >>> from companion.catapults.beyond.laws import peak_series
    >>> for series in peak_series(5):
    ...     print(*series)
    0 0 1/2 1/3 0 -11/45
    0 0 1/2 1/3 1/8 -7/90
    """
    return _peak_series(_validate.integer("order", order, least=2))


@lru_cache
def _peak_series(order: int) -> PeakSeries:
    invariant = _invariant(order)
    slope = {(i - 1, j): i * value for (i, j), value in invariant.items() if i > 0}
    zero = (Fraction(0),) * (order + 1)
    target = _at(invariant, _add(zero, 1, Fraction(1)), zero)
    lower, upper, top = zero, zero, zero
    for k in range(2, order + 1):
        lower = _add(lower, k, target[k] - _at(invariant, lower, lower)[k])
        upper = _add(upper, k, target[k] - _at(invariant, top, upper)[k])
        top = _add(top, k, -_at(slope, top, upper)[k])
    return PeakSeries(lower, upper)


def phase_ends(excess: float, *, phases: int, digits: int) -> list[Decimal]:
    r"""Return where catapults end, in decimal arithmetic, for starts at equal distances in phase.

    Starts are :math:`u_0 = 10^{-digits} (1 + \delta)^{2 k / phases}`, and runs end when u is below
    that again.

    Parameters
    ----------
    excess : float
        :math:`\delta`, in (0, 2), taken as the decimal number that it prints as.
    phases : int
        Number of starts.
    digits : int
        At least 10.

    Returns
    -------
    list of Decimal
        Final v.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from decimal import Decimal
    >>> from companion.catapults.beyond.laws import phase_ends
    >>> first, second = phase_ends(0.1, phases=2, digits=60)
    >>> print(round(first, 20), abs(first - second) < Decimal("1e-38"))
    1.89288070043115989135 True
    """
    if _validate.positive("excess", excess) >= 2:
        raise ValueError(f"excess must be below 2, got {excess!r}: beyond it runs diverge")
    count = _validate.integer("phases", phases, least=1)
    precision = _validate.integer("digits", digits, least=10)
    ends = []
    with localcontext() as context:
        context.prec = precision
        delta, small = Decimal(repr(float(excess))), Decimal(10) ** -precision
        period = 2 * (1 + delta).ln()
        for k in range(count):
            u, v = small * (period * k / count).exp(), 2 + delta
            while v > 2 or u > small:
                u, v = (1 - v + u) ** 2 * u, v - u * (4 - v)
            ends.append(v)
    return ends


def phase_effect(excess: float, *, phases: int = 4) -> PhaseEffect:
    r"""Measure what the phase of the start does to the final kernel, however little that is.

    Parameters
    ----------
    excess : float
        :math:`\delta`, in (0, 2).
    phases : int, default 4
        At least three; the amplitude falls so fast with the order of the harmonics that four are
        enough below one half.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    Close to :math:`\log(e^{-\pi^2 / \delta} / \delta) + 4.8`:

    >>> from companion.catapults.beyond.laws import phase_effect
    >>> round(phase_effect(0.05).log_amplitude, 2)
    -189.52
    """
    delta = _validate.positive("excess", excess)
    count = _validate.integer("phases", phases, least=3)
    digits = int(pi**2 / delta / log(10) * 1.05) + 30
    ends = phase_ends(delta, phases=count, digits=digits)
    with localcontext() as context:
        context.prec = digits
        mean = sum(ends, Decimal(0)) / count
        changes = [end - mean for end in ends]
        largest = max(abs(change) for change in changes)
        shape = np.array([float(change / largest) for change in changes])
        scale = float(largest.ln())
    harmonic = 2 * abs(np.fft.rfft(shape)[1]) / count
    return PhaseEffect(float(mean), scale + log(harmonic))


def triple_exactly(numerator: int, *, bits: int, steps: int) -> Array:
    r"""Return the orbit of :math:`x \mapsto 3 x` modulo one, without rounding on the way.

    Parameters
    ----------
    numerator : int
        The orbit starts at ``numerator / 2**bits``. An odd one has the period ``2**(bits - 2)``.
    bits : int
        At least 53.
    steps : int
        Number of triplings.

    Returns
    -------
    ndarray, shape (steps + 1,)
        The first 53 bits of each.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from companion.catapults.beyond.laws import triple_exactly
    >>> triple_exactly(2**61 + 1, bits=64, steps=3).tolist()
    [0.125, 0.375, 0.125, 0.375]
    """
    size = _validate.integer("bits", bits, least=53)
    count = _validate.integer("steps", steps, least=0)
    x = _validate.integer("numerator", numerator, least=0, most=2**size - 1)
    found = np.empty(count + 1)
    for t in range(count + 1):
        found[t] = (x >> (size - 53)) / 2**53
        x = 3 * x % 2**size
    return found


def periodic_angles(period: int) -> Series:
    r"""Return all x in [0, 1/2] that tripling brings back, up to sign, after so many steps.

    In :math:`u = 4 \sin^2 \pi x` these are all points of that period, and of its divisors.

    Parameters
    ----------
    period : int
        Number of triplings, at least 1.

    Returns
    -------
    tuple of Fraction
        3^period of them, in increasing order.

    Raises
    ------
    ValueError
        If the period is not positive.

    Examples
    --------
    >>> from companion.catapults.beyond.laws import periodic_angles
    >>> [str(x) for x in periodic_angles(1)]
    ['0', '1/4', '1/2']
    """
    n = _validate.integer("period", period, least=1)
    found = {Fraction(k, size) for size in (3**n - 1, 3**n + 1) for k in range(size // 2 + 1)}
    return tuple(sorted(found))


def threshold_slope(u: ArrayLike) -> Array:
    r"""Return the derivative :math:`3 (1 - u)(3 - u)` of the map of u at v = 4.

    Parameters
    ----------
    u : array_like
        Of any shape; the map takes [0, 4] to itself.

    Returns
    -------
    ndarray
        Of the shape of `u`.

    Examples
    --------
    The fixed points are 0, 2 and 4:

    >>> from companion.catapults.beyond.laws import threshold_slope
    >>> threshold_slope([0.0, 2.0, 4.0]).tolist()
    [9.0, -3.0, 9.0]
    """
    values = _validate.finite("u", u)
    slopes: Array = 3 * (1 - values) * (3 - values)
    return slopes
