r"""Exact risk of a singular-kernel smoother at one point.

Let a ball of radius h about the point have probability p, and the distance r in it the law of
:math:`h U^{1/D}` with U uniform, D the local dimension of the design: the dimension itself where
the density is positive and constant, more where it vanishes or where the support has a cusp. For
:math:`f(x) = f_0 + L|x|^\beta` and labels with noise :math:`\sigma`, write
:math:`K = U^{-a/D}`, :math:`g = U^{\beta/D}`. As
:math:`S^{-2} = \int_0^\infty t e^{-tS} dt`, sums over n independent points factorise,

.. math::
   V &= E\Big[\frac{\sum K_i^2}{(\sum K_i)^2}\Big]
      = n p \int_0^\infty t\, m_{02}(t)\, \psi(t)^{n-1} dt, \\
   B &= E\Big[\Big(\frac{\sum g_i K_i}{\sum K_i}\Big)^2\Big]
      = \int_0^\infty t \big\{ n p\, m_{22}(t)\, \psi^{n-1}
        + n(n-1) p^2 m_{11}(t)^2 \psi^{n-2} \big\} dt,

with :math:`m_{jk}(t) = E[g^j K^k e^{-tK}]` and :math:`\psi = 1 - p\, E[1 - e^{-tK}]` (an empty
ball contributes nothing). The risk is
:math:`L^2 h^{2\beta} B + \sigma^2 V + f_0^2 (1-p)^n`: two one-dimensional integrals, at any n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from companion.foundations.interpolation.smoothing import PowerKernel, ball_volume
from traindyn import _validate
from traindyn._types import RNG, Array

__all__ = [
    "LocalDesign",
    "RiskParts",
    "hoeffding_bound",
    "leading_variance",
    "local_risk",
    "lower_tail_bound",
]

_NODES = 500  # of the trapezoidal rule in log t
_PANELS, _ORDER = 8, 16  # of the composite Gauss-Legendre rule for the moments
_TINY = 1e-15  # least np t; the integrand falls at least like a power above one below it
_LAST = 60.0  # largest t; K >= 1, so the integrand falls like exp(-t)


class RiskParts(NamedTuple):
    """Mean squared error of a smoother at a point, in three parts.

    Attributes
    ----------
    bias : ndarray
        Mean squared bias where the ball is not empty.
    variance : ndarray
        Of the noise.
    empty : ndarray
        What empty balls contribute, where the smoother is zero.
    """

    bias: Array
    variance: Array
    empty: Array

    @property
    def total(self) -> Array:
        """Sum of squared bias, variance and the part of empty balls."""
        return np.asarray(self.bias + self.variance + self.empty)


@dataclass(frozen=True)
class LocalDesign:
    r"""Law of the distance from a point: a ball of radius h has probability :math:`c h^D`.

    Parameters
    ----------
    dimension : float
        D > 0.
    constant : float
        c > 0.

    Examples
    --------
    >>> from companion.foundations.interpolation.pointwise import LocalDesign
    >>> LocalDesign.uniform(2).mass(0.5).round(4).item()
    0.1963
    """

    dimension: float
    constant: float

    def __post_init__(self) -> None:
        """Check both fields."""
        _validate.positive("dimension", self.dimension)
        _validate.positive("constant", self.constant)

    @classmethod
    def uniform(cls, dimension: int) -> LocalDesign:
        r"""About the centre of the cube :math:`[-1, 1]^d` with the uniform law, h <= 1."""
        return cls(dimension, ball_volume(dimension) / 2**dimension)

    @classmethod
    def vanishing(cls, dimension: int, power: float) -> LocalDesign:
        r"""About the zero of a density :math:`\propto |x|^\kappa` on the unit ball."""
        dimension = _validate.integer("dimension", dimension, least=1)
        return cls(dimension + _validate.non_negative("power", power), 1.0)

    @classmethod
    def cusp(cls, sharpness: float) -> LocalDesign:
        r"""About the tip of :math:`\{|\varphi| \le r^{q-1}, r \le 1\}` in the plane, uniform law.

        In polar coordinates; q = 1 is a sector, q > 1 a cusp as thin as :math:`x^q`.
        """
        return cls(1 + _validate.positive("sharpness", sharpness), 1.0)

    def mass(self, bandwidth: ArrayLike) -> Array:
        """Probability of a ball.

        Raises
        ------
        ValueError
            If a bandwidth is not positive or so large that the probability exceeds one.
        """
        h = _validate.finite("bandwidth", bandwidth)
        if np.any(h <= 0):
            raise ValueError(f"bandwidth must be positive, got {h.min():g}")
        p = np.asarray(self.constant * h**self.dimension)
        if np.any(p > 1 + 1e-12):
            raise ValueError(f"bandwidth must give balls of probability <= 1, got {p.max():g}")
        return np.minimum(p, 1.0)

    def sample(self, n: int, bandwidth: float, *, rng: RNG) -> Array:
        """Distances of those of n points that are within the bandwidth, in units of it."""
        n = _validate.integer("n", n, least=0)
        bandwidth = _validate.positive("bandwidth", bandwidth)
        generator = _validate.generator("rng", rng)
        inside = generator.binomial(n, float(self.mass(bandwidth)))
        return np.asarray(generator.random(inside) ** (1 / self.dimension))


def local_risk(
    n: ArrayLike,
    bandwidth: ArrayLike,
    *,
    design: LocalDesign,
    kernel: PowerKernel,
    smoothness: float,
    lipschitz: float = 1.0,
    noise: float = 1.0,
    value: float = 0.0,
) -> RiskParts:
    r"""Exact risk of the Nadaraya–Watson smoother at a point.

    Parameters
    ----------
    n : array_like
        Numbers of points, at least 2.
    bandwidth : array_like
        h, one per n or one for all.
    design : LocalDesign
        Law of the distances of the data from the point.
    kernel : PowerKernel
        Exponent a below D: at a >= D the mean of the weights is infinite.
    smoothness, lipschitz, value : float
        :math:`\beta`, L and :math:`f_0` in :math:`f(x) = f_0 + L|x|^\beta`.
    noise : float
        Standard deviation of the labels about f.

    Returns
    -------
    RiskParts
        Arrays of the shape of `n` and `bandwidth` together; relative error about 1e-12.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    The box kernel averages N labels; many points, little noise.

    >>> from companion.foundations.interpolation.pointwise import LocalDesign, local_risk
    >>> from companion.foundations.interpolation.smoothing import PowerKernel
    >>> parts = local_risk(1000, 0.5, design=LocalDesign.uniform(1), kernel=PowerKernel(0),
    ...     smoothness=1)
    >>> parts.variance.round(6).item(), parts.bias.round(4).item()
    (0.002002, 0.0625)
    """
    lipschitz, value = (
        _validate.number("lipschitz", lipschitz),
        _validate.number("value", value),
    )
    noise = _validate.non_negative("noise", noise)
    count, h = _validate.broadcast(
        n=_validate.finite("n", n), bandwidth=_validate.finite("bandwidth", bandwidth)
    )
    if np.any(count < 2):
        raise ValueError(f"n must be at least 2, got {count.min():g}")
    beta = _validate.positive("smoothness", smoothness)
    if kernel.exponent >= design.dimension:
        raise ValueError(
            f"kernel must have an exponent below the local dimension {design.dimension:g}, got "
            f"{kernel.exponent:g}"
        )
    parts = np.array(
        [
            _integrals(float(m), float(p), kernel.exponent / design.dimension,
                       beta / design.dimension)
            for m, p in zip(count.ravel(), design.mass(h).ravel())
        ]
    ).reshape(*count.shape, 3)  # fmt: skip
    return RiskParts(
        np.asarray(lipschitz**2 * h ** (2 * beta) * parts[..., 0]),
        np.asarray(noise**2 * parts[..., 1]),
        np.asarray(value**2 * parts[..., 2]),
    )


def leading_variance(expected: ArrayLike, *, design: LocalDesign, kernel: PowerKernel) -> Array:
    r"""Leading term of the variance for many points in the ball, at noise of variance one.

    With :math:`N = np` points expected, :math:`\alpha = a/D` and :math:`\kappa = 1/\alpha`,

    .. math:: \frac{(1-\alpha)^2}{1-2\alpha} \frac1N \quad (\alpha < \tfrac12), \qquad
              \kappa\, \Gamma(\kappa) \Gamma(2-\kappa) (1-\alpha)^\kappa N^{1-\kappa}
              \quad (\tfrac12 < \alpha < 1).

    The first is :math:`\int K^2 / (\int K)^2` over :math:`p(x_0) n h^d`. In the second the weights
    have no second moment: the mean is that of the rare samples, of probability
    :math:`N^{1-\kappa}`, in which one label has most of the weight.

    Parameters
    ----------
    expected : array_like
        N, positive.
    design : LocalDesign
        Only its dimension D enters.
    kernel : PowerKernel
        Its exponent a neither D/2 nor at least D.

    Returns
    -------
    ndarray
        Of the shape of `expected`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    count = _validate.positives("expected", expected)
    alpha = kernel.exponent / design.dimension
    if alpha >= 1 or alpha == 0.5:
        raise ValueError(
            f"kernel must have an exponent below the local dimension {design.dimension:g} and not "
            f"half of it, got {kernel.exponent:g}"
        )
    if alpha < 0.5:
        return np.asarray((1 - alpha) ** 2 / (1 - 2 * alpha) / count)
    kappa = 1 / alpha
    constant = kappa * special.gamma(kappa) * special.gamma(2 - kappa) * (1 - alpha) ** kappa
    return np.asarray(constant * count ** (1 - kappa))


