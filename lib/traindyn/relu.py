r"""Gaussian expectations of rectified linear features, in closed form.

With :math:`g(u) = \max(u, 0)` and the derivative :math:`1\{u > 0\}`, every second-order
average of one or two ReLU neurons at a Gaussian input is elementary up to the distribution
function of a normal pair. All functions broadcast over leading axes and are exact in the limits:
a vanishing deviation, parallel or opposite neurons, infinite precision. Results are accurate to
rounding relative to the moments without the rectifier; far in the tail, where the rectified
moment is smaller than that by the rounding unit, it is not resolved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, owens_t

from traindyn import _validate
from traindyn._types import Array

__all__ = [
    "Restricted",
    "bivariate_cdf",
    "half_space",
    "pair_moment",
    "rectified_moment",
    "second_moment",
    "wedge",
]

F = TypeVar("F", bound=Callable[..., Any])

# Beyond it the normal distribution function is 0 or 1, and the density 0, to double precision.
_FAR = 40.0
_EXTREME = 300
"""Powers of two beyond which the squares of a vector's entries are not safe."""
_ROUNDING = 1e-10
_PARALLEL = 1e-15


class Restricted(NamedTuple):
    """Moments of a Gaussian vector Y on a set A, which are not divided by its probability.

    Attributes
    ----------
    probability : ndarray, shape (...)
        ``P(Y in A)``.
    noise : ndarray, shape (..., n)
        ``E[1{Y in A} (Y - E Y)]``.
    second : ndarray, shape (..., n, n)
        ``E[1{Y in A} Y Y^T]``.
    """

    probability: Array
    noise: Array
    second: Array


def _computed(names: str) -> Callable[[F], F]:
    """Let a function of given arguments say so where what it returns is no finite number."""

    def declare(function: F) -> F:
        @wraps(function)
        def checked(*given: Any, **named: Any) -> Any:
            with np.errstate(over="ignore", invalid="ignore"):
                found = function(*given, **named)
            parts = found if isinstance(found, tuple) else (found,)
            if not all(np.isfinite(part).all() for part in parts):
                raise FloatingPointError(f"{names} must have finite moments, got some beyond 1e308")
            return found

        return cast("F", checked)

    return declare


def bivariate_cdf(x: ArrayLike, y: ArrayLike, correlation: ArrayLike) -> Array:
    r"""Distribution function :math:`P(G \le x, H \le y)` of a standard normal pair.

    By Owen's T function, hence vectorised and accurate to rounding.

    Parameters
    ----------
    x, y : array_like
        Infinite values allowed.
    correlation : array_like
        In [-1, 1], both ends included.

    Returns
    -------
    ndarray
        Of the common shape.

    Raises
    ------
    ValueError
        If a correlation lies outside [-1, 1] or an argument is NaN.

    Examples
    --------
    >>> from traindyn.relu import bivariate_cdf
    >>> bivariate_cdf(0.0, 0.0, [-1.0, 0.0, 0.5, 1.0]).round(12).tolist()
    [0.0, 0.25, 0.333333333333, 0.5]
    """
    r = _correlation(correlation)
    x, y, r = _validate.broadcast(
        x=np.clip(_validate.not_nan("x", x), -_FAR, _FAR),
        y=np.clip(_validate.not_nan("y", y), -_FAR, _FAR),
        correlation=r,
    )
    q = np.sqrt((1 - r) * (1 + r))
    return _bivariate(x, y, r, q, _ratio(y - r * x, q), _ratio(x - r * y, q))


