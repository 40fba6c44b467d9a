r"""Spectra predicted from summary statistics alone, at finite precision and sample size.

A block of the Hessian or of the G-matrix is ``(1/M) sum_i g_i x_i x_i^T`` where the
weight ``g_i`` depends on the input only through its projections on the directions and
the parameters. Off their span the input is isotropic Gaussian and independent of the
weight, so the bulk obeys a generalised Marchenko–Pastur law and the outliers are the
roots of a small determinant (:mod:`traindyn.laws.weighted`). The joint law of the weight
and the projections is a function of the summary statistics; it is discretised by a Gaussian
rule on the problem *embedded* in as few dimensions as those statistics need.

The block of a layer that does not see the inputs themselves, the second layer of a two-layer
network, has a fixed size: with many samples per dimension it is its population value, all of
whose eigenvalues count as outliers.

The error of a prediction is that of its Gaussian rule. It is estimated by the distance to the same
prediction by a coarser rule: a tensor Gauss-Hermite rule of about two thirds of the order, else the
farthest of four independent Sobol rules of an eighth of the nodes each. (One alone agrees with a
rule by chance now and then: the error was then up to 19 times the estimate. The four take up to as
long as the prediction itself.) An edge has more: no rule reaches the largest weights where they lie
far out, and the edge is beyond them. By :math:`0 \le z' \le 1` outside the support (see
:mod:`traindyn.laws.weighted`) it is farther out by at most what they move the last pole. Where the
weights are not bounded, the bulk has no last edge: every rule puts it near its largest weight, and
its error is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traindyn import _validate, gaussian, parallel
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.laws import WeightedMarchenkoPastur
from traindyn.problems.base import MATRICES, Block, Matrix, Problem, Sample, require
from traindyn.spectra import blocks as block_factors
from traindyn.spectra.population import Embedding
from traindyn.trajectory import Trajectory

_SCRAMBLING, _SCRAMBLINGS = 2**31 - 1, 4
"""Seed of the coarser Sobol rules, apart from those that are used for rules, and their number."""
_RAYS, _FAR, _GROWTH = 64, (1e4, 1e8), 1.1
"""Directions and distances, in units of the nodes, at which the growth of weights is looked for."""


@dataclass(frozen=True)
class BlockPrediction:
    """Predicted spectrum of one diagonal block.

    Attributes
    ----------
    law : WeightedMarchenkoPastur or None
        Law of the bulk; None where there is none, because the size of the block is fixed.
    edges : tuple of float
        Lowest and highest point of the bulk; NaN where there is none.
    outliers : ndarray, shape (m,)
        Eigenvalues outside the bulk with less than one bulk eigenvalue farther from zero,
        decreasing in absolute value; all of them where there is no bulk.
    overlaps : ndarray, shape (m,)
        Squared cosine between each outlier's eigenvector and the block's own parameter.
    alignment : float
        Predicted :func:`traindyn.linalg.alignment` of the parameter with the eigenspace of
        its leading outliers, at most :meth:`~traindyn.problems.base.Problem.outlier_count`.
    inner : ndarray, shape (n,)
        Other eigenvalues outside the support, decreasing in absolute value: in a gap between
        two parts of the bulk or between zero and the bulk. They are not among the leading ones.
    bounded : bool
        Whether the weights stay bounded far out. Otherwise the bulk has no last edge in the limit,
        and the edges are those of the nodes of the rule.
    edge_errors : tuple of float
        Estimated errors of `edges`, of the rule alone, with what larger weights far out would
        add; infinite on a side where the weights are not bounded.
    outlier_errors : ndarray, shape (m,)
        Of `outliers`: distances to the eigenvalues of the same rank and sign that a coarser rule
        predicts, or to its bulk where it has no such outlier; the largest, of several rules.
    alignment_error : float
        Of `alignment`.
    """

    law: WeightedMarchenkoPastur | None
    edges: tuple[float, float]
    outliers: Array
    overlaps: Array
    alignment: float
    inner: Array
    bounded: bool
    edge_errors: tuple[float, float]
    outlier_errors: Array
    alignment_error: float


@dataclass(frozen=True)
class PredictedFilm:
    """Predicted spectra along a trajectory of summary statistics.

    Attributes
    ----------
    times : ndarray, shape (T,)
    blocks : tuple of Block
    lower, upper : dict of ndarray, shape (T, blocks)
        Bulk edges, by matrix; NaN for blocks without a bulk.
    outliers : dict of ndarray, shape (T, blocks, r)
        Those of :class:`BlockPrediction`: decreasing in absolute value, NaN where there is no
        further outlier.
    alignment : dict of ndarray, shape (T, blocks)
    bounded : dict of ndarray of bool, shape (T, blocks)
    lower_errors, upper_errors, outlier_errors, alignment_errors : dict of ndarray
        Estimated errors of the rule alone, as those of :class:`BlockPrediction`.
    """

    times: Array
    blocks: tuple[Block, ...]
    lower: dict[Matrix, Array]
    upper: dict[Matrix, Array]
    outliers: dict[Matrix, Array]
    alignment: dict[Matrix, Array]
    bounded: dict[Matrix, NDArray[np.bool_]]
    lower_errors: dict[Matrix, Array]
    upper_errors: dict[Matrix, Array]
    outlier_errors: dict[Matrix, Array]
    alignment_errors: dict[Matrix, Array]


def block(
    problem: Problem,
    statistics: Any,
    matrix: Matrix,
    block: Block,
    *,
    sample_ratio: float,
    rule: Rule | None = None,
) -> BlockPrediction:
    """Predict the spectrum of one diagonal block at given summary statistics.

    Parameters
    ----------
    problem : Problem
        Of finite precision; its dimension d enters through the number of eigenvalues in the bulk.
    statistics : NamedTuple
        Summary statistics of the point, for example of the effective dynamics.
    matrix : {"hessian", "g_matrix"}
        Which of the two; neither contains the ridge.
    block : Block
        A diagonal block, one of ``problem.blocks``.
    sample_ratio : float
        Samples per dimension, M/d.
    rule : Rule, optional
        Gaussian rule of the dimension of the embedded problem;
        :func:`traindyn.gaussian.default_rule` unless given.

    Returns
    -------
    BlockPrediction
        With the estimated error of the rule.

    Raises
    ------
    ValueError
        If `sample_ratio` or the problem's precision is not positive and finite, the block is not
        diagonal, its weights or its parameter are zero, or the dimension of `rule` does not fit.
    """
    sample_ratio = _validate.positive("sample_ratio", sample_ratio)
    fine, coarser = _embeddings(problem, statistics, rule)
    return _predict(problem, fine, coarser, matrix, block, sample_ratio)


def _embeddings(
    problem: Problem, statistics: Any, rule: Rule | None
) -> tuple[Embedding, list[Embedding]]:
    """Discretise by the rule, and by coarser ones that tell its error."""
    fine = Embedding(problem, statistics, rule)
    used = gaussian.default_rule(fine.small.dimension) if rule is None else rule
    return fine, [Embedding(problem, statistics, each) for each in _coarser(used)]


def _coarser(rule: Rule) -> list[Rule]:
    """Return rules of the same kind whose errors are larger."""
    order = round(rule.size ** (1 / rule.dim))
    if order > 1 and order**rule.dim == rule.size:
        tensor = gaussian.gauss_hermite(rule.dim, order)
        if np.array_equal(tensor.nodes, rule.nodes):
            return [gaussian.gauss_hermite(rule.dim, max(1, 2 * order // 3))]
    nodes = 2 ** max(1, rule.size.bit_length() - 4)
    seeds = np.random.SeedSequence(_SCRAMBLING).spawn(_SCRAMBLINGS)
    return [gaussian.sobol(rule.dim, nodes, rng=seed) for seed in seeds]


class _Spectrum(NamedTuple):
    """Prediction of a block by one rule; the fields of :class:`BlockPrediction`."""

    law: WeightedMarchenkoPastur | None
    edges: tuple[float, float]
    outliers: Array
    overlaps: Array
    alignment: float
    inner: Array


def _predict(
    problem: Problem,
    fine: Embedding,
    coarser: Sequence[Embedding],
    matrix: Matrix,
    block: Block,
    sample_ratio: float,
) -> BlockPrediction:
    """Predict one block of an embedded problem, with its errors."""
    found = _spectrum(problem, fine, matrix, block, sample_ratio)
    others = [_roughly(problem, coarse, matrix, block, sample_ratio) for coarse in coarser]
    # Weights that grow for ever leave no last edge on their side.
    sides = _far_out(fine, matrix, block)
    scale = 0.0 if found.law is None else found.law.ratio * found.law.variance
    below, above = (
        max(abs(found.edges[end] - other.edges[end]) for other in others) + scale * beyond
        for end, beyond in enumerate(sides)
    )
    distances = [np.abs(found.outliers - _matched(found.outliers, other)) for other in others]
    return BlockPrediction(
        *found,
        bounded=bool(np.isfinite(sides).all()),
        edge_errors=(float(below), float(above)),
        outlier_errors=np.max(distances, axis=0),
        alignment_error=max(abs(found.alignment - other.alignment) for other in others),
    )


def _roughly(
    problem: Problem, coarse: Embedding, matrix: Matrix, block: Block, sample_ratio: float
) -> _Spectrum:
    """Predict by a rule at whose few nodes all weights may be zero: then nothing is known."""
    try:
        return _spectrum(problem, coarse, matrix, block, sample_ratio)
    except ValueError:
        return _Spectrum(None, (np.inf, np.inf), np.zeros(0), np.zeros(0), np.inf, np.zeros(0))


def _matched(outliers: Array, other: _Spectrum) -> Array:
    """Return the eigenvalues of another prediction that have the ranks and signs of outliers."""
    matched = np.empty_like(outliers)
    for sign, edge in ((1.0, other.edges[1]), (-1.0, other.edges[0])):
        mine, theirs = (np.flatnonzero(sign * each > 0) for each in (outliers, other.outliers))
        # Beyond the last one is the bulk, or zero where there is none.
        end = 0.0 if np.isnan(edge) else edge
        ranked = np.concatenate([other.outliers[theirs], np.full(mine.size, end)])
        matched[mine] = ranked[: mine.size]
    matched[outliers == 0] = 0.0
    return matched


def _far_out(embedding: Embedding, matrix: Matrix, block: Block) -> tuple[float, float]:
    """By how much negative and positive weights exceed those of the nodes far out.

    Along rays to some nodes; infinite where they do not stop growing.
    """
    inputs, labels = embedding.sample
    chosen = np.linspace(0, len(inputs) - 1, min(_RAYS, len(inputs))).astype(np.int64)
    weights = [embedding.factors(matrix, block).weights]
    with np.errstate(all="ignore"):
        for far in _FAR:
            sample = Sample(far * inputs[chosen], labels[chosen])
            source = block_factors.at(embedding.small, embedding.point, sample)
            weights.append(source.factors(matrix, block).weights)

    def beyond(sign: float) -> float:
        near, *far = (np.max(sign * each, initial=0.0) for each in weights)
        # NaN and infinity are not bounded.
        bounded = far[1] <= max(_GROWTH * far[0], near) < np.inf
        return float(max(*far, near) - near) if bounded else np.inf

    return beyond(-1.0), beyond(1.0)


def _spectrum(
    problem: Problem, embedding: Embedding, matrix: Matrix, block: Block, sample_ratio: float
) -> _Spectrum:
    """Predict one block of an embedded problem."""
    require(problem, "spectra.predict", "blocks", "parameter", "outlier_count")
    _validate.choice("block", block, problem.blocks)
    precision = _validate.positive("problem.precision", problem.precision)
    weights, features, _ = embedding.factors(matrix, block)
    parameter = embedding.small.parameter(block, embedding.point)
    if not weights.any() or not parameter.any():
        raise ValueError(
            f"statistics must give block {block} non-zero weights and a non-zero parameter, got "
            + ("a zero parameter" if weights.any() else "zero weights")
        )
    law = None
    edges = np.full(2, np.nan)
    if embedding.sees_inputs(features):
        law = WeightedMarchenkoPastur(
            weights,
            probabilities=embedding.masses,
            # the bulk lives on the complement of the span
            ratio=(problem.dimension - embedding.small.dimension)
            / (sample_ratio * problem.dimension),
            variance=1 / precision,
        )
        found = law.outliers(features)
        values, vectors, held = found.values, found.vectors, found.overlaps
        edges = law.edges
    else:
        values, vectors = embedding.block(matrix, block).on_span()
        held = np.ones_like(values)
    order = np.argsort(-np.abs(values), kind="stable")
    overlaps = (vectors.T @ (parameter / np.linalg.norm(parameter))) ** 2 * held
    farther = _mass_beyond(law, values[order]) * (problem.dimension - embedding.small.dimension)
    outer = order[farther < 1]
    leading = outer[: problem.outlier_count(block)]
    return _Spectrum(
        law,
        (float(edges[0]), float(edges[-1])),
        values[outer],
        overlaps[outer],
        float(np.sqrt(min(overlaps[leading].sum(), 1.0))),
        values[order[farther >= 1]],
    )


def _mass_beyond(law: WeightedMarchenkoPastur | None, values: Array) -> Array:
    """Mass of the bulk farther from zero than each value; none where there is no bulk."""
    size = np.abs(values)
    mass = np.zeros(size.size)
    inside = np.zeros(size.size, dtype=bool) if law is None else size < np.abs(law.edges).max()
    if law is not None and np.any(inside):
        mass[inside] = 1 - law.cdf(size[inside]) + law.cdf(-size[inside])
    return mass


def along(
    problem: Problem,
    trajectory: Trajectory[Any],
    *,
    sample_ratio: float,
    matrices: Sequence[Matrix] = MATRICES,
    blocks: Sequence[Block] | None = None,
    rule: Rule | None = None,
    workers: int | None = None,
) -> PredictedFilm:
    """Predict the spectra of diagonal blocks along a trajectory of statistics.

    Parameters
    ----------
    problem : Problem
        As in :func:`block`.
    trajectory : Trajectory
        Usually of the effective dynamics; its statistics have leading axis T.
    sample_ratio : float
        Samples per dimension, M/d.
    matrices : sequence of {"hessian", "g_matrix"}
        Which to predict; both unless given.
    blocks : sequence of Block, optional
        All diagonal blocks unless given.
    rule : Rule, optional
        As in :func:`block`.
    workers : int, optional
        Threads, as in :func:`traindyn.parallel.map_ordered`; the result does not depend on it.

    Raises
    ------
    ValueError
        As :func:`block`.
    """
    sample_ratio = _validate.positive("sample_ratio", sample_ratio)
    require(problem, "spectra.predict.along", "blocks")
    chosen = tuple(problem.blocks if blocks is None else blocks)
    kind: Any = type(trajectory.statistics)

    def at(index: int) -> list[BlockPrediction]:
        statistics = kind(*(values[index] for values in trajectory.statistics))
        fine, coarser = _embeddings(problem, statistics, rule)
        return [
            _predict(problem, fine, coarser, matrix, b, sample_ratio)
            for matrix in matrices
            for b in chosen
        ]

    found = parallel.map_ordered(
        at, range(len(trajectory.times)), workers=workers, shared_memory=True
    )
    rank = max((len(p.outliers) for row in found for p in row), default=0)

    def table(matrix: Matrix, read: Any) -> Array:
        first = list(matrices).index(matrix) * len(chosen)
        return np.array([[read(p) for p in row[first : first + len(chosen)]] for row in found])

    def padded(values: Array) -> Array:
        return np.pad(values, (0, rank - len(values)), constant_values=np.nan)

    return PredictedFilm(
        times=trajectory.times,
        blocks=chosen,
        lower={m: table(m, lambda p: p.edges[0]) for m in matrices},
        upper={m: table(m, lambda p: p.edges[1]) for m in matrices},
        outliers={m: table(m, lambda p: padded(p.outliers)) for m in matrices},
        alignment={m: table(m, lambda p: p.alignment) for m in matrices},
        bounded={m: table(m, lambda p: p.bounded).astype(np.bool_) for m in matrices},
        lower_errors={m: table(m, lambda p: p.edge_errors[0]) for m in matrices},
        upper_errors={m: table(m, lambda p: p.edge_errors[1]) for m in matrices},
        outlier_errors={m: table(m, lambda p: padded(p.outlier_errors)) for m in matrices},
        alignment_errors={m: table(m, lambda p: p.alignment_error) for m in matrices},
    )
