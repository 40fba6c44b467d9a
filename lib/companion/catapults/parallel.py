r"""How far a rectified two-layer network can be from its linear model in a ball of weights.

At one input x with preactivations :math:`z_k = u_k \cdot x / \sqrt d`, let the weights move by at
most R, and write :math:`\rho = R |x| / \sqrt d`. If the preactivations move by :math:`\delta_k` and
the second layer by :math:`\beta_k`,

.. math:: \sqrt m\, (f - f_{lin}) = \sum_k \beta_k (\sigma(z_k + \delta_k) - \sigma(z_k))
          + \sum_k v_k (|\delta_k| - |z_k|)_+ ,

the second sum over the neurons whose gate changes. The first sum is at most :math:`\rho R / 2`. In
the second one only neurons with :math:`v_k > 0` help, and :math:`\sum \delta_k^2 \le \rho^2`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Farthest", "farthest", "farthest_limit"]


class Farthest(NamedTuple):
    """The largest difference that changed gates make, up to the factor of the width.

    Attributes
    ----------
    moves : ndarray, shape (m,)
        Changes of the preactivations, of Euclidean norm at most rho.
    attained : float
        Sum of ``v (|move| - |z|)`` over the gates that these moves change.
    bound : float
        No moves of that norm make the sum larger.
    """

    moves: Array
    attained: float
    bound: float


def farthest(preactivations: ArrayLike, second: ArrayLike, reach: float) -> Farthest:
    r"""Maximise :math:`\sum v_k (|\delta_k| - |z_k|)_+` over :math:`|\delta| \le \rho`, v positive.

    If the gates of a set of neurons change, the best moves are :math:`\delta_k \propto v_k`, and
    make :math:`\rho (\sum v^2)^{1/2} - \sum v |z|` over the set. The sets tried are those of the
    largest :math:`v/|z|`. By weak duality no moves make more than
    :math:`\mu\rho^2 + \sum (v^2/4\mu - v |z|)_+`, for any positive :math:`\mu`; the bound takes
    the one that belongs to the best set.

    Parameters
    ----------
    preactivations : array_like, shape (m,)
        Not zero.
    second : array_like, shape (m,)
        Weights of the second layer, one of them positive.
    reach : float
        rho, positive.

    Returns
    -------
    Farthest

    Raises
    ------
    ValueError
        If shapes do not match, a preactivation is zero or no weight is positive.

    Examples
    --------
    One neuron whose gate is just open; its preactivation moves from 0.1 to -1:

    >>> from companion.catapults.parallel import farthest
    >>> found = farthest([0.1], [2.0], 1.1)
    >>> [round(float(value), 12) for value in (found.moves[0], found.attained, found.bound)]
    [-1.1, 2.0, 2.0]
    """
    z = _validate.finite("preactivations", preactivations, shape=(None,))
    v = _validate.finite("second", second, shape=z.shape)
    rho = _validate.positive("reach", reach)
    if np.any(z == 0):
        raise ValueError("preactivations must not be zero")
    if not np.any(v > 0):
        raise ValueError("second must have a positive weight")
    order = np.argsort(-np.maximum(v, 0.0) / np.abs(z))[: np.count_nonzero(v > 0)]
    weight, distance = v[order], np.abs(z[order])
    squares, costs = np.cumsum(weight**2), np.cumsum(weight * distance)
    last = int(np.argmax(rho * np.sqrt(squares) - costs))
    changed = order[: last + 1]
    moves = np.zeros_like(z)
    moves[changed] = -np.sign(z[changed]) * v[changed] * rho / np.sqrt(squares[last])
    multiplier = np.sqrt(squares[last]) / (2 * rho)
    gains = weight**2 / (4 * multiplier) - weight * distance
    return Farthest(
        moves=moves,
        attained=float(np.sum(np.maximum(v, 0.0) * np.maximum(np.abs(moves) - np.abs(z), 0.0))),
        bound=float(multiplier * rho**2 + np.maximum(gains, 0.0).sum()),
    )


def farthest_limit(radius: float) -> float:
    r"""Limit of :math:`m^{1/6} \sup (f - f_{lin})` over the ball, at an input of :math:`|x|^2 = d`.

    :math:`\frac34 (8\pi)^{-1/6} R^{4/3}` for a second layer of random signs: the dual is
    :math:`\mu R^2 + m / (32 \sqrt{2\pi} \mu^2)` in the limit, least at
    :math:`\mu^3 = m / (16 \sqrt{2\pi} R^2)`. At another norm of x it is the same times
    :math:`|x| / \sqrt d`.

    Parameters
    ----------
    radius : float
        R, positive.

    Examples
    --------
    >>> from companion.catapults.parallel import farthest_limit
    >>> round(farthest_limit(1.0), 4), round(farthest_limit(8.0) / farthest_limit(1.0), 12)
    (0.4382, 16.0)
    """
    return float(0.75 * _validate.positive("radius", radius) ** (4 / 3) / (8 * np.pi) ** (1 / 6))
