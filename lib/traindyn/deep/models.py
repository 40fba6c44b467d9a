r"""Deep networks that :func:`~traindyn.catapults.training.train` trains.

In the NTK parameterisation (ZHU Appendix C.6) all weights start as standard Gaussians and are
divided by the root of the in-degree where they are used; biases, if any, are not divided. In that
of PyTorch weights and biases start uniform on :math:`\pm fan^{-1/2}` and are used as they are.
The source's numbers come out in the first without biases, which is the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import Elementwise
from traindyn.deep.activations import resolve
from traindyn.deep.architectures import (
    Architecture,
    ImageNetwork,
    Perceptron,
    Weights,
    WideResidual,
)

__all__ = ["Batch", "Model", "image_network", "perceptron", "wide_resnet"]

Parameterisation: TypeAlias = Literal["ntk", "pytorch"]

SOONER: Any = {"xla_backend_optimization_level": 1}
"""Options that take a third off the time to compile, which most networks of a book are trained for
less long than. Convolutions, attention and products of matrices are as fast as without."""


class Batch(NamedTuple):
    """Inputs of a model.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
    """

    inputs: Array


@dataclass(frozen=True)
class Model:
    """An architecture with a parameterisation; the weights are passed to it, never kept.

    Made by :func:`perceptron`, :func:`image_network` and :func:`wide_resnet`. With one output,
    outputs have shape (n,), otherwise (n, k).

    Attributes
    ----------
    architecture : Architecture
    parameterisation : {"ntk", "pytorch"}

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.deep import perceptron
    >>> model = perceptron([3, 32, 1])
    >>> weights = model.initial(rng=0)
    >>> batch = model.prepare(np.ones((5, 3)))
    >>> model.outputs(weights, batch).shape, model.tangent_kernel(weights, batch).shape
    ((5,), (5, 5))
    """

    architecture: Architecture
    parameterisation: Parameterisation = "ntk"

    def __post_init__(self) -> None:
        _validate.choice("parameterisation", self.parameterisation, ("ntk", "pytorch"))

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(int(np.prod(one.shape)) for one in self.architecture.parameters())

    @property
    def scales(self) -> tuple[float, ...]:
        """By what each array is multiplied where it is used."""
        pytorch = self.parameterisation == "pytorch"
        return tuple(
            1.0 if pytorch or one.bias else float(one.fan**-0.5)
            for one in self.architecture.parameters()
        )

    def initial(
        self, *, scale: float = 1.0, biases: Literal["zero", "normal"] = "zero", rng: RNG
    ) -> Weights:
        """Draw weights.

        Parameters
        ----------
        scale : float, default 1.0
            Factor of all of them, such as .1 for a start near zero (ZHU Figure C.14).
        biases : {"zero", "normal"}
            Those of the NTK parameterisation.
        rng : int, SeedSequence or Generator
            Draws the arrays one after the other; zero biases need none.

        Returns
        -------
        tuple of array
        """
        factor = _validate.positive("scale", scale)
        start = _validate.choice("biases", biases, ("zero", "normal"))
        generator = _validate.generator("rng", rng)
        found = []
        for one in self.architecture.parameters():
            if self.parameterisation == "pytorch":
                drawn = generator.uniform(-1, 1, size=one.shape) / np.sqrt(one.fan)
            elif one.bias and start == "zero":
                drawn = np.zeros(one.shape)
            else:
                drawn = generator.standard_normal(one.shape)
            found.append(jax.device_put(factor * drawn))
        return tuple(found)

    def prepare(self, inputs: ArrayLike) -> Batch:
        """Check inputs, shape (n, d)."""
        return Batch(_validate.finite("inputs", inputs, shape=(None, self.architecture.inputs)))

    def outputs(self, weights: Weights, batch: Batch) -> Array:
        """Return the outputs, shape (n,), or (n, k) if there are several."""
        self._check(weights, batch)
        return np.asarray(_outputs(self, tuple(weights), batch.inputs))

    def gradient(self, weights: Weights, batch: Batch, labels: Array) -> tuple[Array, Weights]:
        r"""Return residuals, and the gradient of :math:`\frac12 \sum e^2`.

        Parameters
        ----------
        weights : tuple of array
            Where the gradient is taken.
        batch : Batch
            Inputs, from :meth:`prepare`.
        labels : ndarray, shape of the outputs
            Targets; residuals are outputs less labels.

        Returns
        -------
        residuals : ndarray, shape of the outputs
        gradient : tuple of array
        """
        self._check(weights, batch)
        check_labels(labels, len(batch.inputs), self.architecture.outputs)
        residuals, gradient = _gradient(self, tuple(weights), batch.inputs, labels)
        return np.asarray(residuals), gradient

    def descend(self, weights: Weights, gradient: Weights, size: float) -> Weights:
        """Return new weights, `size` times the gradient lower, in the memory of the gradient.

        Parameters
        ----------
        weights, gradient : tuple of array
            The gradient, if of JAX, must not be used afterwards.
        size : float
            By what the gradient is multiplied.

        Returns
        -------
        tuple of array
        """
        lower: Weights = descended(tuple(weights), tuple(gradient), size)
        return lower

    def descend_many(
        self,
        weights: Weights,
        batch: Batch,
        labels: Array,
        sizes: Array,
        *,
        rows: NDArray[np.int64] | None = None,
        bound: float = np.inf,
        track: bool = False,
    ) -> tuple[Weights, int, Array]:
        """Make a step of each size without a return to Python.

        Parameters
        ----------
        weights : tuple of array
            Where the first step starts.
        batch : Batch
            All examples.
        labels : ndarray, shape of the outputs
            Targets of all examples.
        sizes : ndarray, shape (steps,)
            By what each gradient is multiplied.
        rows : ndarray of int, shape (steps, b), optional
            The examples of each step; all of them, unless given.
        bound : float, optional
            No step is made from where the mean square of its residuals is not below.
        track : bool, default False
            Work out the critical step size of each batch.

        Returns
        -------
        weights : tuple of array
        steps : int
            Those made.
        critical_steps : ndarray, shape (steps,)
            Empty unless tracked.
        """
        self._check(weights, batch)
        check_labels(labels, len(batch.inputs), self.architecture.outputs)
        now, made, critical = _descended_many(
            self, track, tuple(weights), batch.inputs, labels, sizes, rows, bound
        )
        return now, int(made), np.asarray(critical)[: int(made)]

    def tangent_kernel(self, weights: Weights, batch: Batch) -> Array:
        """Return the tangent kernel, shape (n k, n k), outputs of one input side by side.

        That of a perceptron is put together layer by layer; other architectures form the
        gradient of every output, n k times as many numbers as weights.
        """
        self._check(weights, batch)
        return np.asarray(_kernel(self, tuple(weights), batch.inputs))

    def input_gradients(self, weights: Weights, batch: Batch) -> Array:
        """Return the gradients of the outputs in the inputs, shape (n, d) or (n, k, d)."""
        self._check(weights, batch)
        found: Array = np.asarray(_input_gradients(self, tuple(weights), batch.inputs))
        return found[:, 0] if self.architecture.outputs == 1 else found

    @cached_property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(one.shape for one in self.architecture.parameters())

    def _check(self, weights: Weights, batch: Batch) -> None:
        """Refuse other shapes than those of the architecture; entries are the caller's matter."""
        found = tuple(np.shape(w) for w in weights)
        if found != self._shapes:
            raise ValueError(f"weights must have the shapes {self._shapes}, got {found}")
        check_inputs(batch, self.architecture.inputs)

    def apply(self, weights: Weights, inputs: jax.Array) -> jax.Array:
        """Return the outputs as :meth:`outputs` does, as a function that JAX differentiates."""
        scaled = tuple(s * w for s, w in zip(self.scales, weights))
        found = self.architecture(scaled, inputs)
        return found[:, 0] if self.architecture.outputs == 1 else found


