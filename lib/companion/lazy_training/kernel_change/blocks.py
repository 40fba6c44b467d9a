r"""Hessians block by block, and of all outputs together: what the proof of linearity bounds.

The weights fall into those of the layers, and so does the Hessian of an output, into blocks
:math:`H^{(l_1, l_2)}`. The source bounds each (ZHU Lemma A.2.2) and adds the bounds up:

.. math:: |H| \le \sum_{l_1, l_2} |H^{(l_1, l_2)}| .

In the notation of :mod:`traindyn.deep.hessian` a block is :math:`T_{l_1} N_{l_1 l_2} T_{l_2}^T`, so
that its singular values are found among the neurons of two layers: :func:`hessian_blocks` runs a
Golub–Kahan–Lanczos bidiagonalisation in the inner products G of the two, with full
reorthogonalisation, on all blocks at once.

The Hessian of d outputs together is a tensor (ZHU Appendix A.3), whose norm is a supremum over
mixtures of the outputs,

.. math:: |H_f| = \sup_{|s| = 1} \Big| \sum_k s_k H_{f_k} \Big| , \qquad
   \max_k |H_{f_k}| \le |H_f| \le \Big( \sum_k |H_{f_k}|^2 \Big)^{1/2} ,

the upper bound by the triangle and Cauchy–Schwarz inequalities.
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

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.deep.activations import derivatives
from traindyn.deep.connections import Dense, Masked
from traindyn.deep.hessian import QUICKLY, directions
from traindyn.deep.network import Network, forward, read

__all__ = [
    "HessianBlocks",
    "VectorNorm",
    "hessian_blocks",
    "last_blocks",
    "two_layer_vector_norm",
    "vector_norm",
]

_NOTHING = 1e-5
"""Relative length of a new vector below which a block has been exhausted."""

_LOOK = 4
"""Steps of the bidiagonalisation between two looks at the singular values."""


@dataclass(frozen=True)
class HessianBlocks:
    """Spectral norms of the blocks of a Hessian, with their quality.

    Attributes
    ----------
    norms : ndarray, shape (L, L)
        Symmetric; row l belongs to layer l + 1.
    residuals : ndarray, shape (L, L)
        Relative; the error of a norm is about the square.
    converged : ndarray of bool, shape (L, L)
    products : int
        Passes through the network, each for all blocks.
    """

    norms: Array
    residuals: Array
    converged: NDArray[np.bool_]
    products: int

    @property
    def total(self) -> float:
        """Sum over all blocks, which bounds the norm of the Hessian (ZHU Lemma A.11.1)."""
        return float(self.norms.sum())


@dataclass(frozen=True)
class VectorNorm:
    """Norm of the Hessian of all outputs together.

    Attributes
    ----------
    norm : float
        The largest value found: a lower bound of the supremum, attained at `mixture`.
    mixture : ndarray, shape (d,)
        Unit vector s.
    values : ndarray, shape (q,)
        What each start of the ascent led to.
    outputs : ndarray, shape (d,)
        Norms of the Hessians of the single outputs.
    converged : bool
        Whether the best ascent and the norms have settled.
    """

    norm: float
    mixture: Array
    values: Array
    outputs: Array
    converged: bool


def hessian_blocks(
    network: Network,
    weights: ArrayLike,
    point: ArrayLike,
    *,
    output: int = 0,
    tolerance: float = 1e-5,
    max_products: int = 400,
    rng: RNG = 0,
) -> HessianBlocks:
    """Spectral norms of the blocks of the Hessian of an output (ZHU Lemma A.2.2).

    Of a head of the network (:meth:`traindyn.deep.network.Network.head`) they are the blocks of the
    sum of a neuron of any layer, with its own weights (ZHU Lemma A.9.2).

    Parameters
    ----------
    network : Network
        With L layers of weights.
    weights : array_like, shape (P,)
        All weights in one vector, layer by layer.
    point : array_like, shape (d,)
        The input x.
    output : int
        Number of the output, from 0.
    tolerance : float
        Bound on the relative residuals.
    max_products : int
        Passes after which the best so far is returned with some `converged` False.
    rng : int, SeedSequence or Generator
        Draws the first vectors of the iteration.

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or an argument is out of range.
    FloatingPointError
        If a product is not finite.

    Examples
    --------
    With two layers of ReLU all of the Hessian is in the mixed block:

    >>> import numpy as np
    >>> from companion.lazy_training.kernel_change.blocks import hessian_blocks
    >>> from traindyn.deep import fully_connected
    >>> network = fully_connected([4, 25, 1], activation="relu")
    >>> found = hessian_blocks(network, network.initial(rng=1), np.ones(4))
    >>> found.norms.round(12) + 0.0
    array([[0. , 0.2],
           [0.2, 0. ]])
    """
    mixture = np.eye(network.outputs)[network.check_output(output)]
    arrays, x = jax.device_put(network.unpack(weights)), network.check_point(point)
    first, second = np.triu_indices(network.depth)
    layers = _layers(network)
    found = _largest(
        network, arrays, x, mixture, layers[first], layers[second],
        _validate.positive("tolerance", tolerance),
        _validate.integer("max_products", max_products, least=2),
        _validate.generator("rng", rng),
    )  # fmt: skip

    def square(values: NDArray[Any]) -> NDArray[Any]:
        table = np.zeros((network.depth, network.depth), dtype=values.dtype)
        table[first, second] = table[second, first] = values
        return table

    return HessianBlocks(
        square(found.values), square(found.residuals), square(found.settled), found.products
    )


def last_blocks(
    network: Network, weights: ArrayLike, point: ArrayLike, *, output: int = 0
) -> tuple[float, float]:
    r"""Evaluate the norms of the blocks of the last hidden layer in closed form (ZHU (2.14)).

    Only the output k reads that layer, so that the blocks fall apart neuron by neuron:

    .. math::

       |H^{(L-1, L-1)}| &= \frac{1}{\sqrt{m_k}} \max_i |v_i \sigma''(z_i)| \frac{|g_i|^2}{m_i}, \\
       |H^{(L-1, L)}| &= \frac{1}{\sqrt{m_k}} \max_i |\sigma'(z_i)| \frac{|g_i|}{\sqrt{m_i}}

    over the neurons i that k reads, with weights v, scaled sums z and inputs g of length m.

    Parameters
    ----------
    network : Network
        Of matrices, with at least two layers and no skip connections from the last but one.
    weights : array_like, shape (P,)
        All weights in one vector, layer by layer.
    point : array_like, shape (d,)
        The input x.
    output : int
        Number k of the output, from 0.

    Returns
    -------
    curvature, mixed : float
        Norms of the blocks (L - 1, L - 1) and (L - 1, L).

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or the network is not of this kind.
    """
    pair = network.layers[-2:]
    if network.depth < 2 or not all(isinstance(one.connection, (Dense, Masked)) for one in pair):
        raise ValueError("network must end in two layers of matrices")
    if pair[0].which is not None or any(one.skips is not None for one in pair):
        raise ValueError("network must have one activation per layer and no skip connections")
    hidden, last = pair
    k, x = network.check_output(output), network.check_point(point)
    arrays = network.unpack(weights)
    before = [x, *(value[0] for value in network.neurons(weights, x[None]))]
    g = np.concatenate([before[source] for source in hidden.sources])
    matrix, scale = np.asarray(arrays[-2]), np.asarray(hidden.scale)
    m = hidden.connection.size
    first, second = derivatives(hidden.activations[0], scale * (matrix @ g))
    mask = np.asarray(getattr(hidden.connection, "mask", np.ones_like(matrix)))
    squares = scale**2 * (mask @ g**2)
    # Of what the outputs read, the last hidden layer stands last.
    read_by = np.asarray(getattr(last.connection, "mask", np.ones_like(arrays[-1])))[k, -m:]
    outgoing = np.asarray(arrays[-1])[k, -m:]
    slope, curvature = np.abs(first) * read_by, np.abs(second * outgoing)
    root = float(last.scale[k])
    return root * float(np.max(curvature * squares)), root * float(np.max(slope * squares**0.5))


def vector_norm(
    network: Network,
    weights: ArrayLike,
    point: ArrayLike,
    *,
    starts: int = 4,
    tolerance: float = 1e-8,
    max_rounds: int = 200,
    rng: RNG = 0,
) -> VectorNorm:
    r"""Norm of the Hessian of all outputs together (ZHU Corollary A.3.1).

    An ascent: for a mixture s of the outputs take the leading singular vectors u, v of its
    Hessian, then the best mixture for these, :math:`s_k \propto u^T H_{f_k} v`. The norm is
    convex in s and never falls, but may have several local maxima on the sphere.

    Parameters
    ----------
    network : Network
        With d outputs; for one it is the norm of its Hessian.
    weights : array_like, shape (P,)
        All weights in one vector, layer by layer.
    point : array_like, shape (d,)
        The input x.
    starts : int
        So many random mixtures to start from, and so many that follow the longest vectors of
        outgoing weights of neurons, besides the output of the largest norm.
    tolerance : float
        Relative gain of a round at which an ascent stops.
    max_rounds : int
        After so many rounds an ascent stops in any case.
    rng : int, SeedSequence or Generator
        Of the random mixtures, and of the first vectors of the iterations.

    Raises
    ------
    ValueError
        As :func:`hessian_blocks`.
    """
    x, arrays = network.check_point(point), jax.device_put(network.unpack(weights))
    starts = _validate.integer("starts", starts, least=0)
    tolerance = _validate.positive("tolerance", tolerance)
    max_rounds = _validate.integer("max_rounds", max_rounds, least=1)
    generator = _validate.generator("rng", rng)
    everything = np.ones((1, _layers(network).shape[1]))

    def largest(mixture: Array) -> _Triplets:
        # The error of a norm is about the square of the residual.
        accuracy = np.sqrt(tolerance) / 10
        return _largest(
            network, arrays, x, mixture, everything, everything, accuracy, 400, generator
        )

    single = [largest(e) for e in np.eye(network.outputs)]
    outputs = np.array([found.values[0] for found in single])
    mixtures = [
        np.eye(network.outputs)[int(np.argmax(outputs))],
        *_longest(network, arrays)[:starts],
        *generator.standard_normal((starts, network.outputs)),
    ]
    values, ends, good = [], [], []
    for mixture in mixtures:
        mixture = mixture / np.linalg.norm(mixture)
        for _ in range(max_rounds):
            found = largest(mixture)
            slopes = np.asarray(_trilinear(network, arrays, x, *found.vectors(network)))
            best, value = float(np.linalg.norm(slopes)), float(found.values[0])
            settled = best - value <= tolerance * best
            if best > 0:
                mixture = slopes / best
            if settled:
                break
        values.append(max(value, best))
        ends.append(mixture)
        good.append(settled and bool(found.settled[0]))
    top = int(np.argmax(values))
    return VectorNorm(
        norm=values[top],
        mixture=ends[top],
        values=np.array(values),
        outputs=outputs,
        converged=good[top] and all(found.settled[0] for found in single),
    )


def two_layer_vector_norm(network: Network, weights: ArrayLike, point: ArrayLike) -> float:
    r"""Evaluate the closed form of :func:`vector_norm` for two layers.

    The Hessian of a mixture s of :math:`f_k = m^{-1/2} \sum_i v_{ki} \sigma(u_i \cdot x/\sqrt d)`
    falls into one block per neuron. The best mixture for neuron i is :math:`v_{\cdot i}`, so

    .. math::

       |H_f| = \max_i \frac{a_i + \sqrt{a_i^2 + 4 b_i^2}}{2}, \qquad
       a_i = \frac{|v_{\cdot i}| |\sigma''(z_i)| |x|^2}{d \sqrt m}, \qquad
       b_i = \frac{|\sigma'(z_i)| |x|}{\sqrt{m d}} :

    the formula for one output, with the length of the outgoing weights in place of the weight.
    The curvature grows like the root of the number of outputs, the mixed part does not grow.

    Parameters
    ----------
    network : Network
        Fully connected, sizes (d, m, k), linear outputs.
    weights : array_like, shape (m d + k m,)
        The :math:`u_i`, neuron by neuron, then the v, output by output.
    point : array_like, shape (d,)
        The input x.

    Raises
    ------
    ValueError
        If the network is not of this kind.
    """
    sizes = [layer.connection.size for layer in network.layers]
    plain = network.parameters == network.inputs * sizes[0] + sizes[0] * sizes[-1]
    if len(sizes) != 2 or not plain or network.layers[0].which is not None:
        raise ValueError("network must be fully connected with sizes (d, m, k)")
    x = network.check_point(point)
    inner, outer = network.unpack(weights)
    d, m = network.inputs, sizes[0]
    activation = network.layers[0].activations[0]
    slope, curvature = derivatives(activation, inner @ x / np.sqrt(d))
    a = np.linalg.norm(outer, axis=0) * np.abs(curvature) * (x @ x) / (d * np.sqrt(m))
    b = np.abs(slope) * np.linalg.norm(x) / np.sqrt(m * d)
    return float(np.max((a + np.sqrt(a**2 + 4 * b**2)) / 2))


# ------------------------------------------------------------ singular values among the neurons


@dataclass(frozen=True)
class _Triplets:
    """Leading singular values of a batch of blocks; of the first also the singular vectors.

    The vectors are kept as coordinates on the neurons.
    """

    values: Array
    residuals: Array
    settled: NDArray[np.bool_]
    products: int
    pairs: Any
    left: Array
    right: Array

    def vectors(self, network: Network) -> list[Any]:
        """Left and right singular vector of the first block, an array of weights per layer."""
        found = []
        for flat in (self.left, self.right):
            coordinates = ravel_pytree(self.pairs)[1](jnp.asarray(flat))
            arrays = directions(network, self.pairs, coordinates)
            found.append(
                tuple(layer.connection.restrict(one) for layer, one in zip(network.layers, arrays))
            )
        return found


def _layers(network: Network) -> Array:
    """Which coordinates (a, b) among the neurons belong to each layer, shape (L, size)."""
    sizes = [layer.connection.size + layer.connection.fan for layer in network.layers]
    which: Array = np.repeat(np.eye(network.depth), sizes, axis=1)
    return which


def _longest(network: Network, arrays: Any) -> Array:
    """Outgoing weights of the neurons that a last matrix reads, the longest first."""
    if not isinstance(network.layers[-1].connection, (Dense, Masked)):
        return np.zeros((0, network.outputs))
    outgoing = np.asarray(arrays[-1]).T
    lengths = np.linalg.norm(outgoing, axis=1)
    order = np.argsort(-lengths)[: np.count_nonzero(lengths)]
    return np.asarray(outgoing[order])


@jax.jit
def _linearise(network: Network, arrays: Any, point: jax.Array, mixture: jax.Array) -> Any:
    """Linearise a mixture of outputs at a point, as :func:`traindyn.deep.hessian.prepare`."""

    def probed(pairs: Any) -> jax.Array:
        values, inputs = forward(network, arrays, point, [shift for shift, _ in pairs])
        probes = [jnp.vdot(beta, g) for (_, beta), g in zip(pairs, inputs)]
        total: jax.Array = jnp.vdot(mixture, read(network, values)) + sum(probes)
        return total

    zero = tuple(
        (jnp.zeros(layer.connection.size), jnp.zeros(layer.connection.fan))
        for layer in network.layers
    )
    pairs, product = jax.linearize(jax.grad(probed), zero)
    metrics = tuple(
        layer.connection.metric(g, delta) for layer, (delta, g) in zip(network.layers, pairs)
    )
    return pairs, product, metrics, _blind(network, pairs, metrics)


def _blind(network: Network, pairs: Any, metrics: Any) -> Any:
    """Find what G does not see of coordinates (a, b): unread entries, and (delta, -g).

    The iteration divides by small lengths and would blow such parts up.
    """
    found = []
    for layer, metric, (delta, g) in zip(network.layers, metrics, pairs):
        contract, a, b = layer.connection.contract, jnp.ones_like(delta), jnp.ones_like(g)
        rows = (contract(metric, a, jnp.zeros_like(b))[0] != 0).astype(a.dtype)
        columns = (contract(metric, jnp.zeros_like(a), b)[1] != 0).astype(a.dtype)
        null = rows * delta, -columns * g
        length = jnp.sqrt(jnp.sum(null[0] ** 2) + jnp.sum(null[1] ** 2))
        scale = jnp.where(length > 0, length, 1.0)
        found.append((rows, columns, null[0] / scale, null[1] / scale))
    return tuple(found)


# Optimised, XLA's code for a batch of one (jaxlib 0.10.2, convolutions, processors with AVX-512)
# returns wrong images.
@partial(jax.jit, compiler_options=QUICKLY)
def _images(
    network: Network,
    product: Any,
    metrics: Any,
    blind: Any,
    pairs: Any,
    targets: Any,
    vectors: Any,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Clean a batch of what G does not see; its products with G, and with N G at the targets."""
    unravel = ravel_pytree(pairs)[1]

    def image(target: jax.Array, vector: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        clean = []
        for (a, b), (rows, columns, x, y) in zip(unravel(vector), blind):
            a, b = rows * a, columns * b
            overlap = a @ x + b @ y
            clean.append((a - overlap * x, b - overlap * y))
        dual = tuple(
            layer.connection.contract(metric, a, b)
            for layer, metric, (a, b) in zip(network.layers, metrics, clean)
        )
        whole = ravel_pytree(product(dual))[0]
        return ravel_pytree(tuple(clean))[0], ravel_pytree(dual)[0], target * whole

    found: tuple[jax.Array, jax.Array, jax.Array] = jax.vmap(image)(targets, vectors)
    return found


@jax.jit
def _trilinear(network: Network, arrays: Any, point: jax.Array, left: Any, right: Any) -> jax.Array:
    """Second derivatives of all outputs along two directions, shape (d,)."""

    def slope(weights: Any) -> jax.Array:
        def value(w: Any) -> jax.Array:
            return read(network, forward(network, w, point)[0])

        first: jax.Array = jax.jvp(value, (weights,), (right,))[1]
        return first

    second: jax.Array = jax.jvp(slope, (tuple(arrays),), (left,))[1]
    return second


def _largest(
    network: Network,
    arrays: Any,
    point: Array,
    mixture: Array,
    rows: Array,
    columns: Array,
    tolerance: float,
    max_products: int,
    generator: np.random.Generator,
) -> _Triplets:
    """Leading singular values of the blocks between the coordinates of rows and columns."""
    pairs, product, metrics, blind = _linearise(network, arrays, point, mixture)
    batch, size = rows.shape
    basis, duals = (np.zeros((2, batch, 16, size)) for _ in range(2))
    lengths: list[Array] = []
    vector = columns * generator.standard_normal((batch, size))
    most = min(max_products, 2 * size)
    while True:
        # Even steps make a vector on the columns, odd ones on the rows.
        side, k = len(lengths) % 2, len(lengths) // 2
        vector, dual, vector_image = map(
            np.asarray,
            _images(network, product, metrics, blind, pairs, columns if side else rows, vector),
        )
        if not np.all(np.isfinite(vector_image)):
            raise FloatingPointError("a Hessian-vector product must be finite, got nan or inf")
        length = np.sqrt(np.maximum(np.einsum("bi,bi->b", vector, dual), 0.0))
        # Where nothing is left the iteration goes on with zeros, which change nothing. Coordinates
        # that G does not see make a length of rounding errors only about 1e-8, not 1e-16.
        most_seen = np.max([*lengths[1:], length], axis=0)
        left = (length > _NOTHING * most_seen) & (length > 1e-13 * most_seen.max())
        inverse = np.divide(1.0, length, out=np.zeros(batch), where=left)
        lengths.append(np.where(left, length, 0.0))
        if k == basis.shape[2]:
            basis, duals = (np.concatenate([old, np.zeros_like(old)], axis=2) for old in
                            (basis, duals))  # fmt: skip
        basis[side, :, k] = inverse[:, None] * vector
        duals[side, :, k] = inverse[:, None] * dual
        vector = inverse[:, None] * vector_image
        known = slice(0, k + side)
        for _ in range(2):  # twice is enough
            part = duals[1 - side, :, known] @ vector[:, :, None]
            vector = vector - (part.swapaxes(1, 2) @ basis[1 - side, :, known])[:, 0]
        if side == 0 and k > 0 and (k % _LOOK == 0 or len(lengths) >= most):
            u, values, v, residuals = _bidiagonal(np.array(lengths))
            settled = residuals <= tolerance * values
            if settled.all() or len(lengths) >= most:
                break
    scale = np.where(values > 0, values, 1.0)
    left_end, right_end = u[0] @ basis[1, 0, :k], v[0] @ basis[0, 0, :k]
    return _Triplets(values, residuals / scale, settled, len(lengths), pairs, left_end, right_end)


def _bidiagonal(lengths: Array) -> tuple[Array, Array, Array, Array]:
    """Leading singular triplets of the bidiagonal matrices, and their residuals."""
    k = len(lengths) // 2
    matrix = np.zeros((lengths.shape[1], k, k))
    steps = np.arange(k)
    matrix[:, steps, steps] = lengths[1 : 2 * k : 2].T
    matrix[:, steps[:-1], steps[1:]] = lengths[2 : 2 * k : 2].T
    left, values, right = np.linalg.svd(matrix)
    u, v = left[:, :, 0], right[:, 0]
    return u, values[:, 0], v, lengths[2 * k] * np.abs(u[:, -1])