def _integrals(n: float, p: float, alpha: float, beta: float) -> tuple[float, float, float]:
    """B, V and the probability of an empty ball, for weights U^-alpha and g = U^beta."""
    logs, spacing = np.linspace(np.log(_TINY / (n * p)), np.log(_LAST), _NODES, retstep=True)
    t = np.exp(logs)
    complement = _moment(t, 0.0, alpha, complement=True)
    log_psi = np.log1p(-p * complement) if p < 1 else np.log(_moment(t, 0.0, alpha))
    most = np.exp((n - 1) * log_psi)
    # One more factor t: the measure is dt = t d(log t).
    weights = spacing * t**2
    variance = n * p * weights @ (_moment(t, -2 * alpha, alpha) * most)
    first = n * p * _moment(t, 2 * (beta - alpha), alpha) * most
    second = n * (n - 1) * p**2 * _moment(t, beta - alpha, alpha) ** 2
    bias = weights @ (first + second * np.exp((n - 2) * log_psi))
    return float(bias), float(variance), float(np.exp(n * special.log1p(-p))) if p < 1 else 0.0


def _moment(t: Array, power: float, alpha: float, *, complement: bool = False) -> Array:
    r"""Mean of :math:`U^q e^{-t U^{-\alpha}}`, or of :math:`1 - e^{-t U^{-\alpha}}`, at each t.

    With :math:`U = e^{-v}`, over v from zero to where the integrand is below rounding.
    """
    rate = 1 + power
    end = np.full(t.shape, 45 / rate if rate > 0 else np.inf)
    if alpha > 0 and not complement:
        end = np.minimum(end, np.log(np.maximum(750 / t, 2.0)) / alpha)
    nodes, weights = np.polynomial.legendre.leggauss(_ORDER)
    edges = np.linspace(0, 1, _PANELS + 1)
    unit = (edges[:-1, None] + (nodes + 1) / 2 / _PANELS).ravel()
    v = end[:, None] * unit
    scaled = -t[:, None] * np.exp(np.minimum(alpha * v, 700.0))
    factor = -np.expm1(scaled) if complement else np.exp(scaled)
    return np.asarray((np.exp(-rate * v) * factor) @ np.tile(weights / 2 / _PANELS, _PANELS) * end)


