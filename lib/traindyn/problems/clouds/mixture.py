r"""A linear classifier of two clouds whose noise has coordinates of any law.

A label y is 1 or -1 with equal probabilities, an input is :math:`y \mu + \zeta`, with a unit vector
:math:`\mu \in \mathbb R^n`, and the loss of w is a function of the margin
:math:`s = y \langle w, y \mu + \zeta \rangle`: logistic, :math:`\log(1 + e^{-s})`, or the square
:math:`\tfrac12 (1 - s)^2`. With :math:`f = -\mathrm{loss}'(s)` one step is

.. math:: w \leftarrow w + \delta f(s) (\mu + y \zeta) .

All odd moments of :math:`y \zeta` vanish, whatever the law of :math:`\zeta`. Its coordinates are
independent in :class:`Mixture`; what else classifies such clouds begins with :class:`Clouds`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import expit

from traindyn import _validate, gaussian
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.direction import Linear, Marked, unit
from traindyn.problems.clouds.laws import Law, draw
from traindyn.problems.spiked import Statistics

__all__ = ["Clouds", "Mixture"]

Loss = Literal["logistic", "square"]

#: Above this sum of fourth powers of the mean, its projection of the noise is not taken as normal.
SPREAD = 0.05


@dataclass(frozen=True, eq=False)
class Clouds(Linear):
    """What classifiers of clouds share: their data, and how a step is made.

    Attributes
    ----------
    mean, law, precision, loss
        As for :class:`Mixture`.
    """

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

    def response(self, margin: ArrayLike) -> Array:
        """Minus the first derivative of the loss, f, at margins of any shape."""
        s = _validate.finite("margin", margin)
        return np.asarray(expit(-s)) if self.loss == "logistic" else 1.0 - s

    def slope(self, margin: ArrayLike) -> Array:
        """Minus the second derivative of the loss, f', at margins of any shape."""
        f = self.response(margin)
        return -f * (1.0 - f) if self.loss == "logistic" else -np.ones_like(f)

    @property
    def constants(self) -> tuple[Any, ...]:
        """What a kernel needs to draw inputs: mean, code of the law, mixing, logistic or not."""
        return self.mean, self.law.code, self._mixing(), self.loss == "logistic"

    def _mixing(self) -> tuple[float, float]:
        """Weights of a coordinate itself and of the other one of its pair."""
        return self.precision**-0.5, 0.0

    def direct_kernel(self) -> Kernel:
        """One step on a fresh sample; the state is ``tuple(point)``."""
        return Kernel(_step, self.constants)


@dataclass(frozen=True, eq=False)
class Mixture(Clouds, Marked):
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
    >>> from traindyn.problems.clouds import mixture
    >>> from traindyn.problems.clouds.laws import Law
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

    def _move(self, statistics: Statistics, c_delta: float) -> tuple[Array, Array, Array]:
        """Response f and one step over its size at the nodes of a quadrature, and its weights."""
        kept = _validate.instance("statistics", statistics, Statistics)
        m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
        c_delta = _validate.non_negative("c_delta", c_delta)
        along, weights = self._along()
        across = gaussian.gauss_hermite(1, 60)
        along = along[:, None] / math.sqrt(self.precision)
        eta = across.nodes[:, 0] * math.sqrt(r2 / self.precision)
        f = self.response(m * (1.0 + along) + eta)
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
        if self.concentration > SPREAD:
            raise ValueError(
                "mean must be on one coordinate, or have fourth powers with a sum of at most "
                f"{SPREAD:g}, for the logistic loss, got {self.concentration:.3g}"
            )
        return Law().nodes()


@njit(nogil=True, error_model="numpy")
def draw_input(
    x: Array,
    mean: Array,
    law: tuple[int, float],
    mixing: tuple[float, float],
    rng: np.random.Generator,
) -> None:
    """Draw an input times its label, mean + label * noise; compiled, for the kernels of SGD.

    Parameters
    ----------
    x : ndarray, shape (n,)
        Overwritten.
    mean : ndarray, shape (n,)
        Of inputs with the label one.
    law
        :attr:`~traindyn.problems.clouds.laws.Law.code` of the law of a coordinate.
    mixing
        Weights of a coordinate itself and of the other one of its pair.
    rng : Generator
        Source of the draw.
    """
    own, other = mixing
    for i in range(x.size):
        x[i] = draw(law[0], law[1], rng)
    if other != 0.0:
        for i in range(0, x.size, 2):
            first, second = x[i], x[i + 1]
            x[i] = own * first + other * second
            x[i + 1] = other * first + own * second
    else:
        for i in range(x.size):
            x[i] *= own
    label = 1.0 if rng.random() < 0.5 else -1.0
    for i in range(x.size):
        x[i] = mean[i] + label * x[i]


@njit(nogil=True, error_model="numpy")
def response(margin: float, logistic: bool) -> float:
    """Minus the derivative of the loss; compiled, for the kernels of SGD.

    Parameters
    ----------
    margin : float
        Of one input.
    logistic : bool
        Whether the loss is logistic, and not square.
    """
    return 1.0 / (1.0 + math.exp(margin)) if logistic else 1.0 - margin


@njit(nogil=True, error_model="numpy")
def _step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take the step w <- w + step_size f(s) x, x = mean + label * noise, s = <w, x>."""
    (w,) = state
    mean, law, mixing, logistic = constants
    x = np.empty(w.size)
    draw_input(x, mean, law, mixing, rng)
    margin = 0.0
    for i in range(w.size):
        margin += w[i] * x[i]
    pull = step_size * response(margin, logistic)
    for i in range(w.size):
        w[i] += pull * x[i]
