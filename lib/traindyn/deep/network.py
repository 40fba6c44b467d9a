r"""Feedforward networks as a list of layers, each reading any of the earlier ones.

A neuron v of the source (ZHU (2.2)) has the value

.. math::

   f_v = \sigma_v(\tilde f_v), \qquad
   \tilde f_v = \frac{1}{\sqrt{in(v)}} \sum_{u \in S_{in}(v)} w_{(u, v)} f_u ,

with one weight per edge, all standard Gaussian at initialisation, and no biases. Neurons whose
longest path from an input has the same length form a layer and are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import Elementwise
from traindyn.deep.activations import identity
from traindyn.deep.connections import Connection, Dense, Masked

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Layer", "Network"]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["connection", "scale", "which", "skips"],
    meta_fields=["sources", "activations"],
)
@dataclass(frozen=True, eq=False)
class Layer:
    """Neurons that are computed together.

    Attributes
    ----------
    connection : Connection
        How the sums depend on weights and inputs.
    sources : tuple of int
        Earlier layers whose values, one after the other, are the inputs; 0 is x.
    activations : tuple of callable
    scale : array, shape (size,)
        One over the root of the in-degree.
    which : array of int, shape (size,), or None
        Activation of each neuron; None if there is only one.
    skips : tuple of two arrays of int, or None
        Neurons of this layer, ascending, and entries of the inputs that are added to their
        values as they are (ZHU (A.12)).
    """

    connection: Connection
    sources: tuple[int, ...]
    activations: tuple[Elementwise, ...]
    scale: Any
    which: Any = None
    skips: Any = None

    def value(self, sums: jax.Array, inputs: jax.Array) -> jax.Array:
        """Values of the neurons from their scaled sums."""
        value: jax.Array
        if self.which is None:
            value = self.activations[0](sums)
        else:
            candidates = jnp.stack([activation(sums) for activation in self.activations])
            value = jnp.take_along_axis(candidates, self.which[None], axis=0)[0]
        if self.skips is not None:
            heads, tails = self.skips
            value = value.at[heads].add(inputs[tails])
        return value


def layer(
    connection: Connection,
    sources: Sequence[int],
    activation: Elementwise | tuple[Elementwise, ...],
    *,
    which: NDArray[np.int64] | None = None,
    skips: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> Layer:
    """Make a layer, with the scale of the NTK parameterisation."""
    degrees = connection.in_degrees()
    if degrees.min(initial=1) < 1:
        raise ValueError("every neuron must have a connection, got an in-degree of 0")
    activations = activation if isinstance(activation, tuple) else (activation,)
    scale = jnp.asarray(1 / np.sqrt(degrees))
    return Layer(connection, tuple(sources), activations, scale, which, skips)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["layers", "readout"],
    meta_fields=["inputs"],
)
@dataclass(frozen=True, eq=False)
class Network:
    """A feedforward network; the weights are passed to it, never kept.

    Made by the builders of :mod:`traindyn.deep.builders` or from a graph.

    Attributes
    ----------
    inputs : int
        Dimension d of x.
    layers : tuple of Layer
    readout : array of int or None
        Which of all values, inputs first, are the outputs; None: those of the last layer.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.deep import fully_connected
    >>> network = fully_connected([3, 64, 64, 1])
    >>> network.parameters, network.width, network.depth
    (4352, 64, 3)
    >>> network.values(network.initial(rng=0), np.ones((5, 3))).shape
    (5, 1)
    """

    inputs: int
    layers: tuple[Layer, ...]
    readout: Any = None

    @property
    def depth(self) -> int:
        """Number L of layers of weights."""
        return len(self.layers)

    @cached_property
    def parameters(self) -> int:
        """Number P of free weights."""
        return sum(layer.connection.parameters for layer in self.layers)

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        last: int = self.layers[-1].connection.size if self.readout is None else len(self.readout)
        return last

    @cached_property
    def in_degrees(self) -> tuple[NDArray[np.int64], ...]:
        """In-degrees of the neurons, layer by layer from the first."""
        return tuple(_validate.frozen(layer.connection.in_degrees()) for layer in self.layers)

    @property
    def width(self) -> int:
        """Smallest in-degree after the first layer (ZHU (2.8))."""
        if self.depth < 2:
            raise ValueError("the width is that of the layers after the first; there are none")
        return int(min(degrees.min() for degrees in self.in_degrees[1:]))

    def initial(self, *, rng: RNG) -> Array:
        """Draw standard Gaussian weights, shape (P,)."""
        return _validate.generator("rng", rng).standard_normal(self.parameters)

    def values(self, weights: ArrayLike, points: ArrayLike) -> Array:
        """Compute the outputs at points.

        Parameters
        ----------
        weights : array_like, shape (P,)
            All free weights, as :meth:`initial` draws them.
        points : array_like, shape (n, d)
            Inputs, one per row.

        Returns
        -------
        ndarray, shape (n, outputs)

        Raises
        ------
        ValueError
            If a shape is wrong or an entry is not finite.
        """
        arrays = self.unpack(weights)
        return np.asarray(_values(self, arrays, self.check_points(points)))

    def neurons(self, weights: ArrayLike, points: ArrayLike) -> tuple[Array, ...]:
        """Values of all neurons at points, one array of shape (n, size) per layer."""
        arrays = self.unpack(weights)
        found = _neurons(self, arrays, self.check_points(points))
        return tuple(np.asarray(values) for values in found)

    def head(self, depth: int) -> Network:
        """Network whose outputs are the scaled sums of a layer, before its activation.

        In wide networks the Hessians of these sums are small, like that of the output (ZHU Theorem
        2.3.8).

        Parameters
        ----------
        depth : int
            The layer, from 1.

        Raises
        ------
        ValueError
            If there is no such layer.
        """
        depth = _validate.integer("depth", depth, least=1, most=self.depth)
        last = replace(self.layers[depth - 1], activations=(identity,), which=None, skips=None)
        return Network(self.inputs, (*self.layers[: depth - 1], last))

    def unpack(self, weights: ArrayLike) -> tuple[Array, ...]:
        """Weights in the form of each layer.

        Raises
        ------
        ValueError
            If their number is wrong or one is not finite.
        """
        parts = self.split(_validate.finite("weights", weights, shape=(self.parameters,)))
        return tuple(layer.connection.unpack(w) for layer, w in zip(self.layers, parts))

    def split(self, flat: Array) -> list[Array]:
        """Cut an array of P rows into those of the layers."""
        ends = np.cumsum([layer.connection.parameters for layer in self.layers])
        return np.split(flat, ends[:-1])

    def check_points(self, points: ArrayLike) -> Array:
        """Return inputs as an array of shape (n, d), or say what is wrong with them."""
        return _validate.finite("points", points, shape=(None, self.inputs))

    def check_point(self, point: ArrayLike) -> Array:
        """Return one input as an array of shape (d,), a copy only if it must be, or refuse it."""
        return _validate.finite("point", point, shape=(self.inputs,))

    def check_output(self, output: int) -> int:
        """Return the number of an output, or say what is wrong with it."""
        return _validate.integer("output", output, least=0, most=self.outputs - 1)

    def graph(self) -> nx.DiGraph:
        """Return the network as a graph: vertices (layer, neuron), inputs in layer 0.

        Edges added as they are, without a weight, have the attribute ``skip``. A hidden neuron
        that no other neuron reads is an output of the graph, though none of the network.

        Raises
        ------
        ValueError
            If it is convolutional (the padding is no vertex, but counts in the in-degree) or
            comes from a graph already.
        """
        import networkx as nx

        graph = nx.DiGraph()
        vertices = [[(0, i) for i in range(self.inputs)]]
        graph.add_nodes_from(vertices[0])
        for depth, layer in enumerate(self.layers, start=1):
            if not isinstance(layer.connection, (Dense, Masked)):
                raise ValueError(
                    "graph() must be asked of a network of matrices, got one with "
                    f"{type(layer.connection).__name__}"
                )
            tails = [v for source in layer.sources for v in vertices[source]]
            vertices.append([(depth, i) for i in range(layer.connection.size)])
            graph.add_nodes_from(vertices[-1])
            shape = layer.connection.size, layer.connection.fan
            mask = np.asarray(getattr(layer.connection, "mask", np.ones(shape, dtype=bool)))
            for i, j in np.argwhere(mask):
                graph.add_edge(tails[j], vertices[-1][i])
            if layer.skips is not None:
                for i, j in np.transpose(layer.skips):
                    if graph.has_edge(tails[j], vertices[-1][i]):
                        raise ValueError("a skip connection runs along a trained edge")
                    graph.add_edge(tails[j], vertices[-1][i], skip=True)
        return graph


def forward(
    network: Network,
    arrays: Sequence[Any],
    point: jax.Array,
    shifts: Sequence[Any] | None = None,
) -> tuple[list[jax.Array], list[jax.Array]]:
    """Run a network on one input.

    Parameters
    ----------
    network : Network
        Its layers are applied one after the other.
    arrays : sequence of array
        Weights in the form of each layer.
    point : array, shape (d,)
        The one input.
    shifts : sequence of array, optional
        Added to the sums of each layer before they are scaled.

    Returns
    -------
    values : list of array
        Of the layers, inputs first.
    inputs : list of array
        What each layer reads.
    """
    values, inputs = [point], []
    for number, (layer, weights) in enumerate(zip(network.layers, arrays)):
        parts = [values[source] for source in layer.sources]
        inputs.append(parts[0] if len(parts) == 1 else jnp.concatenate(parts))
        sums = layer.connection.apply(weights, inputs[-1])
        if shifts is not None:
            sums = sums + shifts[number]
        values.append(layer.value(layer.scale * sums, inputs[-1]))
    return values, inputs


def read(network: Network, values: Sequence[jax.Array]) -> jax.Array:
    """Pick the outputs among the values of all layers."""
    if network.readout is None:
        return values[-1]
    return jnp.concatenate(values)[network.readout]


@jax.jit
def _values(network: Network, arrays: Any, points: jax.Array) -> jax.Array:
    def value(point: jax.Array) -> jax.Array:
        return read(network, forward(network, arrays, point)[0])

    return jax.vmap(value)(points)


@jax.jit
def _neurons(network: Network, arrays: Any, points: jax.Array) -> list[jax.Array]:
    return jax.vmap(lambda point: forward(network, arrays, point)[0][1:])(points)
