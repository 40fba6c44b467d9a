r"""Tokens at infinite temperature as one moving point of the hyperbolic ball.

At :math:`\beta = 0` all tokens follow the same field :math:`x \mapsto P_x^\perp \bar x`. Such
fields generate the Möbius transformations of the sphere, so that

.. math:: x_i(t) = R(t)\, T_{w(t)}(p_i), \qquad
    T_w(p) = \frac{1 - |w|^2}{|p - w|^2} (p - w) - w,

with the starts :math:`p_i`, rotations R and a centre w of the unit ball, where

.. math:: \dot w = -\frac{1 - |w|^2}{2}\, \frac1n \sum_i T_w(p_i), \qquad w(0) = 0 .

In the hyperbolic metric :math:`4 |dw|^2 / (1 - |w|^2)^2` the centre moves at the speed
:math:`|\bar x|`, up the gradient of the mean of the Busemann functions
:math:`\log |w - p_i|^2 / (1 - |w|^2)` (Lipton, Mirollo and Strogatz 2019, arXiv:1907.07150).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from companion.attention.particles._tokens import unit_tokens
from traindyn import _validate
from traindyn._types import Array

__all__ = ["boost", "centre_path", "centre_velocity"]


def boost(centre: ArrayLike, tokens: ArrayLike) -> Array:
    """Return the tokens as seen from a centre.

    Parameters
    ----------
    centre : array_like, shape (d,)
        In the open unit ball.
    tokens : array_like, shape (n, d)
        Of norm one.

    Returns
    -------
    ndarray, shape (n, d)
        Of norm one.

    Raises
    ------
    ValueError
        If a centre is not inside the ball, or shapes do not match.

    Examples
    --------
    From a centre on the way to one token the others seem to be opposite to it:

    >>> import numpy as np
    >>> from companion.attention.particles.mobius import boost
    >>> boost([0.9, 0.0], np.array([[1.0, 0.0], [0.0, 1.0]])).round(3)
    array([[ 1.   ,  0.   ],
           [-0.994,  0.105]])
    """
    p = unit_tokens(tokens, least=1)
    w = _validate.finite("centre", centre, shape=(p.shape[1],))
    if w @ w >= 1:
        raise ValueError(f"centre must be inside the unit ball, got norm {np.linalg.norm(w):g}")
    away = p - w
    return np.asarray((1 - w @ w) * away / np.sum(away**2, axis=1, keepdims=True) - w)


def centre_velocity(centre: ArrayLike, tokens: ArrayLike) -> Array:
    """Return the velocity of the centre of tokens that started at `tokens`, shape (d,).

    Parameters and errors are those of :func:`boost`.

    Examples
    --------
    Two tokens at a right angle push the centre away from their middle:

    >>> import numpy as np
    >>> from companion.attention.particles.mobius import centre_velocity
    >>> centre_velocity([0.0, 0.0], np.eye(2))
    array([-0.25, -0.25])
    """
    mean, w = boost(centre, tokens).mean(axis=0), np.asarray(centre, dtype=float)
    return np.asarray(-(1 - w @ w) / 2 * mean)


def centre_path(tokens: ArrayLike, times: ArrayLike) -> Array:
    """Return the centre along the flow from `tokens` at zero.

    Parameters
    ----------
    tokens : array_like, shape (n, d)
        Of norm one, at time zero.
    times : array_like, shape (T,)
        Increasing, non-negative.

    Returns
    -------
    ndarray, shape (T, d)

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.mobius import centre_path
    >>> centre_path(np.eye(2), [0.0, 1.0]).round(3)
    array([[ 0.   ,  0.   ],
           [-0.282, -0.282]])
    """
    p = unit_tokens(tokens, least=1)
    clock = _validate.finite("times", times, shape=(None,))
    if clock.size == 0 or clock[0] < 0 or np.any(np.diff(clock) <= 0):
        raise ValueError(f"times must increase from zero on, got {clock}")
    path = solve_ivp(
        lambda _, w: centre_velocity(w, p),
        (0.0, float(clock[-1])),
        np.zeros(p.shape[1]),
        t_eval=clock,
        rtol=1e-11,
        atol=1e-13,
    )
    return np.asarray(path.y.T)
