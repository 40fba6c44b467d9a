"""Moments of the k-Gaussian mixture that the lemmas on population matrices are made of.

The moments of BGHJ Section 3 by integration by parts, the leading order at high precision, and an
independent route, :func:`direct_block` and :func:`direct_moment`, which integrates over the whole
noise vector without integration by parts; it is meant for dimension three or so. Functions whose
formula is misprinted in the source take ``printed=True`` to return what stands there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Block, Matrix, Sample
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.k_gmm._moments import (
    Moment,
    Signs,
    assemble,
    coefficients,
    exact,
    node_probabilities,
    pair,
    single,
)
from traindyn.problems.k_gmm.mixture import checked_block, checked_point
from traindyn.problems.population_block import PopulationBlock

__all__ = [
    "direct_block",
    "direct_moment",
    "label_moment",
    "leading_order",
    "noise_mean",
    "noise_moment",
    "pair_moment",
]


def pair_moment(
    problem: KGaussianMixture, point: Point, block: Block, *, rule: Rule
) -> PopulationBlock:
    """Return ``E[pi(b) pi(c) Y Y^T]``, BGHJ (3.10) and (3.19) averaged over the classes.

    Parameters
    ----------
    problem, point, block, rule
        As for :func:`~traindyn.problems.k_gmm.population.hessian_block`; b and c may agree.
    """
    b, c = checked_block(block, problem.k)
    probabilities = node_probabilities(problem, point, rule)
    return assemble(problem, point, pair(problem, probabilities, rule, b, c, exact(problem)(2)))


def label_moment(
    problem: KGaussianMixture, point: Point, block: Block, *, rule: Rule, printed: bool = False
) -> PopulationBlock:
    """Return ``E[y_c pi(b) Y Y^T]``, BGHJ (3.17) and (3.18), `block` being (b, c).

    Parameters
    ----------
    problem, point, block, rule
        As for :func:`~traindyn.problems.k_gmm.population.hessian_block`.
    printed : bool, default False
        (3.18) as printed: without the weight of class c in the middle term and with twice
        the last one.
    """
    b, c = checked_block(block, problem.k)
    signs = exact(problem)(1)
    if printed:
        signs = Signs(signs.cross / problem.weights[c], 2 * signs.square, 2 * signs.covariance)
    probabilities = node_probabilities(problem, point, rule)
    return assemble(problem, point, single(problem, probabilities, rule, b, c, signs))


def noise_mean(
    problem: KGaussianMixture, point: Point, label: int, index: int, *, rule: Rule
) -> Array:
    """Return ``E[pi_{Y_l}(a) Z]``, BGHJ (3.13), shape (d,).

    Parameters
    ----------
    problem, point, rule
        As for :func:`~traindyn.problems.k_gmm.population.hessian_block`.
    label, index : int
        The class l of the input and the class a of the probability.

    Returns
    -------
    ndarray, shape (d,)
    """
    moment = _noise(problem, point, label, index, rule)
    return np.asarray(checked_point(problem, point).x.T @ moment.core[label, problem.k :])


def noise_moment(
    problem: KGaussianMixture,
    point: Point,
    label: int,
    index: int,
    *,
    rule: Rule,
    printed: bool = False,
) -> PopulationBlock:
    """Return ``E[pi_{Y_l}(a) Z Z^T]``, BGHJ (3.14).

    Parameters
    ----------
    problem, point, label, index, rule
        As for :func:`noise_mean`.
    printed : bool, default False
        (3.14) as printed, without ``1 / lambda^2`` on the finite-rank part.
    """
    k = problem.k
    moment = _noise(problem, point, label, index, rule)
    core = np.zeros_like(moment.core)
    core[k:, k:] = moment.core[k:, k:] * (problem.precision**2 if printed else 1.0)
    return assemble(problem, point, Moment(moment.shift, core))


def leading_order(
    problem: KGaussianMixture,
    matrix: Matrix,
    point: Point,
    block: Block,
    *,
    rule: Rule,
    printed: bool = False,
) -> PopulationBlock:
    """Leading order of a block at large precision, BGHJ (7.1), (7.2), (7.7) and (7.8).

    A sum of multiples of ``mu_l mu_l^T`` whose coefficients are expectations at the given
    precision; the block differs from it by ``O(1 / lambda)`` in operator norm.

    Parameters
    ----------
    problem, point, block, rule
        As for :func:`~traindyn.problems.k_gmm.population.hessian_block`.
    matrix : {"hessian", "g_matrix"}
        Decides on the weight: ``pi(b) 1{b = c} - pi(b) pi(c)`` or ``(pi(b) - y_b) (pi(c) - y_c)``.
    printed : bool, default False
        As printed: (7.1) lacks the minus sign, the other three are as they should be.

    Returns
    -------
    PopulationBlock
        With `shift` 0 and the means as basis.
    """
    b, c = checked_block(block, problem.k)
    pi = node_probabilities(problem, point, rule)
    sizes = coefficients(problem.weights, pi, rule.weights, matrix, (b, c))
    if printed and matrix == "hessian" and b != c:
        sizes = -sizes
    return PopulationBlock(0.0, problem.means.T, np.diag(sizes))


def direct_block(
    problem: KGaussianMixture, matrix: Matrix, point: Point, block: Block, *, rule: Rule
) -> Array:
    """Integrate a population block over the whole noise vector, without closed forms.

    Parameters
    ----------
    problem, matrix, point, block
        As for :func:`~traindyn.problems.k_gmm.population.population_block`.
    rule : Rule
        Gaussian rule of dimension d.

    Returns
    -------
    ndarray, shape (d, d)
    """
    total = np.zeros((problem.dimension, problem.dimension))
    for label, weight in enumerate(problem.weights):
        sample = Sample(
            problem.means[label] + _noise_nodes(problem, rule), np.full(rule.size, label)
        )
        factors = problem.factors(matrix, block, point, sample)
        total += weight * (factors.left.T * (rule.weights * factors.weights)) @ factors.right
    return total


def direct_moment(
    problem: KGaussianMixture,
    point: Point,
    weight: Callable[[Array, int], Array],
    *,
    rule: Rule,
    noise: bool = False,
) -> Array:
    """Integrate ``weight Y Y^T`` over the whole noise vector.

    Parameters
    ----------
    problem, point
        As for :func:`~traindyn.problems.k_gmm.population.hessian_block`.
    weight : callable
        Maps the softmax probabilities at the nodes, shape (n, k), and the class of the
        input to the weights, shape (n,).
    rule : Rule
        Gaussian rule of dimension d.
    noise : bool, default False
        ``Z Z^T`` in the place of ``Y Y^T``.

    Returns
    -------
    ndarray, shape (d, d)
    """
    total = np.zeros((problem.dimension, problem.dimension))
    nodes = _noise_nodes(problem, rule)
    for label, share in enumerate(problem.weights):
        inputs = problem.means[label] + nodes
        values = weight(problem.probabilities(point, inputs), label)
        features = nodes if noise else inputs
        total += share * (features.T * (rule.weights * values)) @ features
    return total


def _noise_nodes(problem: KGaussianMixture, rule: Rule) -> Array:
    """Nodes of the noise Z, shape (n, d)."""
    if rule.dim != problem.dimension:
        raise ValueError(
            f"rule must have the dimension d = {problem.dimension} of the inputs, got {rule.dim}"
        )
    return np.asarray(rule.nodes / np.sqrt(problem.precision))


def _noise(problem: KGaussianMixture, point: Point, label: int, index: int, rule: Rule) -> Moment:
    """``E[pi_{Y_l}(a) Y Y^T]`` given class l, whose parts are the moments of the noise."""
    label = _validate.integer("label", label, least=0, most=problem.k - 1)
    index = _validate.integer("index", index, least=0, most=problem.k - 1)
    probabilities = node_probabilities(problem, point, rule)
    moment = single(problem, probabilities, rule, index, label, exact(problem)(1))
    return moment.scaled(1 / float(problem.weights[label]))
