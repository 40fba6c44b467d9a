r"""Random matrices to compare laws with: entries of several laws, Gaussian ones at linear cost.

The limits of this room depend on the entries only through their variance. Those of
:data:`ENTRIES` are standardised and differ in everything else.

For Gaussian entries the spectrum has a second description. Let G be a d by n matrix of
independent N(0, 1) entries. Reflections that fix the first coordinate reduce it to a lower
bidiagonal matrix with independent entries,

.. math:: L_{kk} \sim \chi_{n-k+1}, \qquad L_{k+1,k} \sim \chi_{d-k} ,

so that :math:`G G^T` has the eigenvalues of the tridiagonal :math:`L L^T`, and its first
coordinate vector the weights of the first one (Silverstein; Dumitriu and Edelman). What costs
:math:`d^2 n` operations for a matrix costs d here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigvalsh_tridiagonal

from traindyn import _validate
from traindyn._types import RNG, Array

_Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], Array]

__all__ = ["ENTRIES", "Bidiagonal", "EntryLaw", "wishart_bidiagonal"]


@dataclass(frozen=True)
class EntryLaw:
    """A law of mean zero and variance one.

    Attributes
    ----------
    name : str
    kurtosis : float
        Fourth moment; infinite if there is none.
    draw : callable
        ``draw(generator, shape)``.
    """

    name: str
    kurtosis: float
    draw: _Draw


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(2.0 * rng.integers(0, 2, shape, dtype=np.int8) - 1.0, dtype=np.float64)


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.uniform(-(3**0.5), 3**0.5, shape), dtype=np.float64)


def _student(freedom: int) -> _Draw:
    scale = float(np.sqrt((freedom - 2) / freedom))

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.asarray(scale * rng.standard_t(freedom, shape), dtype=np.float64)

    return draw


ENTRIES = {
    law.name: law
    for law in (
        EntryLaw("Gaussian", 3.0, lambda rng, shape: rng.standard_normal(shape)),
        EntryLaw("Rademacher", 1.0, _signs),
        EntryLaw("uniform", 1.8, _uniform),
        EntryLaw("Student, 6", 6.0, _student(6)),
        EntryLaw("Student, 3", np.inf, _student(3)),
    )
}
"""Entry laws by name; the last one has no fourth moment."""


@dataclass(frozen=True)
class Bidiagonal:
    """Lower bidiagonal factors L of replicas of a Gaussian d by n matrix.

    Attributes
    ----------
    diagonal : ndarray, shape (r, m)
        With ``m = min(d, n)``.
    below : ndarray, shape (r, m) or (r, m - 1)
        Entries below the diagonal: m of them where d > n, with one more row than columns.
    """

    diagonal: Array
    below: Array

    def tridiagonal(self) -> tuple[Array, Array]:
        """Diagonals of ``L L^T``, shapes (r, k) and (r, k - 1) with ``k = min(d, n + 1)``."""
        square, under = self.diagonal**2, self.below**2
        rows = self.below.shape[1] + 1
        main = np.zeros((len(square), rows))
        main[:, : square.shape[1]] += square
        main[:, 1:] += under
        return main, self.diagonal[:, : rows - 1] * self.below

    def extreme_eigenvalues(self, *, largest: bool = True) -> Array:
        """Largest or smallest eigenvalue of ``L L^T`` of each replica, shape (r,)."""
        main, off = self.tridiagonal()
        at = main.shape[1] - 1 if largest else 0
        return np.array(
            [
                eigvalsh_tridiagonal(a, b, select="i", select_range=(at, at))[0]
                for a, b in zip(main, off, strict=True)
            ]
        )

    def count_below(self, level: ArrayLike) -> NDArray[np.int64]:
        """Eigenvalues of ``L L^T`` below a level, by Sylvester's law of inertia.

        Parameters
        ----------
        level : array_like, shape (r,) or scalar
            One for each replica, or one for all.

        Returns
        -------
        ndarray of int, shape (r,)
        """
        main, off = self.tridiagonal()
        shift = _validate.finite("level", level)
        if shift.shape not in ((), (len(main),)):
            raise ValueError(f"level must have shape () or ({len(main)},), got {shift.shape}")
        tiny = np.finfo(float).tiny
        pivot = main[:, 0] - shift
        count = (pivot < 0).astype(np.int64)
        for k in range(1, main.shape[1]):
            # a vanishing pivot is replaced by a tiny one: a perturbation far below rounding
            pivot = np.where(np.abs(pivot) < tiny, tiny, pivot)
            pivot = main[:, k] - shift - off[:, k - 1] ** 2 / pivot
            count += pivot < 0
        return count

    def inverse_trace(self) -> Array:
        r"""Return :math:`tr (L L^T)^{-1} = \|L^{-1}\|_F^2` of a square L, shape (r,).

        The squared norms of the columns of the inverse follow from each other,
        :math:`q_k = (1 + L_{k+1,k}^2 q_{k+1}) / L_{kk}^2`.
        """
        if self.below.shape[1] == self.diagonal.shape[1]:
            raise ValueError("the factor must be square: swap the roles of d and n")
        column = 1 / self.diagonal[:, -1] ** 2
        total = column.copy()
        for k in range(self.diagonal.shape[1] - 2, -1, -1):
            column = (1 + self.below[:, k] ** 2 * column) / self.diagonal[:, k] ** 2
            total += column
        return total


def wishart_bidiagonal(dimension: int, samples: int, replicas: int = 1, *, rng: RNG) -> Bidiagonal:
    r"""Draw bidiagonal factors of :math:`G G^T`, G of shape (d, n) with N(0, 1) entries.

    Parameters
    ----------
    dimension, samples : int
        d and n.
    replicas : int
        Number r of independent factors.
    rng : int, SeedSequence or Generator
        Draws the entries, which have chi laws.

    Examples
    --------
    >>> from traindyn.laws import wishart_bidiagonal
    >>> factor = wishart_bidiagonal(30, 60, 2000, rng=1)
    >>> expected = 30 / (60 - 30 - 1)  # E tr (G G^T)^-1
    >>> bool(abs(factor.inverse_trace().mean() / expected - 1) < 0.02)
    True
    """
    d = _validate.integer("dimension", dimension, least=1)
    n = _validate.integer("samples", samples, least=1)
    r = _validate.integer("replicas", replicas, least=1)
    generator, m = _validate.generator("rng", rng), min(d, n)
    diagonal = np.sqrt(generator.chisquare(n - np.arange(m), (r, m)))
    below = np.sqrt(generator.chisquare(d - 1 - np.arange(min(d - 1, m)), (r, min(d - 1, m))))
    return Bidiagonal(diagonal, below)
