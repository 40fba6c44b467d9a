"""Population blocks of any mixture problem, from its summary statistics and a Gaussian rule.

The problem is embedded in the span of its means and parameters. There a block is an
expectation ``E[w u u^T]`` over a low-dimensional Gaussian mixture, evaluated by quadrature;
off the span the noise is independent of the weight and the block is ``E[w] / lambda`` times
the identity. A block whose features are not the inputs, the second layer's, has no part off the
span: its size does not grow with the dimension. No closed form of a particular problem enters,
so this is also an independent check of those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from traindyn import _validate, gaussian
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import MATRICES, Block, Factors, Matrix, Problem, Sample, require
from traindyn.problems.population_block import PopulationBlock
from traindyn.spectra import blocks

__all__ = [
    "BlockMoments",
    "Embedding",
    "FullPopulation",
    "block",
    "full",
    "nodes",
]


@dataclass(frozen=True)
class FullPopulation:
    """A full population matrix, block by block over all parameter vectors.

    Attributes
    ----------
    on_span : ndarray, shape (b r + s, b r + s)
        The part on b copies of the r-dimensional span of means and parameters, one for each
        parameter that multiplies inputs, and on the s entries of the others; in the order of
        ``problem.blocks``.
    bulk : ndarray, shape (b, b)
        Off the span the matrix is the Kronecker product of this one with the identity.
    dimension : int
        Dimension d of one input; the identity has size ``d - r``.
    """

    on_span: Array
    bulk: Array
    dimension: int

    def eigenvalues(self) -> tuple[Array, Array]:
        """Eigenvalues on the span, shape (b r + s,), and bulk levels, shape (b,).

        Both decreasing in absolute value; each bulk level has multiplicity ``d - r``.
        """
        on_span = np.linalg.eigvalsh(self.on_span)
        bulk = np.linalg.eigvalsh(self.bulk)
        return (
            np.asarray(on_span[np.argsort(-np.abs(on_span), kind="stable")]),
            np.asarray(bulk[np.argsort(-np.abs(bulk), kind="stable")]),
        )


def nodes(problem: Problem, rule: Rule) -> tuple[Sample, Array]:
    """Discretise the data law: inputs with labels, and the mass of each.

    Parameters
    ----------
    problem : Problem
        With c components in dimension d.
    rule : Rule
        Gaussian rule of dimension d with n nodes, used for every component.

    Returns
    -------
    sample : Sample
        c n inputs.
    masses : ndarray, shape (c n,)
        Sum to one.

    Raises
    ------
    ValueError
        If `rule` does not have dimension d.
    """
    _validate.providing("rule", rule, "nodes", "weights")
    if rule.dim != problem.dimension:
        raise ValueError(
            f"rule must have the dimension {problem.dimension} of the inputs, got {rule.dim}"
        )
    noise = rule.nodes / np.sqrt(problem.precision)
    inputs = (problem.means[:, None, :] + noise).reshape(-1, problem.dimension)
    labels = np.repeat(np.arange(len(problem.weights)), rule.size)
    return Sample(inputs, labels), np.outer(problem.weights, rule.weights).ravel()


def block(
    problem: Problem,
    statistics: Any,
    matrix: Matrix,
    block: Block,
    *,
    rule: Rule | None = None,
) -> PopulationBlock:
    """Integrate a population block at given summary statistics.

    Parameters
    ----------
    problem : Problem
        Its dimension does not matter: it is embedded in as few as the statistics need.
    statistics : NamedTuple of arrays
        Summary statistics of the point.
    matrix : {"hessian", "g_matrix"}
        Which of the two; neither contains the ridge.
    block : Block
        A block with the same features on both sides.
    rule : Rule, optional
        Gaussian rule of the dimension r of the embedded problem;
        :func:`traindyn.gaussian.default_rule` unless given.

    Returns
    -------
    PopulationBlock
        Where the features are the inputs, in the r coordinates of the embedded problem: in the
        full space the eigenvalue `shift` has multiplicity ``d - r`` more. Otherwise the whole
        block, with zero shift.

    Raises
    ------
    ValueError
        If `rule` does not have dimension r, or the features of the block are not the same on
        both sides.
    """
    return Embedding(problem, statistics, rule).block(matrix, block)


def full(
    problem: Problem, statistics: Any, matrix: Matrix, *, rule: Rule | None = None
) -> FullPopulation:
    """Integrate the full population matrix over all parameter vectors with a diagonal block.

    Parameters
    ----------
    problem, statistics, matrix, rule
        As for :func:`block`.

    Raises
    ------
    ValueError
        As :func:`block`.
    """
    embedding = Embedding(problem, statistics, rule)
    names = [first for first, _ in embedding.small.blocks]
    lower = [
        [embedding.moments(matrix, (row, column)) for column in names[: i + 1]]
        for i, row in enumerate(names)
    ]
    on_span = np.block(
        [
            [lower[i][j].core if j <= i else lower[j][i].core.T for j in range(len(names))]
            for i in range(len(names))
        ]
    )
    wide = [i for i, row in enumerate(lower) if row[i].bulk is not None]
    bulk = np.array([[lower[max(i, j)][min(i, j)].bulk for j in wide] for i in wide])
    return FullPopulation((on_span + on_span.T) / 2, bulk, problem.dimension)


class BlockMoments(NamedTuple):
    """Expectations that make a population block.

    Attributes
    ----------
    core : ndarray, shape (p, q)
        ``E[w left right^T]`` in the embedded problem.
    bulk : float or None
        ``E[w] / lambda``, the block off the span; None where the features are not the inputs
        on both sides, and nothing is off the span.
    """

    core: Array
    bulk: float | None


class Embedding:
    """A problem and a point of it in as few dimensions as given statistics need.

    The data law is discretised there, and the network run once for all blocks.

    Parameters
    ----------
    problem, statistics, rule
        As for :func:`block`.

    Attributes
    ----------
    small : Problem
        The embedded problem, of dimension r.
    point
        A point of it with these statistics.
    sample : Sample
        Nodes of its data law.
    masses : ndarray
        Of the nodes.
    """

    def __init__(self, problem: Problem, statistics: Any, rule: Rule | None = None) -> None:
        names = ("embed", "dimension", "precision", "weights", "means")
        require(problem, "population blocks and predicted spectra", *names)
        small: Any
        small, self.point = problem.embed(statistics)
        self.small: Problem = small
        chosen = gaussian.default_rule(small.dimension) if rule is None else rule
        self.sample, self.masses = nodes(self.small, chosen)
        self._source = blocks.at(self.small, self.point, self.sample)

    def factors(self, matrix: Matrix, block: Block) -> Factors:
        """Weights and features of a block at the nodes."""
        return self._source.factors(_validate.choice("matrix", matrix, MATRICES), block)

    def sees_inputs(self, features: Array) -> bool:
        """Whether features are the inputs themselves."""
        inputs = self.sample.inputs
        return features is inputs or np.array_equal(features, inputs)

    def moments(self, matrix: Matrix, block: Block) -> BlockMoments:
        """Integrate one block, diagonal or not."""
        weights, left, right = self.factors(matrix, block)
        weighted = self.masses * weights
        wide = self.sees_inputs(left) and self.sees_inputs(right)
        core = (left.T * weighted) @ right
        return BlockMoments(core, float(weighted.sum()) / self.small.precision if wide else None)

    def block(self, matrix: Matrix, block: Block) -> PopulationBlock:
        """Return a block with the same features on both sides, as :func:`block`."""
        core, bulk = self.moments(matrix, block)
        first, second = block
        if bulk is None and first != second:
            raise ValueError(f"block must have the same features on both sides, got {block}")
        identity = np.eye(len(core))
        shift = 0.0 if bulk is None else bulk
        return PopulationBlock(shift, identity, (core + core.T) / 2 - shift * identity)
