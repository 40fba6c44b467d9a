r"""Gaussian mixtures in two classes, learned by a two-layer ReLU network (BGJ Sections 4, 5).

A centroid :math:`s_c` of a d-dimensional *signal space* is drawn with probability
:math:`p_c`; the input is :math:`X = s_c + Z` with noise :math:`Z \sim N(0, I_N / \lambda)`
and its label is :math:`y_c \in \{0, 1\}`. K neurons :math:`W_i \in \mathbb{R}^N` and a
second layer :math:`v \in \mathbb{R}^K` are trained on the cross-entropy (BGJ (4.1), (9.1))

.. math:: L = -y\, o + \log(1 + e^o), \qquad o = v \cdot g(W X), \quad g(z) = \max(z, 0),

with a ridge, :math:`L + \tfrac\alpha2 (|v|^2 + |W|^2)`. The derivative of g is taken to be
:math:`1\{z > 0\}` everywhere, so that what is exactly zero stays zero. Two centroids of
opposite labels on a line are the binary mixture (:meth:`TwoLayerMixture.binary`), four on
two orthogonal lines the XOR mixture (:meth:`TwoLayerMixture.xor`).

The noise is isotropic, so the signal space is that of the first d coordinates. Training
closes on v, the signal coordinates :math:`m_i \in \mathbb{R}^d` of the neurons and the Gram
matrix :math:`R^\perp_{ij} = W_i^\perp \cdot W_j^\perp` of the rest: the same stochastic
gradient descent can be run in full dimension (:meth:`TwoLayerMixture.direct_kernel`) or on
these statistics alone (:meth:`TwoLayerMixture.reduced_kernel`), equal in law. In both,
every noise meets all neurons at once; BGJ Lemmas 8.1 and 9.1 print independent ones.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from traindyn import _validate
from traindyn._types import RNG, Array, IntArray
from traindyn.gaussian import Rule
from traindyn.problems import _mixtures
from traindyn.problems.base import Block, Factors, Kernel, Matrix, Sample
from traindyn.problems.two_layer import integrals
from traindyn.problems.two_layer._kernels import direct_step, reduced_step
from traindyn.problems.two_layer.forward import Forward

__all__ = ["Point", "Statistics", "TwoLayerMixture"]


class Point(NamedTuple):
    """Parameters of the two-layer network.

    Attributes
    ----------
    v : ndarray, shape (K,)
        Second layer.
    W : ndarray, shape (K, N)
        First layer, one neuron per row; the signal space is that of the first d columns.
    """

    v: Array
    W: Array


class Statistics(NamedTuple):
    """Summary statistics of a point (leading axes allowed in trajectories).

    Attributes
    ----------
    v : ndarray, shape (K,)
        Second layer.
    m : ndarray, shape (K, d)
        Signal coordinates of the neurons.
    R_perp : ndarray, shape (K, K)
        Gram matrix of the parts of the neurons orthogonal to the signal space.
    """

    v: Array
    m: Array
    R_perp: Array


@dataclass(frozen=True, eq=False)
class TwoLayerMixture:
    r"""Classification of a Gaussian mixture by a two-layer ReLU network without biases.

    Attributes
    ----------
    centroids : ndarray, shape (C, d)
        Coordinates of the centroids in the signal space.
    labels : ndarray of int, shape (C,)
        Label 0 or 1 of each centroid.
    weights : ndarray, shape (C,)
        Probabilities of the centroids, positive, summing to one.
    width : int
        Number K >= 1 of neurons.
    dimension : int
        Dimension N >= d of one input.
    precision : float
        Inverse noise variance per coordinate, lambda > 0; ``inf`` is no noise at all.
    ridge : float
        Ridge coefficient alpha >= 0 of the loss that SGD descends. Losses, gradients and
        curvature of samples are those *without* the ridge; population quantities include it.
    initial_variance : float, optional
        N times the variance of the entries of an initial W, one by default.

    Raises
    ------
    ValueError
        If the lengths of centroids, labels and weights disagree, a label is neither 0 nor 1,
        the weights are not a probability vector, or a number is out of range.

    Examples
    --------
    With an empty second layer the loss is log 2, whatever the data:

    >>> from traindyn.problems import TwoLayerMixture
    >>> import numpy as np
    >>> problem = TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.1)
    >>> point = problem.initial(rng=0)._replace(v=np.zeros(4))
    >>> np.allclose(problem.loss(point, problem.sample(5, rng=1)), np.log(2))
    True
    """

    centroids: Array
    labels: IntArray
    weights: Array
    width: int
    dimension: int
    precision: float
    ridge: float
    initial_variance: float = 1.0

    def __post_init__(self) -> None:
        """Convert and check every field."""
        centroids = _validate.finite("centroids", self.centroids, shape=(None, None))
        count, signal = centroids.shape
        if signal == 0:
            raise ValueError(f"centroids must have at least one coordinate, got {centroids.shape}")
        weights = _validate.probability_vector("weights", self.weights)
        if weights.size != count:
            raise ValueError(f"weights must have {count} entries, as centroids, got {weights.size}")
        _validate.unmasked("labels", self.labels)
        labels = np.asarray(self.labels)
        if labels.shape != (count,) or not np.isin(labels, (0, 1)).all():
            raise ValueError(f"labels must be {count} numbers 0 or 1, got {labels.tolist()}")
        set_field = object.__setattr__
        for name, value in (
            ("centroids", centroids),
            ("labels", labels.astype(np.int64)),
            ("weights", weights),
        ):
            frozen = value.copy()
            frozen.setflags(write=False)
            set_field(self, name, frozen)
        set_field(self, "width", _validate.integer("width", self.width, least=1))
        set_field(self, "dimension", _validate.integer("dimension", self.dimension, least=signal))
        set_field(self, "precision", _validate.positive_or_infinite("precision", self.precision))
        set_field(self, "ridge", _validate.non_negative("ridge", self.ridge))
        variance = _validate.non_negative("initial_variance", self.initial_variance)
        set_field(self, "initial_variance", variance)

    @classmethod
    def binary(
        cls,
        width: int,
        dimension: int,
        *,
        precision: float,
        ridge: float,
        mu: ArrayLike = (1.0,),
    ) -> TwoLayerMixture:
        r"""Return the binary mixture of BGJ Section 4.

        Centroid :math:`\mu` of label 1 and :math:`-\mu` of label 0, equally likely; the
        initial neurons are :math:`N(0, I_N / (\lambda N))`, and zero without noise.

        Parameters
        ----------
        width, dimension, precision, ridge
            As in the class; the source takes K = 2.
        mu : array_like, shape (1,)
            Unit vector.

        Raises
        ------
        ValueError
            As the class, or if mu is not a unit vector.
        """
        (mean,) = _orthonormal(("mu",), (mu,), size=1)
        precision = _validate.positive_or_infinite("precision", precision)
        return cls(
            centroids=np.stack([mean, -mean]),
            labels=np.array([1, 0]),
            weights=np.full(2, 0.5),
            width=width,
            dimension=dimension,
            precision=precision,
            ridge=ridge,
            initial_variance=1.0 / precision,
        )

    @classmethod
    def xor(
        cls,
        width: int,
        dimension: int,
        *,
        precision: float,
        ridge: float,
        mu: ArrayLike = (1.0, 0.0),
        nu: ArrayLike = (0.0, 1.0),
    ) -> TwoLayerMixture:
        r"""Return the XOR mixture of BGJ Section 5.

        Centroids :math:`\pm\mu` of label 1 and :math:`\pm\nu` of label 0, equally likely; the
        initial neurons are :math:`N(0, I_N / N)`.

        Parameters
        ----------
        width, dimension, precision, ridge
            As in the class; the source takes K >= 4. With fewer neurons at least one centroid
            is left unanswered: no point classifies all four at infinite precision
            (:func:`~traindyn.problems.two_layer.equilibria.success_probability` is zero).
        mu, nu : array_like, shape (2,)
            Orthonormal vectors.

        Raises
        ------
        ValueError
            As the class, or if mu and nu are not orthonormal.

        Warns
        -----
        UserWarning
            If there are fewer than four neurons.
        """
        one, other = _orthonormal(("mu", "nu"), (mu, nu), size=2)
        problem = cls(
            centroids=np.stack([one, -one, other, -other]),
            labels=np.array([1, 1, 0, 0]),
            weights=np.full(4, 0.25),
            width=width,
            dimension=dimension,
            precision=precision,
            ridge=ridge,
        )
        if width < 4:
            warnings.warn(
                f"width is {width}, below 4: no point classifies all four centroids",
                stacklevel=2,
            )
        return problem

    # ------------------------------------------------------------------ data law

    @property
    def signal(self) -> int:
        """Dimension d of the signal space."""
        return int(self.centroids.shape[1])

    @property
    def means(self) -> Array:
        """Centroids as inputs, shape (C, N); built anew at each access."""
        means = np.zeros((self.weights.size, self.dimension))
        means[:, : self.signal] = self.centroids
        return means

    def sample(self, n: int, *, rng: RNG) -> Sample:
        """Draw `n` independent inputs; the label of a draw is the index of its centroid."""
        n = _validate.integer("n", n, least=1)
        generator = _validate.generator("rng", rng)
        indices = _mixtures.components(self.weights, generator.random(n))
        return self._placed(indices, self._noise(generator, n))

    def stream(self, n: int, *, rng: RNG) -> Sample:
        """Return the training data of a run: its first `n` samples, in order.

        Parameters
        ----------
        n : int
            Number of samples, at least 1; one for each step of the run.
        rng : int, SeedSequence or Generator
            As given to :func:`traindyn.sgd.direct.run`, whose steps draw one uniform for
            the centroid and then N normals (none at infinite precision).
        """
        n = _validate.integer("n", n, least=1)
        generator = _validate.generator("rng", rng)
        uniform, noise = np.empty(n), np.empty((n, self.dimension))
        for step in range(n):
            uniform[step] = generator.random()
            noise[step] = self._noise(generator, 1)[0]
        return self._placed(_mixtures.components(self.weights, uniform), noise)

    def initial(self, *, rng: RNG) -> Point:
        r"""Draw v from N(0, I) and independent neurons from N(0, initial_variance I / N)."""
        generator = _validate.generator("rng", rng)
        v = generator.standard_normal(self.width)
        W = generator.standard_normal((self.width, self.dimension))
        W *= math.sqrt(self.initial_variance / self.dimension)
        return Point(v, W)

    def _noise(self, generator: np.random.Generator, n: int) -> Array:
        if math.isinf(self.precision):
            return np.zeros((n, self.dimension))
        noise = generator.standard_normal((n, self.dimension))
        noise *= self._deviation
        return noise

    def _placed(self, indices: IntArray, noise: Array) -> Sample:
        """Add the centroids to the noise in place."""
        noise[:, : self.signal] += self.centroids[indices]
        return Sample(noise, indices)

    @property
    def _deviation(self) -> float:
        return 1.0 / math.sqrt(self.precision)

    # ------------------------------------------------------------------ loss and curvature

    def outputs(self, point: Point, inputs: ArrayLike) -> Array:
        r"""Logits :math:`o = v \cdot g(W X)` of each input, shape (n,)."""
        return np.asarray(np.maximum(self._activations(point, inputs), 0.0) @ point.v)

    def loss(self, point: Point, sample: Sample) -> Array:
        """Cross-entropy of each draw (BGJ (4.1)), without the ridge, shape (n,)."""
        return np.asarray(
            np.logaddexp(0.0, self._signs(sample) * self.outputs(point, sample.inputs))
        )

    def gradient(self, point: Point, sample: Sample) -> Point:
        r"""Gradient of the mean loss, without the ridge (BGJ (8.3), (8.4)).

        .. math:: \partial_{v_i} L = g(z_i)\, e, \qquad \nabla_{W_i} L = v_i\, c_i X, \qquad
            z = W X,\ e = \sigma(o) - y,\ c_i = 1\{z_i > 0\}\, e .
        """
        z, errors, _ = self._response(point, sample)
        active = (z > 0) * errors[:, None]
        n = errors.size
        return Point((z * active).mean(axis=0), point.v[:, None] * (active.T @ sample.inputs) / n)

    def forward(self, point: Point, sample: Sample) -> Forward:
        """One forward pass, from which the factors of all blocks follow at little cost.

        Raises
        ------
        ValueError
            If the data are misshaped or not finite.
        """
        z, errors, slopes = self._response(point, sample)
        return Forward(
            v=np.asarray(point.v, dtype=np.float64),
            inputs=sample.inputs,
            hidden=np.maximum(z, 0.0),
            errors=errors,
            slopes=slopes,
        )

    def factors(self, matrix: Matrix, block: Block, point: Point, sample: Sample) -> Factors:
        r"""Weights and features of one block, without the ridge.

        See :mod:`traindyn.problems.two_layer.forward` for the formulas. The Hessian is the one
        that exists almost everywhere, without the kink of g.

        Parameters
        ----------
        matrix : {"hessian", "g_matrix"}
            The Hessian weights inputs by the slope of the sigmoid, the G-matrix by squared errors.
        block : tuple of int
            Neurons (i, j), counted from zero, (K, K) for the second layer, or (K, j) and (j, K)
            for both layers.
        point : Point
            Where the network is run.
        sample : Sample
            The draws that are summed over.

        Raises
        ------
        ValueError
            If the matrix or block does not exist, or the data are misshaped or not finite.
        """
        return self.forward(point, sample).factors(matrix, block)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Diagonal blocks: one per neuron, then the second layer (K, K)."""
        return tuple((i, i) for i in range(self.width + 1))

    def parameter(self, block: Block, point: Point) -> Array:
        """Neuron, shape (N,), or second layer, shape (K,), that a diagonal block belongs to."""
        i, j = self._checked_block(block)
        if i != j:
            raise ValueError(f"block must be diagonal to own a parameter, got {block}")
        v, W = self._checked_point(point)
        return v if i == self.width else np.asarray(W[i])

    def outlier_count(self, block: Block) -> int:
        """Dimension of the top eigenspace of BGHJ Theorem 2.6.

        d for a neuron (the signal space); for the second layer one for each centroid, and at
        most K.
        """
        i, _ = self._checked_block(block)
        if i < self.width:
            return self.signal
        return min(int(self.weights.size), self.width)

    def _activations(self, point: Point, inputs: ArrayLike) -> Array:
        v, W = self._checked_point(point, finite=False)
        seen = _validate.numeric("inputs", inputs, shape=(None, self.dimension))
        if seen.shape[0] == 0:
            raise ValueError("inputs must have at least one row, got none")
        with np.errstate(invalid="ignore", over="ignore"):
            z = seen @ W.T
        # Cheaper than looking at the inputs; a NaN there is a NaN here.
        if not np.isfinite(z).all():
            _validate.finite("point.W", W)
            _validate.finite("inputs", seen)
        _validate.finite("point.v", v)
        return _validate.finite("inputs @ point.W.T", z)

    def _response(self, point: Point, sample: Sample) -> tuple[Array, Array, Array]:
        """Activations z (n, K), errors sigma(o) - y and slopes sigma'(o), both (n,)."""
        z, signs = self._activations(point, sample.inputs), self._signs(sample)
        o = np.maximum(z, 0.0) @ point.v
        return z, signs * expit(signs * o), expit(o) * expit(-o)

    def _signs(self, sample: Sample) -> Array:
        """Return 1 - 2 y of each draw: the error is this times sigma(this times o)."""
        _validate.providing("sample", sample, "inputs", "labels")
        _validate.unmasked("sample.labels", sample.labels)
        _validate.unmasked("sample.inputs", sample.inputs)
        indices, inputs = np.asarray(sample.labels), np.asarray(sample.inputs)
        if indices.shape != inputs.shape[:1] or indices.dtype.kind not in "iu":
            raise ValueError(
                f"sample.labels must be one integer per input, got shape {indices.shape} of "
                f"{indices.dtype} for inputs of shape {inputs.shape}"
            )
        top = self.weights.size - 1
        if indices.size and (indices.min() < 0 or indices.max() > top):
            raise ValueError(
                f"sample.labels must lie in [0, {top}], got {indices.min()} to {indices.max()}"
            )
        return np.asarray(1.0 - 2.0 * self.labels[indices])

    def _checked_block(self, block: Block) -> Block:
        i, j = _validate.pair("block", block, most=self.width)
        if (i == self.width) != (j == self.width):
            raise ValueError(
                f"block must join two neurons or be ({self.width}, {self.width}), got {block}"
            )
        return i, j

    def _checked_point(self, point: Point, *, finite: bool = True) -> tuple[Array, Array]:
        shape = (self.width, self.dimension)
        look = _validate.finite if finite else _validate.numeric
        return look("point.v", point.v, shape=shape[:1]), look("point.W", point.W, shape=shape)

    # ------------------------------------------------------------------ summary statistics

    def statistics(self, point: Point) -> Statistics:
        """Summary statistics of a point (BGJ Section 4, (5.1))."""
        v, W = self._checked_point(point)
        beside = W[:, self.signal :]
        return Statistics(v.copy(), W[:, : self.signal].copy(), beside @ beside.T)

    def place(self, statistics: Statistics) -> Point:
        """Return a point with these statistics, in the first d + K coordinates.

        Raises
        ------
        ValueError
            If the statistics are misshaped, not finite or R_perp is not positive
            semi-definite, or the dimension is below d plus the rank of R_perp.
        """
        _, (v, small) = self.embed(statistics)
        if small.shape[1] > self.dimension:
            raise ValueError(
                f"dimension must be at least {small.shape[1]} for these statistics, "
                f"got {self.dimension}"
            )
        W = np.zeros((self.width, self.dimension))
        W[:, : small.shape[1]] = small
        return Point(v, W)

    def embed(self, statistics: Statistics) -> tuple[TwoLayerMixture, Point]:
        """Return a problem of dimension d + rank(R_perp) and a point with these statistics.

        The law of everything that depends on the inputs through their projections on the
        signal space and the neurons is the same in both problems.

        Raises
        ------
        ValueError
            If the statistics are misshaped, not finite or R_perp is not positive
            semi-definite.
        """
        v, m, R_perp = self._checked_statistics(statistics)
        beside = _mixtures.factor(R_perp)
        # A neuron without weights has output zero, also after rounding.
        beside[np.diag(R_perp) == 0] = 0.0
        W = np.hstack([m, beside])
        return replace(self, dimension=W.shape[1]), Point(v.copy(), W)

    def initial_statistics(self, v: ArrayLike | None = None) -> Statistics:
        """Limit of the statistics of :meth:`initial` in large dimension.

        m = 0 and R_perp = initial_variance I. The second layer does not concentrate.

        Parameters
        ----------
        v : array_like, shape (K,), optional
            A draw of the second layer, from N(0, I). Default: its mean, zero.
        """
        second = np.zeros(self.width)
        if v is not None:
            second = _validate.finite("v", v, shape=(self.width,)).copy()
        return Statistics(
            second,
            np.zeros((self.width, self.signal)),
            self.initial_variance * np.eye(self.width),
        )

    def draw_initial_statistics(self, *, rng: RNG) -> Statistics:
        """Draw from the exact law of the statistics of :meth:`initial`.

        The cost does not depend on the dimension: the orthogonal part is a Wishart matrix
        with N - d degrees of freedom, drawn by its triangular (Bartlett) factor.
        """
        generator = _validate.generator("rng", rng)
        width, freedom = self.width, self.dimension - self.signal
        scale = self.initial_variance / self.dimension
        v = generator.standard_normal(width)
        m = math.sqrt(scale) * generator.standard_normal((width, self.signal))
        factor = _mixtures.draw_factor(width, freedom, generator)
        return Statistics(v, m, scale * (factor @ factor.T))

    def _checked_statistics(self, statistics: Statistics) -> Statistics:
        return Statistics(
            _validate.finite("statistics.v", statistics.v, shape=(self.width,)),
            _validate.finite("statistics.m", statistics.m, shape=(self.width, self.signal)),
            _validate.positive_semidefinite(
                "statistics.R_perp", statistics.R_perp, size=self.width, scale=1.0
            ),
        )

    # ------------------------------------------------------------------ effective dynamics

    @property
    def drift_dimension(self) -> int:
        """Dimension of the Gaussian integrals of :meth:`drift`: one for each neuron."""
        return self.width

    def population_loss(self, statistics: Statistics, *, rule: Rule | None = None) -> float:
        r"""Evaluate the population loss with its ridge.

        .. math:: \Phi = E L + \tfrac\alpha2 \sum_i (v_i^2 + |m_i|^2 + R^\perp_{ii}).

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule, optional
            As for :meth:`drift`.
        """
        v, m, R_perp = statistics = checked(self, statistics, single=True)
        size = np.vdot(v, v) + np.vdot(m, m) + np.trace(R_perp)
        found = integrals.evaluate(self, statistics, rule)
        return float(found.loss + 0.5 * self.ridge * size)

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        r"""Drift of the effective dynamics (BGJ Propositions 4.1 and 9.1, BGHJ Proposition 5.15).

        .. math::

            \dot v_i &= -(m_i \cdot A_i + A^\perp_{ii} + \alpha v_i), \qquad
            \dot m_i = -(v_i A_i + \alpha m_i) \\
            \dot R^\perp_{ij} &= -(v_i A^\perp_{ij} + v_j A^\perp_{ji} + 2 \alpha R^\perp_{ij})
              + \frac{c_\delta}{\lambda} v_i v_j B_{ij}

        with the integrals of :class:`traindyn.problems.two_layer.integrals.Integrals`.

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule, optional
            Quadrature for N(0, I_K). Default: a quadrature that is a smooth function of the
            statistics, see :func:`traindyn.problems.two_layer.integrals.evaluate`.
        c_delta : float
            Limit of step_size * dimension; zero for a sub-critical step size.

        Returns
        -------
        Statistics
            Time derivatives.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        v, m, R_perp = statistics = checked(self, statistics, single=True)
        A, A_perp, B, _ = integrals.evaluate(self, statistics, rule)
        flow = v[:, None] * A_perp
        corrector = (c_delta / self.precision) * np.outer(v, v) * B
        return Statistics(
            -(m * A).sum(axis=1) - np.diag(A_perp) - self.ridge * v,
            -v[:, None] * A - self.ridge * m,
            corrector - flow - flow.T - 2.0 * self.ridge * R_perp,
        )

    def limit_drift(self, statistics: Statistics) -> Statistics:
        r"""Drift without noise: the limit of infinite precision (BGJ Propositions 4.2, 9.2).

        It jumps where a neuron is orthogonal to a centroid; there, too,
        :math:`g'(0) = 0`. See :mod:`traindyn.problems.two_layer.limit` for its branches.
        """
        return replace(self, precision=math.inf).drift(statistics, c_delta=0.0)

    def volatility(
        self,
        statistics: Statistics,
        *,
        rule: Rule | None = None,
        c_delta: float,
        second_order: bool = True,
    ) -> Array:
        r"""Limit covariance of one step, in units of ``step_size**2``.

        The covariance of the increments of one draw,

        .. math::

            D_{v_i} &= -g(z_i)\, e, \qquad D_{m_i} = -v_i c_i\, (X_1, \dots, X_d) \\
            D_{R_{ij}} &= -(v_i c_i z^\perp_j + v_j c_j z^\perp_i)
              + \frac{c_\delta}{\lambda} v_i v_j c_i c_j ,

        with :math:`z^\perp = W^\perp X`. Summed over the steps of a unit of time it is
        ``step_size`` times this: it vanishes in the limit and sets the size of the
        fluctuations before it.

        Parameters
        ----------
        statistics : Statistics
            Of one point, without leading axes.
        rule : Rule, optional
            As for :meth:`drift`.
        c_delta : float
            Limit of step_size * dimension.
        second_order : bool, default True
            Keep the last term, the fluctuation of the corrector. BGJ Remark 2 has it with
            other constants and BGJ (2.3) drops it, which the fluctuations of R_perp around
            its limit do not allow.

        Returns
        -------
        ndarray, shape (n, n)
            In the order v, m row by row, upper triangle of R_perp row by row.
        """
        c_delta = _validate.non_negative("c_delta", c_delta)
        corrector = c_delta / self.precision if second_order else 0.0
        return integrals.step_covariance(self, statistics, rule, corrector=corrector)

    # ------------------------------------------------------------------ one step of SGD

    def direct_kernel(self) -> Kernel:
        """One step of SGD in full dimension; the state is ``tuple(point)``."""
        return Kernel(direct_step, self._law)

    def reduced_kernel(self) -> Kernel:
        """One step of SGD on the statistics; the state is :meth:`reduced_state`.

        Raises
        ------
        ValueError
            If the dimension is at most d + K, where the noise has no room outside the signal
            space and the neurons.
        """
        freedom = self.dimension - self.signal - self.width
        if freedom < 1:
            raise ValueError(
                f"dimension must be greater than d + K = {self.signal + self.width} for the "
                f"reduced dynamics, got {self.dimension}"
            )
        return Kernel(reduced_step, (*self._law, float(freedom)))

    @property
    def _law(self) -> tuple[Array, Array, Array, float, float]:
        cumulative = np.cumsum(self.weights, dtype=np.float64)
        signs = np.asarray(1.0 - 2.0 * self.labels, dtype=np.float64)
        return cumulative, self.centroids.copy(), signs, self._deviation, self.ridge

    def reduced_state(self, statistics: Statistics) -> tuple[Array, ...]:
        """Arrays the reduced kernel updates: v, m, an upper factor of R_perp, workspace.

        Raises
        ------
        ValueError
            If the statistics are misshaped, not finite or R_perp is not positive
            semi-definite.
        """
        v, m, R_perp = self._checked_statistics(statistics)
        upper = _mixtures.upper_factor(R_perp)
        return v.copy(), m.copy(), upper, np.zeros((4, max(self.width, self.signal)))

    def reduced_statistics(self, state: tuple[Array, ...]) -> Statistics:
        """Statistics of a reduced state (leading axes allowed)."""
        v, m, upper, _ = state
        return Statistics(np.array(v), np.array(m), np.swapaxes(upper, -1, -2) @ upper)


def checked(
    problem: TwoLayerMixture,
    statistics: Statistics,
    *,
    name: str = "statistics",
    single: bool = False,
) -> Statistics:
    """Return statistics, called `name` in errors, if they are finite and fit the problem."""
    shapes = (("K",), ("K", "d"), ("K", "K"))
    sizes = {"K": problem.width, "d": problem.signal}
    return _validate.record(name, statistics, shapes, single=single, **sizes)


def consistent(statistics: Statistics) -> Statistics:
    """Return statistics of any problem if they are finite and fit each other."""
    return _validate.record("statistics", statistics, (("K",), ("K", "d"), ("K", "K")))


def checked_point(problem: TwoLayerMixture, point: Point) -> Point:
    """Return a point if it is finite and fits the problem, apart from its dimension."""
    found = _validate.record("point", point, (("K",), ("K", "n")), single=True, K=problem.width)
    if found.W.shape[1] < problem.signal:
        raise ValueError(
            f"point.W must have at least {problem.signal} columns, got {found.W.shape[1]}"
        )
    return found


def _orthonormal(names: tuple[str, ...], vectors: tuple[ArrayLike, ...], size: int) -> list[Array]:
    """Vectors of length `size` that are orthonormal."""
    found = [_validate.finite(name, vector, shape=(size,)) for name, vector in zip(names, vectors)]
    deviation = np.abs(np.stack(found) @ np.stack(found).T - np.eye(len(found))).max()
    if deviation > 1e-12:
        kind = "a unit vector" if len(found) == 1 else "orthonormal"
        given = ", ".join(str(vector.tolist()) for vector in found)
        raise ValueError(f"{' and '.join(names)} must be {kind}, got {given}")
    return found
