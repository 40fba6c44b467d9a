r"""The algorithmic threshold of weak recovery of the hard directions.

With :math:`g(y) = E[s s^T - I \mid y]` for hard coordinates s (given the easy coordinates
too, once these are known), the linear map :math:`F(M) = E[g M g]` on symmetric matrices
gives

.. math:: \delta_{alg} = 1 / \lambda_{max}(F) ,

the number of samples per dimension above which an efficient algorithm (a spectral method with
the best preprocessing of the labels, approximate message passing) recovers some hard
direction better than chance; gradient descent on a network needs at least as many
(MW, Properties of the threshold). For one direction it is :math:`1 / E[g^2]`.

Conditional expectations are computed by quadrature: the coordinates run over a fine grid,
grid points are grouped by label into narrow cells; label noise then mixes the cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn._types import Array
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index._grid import product_grid
from traindyn.problems.multi_index.hardness import decompose
from traindyn.problems.multi_index.targets import Target, orthonormal

__all__ = ["Recovery", "delta_alg"]

_POINTS = {1: 2**17, 2: 1200, 3: 160}
_CELLS = {1: 3000, 2: 1500, 3: 800}
_NOISY_CELLS = 800
_EASY_ORDER = {1: 24, 2: 10, 3: 6}


class Recovery(NamedTuple):
    """Threshold of weak recovery.

    Attributes
    ----------
    threshold : float
        delta_alg.
    error : float
        Its change when the grids are halved.
    direction : ndarray, shape (r, r)
        The symmetric matrix, of unit norm, that F stretches most: the shape of the first
        overlap matrix to be recovered.
    hard : ndarray, shape (k, r)
        Basis that `direction` refers to.
    """

    threshold: float
    error: float
    direction: Array
    hard: Array


def delta_alg(target: Target, *, hard: ArrayLike | None = None) -> Recovery:
    """Compute the algorithmic threshold of the hard directions, the easy ones known.

    Parameters
    ----------
    target : Target
        With noise or without.
    hard : array_like, shape (k, r), optional
        Orthonormal basis of the hard subspace, ``r <= 3``. Default: computed.

    Raises
    ------
    ValueError
        If there is no hard direction, there are more than three, or all second moments
        vanish (generative exponent above two: the threshold is infinite).

    Examples
    --------
    >>> from traindyn.problems.multi_index.recovery import delta_alg
    >>> from traindyn.problems.multi_index import phase_retrieval
    >>> round(delta_alg(phase_retrieval()).threshold, 4)
    0.5
    """
    given = decompose(target).hard if hard is None else hard
    if np.size(given) == 0:
        raise ValueError(
            f"target must have a hard direction, got {target.name}, all of whose directions are "
            f"easy: they are recovered at every delta > 0"
        )
    basis = orthonormal("hard", given, rows=target.k)
    if basis.shape[1] > max(_POINTS):
        raise ValueError(f"hard must have at most {max(_POINTS)} columns, got {basis.shape[1]}")
    values = [_largest(target, basis, refinement) for refinement in (1.0, 0.5)]
    (top, shape), (coarse, _) = values
    if top <= 1e-10:
        raise ValueError(
            f"target must have a generative exponent of two, got {target.name}, whose labels "
            f"carry no second moment of the hard directions: delta_alg is infinite"
        )
    return Recovery(1 / top, abs(1 / top - 1 / max(coarse, 1e-300)), shape, basis)


def _largest(target: Target, basis: Array, refinement: float) -> tuple[float, Array]:
    """Largest eigenvalue of F, and its eigenvector as a matrix."""
    r = basis.shape[1]
    symmetric = _symmetric_basis(r)
    total = np.zeros((len(symmetric), len(symmetric)))
    easy = np.linalg.svd(basis)[0][:, r:]
    if easy.shape[1]:
        rule = gauss_hermite(easy.shape[1], _EASY_ORDER[easy.shape[1]])
        known, masses = rule.nodes @ easy.T, rule.weights
        # Many conditional problems, each less fine.
        refinement *= 0.25 if r == 1 else 0.5
    else:
        known, masses = np.zeros((1, target.k)), np.ones(1)
    # Midpoint grid of the hard coordinates; symmetric, no node on an axis.
    count = 2 * max(int(_POINTS[r] * refinement) // 2, 20)
    grid, weights = product_grid(r, count, least=1e-20)
    offset = grid @ basis.T
    for place, mass in zip(known, masses):
        shares, seconds = _cells(
            target.signal(offset + place), grid, weights, int(_cell_count(target, r) * refinement)
        )
        if target.noise:
            shares, seconds = _mixed(shares, seconds, target.noise)
        g = seconds - np.eye(r)
        moved = np.einsum("bij,sjl,blm->bsim", g, symmetric, g, optimize=True)
        image = np.einsum("b,bsim->sim", shares.p, moved)
        total += mass * np.einsum("sim,tim->st", image, symmetric)
    values, vectors = np.linalg.eigh((total + total.T) / 2)
    shape = np.einsum("s,sij->ij", vectors[:, -1], symmetric)
    return float(values[-1]), shape * np.sign(np.trace(shape) or 1.0)


class _Shares(NamedTuple):
    """Probabilities of the cells, and their labels."""

    p: Array
    y: Array


def _cell_count(target: Target, r: int) -> int:
    return min(_CELLS[r], _NOISY_CELLS) if target.noise else _CELLS[r]


def _cells(labels: Array, grid: Array, weights: Array, count: int) -> tuple[_Shares, Array]:
    """Group points by label: probabilities, labels and second moments of the cells."""
    order = np.argsort(labels, kind="stable")
    sorted_labels, points, mass = labels[order], grid[order], weights[order]
    # Equal labels must not be torn apart; cells hold equal shares of the fourth moment, as
    # g^2 grows like it.
    scale = max(float(np.abs(sorted_labels).max()), 1e-300)
    new = np.concatenate([[True], np.diff(sorted_labels) > 1e-12 * scale])
    group = np.cumsum(new) - 1
    importance = np.bincount(group, weights=mass * (1 + (points**2).sum(axis=1) ** 2))
    before = np.concatenate([[0.0], np.cumsum(importance)[:-1]])
    cell = np.floor(before / importance.sum() * count).astype(np.int64)[group]
    cell = np.unique(cell, return_inverse=True)[1]
    p = np.bincount(cell, weights=mass)
    y = np.bincount(cell, weights=mass * sorted_labels) / p
    r = grid.shape[1]
    seconds = np.empty((p.size, r, r))
    for i in range(r):
        for j in range(r):
            seconds[:, i, j] = np.bincount(cell, weights=mass * points[:, i] * points[:, j]) / p
    return _Shares(p / p.sum(), y), seconds


def _mixed(shares: _Shares, seconds: Array, noise: float) -> tuple[_Shares, Array]:
    """Second moments given labels with noise, at quadrature nodes of the noisy label."""
    p, y = shares
    r = seconds.shape[1]
    rule = gauss_hermite(1, 20)
    flat = seconds.reshape(len(p), -1)
    nodes, masses, values = [], [], []
    for shift, mass in zip(rule.nodes[:, 0] * noise, rule.weights):
        noisy = y + shift
        likelihood = np.exp(-(((noisy[:, None] - y) / noise) ** 2) / 2) * p
        values.append((likelihood @ flat) / likelihood.sum(axis=1)[:, None])
        nodes.append(noisy)
        masses.append(p * mass)
    joined = np.concatenate(values).reshape(-1, r, r)
    return _Shares(np.concatenate(masses), np.concatenate(nodes)), joined


def _symmetric_basis(r: int) -> Array:
    """Orthonormal basis of symmetric matrices, shape (r (r + 1) / 2, r, r)."""
    basis = []
    for i in range(r):
        for j in range(i, r):
            matrix = np.zeros((r, r))
            matrix[i, j] = matrix[j, i] = 1.0 if i == j else np.sqrt(0.5)
            basis.append(matrix)
    return np.array(basis)