def hoeffding_bound(
    n: ArrayLike, deviation: ArrayLike, *, low: float = 0.0, high: float = 1.0
) -> Array:
    r"""Bound on the chance that a mean is off by more than a deviation (MDL Theorem 5.4).

    .. math:: P\Big(\Big|\frac1n\sum Z_i - \mu\Big| > \varepsilon\Big)
              \le 2 e^{-2 n \varepsilon^2/(b-a)^2}

    Parameters
    ----------
    n : array_like
        Number of independent variables.
    deviation : array_like
        :math:`\varepsilon`, non-negative.
    low, high : float
        Range [a, b] of each.

    Returns
    -------
    ndarray
        Of the common shape of `n` and `deviation`; may exceed one.
    """
    width = _validate.number("high", high) - _validate.number("low", low)
    if width <= 0:
        raise ValueError(f"high must exceed low = {low!r}, got {high!r}")
    count, size = _validate.finite("n", n), _validate.finite("deviation", deviation)
    return np.asarray(2 * np.exp(-2 * count * size**2 / width**2))


def lower_tail_bound(n: ArrayLike, probability: ArrayLike) -> Array:
    r"""Bound on the chance of at most half the mean number of successes, :math:`e^{-np/8}`.

    Chernoff's multiplicative bound for n independent events of the same probability. Where p is
    small it is much better than Hoeffding's :math:`e^{-np^2/2}`.

    Parameters
    ----------
    n, probability : array_like
        Number n of events and probability p of each, of shapes that broadcast.
    """
    count, mean = _validate.finite("n", n), _validate.finite("probability", probability)
    return np.asarray(np.exp(-count * mean / 8))
