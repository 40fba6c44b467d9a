r"""What passes from layer to layer: derivatives, mean squares of gradients, dependence.

The mean square of a gradient of a network of ReLU, over its random weights, is an average over
paths. Walk backwards from the output, at each neuron to one of its parents, all equally likely,
until an input. A walk of length :math:`\ell` that ends at entry i of x contributes
:math:`\ell\, 2^{1 - \ell} x_i^2`, so

.. math:: E |\nabla f|^2 = E_{walk}\big[ \ell\, 2^{1 - \ell} x_{end}^2 \big] ,

exactly, on every directed acyclic graph and at any width; for L layers
:math:`L\, 2^{1 - L} |x|^2 / d`. It holds because the sign of a neuron does not depend on its
modulus, nor on the modulus of its gradient, and distinct parents have uncorrelated signs. This
is ZHU Proposition 2.4.4 with equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.deep.activations import ACTIVATIONS, derivatives, identity
from traindyn.deep.connections import mask_of
from traindyn.deep.network import Network, forward, read

__all__ = [
    "IncomingNorms",
    "MatrixVariances",
    "dependence",
    "gradient_moment_bound",
    "gradient_squares",
    "incoming_norms",
    "matrix_variances",
    "relu_gradient_moment",
]


@dataclass(frozen=True)
class IncomingNorms:
    """Norms of the derivatives of the neurons that an output reads.

    Attributes
    ----------
    spectral, frobenius : ndarray, shape (L - 1,)
        In the weights of each layer but the last.
    count : int
        How many neurons the output reads.
    """

    spectral: Array
    frobenius: Array
    count: int


@dataclass(frozen=True)
class MatrixVariances:
    """Variances of the Gaussian series that make up a Hessian.

    Attributes
    ----------
    norms : ndarray, shape (L - 1, L - 1)
        The variances, by the layers of the weights.
    squares : ndarray, shape (L - 1, n)
        Squared lengths of the derivatives of the neurons that the output reads.
    """

    norms: Array
    squares: Array


def incoming_norms(
    network: Network, weights: ArrayLike, point: ArrayLike, *, output: int = 0
) -> IncomingNorms:
    r"""Norms of :math:`\partial f_{S_k} / \partial w^{(l)}` (ZHU Lemma A.2.1).

    :math:`f_{S_k}` are the values that output k reads. Divided by the root of their number, the
    derivative is the block :math:`H^{(l, L)}` of the Hessian of the output.

    Parameters
    ----------
    network : Network
        Of matrices.
    weights : array_like, shape (P,)
        All weights in one vector, layer by layer.
    point : array_like, shape (d,)
        The input x.
    output : int
        Number k of the output, from 0.

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or a layer is not a matrix.
    """
    read_by = _masks(network)[-1][network.check_output(output)]
    x = network.check_point(point)
    jacobian, squares = _incoming(network, network.unpack(weights), x)
    spectral, frobenius = [], []
    for derivative, square in zip(jacobian[:-1], squares[:-1]):
        rows = np.asarray(derivative)[read_by] * np.sqrt(np.asarray(square))
        gram = rows @ rows.T if rows.shape[0] < rows.shape[1] else rows.T @ rows
        spectral.append(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)))
        frobenius.append(np.sqrt(np.trace(gram)))
    return IncomingNorms(np.array(spectral), np.array(frobenius), int(read_by.sum()))


def matrix_variances(
    network: Network, weights: ArrayLike, point: ArrayLike, *, output: int = 0
) -> MatrixVariances:
    r"""Matrix variances of ZHU Lemma A.11.9, for an output of the last layer.

    With the scaled sums :math:`z_i` of the neurons of the last hidden layer that output k reads

    .. math::

       \mu_{l_1, l_2} = \frac{1}{m_k} \Big\| \sum_i \sigma''(z_i)^2
       \Big| \frac{\partial z_i}{\partial w^{(l_1)}} \Big|^2
       \frac{\partial z_i}{\partial w^{(l_2)}}
       \Big( \frac{\partial z_i}{\partial w^{(l_2)}} \Big)^T \Big\| .

    Parameters
    ----------
    network : Network
        Of matrices, of at least two layers, with one activation in the last hidden layer.
    weights : array_like, shape (P,)
        All weights in one vector, layer by layer.
    point : array_like, shape (d,)
        The input x.
    output : int
        Number k of the output, from 0.

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or the network is not of this kind.
    """
    if network.depth < 2 or network.layers[-2].which is not None:
        raise ValueError(
            "network must have at least two layers and one activation in the last hidden one"
        )
    head = network.head(network.depth - 1)
    row = _masks(network)[-1][network.check_output(output)]
    # Of what the outputs read, the last hidden layer stands last.
    read_by = row[-head.outputs :]
    x = network.check_point(point)
    jacobian, sums, squares = _of_sums(head, network.unpack(weights)[:-1], x)
    bend = derivatives(network.layers[-2].activations[0], sums)[1][read_by] ** 2
    rows = [np.asarray(d)[read_by] * np.sqrt(np.asarray(s)) for d, s in zip(jacobian, squares)]
    lengths = np.array([np.sum(one**2, axis=1) for one in rows])
    norms = [
        [np.linalg.norm(np.sqrt(bend * length)[:, None] * one, 2) ** 2 for one in rows]
        for length in lengths
    ]
    return MatrixVariances(np.array(norms) / np.count_nonzero(row), lengths)


def dependence(network: Network) -> NDArray[np.int64]:
    """Count the weights of each layer that a neuron depends on, at most (ZHU Proposition A.9.1).

    Parameters
    ----------
    network : Network
        Of matrices.

    Returns
    -------
    ndarray of int, shape (L,)
        Per layer of weights, the maximum over all neurons of the network. Bounded by a
        polynomial in the largest in-degree, however many neurons there are.

    Raises
    ------
    ValueError
        If a layer is not a matrix.

    Examples
    --------
    >>> from companion.lazy_training.kernel_change.propagation import dependence
    >>> from traindyn.deep import fully_connected
    >>> dependence(fully_connected([2, 5, 7]))
    array([10,  5])
    """
    masks, degrees = _masks(network), network.in_degrees
    most = np.zeros(network.depth, dtype=np.int64)
    # Ancestors among the neurons of each layer, as one row per neuron of the current layer.
    ancestors: list[list[NDArray[np.bool_]]] = [[]]
    for depth, (layer, mask) in enumerate(zip(network.layers, masks), start=1):
        found = [np.zeros((mask.shape[0], d.size), dtype=bool) for d in degrees[: depth - 1]]
        edges, first = mask.copy(), 0
        if layer.skips is not None:
            edges[tuple(np.asarray(part) for part in layer.skips)] = True
        for source in layer.sources:
            size = network.inputs if source == 0 else degrees[source - 1].size
            block = edges[:, first : first + size].astype(np.float32)
            for number, earlier in enumerate(ancestors[source]):
                found[number] |= block @ earlier.astype(np.float32) > 0
            first += size
        found.append(np.eye(mask.shape[0], dtype=bool))
        ancestors.append(found)
        for number, one in enumerate(found):
            most[number] = max(most[number], int((one @ degrees[number]).max()))
    return most


def relu_gradient_moment(network: Network, point: ArrayLike) -> Array:
    r"""Mean of :math:`|\nabla f_k|^2` over standard Gaussian weights, for networks of ReLU.

    Exact, by a recursion for the mean squares of values and gradients.

    Parameters
    ----------
    network : Network
        Of matrices, with hidden neurons of ReLU, linear outputs and no skip connections.
    point : array_like, shape (d,)
        The input x.

    Returns
    -------
    ndarray, shape (outputs,)

    Raises
    ------
    ValueError
        If the network is not of this kind.

    Examples
    --------
    Three layers of any size, at :math:`|x|^2 = d`: 3/4.

    >>> import numpy as np
    >>> from companion.lazy_training.kernel_change.propagation import relu_gradient_moment
    >>> from traindyn.deep import fully_connected
    >>> relu_gradient_moment(fully_connected([4, 1, 7, 1], activation="relu"), np.ones(4))
    array([0.75])
    """
    values = [network.check_point(point) ** 2]
    gradients = [np.zeros(network.inputs)]
    for depth, (layer, mask) in enumerate(zip(network.layers, _masks(network)), start=1):
        wanted = identity if depth == network.depth else ACTIVATIONS["relu"]
        if layer.activations != (wanted,) or layer.skips is not None:
            raise ValueError(
                "network must have hidden neurons of ReLU, linear outputs and no skip "
                f"connections, layer {depth} is different"
            )
        share = mask / np.count_nonzero(mask, axis=1, keepdims=True)
        half = 1.0 if depth == network.depth else 0.5
        value = np.concatenate([values[source] for source in layer.sources])
        gradient = np.concatenate([gradients[source] for source in layer.sources])
        values.append(half * (share @ value))
        gradients.append(half * (share @ (value + gradient)))
    return gradients[-1]


def gradient_moment_bound(constant: float, power: float, depth: int) -> float:
    r"""Lower bound of :math:`E |\nabla f|^2` for homogeneous activations (ZHU Proposition 2.4.4).

    :math:`\min(1, \min_{1 \le j \le L - 1} C^{1 + r + \dots + r^{j - 1}})` for Gaussian inputs. The
    source states it for the square of :math:`E |\nabla f|`, which is false, and with j up to L,
    which is more than its proof needs.

    Parameters
    ----------
    constant : float
        Mean square C of the activation at a standard Gaussian variable.
    power : float
        Degree r of homogeneity, at least one: below one the last step of the proof, Jensen's
        inequality, goes the other way.
    depth : int
        Number L of layers of weights.

    Examples
    --------
    >>> from companion.lazy_training.kernel_change.propagation import gradient_moment_bound
    >>> gradient_moment_bound(0.5, 1, 3)
    0.25
    """
    constant = _validate.positive("constant", constant)
    power, depth = _validate.number("power", power), _validate.integer("depth", depth, least=1)
    if power < 1:
        raise ValueError(f"power must be at least 1, got {power!r}")
    exponents = np.cumsum(power ** np.arange(depth - 1))
    return float(min(1.0, *(constant**exponents), 1.0))


def gradient_squares(
    network: Network, draws: int, *, point: ArrayLike | None = None, rng: RNG
) -> Array:
    r"""Draw :math:`|\nabla f|^2` of the first output at random weights.

    Parameters
    ----------
    network : Network
        Of any kind; f is the first of its outputs.
    draws : int
        Number of independent draws of the weights, all standard Gaussian.
    point : array_like, shape (d,), optional
        A standard Gaussian input for each draw, unless given.
    rng : int, SeedSequence or Generator
        Of the weights, then of the inputs.

    Returns
    -------
    ndarray, shape (draws,)
    """
    draws = _validate.integer("draws", draws, least=1)
    generator = _validate.generator("rng", rng)
    weights = generator.standard_normal((draws, network.parameters))
    if point is None:
        points = generator.standard_normal((draws, network.inputs))
    else:
        points = np.broadcast_to(network.check_point(point), (draws, network.inputs))
    return np.asarray(_squares(network, [part.T for part in network.split(weights.T)], points))


def _masks(network: Network) -> list[NDArray[np.bool_]]:
    """Which inputs the neurons of each layer read."""
    return [mask_of(layer.connection) for layer in network.layers]


@jax.jit
def _incoming(network: Network, arrays: Any, point: jax.Array) -> tuple[Any, Any]:
    """Differentiate what the last layer reads in the sums of each layer; |g|^2 of these."""

    def incoming(shifts: Any) -> Any:
        inputs = forward(network, arrays, point, shifts)[1]
        return inputs[-1], inputs

    jacobian, inputs = jax.jacrev(incoming, has_aux=True)(_no_shifts(network))
    return jacobian, _squares_read(network, inputs)


@jax.jit
def _of_sums(network: Network, arrays: Any, point: jax.Array) -> tuple[Any, Any, Any]:
    """Differentiate the outputs in the sums of each layer; the outputs; |g|^2 of the sums."""

    def outputs(shifts: Any) -> Any:
        values, inputs = forward(network, arrays, point, shifts)
        return values[-1], (values[-1], inputs)

    jacobian, (values, inputs) = jax.jacrev(outputs, has_aux=True)(_no_shifts(network))
    return jacobian, values, _squares_read(network, inputs)


def _no_shifts(network: Network) -> list[jax.Array]:
    return [jnp.zeros(layer.connection.size) for layer in network.layers]


def _squares_read(network: Network, inputs: list[jax.Array]) -> list[Any]:
    """Squared lengths of what the neurons of each layer read."""
    squares = []
    for layer, g in zip(network.layers, inputs):
        metric = layer.connection.metric(g, jnp.zeros(layer.connection.size))
        ones, nothing = jnp.ones(layer.connection.size), jnp.zeros(layer.connection.fan)
        squares.append(layer.connection.contract(metric, ones, nothing)[0])
    return squares


@jax.jit
def _squares(network: Network, parts: Any, points: jax.Array) -> jax.Array:
    def square(parts: Any, point: jax.Array) -> jax.Array:
        def value(parts: Any) -> jax.Array:
            arrays = [layer.connection.unpack(w) for layer, w in zip(network.layers, parts)]
            return read(network, forward(network, arrays, point)[0])[0]

        return jnp.sum(jnp.stack([jnp.sum(g**2) for g in jax.grad(value)(parts)]))

    squares: jax.Array = jax.vmap(square)(parts, points)
    return squares
