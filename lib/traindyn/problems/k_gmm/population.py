"""Population Hessian and G blocks of the k-Gaussian mixture, exact at every precision.

Given its class l the input is ``Y_l = mu_l + Z`` with ``Z ~ N(0, I / lambda)``; ``pi`` are
the softmax probabilities (BGHJ (3.4)), ``<x> = sum_a pi(a) x^a`` and ``C = <x; x>`` their mean
and covariance over parameter vectors (BGHJ (3.5)). Two integrations by parts turn each block
of ``E[weight Y Y^T]`` into a multiple of the identity plus a quadratic form in the means
and the parameter vectors (BGHJ Lemmas 3.1-3.3). Every remaining expectation runs over the k
logits only, so the cost does not grow with the dimension d.

The source misprints several of these formulas. Those functions take ``printed=True`` to
return what stands in the source, so that a test can reject it. An independent route,
:func:`direct_block` and :func:`direct_moment`, integrates over the whole noise vector
without integration by parts; it is meant for dimension three or so.

All finite-rank parts share the basis ``(mu_1, ..., mu_k, x^1, ..., x^k)``, where only
differences of the parameter vectors enter: the rank is at most 2k - 1 (the source says
k^2), and the eigenvalue of the identity part has multiplicity at least ``d - 2k + 1``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from traindyn import _validate, gaussian
from traindyn.gaussian import Rule
from traindyn.problems.base import MATRICES, Array, Block, Matrix, Sample
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.k_gmm.mixture import softmax
from traindyn.problems.population_block import PopulationBlock

__all__ = [
    "direct_block",
    "direct_moment",
    "g_block",
    "hessian_block",
    "label_moment",
    "leading_coefficients",
    "leading_order",
    "noise_mean",
    "noise_moment",
    "pair_moment",
    "population_block",
]


class _Moment(NamedTuple):
    """Identity shift and core of a matrix in the basis of means and parameter vectors."""

    shift: float
    core: Array

    def scaled(self, factor: float) -> _Moment:
        return _Moment(factor * self.shift, factor * self.core)

    def plus(self, other: _Moment) -> _Moment:
        return _Moment(self.shift + other.shift, self.core + other.core)


class _Signs(NamedTuple):
    """Coefficients of the parts of ``E[w {(mu_l + v)^2 - C}]`` in powers of the precision.

    `v` is the gradient of ``log w``; its product with the mean has coefficient `cross`,
    its square `square`, and the covariance C is subtracted `covariance` times.
    """

    cross: float
    square: float
    covariance: float


def population_block(
    problem: KGaussianMixture, matrix: Matrix, point: Point, block: Block, *, rule: Rule
) -> PopulationBlock:
    """Return :func:`hessian_block` or :func:`g_block`, by the name of the matrix."""
    _validate.choice("matrix", matrix, MATRICES)
    function = hessian_block if matrix == "hessian" else g_block
    return function(problem, point, block, rule=rule)


def hessian_block(
    problem: KGaussianMixture, point: Point, block: Block, *, rule: Rule, printed: bool = False
) -> PopulationBlock:
    r"""Block (b, c) of the population Hessian, BGHJ Lemmas 3.1 and 3.2.

    For b and c distinct it is

    .. math:: -E[\pi(b)\pi(c)\{(\mu_l + (x^b + x^c - 2\langle x\rangle)/\lambda)^{\otimes 2}
              + I/\lambda - 2 C/\lambda^2\}],

    and on the diagonal

    .. math:: E[\pi(b)\{(\mu_l + (x^b - \langle x\rangle)/\lambda)^{\otimes 2}
              - C/\lambda^2\}]
              - E[\pi(b)^2\{(\mu_l + 2(x^b - \langle x\rangle)/\lambda)^{\otimes 2}
              - 2C/\lambda^2\}] + E[\pi(b)(1 - \pi(b))] I/\lambda.

    Parameters
    ----------
    problem : KGaussianMixture
        Its means, weights and precision give the law of the data.
    point : Point
        ``x`` of shape (k, d).
    block : Block
        Pair (b, c) of classes.
    rule : Rule
        Gaussian rule of dimension k.
    printed : bool, default False
        The formula as printed. Lemma 3.1 lacks the overall minus sign. The brackets of
        Lemma 3.2 square only the second summand and leave the mean a vector; it is read
        as ``mu_l^2 + (x^b - <x>)^2 / lambda - C / lambda^2``, the one reading in which
        each summand is a matrix.

    Returns
    -------
    PopulationBlock
        The average over the law of the data, ridge not included.

    Raises
    ------
    ValueError
        If `block`, `point` or the dimension of `rule` does not fit the problem.
    """
    b, c = _block(problem, block)
    probabilities = _probabilities(problem, point, rule)
    scale = 1 / problem.precision
    exact = _exact(problem)
    pair = _pair(problem, probabilities, rule, b, c, exact(2))
    if b != c:
        return _assemble(problem, point, pair.scaled(1.0 if printed else -1.0))
    single = _singles(problem, probabilities, rule, b, exact(1))
    if printed:
        single = _singles(problem, probabilities, rule, b, _Signs(0.0, scale, scale**2))
        # v = 2 (x^b - <x>) here, so (2 / lambda)(x^b - <x>)^2 is v^2 / (2 lambda).
        pair = _pair(problem, probabilities, rule, b, b, _Signs(0.0, scale / 2, 2 * scale**2))
    return _assemble(problem, point, single.plus(pair.scaled(-1.0)))


def g_block(
    problem: KGaussianMixture, point: Point, block: Block, *, rule: Rule, printed: bool = False
) -> PopulationBlock:
    r"""Block (b, c) of the population G-matrix, BGHJ Lemma 3.3: ``A + B / lambda + C / lambda^2``.

    .. math::
        A &= \delta_{bc} p_b \mu_b^{\otimes 2}
          - p_c E[\pi_{Y_c}(b)(\mu_c + (x^b - \langle x\rangle)/\lambda)^{\otimes 2}]
          - p_b E[\pi_{Y_b}(c)(\mu_b + (x^c - \langle x\rangle)/\lambda)^{\otimes 2}] \\
          &\quad + \sum_l p_l E[\pi_{Y_l}(b)\pi_{Y_l}(c)
            (\mu_l + (x^b + x^c - 2\langle x\rangle)/\lambda)^{\otimes 2}], \\
        B &= E[(y_b - \pi(b))(y_c - \pi(c))] I, \\
        C &= p_c E[C_c \pi_{Y_c}(b)] + p_b E[C_b \pi_{Y_b}(c)]
          - 2 \sum_l p_l E[C_l \pi_{Y_l}(b) \pi_{Y_l}(c)].

    Parameters
    ----------
    problem, point, block, rule
        As for :func:`hessian_block`.
    printed : bool, default False
        The formula as printed: minus inside the last square of A, and minus on the first
        two terms of C. (The A', B', C' at the end of the source's proof are correct.)

    Raises
    ------
    ValueError
        As :func:`hessian_block`.
    """
    b, c = _block(problem, block)
    probabilities = _probabilities(problem, point, rule)
    single, pair = _exact(problem)(1), _exact(problem)(2)
    if printed:
        single = single._replace(covariance=-single.covariance)
        pair = pair._replace(cross=-pair.cross)
    total = _pair(problem, probabilities, rule, b, c, pair)
    total = total.plus(_single(problem, probabilities, rule, b, c, single).scaled(-1.0))
    total = total.plus(_single(problem, probabilities, rule, c, b, single).scaled(-1.0))
    if b == c:
        total.core[b, b] += problem.weights[b]
        total = total._replace(shift=total.shift + problem.weights[b] / problem.precision)
    return _assemble(problem, point, total)


def pair_moment(
    problem: KGaussianMixture, point: Point, block: Block, *, rule: Rule
) -> PopulationBlock:
    """Return ``E[pi(b) pi(c) Y Y^T]``, BGHJ (3.10) and (3.19) averaged over the classes.

    Parameters
    ----------
    problem, point, block, rule
        As for :func:`hessian_block`; b and c may agree.
    """
    b, c = _block(problem, block)
    probabilities = _probabilities(problem, point, rule)
    return _assemble(problem, point, _pair(problem, probabilities, rule, b, c, _exact(problem)(2)))


def label_moment(
    problem: KGaussianMixture, point: Point, block: Block, *, rule: Rule, printed: bool = False
) -> PopulationBlock:
    """Return ``E[y_c pi(b) Y Y^T]``, BGHJ (3.17) and (3.18), `block` being (b, c).

    Parameters
    ----------
    problem, point, block, rule
        As for :func:`hessian_block`.
    printed : bool, default False
        (3.18) as printed: without the weight of class c in the middle term and with twice
        the last one.
    """
    b, c = _block(problem, block)
    signs = _exact(problem)(1)
    if printed:
        signs = _Signs(signs.cross / problem.weights[c], 2 * signs.square, 2 * signs.covariance)
    probabilities = _probabilities(problem, point, rule)
    return _assemble(problem, point, _single(problem, probabilities, rule, b, c, signs))


def noise_mean(
    problem: KGaussianMixture, point: Point, label: int, index: int, *, rule: Rule
) -> Array:
    """Return ``E[pi_{Y_l}(a) Z]``, BGHJ (3.13), shape (d,).

    Parameters
    ----------
    problem, point, rule
        As for :func:`hessian_block`.
    label, index : int
        The class l of the input and the class a of the probability.

    Returns
    -------
    ndarray, shape (d,)
    """
    moment = _noise(problem, point, label, index, rule)
    return np.asarray(_point(problem, point).x.T @ moment.core[label, problem.k :])


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
    return _assemble(problem, point, _Moment(moment.shift, core))


def leading_coefficients(
    weights: Array, probabilities: Array, matrix: Matrix, block: Block
) -> Array:
    """Coefficients of ``mu_l mu_l^T`` in a block at infinite precision.

    Parameters
    ----------
    weights : ndarray, shape (k,)
        Class weights.
    probabilities : ndarray, shape (k, k)
        Softmax probabilities at the means, row l for the mean of class l: the softmax of
        the column ``m[:, l]`` of the overlaps (BGHJ (5.16)).
    matrix : {"hessian", "g_matrix"}
        Decides on the weight: ``pi(b) 1{b = c} - pi(b) pi(c)`` or ``(pi(b) - y_b) (pi(c) - y_c)``.
    block : Block
        Pair (b, c).

    Returns
    -------
    ndarray, shape (k,)
        Entry l multiplies ``mu_l mu_l^T``; for orthonormal means they are the eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> thirds = np.full(3, 1 / 3)
    >>> leading_coefficients(thirds, np.full((3, 3), 1 / 3), "g_matrix", (0, 0)) * 27
    array([4., 1., 1.])
    """
    weights = _validate.probability_vector("weights", weights)
    k = weights.size
    pi = _validate.finite("probabilities", probabilities, shape=(k, k))[:, None, :]
    block = _validate.pair("block", block, most=k - 1)
    return _coefficients(weights, pi, np.ones(1), matrix, block)


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
        As for :func:`hessian_block`.
    matrix : {"hessian", "g_matrix"}
        As for :func:`leading_coefficients`.
    printed : bool, default False
        As printed: (7.1) lacks the minus sign, the other three are as they should be.

    Returns
    -------
    PopulationBlock
        With `shift` 0 and the means as basis.
    """
    b, c = _block(problem, block)
    pi = _probabilities(problem, point, rule)
    coefficients = _coefficients(problem.weights, pi, rule.weights, matrix, (b, c))
    if printed and matrix == "hessian" and b != c:
        coefficients = -coefficients
    return PopulationBlock(0.0, problem.means.T, np.diag(coefficients))


