"""Architectures of the source, layer by layer, as matrices (ZHU Appendix A).

All have standard Gaussian weights divided by the root of the in-degree, no biases and, unless
asked otherwise, linear outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from traindyn import _validate
from traindyn._types import RNG
from traindyn.activations import Elementwise
from traindyn.deep.activations import resolve
from traindyn.deep.connections import Convolution, Dense, Masked, mask_of
from traindyn.deep.network import Layer, Network, layer

__all__ = [
    "convolutional",
    "densenet",
    "drop_edges",
    "fully_connected",
    "residual",
    "with_bottlenecks",
]


def fully_connected(
    sizes: Sequence[int],
    *,
    activation: str | Elementwise = "tanh",
    output_activation: str | Elementwise = "identity",
) -> Network:
    """Fully connected network (ZHU (A.4)).

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden layers, outputs; a narrow layer among wide ones is a bottleneck layer.
    activation, output_activation : str or callable
        See :func:`~traindyn.deep.activations.resolve`. An output that is not linear breaks the
        transition to linearity.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, one is not positive, or an activation has no
        derivative.
    """
    inputs, *rest = _sizes(sizes)
    functions = _functions(len(rest), activation, output_activation)
    layers, fan = [], inputs
    for depth, (size, function) in enumerate(zip(rest, functions)):
        layers.append(layer(Dense(size, fan), (depth,), function))
        fan = size
    return Network(inputs, tuple(layers))


def densenet(
    sizes: Sequence[int],
    *,
    activation: str | Elementwise = "tanh",
    output_activation: str | Elementwise = "identity",
    read_inputs: bool = True,
) -> Network:
    """Network in which every layer reads all earlier ones (ZHU (A.5), (A.6)).

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden layers, outputs.
    activation, output_activation : str or callable
        As for :func:`fully_connected`.
    read_inputs : bool
        Whether the inputs of the network are among what the layers after the first read, as in
        the source. They add a constant to the in-degrees that delays the asymptotics.

    Raises
    ------
    ValueError
        As :func:`fully_connected`.
    """
    inputs, *rest = known = _sizes(sizes)
    functions = _functions(len(rest), activation, output_activation)
    layers = []
    for depth, (size, function) in enumerate(zip(rest, functions)):
        sources = tuple(range(0 if read_inputs or depth == 0 else 1, depth + 1))
        fan = sum(known[source] for source in sources)
        layers.append(layer(Dense(size, fan), sources, function))
    return Network(inputs, tuple(layers))


def residual(
    sizes: Sequence[int],
    *,
    activation: str | Elementwise = "tanh",
    output_activation: str | Elementwise = "identity",
) -> Network:
    """Fully connected network whose hidden layers add their inputs to their values (ZHU (A.12)).

    These skip connections leave the Hessian of wide networks small, as each value is added once;
    if all neurons add the same value, it does not become small, against ZHU Theorem A.4.1.

    The first hidden layer does so only if it is as wide as the inputs; the output layer never.

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden layers of one width, outputs.
    activation, output_activation : str or callable
        As for :func:`fully_connected`.

    Raises
    ------
    ValueError
        As :func:`fully_connected`, and if the hidden layers differ in width.
    """
    known = _sizes(sizes)
    hidden = set(known[1:-1])
    if len(hidden) != 1:
        raise ValueError(f"sizes must have hidden layers of one width, got {list(known)}")
    plain = fully_connected(sizes, activation=activation, output_activation=output_activation)
    everyone = np.arange(known[1])
    layers = [
        replace(one, skips=(everyone, everyone)) if one.connection.fan == known[1] else one
        for one in plain.layers[:-1]
    ]
    return Network(plain.inputs, (*layers, plain.layers[-1]))


def convolutional(
    channels: Sequence[int],
    *,
    positions: int,
    kernel: int = 3,
    outputs: int = 1,
    activation: str | Elementwise = "tanh",
    output_activation: str | Elementwise = "identity",
) -> Network:
    """One-dimensional convolutional network with shared weights (ZHU (A.15)).

    Each weight is shared as often as there are positions, whatever the width, and so the Hessian
    of wide networks stays small (ZHU Theorem A.5.1).

    Parameters
    ----------
    channels : sequence of int
        Of the inputs and of the convolutional layers; an input has ``channels[0] * positions``
        entries, channel by channel. A full inner product follows the last of them.
    positions : int
        Length of the signal; stride one and zero padding keep it.
    kernel : int
        Odd.
    outputs : int
        Number of full inner products at the end, at least 1.
    activation, output_activation : str or callable
        As for :func:`fully_connected`.

    Raises
    ------
    ValueError
        As :func:`fully_connected`, and if the kernel is even.
    """
    known = _sizes(channels, "channels")
    positions = _validate.integer("positions", positions, least=1)
    kernel = _validate.integer("kernel", kernel, least=1)
    outputs = _validate.integer("outputs", outputs, least=1)
    if kernel % 2 == 0:
        raise ValueError(f"kernel must be odd, got {kernel}")
    *functions, last = _functions(len(known), activation, output_activation)
    layers = [
        layer(Convolution(known[depth + 1], known[depth], positions, kernel), (depth,), function)
        for depth, function in enumerate(functions)
    ]
    layers.append(layer(Dense(outputs, known[-1] * positions), (len(functions),), last))
    return Network(known[0] * positions, tuple(layers))


def drop_edges(network: Network, keep: float, *, rng: RNG) -> Network:
    """Remove edges at random, once and for all.

    In-degrees, and so the scaling of the sums, are those after the removal. A neuron that lost
    all its edges gets one of them back, for it would be an input of the network otherwise. The
    probability is that of *keeping* an edge: the source has it both ways.

    Parameters
    ----------
    network : Network
        Not convolutional, not made from a graph.
    keep : float
        In (0, 1].
    rng : int, SeedSequence or Generator
        Draws the edges that stay, and those that come back.

    Raises
    ------
    ValueError
        If `keep` is out of range or a layer is not a matrix.
    """
    keep = _validate.positive("keep", keep)
    if keep > 1:
        raise ValueError(f"keep must be in (0, 1], got {keep}")
    generator = _validate.generator("rng", rng)
    layers = []
    for one in network.layers:
        mask = mask_of(one.connection)
        kept = mask & (generator.random(mask.shape, dtype=np.float32) < keep)
        for row in np.flatnonzero(~kept.any(axis=1)):
            kept[row, generator.choice(np.flatnonzero(mask[row]))] = True
        layers.append(masked(one, kept))
    return Network(network.inputs, tuple(layers), network.readout)


def with_bottlenecks(
    network: Network, depth: int, count: int, *, shared: bool = False, rng: RNG
) -> Network:
    """Leave some neurons of a layer a single edge each (ZHU Appendix A.6).

    Parameters
    ----------
    network : Network
        Not convolutional, not made from a graph.
    depth : int
        The layer, from 2: in-degrees of the first layer do not count.
    count : int
        How many neurons.
    shared : bool
        Whether all these neurons keep the edge from the same neuron, instead of from different
        ones as far as there are any.
    rng : int, SeedSequence or Generator
        Draws the neurons, and the edges that they keep.

    Raises
    ------
    ValueError
        If there are no such layer or not so many neurons, or the layer is not a matrix.
    """
    depth = _validate.integer("depth", depth, least=2, most=network.depth)
    one = network.layers[depth - 1]
    mask = mask_of(one.connection).copy()
    count = _validate.integer("count", count, least=1, most=mask.shape[0])
    generator = _validate.generator("rng", rng)
    parents = np.resize(generator.permutation(mask.shape[1]), count)
    if shared:
        parents[:] = parents[0]
    rows = generator.choice(mask.shape[0], count, replace=False)
    mask[rows] = False
    mask[rows, parents] = True
    layers = list(network.layers)
    layers[depth - 1] = masked(one, mask)
    return Network(network.inputs, tuple(layers), network.readout)


def _sizes(sizes: Sequence[int], name: str = "sizes") -> tuple[int, ...]:
    known = _validate.listed(name, sizes)
    if len(known) < 2:
        raise ValueError(f"{name} must have at least two entries, got {known}")
    return tuple(_validate.integer(f"{name}[{i}]", size, least=1) for i, size in enumerate(known))


def _functions(
    depth: int, activation: str | Elementwise, output_activation: str | Elementwise
) -> list[Elementwise]:
    return [resolve(activation)] * (depth - 1) + [
        resolve(output_activation, name="output_activation")
    ]


def masked(one: Layer, mask: NDArray[Any]) -> Layer:
    """Return a layer with the connections of a mask alone, of shape (size, fan)."""
    connection = Masked(mask.shape[0], mask.shape[1], jnp.asarray(mask))
    return layer(connection, one.sources, one.activations, which=one.which, skips=one.skips)
