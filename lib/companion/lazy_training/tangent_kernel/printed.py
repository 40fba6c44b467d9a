"""Formulas of MDL chapter 8 as printed, where they differ from the correct ones.

Nothing here describes training: a check that confirms the correct formulas must reject these.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from companion.lazy_training.tangent_kernel.network import Network
from traindyn import _validate
from traindyn._types import Array

__all__ = ["printed_tangent_kernel", "printed_weight_movement"]


def printed_tangent_kernel(network: Network, parameters: ArrayLike, x: ArrayLike) -> Array:
    r"""Empirical tangent kernel of MDL Definition 8.5 as printed, with a factor :math:`1/\sqrt p`.

    The parametrisation is normalised already: this one tends to zero with the width.
    """
    return network.tangent_kernel(parameters, x) / math.sqrt(network.size)


def printed_weight_movement(network: Network, before: ArrayLike, after: ArrayLike) -> list[float]:
    r"""Norms :math:`\|W(t)/\sqrt{n_\ell} - W(0)\|` of MDL Lemma 8.8 as printed, inner layers.

    The factor belongs to the difference; as it stands the norm grows like the root of the width
    even without training.
    """
    first = _validate.finite("before", before, shape=(network.size,))
    last = _validate.finite("after", after, shape=(network.size,))
    pairs = zip(network.layers(first)[1:], network.layers(last)[1:], network.widths[1:])
    return [
        float(np.linalg.norm(new.weights / np.sqrt(width) - old.weights, 2))
        for old, new, width in pairs
    ]
