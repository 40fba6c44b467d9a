"""What the population blocks of the k-Gaussian mixture are put together from.

Expectations over the logits, as a multiple of the identity and a core in the basis of the means and
the parameter vectors; see :mod:`traindyn.problems.k_gmm.population`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from traindyn import _validate, gaussian
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import MATRICES, Block, Matrix
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.k_gmm.mixture import checked_point, softmax
from traindyn.problems.population_block import PopulationBlock


class Moment(NamedTuple):
    """Identity shift and core of a matrix in the basis of means and parameter vectors."""

    shift: float
    core: Array

    def scaled(self, factor: float) -> Moment:
        return Moment(factor * self.shift, factor * self.core)

    def plus(self, other: Moment) -> Moment:
        return Moment(self.shift + other.shift, self.core + other.core)


class Signs(NamedTuple):
    """Coefficients of the parts of ``E[w {(mu_l + v)^2 - C}]`` in powers of the precision.

    `v` is the gradient of ``log w``; its product with the mean has coefficient `cross`,
    its square `square`, and the covariance C is subtracted `covariance` times.
    """

    cross: float
    square: float
    covariance: float


def node_probabilities(problem: KGaussianMixture, point: Point, rule: Rule) -> Array:
    """Softmax probabilities by class of the input and node, shape (k, n, k)."""
    _validate.providing("rule", rule, "nodes", "weights")
    if rule.dim != problem.k:
        raise ValueError(
            f"rule must have the dimension k = {problem.k} of the logits, got {rule.dim}"
        )
    x = checked_point(problem, point).x
    noise = rule.nodes @ gaussian.symmetric_sqrt(x @ x.T / problem.precision)
    return softmax((problem.means @ x.T)[:, None, :] + noise)


def exact(problem: KGaussianMixture) -> Callable[[int], Signs]:
    """Coefficients that integration by parts gives for a product of j probabilities."""
    scale = 1 / problem.precision
    return lambda j: Signs(scale, scale**2, j * scale**2)


def _quadratic(
    problem: KGaussianMixture,
    probabilities: Array,
    rule: Rule,
    weights: Array,
    gradients: Array,
    signs: Signs,
) -> Moment:
    """Sum over classes l of ``E[w_l {(mu_l + v_l)^2 + I / lambda - C}]``.

    Parameters
    ----------
    problem : KGaussianMixture
        Its number of classes and its precision enter.
    probabilities : ndarray, shape (k, n, k)
        Softmax probabilities by class of the input and node.
    rule : Rule
        Gaussian rule of dimension k, with n nodes.
    weights : ndarray, shape (k, n)
        Class weights times products of probabilities, at the nodes.
    gradients : ndarray, shape (k, n, k)
        Coefficients of ``v_l`` on the parameter vectors.
    signs : Signs
        Coefficients of the parts of the integrand.

    Returns
    -------
    Moment
        In the basis of the means, then the parameter vectors.
    """
    k = problem.k
    mass = weights * rule.weights
    means = mass.sum(axis=1)
    mass = mass.ravel()
    flat = gradients.reshape(-1, k)
    pi = probabilities.reshape(-1, k)
    square = (flat.T * mass) @ flat
    covariance = np.diag(mass @ pi) - (pi.T * mass) @ pi
    cross = np.einsum("ln,lna->la", mass.reshape(k, -1), gradients)
    core = np.zeros((2 * k, 2 * k))
    core[:k, :k] = np.diag(means)
    core[:k, k:] = signs.cross * cross
    core[k:, :k] = core[:k, k:].T
    core[k:, k:] = signs.square * square - signs.covariance * covariance
    return Moment(float(means.sum()) / problem.precision, core)


def pair(
    problem: KGaussianMixture, probabilities: Array, rule: Rule, b: int, c: int, signs: Signs
) -> Moment:
    """``E[pi(b) pi(c) Y Y^T]`` over all classes."""
    identity = np.eye(problem.k)
    weights = problem.weights[:, None] * probabilities[:, :, b] * probabilities[:, :, c]
    gradients = identity[b] + identity[c] - 2 * probabilities
    return _quadratic(problem, probabilities, rule, weights, gradients, signs)


def singles(
    problem: KGaussianMixture, probabilities: Array, rule: Rule, a: int, signs: Signs
) -> Moment:
    """``E[pi(a) Y Y^T]`` over all classes."""
    weights = problem.weights[:, None] * probabilities[:, :, a]
    gradients = np.eye(problem.k)[a] - probabilities
    return _quadratic(problem, probabilities, rule, weights, gradients, signs)


def single(
    problem: KGaussianMixture, probabilities: Array, rule: Rule, b: int, label: int, signs: Signs
) -> Moment:
    """``E[y_c pi(b) Y Y^T]`` with c = `label`."""
    weights = np.zeros(probabilities.shape[:2])
    weights[label] = problem.weights[label] * probabilities[label, :, b]
    gradients = np.eye(problem.k)[b] - probabilities
    return _quadratic(problem, probabilities, rule, weights, gradients, signs)


def coefficients(
    weights: Array, probabilities: Array, masses: Array, matrix: Matrix, block: Block
) -> Array:
    """``p_l E[weight]`` by class l, for probabilities (k, n, k) at nodes of given masses."""
    _validate.choice("matrix", matrix, MATRICES)
    b, c = block
    pi_b, pi_c = probabilities[:, :, b], probabilities[:, :, c]
    if matrix == "hessian":
        values = pi_b * (float(b == c) - pi_c)
    else:
        label = np.eye(len(weights))
        values = (label[b][:, None] - pi_b) * (label[c][:, None] - pi_c)
    return np.asarray(weights * (values @ masses))


def assemble(problem: KGaussianMixture, point: Point, moment: Moment) -> PopulationBlock:
    """Attach the basis of means and parameter vectors."""
    basis = np.concatenate([problem.means, checked_point(problem, point).x]).T
    return PopulationBlock(moment.shift, basis, (moment.core + moment.core.T) / 2)
