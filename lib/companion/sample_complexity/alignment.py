"""The leading block of a two-layer network's Hessian as MDL Section 13.2 prints it."""

from __future__ import annotations

import numpy as np

from traindyn import _validate
from traindyn.problems.base import Matrix
from traindyn.problems.population_block import PopulationBlock
from traindyn.problems.two_layer import curvature
from traindyn.problems.two_layer.mixture import Point, TwoLayerMixture, checked_point

__all__ = ["leading_block_one_centroid"]


def leading_block_one_centroid(
    problem: TwoLayerMixture, matrix: Matrix, point: Point, centroid: int
) -> PopulationBlock:
    r"""Second-layer block in the summary of MDL Section 13.2: one weight for all centroids.

    .. math:: \tfrac14 \sum_c \sigma'(v \cdot g(W \nu))\, g(W s_c) g(W s_c)^T ,

    where :func:`~traindyn.problems.two_layer.curvature.leading_block` has the weight of each
    centroid :math:`s_c`.
    """
    point = checked_point(problem, point)
    centroid = _validate.integer("centroid", centroid, least=0, most=len(problem.centroids) - 1)
    block = (problem.width, problem.width)
    right = curvature.leading_block(problem, matrix, point, block)
    felt = np.maximum(point.W[:, : problem.signal] @ problem.centroids[centroid], 0.0)
    same = curvature.weight(matrix, point.v @ felt, problem.labels[centroid])
    return PopulationBlock(right.shift, right.basis, np.diag(problem.weights * same))
