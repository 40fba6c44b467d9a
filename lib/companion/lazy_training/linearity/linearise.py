"""A network replaced by its Taylor expansion of first order at a point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.deep.network import Network, forward, read

__all__ = ["Linearisation", "linearise"]


@dataclass(frozen=True, eq=False)
class Linearisation:
    """A network replaced by its first-order expansion in the weights.

    Attributes
    ----------
    network : Network
    origin : ndarray, shape (P,)
        The weights expanded around.
    """

    network: Network
    origin: Array

    @cached_property
    def _arrays(self) -> tuple[Array, ...]:
        return self.network.unpack(self.origin)

    def values(self, weights: ArrayLike, points: ArrayLike) -> Array:
        """Compute the outputs of the linearised network.

        Parameters
        ----------
        weights : array_like, shape (P,)
            Any weights, near the origin or far from it.
        points : array_like, shape (n, d)
            Inputs, one in each row.

        Returns
        -------
        ndarray, shape (n, outputs)
        """
        value, change = self._expand(weights, points)
        return value + change

    def deviation(self, weights: ArrayLike, points: ArrayLike) -> Array:
        """Subtract the linearisation from the network, shape (n, outputs)."""
        return self.network.values(weights, points) - self.values(weights, points)

    def _expand(self, weights: ArrayLike, points: ArrayLike) -> tuple[Array, Array]:
        flat = _validate.finite("weights", weights, shape=(self.network.parameters,))
        step = self.network.unpack(flat - self.origin)
        points = self.network.check_points(points)
        value, change = _expand(self.network, self._arrays, step, points)
        return np.asarray(value), np.asarray(change)


def linearise(network: Network, weights: ArrayLike) -> Linearisation:
    """Expand a network to first order around some weights.

    Parameters
    ----------
    network : Network
        All of its outputs are expanded.
    weights : array_like, shape (P,)
        The point of expansion; a copy is kept.

    Raises
    ------
    ValueError
        If the number of weights is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.lazy_training.linearity.linearise import linearise
    >>> from traindyn.deep import fully_connected
    >>> network = fully_connected([2, 8, 1])
    >>> origin = network.initial(rng=0)
    >>> linear = linearise(network, origin)
    >>> float(linear.deviation(origin, np.ones((1, 2)))[0, 0])
    0.0
    """
    origin = _validate.finite("weights", weights, shape=(network.parameters,))
    return Linearisation(network, origin.copy())


@jax.jit
def _expand(network: Network, arrays: Any, step: Any, points: jax.Array) -> Any:
    def value(weights: Any) -> jax.Array:
        return jax.vmap(lambda x: read(network, forward(network, weights, x)[0]))(points)

    return jax.jvp(value, (arrays,), (step,))