def direct_block(
    problem: KGaussianMixture, matrix: Matrix, point: Point, block: Block, *, rule: Rule
) -> Array:
    """Integrate a population block over the whole noise vector, without closed forms.

    Parameters
    ----------
    problem, matrix, point, block
        As for :func:`population_block`.
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
        As for :func:`hessian_block`.
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


def _block(problem: KGaussianMixture, block: Block) -> Block:
    """Check a pair of classes."""
    return _validate.pair("block", block, most=problem.k - 1)


def _point(problem: KGaussianMixture, point: Point) -> Point:
    """Check the shape of a point."""
    return Point(_validate.finite("point.x", point.x, shape=(problem.k, problem.dimension)))


def _probabilities(problem: KGaussianMixture, point: Point, rule: Rule) -> Array:
    """Softmax probabilities by class of the input and node, shape (k, n, k)."""
    if rule.dim != problem.k:
        raise ValueError(
            f"rule must have the dimension k = {problem.k} of the logits, got {rule.dim}"
        )
    x = _point(problem, point).x
    noise = rule.nodes @ gaussian.symmetric_sqrt(x @ x.T / problem.precision)
    return softmax((problem.means @ x.T)[:, None, :] + noise)


def _exact(problem: KGaussianMixture) -> Callable[[int], _Signs]:
    """Coefficients that integration by parts gives for a product of j probabilities."""
    scale = 1 / problem.precision
    return lambda j: _Signs(scale, scale**2, j * scale**2)


def _quadratic(
    problem: KGaussianMixture,
    probabilities: Array,
    rule: Rule,
    weights: Array,
    gradients: Array,
    signs: _Signs,
) -> _Moment:
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
    signs : _Signs
        Coefficients of the parts of the integrand.

    Returns
    -------
    _Moment
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
    return _Moment(float(means.sum()) / problem.precision, core)


def _pair(
    problem: KGaussianMixture, probabilities: Array, rule: Rule, b: int, c: int, signs: _Signs
) -> _Moment:
    """``E[pi(b) pi(c) Y Y^T]`` over all classes."""
    identity = np.eye(problem.k)
    weights = problem.weights[:, None] * probabilities[:, :, b] * probabilities[:, :, c]
    gradients = identity[b] + identity[c] - 2 * probabilities
    return _quadratic(problem, probabilities, rule, weights, gradients, signs)


def _singles(
    problem: KGaussianMixture, probabilities: Array, rule: Rule, a: int, signs: _Signs
) -> _Moment:
    """``E[pi(a) Y Y^T]`` over all classes."""
    weights = problem.weights[:, None] * probabilities[:, :, a]
    gradients = np.eye(problem.k)[a] - probabilities
    return _quadratic(problem, probabilities, rule, weights, gradients, signs)


def _single(
    problem: KGaussianMixture, probabilities: Array, rule: Rule, b: int, label: int, signs: _Signs
) -> _Moment:
    """``E[y_c pi(b) Y Y^T]`` with c = `label`."""
    weights = np.zeros(probabilities.shape[:2])
    weights[label] = problem.weights[label] * probabilities[label, :, b]
    gradients = np.eye(problem.k)[b] - probabilities
    return _quadratic(problem, probabilities, rule, weights, gradients, signs)


def _noise(problem: KGaussianMixture, point: Point, label: int, index: int, rule: Rule) -> _Moment:
    """``E[pi_{Y_l}(a) Y Y^T]`` given class l, whose parts are the moments of the noise."""
    label = _validate.integer("label", label, least=0, most=problem.k - 1)
    index = _validate.integer("index", index, least=0, most=problem.k - 1)
    probabilities = _probabilities(problem, point, rule)
    moment = _single(problem, probabilities, rule, index, label, _exact(problem)(1))
    return moment.scaled(1 / float(problem.weights[label]))


def _coefficients(
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


def _assemble(problem: KGaussianMixture, point: Point, moment: _Moment) -> PopulationBlock:
    """Attach the basis of means and parameter vectors."""
    basis = np.concatenate([problem.means, _point(problem, point).x]).T
    return PopulationBlock(moment.shift, basis, moment.core)
