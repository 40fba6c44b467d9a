"""Population Hessian and G blocks of the k-Gaussian mixture, exact at every precision.

Given its class l the input is ``Y_l = mu_l + Z`` with ``Z ~ N(0, I / lambda)``; ``pi`` are
the softmax probabilities (BGHJ (3.4)), ``<x> = sum_a pi(a) x^a`` and ``C = <x; x>`` their mean
and covariance over parameter vectors (BGHJ (3.5)). Two integrations by parts turn each block
of ``E[weight Y Y^T]`` into a multiple of the identity plus a quadratic form in the means
and the parameter vectors (BGHJ Lemmas 3.1-3.3). Every remaining expectation runs over the k
logits only, so the cost does not grow with the dimension d.

The source misprints several of these formulas. Those functions take ``printed=True`` to
return what stands in the source, so that a test can reject it.

All finite-rank parts share the basis ``(mu_1, ..., mu_k, x^1, ..., x^k)``, where only
differences of the parameter vectors enter: the rank is at most 2k - 1 (the source says
k^2), and the eigenvalue of the identity part has multiplicity at least ``d - 2k + 1``.
"""

from __future__ import annotations

from traindyn import _validate
from traindyn.gaussian import Rule
from traindyn.problems.base import MATRICES, Block, Matrix
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.k_gmm._moments import (
    Signs,
    assemble,
    exact,
    node_probabilities,
    pair,
    single,
    singles,
)
from traindyn.problems.k_gmm.mixture import checked_block
from traindyn.problems.population_block import PopulationBlock

__all__ = ["g_block", "hessian_block", "population_block"]


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
    b, c = checked_block(block, problem.k)
    probabilities = node_probabilities(problem, point, rule)
    scale = 1 / problem.precision
    signs = exact(problem)
    second = pair(problem, probabilities, rule, b, c, signs(2))
    if b != c:
        return assemble(problem, point, second.scaled(1.0 if printed else -1.0))
    first = singles(problem, probabilities, rule, b, signs(1))
    if printed:
        first = singles(problem, probabilities, rule, b, Signs(0.0, scale, scale**2))
        # v = 2 (x^b - <x>) here, so (2 / lambda)(x^b - <x>)^2 is v^2 / (2 lambda).
        second = pair(problem, probabilities, rule, b, b, Signs(0.0, scale / 2, 2 * scale**2))
    return assemble(problem, point, first.plus(second.scaled(-1.0)))


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
    b, c = checked_block(block, problem.k)
    probabilities = node_probabilities(problem, point, rule)
    first, second = exact(problem)(1), exact(problem)(2)
    if printed:
        first = first._replace(covariance=-first.covariance)
        second = second._replace(cross=-second.cross)
    total = pair(problem, probabilities, rule, b, c, second)
    total = total.plus(single(problem, probabilities, rule, b, c, first).scaled(-1.0))
    total = total.plus(single(problem, probabilities, rule, c, b, first).scaled(-1.0))
    if b == c:
        total.core[b, b] += problem.weights[b]
        total = total._replace(shift=total.shift + problem.weights[b] / problem.precision)
    return assemble(problem, point, total)
