r"""Hessian of a multi-index network on given data: matrix, blocks, extreme eigenpairs.

With :math:`u_{ij} = \theta_j \cdot x_i` the rescaled Hessian, m times that of the risk, has
blocks

.. math:: H_{jl} = \frac1n \sum_i g_{jl}(u_i, y_i)\, x_i x_i^T ,

with the weights of :class:`~traindyn.problems.multi_index.model.MultiIndex` (the factor 1/n is
missing in print: MW, Scale of the Hessian in the proof). For a single neuron H is the matrix of
:mod:`traindyn.laws.hard_subspace`. For several, the part of order 1/m in a diagonal block is
dropped and

.. math:: H_j = \frac1n \sum_i a_j\, \ell'(y_i, f_i)\, \sigma''(u_{ij} + b_j)\, x_i x_i^T , \qquad
          \min_j \lambda_{\min}(H_j) \le \lambda_{\min}(H) \le \min_j \lambda_{\min}(H_j) + O(1/m)

for a convex loss (MW, Block-diagonal approximation, lowest eigenvalue). The sign of
:math:`a_j` is part of the block: without it, the lower edge of a block with :math:`a_j < 0` would
be the upper one (MW, Sign of the output weight).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate, linalg
from traindyn._types import Array
from traindyn.dmft.kernels import hard_basis
from traindyn.problems.base import Factors
from traindyn.problems.multi_index import Data, MultiIndex
from traindyn.spectra.blocks import FullMatrix, WeightedGram

__all__ = ["Extreme", "block", "extreme", "hessian", "weights"]

_FORMED = 2000
"""Blocks up to this size are formed and diagonalised directly; larger ones are multiplied."""


class Extreme(NamedTuple):
    """Eigenpairs of one block at one end of its spectrum.

    Attributes
    ----------
    values : ndarray, shape (r,)
        The outermost first: increasing on the left, decreasing on the right.
    vectors : ndarray, shape (d, r)
        Unit columns.
    overlaps : ndarray, shape (r,)
        Squared norm of each one's projection on the hard directions.
    """

    values: Array
    vectors: Array
    overlaps: Array


def hessian(problem: MultiIndex, data: Data, neurons: ArrayLike) -> Array:
    """Form the Hessian of m times the risk.

    Parameters
    ----------
    problem : MultiIndex
        Its activation must have a second derivative.
    data : Data
        The n samples of the risk.
    neurons : array_like, shape (d, m)
        Where the Hessian is taken, one neuron per column.

    Returns
    -------
    ndarray, shape (m d, m d)
        One neuron after the other; symmetric.

    Raises
    ------
    ValueError
        If shapes disagree, the activation has no second derivative, or the matrix is too large
        to be formed.

    Examples
    --------
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> from traindyn.spectra.network import hessian
    >>> problem = MultiIndex(second_layer=(1.0, -1.0))
    >>> data = problem.sample(50, 3, rng=0)
    >>> hessian(problem, data, problem.initial(3, rng=1)).shape
    (6, 6)
    """
    inputs, labels, theta = _checked(problem, data, neurons)
    g = problem.hessian_weights(inputs @ theta, labels)
    rows = [
        [Factors(np.ascontiguousarray(g[:, j, i]), inputs, inputs) for i in range(j + 1)]
        for j in range(problem.width)
    ]
    return FullMatrix(rows).dense()


def weights(
    problem: MultiIndex, data: Data, neurons: ArrayLike, neuron: int = 0
) -> tuple[Array, Array]:
    """Return what the spectrum of one block depends on, sample by sample.

    Parameters
    ----------
    problem, data, neurons
        As for :func:`hessian`.
    neuron : int, default 0
        Which block, counted from zero.

    Returns
    -------
    g : ndarray, shape (n,)
        Weights of the block.
    z : ndarray, shape (n, k)
        Coordinates of the target.

    Raises
    ------
    ValueError
        As :func:`hessian`, or if there is no such neuron.
    """
    inputs, labels, theta = _checked(problem, data, neurons)
    index = _validate.integer("neuron", neuron, least=0, most=problem.width - 1)
    g = problem.block_weights(inputs @ theta, labels)[:, index]
    return np.ascontiguousarray(g), inputs[:, : problem.k].copy()


def block(problem: MultiIndex, data: Data, neurons: ArrayLike, neuron: int = 0) -> Array:
    """Form one neuron's block, for a single neuron the whole Hessian.

    Parameters
    ----------
    problem, data, neurons
        As for :func:`hessian`.
    neuron : int, default 0
        Which one, counted from zero.

    Returns
    -------
    ndarray, shape (d, d)
        With the weights of :meth:`~traindyn.problems.multi_index.model.MultiIndex.block_weights`:
        the sign of the second layer in it, the part of order 1/m not.

    Raises
    ------
    ValueError
        As :func:`weights`.
    """
    return _gram(problem, data, neurons, neuron).dense()


def extreme(
    problem: MultiIndex,
    data: Data,
    neurons: ArrayLike,
    r: int,
    *,
    neuron: int = 0,
    side: str = "left",
    hard: ArrayLike | None = None,
) -> Extreme:
    """Compute the outermost eigenpairs of one block.

    Parameters
    ----------
    problem, data, neurons
        As for :func:`hessian`.
    r : int
        How many.
    neuron : int, default 0
        Which block, counted from zero.
    side : {"left", "right"}
        Which end of the spectrum.
    hard : array_like, shape (k, q), optional
        Orthonormal basis of the hard directions. Default: computed from the target.

    Raises
    ------
    ValueError
        As :func:`weights`, or if an argument is out of range or nothing is hard.
    FloatingPointError
        If the eigenvectors of a large block do not converge.

    Examples
    --------
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> from traindyn.spectra.network import extreme
    >>> problem = MultiIndex()
    >>> data = problem.sample(4000, 100, rng=0)
    >>> found = extreme(problem, data, problem.initial(100, rng=1), 2)
    >>> bool(found.values[0] < found.values[1] < 0), bool(found.overlaps[0] > 0.5)
    (True, True)
    """
    basis = hard_basis(problem, hard)
    sign = -1.0 if _validate.choice("side", side, ("left", "right")) == "left" else 1.0
    gram = _gram(problem, data, neurons, neuron)
    operator: Any
    if gram.size <= _FORMED:
        operator = sign * gram.dense()
    else:
        operator = linalg.LambdaOperator(gram.size, lambda vectors: sign * gram.matmat(vectors))
    found = linalg.top_eigenpairs(operator, r, which="algebraic")
    if not np.all(found.converged):
        raise FloatingPointError(
            f"the eigenvectors must converge, got residuals up to {found.residuals.max():.3g} "
            f"after {found.products} products; ask for fewer than {r} eigenpairs"
        )
    overlaps = np.sum((basis.T @ found.eigenvectors[: problem.k]) ** 2, axis=0)
    return Extreme(sign * found.eigenvalues, found.eigenvectors, overlaps)


def _gram(problem: MultiIndex, data: Data, neurons: ArrayLike, neuron: int) -> WeightedGram:
    """One block as an operator."""
    inputs, labels, theta = _checked(problem, data, neurons)
    index = _validate.integer("neuron", neuron, least=0, most=problem.width - 1)
    g = problem.block_weights(inputs @ theta, labels)[:, index]
    return WeightedGram(np.ascontiguousarray(g), inputs)


def _checked(
    problem: MultiIndex, data: Data, neurons: ArrayLike
) -> tuple[NDArray[np.float64], Array, Array]:
    """Check shapes; double precision, as a spectrum is a difference of large sums."""
    inputs = _validate.finite("data.inputs", data.inputs)
    if inputs.ndim != 2 or inputs.shape[1] < problem.k:
        raise ValueError(
            f"data.inputs must have shape (n, d >= {problem.k}), got {np.shape(data.inputs)}"
        )
    labels = _validate.finite("data.labels", data.labels, shape=inputs.shape[:1])
    theta = _validate.finite("neurons", neurons, shape=(inputs.shape[1], problem.width))
    return inputs, labels, theta
