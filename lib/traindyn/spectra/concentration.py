r"""How far empirical matrices are from their expectations: the constants of BGHJ Section 6.

Theorems 6.1 and 6.2 bound the probability that an empirical Hessian or G-matrix A is further than t
from its expectation by ``exp(-[c alpha min(t, t^2) - C] d)`` with unspecified constants: at
fixed parameters the distance is of order ``alpha^{-1/2}``, ``alpha = M / d``, whatever the
dimension. With many samples per dimension the difference is a Gaussian matrix to leading
order, so the constant can be computed.

Let W be the weights of a sample (one number for a block, a b x b matrix for the full matrix
of b parameter vectors) and u its r coordinates in the span of means and parameters. Off that
span the noise is independent of (W, u), and ``sqrt(alpha) (A - E A)`` has, in the limit, the
resolvent N(z) of a semicircle law with matrix values,

.. math:: N = (z - \eta(N))^{-1}, \qquad \eta(N) = \lambda^{-2} E[W N W],

and, coupled to it through the span, eigenvalues z outside the bulk where

.. math:: z \in \mathrm{spec}\, \lambda^{-1} E[(W N(z) W) \otimes u u^T].

The law is symmetric about zero, so that its largest point is the norm. The next order is
``1 / alpha``.

In a two-layer network the second layer adds K coordinates to those on the span. A sample couples
finite coordinate s to the noise in neuron b with a strength :math:`C_{sb}`, which is
:math:`W_{ab} u` for the coordinates u of neuron a, and the condition reads
:math:`z \in \mathrm{spec}\, \lambda^{-1} E[C N(z) C^T]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from scipy.special import expit

from traindyn import _validate, gaussian
from traindyn.gaussian import Rule
from traindyn.problems.base import Array, Block, Matrix, Problem
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, curvature
from traindyn.spectra import blocks
from traindyn.spectra.population import nodes

__all__ = ["Distance", "large_sample_distance", "network_distance"]

_BISECTIONS = 40
_NEWTON_STEPS = 60
_NETWORK_NODES = 2**12


class Distance(NamedTuple):
    """Limit of ``sqrt(alpha) |A - E A|``.

    Attributes
    ----------
    norm : float
        Of the whole difference.
    bulk : float
        Of its part off the span of means and parameters; smaller than `norm` where that part
        and the span together make an outlier of the difference.
    """

    norm: float
    bulk: float


class _Law(NamedTuple):
    """Discretised law of a sample.

    `masses` (n,) sum to one; `weights` has shape (n, b, b); `squares`, (n, r r), holds the
    products of the span coordinates; `precision` is lambda.
    """

    masses: Array
    weights: Array
    squares: Array
    precision: float


def large_sample_distance(
    problem: Problem,
    statistics: Any,
    matrix: Matrix,
    block: Block | None = None,
    *,
    rule: Rule | None = None,
) -> Distance:
    r"""Limit of ``sqrt(alpha) |A - E A|`` in large dimension, then many samples (BGHJ Theorem 6.1).

    Parameters
    ----------
    problem : Problem
        Its dimension does not matter.
    statistics : NamedTuple of arrays
        Summary statistics of the fixed parameters.
    matrix : {"hessian", "g_matrix"}
        Which of the two A is.
    block : Block, optional
        One block, diagonal or not; the full matrix unless given.
    rule : Rule, optional
        Gaussian rule of the dimension of the embedded problem;
        :func:`traindyn.gaussian.rule` unless given.

    Returns
    -------
    Distance
        The operator norm of ``A - E A`` is this over ``sqrt(alpha)``, ``alpha = M / d``, up
        to relative corrections of order ``d^{-1/2}``, from the fluctuations on the span
        itself, and ``alpha^{-1/2}``.

    Raises
    ------
    ValueError
        If `rule` does not have the dimension of the embedded problem or the matrix or
        block does not exist.

    Examples
    --------
    At the origin the weights of a Hessian block are all 2/9 for three classes, and at small
    precision the means do not show: the matrix is a Wishart matrix with edges
    ``(2/9) (1 +- alpha^{-1/2})^2 / precision``.

    >>> import numpy as np
    >>> from traindyn.problems.k_gmm import KGaussianMixture, Statistics
    >>> problem = KGaussianMixture.orthonormal(3, 50, precision=0.5, ridge=0.1)
    >>> origin = Statistics(np.zeros((3, 3)), np.zeros((3, 3)))
    >>> found = large_sample_distance(problem, origin, "hessian", (0, 0))
    >>> np.allclose(found, 2 * (2 / 9) / 0.5)
    True
    """
    law = _law(problem, statistics, matrix, block, rule)
    return _distance(law.masses, law.weights, law.precision, lambda N: _on_span(law, N))


def network_distance(
    problem: TwoLayerMixture, statistics: Statistics, matrix: Matrix, *, rule: Rule | None = None
) -> Distance:
    r"""Limit of ``sqrt(alpha) |A - E A|`` for the full matrix of two layers (BGHJ Theorem 6.2).

    With :math:`a_i = v_i 1\{W_i \cdot X > 0\}`, the error e and the weight w of the matrix, the
    first layer has the weights :math:`w\, a a^T`; coordinate u of neuron i couples to the noise
    in neuron j with :math:`w\, a_i a_j u` and entry k of the second layer with
    :math:`w\, g_k a_j`, in the Hessian plus :math:`\delta_{kj}\, e\, 1\{W_j \cdot X > 0\}`.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision; its dimension does not matter.
    statistics : Statistics
        Summary statistics of the fixed parameters.
    matrix : {"hessian", "g_matrix"}
        Which of the two A is.
    rule : Rule, optional
        Gaussian rule of the dimension ``d + rank(R_perp)`` of the embedded problem; a fixed
        Sobol rule of 2**12 nodes unless given. With n nodes and centroids together and r for
        that dimension it takes ``8 n K^2 (r + 1)`` bytes.

    Returns
    -------
    Distance
        As :func:`large_sample_distance`.

    Raises
    ------
    ValueError
        If the precision is infinite, the matrix does not exist or `rule` does not have the
        dimension of the embedded problem.
    """
    precision = _validate.positive("problem.precision", problem.precision)
    small, point = problem.embed(statistics)
    chosen = gaussian.sobol(small.dimension, _NETWORK_NODES, rng=0) if rule is None else rule
    if chosen.dim != small.dimension:
        raise ValueError(
            f"rule must have the dimension {small.dimension} of the embedded problem, "
            f"got {chosen.dim}"
        )
    beside = np.zeros((len(small.centroids), small.dimension - small.signal))
    means = np.hstack([small.centroids, beside])
    inputs = (means[:, None] + chosen.nodes / np.sqrt(precision)).reshape(-1, small.dimension)
    labels = np.repeat(small.labels, chosen.size)
    z = inputs @ point.W.T
    active, hidden = (z > 0).astype(np.float64), np.maximum(z, 0.0)
    output = hidden @ point.v
    w, a = curvature.weight(matrix, output, labels), point.v * active
    first = (w[:, None] * a)[:, :, None] * inputs[:, None, :]
    seen = np.hstack([first.reshape(len(w), -1), w[:, None] * hidden])
    couplings = seen[:, :, None] * a[:, None, :]
    if matrix == "hessian":
        own = (expit(output) - labels)[:, None] * active
        couplings[:, -small.width :] += own[:, :, None] * np.eye(small.width)
    masses = np.outer(small.weights, chosen.weights).ravel()
    flat = couplings.reshape(len(w), -1)
    moments = ((flat.T * masses) @ flat / precision).reshape(couplings.shape[1:] * 2)

    def on_span(resolvent: Array) -> float:
        total = np.einsum("sbtc,bc->st", moments, resolvent)
        return float(np.linalg.eigvalsh((total + total.T) / 2)[-1])

    return _distance(masses, w[:, None, None] * a[:, :, None] * a[:, None, :], precision, on_span)


def _distance(
    masses: Array, weights: Array, precision: float, on_span: Callable[[Array], float]
) -> Distance:
    """Solve for the edge, and beyond it for the eigenvalue that comes from the span."""
    size = weights.shape[1]
    flat = weights.reshape(-1, size * size)
    second = (flat.T * masses) @ flat / precision**2
    # second[ab, cd] is E[W_ab W_cd]; eta maps N_bc to its (a, d) entry
    eta = second.reshape((size,) * 4).transpose(0, 3, 1, 2).reshape(size**2, size**2)
    edge, resolvent = _edge(eta, size)
    if on_span(resolvent) <= edge:
        return Distance(edge, edge)

    def gap(z: float) -> float:
        found = _resolvent(eta, size, z)
        return -z if found is None else on_span(found) - z

    high = 2 * edge
    while gap(high) > 0:
        high *= 2
    return Distance(float(scipy.optimize.brentq(gap, edge, high, rtol=1e-10)), edge)


def _law(
    problem: Problem,
    statistics: Any,
    matrix: Matrix,
    block: Block | None,
    rule: Rule | None,
) -> _Law:
    """Discretise the law of weights and span coordinates."""
    small: Any
    small, point = problem.embed(statistics)
    chosen = gaussian.rule(small.dimension) if rule is None else rule
    sample, masses = nodes(small, chosen)
    if block is not None:
        width = len(small.blocks)
        block = _validate.pair("block", block, most=width - 1)
    rows = [b for b, _ in small.blocks] if block is None else [block[0]]
    columns = rows if block is None else [block[1]]
    source = blocks.at(small, point, sample)
    weights = np.array(
        [[source.factors(matrix, (b, c)).weights for c in columns] for b in rows]
    ).transpose(2, 0, 1)
    squares = (sample.inputs[:, :, None] * sample.inputs[:, None, :]).reshape(masses.size, -1)
    return _Law(masses, weights, squares, small.precision)


def _on_span(law: _Law, resolvent: Array) -> float:
    """Largest eigenvalue of ``E[(W N W) kron u u^T] / lambda``."""
    n, size = law.weights.shape[:2]
    product = law.weights @ resolvent @ law.weights
    moments = (product.reshape(n, -1).T * law.masses) @ law.squares / law.precision
    r = round(np.sqrt(law.squares.shape[1]))
    total = moments.reshape(size, size, r, r).transpose(0, 2, 1, 3).reshape(size * r, size * r)
    return float(np.linalg.eigvalsh((total + total.T) / 2)[-1])


def _edge(eta: Array, size: int) -> tuple[float, Array]:
    """Upper edge of the matrix-valued semicircle law, and its resolvent there."""
    scale = np.linalg.eigvalsh((eta @ np.eye(size).ravel()).reshape(size, size))[-1]
    _validate.positive("second moment of the weights", scale)
    # eta(1) <= scale, so N <= the scalar law's: the edge is at most 2 sqrt(scale). It may be
    # just that, and at the edge itself Newton's method converges too slowly.
    low, high = 0.0, 2.0 * np.sqrt(scale) * (1 + 1e-9)
    inside = _resolvent(eta, size, high)
    if inside is None:
        raise FloatingPointError(f"no resolvent at {high:g}, above the edge of the law")
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        found = _resolvent(eta, size, middle)
        if found is None:
            low = middle
        else:
            high, inside = middle, found
    return high, inside


def _resolvent(eta: Array, size: int, z: float) -> Array | None:
    """Least positive solution of ``N = (z - eta(N))^{-1}``, None if there is none.

    The map is increasing and convex in the order of symmetric matrices, so Newton's method
    increases from zero to the solution.
    """
    identity = np.eye(size)
    resolvent = np.zeros((size, size))
    for _ in range(_NEWTON_STEPS):
        inverse = z * identity - (eta @ resolvent.ravel()).reshape(size, size)
        inverse = (inverse + inverse.T) / 2
        if np.linalg.eigvalsh(inverse)[0] <= 0:
            return None
        image = np.linalg.inv(inverse)
        slope = np.kron(image, image) @ eta
        if np.abs(np.linalg.eigvals(slope)).max() >= 1:
            return None
        step = np.linalg.solve(np.eye(size**2) - slope, (image - resolvent).ravel())
        step = step.reshape(size, size)
        # rounding must not leak into antisymmetric matrices, where nothing pulls it back
        resolvent = resolvent + (step + step.T) / 2
        if np.abs(step).max() <= 1e-10 * np.abs(resolvent).max():
            return resolvent
    return None
