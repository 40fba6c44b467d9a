r"""A bound of the Hessian norm that holds at all weights of a ball, from the weights in its centre.

Write :math:`u_l = D_l M_l(w_l) y_l` for the scaled sums of layer l, where :math:`y_l` are the
values that it reads, and :math:`f_l = \sigma(u_l) + S_l y_l` for its values, with skip connections
S. Let :math:`p_l` be the derivatives of the output in :math:`f_l` and :math:`b_l = \sigma'(u_l)
p_l` those in :math:`u_l`. Along a direction :math:`\dot w` the second derivative of the output is

.. math::

   \dot w^T H \dot w = \sum_l \sum_i p_{l, i} \sigma''(u_{l, i}) \dot u_{l, i}^2
   + 2 \sum_l b_l \cdot D_l M_l(\dot w_l) \dot y_l .

Every factor is bounded on the whole ball: the operators by their norms in the centre plus the
radius, the displacements of values and derivatives layer by layer, forwards and backwards, and the
largest :math:`|p_{l, i}|` by its value in the centre plus its displacement. So the quadratic form
is at most that of a matrix with one row for each layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.deep.activations import identity
from traindyn.deep.connections import Convolution, Dense, Masked
from traindyn.deep.hessian import QUICKLY
from traindyn.deep.network import Layer, Network, forward

__all__ = ["BallBound", "hessian_bound"]


@dataclass(frozen=True)
class BallBound:
    """Bounds that hold at all weights of a ball around given ones.

    Attributes
    ----------
    norm : float
        Of the spectral norm of the Hessian: the largest eigenvalue of `form`.
    form : ndarray, shape (L, L)
        Symmetric, with entries that are not negative: the second derivative along a direction is at
        most this form at the lengths of its parts in the layers.
    moves : ndarray, shape (L,)
        Of the distance of the scaled sums of each layer from those in the centre.
    derivatives : ndarray, shape (L,)
        Of the largest derivative of the output in a value of each layer.
    """

    norm: float
    form: Array
    moves: Array
    derivatives: Array


@dataclass(frozen=True)
class _Sizes:
    """Norms of a layer in the centre, and how far its operator moves per unit of weights."""

    norm: float
    column: float
    unit: float
    skip: float
    skip_sum: float


def hessian_bound(
    network: Network,
    weights: ArrayLike,
    point: ArrayLike,
    radius: float,
    *,
    slope: float,
    curvature: float,
    output: int = 0,
) -> BallBound:
    r"""Bound the Hessian norm of an output at all weights of a ball (ZHU Theorem 2.3.6).

    Parameters
    ----------
    network : Network
        With one activation for each layer.
    weights : array_like, shape (P,)
        The centre.
    point : array_like, shape (d,)
        The input.
    radius : float
        Of the ball, in the Euclidean norm of all weights; non-negative.
    slope, curvature : float
        Bounds of :math:`|\sigma'|` and of the Lipschitz constant of :math:`\sigma'`, for every
        activation of the network but the identity; 1 and :math:`4/\sqrt{27}` for tanh.
    output : int
        Which output of the last layer, counted from zero.

    Raises
    ------
    ValueError
        If the network has outputs in several layers, several activations within a layer, or layers
        that are neither matrices nor convolutions, or if an argument is out of range.

    Examples
    --------
    At two layers the bound is near the supremum, which is known.

    >>> import numpy as np
    >>> from companion.lazy_training.linearity.ball import two_layer_supremum
    >>> from companion.lazy_training.linearity.certificate import hessian_bound
    >>> from traindyn import deep
    >>> network = deep.fully_connected([10, 500, 1])
    >>> w, x = network.initial(rng=0), np.ones(10)
    >>> bound = hessian_bound(network, w, x, 3.0, slope=1, curvature=4 / 27**0.5).norm
    >>> bool(1 < bound / two_layer_supremum(network, w, x, 3.0)[0] < 1.2)
    True
    """
    x, k = network.check_point(point), network.check_output(output)
    radius = _validate.non_negative("radius", radius)
    slope = _validate.positive("slope", slope)
    curvature = _validate.non_negative("curvature", curvature)
    if network.readout is not None or any(one.which is not None for one in network.layers):
        raise ValueError(
            "network must have its outputs in the last layer and one activation for each layer"
        )
    layers = network.layers
    arrays = network.unpack(weights)
    sizes = [_sizes(layer, array) for layer, array in zip(layers, arrays)]
    bends = [(1.0, 0.0) if one.activations[0] is identity else (slope, curvature) for one in layers]
    inputs, values, sums = _centre(network, arrays, x, k)
    moves, reads = _forwards(layers, sizes, bends, inputs, radius)
    largest, outer = _backwards(layers, sizes, bends, values, sums, moves, radius)

    # Rows: |du_l|, |dy_l| and |df_l| are at most these sums over the lengths of the parts.
    count = len(layers)
    form = np.zeros((count, count))
    changes = [np.zeros(count)]
    for n, (layer, size, (steep, curved)) in enumerate(zip(layers, sizes, bends)):
        read = np.sum([changes[source] for source in layer.sources], axis=0)
        own = np.eye(count)[n] * size.unit
        du = own * reads[n] + (size.norm + size.unit * radius) * read
        changes.append(steep * du + size.skip * read)
        form += curved * largest[n] * np.outer(du, du)
        mixed = outer[n] * np.outer(own, read)
        form += mixed + mixed.T
    return BallBound(
        norm=float(np.linalg.eigvalsh(form)[-1]), form=form, moves=moves, derivatives=largest
    )


def _sizes(layer: Layer, array: Any) -> _Sizes:
    """Return norms of the operator of a layer, and of its skip connections."""
    scale, connection = np.asarray(layer.scale), layer.connection
    shared = 1
    if isinstance(connection, (Dense, Masked)):
        matrix = np.asarray(array)
    elif isinstance(connection, Convolution):
        unit = jnp.eye(connection.fan)
        matrix = np.asarray(jax.vmap(lambda one: connection.apply(array, one))(unit)).T
        # A sum over taps of Kronecker products with shifts: norms of the taps add up.
        shared = min(connection.kernel, connection.positions)
    else:
        raise ValueError(
            "network must have layers of matrices or convolutions, got one with "
            f"{type(connection).__name__}"
        )
    matrix = scale[:, None] * matrix
    skip = skip_sum = 0.0
    if layer.skips is not None:  # a matrix of zeros and ones, by its rows and columns
        rows, columns = (float(np.bincount(np.asarray(each)).max()) for each in layer.skips)
        skip, skip_sum = (rows * columns) ** 0.5, columns
    return _Sizes(
        norm=_spectral_norm(matrix),
        column=float(np.linalg.norm(matrix, axis=0).max()),
        unit=float(scale.max()) * shared**0.5,
        skip=skip,
        skip_sum=skip_sum,
    )


def _spectral_norm(matrix: Array) -> float:
    """Root of the top eigenvalue of the smaller Gram matrix: several times faster than an SVD."""
    gram = matrix @ matrix.T if len(matrix) < matrix.shape[1] else matrix.T @ matrix
    last = len(gram) - 1
    top = scipy.linalg.eigvalsh(gram, subset_by_index=[last, last])
    return float(np.sqrt(max(top[0], 0.0)))


def _centre(
    network: Network, arrays: Any, x: Array, k: int
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return what the layers read, and the derivatives of the output in their values and sums."""
    inputs, sums, values = _derivatives(network, arrays, x, k)
    return [*map(np.asarray, inputs)], [*map(np.asarray, values)], [*map(np.asarray, sums)]


