r"""Spiked matrix and tensor PCA by online SGD (BGJ Sections 3 and 7).

One observation is :math:`Y = \lambda v^{\otimes k} + W`, with a unit vector v of
:math:`\mathbb{R}^n` and all :math:`n^k` entries of W independent N(0, 1) (W is not
symmetric); the loss of :math:`x \in \mathbb{R}^n` is

.. math:: L(x, Y) = \|Y - x^{\otimes k}\|^2, \qquad \text{SGD descends } L + \tfrac\alpha2 |x|^2.

The noise is isotropic, so v is the first coordinate vector. Training closes on
:math:`m = \langle x, v \rangle` and :math:`r_\perp^2 = |x|^2 - m^2`; :math:`R^2` stands for
:math:`|x|^2`. The same stochastic gradient descent can be run at three levels, equal in law:

* explicitly, drawing the full noise tensor (:meth:`SpikedTensor.explicit`, small n);
* in full dimension (:meth:`SpikedTensor.direct_kernel`): the gradient is Gaussian with mean
  :math:`\nabla\Phi = -2 \lambda k m^{k-1} v + 2 k R^{2k-2} x` and covariance
  :math:`V = 4 k R^{2k-2} I + 4 k (k-1) R^{2k-4} x x^T` (BGJ (7.2)), so that n normals
  replace :math:`n^k`;
* on the two statistics alone (:meth:`SpikedTensor.reduced_kernel`), two normals and one
  chi-square variable per step whatever n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._compiled import FAST
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Kernel
from traindyn.problems.loops import loops, repeat

__all__ = ["Point", "SpikedTensor", "Statistics", "StepMoments"]

# Entries of noise tensors held or drawn at a time: one gibibyte of doubles.
_MOST_ENTRIES = 2**27


class Point(NamedTuple):
    """The estimate of the spike.

    Attributes
    ----------
    x : ndarray, shape (n,)
        The spike itself is the first coordinate vector.
    """

    x: Array


class Statistics(NamedTuple):
    r"""Summary statistics of a point (leading axes allowed).

    Attributes
    ----------
    m : ndarray, shape ()
        Overlap with the spike, :math:`\langle x, v \rangle`.
    r2 : ndarray, shape ()
        Squared length orthogonal to the spike, :math:`r_\perp^2 = |x|^2 - m^2`.
    """

    m: Array
    r2: Array


class StepMoments(NamedTuple):
    """Mean and covariance of the statistics after one step from given ones.

    Attributes
    ----------
    mean : Statistics
    covariance : ndarray, shape (2, 2)
        In the order (m, r2).
    """

    mean: Statistics
    covariance: Array


@dataclass(frozen=True)
class SpikedTensor:
    r"""Estimation of a rank-one spike in a Gaussian tensor.

    Attributes
    ----------
    order : int
        Order k >= 2 of the tensor; 2 is spiked matrix PCA.
    dimension : int
        Dimension n >= 2 of the spike.
    signal : float
        Signal strength lambda > 0.
    ridge : float, optional
        Ridge coefficient alpha >= 0 of the loss that SGD descends, zero by default. Losses
        and gradients of observations are those *without* the ridge; population quantities
        include it.

    Raises
    ------
    ValueError
        If the order or the dimension is below two, the signal is not positive or the ridge
        is negative.

    Examples
    --------
    At the origin the loss of an observation is its squared norm:

    >>> from traindyn.problems import SpikedTensor
    >>> from traindyn.problems.spiked.tensor import Point
    >>> import numpy as np
    >>> problem = SpikedTensor(3, 4, signal=2.0)
    >>> tensors = problem.observations(5, rng=0)
    >>> losses = problem.loss(Point(np.zeros(4)), tensors)
    >>> np.allclose(losses, (tensors**2).sum(axis=(1, 2, 3)))
    True
    """

    order: int
    dimension: int
    signal: float
    ridge: float = 0.0

    def __post_init__(self) -> None:
        """Convert and check every field."""
        set_field = object.__setattr__
        set_field(self, "order", _validate.integer("order", self.order, least=2))
        set_field(self, "dimension", _validate.integer("dimension", self.dimension, least=2))
        set_field(self, "signal", _validate.positive("signal", self.signal))
        set_field(self, "ridge", _validate.non_negative("ridge", self.ridge))

    def explicit(self) -> SpikedTensor:
        """Return the same problem, whose SGD draws the full noise tensor at every step.

        Returns
        -------
        SpikedTensor
            Its :meth:`direct_kernel` takes n^k normals per step instead of n; everything
            else is unchanged.
        """
        return _ExplicitTensor(**{each.name: getattr(self, each.name) for each in fields(self)})

    # ------------------------------------------------------------------ data law

    def observations(self, count: int, *, rng: RNG) -> Array:
        """Draw independent observations, shape (count, n, ..., n) with k axes of length n.

        Raises
        ------
        ValueError
            If they would take more than one gibibyte.
        """
        count = _validate.integer("count", count, least=1)
        _check_entries(count, self.dimension, self.order)
        shape = (count,) + (self.dimension,) * self.order
        tensors = _validate.generator("rng", rng).standard_normal(shape)
        tensors.reshape(count, -1)[:, 0] += self.signal
        return tensors

    def initial(self, *, rng: RNG) -> Point:
        """Draw from N(0, I_n / n), as in BGJ Proposition 3.3."""
        x = _validate.generator("rng", rng).standard_normal(self.dimension)
        x /= math.sqrt(self.dimension)
        return Point(x)

    # ------------------------------------------------------------------ loss and gradient

    def loss(self, point: Point, tensors: ArrayLike) -> Array:
        r"""Loss :math:`\|Y - x^{\otimes k}\|^2` of each observation, without the ridge.

        Parameters
        ----------
        point : Point
            The estimate x of the spike.
        tensors : array_like, shape (count, n, ..., n)
            Observations Y, each with k axes.

        Returns
        -------
        ndarray, shape (count,)
        """
        x, observed = self._checked_point(point), self._checked_tensors(tensors)
        rank_one = np.ones(())
        for _ in range(self.order):
            rank_one = np.multiply.outer(rank_one, x)
        axes = tuple(range(1, self.order + 1))
        return np.asarray(((observed - rank_one) ** 2).sum(axis=axes))

    def gradient(self, point: Point, tensors: ArrayLike) -> Point:
        r"""Gradient of the mean loss, without the ridge.

        .. math:: \nabla L = -2 \sum_{j=1}^k Y(x, \dots, \cdot_j, \dots, x) + 2 k R^{2k-2} x.

        Parameters
        ----------
        point : Point
            The estimate x of the spike.
        tensors : array_like, shape (count, n, ..., n)
            Observations Y, each with k axes, whose losses are averaged.
        """
        x = self._checked_point(point)
        mean = self._checked_tensors(tensors).mean(axis=0)
        pull = np.zeros_like(x)
        for free in range(self.order):
            rest = np.moveaxis(mean, free, 0)
            for _ in range(self.order - 1):
                rest = rest @ x
            pull += rest
        return Point(2.0 * (self.order * (x @ x) ** (self.order - 1) * x - pull))

    def gradients(self, point: Point, count: int, *, rng: RNG) -> Array:
        r"""Draw gradients of independent observations without drawing these.

        .. math:: \nabla L = \nabla\Phi
            + 2 \sqrt k R^{k-1} \big(z + (\sqrt k - 1) \langle \hat x, z \rangle \hat x\big),
            \qquad z \sim N(0, I_n),\ \hat x = x / R,

        which has covariance V (:meth:`noise_covariance`).

        Parameters
        ----------
        point : Point
            The estimate x at which all gradients are taken.
        count : int
            How many to draw, one for each observation.
        rng : int, SeedSequence or Generator
            Draws the vectors z.

        Returns
        -------
        ndarray, shape (count, n)
            Without the ridge.
        """
        x = self._checked_point(point)
        count = _validate.integer("count", count, least=1)
        draws = _validate.generator("rng", rng).standard_normal((count, self.dimension))
        square = float(x @ x)
        if square > 0:
            stretch = (math.sqrt(self.order) - 1.0) / square
            draws += stretch * np.outer(draws @ x, x)
        draws *= 2.0 * math.sqrt(self.order * square ** (self.order - 1))
        return np.asarray(draws + self.population_gradient(point).x - self.ridge * x)

    def one_step(self, point: Point, gradients: ArrayLike, *, step_size: float) -> Statistics:
        r"""Statistics after one step of SGD from one point, for each of many gradients.

        Parameters
        ----------
        point : Point
            Where every step starts.
        gradients : array_like, shape (count, n)
            Without the ridge, which is added here.
        step_size : float
            Learning rate :math:`\delta > 0`.

        Returns
        -------
        Statistics
            With a leading axis of length count.
        """
        step_size = _validate.positive("step_size", step_size)
        drawn = _validate.finite("gradients", gradients, shape=(None, self.dimension))
        x = self._checked_point(point)
        after = (1.0 - step_size * self.ridge) * x - step_size * drawn
        return Statistics(after[:, 0], np.einsum("ni,ni->n", after[:, 1:], after[:, 1:]))

    def population_gradient(self, point: Point) -> Point:
        r"""Gradient of the population loss with its ridge.

        .. math:: \nabla\Phi = -2 \lambda k m^{k-1} v + (2 k R^{2k-2} + \alpha) x .
        """
        x = self._checked_point(point)
        gradient = (2.0 * self.order * (x @ x) ** (self.order - 1) + self.ridge) * x
        gradient[0] -= 2.0 * self.signal * self.order * x[0] ** (self.order - 1)
        return Point(gradient)

    def population_hessian(self, point: Point) -> Array:
        r"""Hessian of the population loss with its ridge, shape (n, n).

        .. math:: \nabla^2\Phi = -2 \lambda k (k-1) m^{k-2} v v^T + (2 k R^{2k-2} + \alpha) I
            + 4 k (k-1) R^{2k-4} x x^T.

        The display in BGJ Section 7.2 differs, see
        :func:`companion.effective_dynamics.pca.printed.printed_hessian`.
        """
        x, k = self._checked_point(point), self.order
        square = x @ x
        hessian = 4.0 * k * (k - 1) * square ** (k - 2) * np.outer(x, x)
        hessian[np.diag_indices(self.dimension)] += 2.0 * k * square ** (k - 1) + self.ridge
        hessian[0, 0] -= 2.0 * self.signal * k * (k - 1) * x[0] ** (k - 2)
        return np.asarray(hessian)

    def noise_covariance(self, point: Point) -> Array:
        r"""Covariance of the gradient of one observation (BGJ (7.2)), shape (n, n).

        .. math:: V = 4 k R^{2k-2} I + 4 k (k-1) R^{2k-4} x x^T,

        with eigenvalues :math:`4 k^2 R^{2k-2}` along x and :math:`4 k R^{2k-2}` elsewhere.
        """
        x, k = self._checked_point(point), self.order
        square = x @ x
        covariance = 4.0 * k * (k - 1) * square ** (k - 2) * np.outer(x, x)
        covariance[np.diag_indices(self.dimension)] += 4.0 * k * square ** (k - 1)
        return np.asarray(covariance)

    # ------------------------------------------------------------------ summary statistics

    def statistics(self, point: Point) -> Statistics:
        """Summary statistics of a point (BGJ Section 3)."""
        x = self._checked_point(point)
        return Statistics(np.array(x[0]), np.asarray(x[1:] @ x[1:]))

    def place(self, statistics: Statistics) -> Point:
        """Return a point with these statistics, in the span of the first two coordinates."""
        m, r2 = _checked_scalars(statistics)
        x = np.zeros(self.dimension)
        x[0], x[1] = m, math.sqrt(r2)
        return Point(x)

    def initial_statistics(self) -> Statistics:
        """Limit of the statistics of :meth:`initial` in large dimension: m = 0, r2 = 1."""
        return Statistics(np.zeros(()), np.ones(()))

    def draw_initial_statistics(self, *, rng: RNG) -> Statistics:
        """Draw from the exact law of the statistics of :meth:`initial`, at a cost free of n."""
        generator = _validate.generator("rng", rng)
        m = generator.standard_normal() / math.sqrt(self.dimension)
        r2 = generator.chisquare(self.dimension - 1) / self.dimension
        return Statistics(np.asarray(m), np.asarray(r2))

    def initial_covariance(self) -> Array:
        """Limit of n times the covariance of :meth:`draw_initial_statistics`: diag(1, 2)."""
        return np.diag([1.0, 2.0])

    # ------------------------------------------------------------------ effective dynamics

    def population_loss(self, statistics: Statistics) -> Array:
        r"""Evaluate the population loss with its ridge, up to a constant (leading axes allowed).

        .. math:: \Phi = -2 \lambda m^k + R^{2k} + \tfrac\alpha2 R^2.
        """
        m, r2 = _arrays(statistics)
        square = m**2 + r2
        fit = square**self.order - 2.0 * self.signal * m**self.order
        return np.asarray(fit + 0.5 * self.ridge * square)

    @property
    def drift_dimension(self) -> int:
        """Dimension of the Gaussian integrals of :meth:`drift`: none."""
        return 0

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        r"""Drift of the effective dynamics (BGJ Proposition 3.1, (3.1); leading axes allowed).

        .. math::

            \dot m &= 2 m (\lambda k m^{k-2} - k R^{2k-2} - \alpha / 2) \\
            \frac{d}{dt} r_\perp^2 &= -4 k R^{2k-2} (r_\perp^2 - c_\delta) - 2 \alpha r_\perp^2 .

        Without ridge this is the flow of MDL Section 12.4.1.

        BGJ Section 7.1 prints :math:`\alpha` for :math:`\alpha/2` in the first line, see
        :func:`companion.effective_dynamics.pca.printed.as_printed`.

        Parameters
        ----------
        statistics : Statistics
            Of one point or, with leading axes, of many.
        rule : Rule, optional
            Not used: there is nothing to integrate.
        c_delta : float
            Limit of step_size * dimension; zero for a sub-critical step size.

        Returns
        -------
        Statistics
            Time derivatives.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        (m, r2), k = _arrays(statistics), self.order
        decay = 2.0 * k * (m**2 + r2) ** (k - 1)
        dm = 2.0 * self.signal * k * m ** (k - 1) - (decay + self.ridge) * m
        dr2 = -2.0 * decay * (r2 - c_delta) - 2.0 * self.ridge * r2
        return Statistics(np.asarray(dm), np.asarray(dr2))

    def jacobian(self, statistics: Statistics, *, c_delta: float) -> Array:
        """Differentiate :meth:`drift` with respect to (m, r2), shape (2, 2).

        Leading axes of the statistics come first.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        (m, r2), k = _arrays(statistics), self.order
        square = m**2 + r2
        decay = 2.0 * k * square ** (k - 1)
        slope = 2.0 * k * (k - 1) * square ** (k - 2)
        pull = 2.0 * self.signal * k * (k - 1) * m ** (k - 2)
        excess = r2 - c_delta
        rows = [
            [pull - decay - self.ridge - 2.0 * slope * m**2, -slope * m],
            [-4.0 * slope * m * excess, -2.0 * (slope * excess + decay + self.ridge)],
        ]
        return _matrix(rows)

    def volatility(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float = 1.0
    ) -> Array:
        r"""Limit covariance of one step, in units of ``step_size**2``: :math:`J V J^T`.

        .. math::

            (J V J^T)_{11} &= 4 k R^{2k-2} + 4 k (k-1) m^2 R^{2k-4} \\
            (J V J^T)_{12} &= 8 k (k-1)\, m\, r_\perp^2 R^{2k-4} \\
            (J V J^T)_{22} &= 16 k r_\perp^2 R^{2k-2} + 16 k (k-1) r_\perp^4 R^{2k-4}.

        The second and third entries correct BGJ (7.3), see
        :func:`companion.effective_dynamics.pca.printed.printed_volatility`. Summed over the steps
        of a unit of time the covariance is ``step_size`` times this: it vanishes in the
        limit and sets the size of the fluctuations before it.

        Parameters
        ----------
        statistics : Statistics
            Leading axes allowed.
        rule : Rule, optional
            Not used: the covariance has a closed form.
        c_delta : float, default 1
            Checked and not used: the second order of a step, which it multiplies, does not
            fluctuate.

        Returns
        -------
        ndarray, shape (..., 2, 2)
            In the order (m, r2), after the leading axes of the statistics.
        """
        _validate.non_negative("c_delta", c_delta)
        (m, r2), k = _arrays(statistics), self.order
        square = m**2 + r2
        bulk = 4.0 * k * square ** (k - 1)
        extra = 4.0 * k * (k - 1) * square ** (k - 2)
        across = 2.0 * extra * m * r2
        return _matrix(
            [[bulk + extra * m**2, across], [across, 4.0 * r2 * bulk + 4.0 * extra * r2**2]]
        )

    def step_moments(self, statistics: Statistics, *, step_size: float) -> StepMoments:
        r"""Exact mean and covariance of the statistics after one step, at finite n.

        With :math:`b = (1 - \delta (2 k R^{2k-2} + \alpha)) r_\perp` and C the covariance of
        the gradient along v and along the orthogonal part of x,
        :math:`r_\perp^2` becomes :math:`(b - \delta \xi_e)^2 + \delta^2 4 k R^{2k-2}
        \chi^2_{n-2}`. Its mean exceeds :math:`b^2` by step_size times the corrector
        :math:`\tfrac\delta2 \langle V, \nabla^2 r_\perp^2 \rangle`.

        Parameters
        ----------
        statistics : Statistics
            Before the step; of one point, without leading axes.
        step_size : float
            Learning rate :math:`\delta > 0`.
        """
        step_size = _validate.positive("step_size", step_size)
        m, r2 = _checked_scalars(statistics)
        k, square = self.order, m * m + r2
        bulk = 4.0 * k * square ** (k - 1)
        extra = 4.0 * k * (k - 1) * square ** (k - 2)
        keep = 1.0 - step_size * (0.5 * bulk + self.ridge)
        # Variances of the gradient along v and e, its covariance between v and e times r.
        along_v, along_e, across = bulk + extra * m * m, bulk + extra * r2, extra * m * r2
        mean_m = keep * m + 2.0 * step_size * self.signal * k * m ** (k - 1)
        mean_r2 = keep**2 * r2 + step_size**2 * (along_e + (self.dimension - 2) * bulk)
        mixed = 2.0 * keep * step_size**2 * across
        spread = 2.0 * step_size**4 * (along_e**2 + (self.dimension - 2) * bulk**2)
        spread += 4.0 * (keep * step_size) ** 2 * r2 * along_e
        covariance = np.array([[step_size**2 * along_v, mixed], [mixed, spread]])
        return StepMoments(Statistics(np.asarray(mean_m), np.asarray(mean_r2)), covariance)

    def loss_drift(self, statistics: Statistics, *, c_delta: float) -> Array:
        r"""Time derivative of the population loss along the effective dynamics.

        .. math:: \dot\Phi = -|\nabla\Phi|^2
            + 4 c_\delta k R^{2k-2} (k R^{2k-2} + \tfrac\alpha2),

        which is BGJ (3.4) at :math:`\alpha = 0`. It can be positive where
        :math:`r_\perp^2 < c_\delta`.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        (m, r2), k = _arrays(statistics), self.order
        power = k * (m**2 + r2) ** (k - 1)
        slope_m = (2.0 * power + self.ridge) * m - 2.0 * self.signal * k * m ** (k - 1)
        slope_r2 = power + 0.5 * self.ridge
        return np.asarray(4.0 * c_delta * power * slope_r2 - slope_m**2 - 4.0 * r2 * slope_r2**2)

    # ------------------------------------------------------------------ one step of SGD

    def direct_kernel(self) -> Kernel:
        """One step of SGD in full dimension; the state is ``tuple(point)``."""
        return Kernel(_direct_step, (self.order, self.signal, self.ridge))

    def reduced_kernel(self) -> Kernel:
        """One step of SGD on the statistics; the state is :meth:`reduced_state`.

        Raises
        ------
        ValueError
            If the dimension is two, where no noise is left outside the spike and the point.
        """
        freedom = self.dimension - 2
        if freedom < 1:
            raise ValueError(
                f"dimension must be greater than 2 for the reduced dynamics, got {self.dimension}"
            )
        return Kernel(_reduced_step, (self.order, self.signal, self.ridge, float(freedom)))

    def reduced_state(self, statistics: Statistics) -> tuple[Array, ...]:
        """Return the array (m, r2) that the reduced kernel updates.

        Raises
        ------
        ValueError
            If the statistics are not two finite numbers or r2 is negative.
        """
        return (np.array(_checked_scalars(statistics)),)

    def reduced_statistics(self, state: tuple[Array, ...]) -> Statistics:
        """Statistics of a reduced state (leading axes allowed)."""
        (pair,) = state
        return Statistics(np.array(pair[..., 0]), np.array(pair[..., 1]))

    # ------------------------------------------------------------------ checks

    def _checked_point(self, point: Point) -> Array:
        _validate.providing("point", point, "x")
        return _validate.finite("point.x", point.x, shape=(self.dimension,))

    def _checked_tensors(self, tensors: ArrayLike) -> Array:
        shape = (None,) + (self.dimension,) * self.order
        observed = _validate.finite("tensors", tensors, shape=shape)
        if observed.shape[0] == 0:
            raise ValueError("tensors must hold at least one observation, got none")
        return observed