def perceptron(
    sizes: Sequence[int],
    *,
    activation: str | Elementwise = "relu",
    biases: bool = False,
    parameterisation: Parameterisation = "ntk",
) -> Model:
    """Make a fully connected network with a linear output.

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden layers, outputs.
    activation : str or callable
        See :func:`~traindyn.deep.activations.resolve`.
    biases : bool, default False
        Whether every layer, the last one too, adds a bias to each of its sums.
    parameterisation : {"ntk", "pytorch"}
        Standard normal weights, divided by the root of the fan-in where they are used; or uniform
        ones up to one over that root, used as they are, biases too.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, one is not positive, or a name is unknown.
    """
    known = _several("sizes", sizes, least=2)
    return Model(Perceptron(known, resolve(activation), bool(biases)), parameterisation)


def image_network(
    shape: Sequence[int],
    channels: Sequence[int],
    *,
    filter: int = 3,
    outputs: int = 1,
    activation: str | Elementwise = "relu",
    biases: bool = False,
    parameterisation: Parameterisation = "ntk",
) -> Model:
    """Make a convolutional network: stride one, zero padding, a full linear layer at the end.

    Parameters
    ----------
    shape : sequence of int
        Height and width of an image, or channels, height and width.
    channels : sequence of int
        Of the convolutional layers.
    filter : int, default 3
        Pixels along an edge of a filter.
    outputs : int, default 1
        Number of outputs of the last layer.
    activation : str or callable
        Of the convolutional layers, as for :func:`perceptron`.
    biases : bool, default False
        As for :func:`perceptron`; a convolutional layer has one per channel.
    parameterisation : {"ntk", "pytorch"}
        As for :func:`perceptron`.

    Raises
    ------
    ValueError
        If a size is not positive or a name is unknown.
    """
    architecture = ImageNetwork(
        image_shape(shape),
        _several("channels", channels, least=1),
        _validate.integer("filter", filter, least=1),
        _validate.integer("outputs", outputs, least=1),
        resolve(activation),
        bool(biases),
    )
    return Model(architecture, parameterisation)


