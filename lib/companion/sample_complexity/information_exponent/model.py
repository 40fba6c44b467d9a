r"""Single-index models learnt by one-pass SGD on the sphere (MDL, chapter 11).

A sample is a vector :math:`Y` in :math:`R^N` and a label y. Along the unknown direction
:math:`v_0` the vector has a coordinate s with any law, jointly with y; across it the vector is
standard Gaussian. The loss depends on the vector through :math:`t = \langle x, Y \rangle` alone:
:math:`L(x, (Y, y)) = \ell(t, y)`. With :math:`c = \partial_t \ell(t, y)` the spherical gradient
is :math:`c\,(Y - t x)`, and SGD (MDL Definition 11.1) is

.. math:: \tilde x = x - \tfrac\delta N\, c\,(Y - t x), \qquad x \leftarrow \tilde x / |\tilde x| .

*The same law on the overlap alone.* Write :math:`x = m v_0 + r w` with a unit vector
:math:`w \perp v_0`, :math:`r = \sqrt{1 - m^2}`. Of Y a step needs s, the normal coordinate g along
w, and the squared length q of the rest, which is :math:`\chi^2` with N - 2 degrees of freedom:

.. math::

    t &= m s + r g, \qquad p = r s - m g, \\
    m &\leftarrow \frac{m - \tfrac\delta N\, c\, r\, p}
      {\sqrt{1 + (\tfrac\delta N c)^2 (p^2 + q)}} ,

because :math:`Y - t x` is p times the unit vector :math:`r v_0 - m w` plus the rest, both
orthogonal to x. The three draws are independent of the past given m: the overlap is a Markov
chain, in any dimension at the same cost.

*Effective dynamics.* In time ``steps * delta / N``, as :math:`N \to \infty` at fixed
:math:`\delta`,

.. math:: \dot m = -\phi'(m)(1 - m^2) - \tfrac\delta2 v(m)\, m, \qquad v(m) = E[c^2],

with the population loss :math:`\phi`, and noise of variance :math:`\delta\,\mathrm{Var}(c\,r\,p)/N`
per unit of time.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from companion.sample_complexity.information_exponent.links import REACH, line_rule
from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Kernel

__all__ = [
    "Compiled",
    "DataRule",
    "Moments",
    "Point",
    "SingleIndex",
    "Statistics",
    "advance",
]

_BETWEEN_KINKS = 64
"""Gauss–Legendre nodes on each piece of a line that a kink splits."""


class Point(NamedTuple):
    """Estimate of the direction.

    Attributes
    ----------
    x : ndarray, shape (N,)
        Of length one; the unknown direction is the first axis.
    """

    x: Array


class Statistics(NamedTuple):
    """Overlap with the unknown direction, called latitude in the source.

    Attributes
    ----------
    m : ndarray, shape ()
    """

    m: Array


class DataRule(NamedTuple):
    """Quadrature for the law of a sample as seen along the unknown direction.

    Attributes
    ----------
    s, y, weights : ndarray, shape (n,)
        Coordinate, label, weight; the weights sum to one.
    kinks : tuple of float
        Where the loss has kinks as a function of t.
    """

    s: Array
    y: Array
    weights: Array
    kinks: tuple[float, ...] = ()


class Moments(NamedTuple):
    r"""Moments of one sample's loss and spherical gradient at given overlaps.

    Attributes
    ----------
    loss : ndarray
        Population loss :math:`\phi(m)`.
    pull : ndarray
        :math:`E \langle \nabla L, v_0 \rangle = \phi'(m)(1 - m^2)`.
    power : ndarray
        :math:`v(m) = E[c^2]`, the limit of :math:`E |\nabla L|^2 / N`.
    noise : ndarray
        :math:`\mathrm{Var} \langle \nabla L, v_0 \rangle`.
    """

    loss: Array
    pull: Array
    power: Array
    noise: Array


class Compiled(NamedTuple):
    """Compiled formulas of a model.

    Attributes
    ----------
    draw : callable
        ``draw(rng, parameters) -> (s, y)``.
    slope : callable
        ``slope(t, y, parameters)``, the derivative of the loss in t.
    parameters : tuple of float
    """

    draw: Callable[..., Any]
    slope: Callable[..., Any]
    parameters: tuple[float, ...]


@dataclass(frozen=True)
class SingleIndex(ABC):
    """A single-index model: what the subclasses share.

    A model gives the law of a sample twice, as a compiled draw and as a quadrature rule, and
    its loss with the derivative in t. Kernels, moments and effective dynamics follow.

    Attributes
    ----------
    dimension : int
        N, at least 3.

    Raises
    ------
    ValueError
        If the dimension is below 3.
    """

    dimension: int

    def __post_init__(self) -> None:
        """Check the dimension."""
        _validate.integer("dimension", self.dimension, least=3)

    # ------------------------------------------------------------------ of a model

    @abstractmethod
    def compiled(self) -> Compiled:
        """Return the compiled formulas."""

    @abstractmethod
    def data_rule(self) -> DataRule:
        """Return a quadrature for (s, y)."""

    @abstractmethod
    def loss_at(self, t: Array, y: Array) -> Array:
        """Return the loss at t, element by element."""

    @abstractmethod
    def slope_at(self, t: Array, y: Array) -> Array:
        """Return the derivative of the loss in t, element by element."""

    # ------------------------------------------------------------------ points

    @staticmethod
    def checked(t: Array, y: Array) -> tuple[Array, ...]:
        """Return finite products and labels in their common shape."""
        return _validate.broadcast(t=_validate.finite("t", t), y=_validate.finite("y", y))

    @property
    def ridge(self) -> float:
        """Ridge of the loss: none on the sphere."""
        return 0.0

    def initial(self, *, rng: RNG) -> Point:
        """Draw a uniform point of the upper half-sphere, as the source does."""
        x = _validate.generator("rng", rng).standard_normal(self.dimension)
        x /= np.linalg.norm(x)
        x[0] = abs(x[0])
        return Point(x)

    def draw_initial_statistics(self, *, rng: RNG) -> Statistics:
        """Draw from the exact law of the overlap of :meth:`initial`, at a cost free of N.

        Times the root of N it tends to the modulus of a normal (MDL Section 11.3.2).
        """
        generator = _validate.generator("rng", rng)
        z = abs(generator.standard_normal())
        rest = generator.chisquare(self.dimension - 1)
        return Statistics(np.asarray(z / math.sqrt(z * z + rest)))

    def initial_statistics(self) -> Statistics:
        """Limit of the overlap of a random start: zero."""
        return Statistics(np.asarray(0.0))

    def statistics(self, point: Point) -> Statistics:
        """Overlap of a point.

        Raises
        ------
        ValueError
            If the point is misshaped, not finite or not of length one.
        """
        x = _validate.finite("point.x", point.x, shape=(self.dimension,))
        length = float(np.linalg.norm(x))
        if abs(length - 1) > 1e-9:
            raise ValueError(f"point.x must have length one, got {length:.12g}")
        return Statistics(np.asarray(x[0]))

    # ------------------------------------------------------------------ population

    def moments(self, m: ArrayLike) -> Moments:
        """Quadrature for the loss and the gradient at overlaps.

        Parameters
        ----------
        m : array_like
            In [-1, 1].

        Returns
        -------
        Moments
            Each of the shape of `m`: to rounding for polynomial losses, to about 1e-9 for
            smooth ones and those with kinks.

        Raises
        ------
        ValueError
            If an overlap is out of range.
        """
        grid = _overlaps(m)
        data = self.data_rule()
        s, y = data.s[:, None], data.y[:, None]
        found = np.empty((4, grid.size))
        for i, value in enumerate(grid.ravel()):
            root = math.sqrt(max(0.0, 1 - value * value))
            g, inner = _across(data, value, root)
            mass = data.weights[:, None] * inner
            t = value * s + root * g
            slope = self.slope_at(t, y)
            pulls = slope * root * (root * s - value * g)
            mean = float(np.sum(mass * pulls))
            found[:, i] = (
                np.sum(mass * self.loss_at(t, y)),
                mean,
                np.sum(mass * slope**2),
                np.sum(mass * (pulls - mean) ** 2),
            )
        return Moments(*found.reshape(4, *grid.shape))

    @property
    def drift_dimension(self) -> int:
        """Dimension of the Gaussian integrals left to the caller: none."""
        return 0

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        r"""Drift of the overlap, :math:`-\phi'(m)(1-m^2) - \frac\delta2 v(m) m`.

        Parameters
        ----------
        statistics : Statistics
            Leading axes allowed; overlaps beyond one are taken for one.
        rule : Rule, optional
            Not used: the quadrature is that of :meth:`moments`.
        c_delta : float
            The step size :math:`\delta`, zero for gradient flow.
        """
        delta = _validate.non_negative("c_delta", c_delta)
        m = np.clip(np.asarray(statistics.m, dtype=np.float64), -1.0, 1.0)
        found = self.moments(m)
        return Statistics(-found.pull - 0.5 * delta * found.power * m)

    def volatility(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float = 1.0
    ) -> Array:
        """Variance of one step in units of ``(delta / N)**2``.

        Parameters
        ----------
        statistics : Statistics
            Of one point; overlaps beyond one are taken for one.
        rule : Rule, optional
            Not used: the quadrature is that of :meth:`moments`.
        c_delta : float, default 1
            Checked and not used: the second order of a step does not fluctuate in the limit.

        Returns
        -------
        ndarray, shape (1, 1)
        """
        _validate.non_negative("c_delta", c_delta)
        return np.atleast_2d(self.moments(np.clip(statistics.m, -1.0, 1.0)).noise)

    # ------------------------------------------------------------------ SGD

    def direct_kernel(self) -> Kernel:
        """One step in full dimension; the state is a point, the step size ``delta / N``."""
        draw, slope, parameters = self.compiled()
        return Kernel(_direct_step(draw, slope), (parameters,))

    def reduced_kernel(self) -> Kernel:
        """One step of the overlap; the step size is ``delta / N``."""
        draw, slope, parameters = self.compiled()
        return Kernel(_reduced_step(draw, slope), (0.5 * (self.dimension - 2), parameters))

    def reduced_state(self, statistics: Statistics) -> tuple[Array, ...]:
        """Return the array that the reduced kernel updates.

        Raises
        ------
        ValueError
            If the overlap is not a number in [-1, 1].
        """
        return (np.array([float(_overlaps(_validate.number("m", statistics.m)))]),)

    def reduced_statistics(self, state: tuple[Array, ...]) -> Statistics:
        """Statistics of a reduced state (leading axes allowed)."""
        return Statistics(np.array(state[0][..., 0]))


def _across(data: DataRule, m: float, root: float) -> tuple[Array, Array]:
    """Nodes of the coordinate g along w and their weights, shape (1 or n, n_g).

    The loss has its kinks at given t = m s + root g: for each s the line is split there.
    """
    if not data.kinks or root == 0:
        rule = line_rule()
        return rule.nodes.T, rule.weights[None, :]
    inside = np.clip((np.sort(data.kinks) - m * data.s[:, None]) / root, -REACH, REACH)
    ends = np.full((data.s.size, 1), REACH)
    edges = np.hstack([-ends, inside, ends])
    nodes, weights = np.polynomial.legendre.leggauss(_BETWEEN_KINKS)
    half = 0.5 * np.diff(edges)[:, :, None]
    g = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None] + half * nodes
    mass = half * weights * np.exp(-g * g / 2)
    g, mass = g.reshape(data.s.size, -1), mass.reshape(data.s.size, -1)
    return g, mass / mass.sum(axis=1, keepdims=True)


def _overlaps(m: ArrayLike) -> Array:
    grid = _validate.finite("m", m)
    if grid.size and np.abs(grid).max() > 1:
        raise ValueError(f"m must lie in [-1, 1], got {grid.ravel()[np.abs(grid).argmax()]:g}")
    return grid


@lru_cache(maxsize=64)
def advance(draw: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    """Compile one step of the chain: ``(m, half, parameters, rng, h) -> (m', c r p)``.

    `half` is (N - 2) / 2 and h is delta / N.
    """

    @njit(nogil=True, error_model="numpy")
    def step(
        m: float, half: float, parameters: Any, rng: np.random.Generator, h: float
    ) -> tuple[float, float]:
        s, y = draw(rng, parameters)
        g = rng.standard_normal()
        q = 2.0 * rng.standard_gamma(half)
        r = math.sqrt(max(0.0, 1.0 - m * m))
        c = slope(m * s + r * g, y, parameters)
        p = r * s - m * g
        pull = c * r * p
        return (m - h * pull) / math.sqrt(1.0 + h * h * c * c * (p * p + q)), pull

    made: Callable[..., Any] = step
    return made


@lru_cache(maxsize=64)
def _reduced_step(draw: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., None]:
    one = advance(draw, slope)

    @njit(nogil=True, error_model="numpy")
    def step(state: Any, constants: Any, rng: np.random.Generator, step_size: float) -> None:
        (m,) = state
        half, parameters = constants
        m[0] = one(m[0], half, parameters, rng, step_size)[0]

    made: Callable[..., None] = step
    return made


@lru_cache(maxsize=64)
def _direct_step(draw: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., None]:
    @njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
    def step(state: Any, constants: Any, rng: np.random.Generator, step_size: float) -> None:
        (x,) = state
        (parameters,) = constants
        sample = np.empty_like(x)
        s, y = draw(rng, parameters)
        sample[0] = s
        t = x[0] * s
        for i in range(1, x.size):
            sample[i] = rng.standard_normal()
            t += x[i] * sample[i]
        pull = step_size * slope(t, y, parameters)
        square = 0.0
        for i in range(x.size):
            x[i] -= pull * (sample[i] - t * x[i])
            square += x[i] * x[i]
        scale = 1.0 / math.sqrt(square)
        for i in range(x.size):
            x[i] *= scale

    made: Callable[..., None] = step
    return made
