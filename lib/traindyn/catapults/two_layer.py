r"""Two-layer networks, their quadratic and their linear Taylor models, trained alike.

.. math:: f(x) = m^{-1/2} \sum_k v_k\, \sigma(u_k \cdot x / \sqrt d)

(ZHU (3.9)). With preactivations z, and :math:`z_0, u_0, v_0` at the point of expansion, the models
are

.. math::

    f_{quad} &= m^{-1/2} \sum \big[ v\, (\sigma + \sigma'\, (z - z_0))
                + \tfrac12 v_0\, \sigma''\, (z - z_0)^2 \big], \\
    f_{lin} &= m^{-1/2} \sum \big[ v\, \sigma + v_0\, \sigma'\, (z - z_0) \big],

all derivatives at :math:`z_0`. For a rectified linear unit the quadratic model is the network
with its gates frozen, :math:`m^{-1/2} \sum v z\, 1\{z_0 > 0\}`, and as cheap as the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import RELU, Activation
from traindyn.catapults import _stretch
from traindyn.catapults.training import Stretch

__all__ = ["ExpandedBatch", "Kind", "TwoLayerModel", "Weights", "kernel_rate"]

Kind: TypeAlias = Literal["network", "quadratic", "linear"]


class Weights(NamedTuple):
    """Weights of both layers.

    Attributes
    ----------
    first : ndarray, shape (m, d)
    second : ndarray, shape (m,)
    """

    first: Array
    second: Array


class ExpandedBatch(NamedTuple):
    """Inputs with what the Taylor models need of the point of expansion.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
        Divided by the root of d.
    value, slope, curvature, start : ndarray, shape (n, m), or None
        Activation and its derivatives at the point of expansion, and the preactivations there;
        None where the model has no use for them.
    """

    inputs: Array
    value: Array | None = None
    slope: Array | None = None
    curvature: Array | None = None
    start: Array | None = None


def kernel_rate(level: float) -> float:
    r"""Return the rate at which the kernel at the start leaves its mean, exponentially in width.

    By Cramér's theorem :math:`P(\lambda \ge a) \le e^{-m I(a)}` for a > 1, and the same below
    one, with :math:`I(a) = \sup_t\, t a - \log \frac12 (1 + e^t (1 - 2 t)^{-1/2})`: the kernel of
    :func:`~companion.catapults.one_example.initial` is a mean of m terms, zero or
    :math:`1 + s^2`.
    ZHU Proposition B.9.1 is about the levels one half and three halves.

    Parameters
    ----------
    level : float
        a, positive.

    Examples
    --------
    >>> from traindyn.catapults import kernel_rate
    >>> kernel_rate(1.0) < 1e-9, round(kernel_rate(1.5), 4), round(kernel_rate(0.5), 4)
    (True, 0.0484, 0.0882)
    """
    a = _validate.positive("level", level)

    def minus(t: float) -> float:
        return float(np.log(0.5 + 0.5 * np.exp(t) / np.sqrt(1 - 2 * t)) - t * a)

    return -float(minimize_scalar(minus, bounds=(-30, 0.4999), method="bounded").fun)


@dataclass(frozen=True)
class TwoLayerModel:
    """A two-layer network or one of its Taylor models.

    Parameters
    ----------
    expansion : Weights
        The point of expansion, usually the initialisation. The network only takes its shape.
    kind : {"network", "quadratic", "linear"}
    activation : Activation, default RELU
        The quadratic model of one without second derivative takes it to be zero, which is that
        almost everywhere.

    Raises
    ------
    ValueError
        If the kind is unknown, or shapes do not match.

    Examples
    --------
    All three agree at the point of expansion:

    >>> import numpy as np
    >>> from traindyn.catapults import TwoLayerModel
    >>> start = TwoLayerModel.initial(8, 3, rng=1)
    >>> inputs = np.eye(3)
    >>> models = [TwoLayerModel(start, kind) for kind in ("network", "quadratic", "linear")]
    >>> values = [model.outputs(start, model.prepare(inputs)) for model in models]
    >>> bool(np.ptp(values, axis=0).max() < 1e-15)
    True
    """

    expansion: Weights
    kind: Kind = "network"
    activation: Activation = RELU

    def __post_init__(self) -> None:
        _validate.choice("kind", self.kind, ("network", "quadratic", "linear"))
        _validate.instance("expansion", self.expansion, Weights)
        first = _validate.finite("expansion.first", self.expansion.first, shape=(None, None))
        second = _validate.finite("expansion.second", self.expansion.second, shape=(len(first),))
        expansion = Weights(_validate.frozen(first), _validate.frozen(second))
        object.__setattr__(self, "expansion", expansion)
        self.activation.first("training")

    @staticmethod
    def initial(
        width: int,
        dimension: int,
        *,
        signs: bool = True,
        rng: int | np.random.SeedSequence | np.random.Generator,
    ) -> Weights:
        """Draw weights, the first layer standard normal.

        Parameters
        ----------
        width, dimension : int
            Number m of neurons and d of entries of an input, at least 1.
        signs : bool, default True
            Second layer of random signs; standard normal otherwise.
        rng : int, SeedSequence or Generator
            Draws both layers.
        """
        m = _validate.integer("width", width, least=1)
        d = _validate.integer("dimension", dimension, least=1)
        generator = _validate.generator("rng", rng)
        first = generator.standard_normal((m, d))
        second = generator.standard_normal(m)
        return Weights(first, np.where(second > 0, 1.0, -1.0) if signs else second)

    def prepare(self, inputs: ArrayLike) -> ExpandedBatch:
        """Return inputs with what does not change during training.

        Parameters
        ----------
        inputs : array_like, shape (n, d)
            As they are given; the division by the root of d happens here.
        """
        d = self.expansion.first.shape[1]
        x = _validate.finite("inputs", inputs, shape=(None, d)) / np.sqrt(d)
        if self.kind == "network":
            return ExpandedBatch(x)
        z = x @ self.expansion.first.T
        slope = self.activation.first("the Taylor model")(z)
        bend = self.activation.curvature if self.kind == "quadratic" else None
        if self._gated and self.kind == "quadratic":
            return ExpandedBatch(x, slope=slope)
        curvature = None if bend is None else bend(z) * self.expansion.second
        return ExpandedBatch(x, self.activation.value(z), slope, curvature, z)

    def outputs(self, weights: Weights, batch: ExpandedBatch) -> Array:
        """Return the outputs, shape (n,).

        Parameters
        ----------
        weights : Weights
            Of the shapes of the expansion.
        batch : ExpandedBatch
            From :meth:`prepare` of the same model.
        """
        self._check(weights, batch)
        z = batch.inputs @ weights.first.T
        if self._rectified:
            return np.asarray(self._open(batch, z) @ weights.second / np.sqrt(weights.second.size))
        return self._forward(weights, batch, z)[0]

    def gradient(
        self, weights: Weights, batch: ExpandedBatch, labels: Array
    ) -> tuple[Array, Weights]:
        r"""Return residuals, and the gradient of :math:`\frac12 \sum_i e_i^2`.

        Parameters
        ----------
        weights : Weights
            Where the gradient is taken.
        batch : ExpandedBatch
            From :meth:`prepare` of the same model.
        labels : ndarray, shape (n,)
            Targets y; residuals are outputs less labels.

        Returns
        -------
        residuals : ndarray, shape (n,)
        gradient : Weights
        """
        self._check(weights, batch)
        z = batch.inputs @ weights.first.T
        labels = _validate.real("labels", labels, shape=z.shape[:1])
        root = np.sqrt(weights.second.size)
        if self._rectified:
            # Gates are zero or one: residuals multiply the inputs and v the sum over these,
            # arrays smaller than the preactivations, which are passed over as rarely as can be.
            z = self._open(batch, z)
            residuals = z @ weights.second / root - labels
            scaled = residuals / root
            by_second = scaled @ z
            gates = batch.slope
            if gates is None:
                gates = z
                np.copyto(gates, z > 0)
            by_first = gates.T @ (batch.inputs * scaled[:, None])
            by_first *= weights.second[:, None]
            return residuals, Weights(by_first, by_second)
        outputs, hidden, by_z = self._forward(weights, batch, z)
        residuals = outputs - labels
        scaled = residuals / root
        by_z *= scaled[:, None]
        return residuals, Weights(by_z.T @ batch.inputs, hidden.T @ scaled)

    def descend(self, weights: Weights, gradient: Weights, size: float) -> Weights:
        """Return new weights, `size` times the gradient lower, in the memory of the gradient.

        Parameters
        ----------
        weights, gradient : Weights
            The gradient must not be used afterwards.
        size : float
            By what the gradient is multiplied.
        """
        for w, g in zip(weights, gradient):
            g *= -size
            g += w
        return gradient

    @property
    def descend_many(self) -> Stretch | None:
        """Many steps in one call, if the unit is rectified and the model not linear; else None."""
        return self._descend_many if self._rectified else None

    def _descend_many(
        self,
        weights: Weights,
        batch: ExpandedBatch,
        labels: Array,
        sizes: Array,
        *,
        rows: NDArray[np.int64] | None = None,
        bound: float = np.inf,
        track: bool = False,
    ) -> tuple[Weights, int, Array]:
        self._check(weights, batch)
        if np.shape(labels) != np.shape(batch.inputs)[:1]:
            raise ValueError(
                f"labels must have shape {np.shape(batch.inputs)[:1]}, got {np.shape(labels)}"
            )
        now = Weights(*(np.array(w, dtype=np.float64, order="C") for w in weights))
        made, critical = _stretch.descend(
            *now, batch.inputs, batch.slope, labels, sizes, rows, bound, track
        )
        return now, made, critical

    def tangent_kernel(self, weights: Weights, batch: ExpandedBatch) -> Array:
        """Return the tangent kernel, shape (n, n), without forming Jacobians.

        Parameters
        ----------
        weights : Weights
            Where the kernel is taken.
        batch : ExpandedBatch
            From :meth:`prepare` of the same model.
        """
        self._check(weights, batch)
        z = batch.inputs @ weights.first.T
        _, by_second, by_z = self._forward(weights, batch, z)
        width = weights.second.size
        kernel = (by_z @ by_z.T) * (batch.inputs @ batch.inputs.T) + by_second @ by_second.T
        return np.asarray(kernel / width)

    def input_gradients(self, weights: Weights, batch: ExpandedBatch) -> Array:
        r"""Return the gradients of the outputs in the inputs as they were given.

        Parameters
        ----------
        weights : Weights
            Of the model whose outputs are differentiated.
        batch : ExpandedBatch
            From :meth:`prepare` of the same model; the gradients are taken at its inputs.

        Returns
        -------
        ndarray, shape (n, d)
            Of the network, :math:`(m d)^{-1/2} \sum_k v_k \sigma'(u_k \cdot x / \sqrt d)\, u_k`.

        Raises
        ------
        ValueError
            For a Taylor model of an activation that is not piecewise linear: its gradient has one
            more derivative of the activation.
        """
        self._check(weights, batch)
        width, d = weights.first.shape
        v, v0 = weights.second, self.expansion.second
        root = np.sqrt(width * d)
        if self.kind == "network":
            slopes = self.activation.first("gradients in the input")(batch.inputs @ weights.first.T)
            return np.asarray((slopes * v) @ weights.first / root)
        if not self._gated or batch.slope is None:
            raise ValueError(
                "input_gradients of a Taylor model need a rectified linear unit, got "
                f"{self.activation!r}"
            )
        if self.kind == "quadratic":
            return np.asarray((batch.slope * v) @ weights.first / root)
        moved = weights.first - self.expansion.first
        first = (batch.slope * v) @ self.expansion.first
        return np.asarray((first + (batch.slope * v0) @ moved) / root)

    def _check(self, weights: Weights, batch: ExpandedBatch) -> None:
        """Refuse other shapes than those of the expansion; entries are the caller's matter."""
        _validate.instance("weights", weights, Weights)
        _validate.providing("batch", batch, "inputs")
        for name, found, wanted in zip(Weights._fields, weights, self.expansion):
            if np.shape(found) != np.shape(wanted):
                raise ValueError(
                    f"weights.{name} must have shape {np.shape(wanted)}, got {np.shape(found)}"
                )
        rows, d = np.shape(batch.inputs), np.shape(self.expansion.first)[1]
        if len(rows) != 2 or rows[1] != d:
            raise ValueError(f"batch.inputs must have shape (any, {d}), got {rows}")

    @property
    def _gated(self) -> bool:
        return self.activation.kind == "relu"

    @property
    def _rectified(self) -> bool:
        """Whether preactivations pass a gate or do not: the network and its quadratic model."""
        return self._gated and self.kind != "linear"

    def _open(self, batch: ExpandedBatch, z: Array) -> Array:
        """Close the gates of preactivations, in place: their own, or those of the expansion."""
        return np.maximum(z, 0, out=z) if batch.slope is None else np.multiply(z, batch.slope, z)

    def _forward(
        self, weights: Weights, batch: ExpandedBatch, z: Array
    ) -> tuple[Array, Array, Array]:
        """Return outputs, and root m times their derivatives in v and z, both (n, m)."""
        v = weights.second
        root = np.sqrt(v.size)
        if batch.slope is None:
            hidden, by_z = self.activation.value_and_slope(z)
            by_z *= v
            return hidden @ v / root, hidden, by_z
        if batch.start is None:  # gates
            z *= batch.slope
            return z @ v / root, z, batch.slope * v
        assert batch.value is not None
        z -= batch.start
        if self.kind == "linear":
            by_z = batch.slope * self.expansion.second
            return (batch.value @ v + (by_z * z).sum(axis=1)) / root, batch.value, by_z
        hidden = batch.value + batch.slope * z
        outputs, by_z = hidden @ v, batch.slope * v
        if batch.curvature is not None:
            bent = batch.curvature * z
            outputs = outputs + (bent * z).sum(axis=1) / 2
            by_z += bent
        return outputs / root, hidden, by_z