@_computed("mean and deviation")
def rectified_moment(mean: ArrayLike, deviation: ArrayLike, order: int) -> Array:
    r"""Moment :math:`E[U^n 1\{U > 0\}]` of ``U ~ N(mean, deviation^2)``.

    .. math:: M_0 = \Phi(m / s), \quad M_1 = m M_0 + s \varphi(m / s), \quad
              M_n = m M_{n-1} + (n - 1) s^2 M_{n-2}.

    Parameters
    ----------
    mean, deviation : array_like
        The deviation is non-negative; zero means U = mean.
    order : int
        Non-negative; zero gives the probability that U is positive.

    Returns
    -------
    ndarray
        Of the common shape.

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If a moment is beyond the floating-point numbers.

    Examples
    --------
    Half of the moments of a standard normal variable, and a constant:

    >>> from traindyn.relu import rectified_moment
    >>> rectified_moment(0.0, 1.0, 4).item(), rectified_moment(-2.0, 0.0, 1).item()
    (1.5, 0.0)
    """
    order = _validate.integer("order", order, least=0)
    m, s = _validate.broadcast(
        mean=_validate.finite("mean", mean), deviation=_deviation("deviation", deviation)
    )
    height = _height(m, s)
    lower = np.asarray(ndtr(height))
    if order == 0:
        return lower
    upper = m * lower + s * _density(height)
    for n in range(2, order + 1):
        lower, upper = upper, m * upper + (n - 1) * s**2 * lower
    return np.asarray(np.maximum(upper, 0.0))


def pair_moment(
    mean_u: ArrayLike,
    mean_v: ArrayLike,
    deviation_u: ArrayLike,
    deviation_v: ArrayLike,
    correlation: ArrayLike,
) -> Array:
    r"""Return :math:`E[g(U) g(V)]` for two correlated normal variables.

    With means m, deviations s, t, :math:`a = m_u / s`, :math:`b = m_v / t` and
    :math:`q = \sqrt{1 - r^2}`,

    .. math:: s t \Big[ (a b + r) \Phi_2(a, b; r)
              + a \varphi(b) \Phi\big(\tfrac{a - r b}{q}\big)
              + b \varphi(a) \Phi\big(\tfrac{b - r a}{q}\big)
              + q\, \varphi(a) \varphi\big(\tfrac{b - r a}{q}\big) \Big].

    Parameters
    ----------
    mean_u, mean_v : array_like
        Any real numbers, :math:`m_u` and :math:`m_v`.
    deviation_u, deviation_v : array_like
        Non-negative; zero means that the variable is its mean.
    correlation : array_like
        In [-1, 1]; without meaning where a deviation is zero.

    Returns
    -------
    ndarray
        Of the common shape.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    At zero means, :math:`(r (\pi / 2 + \arcsin r) + q) / (2 \pi)`:

    >>> from traindyn.relu import pair_moment
    >>> pair_moment(0.0, 0.0, 1.0, 1.0, [-1.0, 0.0, 1.0]).round(6).tolist()
    [0.0, 0.159155, 0.5]
    """
    m_u, m_v = _validate.finite("mean_u", mean_u), _validate.finite("mean_v", mean_v)
    s, t = _deviation("deviation_u", deviation_u), _deviation("deviation_v", deviation_v)
    m_u, m_v, s, t, r = _validate.broadcast(
        mean_u=m_u,
        mean_v=m_v,
        deviation_u=s,
        deviation_v=t,
        correlation=_correlation(correlation),
    )
    r = np.where((s == 0) | (t == 0), 0.0, r)
    a, b = _height(m_u, s), _height(m_v, t)
    q = np.sqrt((1 - r) * (1 + r))
    both = bivariate_cdf(a, b, r)
    across = _ratio(b - r * a, q)
    value = (
        (m_u * m_v + r * s * t) * both
        + m_u * t * _density(b) * ndtr(_ratio(a - r * b, q))
        + m_v * s * _density(a) * ndtr(across)
        + s * t * q * _density(a) * _density(across)
    )
    return np.asarray(np.maximum(value, 0.0))


