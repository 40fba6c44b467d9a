"""Networks of many widths in one shape, so that a sweep over widths compiles once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindyn import _validate
from traindyn.deep.builders import masked
from traindyn.deep.connections import mask_of
from traindyn.deep.network import Network

__all__ = ["narrow"]


def narrow(network: Network, sizes: Sequence[int]) -> Network:
    """Cut the hidden layers of a network down, in the shape that it has.

    Each hidden layer keeps its first neurons. No neuron reads the others; they keep a single
    edge each, whose weight has no influence. In-degrees, and so the scaling of the sums, are
    those after the cut: as a function of the other weights this *is* the narrow network, and
    its values, gradients, kernels and Hessians are the same. Only the number of weights and
    :attr:`~traindyn.deep.network.Network.width` count the idle neurons.

    Compiling for a new shape takes longer than training a network of a few hundred neurons: a
    sweep over widths is fast if all its networks live in the shape of the widest.

    Parameters
    ----------
    network : Network
        Not convolutional, not made from a graph, without skip connections.
    sizes : sequence of int
        Of the hidden layers; at most what they are.

    Raises
    ------
    ValueError
        If there is one size too many or too few, one is out of range, or a layer is not a
        matrix or has skip connections.

    Examples
    --------
    >>> from companion.lazy_training.kernel_change.narrow import narrow
    >>> from traindyn.deep import fully_connected
    >>> wide = fully_connected([3, 8, 8, 1])
    >>> network = narrow(wide, [2, 5])
    >>> network.in_degrees[2], network.in_degrees[1][:5]
    (array([5]), array([2, 2, 2, 2, 2]))
    """
    if len(_validate.listed("sizes", sizes)) != network.depth - 1:
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
    for depth, one in enumerate(network.layers, start=1):
        if one.skips is not None:
            raise ValueError(f"network must be without skip connections, layer {depth} has some")
        mask = mask_of(one.connection)
        reads = np.concatenate([kept[source] for source in one.sources])
        new = mask & reads & kept[depth][:, None]
        new[~kept[depth], np.argmax(mask[~kept[depth]], axis=1)] = True
        layers.append(masked(one, new))
    return Network(network.inputs, tuple(layers), network.readout)
