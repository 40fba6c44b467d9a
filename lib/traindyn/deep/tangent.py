r"""First order in the weights: gradients, tangent kernel, linearisation.

The linearisation at :math:`w_0` is :math:`f_{lin}(w) = f(w_0) + J (w - w_0)`; the product with
the Jacobian is a forward derivative, so J is never formed. Within a ball of radius R,

.. math:: |f(w) - f_{lin}(w)| \le \tfrac12 R^2 \sup |H| ,

which is how a small Hessian makes a network linear (ZHU Corollary 2.3.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn.deep.hessian import Array, directions, flatten, prepare
from traindyn.deep.network import Network, forward, read

__all__ = ["Linearisation", "gradients", "linearise", "tangent_kernel"]


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
        points : array_like, shape (n, d)

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
    weights : array_like, shape (P,)

    Returns
    -------
    Linearisation

    Raises
    ------
    ValueError
        If the number of weights is wrong.

    Examples
    --------
    >>> from traindyn.deep import fully_connected
    >>> network = fully_connected([2, 8, 1])
    >>> origin = network.initial(rng=0)
    >>> linear = linearise(network, origin)
    >>> float(linear.deviation(origin, np.ones((1, 2)))[0, 0])
    0.0
    """
    origin = _validate.finite("weights", weights, shape=(network.parameters,))
    return Linearisation(network, origin.copy())


def gradients(network: Network, weights: ArrayLike, points: ArrayLike, *, output: int = 0) -> Array:
    """Gradients of an output in the weights.

    Parameters
    ----------
    network : Network
    weights : array_like, shape (P,)
    points : array_like, shape (n, d)
    output : int

    Returns
    -------
    ndarray, shape (n, P)
    """
    arrays = jax.device_put(network.unpack(weights))
    k = network.check_output(output)
    rows = []
    for point in network.check_points(points):
        pairs = prepare(network, arrays, point, k)[0]
        coordinates = tuple((delta, jnp.zeros_like(g)) for delta, g in pairs)
        rows.append(flatten(network, directions(network, pairs, coordinates)))
    return np.stack(rows)


def tangent_kernel(
    network: Network, weights: ArrayLike, points: ArrayLike, *, output: int = 0
) -> Array:
    """Tangent kernel of an output: inner products of its gradients (ZHU 2.17).

    No gradient is formed (but for networks made from a graph): layer by layer, it is the
    product of the inner products of inputs and of derivatives.

    Parameters
    ----------
    network : Network
    weights : array_like, shape (P,)
    points : array_like, shape (n, d)
    output : int

    Returns
    -------
    ndarray, shape (n, n)
    """
    arrays = network.unpack(weights)
    kernel = _kernel(network, arrays, network.check_points(points), network.check_output(output))
    return np.asarray(kernel)


@jax.jit
def _expand(network: Network, arrays: Any, step: Any, points: jax.Array) -> Any:
    def value(weights: Any) -> jax.Array:
        return jax.vmap(lambda x: read(network, forward(network, weights, x)[0]))(points)

    return jax.jvp(value, (arrays,), (step,))


@jax.jit
def _kernel(network: Network, arrays: Any, points: jax.Array, output: Any) -> jax.Array:
    def pairs(point: jax.Array) -> Any:
        def value(shifts: Any) -> Any:
            values, inputs = forward(network, arrays, point, shifts)
            return read(network, values)[output], inputs

        zero = [jnp.zeros(layer.connection.size) for layer in network.layers]
        deltas, inputs = jax.grad(value, has_aux=True)(zero)
        return inputs, deltas

    inputs, deltas = jax.vmap(pairs)(points)
    return sum(
        (
            layer.connection.gram(g, delta)
            for layer, g, delta in zip(network.layers, inputs, deltas)
        ),
        start=jnp.zeros((len(points), len(points))),
    )
