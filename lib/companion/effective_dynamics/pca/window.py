"""SGD on spiked PCA in the window around the critical signal (beyond the source)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import cumulative_simpson, quad

from traindyn import _validate
from traindyn._types import Array
from traindyn.diffusion import Diffusion

__all__ = ["critical_window", "critical_window_cdf", "critical_window_moment"]


def critical_window(kappa: float, *, c_delta: float) -> Diffusion:
    r"""Limit of :math:`y = n^{1/4} m` for order two at the threshold, without ridge.

    With :math:`\lambda = c_\delta + \kappa / \sqrt n` and time :math:`s = t / \sqrt n`,

    .. math:: dy = 4 (\kappa y - y^3)\, ds + 2 \sqrt 2\, c_\delta\, dB,

    an instance of the slower time scales left open in BGJ (footnote 2). It takes
    :math:`n^{3/2}` steps.

    Parameters
    ----------
    kappa : float
        Distance of the signal from the threshold, times :math:`\sqrt n`; of any sign.
    c_delta : float
        Limit of ``step_size * dimension``, positive; the threshold.

    Returns
    -------
    Diffusion
        In one dimension, in the time s.
    """
    kappa = _validate.number("kappa", kappa)
    c = _validate.positive("c_delta", c_delta)

    def drift(u: Array) -> Array:
        y = np.asarray(u, dtype=np.float64)
        return np.asarray(4.0 * (kappa - y**2) * y)

    def factor(u: Array) -> Array:
        return np.full((*np.shape(u), 1), 2.0 * math.sqrt(2.0) * c)

    return Diffusion(("n^(1/4) m",), drift, factor)


def critical_window_moment(kappa: float, power: float, *, c_delta: float) -> float:
    r"""Stationary :math:`E |y|^p` in the critical window.

    The density is proportional to
    :math:`\exp((\kappa y^2 / 2 - y^4 / 4) / c_\delta^2)`.

    Examples
    --------
    >>> from companion.effective_dynamics.pca.window import critical_window_moment
    >>> round(critical_window_moment(0.0, 2.0, c_delta=1.0), 3)
    0.676
    """
    kappa = _validate.number("kappa", kappa)
    power = _validate.non_negative("power", power)
    c = _validate.positive("c_delta", c_delta)
    far = _window_end(kappa, c)
    middle = [math.sqrt(kappa)] if kappa > 0 else None

    def moment(power: float) -> float:
        def weighted(y: float) -> float:
            return float(y**power * np.exp(_window_exponent(y, kappa, c)))

        return float(quad(weighted, 0.0, far, points=middle, epsabs=0.0)[0])

    return moment(power) / moment(0.0)


def critical_window_cdf(kappa: float, y: ArrayLike, *, c_delta: float) -> Array:
    """Stationary distribution function in the critical window.

    Parameters
    ----------
    kappa : float
        As in :func:`critical_window`.
    y : array_like
        Values of n^(1/4) m.
    c_delta : float
        As in :func:`critical_window`.

    Returns
    -------
    ndarray, shape of `y`
        Accurate to about 1e-6.

    Examples
    --------
    >>> from companion.effective_dynamics.pca.window import critical_window_cdf
    >>> print(critical_window_cdf(1.0, [-1.0, 0.0, 1.0], c_delta=1.0).round(3))
    [0.211 0.5   0.789]
    """
    kappa = _validate.number("kappa", kappa)
    c = _validate.positive("c_delta", c_delta)
    wanted = _validate.finite("y", y)
    far = _window_end(kappa, c)
    grid = np.linspace(-far, far, 8001)
    mass = cumulative_simpson(np.exp(_window_exponent(grid, kappa, c)), x=grid, initial=0.0)
    return np.interp(wanted, grid, np.maximum.accumulate(mass / mass[-1]))


def _window_exponent(y: ArrayLike, kappa: float, c: float) -> Array:
    """Logarithm of the density of the critical window, zero at its largest."""
    square = np.asarray(y, dtype=np.float64) ** 2
    return np.asarray((0.5 * kappa * square - 0.25 * square**2 - max(kappa, 0.0) ** 2 / 4.0) / c**2)


def _window_end(kappa: float, c: float) -> float:
    """Where the exponent has fallen below -700."""
    return math.sqrt(abs(kappa) + math.sqrt(2800.0) * c + max(kappa, 0.0))
