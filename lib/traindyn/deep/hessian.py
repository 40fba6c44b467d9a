r"""Hessians of a network's outputs in its weights: products, spectral norms, balls.

Let :math:`s_l = W_l \cdot g_l` be the sums of layer l before they are scaled, and add to the
network a shift of these sums and a probe of the inputs,

.. math:: \Phi(\alpha, \beta) = f(s_l + \alpha_l) + \sum_l \langle \beta_l, g_l(\alpha) \rangle ,

whose gradient at zero is :math:`(\delta, g)`. By the chain rule the Hessian in the weights is

.. math::

   H = T N T^T, \qquad N = \nabla^2 \Phi(0), \qquad T(a, b)_l = T_{a_l} g_l + T_{\delta_l} b_l

with the maps T of :mod:`traindyn.deep.connections`. So all non-zero eigenvalues of H are those of
:math:`N G`, with :math:`G = T^T T` the Gram matrix: a problem of the size of the number of neurons,
self-adjoint in the inner product G. :func:`hessian_norms` solves it by a Lanczos iteration in this
inner product, with full reorthogonalisation; a product costs one pass forwards and one backwards
through the weights, and no array of the size of the weights is ever made.

:func:`hessian_product` differentiates in the weights themselves, without this change of variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh_tridiagonal

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.deep.activations import derivatives
from traindyn.deep.network import Network, forward, read
from traindyn.linalg import LambdaOperator

__all__ = [
    "HessianNorms",
    "hessian_norms",
    "hessian_operator",
    "hessian_product",
    "two_layer_eigenvalues",
]

_LOOK = 4
"""Lanczos steps between two looks at the Ritz values."""

QUICKLY: Any = {"xla_backend_optimization_level": 0}
"""Options that halve the time to compile, which for most shapes of network is longer than all
products take. These are as fast as without: they are multiplications by matrices."""


@dataclass(frozen=True)
class HessianNorms:
    """Spectral norms of Hessians at one point, with their quality.

    Attributes
    ----------
    norms : ndarray, shape (k,)
        One per output asked for.
    eigenvalues : ndarray, shape (k,)
        The eigenvalue that is largest in absolute value, with its sign.
    residuals : ndarray, shape (k,)
        ``|H v - theta v| / |theta|`` from a final product, in the space of the weights.
    converged : ndarray of bool, shape (k,)
    products : int
        Hessian-vector products spent.
    vectors : ndarray, shape (P, k), or None
        The unit eigenvectors, if asked for.
    """

    norms: Array
    eigenvalues: Array
    residuals: Array
    converged: NDArray[np.bool_]
    products: int
    vectors: Array | None = None


def hessian_product(
    network: Network, weights: ArrayLike, point: ArrayLike, vectors: ArrayLike, *, output: int = 0
) -> Array:
    """Product of the Hessian of an output with vectors, forward over reverse.

    Parameters
    ----------
    network : Network
        Whose output is differentiated twice in the weights.
    weights : array_like, shape (P,)
        Where the Hessian is taken.
    point : array_like, shape (d,)
        The input at which the output is taken.
    vectors : array_like, shape (P,) or (P, b)
        One vector, or the columns of a block of b.
    output : int
        Which output, counted from zero.

    Returns
    -------
    ndarray, of the shape of `vectors`

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or there is no such output.
    """
    block = _validate.finite("vectors", vectors)
    if block.ndim not in (1, 2) or block.shape[0] != network.parameters:
        raise ValueError(
            f"vectors must have shape ({network.parameters},) or ({network.parameters}, b), "
            f"got {block.shape}"
        )
    operator = hessian_operator(network, weights, point, output=output)
    return operator.matmat(block.reshape(network.parameters, -1)).reshape(block.shape)


def hessian_operator(
    network: Network, weights: ArrayLike, point: ArrayLike, *, output: int = 0
) -> LambdaOperator:
    """Return the Hessian of an output as an operator on the P weights.

    For :func:`traindyn.linalg.top_eigenpairs`, where more than the norm is wanted; it keeps
    tens of vectors of length P.

    Parameters
    ----------
    network, weights, point, output
        As in :func:`hessian_product`.
    """
    x, k = _validate.frozen(network.check_point(point)), network.check_output(output)
    arrays = jax.device_put(network.unpack(weights))

    def products(block: Array) -> Array:
        moves = [np.stack(parts) for parts in zip(*map(network.unpack, block.T))]
        images = map(np.asarray, _products(network, arrays, x, k, moves))
        return np.stack([flatten(network, parts) for parts in zip(*images)], axis=1)

    return LambdaOperator(network.parameters, products)


def hessian_norms(
    network: Network,
    weights: ArrayLike,
    point: ArrayLike,
    *,
    outputs: ArrayLike | None = None,
    tolerance: float = 1e-6,
    max_products: int = 400,
    vectors: bool = False,
    rng: RNG = 0,
) -> HessianNorms:
    """Spectral norm of the Hessian of each output at one input (ZHU Theorem 2.3.6).

    Parameters
    ----------
    network : Network
        Whose outputs are differentiated twice in the weights.
    weights : array_like, shape (P,)
        Where the Hessians are taken.
    point : array_like, shape (d,)
        The input at which the output is taken.
    outputs : array_like of int, shape (k,), optional
        All, unless given.
    tolerance : float
        Bound on the residual; the error of a norm is about its square.
    max_products : int
        Products per output after which the best so far is returned with `converged` False.
    vectors : bool
        Return the eigenvectors, too.
    rng : int, SeedSequence or Generator
        Draws the first vector of the iteration.

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or an argument is out of range.
    FloatingPointError
        If a product is not finite.

    Examples
    --------
    With two layers of ReLU, ``|x| / sqrt(m d)`` whatever the weights:

    >>> import numpy as np
    >>> from traindyn.deep import hessian_norms
    >>> from traindyn.deep import fully_connected
    >>> network = fully_connected([4, 25, 1], activation="relu")
    >>> found = hessian_norms(network, network.initial(rng=1), np.ones(4))
    >>> bool(np.isclose(found.norms[0], 1 / 5, rtol=1e-12))
    True
    """
    x = network.check_point(point)
    tolerance = _validate.positive("tolerance", tolerance)
    max_products = _validate.integer("max_products", max_products, least=1)
    chosen = np.arange(network.outputs)
    if outputs is not None:
        chosen = _validate.integers(
            "outputs", np.atleast_1d(outputs), least=0, most=network.outputs - 1, shape=(None,)
        )
    if chosen.size == 0:
        raise ValueError("outputs must not be empty")
    arrays = jax.device_put(network.unpack(weights))
    generator = _validate.generator("rng", rng)
    found = [
        _norm(network, arrays, x, int(k), tolerance, max_products, vectors,
              generator)
        for k in chosen
    ]  # fmt: skip
    eigenvalues = np.array([pair.eigenvalue for pair in found])
    residuals = np.array([pair.residual for pair in found])
    columns = [pair.vector for pair in found if pair.vector is not None]
    return HessianNorms(
        norms=np.abs(eigenvalues),
        eigenvalues=eigenvalues,
        residuals=residuals,
        converged=np.array([pair.settled for pair in found]) & (residuals <= tolerance),
        products=sum(pair.products for pair in found),
        vectors=np.stack(columns, axis=1) if vectors else None,
    )


def two_layer_eigenvalues(network: Network, weights: ArrayLike, point: ArrayLike) -> Array:
    r"""Evaluate the closed form of the non-zero Hessian eigenvalues for two layers, one output.

    For :math:`f = m^{-1/2} \sum_i v_i \sigma(u_i \cdot x / \sqrt d)` the Hessian falls into one
    block per neuron, with eigenvalues

    .. math::

       \frac{a_i \pm \sqrt{a_i^2 + 4 b_i^2}}{2}, \qquad
       a_i = \frac{v_i \sigma''(z_i) |x|^2}{d \sqrt m}, \qquad
       b_i = \frac{\sigma'(z_i) |x|}{\sqrt{m d}} .

    Parameters
    ----------
    network : Network
        Fully connected, sizes (d, m, 1), linear output.
    weights : array_like, shape (m d + m,)
        The :math:`u_i`, neuron by neuron, then the :math:`v_i`.
    point : array_like, shape (d,)
        The input x.

    Returns
    -------
    ndarray, shape (2 m,)
        The upper ones first, neuron by neuron.

    Raises
    ------
    ValueError
        If the network is not of this kind.
    """
    sizes = [layer.connection.size for layer in network.layers]
    plain = network.parameters == network.inputs * sizes[0] + sizes[0]
    if len(sizes) != 2 or sizes[1] != 1 or not plain or network.layers[0].which is not None:
        raise ValueError("network must be fully connected with sizes (d, m, 1)")
    x = network.check_point(point)
    inner, outer = network.unpack(weights)
    d, m = network.inputs, sizes[0]
    activation = network.layers[0].activations[0]
    slope, curvature = derivatives(activation, inner @ x / np.sqrt(d))
    a = outer[0] * curvature * (x @ x) / (d * np.sqrt(m))
    b = slope * np.linalg.norm(x) / np.sqrt(m * d)
    root = np.sqrt(a**2 + 4 * b**2)
    return np.concatenate([(a + root) / 2, (a - root) / 2])


# ------------------------------------------------------------------ products in the weights


@jax.jit
def _products(network: Network, arrays: Any, point: jax.Array, output: Any, moves: Any) -> Any:
    """Differentiate the gradient of an output along a batch of directions.

    In arrays of the shape of layers, so that networks that lack other edges need no other code.
    """

    def gradient(weights: Any) -> Any:
        return jax.grad(lambda w: read(network, forward(network, w, point)[0])[output])(weights)

    def image(move: Any) -> Any:
        return jax.jvp(gradient, (list(arrays),), (list(move),))[1]

    return jax.vmap(image)(moves)


# -------------------------------------------------------------- the problem on the neurons


@dataclass(frozen=True)
class _Pair:
    eigenvalue: float
    residual: float
    settled: bool
    products: int
    vector: Array | None


@partial(jax.jit, compiler_options=QUICKLY)
def prepare(network: Network, arrays: Any, point: jax.Array, output: Any) -> Any:
    """Linearise at a point: per layer (delta, g); the product with N; the data of G."""

    def probed(pairs: Any) -> jax.Array:
        values, inputs = forward(network, arrays, point, [shift for shift, _ in pairs])
        probes = [jnp.vdot(beta, g) for (_, beta), g in zip(pairs, inputs)]
        total: jax.Array = read(network, values)[output] + sum(probes)
        return total

    zero = tuple(
        (jnp.zeros(layer.connection.size), jnp.zeros(layer.connection.fan))
        for layer in network.layers
    )
    pairs, product = jax.linearize(jax.grad(probed), zero)
    metrics = tuple(
        layer.connection.metric(g, delta) for layer, (delta, g) in zip(network.layers, pairs)
    )
    return pairs, product, metrics


@jax.jit
def directions(network: Network, pairs: Any, coordinates: Any) -> Any:
    """Weights that belong to coordinates (a, b) on the neurons, an array per layer."""
    return tuple(
        layer.connection.direction(g, delta, a, b)
        for layer, (delta, g), (a, b) in zip(network.layers, pairs, coordinates)
    )


def flatten(network: Network, arrays: Any) -> Array:
    """Vector of weights from an array per layer."""
    return np.concatenate(
        [layer.connection.pack(np.asarray(w)) for layer, w in zip(network.layers, arrays)]
    )


@partial(jax.jit, compiler_options=QUICKLY)
def _advance(
    network: Network, product: Any, metrics: Any, pairs: Any, flat: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Products with G, and with N G, of coordinates in a row."""
    dual = tuple(
        layer.connection.contract(metric, a, b)
        for layer, metric, (a, b) in zip(network.layers, metrics, ravel_pytree(pairs)[1](flat))
    )
    return ravel_pytree(dual)[0], ravel_pytree(product(dual))[0]


def _norm(
    network: Network,
    arrays: Any,
    point: Array,
    output: int,
    tolerance: float,
    max_products: int,
    vectors: bool,
    generator: np.random.Generator,
) -> _Pair:
    """Eigenvalue of N G that is largest in absolute value, by Lanczos in the inner product G."""
    pairs, product, metrics = prepare(network, arrays, point, output)
    size = sum(delta.size + g.size for delta, g in pairs)
    most = min(max_products, size)
    basis, duals = np.empty((min(most, 64), size)), np.empty((min(most, 64), size))
    diagonal: list[float] = []
    off: list[float] = []
    products = 0

    def advance(vector: Array) -> tuple[Array, Array]:
        nonlocal products
        products += 1
        dual, image = _advance(network, product, metrics, pairs, vector)
        if not np.all(np.isfinite(image)):
            raise FloatingPointError("a Hessian-vector product must be finite, got nan or inf")
        return np.asarray(dual), np.array(image)

    vector = generator.standard_normal(size)
    dual, image = advance(vector)
    length = np.sqrt(max(vector @ dual, 0.0))
    if length == 0:  # neither an input nor a derivative anywhere: the Hessian vanishes
        return _Pair(0.0, 0.0, True, products, np.zeros(network.parameters) if vectors else None)
    settled, coefficients = False, np.ones(1)
    while True:
        k = len(diagonal)
        if k == len(basis):
            basis, duals = (np.concatenate([b, np.empty_like(b)]) for b in (basis, duals))
        basis[k], duals[k] = vector / length, dual / length
        vector, overlap = image / length, np.zeros(k + 1)
        for _ in range(2):  # twice is enough
            part = duals[: k + 1] @ vector
            vector -= part @ basis[: k + 1]
            overlap += part
        diagonal.append(float(overlap[k]))
        dual, image = advance(vector)
        length = float(np.sqrt(max(vector @ dual, 0.0)))
        exhausted = length <= 1e-13 * (np.abs(diagonal).max() + max(off, default=0.0))
        if exhausted or (k + 1) % _LOOK == 0 or k + 1 == most:
            settled, coefficients = _settled(diagonal, off, length, tolerance)
            if settled or exhausted or k + 1 == most:
                break
        off.append(length)

    vector = coefficients @ basis[: len(diagonal)]
    dual, image = advance(vector)
    square = float(vector @ dual)
    eigenvalue = float(dual @ image) / square
    rest = image - eigenvalue * vector
    rest_square = max(float(rest @ advance(rest)[0]), 0.0)
    residual = np.sqrt(rest_square / square) / abs(eigenvalue) if eigenvalue else 0.0
    direction = None
    if vectors:
        coordinates = ravel_pytree(pairs)[1](jnp.asarray(vector))
        direction = flatten(network, directions(network, pairs, coordinates))
        direction /= np.linalg.norm(direction) or 1.0
    return _Pair(eigenvalue, float(residual), settled or exhausted, products, direction)


def _settled(
    diagonal: list[float], off: list[float], length: float, tolerance: float
) -> tuple[bool, Array]:
    """Whether the leading Ritz pair has converged, and its coefficients.

    The other end of the spectrum must have converged as well, or lie inside by its residual:
    spectra are close to symmetric here, and the ends would otherwise be mistaken.
    """
    values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(off))
    ends = (-1, 0) if abs(values[-1]) >= abs(values[0]) else (0, -1)
    top, other = (abs(float(values[end])) for end in ends)
    errors = [length * abs(float(vectors[-1, end])) for end in ends]
    inside = other + errors[1] < top
    good = errors[0] <= tolerance * top and (inside or errors[1] <= tolerance * top)
    return bool(good), vectors[:, ends[0]]
