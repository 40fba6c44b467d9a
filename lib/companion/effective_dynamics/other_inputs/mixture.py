r"""A linear classifier of two clouds whose noise has coordinates of any law.

A label y is 1 or -1 with equal probabilities, an input is :math:`y \mu + \zeta`, with a unit vector
:math:`\mu \in \mathbb R^n`, and the loss of w is a function of the margin
:math:`s = y \langle w, y \mu + \zeta \rangle`: logistic, :math:`\log(1 + e^{-s})`, or the square
:math:`\tfrac12 (1 - s)^2`. With :math:`f = -\mathrm{loss}'(s)` one step is

.. math:: w \leftarrow w + \delta f(s) (\mu + y \zeta) .

All odd moments of :math:`y \zeta` vanish, whatever the law of :math:`\zeta`. Its coordinates are
independent in :class:`Mixture`; in :class:`PairedMixture`
they are correlated in pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from companion.effective_dynamics.other_inputs.direction import Linear, Marked, Weights, unit
from companion.effective_dynamics.other_inputs.laws import Law, draw
from traindyn import _validate, gaussian
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Kernel
from traindyn.problems.spiked import Statistics

__all__ = ["Mixture", "PairStatistics", "PairedMixture"]

Loss = Literal["logistic", "square"]

#: Above this sum of fourth powers of the mean, its projection of the noise is not taken as normal.
_SPREAD = 0.05


class PairStatistics(NamedTuple):
    """Summary statistics on the sums and on the differences of the two coordinates of each pair.

    Attributes
    ----------
    m : ndarray, shape (2,)
        Inner products of w with the two parts of the mean.
    r2 : ndarray, shape (2,)
        Squared lengths of the two parts of w, each orthogonal to that part of the mean.
    """

    m: Array
    r2: Array


@dataclass(frozen=True, eq=False)
class _Clouds(Linear):
    """What the two problems share: their data, and how a step is made."""

    mean: Array
    law: Law = Law()  # noqa: RUF009 - frozen
    precision: float = 1.0
    loss: Loss = "logistic"

    def __post_init__(self) -> None:
        """Check the fields."""
        mean = unit("mean", self.mean)
        if mean.size < 2:
            raise ValueError(f"mean must have at least 2 entries, got {mean.size}")
        _validate.instance("law", self.law, Law)
        _validate.choice("loss", self.loss, ("logistic", "square"))
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "precision", _validate.positive("precision", self.precision))

    @property
    def direction(self) -> Array:
        """The mean."""
        return self.mean

    @property
    def concentration(self) -> float:
        """Sum of the fourth powers of the mean: 1 / K for a mean on K coordinates, evenly."""
        return float(np.sum(self.mean**4))

    @property
    def excess(self) -> float:
        r"""Fourth cumulant of :math:`\langle \mu, \zeta \rangle` over its squared variance."""
        return self.law.excess * self.concentration

    def _response(self, margin: Array) -> Array:
        """Minus the derivative of the loss."""
        return np.asarray(expit(-margin)) if self.loss == "logistic" else 1.0 - margin

    def _kernel(self, correlation: float) -> Kernel:
        own = math.sqrt((1.0 + math.sqrt(1.0 - correlation**2)) / 2)
        other = correlation / (2.0 * own)
        scale = self.precision**-0.5
        mixing = (scale * own, scale * other)
        return Kernel(_step, (self.mean, *self.law.code, *mixing, self.loss == "logistic"))


@dataclass(frozen=True, eq=False)
class Mixture(_Clouds, Marked):
    r"""Two clouds with independent coordinates around their means.

    The statistics are :math:`m = \langle w, \mu \rangle` and :math:`r_\perp^2 = \|w\|^2 - m^2`. As
    the part of w orthogonal to the mean is made of many small coordinates, the margin is
    :math:`s = m (1 + \zeta_\mu) + \eta` with :math:`\zeta_\mu = y \langle \mu, \zeta \rangle` and
    an independent :math:`\eta \sim N(0, r_\perp^2 / \lambda)`, and one step moves the statistics by
    :math:`\delta` times

    .. math:: f(s) (1 + \zeta_\mu), \qquad 2 f(s) \eta + c_\delta f(s)^2 / \lambda .

    The effective dynamics is their mean, the volatility their covariance. Of
    :math:`\zeta_\mu` the law of the coordinates counts if the mean has a single one, a normal law
    if its fourth powers sum up to at most 0.05. For the square loss moments up to the fourth are
    enough, at any mean.

    Attributes
    ----------
    mean : ndarray, shape (n,)
        Unit vector, at least two entries.
    law : Law, optional
        Of the coordinates of the noise, before they are scaled.
    precision : float, optional
        Inverse variance :math:`\lambda` of a coordinate.
    loss : {"logistic", "square"}, optional

    Raises
    ------
    ValueError
        If a field is out of range; at the effective dynamics also if the mean is neither on one
        coordinate nor spread and the loss is logistic.

    Examples
    --------
    The variance of a step at the minimum of the square loss is smaller for signs than for normal
    coordinates if the mean is on one coordinate:

    >>> import numpy as np
    >>> from companion.effective_dynamics.other_inputs import mixture
    >>> from companion.effective_dynamics.other_inputs.laws import Law
    >>> rest = mixture.Statistics(np.array(0.5), np.array(0.5))
    >>> for law in (Law("normal"), Law("signs")):
    ...     problem = mixture.Mixture(np.eye(9)[0], law=law, loss="square")
    ...     print(problem.volatility(rest, c_delta=1.0)[0, 0].round(6))
    1.5
    1.0
    """

    @property
    def drift_dimension(self) -> int:
        """Return zero: the quadrature is the problem's own."""
        return 0

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        """Drift of the effective dynamics at one point, corrector included.

        Parameters
        ----------
        statistics : Statistics
            Of one point.
        rule : None
            The quadrature is the problem's own.
        c_delta : float
            Step size times dimension.
        """
        _, move, weights = self._move(statistics, c_delta)
        return Statistics(*(np.asarray(part) for part in move @ weights))

    def volatility(
        self,
        statistics: Statistics,
        *,
        rule: Rule | None = None,
        c_delta: float,
        finite: bool = False,
    ) -> Array:
        r"""Limit covariance of one step, in units of ``step_size**2``, shape (2, 2).

        Parameters
        ----------
        statistics, rule, c_delta
            As for :meth:`drift`.
        finite : bool, optional
            Add what the limit leaves out: the squared length of the noise varies by a relative
            :math:`(2 + \kappa) / n`, and with it the corrector.
        """
        f, move, weights = self._move(statistics, c_delta)
        centred = move - (move @ weights)[:, None]
        found = centred * weights @ centred.T
        if finite:
            varies = (2.0 + self.law.excess) / self.dimension
            found[1, 1] += varies * (c_delta / self.precision) ** 2 * (f**4 @ weights)
        return np.asarray(found)

    def direct_kernel(self) -> Kernel:
        """One step on a fresh sample; the state is ``tuple(point)``."""
        return self._kernel(0.0)

    def _move(self, statistics: Statistics, c_delta: float) -> tuple[Array, Array, Array]:
        """Response f and one step over its size at the nodes of a quadrature, and its weights."""
        kept = _validate.instance("statistics", statistics, Statistics)
        m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
        c_delta = _validate.non_negative("c_delta", c_delta)
        along, weights = self._along()
        across = gaussian.gauss_hermite(1, 60)
        along = along[:, None] / math.sqrt(self.precision)
        eta = across.nodes[:, 0] * math.sqrt(r2 / self.precision)
        f = self._response(m * (1.0 + along) + eta)
        move = np.stack([f * (1.0 + along), 2.0 * f * eta + c_delta / self.precision * f**2])
        return f.ravel(), move.reshape(2, -1), np.outer(weights, across.weights).ravel()

    def _along(self) -> tuple[Array, Array]:
        """Quadrature of the noise along the mean, of variance one."""
        if self.loss == "square":
            # A polynomial of degree four: three points with the right moments.
            fourth = 3.0 + self.excess
            far, share = math.sqrt(fourth), 0.5 / fourth
            return np.array([-far, 0.0, far]), np.array([share, 1.0 - 2.0 * share, share])
        if self.concentration > 1.0 - 1e-8:
            # With the label the law is symmetric.
            points, weights = self.law.nodes()
            return np.concatenate([points, -points]), np.concatenate([weights, weights]) / 2
        if self.concentration > _SPREAD:
            raise ValueError(
                "mean must be on one coordinate, or have fourth powers with a sum of at most "
                f"{_SPREAD:g}, for the logistic loss, got {self.concentration:.3g}"
            )
        return Law().nodes()


