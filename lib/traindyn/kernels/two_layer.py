r"""The two-layer family of MDL chapter 9: lazy training with a scale in front.

.. math:: f(x; \theta) = \frac{\alpha}{\sqrt m} \sum_{j=1}^m b_j\, \sigma(w_j \cdot x), \qquad
          b_j = +1 \ (j \le m / 2), \ -1 \ (j > m / 2),

trained in :math:`\theta = (w_1, \dots, w_m)`. Row i of the Jacobian holds
:math:`D_{ij} x_i` with :math:`D_{ij} = (\alpha / \sqrt m)\, b_j \sigma'(w_j \cdot x_i)`, so that

.. math:: K = Df Df^T = (D D^T) \circ (X X^T), \qquad
          \|Df(\theta) - Df(\theta')\|^2
          = \lambda_{\max}\big( (\Delta \Delta^T) \circ (X X^T) \big),
          \quad \Delta = D(\theta) - D(\theta').

*The Lipschitz constant of the Jacobian* is that of one neuron: moving several at once adds the
squares of both sides. With :math:`c = \sup |\sigma''|` it is

.. math:: L_n \le \frac{\alpha c}{\sqrt m} \max_{|u| = 1} \Big( \sum_i (x_i \cdot u)^4 \Big)^{1/2}

with equality if one neuron can be where all :math:`|\sigma''(w \cdot x_i)|` are largest at once:
if X has full row rank, and whatever X if that is at zero, as for GELU and softplus. (By the
Cauchy–Schwarz inequality a direction u shared by weight and output is best.) No algorithm finds
that maximum for certain, but as a quadratic form of :math:`u \otimes u`, to which
:math:`s\,(|u|^4 - (\mathrm{vec}\,I \cdot u \otimes u)^2) = 0` may be added, it is bounded by

.. math:: \min_{s \ge 0} \Big( s + \lambda_{\max} \Big( \sum_i (x_i \otimes x_i)
          (x_i \otimes x_i)^T - s\, \mathrm{vec}\,I\, (\mathrm{vec}\,I)^T \Big) \Big) .

In the *Frobenius norm* the quartic becomes :math:`\sum_i |x_i|^2 (x_i \cdot u)^2`, an eigenvalue.
For n standard Gaussian inputs the two constants are :math:`\alpha c / \sqrt m` times at most
:math:`(\sqrt d + (3n)^{1/4})^2` and about :math:`\sqrt d\, (\sqrt n + \sqrt d)`, which is the scale
that MDL Theorem 9.2 has for :math:`L_n`. The first is Chevet's inequality for the norm of X from
:math:`\ell_2` to :math:`\ell_4`, which bounds its mean; being a Lipschitz function of X, the norm
exceeds :math:`\sqrt d + (3n)^{1/4} + s` with probability :math:`e^{-s^2/2}` at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import Activation, largest_curvature
from traindyn.kernels.training import Pullback

__all__ = ["Lipschitz", "TwoLayer"]

_ASCENT_STEPS = 300
_KEPT = 10


class Lipschitz(NamedTuple):
    """The Lipschitz constant of the Jacobian, between two bounds.

    Attributes
    ----------
    lower : float
        Attained by moving one neuron from `neuron` in `direction`.
    upper : float
        Proved, for all pairs of parameters.
    neuron, direction : ndarray, shape (d,)
        The direction has unit length.
    frobenius : float
        Upper bound for the constant in the Frobenius norm; never below `lower`.
    """

    lower: float
    upper: float
    neuron: Array
    direction: Array
    frobenius: float


@dataclass(frozen=True)
class TwoLayer:
    r"""A two-layer network with fixed signs in the second layer.

    Attributes
    ----------
    dimension : int
        Of the inputs, d.
    width : int
        Number m of neurons, even.
    activation : Activation
        With a derivative.
    scale : float, default 1
        :math:`\alpha > 0`.

    Raises
    ------
    ValueError
        If a size is below one, the width is odd, the scale is not positive or the activation
        has no derivative.

    Examples
    --------
    Paired neurons cancel:

    >>> import numpy as np
    >>> from traindyn.kernels import TwoLayer
    >>> from traindyn.activations import ERF
    >>> net = TwoLayer(3, 8, ERF, scale=5.0)
    >>> theta = net.initial(paired=True, rng=0)
    >>> net.outputs(theta, np.eye(3)).tolist()
    [0.0, 0.0, 0.0]
    """

    dimension: int
    width: int
    activation: Activation
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check the sizes."""
        _validate.integer("dimension", self.dimension, least=1)
        _validate.integer("width", self.width, least=2)
        if self.width % 2:
            raise ValueError(f"width must be even, got {self.width}")
        _validate.positive("scale", self.scale)
        self.activation.first("training")

    @property
    def size(self) -> int:
        """Number of parameters, m d."""
        return self.width * self.dimension

    @property
    def signs(self) -> Array:
        r"""Second layer, :math:`\alpha b_j / \sqrt m`, shape (m,)."""
        half = np.ones(self.width // 2)
        return np.concatenate([half, -half]) * (self.scale / math.sqrt(self.width))

    def initial(self, *, paired: bool = False, rng: RNG) -> Array:
        r"""Draw neurons uniformly on the unit sphere (MDL Theorem 9.2).

        Parameters
        ----------
        paired : bool, default False
            Let :math:`w_{j + m/2} = w_j`, so that all outputs are zero. Without it they grow
            like the scale, and a large scale alone does not make training lazy.
        rng : int, SeedSequence or Generator
            Draws the directions of the neurons.

        Returns
        -------
        ndarray, shape (m d,)
        """
        count = self.width // 2 if paired else self.width
        neurons = _validate.generator("rng", rng).standard_normal((count, self.dimension))
        neurons /= np.linalg.norm(neurons, axis=1, keepdims=True)
        return (np.concatenate([neurons, neurons]) if paired else neurons).ravel()

    def outputs(self, parameters: ArrayLike, x: ArrayLike) -> Array:
        """Return the outputs at the inputs, shape (n,).

        Parameters
        ----------
        parameters : array_like, shape (m d,)
            The neurons, one after the other.
        x : array_like, shape (n, d)
            Inputs, one per row.
        """
        inputs = self._inputs("x", x)
        return np.asarray(self._value(inputs @ self._neurons(parameters).T))

    def vjp(self, parameters: ArrayLike, x: ArrayLike) -> tuple[Array, Pullback]:
        """Return outputs, and the map from weights of them to the gradient of the weighted sum.

        Parameters
        ----------
        parameters : array_like, shape (m d,)
            The neurons, where the derivative is taken.
        x : array_like, shape (n, d)
            Inputs, one per row. The pullback keeps them by reference.

        Returns
        -------
        outputs : ndarray, shape (n,)
        pullback : callable
            ``Df^T`` as a function of a vector, (n,) to (m d,).
        """
        inputs = self._inputs("x", x)
        before = inputs @ self._neurons(parameters).T
        slopes = self._slopes(before)
        return self._value(before), lambda weights: ((slopes.T * weights) @ inputs).ravel()

    def tangent_kernel(
        self, parameters: ArrayLike, x: ArrayLike, other: ArrayLike | None = None
    ) -> Array:
        """Tangent kernel ``Df(x) Df(other)^T``, shape (n, q), without the Jacobian.

        Parameters
        ----------
        parameters : array_like, shape (m d,)
            The neurons, where the Jacobians are taken.
        x : array_like, shape (n, d)
            Inputs, one per row.
        other : array_like, shape (q, d), optional
            `x` itself unless given.
        """
        neurons, inputs = self._neurons(parameters), self._inputs("x", x)
        slopes = self._slopes(inputs @ neurons.T)
        if other is None:
            return np.asarray((slopes @ slopes.T) * (inputs @ inputs.T))
        others = self._inputs("other", other)
        return np.asarray((slopes @ self._slopes(others @ neurons.T).T) * (inputs @ others.T))

    def jacobian_distance(
        self, parameters: ArrayLike, other: ArrayLike, x: ArrayLike, *, frobenius: bool = False
    ) -> float:
        r"""Operator norm :math:`\|Df(\theta) - Df(\theta')\|`.

        Parameters
        ----------
        parameters, other : array_like, shape (m d,)
            The neurons :math:`\theta` and :math:`\theta'`.
        x : array_like, shape (n, d)
            Inputs at which both Jacobians are taken.
        frobenius : bool, default False
            The Frobenius norm instead.
        """
        inputs = self._inputs("x", x)
        change = self._slopes(inputs @ self._neurons(parameters).T)
        change -= self._slopes(inputs @ self._neurons(other, "other").T)
        if frobenius:
            return float(np.linalg.norm(change * np.linalg.norm(inputs, axis=1)[:, None]))
        top = np.linalg.eigvalsh((change @ change.T) * (inputs @ inputs.T))[-1]
        return float(np.sqrt(max(top, 0.0)))

    def lipschitz(self, x: ArrayLike) -> Lipschitz:
        """Bounds on the Lipschitz constant of the Jacobian over all parameters.

        Parameters
        ----------
        x : array_like, shape (n, d)
            Not all zero.

        Returns
        -------
        Lipschitz
            `lower` is the constant itself, up to the search for the best direction, which starts
            from each input and each principal axis, if `x` has full row rank or the curvature is
            largest at zero.

        Raises
        ------
        ValueError
            If the activation has no bounded second derivative or all inputs are zero.
        """
        inputs = self._inputs("x", x)
        point, top = largest_curvature(self.activation)
        if not inputs.any():
            raise ValueError("x must not be zero, got only zeros")
        front = self.scale / math.sqrt(self.width)
        upper = front * top * np.sqrt(_quartic(inputs))
        squares = np.square(inputs).sum(axis=1)
        frobenius = front * top * np.sqrt(np.linalg.eigvalsh((inputs.T * squares) @ inputs)[-1])
        along = _steepest(inputs)
        second = self.activation.second("the Lipschitz constant of the Jacobian")
        projections = inputs @ along
        # Either all inputs at the largest curvature (possible at full row rank), or the one
        # that matters most.
        candidates = [
            np.linalg.pinv(inputs) @ np.full(inputs.shape[0], point),
            along * (point / projections[np.argmax(np.abs(projections))]),
        ]
        norms = [
            np.linalg.norm(inputs.T * (second(inputs @ w) * projections), 2) for w in candidates
        ]
        best = int(np.argmax(norms))
        lower = min(front * float(norms[best]), float(upper))
        return Lipschitz(lower, float(upper), candidates[best], along, float(frobenius))

    def gaussian_lipschitz(self, samples: int, *, miss: float = 1e-6) -> float:
        r"""Bound on the Lipschitz constant of the Jacobian for standard Gaussian inputs.

        .. math:: \frac{\alpha c}{\sqrt m} \Big( \sqrt d + (3 n)^{1/4}
                  + \sqrt{2 \log(1 / \mathrm{miss})} \Big)^2

        Parameters
        ----------
        samples : int
            Number n of inputs.
        miss : float, default 1e-6
            Bound on the probability that the constant is larger; with 1 the last root is zero.

        Raises
        ------
        ValueError
            If an argument is out of range or the activation has no bounded second derivative.
        """
        n = _validate.integer("samples", samples, least=1)
        if not 0 < _validate.number("miss", miss) <= 1:
            raise ValueError(f"miss must be in (0, 1], got {miss:g}")
        _, top = largest_curvature(self.activation)
        norm = math.sqrt(self.dimension) + (3 * n) ** 0.25 + math.sqrt(-2 * math.log(miss))
        return float(self.scale * top / math.sqrt(self.width) * norm**2)

    def _neurons(self, parameters: ArrayLike, name: str = "parameters") -> Array:
        theta = _validate.finite(name, parameters, shape=(self.size,))
        return theta.reshape(self.width, self.dimension)

    def _inputs(self, name: str, x: ArrayLike) -> Array:
        return _validate.finite(name, x, shape=(None, self.dimension))

    def _value(self, before: Array) -> Array:
        values = self.activation.value(before)
        # Halves are summed apart, so that paired neurons cancel exactly.
        half = self.width // 2
        front = self.scale / math.sqrt(self.width)
        return np.asarray(front * (values[:, :half].sum(axis=1) - values[:, half:].sum(axis=1)))

    def _slopes(self, before: Array) -> Array:
        return np.asarray(self.activation.first("training")(before) * self.signs)


def _quartic(x: Array) -> float:
    """Bound ``sum_i (x_i . u)^4`` over unit vectors u (see the module's text)."""
    squares = np.square(x).sum(axis=1)
    rows = np.block([[(x @ x.T) ** 2, squares[:, None]], [squares, np.array([x.shape[1]])]])
    values, vectors = np.linalg.eigh(rows)
    # Of the x_i (x) x_i and vec I in an orthonormal basis of their span.
    span = values > values.size * np.finfo(float).eps * values[-1]
    coordinates = vectors[:, span] * np.sqrt(values[span])
    inner, last = coordinates[:-1].T @ coordinates[:-1], coordinates[-1]

    def bound(shift: float) -> float:
        return float(shift + np.linalg.eigvalsh(inner - shift * np.outer(last, last))[-1])

    plain = bound(0.0)
    # A rough minimum is a bound too.
    options = {"xatol": 1e-3 * plain}
    found = minimize_scalar(bound, bounds=(0.0, plain), method="bounded", options=options)
    return min(plain, float(found.fun))


def _steepest(x: Array) -> Array:
    """Return a unit vector where ``sum_i (x_i . u)^4`` is largest, the best of many ascents."""
    axes = np.linalg.svd(x, full_matrices=False)[2]
    starts = np.concatenate([x[np.linalg.norm(x, axis=1) > 0], axes]).T
    starts = starts / np.linalg.norm(starts, axis=0)
    # The quartic is convex: each step of this power iteration increases it. All starts take a few
    # steps, the best of them the others.
    for steps, kept in ((_ASCENT_STEPS // 15, _KEPT), (_ASCENT_STEPS, 1)):
        for _ in range(steps):
            moved = x.T @ (x @ starts) ** 3
            lengths = np.linalg.norm(moved, axis=0)
            starts = np.where(lengths > 0, moved / np.where(lengths > 0, lengths, 1.0), starts)
        starts = starts[:, np.argsort(-((x @ starts) ** 4).sum(axis=0), kind="stable")[:kept]]
    best: Array = starts[:, 0]
    return best