def wide_resnet(
    shape: Sequence[int],
    *,
    depth: int = 10,
    widen: int = 1,
    base: int = 16,
    outputs: int = 1,
    activation: str | Elementwise = "relu",
    parameterisation: Parameterisation = "ntk",
) -> Model:
    """Make a wide residual network without normalisation.

    Parameters
    ----------
    shape : sequence of int
        Height and width of an image, or channels, height and width.
    depth : int, default 10
        4, and 6 for every block that each of the three groups has.
    widen : int, default 1
        Factor on the channels.
    base : int, default 16
        Channels of the first group without that factor.
    outputs : int, default 1
        Number of outputs of the last layer.
    activation : str or callable
        Before each convolution of a block and before the last mean, as for :func:`perceptron`.
    parameterisation : {"ntk", "pytorch"}
        As for :func:`perceptron`.

    Raises
    ------
    ValueError
        If a size is not positive, the depth is not 4 plus a multiple of 6, or a name is unknown.
    """
    layers = _validate.integer("depth", depth, least=10)
    if (layers - 4) % 6:
        raise ValueError(f"depth must be 4 plus a multiple of 6, got {layers}")
    architecture = WideResidual(
        image_shape(shape),
        (layers - 4) // 6,
        _validate.integer("widen", widen, least=1),
        _validate.integer("base", base, least=1),
        _validate.integer("outputs", outputs, least=1),
        resolve(activation),
    )
    return Model(architecture, parameterisation)


def check_inputs(batch: Batch, size: int) -> None:
    """Refuse a batch of other inputs than those of so many entries."""
    shape = np.shape(batch.inputs)
    if len(shape) != 2 or shape[1] != size:
        raise ValueError(f"batch.inputs must have shape (any, {size}), got {shape}")


def check_labels(labels: Array, count: int, outputs: int) -> None:
    """Refuse labels of another shape than that of the outputs."""
    wanted = (count,) if outputs == 1 else (count, outputs)
    if np.shape(labels) != wanted:
        raise ValueError(f"labels must have shape {wanted}, got {np.shape(labels)}")


def _several(name: str, sizes: Sequence[int], *, least: int) -> tuple[int, ...]:
    known = _validate.listed(name, sizes)
    if len(known) < least:
        raise ValueError(f"{name} must have at least {least} entries, got {known}")
    return tuple(_validate.integer(f"every entry of {name}", size, least=1) for size in known)


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """Return channels, height and width; a shape of two numbers has one channel."""
    known = _several("shape", shape, least=2)
    if len(known) > 3:
        raise ValueError(f"shape must be (height, width) or (channels, height, width), got {known}")
    channels, height, width = known if len(known) == 3 else (1, *known)
    return channels, height, width


@partial(jax.jit, static_argnums=0, compiler_options=SOONER)
def _outputs(model: Model, weights: Weights, inputs: jax.Array) -> jax.Array:
    return model.apply(weights, inputs)


def _slope(model: Model, weights: Weights, inputs: jax.Array, labels: jax.Array) -> Any:
    def half(now: Weights) -> tuple[jax.Array, jax.Array]:
        residuals = model.apply(now, inputs) - labels
        return jnp.sum(residuals**2) / 2, residuals

    gradient, residuals = jax.grad(half, has_aux=True)(weights)
    return residuals, gradient


_gradient = partial(jax.jit, static_argnums=0, compiler_options=SOONER)(_slope)


