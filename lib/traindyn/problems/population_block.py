"""A multiple of the identity plus a matrix of finite rank: the shape of population blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindyn import _validate
from traindyn._types import Array

__all__ = ["PopulationBlock"]


@dataclass(frozen=True)
class PopulationBlock:
    """The symmetric matrix ``shift * I + basis @ core @ basis.T``.

    Attributes
    ----------
    shift : float
        Eigenvalue of the bulk.
    basis : ndarray, shape (d, r)
        Columns spanning the range of the finite-rank part; they need be neither
        orthonormal nor independent.
    core : ndarray, shape (r, r)
        Symmetric.

    Raises
    ------
    ValueError
        If the shapes disagree, `core` is not symmetric or an entry is not finite.

    Examples
    --------
    >>> from traindyn.problems.population_block import PopulationBlock
    >>> import numpy as np
    >>> block = PopulationBlock(1.0, np.eye(4)[:, :2], np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> block.eigenvalues()
    array([ 3., -1.,  1.,  1.])
    """

    shift: float
    basis: Array
    core: Array

    def __post_init__(self) -> None:
        """Convert and check every field."""
        basis = _validate.finite("basis", self.basis, shape=(None, None))
        object.__setattr__(self, "shift", _validate.number("shift", self.shift))
        object.__setattr__(self, "basis", _validate.frozen(basis))
        core = _validate.symmetric("core", self.core, size=basis.shape[1])
        object.__setattr__(self, "core", _validate.frozen((core + core.T) / 2))

    @property
    def size(self) -> int:
        """Number of rows d."""
        return int(self.basis.shape[0])

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Type of the entries."""
        return np.dtype(np.float64)

    def matmat(self, vectors: Array) -> Array:
        """Multiply by `vectors`, shape (d, b), at cost d r b."""
        vectors = _validate.finite("vectors", vectors)
        if vectors.ndim not in (1, 2) or len(vectors) != self.size:
            raise ValueError(
                f"vectors must have shape ({self.size},) or ({self.size}, n), got {vectors.shape}"
            )
        product = self.basis @ (self.core @ (self.basis.T @ vectors))
        return np.asarray(self.shift * vectors + product)

    def dense(self) -> Array:
        """Return the matrix, shape (d, d)."""
        return np.asarray(self.shift * np.eye(self.size) + self.basis @ self.core @ self.basis.T)

    def on_span(self) -> tuple[Array, Array]:
        """Eigenpairs within the span of `basis`, the shift included.

        Returns
        -------
        values : ndarray, shape (s,)
            Decreasing absolute value; s is the numerical rank of `basis`.
        vectors : ndarray, shape (d, s)
            Orthonormal, in the same order.
        """
        left, scales, _ = np.linalg.svd(self.basis, full_matrices=False)
        span = left[:, scales > 1e-12 * max(scales.max(initial=0.0), 1e-300)]
        small = span.T @ self.basis
        values, vectors = np.linalg.eigh(small @ self.core @ small.T)
        values = values + self.shift
        order = np.argsort(-np.abs(values), kind="stable")
        return values[order], np.asarray(span @ vectors[:, order])

    def eigenvalues(self) -> Array:
        """All eigenvalues, shape (d,), decreasing absolute value, the bulk `shift` included."""
        values, _ = self.on_span()
        every = np.concatenate([values, np.full(self.size - values.size, self.shift)])
        return every[np.argsort(-np.abs(every), kind="stable")]