@dataclass(frozen=True, eq=False)
class PairedMixture(_Clouds):
    r"""Two clouds whose noise is correlated within pairs of neighbouring coordinates.

    The coordinates 2j and 2j + 1 of the noise are mixed from two independent ones so that they have
    variance :math:`1 / \lambda` and correlation :math:`\rho`. The covariance has the eigenvalues
    :math:`\tau_\pm = (1 \pm \rho) / \lambda` on the sums and on the differences of pairs, of n / 2
    dimensions each. With the two parts :math:`\mu_\pm` of the mean, the margin of a mean that is
    spread has the law :math:`N(m_+ + m_-, v)`, :math:`v = \sum_\pm \tau_\pm (r_\pm^2 + m_\pm^2 /
    \|\mu_\pm\|^2)`, and with :math:`f' = -\mathrm{loss}''(s)`

    .. math::

        \dot m_\pm &= \|\mu_\pm\|^2\, \mathbb E f + \tau_\pm m_\pm\, \mathbb E f' , \\
        \tfrac{d}{dt} r_\pm^2 &= 2 \tau_\pm r_\pm^2\, \mathbb E f'
            + \tfrac12 c_\delta \tau_\pm\, \mathbb E f^2 .

    Attributes
    ----------
    mean, law, precision, loss
        As for :class:`Mixture`; the mean is spread, of even dimension, and has both parts.
    correlation : float, optional
        :math:`\rho`, strictly between -1 and 1.

    Raises
    ------
    ValueError
        If a field is out of range.

    Examples
    --------
    Without correlation the two parts add up to the dynamics of independent coordinates:

    >>> import numpy as np
    >>> from companion.effective_dynamics.other_inputs.mixture import (
    ...     Mixture, PairedMixture, PairStatistics, Statistics)
    >>> mean = np.tile([1.0, 0.0], 50) / np.sqrt(50)
    >>> here = PairStatistics(np.array([0.2, 0.3]), np.array([0.4, 0.6]))
    >>> pairs = PairedMixture(mean, correlation=0.0).drift(here, c_delta=1.0)
    >>> plain = Mixture(mean).drift(Statistics(np.array(0.5), np.array(1.01)), c_delta=1.0)
    >>> print(np.allclose(pairs.m.sum(), plain.m))
    True
    """

    correlation: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        correlation = _validate.number("correlation", self.correlation)
        if not -1.0 < correlation < 1.0:
            raise ValueError(f"correlation must be between -1 and 1, got {correlation:g}")
        object.__setattr__(self, "correlation", correlation)
        if self.dimension % 2:
            raise ValueError(f"mean must have an even number of entries, got {self.dimension}")
        if self.concentration > _SPREAD:
            raise ValueError(
                f"mean must have fourth powers with a sum of at most {_SPREAD:g}, got "
                f"{self.concentration:.3g}"
            )
        if self.shares.min() < 1e-8:
            raise ValueError(f"mean must have both parts, got squared lengths {self.shares}")

    @property
    def shares(self) -> Array:
        """Squared lengths of the two parts of the mean, shape (2,)."""
        parts = self._parts(self.mean)
        return np.asarray(np.sum(parts**2, axis=1))

    @property
    def variances(self) -> Array:
        """Eigenvalues of the covariance on the two parts, shape (2,)."""
        return np.array([1.0 + self.correlation, 1.0 - self.correlation]) / self.precision

    def place(self, statistics: PairStatistics, *, rng: RNG) -> Weights:
        """Draw a point with these statistics, in uniform directions orthogonal to the means."""
        kept = _validate.instance("statistics", statistics, PairStatistics)
        m = _validate.finite("m", kept.m, shape=(2,))
        r2 = _validate.finite("r2", kept.r2, shape=(2,))
        if r2.min() < 0:
            raise ValueError(f"r2 must be non-negative, got {r2.min():g}")
        mean, shares = self._parts(self.mean), self.shares
        other = self._parts(_validate.generator("rng", rng).standard_normal(self.dimension))
        other -= (np.sum(other * mean, axis=1) / shares)[:, None] * mean
        other *= np.sqrt(r2 / np.sum(other**2, axis=1))[:, None]
        first, second = other + (m / shares)[:, None] * mean
        pairs = np.stack([first + second, first - second], axis=1) / math.sqrt(2)
        return Weights(pairs.ravel())

    def statistics(self, point: Weights) -> PairStatistics:
        """Overlaps with the two parts of the mean, and squared lengths of the rest."""
        w = self._parts(_validate.finite("point.w", point.w, shape=(self.dimension,)))
        m = np.sum(w * self._parts(self.mean), axis=1)
        return PairStatistics(m, np.sum(w**2, axis=1) - m**2 / self.shares)

    @property
    def drift_dimension(self) -> int:
        """Return zero: the quadrature is the problem's own."""
        return 0

    def drift(
        self, statistics: PairStatistics, *, rule: Rule | None = None, c_delta: float
    ) -> PairStatistics:
        """Drift of the effective dynamics at one point, corrector included.

        Parameters
        ----------
        statistics : PairStatistics
            Of one point.
        rule : None
            The quadrature is the problem's own.
        c_delta : float
            Step size times dimension.
        """
        kept = _validate.instance("statistics", statistics, PairStatistics)
        m = _validate.finite("m", kept.m, shape=(2,))
        r2 = _validate.finite("r2", kept.r2, shape=(2,))
        c_delta = _validate.non_negative("c_delta", c_delta)
        tau, shares = self.variances, self.shares
        spread = math.sqrt(max(float(tau @ (r2 + m**2 / shares)), 0.0))
        normal = gaussian.gauss_hermite(1, 60)
        f = self._response(m.sum() + spread * normal.nodes[:, 0])
        slope = -f * (1.0 - f) if self.loss == "logistic" else -np.ones_like(f)
        mean, bend, square = normal.weights @ np.stack([f, slope, f**2], axis=1)
        return PairStatistics(
            shares * mean + tau * m * bend,
            2.0 * tau * r2 * bend + 0.5 * c_delta * tau * square,
        )

    def direct_kernel(self) -> Kernel:
        """One step on a fresh sample; the state is ``tuple(point)``."""
        return self._kernel(self.correlation)

    @staticmethod
    def _parts(vector: ArrayLike) -> NDArray[Any]:
        """Coordinates along the sums and the differences of pairs, shape (2, n / 2)."""
        first, second = np.reshape(np.asarray(vector), (-1, 2)).T
        return np.stack([first + second, first - second]) / math.sqrt(2)


@njit(nogil=True, error_model="numpy")
def _step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take the step w <- w + step_size f(s) x, x = mean + label * noise, s = <w, x>."""
    (w,) = state
    mean, kind, parameter, own, other, logistic = constants
    x = np.empty(w.size)
    for i in range(w.size):
        x[i] = draw(kind, parameter, rng)
    if other != 0.0:
        for i in range(0, w.size, 2):
            first, second = x[i], x[i + 1]
            x[i] = own * first + other * second
            x[i + 1] = other * first + own * second
    else:
        for i in range(w.size):
            x[i] *= own
    label = 1.0 if rng.random() < 0.5 else -1.0
    margin = 0.0
    for i in range(w.size):
        x[i] = mean[i] + label * x[i]
        margin += w[i] * x[i]
    pull = step_size * (1.0 / (1.0 + math.exp(margin)) if logistic else 1.0 - margin)
    for i in range(w.size):
        w[i] += pull * x[i]
