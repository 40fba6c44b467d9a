r"""Deep networks that :func:`~traindyn.catapults.training.train` trains.

In the NTK parameterisation (ZHU Appendix C.6) all weights start as standard Gaussians and are
divided by the root of the in-degree where they are used; biases, if any, are not divided. In that
of PyTorch weights and biases start uniform on :math:`\pm fan^{-1/2}` and are used as they are.
The source's numbers come out in the first without biases, which is the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

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
from traindyn.deep.differentiated import Batch, Code, Differentiated

__all__ = ["Model", "image_network", "perceptron", "wide_resnet"]

Parameterisation: TypeAlias = Literal["ntk", "pytorch"]


@dataclass(frozen=True)
class Model(Differentiated, Code):
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
        given = _validate.finite("inputs", inputs, shape=(None, self.architecture.inputs))
        return Batch(_validate.frozen(given))

    @cached_property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(one.shape for one in self.architecture.parameters())

    @property
    def _code(self) -> tuple[Code, Weights]:
        return self, ()

    def _check(self, weights: Weights, batch: Batch, labels: Array | None = None) -> None:
        _validate.providing("batch", batch, "inputs")
        found = tuple(np.shape(w) for w in _validate.listed("weights", weights))
        if found != self._shapes:
            raise ValueError(f"weights must have the shapes {self._shapes}, got {found}")
        shape, size = np.shape(batch.inputs), self.architecture.inputs
        if len(shape) != 2 or shape[1] != size:
            raise ValueError(f"batch.inputs must have shape (any, {size}), got {shape}")
        if labels is not None:
            count, outputs = shape[0], self.architecture.outputs
            wanted = (count,) if outputs == 1 else (count, outputs)
            if np.shape(labels) != wanted:
                raise ValueError(f"labels must have shape {wanted}, got {np.shape(labels)}")

    def apply(self, weights: Weights, inputs: jax.Array) -> jax.Array:
        """Return the outputs as `outputs` does, as a function that JAX differentiates."""
        scaled = tuple(s * w for s, w in zip(self.scales, weights))
        found = self.architecture(scaled, inputs)
        return found[:, 0] if self.architecture.outputs == 1 else found

    def evaluate(self, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
        """Return the outputs; nothing is fixed."""
        return self.apply(weights, inputs)

    def gram(self, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
        """Return the tangent kernel, that of a perceptron layer by layer."""
        if isinstance(self.architecture, Perceptron):
            return _layered_kernel(self, self.architecture, weights, inputs)
        return super().gram(fixed, weights, inputs)


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
