"""Spectra predicted from summary statistics alone, at finite precision and sample size.

A block of the Hessian or of the G-matrix is ``(1/M) sum_i g_i x_i x_i^T`` where the
weight ``g_i`` depends on the input only through its projections on the directions and
the parameters. Off their span the input is isotropic Gaussian and independent of the
weight, so the bulk obeys a generalised Marchenko–Pastur law and the outliers are the
roots of a small determinant (:mod:`traindyn.laws.weighted`). The joint law of the weight
and the projections is a function of the summary statistics; it is discretised by a Gaussian
rule on the problem *embedded* in as few dimensions as those statistics need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindyn import _validate, gaussian, parallel
from traindyn.gaussian import Rule
from traindyn.laws import WeightedMarchenkoPastur
from traindyn.problems.base import MATRICES, Array, Block, Matrix
from traindyn.spectra.population import MixtureProblem, nodes
from traindyn.trajectory import Trajectory


@dataclass(frozen=True)
class BlockPrediction:
    """Predicted spectrum of one diagonal block.

    Attributes
    ----------
    law : WeightedMarchenkoPastur
        Law of the bulk.
    edges : tuple of float
        Lowest and highest point of the bulk.
    outliers : ndarray, shape (m,)
        Eigenvalues outside the bulk, decreasing in absolute value.
    overlaps : ndarray, shape (m,)
        Squared cosine between each outlier's eigenvector and the block's own parameter.
    alignment : float
        Predicted :func:`traindyn.linalg.alignment` of the parameter with the eigenspace of
        its leading outliers, at most :meth:`~traindyn.problems.base.Problem.outlier_count`.
    """

    law: WeightedMarchenkoPastur
    edges: tuple[float, float]
    outliers: Array
    overlaps: Array
    alignment: float


@dataclass(frozen=True)
class PredictedFilm:
    """Predicted spectra along a trajectory of summary statistics.

    Attributes
    ----------
    times : ndarray, shape (T,)
    blocks : tuple of Block
    lower, upper : dict of ndarray, shape (T, blocks)
        Bulk edges, by matrix.
    outliers : dict of ndarray, shape (T, blocks, r)
        Decreasing in absolute value, NaN where there is no further outlier.
    alignment : dict of ndarray, shape (T, blocks)
    """

    times: Array
    blocks: tuple[Block, ...]
    lower: dict[Matrix, Array]
    upper: dict[Matrix, Array]
    outliers: dict[Matrix, Array]
    alignment: dict[Matrix, Array]


def block(
    problem: MixtureProblem,
    statistics: Any,
    matrix: Matrix,
    block: Block,
    *,
    alpha: float,
    rule: Rule | None = None,
) -> BlockPrediction:
    """Predict the spectrum of one diagonal block at given summary statistics.

    Parameters
    ----------
    problem : MixtureProblem
    statistics : NamedTuple
        Summary statistics of the point, for example of the effective dynamics.
    matrix : {"hessian", "g_matrix"}
    block : Block
        A diagonal block, one of ``problem.blocks``.
    alpha : float
        Samples per dimension, M/d.
    rule : Rule, optional
        Gaussian rule of the dimension of the embedded problem;
        :func:`traindyn.gaussian.rule` unless given.

    Returns
    -------
    BlockPrediction

    Raises
    ------
    ValueError
        If `alpha` is not positive, the block is not diagonal, or the dimension of `rule`
        does not fit.
    """
    alpha = _validate.positive("alpha", alpha)
    _validate.choice("matrix", matrix, MATRICES)
    _validate.choice("block", block, problem.blocks)
    small: Any
    small, point = problem.embed(statistics)
    sample, masses = nodes(small, gaussian.rule(small.dimension) if rule is None else rule)
    weights, features, _ = small.factors(matrix, block, point, sample)
    law = WeightedMarchenkoPastur(
        weights,
        probabilities=masses,
        # the bulk lives on the complement of the span
        ratio=(problem.dimension - small.dimension) / (alpha * problem.dimension),
        variance=1 / problem.precision,
    )
    found = law.outliers(features)
    order = np.argsort(-np.abs(found.values), kind="stable")
    parameter = small.parameter(block, point)
    direction = parameter / np.linalg.norm(parameter)
    overlaps = (found.vectors.T @ direction) ** 2 * found.overlaps
    leading = order[: problem.outlier_count(block)]
    edges = law.edges
    return BlockPrediction(
        law,
        (float(edges[0]), float(edges[-1])),
        found.values[order],
        overlaps[order],
        float(np.sqrt(min(overlaps[leading].sum(), 1.0))),
    )


def along(
    problem: MixtureProblem,
    trajectory: Trajectory[Any],
    *,
    alpha: float,
    matrices: Sequence[Matrix] = MATRICES,
    blocks: Sequence[Block] | None = None,
    rule: Rule | None = None,
    workers: int | None = None,
) -> PredictedFilm:
    """Predict the spectra of diagonal blocks along a trajectory of statistics.

    Parameters
    ----------
    problem : MixtureProblem
    trajectory : Trajectory
        Usually of the effective dynamics; its statistics have leading axis T.
    alpha : float
        Samples per dimension, M/d.
    matrices : sequence of {"hessian", "g_matrix"}
    blocks : sequence of Block, optional
        All diagonal blocks unless given.
    rule : Rule, optional
        As in :func:`block`.
    workers : int, optional
        Threads, as in :func:`traindyn.parallel.map_ordered`; the result does not depend on it.

    Returns
    -------
    PredictedFilm
    """
    chosen = tuple(problem.blocks if blocks is None else blocks)
    kind: Any = type(trajectory.statistics)

    def at(index: int) -> list[BlockPrediction]:
        statistics = kind(*(values[index] for values in trajectory.statistics))
        return [
            block(problem, statistics, matrix, b, alpha=alpha, rule=rule)
            for matrix in matrices
            for b in chosen
        ]

    found = parallel.map_ordered(at, range(len(trajectory.times)), workers=workers)
    rank = max((len(p.outliers) for row in found for p in row), default=0)

    def table(matrix: Matrix, read: Any) -> Array:
        first = list(matrices).index(matrix) * len(chosen)
        return np.array([[read(p) for p in row[first : first + len(chosen)]] for row in found])

    def padded(p: BlockPrediction) -> Array:
        return np.pad(p.outliers, (0, rank - len(p.outliers)), constant_values=np.nan)

    return PredictedFilm(
        times=trajectory.times,
        blocks=chosen,
        lower={m: table(m, lambda p: p.edges[0]) for m in matrices},
        upper={m: table(m, lambda p: p.edges[1]) for m in matrices},
        outliers={m: table(m, padded) for m in matrices},
        alignment={m: table(m, lambda p: p.alignment) for m in matrices},
    )