@dataclass(frozen=True)
class _ExplicitTensor(SpikedTensor):
    """The same problem with the explicit kernel, see :meth:`SpikedTensor.explicit`."""

    def direct_kernel(self) -> Kernel:
        """One step of SGD on an observation drawn in full; the state is ``tuple(point)``.

        Raises
        ------
        ValueError
            If an observation has more than 2**27 entries.
        """
        _check_entries(1, self.dimension, self.order)
        return Kernel(_explicit_step, (self.order, self.signal, self.ridge))


def _check_entries(count: int, dimension: int, order: int) -> None:
    entries = count * dimension**order
    if entries > _MOST_ENTRIES:
        raise ValueError(
            f"dimension must leave at most {_MOST_ENTRIES} tensor entries, got {count} x "
            f"{dimension}^{order} = {entries:.3g}"
        )


def _arrays(statistics: Statistics) -> tuple[Array, Array]:
    m, r2 = _validate.instance("statistics", statistics, Statistics)
    return np.asarray(m, dtype=np.float64), np.asarray(r2, dtype=np.float64)


def _checked_scalars(statistics: Statistics) -> tuple[float, float]:
    m, r2 = _validate.instance("statistics", statistics, Statistics)
    return _validate.number("m", m), _validate.non_negative("r2", r2)


