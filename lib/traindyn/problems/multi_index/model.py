r"""A two-layer network trained on a multi-index target: data, gradients and curvature.

The network is :math:`f(x) = \frac1m \sum_j a_j \sigma(\theta_j \cdot x + b_j)` with fixed
:math:`a_j, b_j`; its first layer minimises the mean of :math:`\ell(y_i, f(x_i))` over n
samples in d dimensions. The target's k directions are the first k coordinates, without loss of
generality. Everything is a function of the preactivations :math:`u_j = \theta_j \cdot x`
(without bias) and the label:

* the gradient of the risk is :math:`\frac1n X^T F` with the *force*
  :math:`F_j = \frac1m a_j\, \ell'(y, f)\, \sigma'(u_j + b_j)`;
* the Hessian of m times the risk has blocks
  :math:`\frac1n \sum_i g_{jl}(u_i, y_i)\, x_i x_i^T` with

  .. math:: g_{jl} = \delta_{jl}\, a_j \ell' \sigma''(u_j + b_j)
            + \tfrac1m a_j a_l\, \ell''\, \sigma'(u_j + b_j)\, \sigma'(u_l + b_l).

(MW, network and Hessian; the sign :math:`a_j` belongs into the weight.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import GELU, Activation
from traindyn.gaussian import Rule, default_rule, sobol, symmetric_sqrt
from traindyn.problems.multi_index.losses import Loss, pseudo_huber
from traindyn.problems.multi_index.targets import Target, phase_retrieval

__all__ = ["Data", "MultiIndex", "Statistics"]

_SOBOL_NODES = 2**14
_NO_WEIGHT = 1e-18
_ROUNDING = 1e-5


class Data(NamedTuple):
    """A training set.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
        float64 or float32, C order; the first k columns are the target's coordinates.
    labels : ndarray, shape (n,)
        Of the same type.
    """

    inputs: Any
    labels: Any


class Statistics(NamedTuple):
    """What training and its mean-field theory both report.

    Attributes
    ----------
    overlap : ndarray, shape (..., m, k)
        Products of neurons and the target's directions.
    gram : ndarray, shape (..., m, m)
        Products of neurons.
    train_loss, test_loss : ndarray, shape (...)
        Mean loss of the training set, and expected loss of a fresh sample.
    """

    overlap: Array
    gram: Array
    train_loss: Array
    test_loss: Array


@dataclass(frozen=True, eq=False)
class MultiIndex:
    """A multi-index target learnt by the first layer of a two-layer network.

    Attributes
    ----------
    target : Target
    activation : Activation
    loss : Loss
    second_layer : ndarray, shape (m,)
        The fixed coefficients; their number is the number of neurons.
    biases : ndarray, shape (m,)
        Default: none.

    Raises
    ------
    ValueError
        If shapes disagree, or the loss does not allow the target's labels.

    Examples
    --------
    >>> from traindyn.problems.multi_index.model import MultiIndex
    >>> from traindyn.problems.multi_index.targets import phase_retrieval
    >>> problem = MultiIndex(phase_retrieval(), second_layer=(1.0, -1.0))
    >>> data = problem.sample(6, 4, rng=0)
    >>> data.inputs.shape, data.labels.shape
    ((6, 4), (6,))
    """

    target: Target = field(default_factory=phase_retrieval)
    activation: Activation = GELU
    loss: Loss = field(default_factory=pseudo_huber)
    second_layer: Any = (1.0,)
    biases: Any = None
    _biased: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        """Convert and check every field."""
        second = _validate.finite("second_layer", self.second_layer, shape=(None,))
        if second.size == 0 or not np.all(second):
            raise ValueError(f"second_layer must have non-zero entries, got {second}")
        given = np.zeros(second.size) if self.biases is None else self.biases
        biases = _validate.finite("biases", given, shape=(second.size,))
        object.__setattr__(self, "second_layer", _validate.frozen(second))
        object.__setattr__(self, "biases", _validate.frozen(biases))
        object.__setattr__(self, "_biased", bool(np.any(self.biases)))
        low, high = self.target.label_range
        if low < self.loss.low or high > self.loss.high:
            raise ValueError(
                f"target must have labels in [{self.loss.low:g}, {self.loss.high:g}] for the "
                f"loss {self.loss.name}, got {self.target.name} with labels in [{low:g}, {high:g}]"
            )

    @property
    def width(self) -> int:
        """Number m of neurons."""
        return int(self.second_layer.size)

    @property
    def k(self) -> int:
        """Number of the target's directions."""
        return self.target.k

    def sample(self, n: int, d: int, *, rng: RNG, dtype: DTypeLike = np.float64) -> Data:
        """Draw a training set.

        Parameters
        ----------
        n : int
            Samples, at least 1.
        d : int
            Dimension, at least k.
        rng : int, SeedSequence or Generator
            Draws the inputs, then the noise of the labels, if there is any.
        dtype : {float64, float32}
            Drawn in this type, without a copy in another.
        """
        n, d = _validate.integer("n", n, least=1), _validate.integer("d", d, least=self.k)
        kind = _float_type(dtype)
        generator = _validate.generator("rng", rng)
        inputs: Any = generator.standard_normal((n, d), dtype=kind)
        labels = self.target.labels(inputs[:, : self.k].astype(np.float64), rng=generator)
        return Data(inputs, labels.astype(kind))

    def initial(self, d: int, *, rng: RNG) -> Array:
        """Draw neurons uniformly on the unit sphere, shape (d, m)."""
        d = _validate.integer("d", d, least=self.k)
        theta = _validate.generator("rng", rng).standard_normal((d, self.width))
        return np.asarray(theta / np.linalg.norm(theta, axis=0))

    def predict(self, preactivations: Any) -> Any:
        """Output of the network, shape (n,), for preactivations of shape (n, m)."""
        value = self.activation.value(self._shifted(preactivations))
        return value @ self._scaled(preactivations)

    def force(self, preactivations: Any, labels: Any) -> tuple[Any, Any]:
        """Predictions (n,) and minus the descent direction per sample, F of shape (n, m)."""
        scaled = self._scaled(preactivations)
        value, slope = self.activation.value_and_slope(self._shifted(preactivations))
        predictions = value @ scaled
        slope *= self.loss.slope(labels, predictions)[:, None]
        slope *= scaled
        return predictions, slope

    def hessian_weights(self, preactivations: Array, labels: Array) -> Array:
        """Weights of the Hessian of m times the risk.

        Parameters
        ----------
        preactivations : ndarray, shape (n, m)
            Products of inputs and neurons, without the biases.
        labels : ndarray, shape (n,)
            Labels of the same samples.

        Returns
        -------
        ndarray, shape (n, m, m)
            ``g_jl`` of the module's formula; its m-th part is the Jacobian of the force in
            the preactivations.

        Raises
        ------
        ValueError
            If the activation has no second derivative.
        """
        preactivations, labels = self._checked(preactivations, labels)
        second = self.activation.second("the Hessian")
        shifted = preactivations + self.biases
        a, m = self.second_layer, self.width
        predictions = self.activation.value(shifted) @ a / m
        scaled = self.activation.first("the Hessian")(shifted) * a
        convexity = self.loss.curvature(labels, predictions) / m
        weights = (convexity[:, None] * scaled)[:, :, None] * scaled[:, None, :]
        slope = self.loss.slope(labels, predictions)
        diagonal = np.arange(m)
        weights[:, diagonal, diagonal] += slope[:, None] * second(shifted) * a
        return np.asarray(weights)

    def block_weights(self, preactivations: Array, labels: Array) -> Array:
        """Weights that decide on the lowest eigenvalue, one neuron at a time.

        The Hessian's own for a single neuron. For several the positive semi-definite part,
        of order 1/m on vectors supported on one block, is dropped:
        ``a_j l'(y, f) sigma''(u_j + b_j)``; the smallest eigenvalue of the whole Hessian is
        that of the lowest block up to O(1/m) (MW, Block-diagonal approximation, lowest
        eigenvalue).

        Parameters
        ----------
        preactivations, labels
            As for :meth:`hessian_weights`.

        Returns
        -------
        ndarray, shape (n, m)
            Column j belongs to the block of neuron j.
        """
        preactivations, labels = self._checked(preactivations, labels)
        if self.width == 1:
            return self.hessian_weights(preactivations, labels)[:, :, 0]
        second = self.activation.second("the Hessian")
        shifted = preactivations + self.biases
        predictions = self.activation.value(shifted) @ self.second_layer / self.width
        slope = self.loss.slope(labels, predictions)
        return np.asarray(slope[:, None] * second(shifted) * self.second_layer)

    def require_bounded_curvature(self) -> None:
        """Refuse problems whose Hessian weights are unbounded below.

        Raises
        ------
        ValueError
            If they are: the spectrum then has no left edge and no threshold exists. The
            message says why, and what to do instead.
        """
        low, high = self.activation.curvature_range
        if self.loss.bounded_slope or low == high == 0:
            return
        # The slope of the loss is a growing function of f - y.
        label_low, label_high = self.target.label_range
        falling, rising = np.isinf(label_high), np.isinf(label_low)
        if self.width > 1:
            ends = np.outer(self.second_layer, [self.activation.low, self.activation.high])
            falling |= bool(np.isneginf(ends).any())
            rising |= bool(np.isposinf(ends).any())
        ends = np.outer(self.second_layer, [low, high])
        if (falling and ends.max() > 0) or (rising and ends.min() < 0):
            raise ValueError(
                f"loss must have a bounded slope for labels of {self.target.name} in "
                f"[{label_low:g}, {label_high:g}], got {self.loss.name}: the weights "
                f"a l'(y, f) sigma'' of the Hessian are unbounded below, so that its spectrum "
                f"has no left edge and no finite threshold exists at finite time; use "
                f"pseudo_huber, log_cosh or logistic losses or bounded labels, or the limit of "
                f"infinite time (traindyn.dmft.stable), where the weights are bounded again"
            )

    def population_loss(
        self, gram: ArrayLike, overlap: ArrayLike, *, rule: Rule | None = None
    ) -> float:
        """Return the expected loss of a fresh sample, given the products of neurons alone.

        Parameters
        ----------
        gram : array_like, shape (m, m)
            Products of neurons.
        overlap : array_like, shape (m, k)
            Products of neurons and the target's directions.
        rule : Rule, optional
            Of dimension ``m + k``, one more with label noise. Default: tensor Gauss-Hermite
            in few dimensions if the target is smooth, a fixed Sobol rule otherwise.

        Raises
        ------
        ValueError
            If the products are not those of any neurons, or the rule has another dimension.
        """
        m, k = self.width, self.k
        products = _validate.symmetric("gram", gram, size=m)
        known = _validate.finite("overlap", overlap, shape=(m, k))
        beside = products - known @ known.T
        least = float(np.linalg.eigvalsh(beside)[0])
        # Rounding, also of single precision, is relative to the largest of the products: those of
        # the overlaps are no larger.
        scale = float(np.abs(products).max())
        if least < -_ROUNDING * scale:
            raise ValueError(
                "gram - overlap @ overlap.T must be positive semi-definite, got smallest "
                f"eigenvalue {least:.6g}"
            )
        rest = symmetric_sqrt(beside, tolerance=_ROUNDING, scale=scale)
        dim = m + k + (self.target.noise > 0)
        if rule is None:
            smooth = self.target.gradient is not None
            rule = _loss_rule(dim, smooth)
        _validate.providing("rule", rule, "nodes", "weights")
        if rule.dim != dim:
            raise ValueError(f"rule must have dimension {dim}, got {rule.dim}")
        z = rule.nodes[:, :k]
        preactivations = z @ known.T + rule.nodes[:, k : k + m] @ rest
        labels = self.target.signal(z)
        if self.target.noise:
            labels = labels + self.target.noise * rule.nodes[:, -1]
        return float(rule.expect(self.loss.value(labels, self.predict(preactivations))))

    def _checked(self, preactivations: Array, labels: Array) -> tuple[Array, Array]:
        seen = _validate.finite("preactivations", preactivations, shape=(None, self.width))
        return seen, _validate.finite("labels", labels, shape=(len(seen),))

    def _shifted(self, preactivations: Any) -> Any:
        """Add the biases, in the type of the preactivations."""
        if not self._biased:
            return preactivations
        return preactivations + self.biases.astype(preactivations.dtype)

    def _scaled(self, like: Any) -> Any:
        """Return the coefficients over m, in the type of `like`."""
        return (self.second_layer / self.width).astype(like.dtype)


@cache
def _loss_rule(dim: int, smooth: bool) -> Rule:
    """Rule of the population's loss, without nodes that have no weight in double precision."""
    if not smooth:
        return sobol(dim, _SOBOL_NODES, rng=0)
    whole = default_rule(dim)
    kept = whole.weights > _NO_WEIGHT
    return Rule(whole.nodes[kept], whole.weights[kept] / whole.weights[kept].sum())


def _float_type(dtype: DTypeLike) -> Any:
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float64 or float32, got {kind}")
    return kind