def second_moment(mean: ArrayLike, covariance: ArrayLike) -> Array:
    """Second moments ``E[g(U) g(U)^T]`` of a rectified Gaussian vector.

    Parameters
    ----------
    mean : array_like, shape (..., K)
        Of U.
    covariance : array_like, shape (..., K, K)
        Symmetric positive semi-definite, singular ones included.

    Returns
    -------
    ndarray, shape (..., K, K)

    Raises
    ------
    ValueError
        If the shapes disagree, a variance is negative or a correlation exceeds one.

    Examples
    --------
    >>> from traindyn.relu import second_moment
    >>> second_moment([0.0, 0.0], [[2.0, -2.0], [-2.0, 2.0]]).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    m, cov = _mean_and_covariance(mean, covariance)
    variances = np.diagonal(cov, axis1=-2, axis2=-1)
    deviations = np.sqrt(_deviation("diagonal of covariance", variances))
    scale = deviations[..., :, None] * deviations[..., None, :]
    correlation = np.divide(cov, scale, out=np.zeros_like(cov), where=scale > 0)
    if np.any(np.abs(correlation) > 1 + _ROUNDING):
        raise ValueError(
            f"covariance must be positive semi-definite, got a correlation of "
            f"{np.abs(correlation).max():.6g}"
        )
    correlation = np.clip(correlation, -1.0, 1.0)
    diagonal = np.arange(m.shape[-1])
    correlation[..., diagonal, diagonal] = 1.0
    return pair_moment(
        m[..., :, None],
        m[..., None, :],
        deviations[..., :, None],
        deviations[..., None, :],
        correlation,
    )


@_computed("mean and precision")
def half_space(
    weight: ArrayLike, mean: ArrayLike, precision: float, *, kink: float = 0.0
) -> Restricted:
    r"""Moments of ``Y ~ N(mean, I / precision)`` where :math:`w \cdot Y > 0`.

    With :math:`\hat w = w / |w|` and :math:`a = \sqrt\lambda\, \hat w \cdot \theta`,

    .. math:: E[1 (Y - \theta)] = \frac{\varphi(a)}{\sqrt\lambda} \hat w, \qquad
              E[1\, Y Y^T] = \Phi(a) \Big(\theta \theta^T + \frac I\lambda\Big)
              + \frac{\varphi(a)}{\sqrt\lambda} (\hat w \theta^T + \theta \hat w^T)
              - \frac{a \varphi(a)}{\lambda} \hat w \hat w^T.

    Parameters
    ----------
    weight, mean : array_like, shape (..., n)
        The weight w, at any scale, and the mean theta.
    precision : float
        Positive; infinity means Y = theta.
    kink : float, default 0
        Value of the indicator where :math:`w \cdot Y` is zero surely: w = 0, or an infinite
        precision with :math:`w \cdot \theta = 0`. One half is the limit of high precision.

    Raises
    ------
    ValueError
        If the precision is not positive or the lengths of weight and mean differ.
    FloatingPointError
        If a moment is beyond the floating-point numbers.

    Examples
    --------
    >>> from traindyn.relu import half_space
    >>> found = half_space([3.0, 0.0], [0.0, 1.0], 4.0)
    >>> found.probability.item(), found.noise.round(6).tolist()
    (0.5, [0.199471, 0.0])
    >>> found.second.round(6).tolist()
    [[0.125, 0.199471], [0.199471, 0.625]]
    """
    kink = _validate.share("kink", kink)
    w, theta = _pair_of_vectors("weight", weight, mean)
    scale = _scale(precision)
    unit, length = _unit(w)
    sure = (scale == 0) | (length == 0)
    height = _height((unit * theta).sum(axis=-1), np.where(sure, 0.0, scale), kink=kink)
    probability = np.asarray(ndtr(height))
    thick = np.where(sure, 0.0, _density(height))
    noise = (scale * thick)[..., None] * unit
    across = theta[..., :, None] * noise[..., None, :]
    square = scale**2 * np.eye(w.shape[-1]) + theta[..., :, None] * theta[..., None, :]
    second = (
        probability[..., None, None] * square
        + across
        + np.swapaxes(across, -1, -2)
        - (scale**2 * height * thick)[..., None, None] * unit[..., :, None] * unit[..., None, :]
    )
    return Restricted(probability, noise, second)


@_computed("mean and precision")
def wedge(
    weight_u: ArrayLike,
    weight_v: ArrayLike,
    mean: ArrayLike,
    precision: float,
    *,
    kink: float = 0.0,
) -> Restricted:
    r"""Moments of ``Y ~ N(mean, I / precision)`` where both :math:`u \cdot Y, v \cdot Y > 0`.

    With unit vectors :math:`\hat u` and :math:`\hat v = r \hat u + q \hat n`, where
    :math:`\hat n \perp \hat u`, heights :math:`a, b, x = \sqrt\lambda\, \hat u \cdot \theta,
    \sqrt\lambda\, \hat v \cdot \theta, \sqrt\lambda\, \hat n \cdot \theta` and densities
    :math:`k_u = \varphi(a) \Phi(x)`, :math:`k_v = \varphi(b) \Phi(q a - r x)`,
    :math:`k = q\, \varphi(a) \varphi(x)`, integration by parts gives

    .. math:: E[1 (Y - \theta)] &= (k_u \hat u + k_v \hat v) / \sqrt\lambda, \\
              E[1 (Y - \theta)(Y - \theta)^T] &= \frac1\lambda \Big[ \Phi_2(a, b; r) I
              - a k_u \hat u \hat u^T - b k_v \hat v \hat v^T
              + k \big( r\, \hat u \hat u^T + q (\hat u \hat n^T + \hat n \hat u^T)
              - r\, \hat n \hat n^T \big) \Big].

    For u = v it is :func:`half_space`.

    Parameters
    ----------
    weight_u, weight_v, mean : array_like, shape (..., n)
        The weights u and v, at any scale, and the mean theta.
    precision : float
        Positive; infinity means Y = theta.
    kink : float, default 0
        As for :func:`half_space`. With one half, the two neurons keep their correlation.

    Raises
    ------
    ValueError
        If the precision is not positive or the lengths of the vectors differ.
    FloatingPointError
        If a moment is beyond the floating-point numbers.

    Examples
    --------
    A quadrant, where the coordinates are independent:

    >>> from traindyn.relu import wedge
    >>> wedge([1.0, 0.0], [0.0, 2.0], [0.0, 0.0], 1.0).second.round(6).tolist()
    [[0.25, 0.159155], [0.159155, 0.25]]
    """
    kink = _validate.share("kink", kink)
    u, theta = _pair_of_vectors("weight_u", weight_u, mean)
    v, theta = _pair_of_vectors("weight_v", weight_v, theta)
    u, v = np.broadcast_arrays(u, v)
    scale = _scale(precision)
    unit_u, length_u = _unit(u)
    unit_v, length_v = _unit(v)
    r = np.clip((unit_u * unit_v).sum(axis=-1), -1.0, 1.0)
    normal, q = _normal(unit_u, unit_v)
    sure_u, sure_v = (scale == 0) | (length_u == 0), (scale == 0) | (length_v == 0)
    a = _height((unit_u * theta).sum(axis=-1), np.where(sure_u, 0.0, scale), kink=kink)
    b = _height((unit_v * theta).sum(axis=-1), np.where(sure_v, 0.0, scale), kink=kink)
    # Of a - r b and b - r a only the second is a difference of its own: nearly parallel neurons
    # then share their density exactly.
    beyond_u = (normal * theta).sum(axis=-1) / np.where(scale > 0, scale, 1.0)
    beyond_v = q * a - r * beyond_u
    sure = sure_u | sure_v
    probability = np.where(sure, bivariate_cdf(a, b, r), _bivariate(a, b, r, q, beyond_u, beyond_v))
    at_u = np.where(sure_u, 0.0, _density(a) * np.where(sure_v, ndtr(b), ndtr(beyond_u)))
    at_v = np.where(sure_v, 0.0, _density(b) * np.where(sure_u, ndtr(a), ndtr(beyond_v)))
    corner = np.where(sure, 0.0, q * _density(a) * _density(beyond_u))
    noise = scale * (at_u[..., None] * unit_u + at_v[..., None] * unit_v)
    across = _outer(unit_u, normal)
    bend = (
        _spread(corner * r - a * at_u) * _outer(unit_u, unit_u)
        - _spread(b * at_v) * _outer(unit_v, unit_v)
        + _spread(corner * q) * (across + np.swapaxes(across, -1, -2))
        - _spread(corner * r) * _outer(normal, normal)
    )
    cross = _outer(theta, noise)
    identity = np.eye(u.shape[-1])
    return Restricted(
        probability,
        noise,
        _spread(probability) * (_outer(theta, theta) + scale**2 * identity)
        + cross
        + np.swapaxes(cross, -1, -2)
        + scale**2 * bend,
    )


def _outer(x: Array, y: Array) -> Array:
    return np.asarray(x[..., :, None] * y[..., None, :])


def _spread(x: Array) -> Array:
    return np.asarray(x[..., None, None])


def _pair_of_vectors(name: str, weight: ArrayLike, mean: ArrayLike) -> tuple[Array, Array]:
    w, theta = _validate.finite(name, weight), _validate.finite("mean", mean)
    if w.ndim == 0 or theta.ndim == 0 or w.shape[-1] != theta.shape[-1]:
        raise ValueError(
            f"{name} and mean must be vectors of the same length, got shapes {w.shape} and "
            f"{theta.shape}"
        )
    return w, theta


def _mean_and_covariance(mean: ArrayLike, covariance: ArrayLike) -> tuple[Array, Array]:
    m, cov = _validate.finite("mean", mean), _validate.finite("covariance", covariance)
    if m.ndim == 0 or cov.shape[-2:] != (m.shape[-1], m.shape[-1]):
        raise ValueError(
            f"covariance must have shape (..., K, K) for a mean of shape (..., K), got "
            f"{cov.shape} and {m.shape}"
        )
    return m, cov


def _correlation(correlation: ArrayLike) -> Array:
    r = _validate.finite("correlation", correlation)
    if np.any(np.abs(r) > 1):
        raise ValueError(
            f"correlation must lie in [-1, 1], got {r.min(initial=0):g} to {r.max(initial=0):g}"
        )
    return r


def _scale(precision: float) -> Array:
    """Deviation of the noise, zero at infinite precision."""
    return np.asarray(1 / np.sqrt(_validate.positive_or_infinite("precision", precision)))


def _unit(w: Array) -> tuple[Array, Array]:
    """Return unit vectors, zero for zero, and lengths, those of extreme vectors in other units."""
    exponent = np.frexp(np.abs(w).max(axis=-1, keepdims=True, initial=0.0))[1]
    extreme = np.abs(exponent) > _EXTREME
    if extreme.any():
        w = np.ldexp(w, np.where(extreme, -exponent, 0))
    length = np.linalg.norm(w, axis=-1)
    return w / np.where(length > 0, length, 1.0)[..., None], length


def _bivariate(x: Array, y: Array, r: Array, q: Array, over: Array, under: Array) -> Array:
    """Distribution function from ``over = (y - r x) / q`` and ``under = (x - r y) / q``."""
    apart = np.where((x < 0) != (y < 0), 0.5, 0.0)
    value = 0.5 * (ndtr(x) + ndtr(y)) - apart
    value = value - owens_t(x, _ratio(over, x)) - owens_t(y, _ratio(under, y))
    value = np.where((x == 0) & (y == 0), 0.5 - np.arctan2(q, r) / (2 * np.pi), value)
    return np.asarray(np.clip(value, 0.0, 1.0))


def _normal(u: Array, v: Array) -> tuple[Array, Array]:
    """Return the unit normal n of u with ``v = r u + q n``, and q; zero for parallel vectors."""
    off = v - (u * v).sum(axis=-1, keepdims=True) * u
    off = off - (u * off).sum(axis=-1, keepdims=True) * u
    q = np.linalg.norm(off, axis=-1)
    q = np.where(q > _PARALLEL, q, 0.0)
    return np.where(q[..., None] > 0, off / np.where(q > 0, q, 1.0)[..., None], 0.0), q


def _deviation(name: str, value: ArrayLike) -> Array:
    found = _validate.finite(name, value)
    if np.any(found < 0):
        raise ValueError(f"{name} must be non-negative, got {found.min():g}")
    return found


def _height(mean: Array, deviation: Array, *, kink: float = 0.0) -> Array:
    """Mean in units of the deviation, clipped; of mass `kink` for a variable that is zero."""
    with np.errstate(over="ignore"):
        height = mean / np.where(deviation > 0, deviation, 1.0)
    fixed = np.where(mean == 0, ndtri(kink), np.copysign(_FAR, mean))
    return np.asarray(np.clip(np.where(deviation > 0, height, fixed), -_FAR, _FAR))


def _density(x: Array) -> Array:
    return np.asarray(np.exp(-0.5 * np.square(x)) / np.sqrt(2 * np.pi))


def _ratio(x: Array, y: Array) -> Array:
    """Quotient with ``0 / 0 = 0`` and signed infinity for other multiples of 1 / 0."""
    x, y = np.broadcast_arrays(x, y)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.where(x == 0, 0.0, x / y))
