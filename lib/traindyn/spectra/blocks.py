"""Hessian and G-matrix blocks of a problem at a point, as operators.

Every block is a weighted Gram matrix of features,

    A = (1/n) sum_i w_i f_i f_i^T,

with the weights and features given by ``problem.factors`` (BGHJ equations (3.1)-(3.3)
and (6.5)-(6.6) for the k-Gaussian mixture). An operator multiplies without forming the
matrix, streaming the features once per block of vectors; :meth:`WeightedGram.dense`
forms it by symmetric rank-k products of chunks of scaled features, at half the cost of a
general product and with scratch space bounded whatever the number of samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from traindyn import _validate
from traindyn.problems.base import MATRICES, Array, Block, Factors, Matrix, Problem, Sample

_CHUNK_BYTES = 2**19
"""Projections of one step over samples: small enough to stay in cache until used."""
_GRAM_BYTES = 2**24
"""Scaled features of one rank-k product: large, as each adds a whole matrix."""
_MEMORY_LIMIT = 2 * 2**30
"""Largest dense matrix formed without being asked to (bytes)."""


class WeightedGram:
    """The symmetric operator ``(1/n) sum_i weights_i features_i features_i^T``.

    Parameters
    ----------
    weights : ndarray, shape (n,)
        Any sign. Samples of weight exactly zero are skipped.
    features : ndarray, shape (n, d)
        Kept by reference, never copied whole.

    Raises
    ------
    ValueError
        If the shapes disagree or a weight is not finite.

    Examples
    --------
    >>> features = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> gram = WeightedGram(np.array([2.0, -2.0]), features)
    >>> gram.dense()
    array([[ 0., -1.],
           [-1., -1.]])
    >>> gram.matmat(np.eye(2)).tolist() == gram.dense().tolist()
    True
    """

    def __init__(self, weights: Array, features: Array) -> None:
        features = np.asarray(features, dtype=np.float64)
        if features.ndim != 2 or features.shape[0] == 0:
            raise ValueError(f"features must have shape (n >= 1, d), got {features.shape}")
        # Features are not scanned here: a film builds a thousand operators on the same
        # data. A NaN in them is refused by the eigensolvers.
        self._features = features
        self._weights = _validate.finite("weights", weights, shape=(features.shape[0],))

    @property
    def size(self) -> int:
        """Number of rows and columns."""
        return int(self._features.shape[1])

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Floating-point type of the products."""
        return self._features.dtype

    @property
    def non_negative(self) -> bool:
        """Whether no weight is negative, so that the matrix is positive semi-definite."""
        return bool(self._weights.min() >= 0)

    def matmat(self, vectors: Array) -> Array:
        """Product with the columns of `vectors`, shape (d, b)."""
        projections = self._features @ vectors
        projections *= self._weights[:, None] / self._weights.size
        # (P^T F)^T rather than F^T P: the data are then read in their stored order.
        product: Array = (projections.T @ self._features).T
        return product

    def dense(self, *, out: Array | None = None, memory_limit: int = _MEMORY_LIMIT) -> Array:
        """Form the matrix.

        Parameters
        ----------
        out : ndarray, shape (d, d), C order, optional
            Overwritten and returned, so that a film need not allocate at every frame.
        memory_limit : int
            Bytes the result may take.

        Returns
        -------
        ndarray, shape (d, d)
            Exactly symmetric.

        Raises
        ------
        ValueError
            If the matrix is larger than `memory_limit` or `out` does not fit.
        """
        _within_memory(self.size, memory_limit)
        if out is None:
            out = np.empty((self.size, self.size))
        elif out.shape != (self.size, self.size):
            raise ValueError(f"out must have shape {(self.size, self.size)}, got {out.shape}")
        out[:] = 0.0
        scales = np.sqrt(np.abs(self._weights) / self._weights.size)
        rows = max(1, _GRAM_BYTES // (8 * self.size))
        scratch = np.empty((min(rows, scales.size), self.size))
        product = np.empty_like(out)
        for sign, add in ((1.0, np.add), (-1.0, np.subtract)):
            chosen = np.flatnonzero(self._weights * sign > 0)
            everything = chosen.size == scales.size
            for first in range(0, chosen.size, rows):
                last = min(first + rows, chosen.size)
                part = scratch[: last - first]
                if everything:
                    # Contiguous rows need no gathering.
                    np.multiply(self._features[first:last], scales[first:last, None], out=part)
                else:
                    take = chosen[first:last]
                    # Any mode but "raise" writes straight into `out`, without a buffer.
                    np.take(self._features, take, axis=0, out=part, mode="clip")
                    part *= scales[take, None]
                # NumPy sees one array times its own transpose and calls the symmetric
                # rank-k routine, without the interpreter lock that SciPy's BLAS holds.
                np.dot(part.T, part, out=product)
                add(out, product, out=out)
        return out


class FullMatrix:
    """All blocks of the Hessian or the G-matrix together, as one symmetric operator.

    Rows and columns are the parameters of ``problem.blocks``, one after the other: for
    the k-Gaussian mixture ``(1/n) sum_i W_i kron Y_i Y_i^T`` of size ``k d``.

    Use :func:`full` to build one.

    Parameters
    ----------
    weights : ndarray, shape (m, m, n)
        ``weights[a, b]`` of the block pair (a, b).
    features : list of ndarray, each (n, d_a)
        Features of each parameter; blocks may share one array, which is then
        multiplied once.
    """

    def __init__(self, weights: Array, features: list[Array]) -> None:
        self._weights = weights
        self._features = features
        sizes = [array.shape[1] for array in features]
        ends = np.cumsum(sizes)
        self._slices = [slice(int(end) - size, int(end)) for size, end in zip(sizes, ends)]

    @property
    def size(self) -> int:
        """Number of rows and columns."""
        return self._slices[-1].stop

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Floating-point type of the products."""
        return np.dtype(np.float64)

    def matmat(self, vectors: Array) -> Array:
        """Product with the columns of `vectors`, shape (size, b)."""
        blocks, samples = len(self._slices), self._weights.shape[2]
        product = np.zeros_like(vectors)
        columns = vectors.shape[1]
        # Projections of a chunk of samples for every block, in bounded memory.
        rows = max(1, _CHUNK_BYTES // (8 * blocks * columns))
        for first in range(0, samples, rows):
            chunk = slice(first, min(first + rows, samples))
            projected = np.stack(
                [
                    features[chunk] @ vectors[part]
                    for features, part in zip(self._features, self._slices)
                ]
            )
            mixed = np.einsum("abi,bij->aij", self._weights[:, :, chunk], projected)
            for features, part, mix in zip(self._features, self._slices, mixed):
                product[part] += (mix.T @ features[chunk]).T
        product /= samples
        return product

    def dense(self, *, memory_limit: int = _MEMORY_LIMIT) -> Array:
        """Form the matrix, shape (size, size), exactly symmetric.

        Parameters
        ----------
        memory_limit : int
            Bytes the result may take.

        Returns
        -------
        ndarray, shape (size, size)

        Raises
        ------
        ValueError
            If the matrix is larger than `memory_limit`.
        """
        _within_memory(self.size, memory_limit)
        samples = self._weights.shape[2]
        matrix = np.zeros((self.size, self.size))
        for a, rows in enumerate(self._slices):
            for b, columns in enumerate(self._slices[: a + 1]):
                if self._features[a] is self._features[b]:
                    gram = WeightedGram(self._weights[a, b], self._features[a])
                    matrix[rows, columns] = gram.dense()
                else:
                    scaled = self._features[b] * (self._weights[a, b] / samples)[:, None]
                    matrix[rows, columns] = self._features[a].T @ scaled
                matrix[columns, rows] = matrix[rows, columns].T
        return matrix


def operator(
    problem: Problem, matrix: Matrix, block: Block, point: Any, sample: Sample
) -> WeightedGram:
    """One symmetric block of the empirical Hessian or G-matrix, never formed.

    Parameters
    ----------
    problem : Problem
    matrix : {"hessian", "g_matrix"}
    block : tuple of int
        The pair (b, c) of parameters.
    point, sample
        Where, and on which data (training or test).

    Returns
    -------
    WeightedGram

    Raises
    ------
    ValueError
        If the block is not symmetric (its two parameters see different features); use
        :func:`rectangular` for those.
    """
    factors = problem.factors(_validate.choice("matrix", matrix, MATRICES), block, point, sample)
    if factors.left is not factors.right:
        raise ValueError(
            f"block must be symmetric, got {block} with different left and right features "
            f"{factors.left.shape} and {factors.right.shape}; use blocks.rectangular"
        )
    return WeightedGram(factors.weights, factors.left)


def rectangular(
    problem: Problem, matrix: Matrix, block: Block, point: Any, sample: Sample
) -> LinearOperator:
    """Any block as a SciPy linear operator ``(1/n) sum_i w_i left_i right_i^T``, (p, q).

    Parameters
    ----------
    problem : Problem
    matrix : {"hessian", "g_matrix"}
    block : tuple of int
    point, sample
        Where, and on which data.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator
    """
    factors = problem.factors(_validate.choice("matrix", matrix, MATRICES), block, point, sample)
    weights = _validate.finite("weights", factors.weights, shape=(factors.left.shape[0],))
    scale = (weights / weights.size)[:, None]
    left, right = factors.left, factors.right
    return LinearOperator(
        shape=(left.shape[1], right.shape[1]),
        dtype=np.float64,
        matvec=lambda v: left.T @ (scale[:, 0] * (right @ np.ravel(v))),
        rmatvec=lambda v: right.T @ (scale[:, 0] * (left @ np.ravel(v))),
        matmat=lambda v: left.T @ (scale * (right @ v)),
        rmatmat=lambda v: right.T @ (scale * (left @ v)),
    )


def full(problem: Problem, matrix: Matrix, point: Any, sample: Sample) -> FullMatrix:
    """Build the whole empirical Hessian or G-matrix over the parameters of ``problem.blocks``.

    Parameters
    ----------
    problem : Problem
    matrix : {"hessian", "g_matrix"}
    point, sample
        Where, and on which data.

    Returns
    -------
    FullMatrix
        Matrix-free, with a guarded ``dense()``. It holds one weight per sample and pair
        of parameters, ``8 m^2 n`` bytes for `m` parameters.

    Raises
    ------
    ValueError
        If the problem's factors are not those of a matrix with one set of features per
        parameter.
    """
    matrix = _validate.choice("matrix", matrix, MATRICES)
    names = [block[0] for block in problem.blocks]
    diagonal = [problem.factors(matrix, (name, name), point, sample) for name in names]
    features = [factors.left for factors in diagonal]
    samples = features[0].shape[0]
    weights = np.empty((len(names), len(names), samples))
    for a, row in enumerate(names):
        for b, column in enumerate(names[: a + 1]):
            factors = (
                diagonal[a] if a == b else problem.factors(matrix, (row, column), point, sample)
            )
            _same_features(factors, features[a], features[b], (row, column))
            weights[a, b] = weights[b, a] = factors.weights
    return FullMatrix(_validate.finite("weights", weights), features)


def _same_features(factors: Factors, left: Array, right: Array, block: Block) -> None:
    if factors.left.shape != left.shape or factors.right.shape != right.shape:
        raise ValueError(
            f"block {block} must have features of shapes {left.shape} and {right.shape} like the "
            f"diagonal blocks, got {factors.left.shape} and {factors.right.shape}"
        )


def _within_memory(size: int, memory_limit: int) -> None:
    needed = 8 * size * size
    if needed > memory_limit:
        raise ValueError(
            f"memory_limit must be at least {needed} bytes to form a matrix of size {size} "
            f"({needed / 2**30:.2f} GiB), got {memory_limit} ({memory_limit / 2**30:.2f} GiB)"
        )