def _matrix(rows: list[list[Any]]) -> Array:
    """Matrices with the given entries, which may have leading axes."""
    shape = np.broadcast_shapes(*(np.shape(entry) for row in rows for entry in row))
    stacked = [np.stack([np.broadcast_to(e, shape) for e in row], axis=-1) for row in rows]
    return np.stack(stacked, axis=-2)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _direct_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    r"""Take the step x <- x - step_size (grad Phi + xi) with xi from N(0, V).

    xi = 2 sqrt(k) R^(k-1) (z + (sqrt(k) - 1) <x, z> x / R^2) for z of n standard normals,
    the only draws. At the origin there is neither gradient nor noise.
    """
    (x,) = state
    order, signal, ridge = constants
    n = x.size
    z = np.empty(n)
    for i in range(n):
        z[i] = rng.standard_normal()
    square = 0.0
    along = 0.0
    for i in range(n):
        square += x[i] * x[i]
        along += x[i] * z[i]
    power = square ** (order - 1)
    noise = 2.0 * step_size * math.sqrt(order * power)
    stretch = 0.0
    if square > 0.0:
        stretch = noise * (math.sqrt(order) - 1.0) * along / square
    keep = 1.0 - step_size * (2.0 * order * power + ridge) - stretch
    pull = 2.0 * step_size * signal * order * x[0] ** (order - 1)
    for i in range(n):
        x[i] = keep * x[i] - noise * z[i]
    x[0] += pull


