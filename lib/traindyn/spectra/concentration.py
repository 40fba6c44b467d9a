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

from traindyn import _validate, gaussian
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Block, Matrix, Problem
from traindyn.spectra import blocks
from traindyn.spectra.population import nodes

__all__ = ["Distance", "large_sample_distance"]

_BISECTIONS = 40
_NEWTON_STEPS = 60


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

    >>> from traindyn.spectra.concentration import large_sample_distance
    >>> import numpy as np
    >>> from traindyn.problems.k_gmm import KGaussianMixture, Statistics
    >>> problem = KGaussianMixture.orthonormal(3, 50, precision=0.5, ridge=0.1)
    >>> origin = Statistics(np.zeros((3, 3)), np.zeros((3, 3)))
    >>> found = large_sample_distance(problem, origin, "hessian", (0, 0))
    >>> np.allclose(found, 2 * (2 / 9) / 0.5)
    True
    """
    law = _law(problem, statistics, matrix, block, rule)
    return solve_distance(law.masses, law.weights, law.precision, lambda N: _on_span(law, N))


def solve_distance(
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
