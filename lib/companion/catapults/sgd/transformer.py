"""The small vision transformer of the table of super-critical steps (ZHU Table 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from traindyn import _validate
from traindyn.activations import Elementwise
from traindyn.deep.activations import resolve
from traindyn.deep.architectures import Parameter, Weights
from traindyn.deep.models import Model, Parameterisation, image_shape

__all__ = ["Transformer", "vision_transformer"]


@dataclass(frozen=True)
class Transformer:
    """Small vision transformer: patches, blocks of attention and of two layers, mean, linear layer.

    Every block normalises what it reads to mean zero and variance one at each patch, without
    trained factors.

    Attributes
    ----------
    shape : tuple of int
        Channels, height and width of an input.
    patch : int
        Pixels along an edge of a patch.
    width, heads, depth : int
    outputs : int
    activation : callable
        Of the second half of a block, whose hidden layer has twice the width.
    """

    shape: tuple[int, int, int]
    patch: int
    width: int
    heads: int
    depth: int
    outputs: int
    activation: Elementwise

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return int(np.prod(self.shape))

    def parameters(self) -> tuple[Parameter, ...]:
        """List embedding, positions, the six maps of every block, and the last layer."""
        c, h, w = self.shape
        read, tokens, m = c * self.patch**2, (h // self.patch) * (w // self.patch), self.width
        square = Parameter((m, m), m)
        block = [square] * 4 + [Parameter((m, 2 * m), m), Parameter((2 * m, m), 2 * m)]
        first = [Parameter((read, m), read), Parameter((tokens, m), 1)]
        return (*first, *(block * self.depth), Parameter((m, self.outputs), m))

    def __call__(self, arrays: Weights, inputs: jax.Array) -> jax.Array:
        """Map inputs to outputs."""
        rest = iter(arrays)
        c, h, w = self.shape
        p = self.patch
        cut = inputs.reshape(-1, c, h // p, p, w // p, p).transpose(0, 2, 4, 1, 3, 5)
        tokens = cut.reshape(len(inputs), -1, c * p * p) @ next(rest) + next(rest)
        for _ in range(self.depth):
            tokens = tokens + self._attend(_normalised(tokens), rest)
            hidden = self.activation(_normalised(tokens) @ next(rest))
            tokens = tokens + hidden @ next(rest)
        return _normalised(tokens).mean(axis=1) @ next(rest)

    def _attend(self, tokens: jax.Array, rest: Any) -> jax.Array:
        n, count, _ = tokens.shape
        size = self.width // self.heads
        q, k, v = (
            (tokens @ next(rest)).reshape(n, count, self.heads, size).swapaxes(1, 2)
            for _ in range(3)
        )
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(size), axis=-1)
        mixed: jax.Array = (weights @ v).swapaxes(1, 2).reshape(n, count, -1) @ next(rest)
        return mixed


def _normalised(tokens: jax.Array) -> jax.Array:
    centred = tokens - tokens.mean(axis=-1, keepdims=True)
    # The small number keeps the derivative finite where all entries agree.
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)


def vision_transformer(
    shape: Sequence[int],
    *,
    patch: int = 2,
    width: int = 32,
    heads: int = 4,
    depth: int = 2,
    outputs: int = 1,
    activation: str | Elementwise = "relu",
    parameterisation: Parameterisation = "ntk",
) -> Model:
    """Make a small vision transformer.

    Parameters
    ----------
    shape : sequence of int
        Height and width of an image, or channels, height and width.
    patch : int, default 2
        Pixels along an edge of a patch; divides height and width.
    width, heads : int
        The width is a multiple of the number of heads.
    depth : int, default 2
        Blocks.
    outputs : int, default 1
        Number of outputs of the last layer.
    activation : str or callable
        Of the hidden layer in each block, as for :func:`~traindyn.deep.models.perceptron`.
    parameterisation : {"ntk", "pytorch"}
        As for :func:`~traindyn.deep.models.perceptron`.

    Raises
    ------
    ValueError
        If a size is not positive, `patch` or `heads` does not divide what it should, or a name
        is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.catapults.sgd.transformer import vision_transformer
    >>> model = vision_transformer((4, 4), width=8)
    >>> weights, batch = model.initial(rng=0), model.prepare(np.ones((3, 16)))
    >>> model.outputs(weights, batch).shape
    (3,)
    """
    image = image_shape(shape)
    edge = _validate.integer("patch", patch, least=1)
    if image[1] % edge or image[2] % edge:
        raise ValueError(f"patch must divide height and width {image[1:]}, got {edge}")
    size = _validate.integer("width", width, least=1)
    count = _validate.integer("heads", heads, least=1)
    if size % count:
        raise ValueError(f"heads must divide the width {size}, got {count}")
    architecture = Transformer(
        image,
        edge,
        size,
        count,
        _validate.integer("depth", depth, least=1),
        _validate.integer("outputs", outputs, least=1),
        resolve(activation),
    )
    return Model(architecture, parameterisation)
