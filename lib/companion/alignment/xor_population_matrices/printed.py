"""Formulas on curvature of BGHJ and of the course notes as printed, where they differ.

Nothing here describes a matrix. These are the wrong variants, under the names and signatures of
the right ones in :mod:`~traindyn.problems.two_layer.curvature`,
:mod:`~companion.alignment.xor_population_matrices.expansions` and
:mod:`~traindyn.problems.two_layer.spectra`, against which those are tested: a check that
confirms ours must reject these.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from companion.alignment.xor_population_matrices import expansions
from traindyn import _validate, relu
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Block, Matrix
from traindyn.problems.population_block import PopulationBlock
from traindyn.problems.two_layer import curvature
from traindyn.problems.two_layer.mixture import Point, TwoLayerMixture, checked_point

__all__ = [
    "class_sum",
    "feature_excess",
    "first_layer_order",
    "fourth_moment_bound",
    "leading_block_one_neuron",
    "leading_block_unweighted",
    "mixed_block",
    "response_order",
]


def leading_block_one_neuron(
    problem: TwoLayerMixture, matrix: Matrix, point: Point, block: Block, *, kink: float = 0.0
) -> PopulationBlock:
    r"""BGHJ (4.11) as printed: the weight of neuron i's own output, :math:`\sigma'(v_i g(m_i))`.

    The weight of :func:`~traindyn.problems.two_layer.curvature.leading_block` is that of the
    whole output :math:`v \cdot g(W s_c)`.
    """
    point = checked_point(problem, point)
    i, _ = _validate.pair("block", block, most=problem.width)
    alone = Point(np.where(np.arange(problem.width) == i, point.v, 0.0), point.W)
    return curvature.leading_block(problem, matrix, alone, block, kink=kink)


def leading_block_unweighted(
    problem: TwoLayerMixture, matrix: Matrix, point: Point, block: Block, *, kink: float = 0.0
) -> PopulationBlock:
    r"""BGHJ (7.11), (7.13) and (7.16) as printed: without the factor :math:`\sigma'`."""
    point = checked_point(problem, point)
    right = curvature.leading_block(problem, matrix, point, block, kink=kink)
    felt = np.maximum(point.W[:, : problem.signal] @ problem.centroids.T, 0.0)
    weights = curvature.weight(matrix, point.v @ felt, problem.labels)
    return PopulationBlock(right.shift, right.basis, right.core / weights)


def mixed_block(
    problem: TwoLayerMixture,
    matrix: Matrix,
    point: Point,
    j: int,
    *,
    rule: Rule | None = None,
) -> Array:
    r"""BGHJ (6.16) and (6.21) as printed: :math:`(y - \hat y)` for :math:`(\hat y - y)`.

    The G-matrix has no such term and is right.
    """
    mixed = curvature.mixed_block(problem, matrix, point, j, rule=rule)
    if matrix == "hessian":
        mixed[j] -= 2 * curvature.active_error(problem, point, j, rule=rule)
    return mixed


def first_layer_order(problem: TwoLayerMixture, point: Point, i: int) -> float:
    r"""BGHJ (4.11), (4.14) and (4.17) as printed: the margin of neuron i alone.

    .. math:: \frac1{\sqrt\lambda} \max_c \bar\Phi(a_{ic})^{1/2} + \frac1\lambda.
    """
    point = checked_point(problem, point)
    i = _validate.integer("i", i, least=0, most=problem.width - 1)
    tails = np.sqrt(ndtr(-np.abs(expansions.margins(problem, point)[i])))
    return float(tails.max() / np.sqrt(problem.precision) + 1 / problem.precision)


def response_order(problem: TwoLayerMixture, point: Point, i: int) -> float:
    r"""BGHJ Lemma 5.16 as printed.

    .. math:: \max_{jc} (1 + v_j) \Big( m_{ic} + \sqrt{\frac{R_{ii}}\lambda} \Big)
              e^{-a_{jc}^2 / 16} + \frac1\lambda.
    """
    point = checked_point(problem, point)
    i = _validate.integer("i", i, least=0, most=problem.width - 1)
    tails = np.exp(-np.square(expansions.margins(problem, point)) / 16)
    along = point.W[i, : problem.signal] @ problem.centroids.T
    sizes = along + np.linalg.norm(point.W[i]) / np.sqrt(problem.precision)
    worst = ((1 + point.v)[:, None] * sizes * tails).max()
    return float(worst + 1 / problem.precision)


def feature_excess(m: ArrayLike, gram: ArrayLike, precision: float) -> Array:
    r"""BGHJ Lemma 4.1, Case 1 (non-negative means), as printed.

    .. math:: -m_i m_j P(W_i \cdot X < 0 \text{ or } W_j \cdot X < 0) + R_{ij} / \lambda.
    """
    precision = _validate.positive("precision", precision)
    means = _validate.finite("m", m, shape=(None,))
    square = _validate.positive_semidefinite("gram", gram, size=means.size, scale=1.0)
    if means.size == 0 or np.diag(square).min() == 0:
        raise ValueError("gram must have a positive diagonal")
    lengths = np.sqrt(np.diag(square))
    heights = means * np.sqrt(precision) / lengths
    correlation = np.clip(square / np.outer(lengths, lengths), -1.0, 1.0)
    both = relu.bivariate_cdf(heights[:, None], heights, correlation)
    return np.asarray(-np.outer(means, means) * (1 - both) + square / precision)


def fourth_moment_bound(
    m: ArrayLike, gram: ArrayLike, precision: float, *, constant: float = 3.0
) -> float:
    r"""BGHJ Lemma 4.2 as printed: :math:`|m|^4 + 6 |m|^2 / \lambda + c |W|_F^2 / \lambda^2`.

    The left side grows with the fourth power of W and the last term with the second, so that no
    universal constant c can do.
    """
    precision, constant = (
        _validate.positive("precision", precision),
        _validate.number("constant", constant),
    )
    square = float(np.square(_validate.finite("m", m, shape=(None,))).sum())
    trace = float(np.trace(_validate.symmetric("gram", gram, scale=1.0)))
    return square**2 + 6 * square / precision + constant * trace / precision**2


def class_sum(ridge: float, precision: float = math.inf) -> float:
    r"""BGHJ Section 5.4.3 as printed: :math:`\mathrm{logit}(-4 \beta)`, which is not a number."""
    ridge = _validate.positive("ridge", ridge)
    if _validate.positive_or_infinite("precision", precision) != math.inf:
        raise ValueError(f"precision must be infinite, got {precision:g}")
    with np.errstate(invalid="ignore"):
        return float(np.log(-4 * ridge / (1 + 4 * ridge)))
