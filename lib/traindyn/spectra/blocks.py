"""Hessian and G-matrix blocks of a problem at a point, as operators.

Every block is a weighted Gram matrix of features,

    A = (1/n) sum_i w_i f_i f_i^T,

with the weights and features given by ``problem.factors`` (BGHJ (3.2), (3.3), (6.5)
and (6.6) for the k-Gaussian mixture, BGHJ (6.16) and (6.17) for the two-layer network). An
operator multiplies without forming the matrix, streaming the features once per block of
vectors; :meth:`WeightedGram.dense` forms it by symmetric rank-k products of chunks of scaled
features, at half the cost of a general product and with scratch space bounded whatever the
number of samples. Both read only samples of non-zero weight, so that the time of a block
grows with the number of inputs at which its neurons are active.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import MATRICES, Block, Factors, Matrix, Problem, Sample, require

_CHUNK_BYTES = 2**19
"""Features or projections of one step over samples: small enough to stay in cache until used."""
_CHUNK_ROWS = 16
"""Samples of one step at least, however wide."""
_GRAM_BYTES = 2**24
"""Scaled features of one rank-k product: large, as each adds a whole matrix."""
_MEMORY_LIMIT = 2 * 2**30
"""Largest dense matrix formed without being asked to (bytes)."""


class FactorSource(Protocol):
    """An object that gives the factors of every block at one point on one sample."""

    def factors(self, matrix: Matrix, block: Block) -> Factors:
        """Weights and features of one block."""


@runtime_checkable
class SharedForward(Protocol):
    """A problem whose blocks at one point share one forward pass."""

    def forward(self, point: Any, sample: Sample) -> FactorSource:
        """Do what all blocks have in common."""


class _Separately:
    """Factors of a problem that gives one block at a time."""

    def __init__(self, problem: Problem, point: Any, sample: Sample) -> None:
        self._problem, self._point, self._sample = problem, point, sample

    def factors(self, matrix: Matrix, block: Block) -> Factors:
        return self._problem.factors(matrix, block, self._point, self._sample)


def at(problem: Problem, point: Any, sample: Sample) -> FactorSource:
    """Factors of all blocks at a point, from one forward pass where the problem allows it.

    Parameters
    ----------
    problem : Problem
        With a method ``forward``, or ``factors`` for one block at a time.
    point, sample
        Where, and on which data.

    Returns
    -------
    FactorSource
        What ``problem.forward`` returns (:class:`SharedForward`), or the problem's own
        ``factors`` at this point.
    """
    if isinstance(problem, SharedForward):
        return problem.forward(point, sample)
    require(problem, "blocks of the Hessian and the G-matrix", "factors")
    return _Separately(problem, point, sample)


class WeightedGram:
    """The symmetric operator ``(1/n) sum_i weights_i features_i features_i^T``.

    Parameters
    ----------
    weights : ndarray, shape (n,)
        Any sign. Samples of weight exactly zero are skipped. Copied.
    features : ndarray, shape (n, d)
        Kept by reference, never copied whole.

    Raises
    ------
    ValueError
        If the shapes disagree or a weight is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.spectra.blocks import WeightedGram
    >>> features = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> gram = WeightedGram(np.array([2.0, -2.0]), features)
    >>> gram.dense()
    array([[ 0., -1.],
           [-1., -1.]])
    >>> gram.matmat(np.eye(2)).tolist() == gram.dense().tolist()
    True
    """

    def __init__(self, weights: Array, features: Array) -> None:
        features = _validate.numeric("features", features)
        if features.ndim != 2 or features.shape[0] == 0:
            raise ValueError(f"features must have shape (n >= 1, d), got {features.shape}")
        # Features are not scanned here: a film builds a thousand operators on the same
        # data. A NaN in them is refused by the eigensolvers.
        self._features = features
        size = (features.shape[0],)
        self._weights = _validate.frozen(_validate.finite("weights", weights, shape=size))

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

    @property
    def zero(self) -> bool:
        """Whether every weight is zero, and with them the matrix."""
        return not self._weights.any()

    def matmat(self, vectors: Array) -> Array:
        """Product with the columns of `vectors`, shape (d, b)."""
        # Transposed, so that the features are read in their stored order, and chunk by chunk,
        # so that each is read from memory once for its two products.
        product = np.zeros((vectors.shape[1], self.size))
        chosen = np.flatnonzero(self._weights)
        for rows, part in self._parts(chosen, max(_CHUNK_ROWS, _CHUNK_BYTES // (8 * self.size))):
            projections = part @ vectors
            projections *= self._weights[rows, None]
            product += projections.T @ part
        product /= self._weights.size
        return product.T

    def dense(self, *, memory_limit: int = _MEMORY_LIMIT) -> Array:
        """Form the matrix.

        Parameters
        ----------
        memory_limit : int
            Bytes the result may take.

        Returns
        -------
        ndarray, shape (d, d)
            Exactly symmetric.

        Raises
        ------
        ValueError
            If the matrix is larger than `memory_limit`.
        """
        _within_memory(self.size, memory_limit)
        out = np.zeros((self.size, self.size))
        scales = np.sqrt(np.abs(self._weights) / self._weights.size)
        count = max(1, _GRAM_BYTES // (8 * self.size))
        scaled = np.empty((min(count, scales.size), self.size))
        product = np.empty_like(out)
        for sign, add in ((1.0, np.add), (-1.0, np.subtract)):
            chosen = np.flatnonzero(self._weights * sign > 0)
            for rows, part in self._parts(chosen, count, scaled):
                into = scaled[: len(part)]
                np.multiply(part, scales[rows, None], out=into)
                # NumPy detects one array times its own transpose and calls the symmetric
                # rank-k routine, without the interpreter lock that SciPy's BLAS holds.
                np.dot(into.T, into, out=product)
                add(out, product, out=out)
        return out

    def _parts(
        self, chosen: NDArray[np.intp], count: int, scratch: Array | None = None
    ) -> Iterator[tuple[Any, Array]]:
        """Chosen samples, `count` at a time: where they are, and their features.

        The features are gathered into `scratch` unless every sample is chosen; then they are
        the stored ones.
        """
        total = self._weights.size
        everything = chosen.size == total
        if scratch is None and not everything:
            scratch = np.empty((min(count, chosen.size), self.size))
        for first in range(0, chosen.size, count):
            last = min(first + count, chosen.size)
            if everything or scratch is None:
                yield slice(first, last), self._features[first:last]
                continue
            rows = chosen[first:last]
            part = scratch[: rows.size]
            # Any mode but "raise" writes straight into `out`, without a buffer.
            np.take(self._features, rows, axis=0, out=part, mode="clip")
            yield rows, part


class _Group(NamedTuple):
    """Pairs of parameters that see the same two arrays of features.

    ``weights[a, b]``, shape (n,), belongs to the block of parameters ``rows[a]`` and
    ``columns[b]``; `left` and `right` are positions in the list of arrays.
    """

    left: int
    right: int
    rows: list[int]
    columns: list[int]
    weights: Array


class FullMatrix:
    """All blocks of the Hessian or the G-matrix together, as one symmetric operator.

    Rows and columns are the parameters of ``problem.blocks``, one after the other, as in
    :func:`parameters`: for the k-Gaussian mixture ``(1/n) sum_i W_i kron Y_i Y_i^T`` of size
    ``k d``; for the two-layer network the K neurons and then the second layer, ``K N + K``.

    Use :func:`full` to build one.

    Parameters
    ----------
    factors : sequence of sequence of Factors
        Row `a` holds the blocks (a, 0) to (a, a). Blocks may share arrays of features, which
        are then multiplied once.

    Raises
    ------
    ValueError
        If the shapes of two blocks disagree or a weight is not finite.
    """

    def __init__(self, factors: Sequence[Sequence[Factors]]) -> None:
        sizes = [row[-1].left.shape[1] for row in factors]
        self._samples = factors[0][0].left.shape[0]
        ends = np.cumsum(sizes)
        self._slices = [slice(int(end) - size, int(end)) for size, end in zip(sizes, ends)]
        self._arrays: list[Array] = []
        pairs: dict[tuple[int, int], dict[tuple[int, int], Array]] = {}
        for a, row in enumerate(factors):
            for b, (weights, left, right) in enumerate(row):
                wanted = (self._samples, sizes[a]), (self._samples, sizes[b])
                if (left.shape, right.shape) != wanted:
                    raise ValueError(
                        f"factors[{a}][{b}] must have features of shapes {wanted[0]} and "
                        f"{wanted[1]} like the diagonal blocks, got {left.shape} and {right.shape}"
                    )
                name = f"factors[{a}][{b}].weights"
                weights = _validate.finite(name, weights, shape=(self._samples,))
                seen = self._position(left), self._position(right)
                pairs.setdefault(seen, {})[a, b] = weights
                pairs.setdefault(seen[::-1], {})[b, a] = weights
        self._groups = [_grouped(*seen, found) for seen, found in pairs.items()]
        # Parameters that see each array; those on its right are those on its left.
        self._users = [
            sorted({a for group in self._groups if group.left == k for a in group.rows})
            for k in range(len(self._arrays))
        ]

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
        columns = vectors.shape[1]
        stacked = [np.hstack([vectors[self._slices[a]] for a in users]) for users in self._users]
        totals = [np.zeros(stack.T.shape) for stack in stacked]
        # Projections of a chunk of samples for every parameter, in bounded memory.
        rows = max(1, _CHUNK_BYTES // (8 * len(self._slices) * columns))
        for first in range(0, self._samples, rows):
            chunk = slice(first, min(first + rows, self._samples))
            parts = [array[chunk] for array in self._arrays]
            projected = [
                (part @ stack).reshape(len(part), -1, columns)
                for part, stack in zip(parts, stacked)
            ]
            weighted = [np.zeros_like(values) for values in projected]
            for group in self._groups:
                into = np.searchsorted(self._users[group.left], group.rows)
                seen = np.searchsorted(self._users[group.right], group.columns)
                weighted[group.left][:, into] += np.einsum(
                    "abi,ibj->iaj", group.weights[:, :, chunk], projected[group.right][:, seen]
                )
            for total, values, part in zip(totals, weighted, parts):
                total += values.reshape(len(part), -1).T @ part
        product = np.zeros_like(vectors)
        for users, total in zip(self._users, totals):
            for a, values in zip(users, np.split(total, len(users))):
                product[self._slices[a]] += values.T
        product /= self._samples
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
        matrix = np.zeros((self.size, self.size))
        for group in self._groups:
            left, right = self._arrays[group.left], self._arrays[group.right]
            for a, row in zip(group.rows, group.weights):
                for b, weights in zip(group.columns, row):
                    if b > a or not weights.any():
                        continue
                    if left is right:
                        block = WeightedGram(weights, left).dense()
                    else:
                        block = left.T @ (right * (weights / self._samples)[:, None])
                    matrix[self._slices[a], self._slices[b]] += block
        for a, rows in enumerate(self._slices):
            for columns in self._slices[:a]:
                matrix[columns, rows] = matrix[rows, columns].T
        return matrix

    def _position(self, array: Array) -> int:
        """Position of an array in the list, by identity; appended if new."""
        for position, known in enumerate(self._arrays):
            if known is array:
                return position
        self._arrays.append(array)
        return len(self._arrays) - 1


def _grouped(left: int, right: int, pairs: dict[tuple[int, int], Array]) -> _Group:
    """Weights of some pairs as one array, zero where there is no pair."""
    rows, columns = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
    samples = next(iter(pairs.values())).size
    weights = np.zeros((len(rows), len(columns), samples))
    for (a, b), values in pairs.items():
        weights[rows.index(a), columns.index(b)] = values
    return _Group(left, right, rows, columns, weights)


def operator(
    problem: Problem, matrix: Matrix, block: Block, point: Any, sample: Sample
) -> WeightedGram:
    """One symmetric block of the empirical Hessian or G-matrix, never formed.

    Parameters
    ----------
    problem : Problem
        Its factors are the weights and the features of the block.
    matrix : {"hessian", "g_matrix"}
        Which of the two; neither contains the ridge.
    block : tuple of int
        The pair (b, c) of parameters.
    point, sample
        Where, and on which data (training or test). Inputs are kept by reference.

    Raises
    ------
    ValueError
        If the block is not symmetric (its two parameters see different features).
    """
    return operator_of(at(problem, point, sample), matrix, block)


def operator_of(source: FactorSource, matrix: Matrix, block: Block) -> WeightedGram:
    """One symmetric block as in :func:`operator`, of factors that are already :func:`at` hand."""
    factors = source.factors(_validate.choice("matrix", matrix, MATRICES), block)
    if factors.left is not factors.right:
        raise ValueError(
            f"block must be symmetric, got {block} with different left and right features "
            f"{factors.left.shape} and {factors.right.shape}"
        )
    return WeightedGram(factors.weights, factors.left)


def full(problem: Problem, matrix: Matrix, point: Any, sample: Sample) -> FullMatrix:
    """Build the whole empirical Hessian or G-matrix over the parameters of ``problem.blocks``.

    Parameters
    ----------
    problem : Problem
        Its ``blocks`` give the parameters and their order.
    matrix : {"hessian", "g_matrix"}
        Which of the two; neither contains the ridge.
    point, sample
        Where, and on which data. Inputs are kept by reference.

    Returns
    -------
    FullMatrix
        Matrix-free, with a guarded ``dense()``. It holds one weight per sample and pair
        of parameters, ``8 m^2 n`` bytes for `m` parameters.

    Raises
    ------
    ValueError
        If the features of a block do not have the sizes of its two parameters.
    """
    matrix = _validate.choice("matrix", matrix, MATRICES)
    source = at(problem, point, sample)
    names = [block[0] for block in problem.blocks]
    return FullMatrix(
        [
            [source.factors(matrix, (row, column)) for column in names[: a + 1]]
            for a, row in enumerate(names)
        ]
    )


def parameters(problem: Problem, point: Any) -> Array:
    """All parameters as one vector, in the order of :func:`full`.

    Parameters
    ----------
    problem : Problem
        Its ``blocks`` give the order.
    point
        For example a :class:`~traindyn.problems.two_layer.mixture.Point`.

    Returns
    -------
    ndarray, shape (size,)
        The parameters of ``problem.blocks``, one after the other.
    """
    return np.concatenate([problem.parameter(block, point) for block in problem.blocks])


def _within_memory(size: int, memory_limit: int) -> None:
    needed = 8 * size * size
    if needed > _validate.integer("memory_limit", memory_limit, least=0):
        raise ValueError(
            f"memory_limit must be at least {needed} bytes to form a matrix of size {size} "
            f"({needed / 2**30:.2f} GiB), got {memory_limit} ({memory_limit / 2**30:.2f} GiB)"
        )