@partial(jax.jit, compiler_options=QUICKLY)
def _derivatives(network: Network, arrays: Any, x: jax.Array, k: Any) -> Any:
    def probed(shifts: Any, probes: Any) -> jax.Array:
        values = [x]
        for number, (layer, weights) in enumerate(zip(network.layers, arrays)):
            parts = jnp.concatenate([values[source] for source in layer.sources])
            sums = layer.scale * layer.connection.apply(weights, parts) + shifts[number]
            values.append(layer.value(sums, parts) + probes[number])
        return values[-1][k]

    zeros = [jnp.zeros(layer.connection.size) for layer in network.layers]
    return forward(network, arrays, x)[1], *jax.grad(probed, argnums=(0, 1))(zeros, zeros)


def _forwards(
    layers: tuple[Layer, ...],
    sizes: list[_Sizes],
    bends: list[tuple[float, float]],
    inputs: list[Array],
    radius: float,
) -> tuple[Array, list[float]]:
    """Return distances of the scaled sums from those in the centre, and lengths of what is read."""
    away, moves, reads = [0.0], [], []
    for layer, size, (steep, _), y in zip(layers, sizes, bends, inputs):
        far = float(np.linalg.norm([away[source] for source in layer.sources]))
        length = float(np.linalg.norm(y))
        moved = size.unit * radius * length + (size.norm + size.unit * radius) * far
        away.append(steep * moved + size.skip * far)
        moves.append(moved)
        reads.append(length + far)
    return np.array(moves), reads


def _backwards(
    layers: tuple[Layer, ...],
    sizes: list[_Sizes],
    bends: list[tuple[float, float]],
    values: list[Array],
    sums: list[Array],
    moves: Array,
    radius: float,
) -> tuple[Array, list[float]]:
    """Return per layer the largest derivative in a value and the length of those in the sums."""
    count = len(layers)
    far, entry = np.zeros(count), np.zeros(count)  # of the derivatives in the values
    turned, lengths = np.zeros(count), np.zeros(count)  # of those in the scaled sums
    highest = np.array([np.abs(each).max() for each in values])
    for n in reversed(range(count)):
        steep, curved = bends[n]
        for later in range(n + 1, count):
            times = layers[later].sources.count(n + 1)
            size, change = sizes[later], sizes[later].unit * radius * lengths[later]
            far[n] += times * (change + size.norm * turned[later] + size.skip * far[later])
            entry[n] += times * (
                change + size.column * turned[later] + size.skip_sum * entry[later]
            )
        turned[n] = steep * far[n] + curved * float(highest[n]) * moves[n]
        lengths[n] = np.linalg.norm(sums[n]) + turned[n]
    return highest + entry, list(lengths)
