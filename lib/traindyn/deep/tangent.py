r"""First order in the weights: gradients, tangent kernel, linearisation.

The linearisation at :math:`w_0` is :math:`f_{lin}(w) = f(w_0) + J (w - w_0)`; the product with
the Jacobian is a forward derivative, so J is never formed. Within a ball of radius R,

.. math:: |f(w) - f_{lin}(w)| \le \tfrac12 R^2 \sup |H| ,

which is how a small Hessian makes a network linear (ZHU Corollary 2.3.7).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from traindyn._types import Array
from traindyn.deep.hessian import directions, flatten, prepare
from traindyn.deep.network import Network, forward, read

__all__ = ["gradients", "tangent_kernel"]


def gradients(network: Network, weights: ArrayLike, points: ArrayLike, *, output: int = 0) -> Array:
    """Gradients of an output in the weights.

    Parameters
    ----------
    network : Network
        Whose output is differentiated.
    weights : array_like, shape (P,)
        Where the gradients are taken.
    points : array_like, shape (n, d)
        Inputs, one per row.
    output : int
        Which output, counted from zero.

    Returns
    -------
    ndarray, shape (n, P)

    Raises
    ------
    FloatingPointError
        If a gradient is not finite.
    """
    arrays = jax.device_put(network.unpack(weights))
    k = network.check_output(output)
    rows = []
    for point in network.check_points(points):
        pairs = prepare(network, arrays, point, k)[0]
        coordinates = tuple((delta, jnp.zeros_like(g)) for delta, g in pairs)
        rows.append(flatten(network, directions(network, pairs, coordinates)))
    return _finite(np.stack(rows), points)


def tangent_kernel(
    network: Network, weights: ArrayLike, points: ArrayLike, *, output: int = 0
) -> Array:
    """Tangent kernel of an output: inner products of its gradients (ZHU (2.17)).

    No gradient is formed (but for networks made from a graph): layer by layer, it is the
    product of the inner products of inputs and of derivatives.

    Parameters
    ----------
    network : Network
        Whose output is differentiated.
    weights : array_like, shape (P,)
        Where the kernel is taken.
    points : array_like, shape (n, d)
        Inputs, one per row; all pairs of them are compared.
    output : int
        Which output, counted from zero.

    Returns
    -------
    ndarray, shape (n, n)

    Raises
    ------
    FloatingPointError
        If the kernel is not finite.
    """
    arrays = network.unpack(weights)
    kernel = _kernel(network, arrays, network.check_points(points), network.check_output(output))
    return _finite(np.asarray(kernel), points)


def _finite(found: Array, points: ArrayLike) -> Array:
    """Return what was found at points if it is finite."""
    if not np.isfinite(found).all():
        raise FloatingPointError(
            "points and weights must have gradients whose products are finite, got points of up to "
            f"{np.abs(np.asarray(points)).max():.3g}"
        )
    return found


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
