r"""Mixture of k Gaussians learned by softmax regression (BGHJ Sections 2.1, 3.1, 5.2).

A label l is drawn with probability p_l and an input :math:`Y = \mu_l + Z` with noise
:math:`Z \sim N(0, I_d / \lambda)`; one layer :math:`x \in \mathbb{R}^{k \times d}` is
trained on the cross-entropy (BGHJ (2.4))

.. math:: L(x, (l, Y)) = -x^l \cdot Y + \log \sum_c e^{x^c \cdot Y}.

Everything training does to the summary statistics :math:`m_{ab} = x^a \cdot \mu_b` and
:math:`R^\perp_{ab} = x^{a,\perp} \cdot x^{b,\perp}` (parts orthogonal to the means) is a
function of these statistics and of fresh noise, so that the same stochastic gradient
descent can be run in full dimension (:meth:`KGaussianMixture.direct_kernel`) or on the
k x k statistics alone (:meth:`KGaussianMixture.reduced_kernel`), equal in law.

The noise is isotropic, so the means may be rotated freely: they are stored as k
coordinates of :math:`\mathbb{R}^d` and the Cholesky factor of their Gram matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from traindyn import _validate
from traindyn._compiled import FAST
from traindyn._types import RNG, Array, IntArray
from traindyn.gaussian import Rule, default_rule, symmetric_sqrt
from traindyn.problems import _mixtures
from traindyn.problems.base import Block, Factors, Kernel, Matrix, Sample
from traindyn.problems.loops import loops, repeat

__all__ = ["KGaussianMixture", "Moments", "Point", "Statistics"]


class Point(NamedTuple):
    """Parameters of the one-layer network.

    Attributes
    ----------
    x : ndarray, shape (k, d)
        Row c is :math:`x^c`.
    """

    x: Array


class Forward(NamedTuple):
    """What every block at one point and on one sample is made of.

    Attributes
    ----------
    probabilities : ndarray, shape (n, k)
    labels : ndarray of int, shape (n,)
    inputs : ndarray, shape (n, d)
    """

    probabilities: Array
    labels: IntArray
    inputs: Array

    def factors(self, matrix: Matrix, block: Block) -> Factors:
        """Weights and features of one block, as :meth:`KGaussianMixture.factors`."""
        pi = self.probabilities
        b, c = checked_block(block, pi.shape[1])
        if _validate.choice("matrix", matrix, ("hessian", "g_matrix")) == "hessian":
            weights = pi[:, b] * (1.0 - pi[:, b]) if b == c else -pi[:, b] * pi[:, c]
        else:
            weights = (pi[:, b] - (self.labels == b)) * (pi[:, c] - (self.labels == c))
        return Factors(weights, self.inputs, self.inputs)


class Statistics(NamedTuple):
    r"""Summary statistics of a point (leading axes allowed in trajectories).

    Attributes
    ----------
    m : ndarray, shape (k, k)
        :math:`m_{ab} = x^a \cdot \mu_b`.
    R_perp : ndarray, shape (k, k)
        Gram matrix of the parts of the rows orthogonal to all means.
    """

    m: Array
    R_perp: Array


class Moments(NamedTuple):
    r"""First two moments of the softmax probabilities, class by class.

    Attributes
    ----------
    mean : ndarray, shape (k, k)
        Entry (c, a) is :math:`P^c_a = E\,\pi_{Y_c}(a)` (BGHJ (5.7)).
    second : ndarray, shape (k, k, k)
        Entry (c, a, b) is :math:`E\,\pi_{Y_c}(a) \pi_{Y_c}(b)`.
    """

    mean: Array
    second: Array

    @property
    def response(self) -> Array:
        r"""Matrices :math:`K_c = \mathrm{diag}(P^c) - E\,\pi\pi^T`, shape (k, k, k)."""
        identity = np.eye(self.mean.shape[-1])
        return np.asarray(self.mean[:, :, None] * identity - self.second)


def _no_support() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class KGaussianMixture:
    r"""Softmax regression on a mixture of k Gaussians with isotropic noise.

    Attributes
    ----------
    gram : ndarray, shape (k, k)
        Inner products of the unit, linearly independent means.
    weights : ndarray, shape (k,)
        Class probabilities, positive, summing to one.
    precision : float
        Inverse noise variance per coordinate, lambda > 0.
    ridge : float
        Ridge coefficient beta > 0 of the loss that SGD descends; the losses, gradients,
        Hessians and G-matrices here are those of the loss *without* the ridge.
    dimension : int
        Dimension d >= k of one input.
    support : ndarray of int, shape (k,), optional
        Different coordinates that carry the means,
        :math:`\mu_a = \sum_b C_{ab} e_{\mathrm{support}_b}` with C the lower Cholesky
        factor of the Gram matrix. Default: the first k.

    Raises
    ------
    ValueError
        If the Gram matrix is not the one of independent unit vectors, the weights are not
        a probability vector of the same length, the precision or the ridge is not
        positive, the dimension is below the number of means, or the support has repeated
        or outlying coordinates.

    Examples
    --------
    The loss at the origin is log k, whatever the data:

    >>> from traindyn.problems import KGaussianMixture
    >>> from traindyn.problems.k_gmm.mixture import Point
    >>> import numpy as np
    >>> problem = KGaussianMixture.orthonormal(3, 20, precision=10.0, ridge=0.01)
    >>> sample = problem.sample(5, rng=0)
    >>> np.allclose(problem.loss(Point(np.zeros((3, 20))), sample), np.log(3))
    True
    """

    gram: Array
    weights: Array
    precision: float
    ridge: float
    dimension: int
    support: IntArray = field(default_factory=_no_support)

    def __post_init__(self) -> None:
        """Convert and check every field."""
        gram = _validate.unit_gram("gram", self.gram)
        k = gram.shape[0]
        weights = _validate.probability_vector("weights", self.weights)
        if weights.size != k:
            raise ValueError(f"weights must have one entry per mean ({k}), got {weights.size}")
        precision = _validate.positive("precision", self.precision)
        ridge = _validate.positive("ridge", self.ridge)
        dimension = _validate.integer("dimension", self.dimension, least=k)
        support = _checked_support(self.support, k, dimension)
        for name, value in (("gram", gram), ("weights", weights), ("support", support)):
            frozen = value.copy()
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "ridge", ridge)
        object.__setattr__(self, "dimension", dimension)

    @classmethod
    def orthonormal(
        cls,
        k: int,
        dimension: int,
        *,
        precision: float,
        ridge: float,
        weights: ArrayLike | None = None,
        spacing: int | None = None,
    ) -> KGaussianMixture:
        """Return the problem with orthonormal means.

        Parameters
        ----------
        k : int
            Number of classes, at least two.
        dimension, precision, ridge
            As in the class.
        weights : array_like, shape (k,), optional
            Default: all equal.
        spacing : int, optional
            Puts the mean of class i = 1, ..., k on coordinate ``spacing * i`` counted from
            one (BGHJ figures: 50). Default: the first k coordinates.
        """
        k = _validate.integer("k", k, least=2)
        support = _no_support()
        if spacing is not None:
            spacing = _validate.integer("spacing", spacing, least=1)
            support = spacing * np.arange(1, k + 1, dtype=np.int64) - 1
        return cls(
            gram=np.eye(k),
            weights=np.full(k, 1.0 / k) if weights is None else np.asarray(weights, float),
            precision=precision,
            ridge=ridge,
            dimension=dimension,
            support=support,
        )

    # ------------------------------------------------------------------ data law

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.gram.shape[0])

    @property
    def rows(self) -> Array:
        """Coordinates of the means on the support: Cholesky factor of the Gram matrix."""
        return np.asarray(np.linalg.cholesky(self.gram), dtype=np.float64)

    @property
    def means(self) -> Array:
        """Means as rows, shape (k, d); built anew at each access."""
        means = np.zeros((self.k, self.dimension))
        means[:, self.support] = self.rows
        return means

    def sample(self, n: int, *, rng: RNG) -> Sample:
        """Draw `n` independent (input, label) pairs."""
        n = _validate.integer("n", n, least=1)
        generator = _validate.generator("rng", rng)
        labels = _mixtures.components(self.weights, generator.random(n))
        return self._placed(labels, generator.standard_normal((n, self.dimension)))

    def stream(self, n: int, *, rng: RNG) -> Sample:
        """Return the training data of a run: its first `n` samples, in order.

        Parameters
        ----------
        n : int
            Number of samples, at least 1; one for each step of the run.
        rng : int, SeedSequence or Generator
            As given to :func:`traindyn.sgd.direct.run`, whose steps draw one uniform for
            the label and then d normals.
        """
        n = _validate.integer("n", n, least=1)
        generator = _validate.generator("rng", rng)
        uniform, inputs = np.empty(n), np.empty((n, self.dimension))
        for i in range(n):
            uniform[i] = generator.random()
            generator.standard_normal(out=inputs[i])
        return self._placed(_mixtures.components(self.weights, uniform), inputs)

    def _placed(self, labels: IntArray, noise: Array) -> Sample:
        """Scale standard normal noise in place and add the means."""
        noise /= math.sqrt(self.precision)
        noise[:, self.support] += self.rows[labels]
        return Sample(noise, labels)

    def initial(self, *, rng: RNG) -> Point:
        """Draw independent rows from N(0, I_d / d), as in BGHJ Theorem 2.3."""
        generator = _validate.generator("rng", rng)
        x = generator.standard_normal((self.k, self.dimension))
        x /= math.sqrt(self.dimension)
        return Point(x)

    # ------------------------------------------------------------------ loss and curvature

    def probabilities(self, point: Point, inputs: ArrayLike) -> Array:
        r"""Softmax probabilities :math:`\pi_Y(c)` (BGHJ (3.4)), shape (n, k)."""
        return softmax(self._logits(point, inputs))

    def loss(self, point: Point, sample: Sample) -> Array:
        """Cross-entropy of each draw (BGHJ (2.4)), without the ridge, shape (n,)."""
        _validate.providing("sample", sample, "inputs", "labels")
        logits = self._logits(point, sample.inputs)
        labels = self._checked_labels(sample)
        top = logits.max(axis=1)
        logsum = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return np.asarray(logsum - logits[np.arange(labels.size), labels])

    def gradient(self, point: Point, sample: Sample) -> Point:
        r"""Gradient of the mean loss, :math:`\frac1n \sum (\pi(c) - y_c) Y` (BGHJ (3.1))."""
        residual = self.residual(point, sample)
        return Point(residual.T @ sample.inputs / residual.shape[0])

    def factors(self, matrix: Matrix, block: Block, point: Point, sample: Sample) -> Factors:
        r"""Weights and features of block (b, c), ``(1/n) sum_i weights_i Y_i Y_i^T``.

        Parameters
        ----------
        matrix : {"hessian", "g_matrix"}
            Weights :math:`\pi_b 1_{b=c} - \pi_b \pi_c` (BGHJ (3.2)) or
            :math:`(\pi_b - y_b)(\pi_c - y_c)` (BGHJ (3.3)), both of the loss without ridge.
        block : tuple of int
            Classes (b, c), counted from zero.
        point : Point
            Where the softmax probabilities are taken.
        sample : Sample
            The n draws that are summed over.

        Returns
        -------
        Factors
            Left and right features are the inputs themselves.

        Raises
        ------
        ValueError
            If the matrix or block does not exist, or the data are misshaped or not finite.
        """
        return self.forward(point, sample).factors(matrix, block)

    def forward(self, point: Point, sample: Sample) -> Forward:
        """One forward pass, from which the factors of all blocks follow at little cost.

        Raises
        ------
        ValueError
            If the data are misshaped or not finite.
        """
        _validate.providing("sample", sample, "inputs", "labels")
        probabilities = self.probabilities(point, sample.inputs)
        return Forward(probabilities, self._checked_labels(sample), sample.inputs)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Diagonal blocks, one per class."""
        return tuple((c, c) for c in range(self.k))

    def parameter(self, block: Block, point: Point) -> Array:
        """Row of the network a diagonal block belongs to, shape (d,)."""
        b, c = checked_block(block, self.k)
        if b != c:
            raise ValueError(f"block must be diagonal to own a parameter, got {block}")
        return np.asarray(checked_point(self, point).x[b])

    def outlier_count(self, block: Block) -> int:
        """Dimension of the top eigenspace of BGHJ Theorem 2.3: k for every block."""
        checked_block(block, self.k)
        return self.k

    def _logits(self, point: Point, inputs: ArrayLike) -> Array:
        _validate.providing("point", point, "x")
        x = _validate.numeric("point.x", point.x, shape=(self.k, self.dimension))
        inputs = _validate.numeric("inputs", inputs, shape=(None, self.dimension))
        if inputs.shape[0] == 0:
            raise ValueError("inputs must have at least one row, got none")
        with np.errstate(invalid="ignore", over="ignore"):
            logits = inputs @ x.T
        # Cheaper than looking at the inputs; a NaN there is a NaN here.
        if not np.isfinite(logits).all():
            bad = "point.x" if not np.isfinite(x).all() else "inputs"
            raise ValueError(f"{bad} must be finite, got NaN, infinite or overflowing entries")
        return np.asarray(logits)

    def _checked_labels(self, sample: Sample) -> IntArray:
        _validate.unmasked("sample.labels", sample.labels)
        labels = np.asarray(sample.labels)
        if labels.shape != (sample.inputs.shape[0],) or labels.dtype.kind not in "iu":
            raise ValueError(
                f"labels must be {sample.inputs.shape[0]} integers, "
                f"got shape {labels.shape} of {labels.dtype}"
            )
        if labels.min() < 0 or labels.max() >= self.k:
            raise ValueError(
                f"labels must lie in [0, {self.k - 1}], got {labels.min()} to {labels.max()}"
            )
        return labels

    def residual(self, point: Point, sample: Sample) -> Array:
        """Probabilities minus the indicator of the label of each draw, shape (n, k)."""
        _validate.providing("sample", sample, "inputs", "labels")
        residual = self.probabilities(point, sample.inputs)
        labels = self._checked_labels(sample)
        residual[np.arange(labels.size), labels] -= 1.0
        return residual

    # ------------------------------------------------------------------ summary statistics

    def statistics(self, point: Point) -> Statistics:
        """Summary statistics of a point (BGHJ Section 5.2)."""
        x = checked_point(self, point).x
        # Sum over the stretches between support coordinates: neither a copy of x nor the
        # cancellation of x x^T minus its part along the means.
        cuts = np.sort(self.support)
        starts, stops = np.r_[0, cuts + 1], np.r_[cuts, self.dimension]
        R_perp = np.zeros((self.k, self.k))
        for start, stop in zip(starts, stops, strict=True):
            if stop > start:
                R_perp += x[:, start:stop] @ x[:, start:stop].T
        return Statistics(x[:, self.support] @ self.rows.T, R_perp)

    def initial_statistics(self) -> Statistics:
        """Limit of the statistics of :meth:`initial` in large dimension: m = 0, R_perp = I."""
        return Statistics(np.zeros((self.k, self.k)), np.eye(self.k))

    def draw_initial_statistics(self, *, rng: RNG) -> Statistics:
        """Draw from the exact law of the statistics of :meth:`initial`.

        The cost does not depend on the dimension: the orthogonal part is a Wishart matrix
        with d - k degrees of freedom, drawn by its triangular (Bartlett) factor.
        """
        generator = _validate.generator("rng", rng)
        k, freedom = self.k, self.dimension - self.k
        parallel = generator.standard_normal((k, k))
        factor = _mixtures.draw_factor(k, freedom, generator)
        return Statistics(
            parallel @ self.rows.T / math.sqrt(self.dimension), factor @ factor.T / self.dimension
        )

    def coordinates(self, m: ArrayLike) -> Array:
        r"""Coordinates of the rows in the span of the means, from their overlaps.

        Returns
        -------
        ndarray, shape (k, k)
            P with :math:`m = P C^T` (C = :attr:`rows`), so that :math:`P P^T` is the part
            :math:`m\,\overline{m}^{-1} m^T` of the Gram matrix of the rows.
        """
        overlaps = _validate.finite("m", m, shape=(self.k, self.k))
        return np.asarray(solve_triangular(self.rows, overlaps.T, lower=True).T)

    def span_alignment(self, statistics: Statistics) -> Array:
        r"""Alignment of each row with the span of the means (BGHJ Definition 2.1, Theorem 2.4).

        Parameters
        ----------
        statistics : Statistics
            Leading axes allowed, as in trajectories.

        Returns
        -------
        ndarray, shape (..., k)
            :math:`\rho(x^c, \mathrm{span}\,\mu) = (1 - R^\perp_{cc} / |x^c|^2)^{1/2}`.
            MDL Theorem 13.4 has a bound for it.
        """
        statistics = checked(self, statistics)
        m = statistics.m
        parallel = np.einsum("...ab,bc,...ac->...a", m, np.linalg.inv(self.gram), m)
        orthogonal = np.diagonal(statistics.R_perp, axis1=-2, axis2=-1)
        return np.asarray(np.sqrt(parallel / (parallel + orthogonal)))

    def embed(self, statistics: Statistics) -> tuple[KGaussianMixture, Point]:
        """Return a problem of dimension k + rank(R_perp) and a point with these statistics.

        The law of everything that depends on the inputs through their projections on means
        and rows is the same in both problems.

        Raises
        ------
        ValueError
            If the statistics are misshaped, not finite or R_perp is not positive
            semi-definite.
        """
        statistics = checked(self, statistics, single=True)
        R_perp = _validate.positive_semidefinite(
            "statistics.R_perp", statistics.R_perp, size=self.k, scale=1.0
        )
        x = np.hstack([self.coordinates(statistics.m), _mixtures.factor(R_perp)])
        return replace(self, dimension=x.shape[1], support=_no_support()), Point(x)

    # ------------------------------------------------------------------ effective dynamics

    def moments(self, statistics: Statistics, *, rule: Rule) -> Moments:
        r"""Moments of the softmax probabilities under each class.

        Under class c the logits are :math:`m_{\cdot c} + N(0, R / \lambda)` with
        :math:`R = R^\perp + m \overline{m}^{-1} m^T` (BGHJ (5.10) prints the covariance
        without 1/lambda).

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule
            Quadrature for N(0, I_k); the same nodes serve every class.
        """
        statistics = checked(self, statistics, single=True)
        _validate.providing("rule", rule, "nodes", "weights")
        if rule.nodes.shape[1] != self.k:
            raise ValueError(f"rule must have dimension {self.k}, got {rule.nodes.shape[1]}")
        parallel = self.coordinates(statistics.m)
        covariance = (statistics.R_perp + parallel @ parallel.T) / self.precision
        try:
            root = symmetric_sqrt(covariance, scale=1.0)
        except ValueError as error:
            raise ValueError(
                f"statistics.R_perp must be a Gram matrix, so that the logits have a covariance: "
                f"{error}"
            ) from error
        noise = rule.nodes @ root
        mean = np.empty((self.k, self.k))
        second = np.empty((self.k, self.k, self.k))
        for c in range(self.k):
            pi = softmax(noise + statistics.m[:, c])
            weighted = rule.weights[:, None] * pi
            mean[c] = weighted.sum(axis=0)
            second[c] = weighted.T @ pi
        return Moments(mean, second)

    @property
    def drift_dimension(self) -> int:
        """Dimension of the Gaussian integrals of :meth:`drift`: one for each row."""
        return self.k

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        r"""Drift of the effective dynamics at finite precision (BGHJ Theorem 5.7, corrected).

        .. math::

            \dot m_{ab} &= p_a \overline m_{ab} - \beta m_{ab}
              - \sum_c p_c \Big(\overline m_{cb} P^c_a + \tfrac1\lambda (K_c m)_{ab}\Big) \\
            \dot R^\perp &= -2 \beta R^\perp
              - \sum_c \tfrac{p_c}{\lambda} (K_c R^\perp + R^\perp K_c)
              + \tfrac{c_\delta}{\lambda} \sum_c p_c E (\pi_{Y_c} - e_c)(\pi_{Y_c} - e_c)^T

        with P and K as in :class:`Moments`; the expectations of pi Z are integrated by
        parts. The second line corrects BGHJ (5.6): see
        :func:`companion.alignment.training_dynamics.printed.printed_drift`.

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule, optional
            Quadrature for N(0, I_k). Default: :func:`traindyn.gaussian.default_rule`.
        c_delta : float
            Limit of step_size * dimension; zero for vanishing noise of the steps.

        Returns
        -------
        Statistics
            Time derivatives.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        m, R_perp = statistics = checked(self, statistics, single=True)
        rule = default_rule(self.k) if rule is None else rule
        moments = self.moments(statistics, rule=rule)
        mean_response = np.tensordot(self.weights, moments.response, axes=1) / self.precision
        dm = self._class_pull(moments.mean) - self.ridge * m - mean_response @ m
        flow = mean_response @ R_perp
        dR_perp = -2.0 * self.ridge * R_perp - (flow + flow.T)
        # E (pi - y)(pi - y)^T over labels too: the cross terms are P^c e_c^T.
        cross = self.weights * moments.mean.T
        second = np.tensordot(self.weights, moments.second, axes=1)
        corrector = second - cross - cross.T + np.diag(self.weights)
        return Statistics(dm, dR_perp + (c_delta / self.precision) * corrector)

    def limit_drift(self, statistics: Statistics) -> Statistics:
        r"""Drift at infinite precision (BGHJ Proposition 5.10, corrected).

        .. math::

            \dot m_{ab} = p_a \overline m_{ab} - \beta m_{ab}
              - \sum_c p_c \overline\pi_c(a) \overline m_{cb}, \qquad
            \dot R^\perp = -2 \beta R^\perp,

        with :math:`\overline\pi_c(a) = e^{m_{ac}} / \sum_b e^{m_{bc}}`; BGHJ (5.18) prints
        beta for 2 beta.
        """
        m, R_perp = checked(self, statistics, single=True)
        dm = self._class_pull(softmax(m.T)) - self.ridge * m
        return Statistics(dm, -2.0 * self.ridge * R_perp)

    def _class_pull(self, mean: Array) -> Array:
        # p_a gram_ab - sum_c p_c mean_ca gram_cb
        return (np.diag(self.weights) - (self.weights[:, None] * mean).T) @ self.gram

    # ------------------------------------------------------------------ one step of SGD

    def direct_kernel(self) -> Kernel:
        """One step of SGD in full dimension; the state is ``tuple(point)``."""
        constants = (
            np.cumsum(self.weights),
            self.rows,
            self.support.copy(),
            1.0 / math.sqrt(self.precision),
            self.ridge,
        )
        return Kernel(_direct_step, constants)

    def reduced_kernel(self) -> Kernel:
        """One step of SGD on the statistics; the state is :meth:`reduced_state`.

        Raises
        ------
        ValueError
            If the dimension is at most 2 k, where the noise has no room outside the means
            and the rows.
        """
        freedom = self.dimension - 2 * self.k
        if freedom < 1:
            raise ValueError(
                f"dimension must be greater than 2 k = {2 * self.k} for the reduced dynamics, "
                f"got {self.dimension}"
            )
        constants = (
            np.cumsum(self.weights),
            self.rows,
            1.0 / math.sqrt(self.precision),
            self.ridge,
            float(freedom),
        )
        return Kernel(_reduced_step, constants)

    def reduced_state(self, statistics: Statistics) -> tuple[Array, ...]:
        """Arrays the reduced kernel updates: transposed coordinates, upper factor, workspace.

        Raises
        ------
        ValueError
            If the statistics are misshaped, not finite or R_perp is not positive
            semi-definite.
        """
        statistics = checked(self, statistics, single=True)
        R_perp = _validate.positive_semidefinite(
            "statistics.R_perp", statistics.R_perp, size=self.k, scale=1.0
        )
        parallel = np.ascontiguousarray(self.coordinates(statistics.m).T)
        return parallel, _mixtures.upper_factor(R_perp), np.zeros((4, self.k))

    def reduced_statistics(self, state: tuple[Array, ...]) -> Statistics:
        """Statistics of a reduced state (leading axes allowed)."""
        parallel, upper = state[0], state[1]
        return Statistics(
            np.swapaxes(parallel, -1, -2) @ self.rows.T, np.swapaxes(upper, -1, -2) @ upper
        )


def checked(
    problem: KGaussianMixture,
    statistics: Statistics,
    *,
    name: str = "statistics",
    single: bool = False,
) -> Statistics:
    """Return statistics, called `name` in errors, if they are finite and fit the problem."""
    return _validate.record(name, statistics, (("k", "k"), ("k", "k")), single=single, k=problem.k)


def _checked_support(support: Any, k: int, dimension: int) -> IntArray:
    given = np.asarray(support)
    if given.size == 0:
        return np.arange(k, dtype=np.int64)
    if given.shape != (k,) or given.dtype.kind not in "iu":
        raise ValueError(
            f"support must be {k} integers, got shape {given.shape} of type {given.dtype}"
        )
    if given.min() < 0 or given.max() >= dimension:
        raise ValueError(
            f"support must lie in [0, {dimension - 1}], got {given.min()} to {given.max()}"
        )
    if np.unique(given).size < k:
        raise ValueError(f"support must have {k} different coordinates, got {given.tolist()}")
    return given.astype(np.int64)


def checked_point(problem: KGaussianMixture, point: Point) -> Point:
    """Return a point if it is finite and fits the problem."""
    _validate.providing("point", point, "x")
    return Point(_validate.finite("point.x", point.x, shape=(problem.k, problem.dimension)))


def checked_block(block: Block, k: int) -> Block:
    """Return a pair of classes if there are such."""
    return _validate.pair("block", block, most=k - 1)


def softmax(logits: Array) -> Array:
    """Softmax over the last axis, stored class by class.

    Reductions over a first axis are vectorised over the nodes; over a short last one they are
    several times slower.
    """
    shifted = np.array(np.moveaxis(logits, -1, 0), order="C")
    shifted -= shifted.max(axis=0)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=0)
    return np.moveaxis(shifted, 0, -1)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _direct_step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    r"""Take the step x <- (1 - step_size ridge) x - step_size (pi - y) Y^T.

    BGHJ (2.1) prints the ridge without the step size; Section 5 of the source uses it with.
    Draws, in this order: one uniform for the label, d normals for the noise.
    """
    (x,) = state
    cumulative, rows, support, deviation, ridge = constants
    k, d = x.shape
    uniform = rng.random()
    label = 0
    while label < k - 1 and uniform >= cumulative[label]:
        label += 1
    y = np.empty(d)
    for i in range(d):
        y[i] = deviation * rng.standard_normal()
    for b in range(label + 1):
        y[support[b]] += rows[label, b]

    # pi = softmax(x @ y)
    pi = np.empty(k)
    top = -np.inf
    for a in range(k):
        logit = 0.0
        for i in range(d):
            logit += x[a, i] * y[i]
        pi[a] = logit
        top = max(top, logit)
    total = 0.0
    for a in range(k):
        pi[a] = math.exp(pi[a] - top)
        total += pi[a]

    keep = 1.0 - step_size * ridge
    for a in range(k):
        move = step_size * (pi[a] / total - (1.0 if a == label else 0.0))
        for i in range(d):
            x[a, i] = keep * x[a, i] - move * y[i]


@loops(_direct_step)
@njit(cache=True, nogil=True)
def _direct_loop(chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    repeat(_direct_step, chain, rng, step_size, out)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _reduced_step(
    state: tuple[Array, Array, Array],
    constants: tuple[Any, ...],
    rng: np.random.Generator,
    step_size: float,
) -> None:
    r"""Take the same step on (m, R_perp), in O(k^2) operations.

    With C = upper^T a square root of R_perp, the noise meets the rows only through q, its
    coordinates along an orthonormal basis of their orthogonal parts, and chi, its squared
    length outside means and rows. Writing xi = C q, s = |q|^2 + chi, b = 1 - step_size ridge
    and g = step_size (pi - y),

        R_perp <- b^2 C (I - q q^T / s) C^T + v v^T,   v = sqrt(s) g - b xi / sqrt(s).

    The first term is downdated with q known, through the closed-form triangular factor of
    I - q q^T / s, whose pivots are ratios of positive sums: nothing cancels, however close
    to singular R_perp is. The second is a rank-one update by rotations.
    """
    parallel, upper, work = state
    cumulative, rows, deviation, ridge, freedom = constants
    k = upper.shape[0]
    y, q, xi, g = work[0], work[1], work[2], work[3]
    uniform = rng.random()
    label = 0
    while label < k - 1 and uniform >= cumulative[label]:
        label += 1
    for b in range(k):
        y[b] = rows[label, b] + deviation * rng.standard_normal()
        q[b] = deviation * rng.standard_normal()
        xi[b] = 0.0
        g[b] = 0.0
    tail = deviation * deviation * rng.chisquare(freedom)

    # upper <- keep * T^T upper with T T^T = I - q q^T / s; xi = C q on the way.
    keep = 1.0 - step_size * ridge
    for j in range(k - 1, -1, -1):
        longer = tail + q[j] * q[j]
        diagonal = keep * math.sqrt(tail / longer)
        beside = -keep * q[j] / math.sqrt(tail * longer)
        tail = longer
        for i in range(j, k):
            before = upper[j, i]
            upper[j, i] = diagonal * before + beside * xi[i]
            xi[i] += q[j] * before

    # g = step_size * (softmax(parallel^T y + xi) - onehot)
    for b in range(k):
        for a in range(k):
            g[a] += parallel[b, a] * y[b]
    top = -np.inf
    for a in range(k):
        g[a] += xi[a]
        top = max(top, g[a])
    total = 0.0
    for a in range(k):
        g[a] = math.exp(g[a] - top)
        total += g[a]
    for a in range(k):
        g[a] *= step_size / total
    g[label] -= step_size

    # parallel <- keep * parallel - y g^T
    for b in range(k):
        for a in range(k):
            parallel[b, a] = keep * parallel[b, a] - y[b] * g[a]

    # upper^T upper <- upper^T upper + v v^T, v kept in xi
    root = math.sqrt(tail)
    for a in range(k):
        xi[a] = root * g[a] - (keep / root) * xi[a]
    for j in range(k):
        pivot = math.sqrt(upper[j, j] * upper[j, j] + xi[j] * xi[j])
        if pivot > 0.0:
            cosine = upper[j, j] / pivot
            sine = xi[j] / pivot
            upper[j, j] = pivot
            for i in range(j + 1, k):
                before = upper[j, i]
                upper[j, i] = cosine * before + sine * xi[i]
                xi[i] = cosine * xi[i] - sine * before


@loops(_reduced_step)
@njit(cache=True, nogil=True)
def _reduced_loop(chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    repeat(_reduced_step, chain, rng, step_size, out)
