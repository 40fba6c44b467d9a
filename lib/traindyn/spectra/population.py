"""Population blocks of any mixture problem, from its summary statistics and a Gaussian rule.

The problem is embedded in the span of its means and parameters. There a block is an
expectation ``E[w u u^T]`` over a low-dimensional Gaussian mixture, evaluated by quadrature;
off the span the noise is independent of the weight and the block is ``E[w] / lambda`` times
the identity. No closed form of a particular problem enters, so this is also an independent
check of those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from traindyn import _validate, gaussian
from traindyn.gaussian import Rule
from traindyn.problems.base import MATRICES, Array, Block, Matrix, Problem, Sample
from traindyn.problems.population_block import PopulationBlock

__all__ = ["FullPopulation", "MixtureProblem", "block", "full", "nodes"]


class MixtureProblem(Problem, Protocol):
    """A problem whose inputs are a Gaussian mixture and whose labels are the components."""

    @property
    def weights(self) -> Array:
        """Probabilities of the components, shape (c,)."""

    @property
    def means(self) -> Array:
        """Means of the components, shape (c, d)."""


@dataclass(frozen=True)
class FullPopulation:
    """A full population matrix, block by block over b parameter vectors.

    Attributes
    ----------
    on_span : ndarray, shape (b r, b r)
        The part on b copies of the r-dimensional span of means and parameters.
    bulk : ndarray, shape (b, b)
        Off the span the matrix is the Kronecker product of this one with the identity.
    dimension : int
        Dimension d of one input; the identity has size ``d - r``.
    """

    on_span: Array
    bulk: Array
    dimension: int

    def eigenvalues(self) -> tuple[Array, Array]:
        """Eigenvalues on the span, shape (b r,), and bulk levels, shape (b,).

        Both decreasing in absolute value; each bulk level has multiplicity ``d - r``.
        """
        on_span = np.linalg.eigvalsh(self.on_span)
        bulk = np.linalg.eigvalsh(self.bulk)
        return (
            np.asarray(on_span[np.argsort(-np.abs(on_span), kind="stable")]),
            np.asarray(bulk[np.argsort(-np.abs(bulk), kind="stable")]),
        )


def nodes(problem: MixtureProblem, rule: Rule) -> tuple[Sample, Array]:
    """Discretise the data law: inputs with labels, and the mass of each.

    Parameters
    ----------
    problem : MixtureProblem
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
    if rule.dim != problem.dimension:
        raise ValueError(
            f"rule must have the dimension {problem.dimension} of the inputs, got {rule.dim}"
        )
    noise = rule.nodes / np.sqrt(problem.precision)
    inputs = (problem.means[:, None, :] + noise).reshape(-1, problem.dimension)
    labels = np.repeat(np.arange(len(problem.weights)), rule.size)
    return Sample(inputs, labels), np.outer(problem.weights, rule.weights).ravel()


def block(
    problem: MixtureProblem,
    statistics: Any,
    matrix: Matrix,
    block: Block,
    *,
    rule: Rule | None = None,
) -> PopulationBlock:
    """Integrate a population block at given summary statistics.

    Parameters
    ----------
    problem : MixtureProblem
    statistics : NamedTuple of arrays
    matrix : {"hessian", "g_matrix"}
    block : Block
        A block whose features are the inputs on both sides, diagonal or not.
    rule : Rule, optional
        Gaussian rule of the dimension r of the embedded problem;
        :func:`traindyn.gaussian.rule` unless given.

    Returns
    -------
    PopulationBlock
        In the r coordinates of the embedded problem. In the full space the eigenvalue
        `shift` has multiplicity ``d - r`` more.

    Raises
    ------
    ValueError
        If `rule` does not have dimension r, or the features of the block are not inputs.
    """
    small, point, sample, masses = _embedded(problem, statistics, rule)
    core, shift = _moments(small, matrix, block, point, sample, masses)
    identity = np.eye(small.dimension)
    return PopulationBlock(shift, identity, core - shift * identity)


def full(
    problem: MixtureProblem, statistics: Any, matrix: Matrix, *, rule: Rule | None = None
) -> FullPopulation:
    """Integrate the full population matrix over all parameter vectors with a diagonal block.

    Parameters
    ----------
    problem, statistics, matrix, rule
        As for :func:`block`.

    Returns
    -------
    FullPopulation

    Raises
    ------
    ValueError
        As :func:`block`.
    """
    small, point, sample, masses = _embedded(problem, statistics, rule)
    indices = [first for first, _ in small.blocks]
    size, r = len(indices), small.dimension
    on_span = np.zeros((size, r, size, r))
    bulk = np.zeros((size, size))
    for i, b in enumerate(indices):
        for j, c in enumerate(indices[: i + 1]):
            core, shift = _moments(small, matrix, (b, c), point, sample, masses)
            on_span[i, :, j, :], on_span[j, :, i, :] = core, core.T
            bulk[i, j] = bulk[j, i] = shift
    return FullPopulation(on_span.reshape(size * r, size * r), bulk, problem.dimension)


def _embedded(
    problem: MixtureProblem, statistics: Any, rule: Rule | None
) -> tuple[Any, Any, Sample, Array]:
    """Embedded problem and point, and the nodes of its data law."""
    small: Any
    small, point = problem.embed(statistics)
    chosen = gaussian.rule(small.dimension) if rule is None else rule
    sample, masses = nodes(small, chosen)
    return small, point, sample, masses


def _moments(
    small: Any, matrix: Matrix, block: Block, point: Any, sample: Sample, masses: Array
) -> tuple[Array, float]:
    """``E[w u u^T]`` and ``E[w] / lambda``."""
    _validate.choice("matrix", matrix, MATRICES)
    factors = small.factors(matrix, block, point, sample)
    if not all(
        side is sample.inputs or np.array_equal(side, sample.inputs)
        for side in (factors.left, factors.right)
    ):
        raise ValueError(f"block must have the inputs as features on both sides, got {block}")
    weighted = masses * factors.weights
    core = (sample.inputs.T * weighted) @ sample.inputs
    return (core + core.T) / 2, float(weighted.sum()) / small.precision