@loops(_direct_step)
@njit(cache=True, nogil=True)
def _direct_loop(chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    repeat(_direct_step, chain, rng, step_size, out)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _reduced_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    r"""Take the same step on (m, r2), in O(1) operations.

    z enters only through its coordinates z_v along the spike and z_e along the orthogonal
    part of x, and the squared length chi of the rest, with n - 2 degrees of freedom. With
    xi_v, xi_e the components of the noise of the gradient, s = 2 sqrt(k) R^(k-1) and
    keep = 1 - step_size (2 k R^(2k-2) + ridge),

        m <- keep m + step_size (2 signal k m^(k-1) - xi_v)
        r2 <- (keep r - step_size xi_e)^2 + (step_size s)^2 chi.
    """
    (pair,) = state
    order, signal, ridge, freedom = constants
    m, r = pair[0], math.sqrt(pair[1])
    z_v = rng.standard_normal()
    z_e = rng.standard_normal()
    chi = rng.chisquare(freedom)
    square = m * m + pair[1]
    power = square ** (order - 1)
    noise = 2.0 * step_size * math.sqrt(order * power)
    stretch = 0.0
    if square > 0.0:
        stretch = noise * (math.sqrt(order) - 1.0) * (m * z_v + r * z_e) / square
    keep = 1.0 - step_size * (2.0 * order * power + ridge) - stretch
    pull = 2.0 * step_size * signal * order * m ** (order - 1)
    r = keep * r - noise * z_e
    pair[0] = keep * m + pull - noise * z_v
    pair[1] = r * r + noise * noise * chi


@loops(_reduced_step)
@njit(cache=True, nogil=True)
def _reduced_loop(chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    repeat(_reduced_step, chain, rng, step_size, out)


@njit(cache=True, nogil=True, error_model="numpy")
def _explicit_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    r"""Take the step x <- (1 - step_size ridge) x - step_size grad L(x, Y) on a drawn Y.

    The entries of the noise tensor are drawn in C order and contracted on the fly: entry
    (i_1, ..., i_k) adds w times the product of the other x[i_l] to component i_j of the
    pull, for each slot j. Products over the slots before and behind j are kept apart, so
    that zeros of x divide nothing.
    """
    (x,) = state
    order, signal, ridge = constants
    n = x.size
    pull = np.zeros(n)
    slots = np.zeros(order, dtype=np.int64)
    before = np.ones(order + 1)
    for entry in range(n**order):
        left = entry
        for j in range(order - 1, -1, -1):
            slots[j] = left % n
            left //= n
        value = rng.standard_normal()
        if entry == 0:
            value += signal
        for j in range(order):
            before[j + 1] = before[j] * x[slots[j]]
        behind = 1.0
        for j in range(order - 1, -1, -1):
            pull[slots[j]] += value * before[j] * behind
            behind *= x[slots[j]]
    square = 0.0
    for i in range(n):
        square += x[i] * x[i]
    keep = 1.0 - step_size * (2.0 * order * square ** (order - 1) + ridge)
    for i in range(n):
        x[i] = keep * x[i] + 2.0 * step_size * pull[i]


@loops(_explicit_step)
@njit(cache=True, nogil=True)
def _explicit_loop(chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    repeat(_explicit_step, chain, rng, step_size, out)
