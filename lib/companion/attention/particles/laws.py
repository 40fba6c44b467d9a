r"""What is exact about self-attention with identity matrices.

Tokens with equal inner products keep them equal: from an orthonormal start all of them are

.. math:: \dot\gamma = \frac{2 e^{\beta\gamma} (1 - \gamma) (1 + (n - 1) \gamma)}
                            {e^\beta + (n - 1) e^{\beta\gamma}}, \qquad \gamma(0) = 0 ,

so they leave at the speed :math:`2 / (e^\beta + n - 1)` and close in like :math:`e^{-2 t}`. The
uniform measure is an equilibrium of the mean-field limit; a perturbation in spherical harmonics of
degree l grows at :math:`\frac{l (l + d - 2)}\beta I_{l + \nu}(\beta) / I_\nu(\beta)`,
:math:`\nu = d / 2 - 1`, as the field is the gradient of :math:`\frac1\beta \log Z` (Funk-Hecke).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad, solve_ivp
from scipy.special import betainc

from traindyn import _validate
from traindyn._types import Array

__all__ = ["cluster_time", "equiangular", "growth_rate", "opposite_share", "pair_time"]


def _speed(missing: Array, beta: float, n: int) -> Array:
    """Speed of the common inner product, from what it lacks to one."""
    # Divided by the exponential of beta, so that it stays finite.
    gap = np.exp(-beta * missing)
    return np.asarray(2 * gap * missing * (n - (n - 1) * missing) / (1 + (n - 1) * gap))


def equiangular(times: ArrayLike, *, inverse_temperature: float, count: int) -> Array:
    """Return the common inner product of tokens that start orthonormal.

    Parameters
    ----------
    times : array_like, shape (T,)
        Increasing, from zero on or later.
    inverse_temperature : float
        Non-negative.
    count : int
        Tokens, at least two.

    Returns
    -------
    ndarray, shape (T,)

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.laws import equiangular
    >>> curve = equiangular([0.0, 1.0], inverse_temperature=0.0, count=2)
    >>> bool(abs(curve[1] - np.tanh(1.0)) < 1e-9)
    True
    """
    t = _validate.increasing("times", times)
    beta = _validate.non_negative("inverse_temperature", inverse_temperature)
    n = _validate.integer("count", count, least=2)
    solved = solve_ivp(
        lambda _, gamma: _speed(1 - gamma, beta, n),
        (0, max(t[-1], np.finfo(float).tiny)),
        [0.0],
        method="DOP853",
        t_eval=t,
        rtol=1e-11,
        atol=1e-13,
    )
    return np.asarray(solved.y[0])


def cluster_time(*, inverse_temperature: float, count: int, tolerance: float = 1e-3) -> float:
    """Return the time at which orthonormal tokens have inner products of one up to a tolerance.

    Parameters
    ----------
    inverse_temperature : float
        Non-negative.
    count : int
        Tokens, at least two.
    tolerance : float, default 1e-3
        Below one.

    Examples
    --------
    >>> from companion.attention.particles.laws import cluster_time
    >>> round(cluster_time(inverse_temperature=5.0, count=32), 2)
    9.54
    """
    beta = _validate.non_negative("inverse_temperature", inverse_temperature)
    n = _validate.integer("count", count, least=2)
    off = _validate.positive("tolerance", tolerance)
    if off >= 1:
        raise ValueError(f"tolerance must be below 1, got {tolerance!r}")

    # The logarithm of what is missing to one, as the integrand is then bounded at that end.
    def integrand(s: float) -> float:
        missing = np.exp(-s)
        return float(missing / _speed(missing, beta, n))

    return float(quad(integrand, 0, -np.log(off), limit=200, epsabs=0, epsrel=1e-10)[0])


def pair_time(
    product: float,
    *,
    inverse_temperature: float,
    masses: tuple[float, float] = (0.5, 0.5),
    tolerance: float = 1e-3,
) -> float:
    r"""Return the time that two groups of tokens take to merge.

    Their inner product follows, with :math:`e = e^{-\beta (1 - \rho)}`,

    .. math:: \dot\rho = (1 - \rho^2) \Big( \frac{m_2 e}{m_1 + m_2 e}
        + \frac{m_1 e}{m_2 + m_1 e} \Big) .

    Parameters
    ----------
    product : float
        Inner product at the start, in (-1, 1).
    inverse_temperature : float
        Non-negative.
    masses : tuple of float
        Positive, of sum one.
    tolerance : float, default 1e-3
        Merged means an inner product of one up to this.

    Returns
    -------
    float
        Zero if they are as close at the start.

    Examples
    --------
    Two tokens at infinite temperature, which follow the hyperbolic tangent:

    >>> import numpy as np
    >>> from companion.attention.particles.laws import pair_time
    >>> time = pair_time(0.0, inverse_temperature=0.0)
    >>> bool(abs(time - np.arctanh(0.999)) < 1e-9)
    True
    """
    rho = _validate.number("product", product)
    if not -1 < rho < 1:
        raise ValueError(f"product must be in (-1, 1), got {product!r}")
    beta = _validate.non_negative("inverse_temperature", inverse_temperature)
    first, second = _validate.probability_vector("masses", masses)
    off = _validate.positive("tolerance", tolerance)
    if rho >= 1 - off:
        return 0.0

    # In the logarithm of what is missing to one, as in `cluster_time`; relative to the pull at the
    # start, where almost all of the time is spent if beta is large.
    def integrand(s: float) -> float:
        missing = np.exp(-s)
        gap = np.exp(-beta * missing)
        pull = second / (first + second * gap) + first / (second + first * gap)
        return float(np.exp(beta * (missing - (1 - rho))) / ((2 - missing) * pull))

    start, end = -np.log(1 - rho), -np.log(off)
    cut = min(end, start + 40 / max(beta * (1 - rho), 1))
    parts = [
        quad(integrand, a, b, limit=400, epsabs=0, epsrel=1e-10)[0]
        for a, b in ((start, cut), (cut, end))
        if b > a
    ]
    return float(np.exp(beta * (1 - rho)) * sum(parts))


def opposite_share(times: ArrayLike, *, dimension: int) -> Array:
    r"""Return the volume of pairs of tokens that are still in opposite half-spaces at a time.

    At infinite temperature the inner product of two tokens is
    :math:`\tanh(t + \operatorname{artanh} \rho_0)`; the share of starts, uniform on the sphere,
    for which it is negative at time t falls like :math:`e^{-(d - 1) t}`: those near the saddle,
    where the two are opposite. By MDL Lemma 14.2 it tends to zero.

    Parameters
    ----------
    times : array_like
        Non-negative.
    dimension : int
        d, at least two.

    Returns
    -------
    ndarray
        Of the shape of `times`.

    Examples
    --------
    >>> from companion.attention.particles.laws import opposite_share
    >>> opposite_share([0.0, 1.0], dimension=3).round(6)
    array([0.5     , 0.119203])
    """
    t = _validate.finite("times", times)
    if np.any(t < 0):
        raise ValueError(f"times must be non-negative, got {t.min():g}")
    half = (_validate.integer("dimension", dimension, least=2) - 1) / 2
    # (1 - tanh t) / 2, without cancellation.
    return np.asarray(betainc(half, half, 1 / (1 + np.exp(2 * t))))


def growth_rate(degree: ArrayLike, *, dimension: int, inverse_temperature: float) -> Array:
    """Return the growth rates of perturbations of the uniform measure.

    Parameters
    ----------
    degree : array_like of int
        Of the spherical harmonics, from one on.
    dimension : int
        d, at least two: the sphere has dimension d - 1.
    inverse_temperature : float
        Non-negative.

    Returns
    -------
    ndarray
        Of the shape of `degree`.

    Examples
    --------
    On the circle the fastest mode is about the root of twice the inverse temperature:

    >>> import numpy as np
    >>> from companion.attention.particles.laws import growth_rate
    >>> rates = growth_rate(np.arange(1, 30), dimension=2, inverse_temperature=80.0)
    >>> int(np.argmax(rates)) + 1
    13
    """
    degrees = _validate.integers("degree", degree, least=1)
    if degrees.size == 0:
        raise ValueError("degree must not be empty")
    d = _validate.integer("dimension", dimension, least=2)
    beta = _validate.non_negative("inverse_temperature", inverse_temperature)
    if beta == 0:
        return np.where(degrees == 1, (d - 1) / d, 0.0)
    ratios = np.cumprod(_bessel_ratios(d / 2 - 1, beta, int(degrees.max())))
    return np.asarray(degrees * (degrees + d - 2) / beta * ratios[degrees - 1])


def _bessel_ratios(order: float, x: float, count: int) -> Array:
    """Ratios of modified Bessel functions of consecutive orders, the first over `order`.

    The functions themselves underflow at high orders. The influence of the first value of
    their recurrence, run downwards, decays.
    """
    start = count + int(x) + 60
    found, ratio = np.empty(start), 0.0
    for j in reversed(range(start)):
        ratio = 1 / (2 * (order + j + 1) / x + ratio)
        found[j] = ratio
    return found[:count]
