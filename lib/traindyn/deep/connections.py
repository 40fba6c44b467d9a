r"""How the neurons of one layer are connected to earlier ones.

A connection is a bilinear map :math:`s = W \cdot g` of weights and inputs; dividing by the root of
the in-degree and applying the activation is the layer's business. By bilinearity the derivatives
of a network in the weights of a connection have a fixed shape: with :math:`\delta` the derivative
of an output in s,

.. math:: \nabla_W f = T_\delta g, \qquad \langle T_\delta b, V \rangle = \delta^T (V \cdot b),

an outer product for a full matrix. The image of the Hessian in the weights lies in the space of
all :math:`V = T_a g + T_\delta b`, of the dimension of two layers instead of their product, and
:meth:`Dense.contract` is the Gram matrix of that parametrisation: it maps (a, b) to
:math:`(V \cdot g, V^T \delta)` without forming V. This is what makes the spectral norm of a
Hessian with :math:`10^7` rows a matter of a second, see :mod:`traindyn.deep.hessian`.

Weights come in two forms: a flat vector with one entry per free weight, which is what users see,
and the array in which products are fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["Connection", "Convolution", "Dense", "Masked", "mask_of"]

Metric: TypeAlias = Any


class Connection(Protocol):
    """What a layer uses of its connection to earlier layers."""

    @property
    def size(self) -> int:
        """Length of the sums."""

    @property
    def fan(self) -> int:
        """Length of the inputs."""

    @property
    def parameters(self) -> int:
        """Number of free weights."""

    def in_degrees(self) -> NDArray[np.int64]:
        """Count the trained connections into each neuron, shape (size,)."""

    def unpack(self, flat: Any) -> Any:
        """Array of the weights from the flat vector, of NumPy or of JAX alike."""

    def pack(self, array: Any) -> Any:
        """Flat vector of the weights from the array: inverse and transpose of unpacking."""

    def restrict(self, array: Any) -> Any:
        """Set the entries of an array to zero that are no weights."""

    def apply(self, weights: jax.Array, inputs: jax.Array) -> jax.Array:
        """Compute the sums W . g, shape (size,)."""

    def metric(self, inputs: jax.Array, delta: jax.Array) -> Metric:
        """Prepare :meth:`contract` at a point."""

    def contract(self, metric: Metric, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """V . g and V^T delta of V = T_a g + T_delta b."""

    def direction(
        self, inputs: jax.Array, delta: jax.Array, a: jax.Array, b: jax.Array
    ) -> jax.Array:
        """V = T_a g + T_delta b itself, as an array."""

    def gram(self, inputs: jax.Array, deltas: jax.Array) -> jax.Array:
        """Inner products of gradients at n points, shape (n, n)."""


@partial(jax.tree_util.register_dataclass, data_fields=[], meta_fields=["size", "fan"])
@dataclass(frozen=True)
class Dense:
    """Every neuron reads every input: a matrix of shape (size, fan)."""

    size: int
    fan: int

    @property
    def parameters(self) -> int:
        """Number of free weights."""
        return self.size * self.fan

    def in_degrees(self) -> NDArray[np.int64]:
        """Count the trained connections into each neuron, shape (size,)."""
        return np.full(self.size, self.fan)

    def unpack(self, flat: Any) -> Any:
        """Matrix of the weights, shape (size, fan)."""
        return flat.reshape(self.size, self.fan)

    def pack(self, array: Any) -> Any:
        """Flat vector of the weights, row by row."""
        return array.reshape(-1)

    def restrict(self, array: Any) -> Any:
        """Return the array itself: all entries are weights."""
        return array

    def apply(self, weights: jax.Array, inputs: jax.Array) -> jax.Array:
        """Compute the sums W g, shape (size,)."""
        return weights @ inputs

    def metric(self, inputs: jax.Array, delta: jax.Array) -> Metric:
        """Prepare :meth:`contract`."""
        return inputs, delta, inputs @ inputs, delta @ delta

    def contract(self, metric: Metric, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """V g and V^T delta of V = a g^T + delta b^T."""
        inputs, delta, g_squared, d_squared = metric
        return g_squared * a + delta * (b @ inputs), (a @ delta) * inputs + d_squared * b

    def direction(
        self, inputs: jax.Array, delta: jax.Array, a: jax.Array, b: jax.Array
    ) -> jax.Array:
        """V = a g^T + delta b^T."""
        return jnp.outer(a, inputs) + jnp.outer(delta, b)

    def gram(self, inputs: jax.Array, deltas: jax.Array) -> jax.Array:
        """Inner products of gradients at n points."""
        return (inputs @ inputs.T) * (deltas @ deltas.T)


@partial(jax.tree_util.register_dataclass, data_fields=["mask"], meta_fields=["size", "fan"])
@dataclass(frozen=True, eq=False)
class Masked:
    """A matrix with some of its entries fixed to zero.

    Attributes
    ----------
    size, fan : int
    mask : array of bool, shape (size, fan)
        The connections there are.
    """

    size: int
    fan: int
    mask: Any

    @property
    def parameters(self) -> int:
        """Number of free weights."""
        return int(np.count_nonzero(self.mask))

    def in_degrees(self) -> NDArray[np.int64]:
        """Count the trained connections into each neuron, shape (size,)."""
        return np.asarray(np.count_nonzero(self.mask, axis=1))

    def unpack(self, flat: Any) -> Any:
        """Matrix of the weights, zero where there is no connection, shape (size, fan)."""
        if isinstance(flat, np.ndarray):
            matrix = np.zeros((self.size, self.fan))
            matrix[np.asarray(self.mask)] = flat
            return matrix
        position = jnp.cumsum(self.mask.reshape(-1)).reshape(self.mask.shape) - 1
        return jnp.where(self.mask, flat[position], 0.0)

    def pack(self, array: Any) -> Any:
        """Flat vector of the weights there are, row by row."""
        return np.asarray(array)[np.asarray(self.mask)]

    def restrict(self, array: Any) -> Any:
        """Set the entries to zero where there is no connection."""
        return jnp.where(self.mask, array, 0.0)

    def apply(self, weights: jax.Array, inputs: jax.Array) -> jax.Array:
        """Compute the sums W g, shape (size,)."""
        return weights @ inputs

    def metric(self, inputs: jax.Array, delta: jax.Array) -> Metric:
        """Prepare :meth:`contract`."""
        cross = jnp.where(self.mask, jnp.outer(delta, inputs), 0.0)
        mask = self.mask.astype(inputs.dtype)
        return cross, mask @ inputs**2, delta**2 @ mask

    def contract(self, metric: Metric, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """V g and V^T delta of V = a g^T + delta b^T on the connections there are."""
        cross, g_squared, d_squared = metric
        return g_squared * a + cross @ b, a @ cross + d_squared * b

    def direction(
        self, inputs: jax.Array, delta: jax.Array, a: jax.Array, b: jax.Array
    ) -> jax.Array:
        """V = a g^T + delta b^T, of which packing picks the connections there are."""
        return jnp.outer(a, inputs) + jnp.outer(delta, b)

    def gram(self, inputs: jax.Array, deltas: jax.Array) -> jax.Array:
        """Inner products of gradients at n points."""
        mask = self.mask.astype(inputs.dtype)

        def row(point: tuple[jax.Array, jax.Array]) -> jax.Array:
            g, delta = point
            return jnp.sum(((inputs * g) @ mask.T) * (deltas * delta), axis=1)

        rows: jax.Array = jax.lax.map(row, (inputs, deltas))
        return rows


@partial(
    jax.tree_util.register_dataclass,
    data_fields=[],
    meta_fields=["channels", "sources", "positions", "kernel"],
)
@dataclass(frozen=True)
class Convolution:
    """One-dimensional convolution: stride one, zero padding (ZHU (A.15)).

    Inputs and sums are flat, channel by channel.

    Attributes
    ----------
    channels : int
        Channels of the sums.
    sources : int
        Channels of the inputs.
    positions : int
    kernel : int
        Odd number of neighbouring positions read.
    """

    channels: int
    sources: int
    positions: int
    kernel: int

    @property
    def size(self) -> int:
        """Length of the sums."""
        return self.channels * self.positions

    @property
    def fan(self) -> int:
        """Length of the inputs."""
        return self.sources * self.positions

    @property
    def parameters(self) -> int:
        """Number of free weights."""
        return self.channels * self.sources * self.kernel

    def in_degrees(self) -> NDArray[np.int64]:
        """Count the connections into each neuron; the padding counts, as in the source."""
        return np.full(self.size, self.sources * self.kernel)

    def unpack(self, flat: Any) -> Any:
        """Matrix of the weights, shape (channels, sources * kernel)."""
        return flat.reshape(self.channels, self.sources * self.kernel)

    def pack(self, array: Any) -> Any:
        """Flat vector of the weights: channel, source, tap."""
        return array.reshape(-1)

    def _patches(self, inputs: jax.Array) -> jax.Array:
        """Gather what each position reads, shape (sources * kernel, positions)."""
        half = self.kernel // 2
        padded = jnp.pad(inputs.reshape(self.sources, self.positions), ((0, 0), (half, half)))
        taps = [padded[:, tap : tap + self.positions] for tap in range(self.kernel)]
        return jnp.stack(taps, axis=1).reshape(self.sources * self.kernel, self.positions)

    def _fold(self, patches: jax.Array) -> jax.Array:
        """Apply the transpose of :meth:`_patches`."""
        half, taps = self.kernel // 2, patches.reshape(self.sources, self.kernel, self.positions)
        padded = jnp.zeros((self.sources, self.positions + 2 * half), dtype=patches.dtype)
        for tap in range(self.kernel):
            padded = padded.at[:, tap : tap + self.positions].add(taps[:, tap])
        return padded[:, half : half + self.positions].reshape(-1)

    def restrict(self, array: Any) -> Any:
        """Return the array itself: all entries are weights."""
        return array

    def apply(self, weights: jax.Array, inputs: jax.Array) -> jax.Array:
        """Compute the sums, shape (channels * positions,)."""
        return (weights @ self._patches(inputs)).reshape(-1)

    def metric(self, inputs: jax.Array, delta: jax.Array) -> Metric:
        """Prepare :meth:`contract`."""
        patches = self._patches(inputs)
        delta = delta.reshape(self.channels, self.positions)
        return patches, delta, patches.T @ patches, delta.T @ delta

    def contract(self, metric: Metric, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """V . g and V^T delta of V = A P^T + delta B^T, P and B the patches of g and b."""
        patches, delta, p_squared, d_squared = metric
        a = a.reshape(self.channels, self.positions)
        other = self._patches(b)
        sums = a @ p_squared + delta @ (other.T @ patches)
        back = patches @ (a.T @ delta) + other @ d_squared
        return sums.reshape(-1), self._fold(back)

    def direction(
        self, inputs: jax.Array, delta: jax.Array, a: jax.Array, b: jax.Array
    ) -> jax.Array:
        """V = A P^T + delta B^T."""
        shape = self.channels, self.positions
        first = a.reshape(shape) @ self._patches(inputs).T
        return first + delta.reshape(shape) @ self._patches(b).T

    def gram(self, inputs: jax.Array, deltas: jax.Array) -> jax.Array:
        """Inner products of gradients at n points."""
        patches = jax.vmap(self._patches)(inputs)
        deltas = deltas.reshape(-1, self.channels, self.positions)
        p = jnp.einsum("nks,mkt->nmst", patches, patches)
        d = jnp.einsum("ncs,mct->nmst", deltas, deltas)
        return jnp.sum(p * d, axis=(2, 3))


def mask_of(connection: Connection) -> NDArray[np.bool_]:
    """Return which entries of a layer's matrix are weights.

    Parameters
    ----------
    connection : Connection
        A :class:`Dense`, with all entries, or a :class:`Masked`, with those of its mask.

    Returns
    -------
    ndarray of bool, shape (size, fan)

    Raises
    ------
    ValueError
        If the connection is not a matrix.
    """
    if isinstance(connection, Masked):
        return np.asarray(connection.mask)
    if isinstance(connection, Dense):
        return np.ones((connection.size, connection.fan), dtype=bool)
    raise ValueError(
        f"network must have layers of matrices, got one with {type(connection).__name__}"
    )
