"""Stochastic differential equations as objects, given by a drift and a noise factor.

The diffusion matrix is ``factor @ factor.T`` and may lose rank, everywhere or at points, as
those of the sources do; a factor exists in either case, its inverse or a Cholesky factor need
not. Linear equations carry their covariances in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm, solve_continuous_lyapunov

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import symmetric_sqrt

__all__ = ["Diffusion", "LinearDiffusion", "van_loan"]


class Diffusion(NamedTuple):
    """A stochastic differential equation ``du = drift(u) dt + factor(u) dB``.

    Attributes
    ----------
    names : tuple of str
        What the coordinates of u are.
    drift : callable
        From shape (..., dim) to shape (..., dim).
    factor : callable
        From shape (..., dim) to shape (..., dim, noises); the diffusion matrix is
        ``factor @ factor.T``.
    """

    names: tuple[str, ...]
    drift: Callable[[Array], Array]
    factor: Callable[[Array], Array]


@dataclass(frozen=True)
class LinearDiffusion:
    """A linear equation ``du = matrix u dt + dM`` with ``d<M> = noise dt``.

    Attributes
    ----------
    names : tuple of str
    matrix : ndarray, shape (dim, dim)
    noise : ndarray, shape (dim, dim)
    """

    names: tuple[str, ...]
    matrix: Array
    noise: Array

    def __post_init__(self) -> None:
        """Check the shapes."""
        matrix, noise = _square(self.matrix, self.noise)
        if len(matrix) != len(self.names):
            raise ValueError(
                f"matrix must have a row for each of the {len(self.names)} names, got {len(matrix)}"
            )
        object.__setattr__(self, "matrix", _validate.frozen(matrix))
        object.__setattr__(self, "noise", _validate.frozen(noise))

    def diffusion(self) -> Diffusion:
        """Return the same equation by its drift and noise factor."""
        root = symmetric_sqrt(self.noise)
        return Diffusion(
            self.names,
            lambda u: np.asarray(u) @ self.matrix.T,
            lambda u: np.broadcast_to(root, (*np.shape(u)[:-1], *root.shape)),
        )

    def covariance(self, times: ArrayLike, start: ArrayLike) -> Array:
        """Covariance of u at given times.

        Parameters
        ----------
        times : array_like, shape (T,)
            Since the start, in any order.
        start : array_like, shape (dim, dim)
            Covariance at time 0.

        Returns
        -------
        ndarray, shape (T, dim, dim)
        """
        n = self.matrix.shape[0]
        begin = _validate.positive_semidefinite("start", start, size=n)
        grid = _validate.finite("times", times, shape=(None,))
        transition, noise = van_loan(self.matrix, self.noise, grid)
        return transition @ begin @ np.swapaxes(transition, 1, 2) + noise

    def stationary(self) -> Array:
        """Stationary covariance, shape (dim, dim).

        Raises
        ------
        ValueError
            If the equation is not stable.
        """
        slowest = float(np.linalg.eigvals(self.matrix).real.max())
        if slowest >= 0:
            raise ValueError(
                "matrix must have eigenvalues with negative real parts for a stationary "
                f"covariance, got {slowest:.6g}"
            )
        found = solve_continuous_lyapunov(self.matrix, -self.noise)
        return np.asarray(0.5 * (found + found.T))


def van_loan(matrix: Array, noise: Array, times: Array) -> tuple[Array, Array]:
    """Transition matrices of a linear equation and the covariances of its noise.

    Parameters
    ----------
    matrix, noise : ndarray, shape (n, n)
        As in :class:`LinearDiffusion`.
    times : ndarray, shape (...)
        Lengths t of time, not negative.

    Returns
    -------
    transition : ndarray, shape (..., n, n)
        ``exp(t matrix)``.
    covariance : ndarray, shape (..., n, n)
        Of u at time t, started from zero.

    Raises
    ------
    FloatingPointError
        If one of them is beyond the floating-point numbers.
    """
    matrix, noise = _square(matrix, noise)
    with np.errstate(over="ignore", invalid="ignore"):
        transition, found = _van_loan(matrix, noise, times)
    for name, part in (("transition matrices", transition), ("covariances", found)):
        if not np.isfinite(part).all():
            raise FloatingPointError(
                f"matrix, noise and times must have finite {name}, got entries of matrix up to "
                f"{np.abs(matrix).max():.3g}, of noise up to {np.abs(noise).max():.3g} and of "
                f"times up to {np.abs(times).max():.3g}"
            )
    return transition, found


def _van_loan(matrix: Array, noise: Array, times: Array) -> tuple[Array, Array]:
    """Do what :func:`van_loan` says, with matrices that are checked."""
    n, widths = matrix.shape[0], _validate.finite("times", times)
    # Van Loan's exponential: transition matrix and accumulated noise at once. It grows where
    # the transition decays, so it is taken of a short time, which is then doubled.
    doublings = np.ceil(np.log2(np.maximum(np.abs(widths) * np.linalg.norm(matrix), 1.0)))
    if not np.isfinite(doublings).all():
        nothing = np.full((*widths.shape, n, n), np.nan)
        return nothing, nothing
    # The noise, in which all is linear, in a unit in which it is no longer than the matrix: the
    # exponential would square more often for it, and lose digits each time.
    longer = np.frexp(np.abs(noise).max())[1] - np.frexp(np.abs(matrix).max())[1]
    unit = int(max(longer, 0)) if matrix.any() and noise.any() else 0
    block = np.zeros((2 * n, 2 * n))
    block[:n, :n], block[:n, n:], block[n:, n:] = -matrix, np.ldexp(noise, -unit), matrix.T
    exponential = expm((widths / 2.0**doublings)[..., None, None] * block)
    transition = np.ascontiguousarray(np.swapaxes(exponential[..., n:, n:], -1, -2))
    found = transition @ exponential[..., :n, n:]
    for done in range(int(doublings.max(initial=0.0))):
        more = doublings > done
        half = transition[more]
        found[more] += half @ found[more] @ np.swapaxes(half, -1, -2)
        transition[more] = half @ half
    return transition, np.ldexp(0.5 * (found + np.swapaxes(found, -1, -2)), unit)


def _square(matrix: ArrayLike, noise: ArrayLike) -> tuple[Array, Array]:
    """Check two matrices of the same size."""
    drift = _validate.finite("matrix", matrix, shape=(None, None))
    if drift.shape[0] != drift.shape[1] or drift.size == 0:
        raise ValueError(f"matrix must be square, got shape {drift.shape}")
    return drift, _validate.finite("noise", noise, shape=drift.shape)
