"""Networks of many widths inside one: compiled code depends on shapes, not on masks.

Compiling for a new shape takes longer than training a network of a few hundred neurons. A sweep
over widths is fast if all its networks live in the shape of the widest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindyn import _validate
from traindyn.deep.builders import _mask, _masked
from traindyn.deep.network import Network

__all__ = ["narrow"]


def narrow(network: Network, sizes: Sequence[int]) -> Network:
    """Cut the hidden layers of a network down, in the shape that it has.

    Each hidden layer keeps its first neurons. The others are read by nobody; they keep a single
    edge each, whose weight has no influence. In-degrees, and so the scaling of the sums, are
    those after the cut: as a function of the other weights this *is* the narrow network, and
    its values, gradients, kernels and Hessians are the same. Only the number of weights and
    :attr:`~traindyn.deep.Network.width` count the idle neurons.

    Parameters
    ----------
    network : Network
        Not convolutional, not made from a graph, without skip connections.
    sizes : sequence of int
        Of the hidden layers; at most what they are.

    Returns
    -------
    Network

    Raises
    ------
    ValueError
        If there is one size too many or too few, one is out of range, or a layer is not a
        matrix or has skip connections.

    Examples
    --------
    >>> from traindyn.deep import fully_connected
    >>> wide = fully_connected([3, 8, 8, 1])
    >>> network = narrow(wide, [2, 5])
    >>> network.in_degrees[2], network.in_degrees[1][:5]
    (array([5]), array([2, 2, 2, 2, 2]))
    """
    if len(sizes) != network.depth - 1:
        raise ValueError(
            f"sizes must have one entry per hidden layer, {network.depth - 1}, got {len(sizes)}"
        )
    kept = [np.ones(network.inputs, dtype=bool)]
    for depth, (size, degrees) in enumerate(zip(sizes, network.in_degrees)):
        known = degrees.size
        size = _validate.integer(f"sizes[{depth}]", size, least=1, most=known)
        kept.append(np.arange(known) < size)
    kept.append(np.ones(network.outputs, dtype=bool))
    layers = []
    for depth, layer in enumerate(network.layers, start=1):
        if layer.skips is not None:
            raise ValueError(f"network must be without skip connections, layer {depth} has some")
        mask = _mask(layer)
        reads = np.concatenate([kept[source] for source in layer.sources])
        new = mask & reads & kept[depth][:, None]
        new[~kept[depth], np.argmax(mask[~kept[depth]], axis=1)] = True
        layers.append(_masked(layer, new))
    return Network(network.inputs, tuple(layers), network.readout)
