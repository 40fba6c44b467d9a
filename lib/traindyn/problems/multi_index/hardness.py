r"""Easy and hard directions of a multi-index target, computed.

A subspace with orthonormal basis U is *hard* if :math:`E[U^T z \mid y, P_U^\perp z] = 0`
almost surely: no function of the label and of the other coordinates correlates with it.
Hard subspaces add up (condition on the coarser information and use the tower property), so
there is a largest one. It is found from above: start with all of :math:`R^k`, split off every
direction that some function of the label and of the directions already split off
correlates with, repeat (MW, Easy and hard directions). Additive noise changes nothing: its
characteristic function has no zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.multi_index import _grid
from traindyn.problems.multi_index.targets import Target

__all__ = ["Decomposition", "decompose"]

_KNOWN_DEGREE = 4
"""Largest degree of the functions of the directions already split off."""
_COARSER = (1.25, 1.37)
"""Grids that the quadrature error is read off from, relative to the one used."""
_UNDECIDED = 0.02
"""Moments that are this uncertain decide nothing."""


@dataclass(frozen=True)
class Decomposition:
    """Easy and hard subspaces of a target.

    Attributes
    ----------
    hard : ndarray, shape (k, r)
        Orthonormal basis of the largest hard subspace.
    easy : ndarray, shape (k, k - r)
        Orthonormal basis of its complement.
    moments : tuple of ndarray
        One array per round: the largest correlations found, one per direction still in
        question, decreasing. The square of each is a lower bound on the mean square of the
        conditional mean of a coordinate.
    error : float
        Quadrature error of the moments: their change from one grid to coarser ones.
    """

    hard: Array
    easy: Array
    moments: tuple[Array, ...]
    error: float


def decompose(target: Target, *, tolerance: float = 1e-6) -> Decomposition:
    """Split the directions of a target into easy and hard.

    Parameters
    ----------
    target : Target
        With at most four directions.
    tolerance : float, default 1e-6
        A direction whose moments are all below it, or below ten times their quadrature error,
        is called hard.

    Raises
    ------
    ValueError
        If there are too many directions, or the quadrature is too coarse to decide.

    Examples
    --------
    >>> from traindyn.problems.multi_index.hardness import decompose
    >>> from traindyn.problems.multi_index import two_layer_teacher
    >>> found = decompose(two_layer_teacher((1.0, 1.0)))
    >>> print(found.easy.round(6).ravel(), found.hard.round(6).ravel())
    [0.707107 0.707107] [ 0.707107 -0.707107]
    """
    level = _validate.positive("tolerance", tolerance)
    k = target.k
    if k > _grid.LARGEST_DIMENSION:
        raise ValueError(f"target must have at most {_grid.LARGEST_DIMENSION} directions, got {k}")
    hard, easy = np.eye(k), np.empty((k, 0))
    moments: list[Array] = []
    error = 0.0
    while hard.shape[1]:
        _, values, right = np.linalg.svd(_correlations(target, hard, easy, 1.0))
        for scale in _COARSER:
            other = np.linalg.svd(_correlations(target, hard, easy, scale), compute_uv=False)
            error = max(error, float(np.abs(values - other).max()))
        if error > _UNDECIDED:
            raise ValueError(
                f"target must be smoother for its directions to be classified: the moments "
                f"have a quadrature error of {error:.3g}, above {_UNDECIDED}"
            )
        moments.append(values)
        split = values > max(level, 10 * error)
        if not split.any():
            break
        easy = _tidy(np.hstack([easy, hard @ right.T[:, split]]))
        hard = _complement(easy)
    return Decomposition(_tidy(hard), easy, tuple(moments), error)


def _correlations(target: Target, hard: Array, easy: Array, scale: float) -> Array:
    """Correlations of orthonormal functions of (label, easy part) with the rest, (T, r)."""
    rule = _grid.midpoint(target.k, scale)
    bank = _grid.label_functions(target.signal(rule.nodes))
    if easy.shape[1]:
        known = rule.nodes @ easy
        tables = [_grid.hermite(known, order) for order in range(_KNOWN_DEGREE + 1)]
        joint = np.concatenate(tables, axis=1)
        bank = (bank[:, :, None] * joint[:, None, :]).reshape(rule.size, -1)
    bank = _grid.orthonormal_columns(bank, rule.weights)
    moments = bank.T @ (rule.weights[:, None] * (rule.nodes @ hard))
    # At least as many rows as columns, so that every direction has a singular value.
    return np.pad(moments, ((0, max(0, hard.shape[1] - len(moments))), (0, 0)))


def _complement(basis: Array) -> Array:
    """Orthonormal basis of the orthogonal complement."""
    k, count = basis.shape
    full = np.linalg.qr(np.hstack([basis, np.eye(k)]))[0]
    return np.asarray(full[:, count:k])


def _tidy(basis: Array) -> Array:
    """Return a basis of the same space that does not depend on the solver's choices."""
    if basis.shape[1] == 0:
        return basis
    # Gram-Schmidt on the projections of the coordinate axes, the longest first.
    columns: list[Array] = []
    rest = basis @ basis.T
    for _ in range(basis.shape[1]):
        lengths = np.linalg.norm(rest, axis=0)
        pick = int(np.argmax(lengths > lengths.max() * (1 - 1e-6)))
        column = rest[:, pick] / lengths[pick]
        columns.append(column)
        rest = rest - np.outer(column, column @ rest)
    return np.stack(columns, axis=1)
