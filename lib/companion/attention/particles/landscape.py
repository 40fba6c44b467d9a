r"""The energy that tokens climb at infinite temperature: its saddles, and what is conserved.

With :math:`S = \sum_j x_j`, MDL Chapter 14, Equation 2.5 is the gradient flow of
:math:`E = \frac1{2 n} |S|^2` on the product of spheres. Its Hessian is

.. math:: \frac1n \Big( \big| \sum_i v_i \big|^2 - \sum_i \langle x_i, S \rangle |v_i|^2 \Big),
    \qquad v_i \perp x_i .

Distances obey :math:`\frac{d}{dt} \log |x_i - x_j|^2 = -\frac1n \langle x_i + x_j, S \rangle`, so
their cross-ratios do not change at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from companion.attention.particles._tokens import unit_tokens
from traindyn._types import Array

__all__ = ["consensus_hessian", "cross_ratios"]


def consensus_hessian(tokens: ArrayLike) -> Array:
    r"""Return the Hessian of :math:`\frac1{2 n} |\sum_i x_i|^2` on the product of spheres.

    By MDL Lemma 14.3 it has a positive eigenvalue at all critical points but consensus.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        Of norm one.

    Returns
    -------
    ndarray, shape (n (d - 1), n (d - 1))
        In orthonormal coordinates of the tangent spaces, token after token.

    Examples
    --------
    Two opposite tokens are unstable, equal ones are not:

    >>> import numpy as np
    >>> from companion.attention.particles.landscape import consensus_hessian
    >>> bool(np.linalg.eigvalsh(consensus_hessian([[1.0, 0.0], [-1.0, 0.0]])).max() > 0.999)
    True
    >>> bool(np.linalg.eigvalsh(consensus_hessian([[1.0, 0.0], [1.0, 0.0]])).max() < 1e-12)
    True
    """
    x = unit_tokens(tokens, least=1)
    n, d = x.shape
    # The other columns of an orthogonal matrix that begins with the token.
    tangents = np.linalg.qr(x[:, :, None], mode="complete").Q[:, :, 1:]
    found = np.einsum("ikp,jkq->ipjq", tangents, tangents) / n
    pull = x @ x.sum(axis=0) / n
    index = np.arange(n)
    found[index, :, index, :] -= pull[:, None, None] * np.eye(d - 1)
    return np.asarray(found.reshape(n * (d - 1), n * (d - 1)))


def cross_ratios(tokens: ArrayLike) -> Array:
    r"""Return cross-ratios of the distances between tokens.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        At least four, all different.

    Returns
    -------
    ndarray, shape (n - 2, n - 2)
        :math:`|x_1 - x_2| |x_k - x_l| / |x_1 - x_k| |x_2 - x_l|` for k and l from three on; zero on
        the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.landscape import cross_ratios
    >>> square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> cross_ratios(square).round(6)
    array([[0. , 0.5],
           [1. , 0. ]])
    """
    x = unit_tokens(tokens, least=4)
    # Differences, as inner products near one lose half of the digits.
    distances = np.linalg.norm(x[:, None] - x, axis=2)
    if np.any(distances[~np.eye(len(x), dtype=bool)] == 0):
        raise ValueError("tokens must be all different")
    others = distances[2:, 2:]
    return np.asarray(distances[0, 1] * others / np.outer(distances[0, 2:], distances[1, 2:]))
