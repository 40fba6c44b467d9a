r"""Residual networks and the differential equation they discretise.

.. math:: x_{k+1} = x_k + \frac T L f(t_k, x_k), \qquad \dot x = f(t, x) = w \sigma(a x + b)

(MDL Chapter 14, Equations 1.1 and 1.2; the notes leave out the step :math:`T / L`). The network is
Euler's method: its error is :math:`\frac T L z(T)` to first order, where
:math:`\dot z = \partial_x f\, z - \frac12 \ddot x` from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from companion.attention.particles.attention import FeedForward
from traindyn import _validate
from traindyn._types import Array

__all__ = ["euler_error", "neural_ode", "residual_network"]

Layers: TypeAlias = FeedForward | Callable[[float], FeedForward]

_PRECISION = {"rtol": 1e-11, "atol": 1e-13, "method": "DOP853"}
# Step of the central difference in time: its error and rounding are both about 1e-11.
_STEP = 1e-5


def _at(layers: Layers, t: float) -> FeedForward:
    return layers if isinstance(layers, FeedForward) else layers(t)


def _field(layers: Layers, t: float, x: Array) -> Array:
    w, a, b, name = _at(layers, t)
    sums = np.asarray(a) @ x + np.asarray(b)
    return np.asarray(np.asarray(w) @ (np.maximum(sums, 0) if name == "relu" else np.tanh(sums)))


def _along(layers: Layers, t: float, x: Array, v: Array) -> Array:
    """Differentiate the field at a point, along a direction."""
    w, a, b, name = _at(layers, t)
    sums = np.asarray(a) @ x + np.asarray(b)
    slope = (sums > 0).astype(float) if name == "relu" else 1 - np.tanh(sums) ** 2
    return np.asarray(np.asarray(w) @ (slope * (np.asarray(a) @ v)))


def _start(layers: Layers, x: ArrayLike, horizon: float) -> tuple[Array, float]:
    start = _validate.finite("x", x, shape=(None,))
    if not isinstance(layers, FeedForward):
        _validate.function("layers", layers)
    layer = _validate.providing("layers", _at(layers, 0.0), *FeedForward._fields)
    _validate.choice("layers.activation", layer.activation, ("relu", "tanh"))
    inner = _validate.finite("layers.inner", layer.inner, shape=(None, None))
    width = len(inner)
    if inner.shape[1] != start.size:
        raise ValueError(
            f"layers.inner must have shape (any, {start.size}) to act on x, got {inner.shape}"
        )
    _validate.finite("layers.shift", layer.shift, shape=(width,))
    _validate.finite("layers.outer", layer.outer, shape=(start.size, width))
    return start, _validate.positive("horizon", horizon)


def residual_network(
    layers: Layers, x: ArrayLike, *, depth: int, horizon: float | None = None
) -> Array:
    """Return the output of a residual network.

    Parameters
    ----------
    layers : FeedForward or callable
        The same layer at all depths, or the layer as a function of time.
    x : array_like, shape (d,)
        The state before the first layer.
    depth : int
        Number L of layers.
    horizon : float, optional
        Time T that the layers are to cover, in steps of ``T / L``. Default: L, the network as the
        notes print it.

    Returns
    -------
    ndarray, shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.attention import FeedForward
    >>> from companion.attention.particles.residual import residual_network
    >>> layer = FeedForward(np.eye(1), np.eye(1), np.zeros(1))
    >>> residual_network(layer, [1.0], depth=2)
    array([4.])
    >>> residual_network(layer, [1.0], depth=2, horizon=1.0)
    array([2.25])
    """
    steps = _validate.integer("depth", depth, least=1)
    state, end = _start(layers, x, float(steps) if horizon is None else horizon)
    for k in range(steps):
        state = state + end / steps * _field(layers, k * end / steps, state)
    return state


def neural_ode(layers: Layers, x: ArrayLike, *, horizon: float) -> Array:
    """Return the solution of the neural differential equation at a time.

    Parameters
    ----------
    layers : FeedForward or callable
        As in :func:`residual_network`.
    x : array_like, shape (d,)
        The state at time zero.
    horizon : float
        T.

    Returns
    -------
    ndarray, shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.attention import FeedForward
    >>> from companion.attention.particles.residual import neural_ode
    >>> layer = FeedForward(np.eye(1), np.eye(1), np.zeros(1))
    >>> bool(abs(neural_ode(layer, [1.0], horizon=1.0)[0] - np.e) < 1e-9)
    True
    """
    state, end = _start(layers, x, horizon)
    solved = solve_ivp(lambda t, y: _field(layers, t, y), (0, end), state, **_PRECISION)
    return np.asarray(solved.y[:, -1])


def euler_error(layers: Layers, x: ArrayLike, *, horizon: float) -> Array:
    r"""Return the limit of L times the error of a residual network of depth L.

    Parameters
    ----------
    layers : FeedForward or callable
        As in :func:`residual_network`; differentiable in time.
    x : array_like, shape (d,)
        The state at time zero.
    horizon : float
        T.

    Returns
    -------
    ndarray, shape (d,)
        :math:`T z(T)`.

    Examples
    --------
    For the exponential function, network less limit is about minus e over twice the depth:

    >>> import numpy as np
    >>> from companion.attention.particles.attention import FeedForward
    >>> from companion.attention.particles.residual import euler_error
    >>> layer = FeedForward(np.eye(1), np.eye(1), np.zeros(1))
    >>> bool(abs(euler_error(layer, [1.0], horizon=1.0)[0] + np.e / 2) < 1e-8)
    True
    """
    state, end = _start(layers, x, horizon)

    def slope(t: float, both: Array) -> Array:
        y, z = np.split(both, 2)
        speed = _field(layers, t, y)
        in_time = (_field(layers, t + _STEP, y) - _field(layers, t - _STEP, y)) / (2 * _STEP)
        bent = in_time + _along(layers, t, y, speed)
        return np.concatenate([speed, _along(layers, t, y, z) - bent / 2])

    both = np.concatenate([state, np.zeros_like(state)])
    solved = solve_ivp(slope, (0, end), both, **_PRECISION)
    return np.asarray(end * solved.y[state.size :, -1])
