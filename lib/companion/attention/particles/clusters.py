"""How far tokens have gathered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from companion.attention.particles._tokens import group_masses, unit_tokens
from traindyn import _validate

__all__ = ["cluster_count", "clustered_share", "linkage"]


def clustered_share(tokens: ArrayLike, *, tolerance: float = 1e-3) -> float:
    """Return the share of pairs of tokens whose inner product is one up to a tolerance.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        At least two, of norm one.
    tolerance : float, default 1e-3
        Positive; inner products of ``1 - tolerance`` and above count.

    Examples
    --------
    >>> from companion.attention.particles.clusters import clustered_share
    >>> clustered_share([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    0.3333333333333333
    """
    x = unit_tokens(tokens, least=2)
    off = _validate.positive("tolerance", tolerance)
    pairs = np.triu_indices(len(x), 1)
    return float(np.mean((x @ x.T)[pairs] >= 1 - off))


def cluster_count(tokens: ArrayLike, *, tolerance: float = 1e-3) -> int:
    """Count the groups of tokens that chains of close pairs connect.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        Of norm one.
    tolerance : float, default 1e-3
        A pair is close if its inner product is one up to this.

    Examples
    --------
    >>> from companion.attention.particles.clusters import cluster_count
    >>> cluster_count([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    2
    """
    x = unit_tokens(tokens, least=1)
    off = _validate.positive("tolerance", tolerance)
    return int(connected_components(x @ x.T >= 1 - off, directed=False)[0])


def linkage(tokens: ArrayLike, *, masses: ArrayLike | None = None) -> NDArray[np.float64]:
    r"""Return the heights at which tokens merge in the limit of large inverse temperatures.

    Two groups of masses :math:`m_1, m_2` with inner product :math:`\rho` move towards each other at
    the speeds :math:`(m_2 / m_1) s` and :math:`(m_1 / m_2) s`, where :math:`s` is of the order
    :math:`e^{-\beta (1 - \rho)}`. If :math:`\beta` is large the nearest two merge while all others
    rest, on the great circle between them, at distances from their starts that are inverse to the
    squares of their masses. So the k-th merger is at :math:`t_k = e^{\beta (h_k + o(1))}`, with
    the heights of this greedy clustering.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        Of norm one, no two of them opposite.
    masses : array_like, shape (n,), optional
        Positive, of sum one. Default: all equal.

    Returns
    -------
    ndarray, shape (n - 1,)
        :math:`h_1 \le h_2 \le \dots`: one less the inner product of the two that merge, or the
        height before if that was larger.

    Examples
    --------
    >>> from companion.attention.particles.clusters import linkage
    >>> linkage([[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]]).round(3)
    array([0.4  , 1.894])
    """
    x = unit_tokens(tokens, least=1).copy()
    share = group_masses(masses, len(x))
    heights: list[float] = []
    while len(x) > 1:
        products = x @ x.T - 3 * np.eye(len(x))
        i, j = np.unravel_index(int(np.argmax(products)), products.shape)
        angle = np.arccos(np.clip(products[i, j], -1, 1))
        # On the great circle. Each group moves at a speed of the mass of the other over its own, as
        # most of the attention of a token stays in its group.
        part = angle * share[j] ** 2 / (share[i] ** 2 + share[j] ** 2)
        if np.sin(angle) > 0:
            x[i] = (np.sin(angle - part) * x[i] + np.sin(part) * x[j]) / np.sin(angle)
        share[i] += share[j]
        heights.append(max(1 - products[i, j], heights[-1] if heights else 0.0))
        x, share = np.delete(x, j, axis=0), np.delete(share, j)
    return np.array(heights)
