r"""Any network whose loss depends on an input through finitely many projections.

An input :math:`Y = \mu_l + Z` has a component l, drawn with probability p_l, a mean
:math:`\mu_l` in the span of k orthonormal directions, and noise
:math:`Z \sim N(0, I_d / \lambda)`. The parameters are K neurons, the rows of
:math:`x \in \mathbb{R}^{K \times d}`, and S further numbers s. The loss of a draw is

.. math:: L = \ell(z, u, l), \qquad z = (x Y, s) \in \mathbb{R}^{K + S},

with u the k coordinates of Y along the directions. Whoever writes down :math:`\ell` with its
gradient and Hessian in z (:class:`Local`) has a :class:`~traindyn.problems.base.Problem`: SGD in
full dimension and on the statistics :math:`m = (x^a \cdot e_b)`, :math:`R^\perp` (Gram matrix of
the parts of the rows orthogonal to the directions) and s, effective dynamics, blocks of Hessian
and G-matrix with their predictions. Expectations are integrated over the k + K Gaussian
variables u and :math:`x^\perp Z`; problems with closed forms of their own
(:class:`~traindyn.problems.k_gmm.mixture.KGaussianMixture`,
:class:`~traindyn.problems.two_layer.mixture.TwoLayerMixture`) are faster.

The gradient of a draw is :math:`g_a Y` in row a and :math:`g_{K+j}` in s_j, with
:math:`g = \partial_z \ell`. Hence, with step size :math:`c_\delta / d` and ridge :math:`\beta`,

.. math::

    \dot m &= -E\, g u^T - \beta m, \qquad \dot s_j = -E\, g_{K+j} - \beta s_j, \\
    \dot R^\perp_{ab} &= -E [g_a \xi_b + g_b \xi_a] - 2 \beta R^\perp_{ab}
        + \tfrac{c_\delta}{\lambda} E\, g_a g_b, \qquad \xi = x^\perp Z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from traindyn import _validate
from traindyn._compiled import FAST
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule, default_rule, symmetric_sqrt
from traindyn.problems import _mixtures
from traindyn.problems.base import MATRICES, Block, Factors, Kernel, Matrix, Sample
from traindyn.problems.loops import _pick

__all__ = ["Local", "Point", "ProjectionModel", "Statistics"]


_FAR = 1e6
"""Statistics beyond which a run is diverging, whatever the loss returns there."""


class Local(NamedTuple):
    r"""The loss of one draw as a function of :math:`z = (x Y, s)`, with two derivatives in z.

    Each is a plain Python function of ``(z, u, label)``, arrays of shape (K + S,) and (k,) and
    an integer, that numba can compile. Where a loss, its gradient or an expectation meets a value
    that is not finite, a FloatingPointError names the function and the point.

    Attributes
    ----------
    value : callable
        Returns a float.
    slope : callable
        Returns the gradient, shape (K + S,).
    curvature : callable
        Returns the Hessian, shape (K + S, K + S).
    """

    value: Callable[[Array, Array, int], float]
    slope: Callable[[Array, Array, int], Array]
    curvature: Callable[[Array, Array, int], Array]


class Point(NamedTuple):
    """Parameters of the network.

    Attributes
    ----------
    x : ndarray, shape (K, d)
        Neurons as rows.
    s : ndarray, shape (S,)
    """

    x: Array
    s: Array


class Statistics(NamedTuple):
    r"""Summary statistics of a point (leading axes allowed in trajectories).

    Attributes
    ----------
    m : ndarray, shape (K, k)
        Overlaps of the neurons with the directions.
    R_perp : ndarray, shape (K, K)
        Gram matrix of the parts of the neurons orthogonal to the directions.
    s : ndarray, shape (S,)
    """

    m: Array
    R_perp: Array
    s: Array


class _Draws(NamedTuple):
    """N nodes of the law of the projections in the loss, at given statistics."""

    z: Array
    u: Array
    labels: NDArray[np.int64]
    noise: Array  # of the preactivations, orthogonal to the directions, (N, K)
    masses: Array


class _Compiled(NamedTuple):
    """What numba makes of a local loss: tables over draws, and the two steps."""

    values: Callable[..., Array]
    slopes: Callable[..., Array]
    curvatures: Callable[..., Array]
    direct: Callable[..., None]
    reduced: Callable[..., None]


@dataclass(frozen=True, eq=False)
class ProjectionModel:
    r"""A problem given by its loss as a function of finitely many projections.

    Attributes
    ----------
    local : Local
        The loss of a draw and its derivatives.
    centres : ndarray, shape (C, k)
        Coordinates of the means of the C components along the k directions, which are the
        first k coordinates of :math:`\mathbb{R}^d`.
    weights : ndarray, shape (C,)
        Probabilities of the components.
    precision : float
        Inverse noise variance per coordinate, lambda > 0.
    dimension : int
        Dimension d >= k of one input.
    ridge : float, optional
        Ridge coefficient beta >= 0 of the loss that SGD descends, on all parameters. Losses,
        gradients, Hessians and G-matrices are those *without* it.
    width : int, optional
        Number K of neurons, one by default.
    scalars : ndarray, shape (S,), optional
        Where the further parameters start, none by default; neurons start at N(0, I_d / d).

    Raises
    ------
    ValueError
        If a field is out of range, or a function of `local` returns the wrong shape.

    Examples
    --------
    Least squares with one neuron, on two components at plus and minus the first coordinate:

    >>> from traindyn.problems import ProjectionModel
    >>> from traindyn.problems.projection_model import Local
    >>> import numpy as np
    >>> local = Local(
    ...     lambda z, u, label: 0.5 * (z[0] - 1 + 2 * label) ** 2,
    ...     lambda z, u, label: np.array([z[0] - 1 + 2 * label]),
    ...     lambda z, u, label: np.array([[1.0]]),
    ... )
    >>> problem = ProjectionModel(local, [[1.0], [-1.0]], [0.5, 0.5], precision=4.0, dimension=50)
    >>> problem.drift(problem.initial_statistics(), c_delta=1.0).m.round(12)
    array([[1.]])
    """

    local: Local
    centres: Array
    weights: Array
    precision: float
    dimension: int
    ridge: float = 0.0
    width: int = 1
    scalars: Array = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Convert and check every field."""
        centres = _validate.finite("centres", self.centres, shape=(None, None))
        weights = _validate.probability_vector("weights", self.weights)
        if weights.size != centres.shape[0]:
            raise ValueError(
                f"weights must have one entry per centre ({centres.shape[0]}), got {weights.size}"
            )
        scalars = _validate.finite("scalars", self.scalars, shape=(None,))
        for name, array in (("centres", centres), ("weights", weights), ("scalars", scalars)):
            frozen = array.copy()
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)
        least = max(1, centres.shape[1])
        for name, value in (
            ("precision", _validate.positive("precision", self.precision)),
            ("dimension", _validate.integer("dimension", self.dimension, least=least)),
            ("ridge", _validate.non_negative("ridge", self.ridge)),
            ("width", _validate.integer("width", self.width, least=1)),
        ):
            object.__setattr__(self, name, value)
        self._check_local()

    def _check_local(self) -> None:
        """Try the functions once, as Python: compiled code would read past a short array."""
        size = self.width + self.scalars.size
        for name, shape in (("value", ()), ("slope", (size,)), ("curvature", (size, size))):
            function = _validate.function(f"local.{name}", getattr(self.local, name))
            found = function(np.full(size, 0.5), self.centres[0], 0)
            if np.shape(found) != shape:
                raise ValueError(
                    f"local.{name} must return shape {shape} for K + S = {size}, "
                    f"got {np.shape(found)}"
                )

    # ------------------------------------------------------------------ data law

    @property
    def directions(self) -> int:
        """Number k of directions."""
        return int(self.centres.shape[1])

    @property
    def means(self) -> Array:
        """Means of the components as rows, shape (C, d); built anew at each access."""
        means = np.zeros((self.weights.size, self.dimension))
        means[:, : self.directions] = self.centres
        return means

    def sample(self, n: int, *, rng: RNG) -> Sample:
        """Draw `n` independent inputs with their components."""
        n = _validate.integer("n", n, least=1)
        generator = _validate.generator("rng", rng)
        uniform = generator.random(n)
        return self._placed(uniform, generator.standard_normal((n, self.dimension)))

    def stream(self, n: int, *, rng: RNG) -> Sample:
        """Return the training data of a run: one uniform and then d normals for each draw."""
        n = _validate.integer("n", n, least=1)
        generator = _validate.generator("rng", rng)
        uniform, inputs = np.empty(n), np.empty((n, self.dimension))
        for i in range(n):
            uniform[i] = generator.random()
            generator.standard_normal(out=inputs[i])
        return self._placed(uniform, inputs)

    def _placed(self, uniform: Array, noise: Array) -> Sample:
        """Scale standard normal noise in place and add the means."""
        labels = _mixtures.components(self.weights, uniform)
        noise /= math.sqrt(self.precision)
        noise[:, : self.directions] += self.centres[labels]
        return Sample(noise, labels)

    def initial(self, *, rng: RNG) -> Point:
        """Draw independent rows from N(0, I_d / d); the scalars start where they are given."""
        x = _validate.generator("rng", rng).standard_normal((self.width, self.dimension))
        return Point(x / math.sqrt(self.dimension), self.scalars.copy())

    # ------------------------------------------------------------------ loss and curvature

    def loss(self, point: Point, sample: Sample) -> Array:
        """Loss of each draw, without the ridge, shape (n,)."""
        return self._values(*self._seen(point, sample))

    def gradient(self, point: Point, sample: Sample) -> Point:
        """Gradient of the mean loss, without the ridge."""
        slopes = self._slopes(*self._seen(point, sample)) / len(sample.inputs)
        return Point(slopes[:, : self.width].T @ sample.inputs, slopes[:, self.width :].sum(0))

    def factors(self, matrix: Matrix, block: Block, point: Point, sample: Sample) -> Factors:
        """Weights and features of a block: the inputs for a neuron, ones for a scalar.

        Parameters
        ----------
        matrix : {"hessian", "g_matrix"}
            Weights are second derivatives of the loss of a draw in z, or products of first ones.
        block : tuple of int
            Pair of parameters: the neurons first, then the scalars.
        point : Point
            Where the derivatives are taken.
        sample : Sample
            The draws that are summed over.
        """
        a, b = self._checked_block(block)
        _validate.choice("matrix", matrix, MATRICES)
        seen = self._seen(point, sample)
        if matrix == "hessian":
            weights = self._compiled.curvatures(*seen)[:, a, b]
        else:
            slopes = self._compiled.slopes(*seen)
            weights = slopes[:, a] * slopes[:, b]
        ones = np.ones((len(sample.inputs), 1))
        left, right = (sample.inputs if index < self.width else ones for index in (a, b))
        return Factors(np.ascontiguousarray(weights), left, right)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Diagonal blocks: one per neuron, then one per scalar."""
        return tuple((a, a) for a in range(self.width + self.scalars.size))

    def parameter(self, block: Block, point: Point) -> Array:
        """Neuron, shape (d,), or scalar, shape (1,), that a diagonal block belongs to."""
        a, b = self._checked_block(block)
        if a != b:
            raise ValueError(f"block must be diagonal to own a parameter, got {block}")
        x, s = self._checked_point(point)
        if a < self.width:
            return np.asarray(x[a])
        return np.asarray(s[a - self.width : a - self.width + 1])

    def outlier_count(self, block: Block) -> int:
        """Dimension of the eigenspace a neuron is compared with: k, at least one; 1 for scalars."""
        a, _ = self._checked_block(block)
        return max(1, self.directions) if a < self.width else 1

    def _checked_block(self, block: Block) -> Block:
        top = self.width + self.scalars.size - 1
        return _validate.pair("block", block, most=top)

    def _seen(self, point: Point, sample: Sample) -> tuple[Array, Array, NDArray[np.int64]]:
        """Return the projections of a sample that the loss depends on."""
        x, s = self._checked_point(point)
        _validate.providing("sample", sample, "inputs", "labels")
        inputs = _validate.finite("sample.inputs", sample.inputs, shape=(None, self.dimension))
        _validate.unmasked("sample.labels", sample.labels)
        labels = np.asarray(sample.labels)
        most = self.weights.size - 1
        if labels.shape != inputs.shape[:1] or labels.dtype.kind not in "iu":
            raise ValueError(
                f"sample.labels must be {len(inputs)} integers, "
                f"got shape {labels.shape} of {labels.dtype}"
            )
        if labels.size == 0 or labels.min() < 0 or labels.max() > most:
            raise ValueError(f"sample.labels must be at least one and lie in [0, {most}]")
        u = np.ascontiguousarray(inputs[:, : self.directions])
        scalars = np.broadcast_to(s, (len(inputs), s.size))
        return np.hstack([inputs @ x.T, scalars]), u, labels.astype(np.int64)

    def _checked_point(self, point: Point) -> tuple[Array, Array]:
        _validate.providing("point", point, "x", "s")
        x = _validate.finite("point.x", point.x, shape=(self.width, self.dimension))
        return x, _validate.finite("point.s", point.s, shape=self.scalars.shape)

    # ------------------------------------------------------------------ summary statistics

    def statistics(self, point: Point) -> Statistics:
        """Summary statistics of a point."""
        x, s = self._checked_point(point)
        m, rest = x[:, : self.directions], x[:, self.directions :]
        return Statistics(m.copy(), rest @ rest.T, s.copy())

    def initial_statistics(self) -> Statistics:
        """Limit of the statistics of :meth:`initial` in large dimension."""
        m = np.zeros((self.width, self.directions))
        return Statistics(m, np.eye(self.width), self.scalars.copy())

    def draw_initial_statistics(self, *, rng: RNG) -> Statistics:
        """Draw from the exact law of the statistics of :meth:`initial`, at a cost free of d.

        The orthogonal part is a Wishart matrix with d - k degrees of freedom, drawn by its
        triangular (Bartlett) factor.
        """
        generator = _validate.generator("rng", rng)
        K, freedom = self.width, self.dimension - self.directions
        m = generator.standard_normal((K, self.directions)) / math.sqrt(self.dimension)
        factor = _mixtures.draw_factor(K, freedom, generator)
        return Statistics(m, factor @ factor.T / self.dimension, self.scalars.copy())

    def embed(self, statistics: Statistics) -> tuple[ProjectionModel, Point]:
        """Return a problem of dimension k + rank(R_perp) and a point with these statistics."""
        m, R_perp, s = self._checked_statistics(statistics)
        x = np.hstack([m, _mixtures.factor(R_perp)])
        if x.shape[1] == 0:
            x = np.zeros((self.width, 1))
        return replace(self, dimension=x.shape[1]), Point(x, s.copy())

    def _checked_statistics(self, statistics: Statistics) -> Statistics:
        m, R_perp, s = _validate.instance("statistics", statistics, Statistics)
        return Statistics(
            _validate.finite("statistics.m", m, shape=(self.width, self.directions)),
            _validate.positive_semidefinite(
                "statistics.R_perp", R_perp, size=self.width, scale=1.0
            ),
            _validate.finite("statistics.s", s, shape=self.scalars.shape),
        )

    # ------------------------------------------------------------------ effective dynamics

    @property
    def drift_dimension(self) -> int:
        """Dimension of the Gaussian integrals of :meth:`drift`: directions and neurons."""
        return self.directions + self.width

    def population_loss(self, statistics: Statistics, *, rule: Rule | None = None) -> float:
        """Integrate the loss, with its ridge.

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule, optional
            As in :meth:`drift`.
        """
        m, R_perp, s = self._checked_statistics(statistics)
        draws = self._draws(statistics, rule, 1.0 / math.sqrt(self.precision))
        fit = draws.masses @ self._values(draws.z, draws.u, draws.labels)
        return float(fit + 0.5 * self.ridge * (np.sum(m**2) + np.trace(R_perp) + s @ s))

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        """Drift of the effective dynamics, corrector included (formulas at the top).

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule, optional
            Quadrature for N(0, I_{k + K}). Default: :func:`traindyn.gaussian.default_rule`,
            exact for losses that are polynomials of moderate degree in z and u.
        c_delta : float
            Limit of step_size * dimension; zero for vanishing noise of the steps.

        Returns
        -------
        Statistics
            Time derivatives.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        draws = self._draws(statistics, rule, 1.0 / math.sqrt(self.precision))
        return self._drift(statistics, draws, c_delta / self.precision)

    def limit_drift(self, statistics: Statistics) -> Statistics:
        """Drift in the limit of infinite precision: every input is a mean."""
        point = Rule(np.zeros((1, self.drift_dimension)), np.ones(1))
        return self._drift(statistics, self._draws(statistics, point, 0.0), 0.0)

    def volatility(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Array:
        r"""Limit covariance of one step, in units of ``step_size**2``.

        The step of :math:`R^\perp` is :math:`-(g \xi^T + \xi g^T) + \tfrac{c_\delta}\lambda g g^T`:
        the second order is as large as the first where the step size is of order 1 / d.

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule, optional
            As in :meth:`drift`.
        c_delta : float
            Limit of ``step_size * dimension``.

        Returns
        -------
        ndarray, shape (n, n)
            In the order of m, the upper triangle of R_perp, s.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        draws = self._draws(statistics, rule, 1.0 / math.sqrt(self.precision))
        slopes = self._slopes(draws.z, draws.u, draws.labels)
        g, rest = slopes[:, : self.width], slopes[:, self.width :]
        crossed = np.einsum("na,nb->nab", g, draws.noise)
        square = np.einsum("na,nb->nab", g, g) * (c_delta / self.precision)
        gram = square - crossed - np.swapaxes(crossed, 1, 2)
        overlaps = -np.einsum("na,nb->nab", g, draws.u).reshape(len(g), -1)
        moves = np.hstack([overlaps, gram[:, *np.triu_indices(self.width)], -rest])
        moves -= draws.masses @ moves
        return np.asarray((moves.T * draws.masses) @ moves)

    def _fitting(self, statistics: Statistics) -> Statistics:
        """Return statistics of finite numbers, of the shapes of the model."""
        return _validate.record(
            "statistics",
            statistics,
            (("K", "k"), ("K", "K"), ("S",)),
            single=True,
            K=self.width,
            k=self.directions,
            S=self.scalars.size,
        )

    def _draws(self, statistics: Statistics, rule: Rule | None, deviation: float) -> _Draws:
        """Discretise the law of the projections that the loss depends on."""
        m, R_perp, s = self._fitting(statistics)
        rule = default_rule(self.drift_dimension) if rule is None else rule
        _validate.providing("rule", rule, "nodes", "weights")
        if rule.dim != self.drift_dimension:
            raise ValueError(
                f"rule must have dimension k + K = {self.drift_dimension}, got {rule.dim}"
            )
        k, count = self.directions, self.weights.size
        # Strictly: cut off at zero, the drift would have the wrong slope there.
        root = symmetric_sqrt(R_perp, tolerance=1e-10, scale=1.0)
        noise = deviation * rule.nodes[:, k:] @ root
        u = (self.centres[:, None, :] + deviation * rule.nodes[:, :k]).reshape(-1, k)
        noise = np.tile(noise, (count, 1))
        scalars = np.broadcast_to(s, (len(u), s.size))
        return _Draws(
            np.hstack([u @ m.T + noise, scalars]),
            u,
            np.repeat(np.arange(count), rule.size),
            noise,
            np.outer(self.weights, rule.weights).ravel(),
        )

    def _drift(self, statistics: Statistics, draws: _Draws, corrector: float) -> Statistics:
        m, R_perp, s = (np.asarray(part, dtype=np.float64) for part in statistics)
        slopes = self._slopes(draws.z, draws.u, draws.labels)
        weighted = (slopes * draws.masses[:, None]).T
        g, rest = weighted[: self.width], weighted[self.width :]
        crossed = g @ draws.noise
        square = g @ slopes[:, : self.width]
        return Statistics(
            -g @ draws.u - self.ridge * m,
            corrector * (square + square.T) / 2 - crossed - crossed.T - 2.0 * self.ridge * R_perp,
            -rest.sum(axis=1) - self.ridge * s,
        )

    # ------------------------------------------------------------------ one step of SGD

    @property
    def _compiled(self) -> _Compiled:
        return _compile(self.local)

    def _values(self, z: Array, u: Array, labels: NDArray[np.int64]) -> Array:
        """Losses of draws, which are finite."""
        return _finite("value", self._compiled.values(z, u, labels), z, labels)

    def _slopes(self, z: Array, u: Array, labels: NDArray[np.int64]) -> Array:
        """Gradients in z of draws, which are finite."""
        return _finite("slope", self._compiled.slopes(z, u, labels), z, labels)

    def fault(self, statistics: Statistics) -> str:
        """Say where the gradients of a draw are not finite, for the errors of a run; or nothing.

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes. Nothing is said of large ones: a run that
            diverges leaves what the loss was made for.
        """
        if max(np.abs(part).max(initial=0.0) for part in self._fitting(statistics)) > _FAR:
            return ""
        try:
            self.drift(statistics, c_delta=0.0)
        except FloatingPointError as error:
            return str(error)
        return ""

    @property
    def _law(self) -> tuple[Array, Array, float, float]:
        deviation = 1.0 / math.sqrt(self.precision)
        return np.cumsum(self.weights), self.centres.copy(), deviation, self.ridge

    def _try_slope(self) -> None:
        """Compile the slope, which the steps of SGD use as well, where its errors can be read."""
        self._compiled.slopes(
            np.full((1, self.width + self.scalars.size), 0.5), self.centres[:1], [0]
        )

    def direct_kernel(self) -> Kernel:
        """One step of SGD in full dimension; the state is ``tuple(point)``.

        Raises
        ------
        ValueError
            If numba cannot compile ``local.slope``.
        """
        self._try_slope()
        return Kernel(self._compiled.direct, self._law)

    def reduced_kernel(self) -> Kernel:
        """One step of SGD on the statistics; the state is :meth:`reduced_state`.

        Raises
        ------
        ValueError
            If the dimension is at most k + K, where the noise has no room outside the
            directions and the neurons.
        """
        freedom = self.dimension - self.drift_dimension
        if freedom < 1:
            raise ValueError(
                f"dimension must be greater than k + K = {self.drift_dimension} for the reduced "
                f"dynamics, got {self.dimension}"
            )
        self._try_slope()
        return Kernel(self._compiled.reduced, (*self._law, float(freedom)))

    def reduced_state(self, statistics: Statistics) -> tuple[Array, ...]:
        """Arrays the reduced kernel updates: m, an upper factor of R_perp, s.

        Raises
        ------
        ValueError
            If the statistics are misshaped, not finite or R_perp is not positive
            semi-definite.
        """
        m, R_perp, s = self._checked_statistics(statistics)
        return m.copy(), _mixtures.upper_factor(R_perp), s.copy()

    def reduced_statistics(self, state: tuple[Array, ...]) -> Statistics:
        """Statistics of a reduced state (leading axes allowed)."""
        m, upper, s = state
        return Statistics(m.copy(), np.swapaxes(upper, -1, -2) @ upper, s.copy())


def _compile(local: Local) -> _Compiled:
    """Return what numba makes of a local loss; nothing is compiled before it is called."""
    value, slope, curvature = (_jitted(function) for function in local)
    return _Compiled(
        _table(value, "value"),
        _table(slope, "slope"),
        _table(curvature, "curvature"),
        _direct(slope),
        _reduced(slope),
    )


def _finite(name: str, found: Array, z: Array, labels: NDArray[np.int64]) -> Array:
    """Return values of a local function if they are finite."""
    # A sum sees every NaN and infinity, without the temporary of np.isfinite.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(found.sum()):
            return found
    bad = ~np.isfinite(found.reshape(len(found), -1)).all(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise FloatingPointError(
            f"local.{name} must be finite, got {found[i].tolist()} at z = {z[i].tolist()} and "
            f"label {labels[i]}"
        )
    return found


# Each once per process: numba compiles anew for every function that a factory returns.
@cache
def _jitted(function: Any) -> Any:
    return function if hasattr(function, "py_func") else njit(error_model="numpy")(function)


@cache
def _table(function: Any, name: str) -> Callable[..., Array]:
    """Values of a function of one draw on many, stacked."""
    axes = ("value", "slope", "curvature").index(name)

    @njit(nogil=True, error_model="numpy")
    def numbers(z: Array, u: Array, labels: NDArray[np.int64], out: Array) -> None:
        for i in range(len(z)):
            out[i] = function(z[i], u[i], labels[i])

    def table(z: Array, u: Array, labels: NDArray[np.int64]) -> Array:
        out = np.empty((len(z),) + (z.shape[1],) * axes)
        columns = np.array(z, order="C"), np.array(u, order="C"), np.array(labels, dtype=np.int64)
        try:
            numbers(*columns, out)
        except NumbaError as error:
            # Its report is a page that begins with where in the compiler it was.
            lines = [line.strip() for line in str(error).splitlines()]
            said = [line for line in lines if line and not line.startswith("Failed in ")]
            raise ValueError(
                f"local.{name} must be a function that numba can compile, which says: {said[0]}"
            ) from error
        return out

    return table


@cache
def _direct(slope: Any) -> Callable[..., None]:
    """One step in full dimension: one uniform for the component, then d normals."""

    @njit(nogil=True, fastmath=FAST, error_model="numpy")
    def step(state: Any, constants: Any, rng: np.random.Generator, step_size: float) -> None:
        x, s = state
        cumulative, centres, deviation, ridge = constants
        neurons, dimension = x.shape
        label = _pick(cumulative, rng.random())
        y = np.empty(dimension)
        for i in range(dimension):
            y[i] = deviation * rng.standard_normal()
        for b in range(centres.shape[1]):
            y[b] += centres[label, b]
        z = np.empty(neurons + s.size)
        for a in range(neurons):
            total = 0.0
            for i in range(dimension):
                total += x[a, i] * y[i]
            z[a] = total
        for j in range(s.size):
            z[neurons + j] = s[j]
        g = slope(z, y[: centres.shape[1]], label)
        keep = 1.0 - step_size * ridge
        for a in range(neurons):
            move = step_size * g[a]
            for i in range(dimension):
                x[a, i] = keep * x[a, i] - move * y[i]
        for j in range(s.size):
            s[j] = keep * s[j] - step_size * g[neurons + j]

    return step


@cache
def _reduced(slope: Any) -> Callable[..., None]:
    """Make the same step on m, an upper factor U of R_perp and s, in O(K^2 (K + k)) operations.

    The noise meets the neurons only through q, its coordinates along an orthonormal basis of
    their orthogonal parts, and chi, its squared length outside directions and neurons. In that
    basis and the direction of the rest, the orthogonal parts after the step are the columns of

        (keep U - step_size q g^T,  -step_size sqrt(chi) g^T),

    a (K + 1) x K matrix whose triangular factor, by the modified Gram-Schmidt process, is the
    new U: no Gram matrix is formed, and nothing is lost where R_perp is nearly singular.
    """

    @njit(nogil=True, error_model="numpy")
    def step(state: Any, constants: Any, rng: np.random.Generator, step_size: float) -> None:
        m, upper, s = state
        cumulative, centres, deviation, ridge, freedom = constants
        neurons, directions = m.shape
        label = _pick(cumulative, rng.random())
        u, q = np.empty(directions), np.empty(neurons)
        for b in range(directions):
            u[b] = centres[label, b] + deviation * rng.standard_normal()
        for a in range(neurons):
            q[a] = deviation * rng.standard_normal()
        rest = deviation * math.sqrt(rng.chisquare(freedom))
        z = np.empty(neurons + s.size)
        for a in range(neurons):
            total = 0.0
            for b in range(directions):
                total += m[a, b] * u[b]
            for j in range(a + 1):
                total += upper[j, a] * q[j]
            z[a] = total
        for j in range(s.size):
            z[neurons + j] = s[j]
        g = slope(z, u, label)
        keep = 1.0 - step_size * ridge
        after = np.empty((neurons + 1, neurons))
        for a in range(neurons):
            move = step_size * g[a]
            for b in range(directions):
                m[a, b] = keep * m[a, b] - move * u[b]
            for j in range(neurons):
                after[j, a] = keep * upper[j, a] - move * q[j]
            after[neurons, a] = -move * rest
        for j in range(s.size):
            s[j] = keep * s[j] - step_size * g[neurons + j]
        # Loops, as elsewhere: array expressions take numba a second each to compile.
        for a in range(neurons):
            square = 0.0
            for j in range(neurons + 1):
                square += after[j, a] ** 2
            length = math.sqrt(square)
            upper[a, a] = length
            for b in range(a + 1, neurons):
                upper[a, b] = 0.0
                if length > 0.0:
                    for j in range(neurons + 1):
                        upper[a, b] += after[j, a] * after[j, b] / length
                    for j in range(neurons + 1):
                        after[j, b] -= upper[a, b] / length * after[j, a]

    return step
