r"""Many tokens on the circle: the continuity equation of their density.

.. math::

    \partial_t f + \partial_\theta (v f) = 0, \qquad
    v(\theta) = \frac1{Z(\theta)} \int e^{\beta \cos(\theta - \varphi)} \sin(\varphi - \theta)
    f(\varphi)\, d\varphi

(MDL Chapter 14, Equations 2.2 to 2.4 with d = 2). On Fourier modes both integrals are products with
modified Bessel functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, rfft
from scipy.integrate import solve_ivp
from scipy.special import ive

from traindyn import _validate
from traindyn._types import Array

__all__ = ["circle_flow", "poisson_order"]

# Of the largest coefficient; the upper third of the modes must stay below it.
_RESOLVED = 1e-7
# With fewer there is no upper third.
_LEAST_POINTS = 9


def circle_flow(density: ArrayLike, times: ArrayLike, *, inverse_temperature: float) -> Array:
    """Follow a density of tokens on the circle.

    Parameters
    ----------
    density : array_like, shape (M,)
        At the angles ``2 pi k / M`` and the first of the times, of integral one.
    times : array_like, shape (T,)
        Increasing.
    inverse_temperature : float
        Non-negative.

    Returns
    -------
    ndarray, shape (T, M)

    Raises
    ------
    ValueError
        If the density is negative somewhere, or its integral is not one.
    FloatingPointError
        If the density became too narrow for the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.mean_field import circle_flow
    >>> flat = np.full(32, 1 / (2 * np.pi))
    >>> bool(np.ptp(circle_flow(flat, [0.0, 5.0], inverse_temperature=2.0)) < 1e-12)
    True
    """
    start = _validate.finite("density", density, shape=(None,))
    size = start.size
    if size < _LEAST_POINTS:
        raise ValueError(f"density must have at least {_LEAST_POINTS} points, got {size}")
    t = _validate.increasing("times", times)
    beta = _validate.non_negative("inverse_temperature", inverse_temperature)
    if np.any(start < 0):
        raise ValueError(f"density must be non-negative, got {start.min():g}")
    total = start.mean() * 2 * np.pi
    if abs(total - 1) > 1e-8:
        raise ValueError(f"density must have integral one, got {total:g}")
    modes = np.arange(size // 2 + 1)
    kernel = 2 * np.pi * ive(modes, beta)
    pull = 1j * modes * kernel / beta if beta > 0 else np.where(modes == 1, 1j * np.pi, 0)
    low = modes <= size // 3

    def slope(_: float, f: Array) -> Array:
        coefficients = rfft(f)
        speed = irfft(pull * coefficients, size) / irfft(kernel * coefficients, size)
        return np.asarray(irfft(-1j * modes * rfft(speed * f) * low, size))

    if t.size == 1:
        return start[None].copy()
    solved = solve_ivp(
        slope, (t[0], t[-1]), start, t_eval=t, rtol=1e-9, atol=1e-11, method="DOP853"
    )
    found = np.asarray(solved.y.T)
    sizes = np.abs(rfft(found, axis=1))
    edge = sizes[:, size // 4 : size // 3].max(axis=1)
    if not solved.success or np.any(edge > _RESOLVED * sizes.max(axis=1)):
        raise FloatingPointError(
            f"density became too narrow for {size} points: take more, or shorter times"
        )
    return found


def poisson_order(order: float, times: ArrayLike) -> Array:
    r"""Return the order parameter of a Poisson kernel at infinite temperature.

    Densities :math:`(1 - r^2) / 2 \pi (1 - 2 r \cos \theta + r^2)` stay of this form when
    :math:`\beta = 0`, with :math:`\dot r = \frac12 r (1 - r^2)`.

    Parameters
    ----------
    order : float
        r at time zero, in (0, 1).
    times : array_like
        Of any shape; negative times look back.

    Returns
    -------
    ndarray
        Of the shape of `times`.

    Examples
    --------
    >>> from companion.attention.particles.mean_field import poisson_order
    >>> poisson_order(0.5, [0.0]).round(12)
    array([0.5])
    """
    start = _validate.positive("order", order)
    if start >= 1:
        raise ValueError(f"order must be below 1, got {order!r}")
    odds = start**2 / (1 - start**2) * np.exp(_validate.finite("times", times))
    return np.asarray(np.sqrt(odds / (1 + odds)))