@partial(jax.jit, donate_argnums=1)
def descended(weights: Weights, gradient: Weights, size: jax.Array | float) -> Weights:
    """Step down the gradient, whose memory the new weights take: one pass, no allocation."""
    return tuple(w - size * g for w, g in zip(weights, gradient))


@partial(jax.jit, static_argnums=(0, 1), compiler_options=SOONER)
def _descended_many(model: Model, track: bool, *steps: Any) -> Any:
    kernel = partial(_gram, model) if track else None
    return descended_many(partial(_slope, model), kernel, *steps)


def descended_many(
    gradient: Callable[[Weights, jax.Array, jax.Array], tuple[jax.Array, Weights]],
    kernel: Callable[[Weights, jax.Array], jax.Array] | None,
    weights: Weights,
    inputs: jax.Array,
    labels: jax.Array,
    sizes: jax.Array,
    rows: jax.Array | None,
    bound: jax.Array | float,
) -> Any:
    """Step down while mean squares stay below a bound: weights, steps, critical step sizes."""

    def going(state: Any) -> Any:
        return state[2] & (state[1] < len(sizes))

    def step(state: Any) -> Any:
        now, made, _, critical = state
        chosen = slice(None) if rows is None else rows[made]
        residuals, lower = gradient(now, inputs[chosen], labels[chosen])
        inside = jnp.mean(residuals**2) < bound
        if kernel is not None:
            top = jnp.linalg.eigvalsh(kernel(now, inputs[chosen]))[-1]
            critical = critical.at[made].set(jnp.where(top > 0, residuals.size / top, jnp.inf))
        # Where the gradient is not finite, zero times it would not be zero.
        following = tuple(w - jnp.where(inside, sizes[made] * g, 0.0) for w, g in zip(now, lower))
        return following, made + inside, inside, critical

    none = jnp.zeros(0 if kernel is None else len(sizes))
    start = (weights, jnp.asarray(0), jnp.asarray(True), none)
    end, made, _, critical = jax.lax.while_loop(going, step, start)
    return end, made, critical


@partial(jax.jit, static_argnums=0, compiler_options=SOONER)
def _input_gradients(model: Model, weights: Weights, inputs: jax.Array) -> jax.Array:
    def value(point: jax.Array) -> jax.Array:
        return jnp.atleast_1d(model.apply(weights, point[None])[0])

    gradients: jax.Array = jax.vmap(jax.jacrev(value))(inputs)
    return gradients


def _gram(model: Model, weights: Weights, inputs: jax.Array) -> jax.Array:
    if isinstance(model.architecture, Perceptron):
        return _layered_kernel(model, model.architecture, weights, inputs)

    def value(now: Weights, point: jax.Array) -> jax.Array:
        return jnp.atleast_1d(model.apply(now, point[None])[0])

    rows = jax.vmap(jax.jacrev(value), in_axes=(None, 0))(weights, inputs)
    flat = [g.reshape(len(inputs) * model.architecture.outputs, -1) for g in rows]
    return sum((g @ g.T for g in flat), start=jnp.zeros((len(flat[0]), len(flat[0]))))


_kernel = partial(jax.jit, static_argnums=0, compiler_options=SOONER)(_gram)


def _layered_kernel(
    model: Model, architecture: Perceptron, weights: Weights, inputs: jax.Array
) -> jax.Array:
    """Add the products of inner products of what a layer reads and of what it passes back."""
    n, k = len(inputs), architecture.outputs
    scaled = tuple(s * w for s, w in zip(model.scales, weights))
    zero = [jnp.zeros((n, size)) for size in architecture.sizes[1:]]
    _, back, read = jax.vjp(
        lambda shifts: architecture.follow(scaled, inputs, shifts), zero, has_aux=True
    )
    # Outputs of different inputs do not mix, so one pass serves all of them.
    (deltas,) = jax.vmap(back)(jnp.broadcast_to(jnp.eye(k)[:, None], (k, n, k)))
    per_layer = 2 if architecture.biases else 1
    total = jnp.zeros((n * k, n * k))
    for depth, (values, delta) in enumerate(zip(read, deltas)):
        flat = delta.swapaxes(0, 1).reshape(n * k, -1)
        inner = values @ values.T * model.scales[per_layer * depth] ** 2
        if architecture.biases:
            inner = inner + 1.0
        total = total + jnp.repeat(jnp.repeat(inner, k, 0), k, 1) * (flat @ flat.T)
    return total
