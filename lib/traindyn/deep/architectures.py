r"""Architectures that are trained whole: perceptron, image network and residual network.

An architecture lists its arrays and maps them, already scaled, and a batch of inputs to outputs;
:mod:`~traindyn.deep.models` draws the arrays and scales them. Channels come last inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from traindyn.activations import Elementwise

__all__ = ["Architecture", "ImageNetwork", "Parameter", "Perceptron", "WideResidual"]

Weights: TypeAlias = tuple[jax.Array, ...]


class Parameter(NamedTuple):
    """An array of weights.

    Attributes
    ----------
    shape : tuple of int
    fan : int
        In-degree of the neurons it leads to.
    bias : bool
    """

    shape: tuple[int, ...]
    fan: int
    bias: bool = False


class Architecture(Protocol):
    """What a model uses of its architecture; hashable, as compilation depends on it."""

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        ...

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        ...

    def parameters(self) -> tuple[Parameter, ...]:
        """List the arrays of weights."""
        ...

    def __call__(self, arrays: Weights, inputs: jax.Array) -> jax.Array:
        """Map inputs of shape (n, inputs) to outputs of shape (n, outputs)."""
        ...


@dataclass(frozen=True)
class Perceptron:
    """Fully connected network (ZHU Appendix C.6).

    Attributes
    ----------
    sizes : tuple of int
        Inputs, hidden layers, outputs.
    activation : callable
    biases : bool
    """

    sizes: tuple[int, ...]
    activation: Elementwise
    biases: bool

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return self.sizes[0]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.sizes[-1]

    def parameters(self) -> tuple[Parameter, ...]:
        """List the weights of each layer, as (fan, size), then its biases."""
        found = []
        for fan, size in pairwise(self.sizes):
            found.append(Parameter((fan, size), fan))
            if self.biases:
                found.append(Parameter((size,), fan, bias=True))
        return tuple(found)

    def __call__(self, arrays: Weights, inputs: jax.Array) -> jax.Array:
        """Map inputs to outputs."""
        shifts = tuple(jnp.zeros(()) for _ in self.sizes[1:])
        return self.follow(arrays, inputs, shifts)[0]

    def follow(self, arrays: Weights, inputs: jax.Array, shifts: Any) -> tuple[jax.Array, Any]:
        """Map inputs to outputs with something added to the sums of each layer.

        Also returned is what each layer reads.
        """
        per_layer = 2 if self.biases else 1
        values, read = inputs, []
        for depth, shift in enumerate(shifts):
            read.append(values)
            sums = values @ arrays[per_layer * depth] + shift
            if self.biases:
                sums = sums + arrays[per_layer * depth + 1]
            values = sums if depth == len(shifts) - 1 else self.activation(sums)
        return values, read


@dataclass(frozen=True)
class ImageNetwork:
    """Convolutional layers of stride one, then a full linear layer (ZHU Appendix C.6).

    Attributes
    ----------
    shape : tuple of int
        Channels, height and width of an input.
    channels : tuple of int
        Of the convolutional layers.
    filter : int
        Pixels along an edge of a filter; zeros pad the image so that its size stays.
    outputs : int
    activation : callable
    biases : bool
    """

    shape: tuple[int, int, int]
    channels: tuple[int, ...]
    filter: int
    outputs: int
    activation: Elementwise
    biases: bool

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return int(np.prod(self.shape))

    def parameters(self) -> tuple[Parameter, ...]:
        """List the weights of each layer, then its biases."""
        found = []
        for sources, channels in pairwise((self.shape[0], *self.channels)):
            fan = self.filter**2 * sources
            found.append(Parameter((fan, channels), fan))
            if self.biases:
                found.append(Parameter((channels,), fan, bias=True))
        fan = self.channels[-1] * self.shape[1] * self.shape[2]
        found.append(Parameter((fan, self.outputs), fan))
        if self.biases:
            found.append(Parameter((self.outputs,), fan, bias=True))
        return tuple(found)

    def __call__(self, arrays: Weights, inputs: jax.Array) -> jax.Array:
        """Map inputs to outputs."""
        per_layer = 2 if self.biases else 1
        values = _pixels(self.shape, inputs)
        for depth in range(len(self.channels)):
            sums = _patches(values, self.filter) @ arrays[per_layer * depth]
            if self.biases:
                sums = sums + arrays[per_layer * depth + 1]
            values = self.activation(sums)
        flat = values.reshape(len(inputs), -1) @ arrays[per_layer * len(self.channels)]
        return flat + arrays[-1] if self.biases else flat


@dataclass(frozen=True)
class WideResidual:
    """Wide residual network without normalisation: three groups of blocks of two convolutions.

    A block adds the convolution of a convolution, each after the activation, to its input, or,
    where the number of channels or pixels changes, to a linear map of its activated input.
    Groups have one, two and four times ``base * widen`` channels; the last two halve the image.
    Pixels are averaged at the end. Normalisation over a batch, which would make the output of one
    input depend on the others, is left out.

    Attributes
    ----------
    shape : tuple of int
        Channels, height and width of an input.
    blocks : int
        In each group.
    widen : int
    base : int
        Channels of the first convolution.
    outputs : int
    activation : callable
    """

    shape: tuple[int, int, int]
    blocks: int
    widen: int
    base: int
    outputs: int
    activation: Elementwise

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return int(np.prod(self.shape))

    def _plan(self) -> list[tuple[int, int, int]]:
        """Channels read, channels and stride of every block."""
        plan, sources = [], self.base
        for group in range(3):
            channels = self.base * self.widen * 2**group
            for block in range(self.blocks):
                plan.append((sources, channels, 2 if group and not block else 1))
                sources = channels
        return plan

    def parameters(self) -> tuple[Parameter, ...]:
        """List the first convolution, those of the blocks with their maps, and the last layer."""
        found = [Parameter((9 * self.shape[0], self.base), 9 * self.shape[0])]
        for sources, channels, stride in self._plan():
            found.append(Parameter((9 * sources, channels), 9 * sources))
            found.append(Parameter((9 * channels, channels), 9 * channels))
            if sources != channels or stride > 1:
                found.append(Parameter((sources, channels), sources))
        last = self.base * self.widen * 4
        return (*found, Parameter((last, self.outputs), last))

    def __call__(self, arrays: Weights, inputs: jax.Array) -> jax.Array:
        """Map inputs to outputs."""
        rest = iter(arrays)
        values = _patches(_pixels(self.shape, inputs), 3) @ next(rest)
        for sources, channels, stride in self._plan():
            active = self.activation(values)
            inner = _patches(active, 3)[:, ::stride, ::stride] @ next(rest)
            branch = _patches(self.activation(inner), 3) @ next(rest)
            if sources != channels or stride > 1:
                values = active[:, ::stride, ::stride] @ next(rest)
            values = values + branch
        last: jax.Array = self.activation(values).mean(axis=(1, 2)) @ next(rest)
        return last


def _patches(values: jax.Array, size: int) -> jax.Array:
    """Gather the neighbours of every pixel, shape (n, h, w, size * size * channels)."""
    before = (size - 1) // 2
    after = size - 1 - before
    padded = jnp.pad(values, ((0, 0), (before, after), (before, after), (0, 0)))
    h, w = values.shape[1:3]
    taps = [padded[:, i : i + h, j : j + w] for i in range(size) for j in range(size)]
    return jnp.concatenate(taps, axis=-1)


def _pixels(shape: tuple[int, int, int], inputs: jax.Array) -> jax.Array:
    """Return flat images, channel by channel, as (n, height, width, channels)."""
    return jnp.moveaxis(inputs.reshape(-1, *shape), 1, -1)
