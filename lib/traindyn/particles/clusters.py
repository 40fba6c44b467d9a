"""How far tokens have gathered."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from traindyn import _validate

__all__ = ["cluster_count", "clustered_share"]


def clustered_share(tokens: ArrayLike, *, tolerance: float = 1e-3) -> float:
    """Return the share of pairs of tokens whose inner product is one up to a tolerance.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        At least two, of norm one.
    tolerance : float, default 1e-3

    Returns
    -------
    float

    Examples
    --------
    >>> clustered_share([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    0.3333333333333333
    """
    x = _validate.finite("tokens", tokens, shape=(None, None))
    off = _validate.positive("tolerance", tolerance)
    if len(x) < 2:
        raise ValueError(f"tokens must be at least two, got {len(x)}")
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

    Returns
    -------
    int

    Examples
    --------
    >>> cluster_count([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    2
    """
    x = _validate.finite("tokens", tokens, shape=(None, None))
    off = _validate.positive("tolerance", tolerance)
    return int(connected_components(x @ x.T >= 1 - off, directed=False)[0])
