r"""Gradient descent on one example of a quadratic model: a map of the plane.

For a model that is quadratic in its weights, with one input x and half the squared residual as
loss, the residual :math:`e = g - y` and the tangent kernel :math:`\lambda` follow exactly

.. math::

    e' &= \big(1 - \eta\lambda + c\,\eta^2 e g\big)\, e, \\
    \lambda' &= \lambda - 4 \eta c\, e g + \eta^2 c\, e^2 \lambda ,

with the coupling :math:`c = |x|^2 / (m d)` for a two-layer network of width m with frozen gates
(ZHU (3.11), (3.12)). In the variables :math:`u = c \eta^2 e^2`, :math:`v = \eta\lambda`,
:math:`w = c \eta^2 e y` nothing else is left of step size, width and dimension:

.. math:: u' = (1 - v + u + w)^2 u, \quad v' = v - u (4 - v) - 4 w, \quad w' = (1 - v + u + w) w

(ZHU (3.13), (3.14); the third line keeps track of the sign of w, which flips with every step as
long as :math:`1 - v + u + w < 0`). The loss is :math:`u / (2 c \eta^2)`. Between the critical step
size :math:`2/\lambda` and the largest one, :math:`4/\lambda`, the loss first rises and then
converges where the kernel has dropped below :math:`2/\eta`: a catapult.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Fate", "Orbit", "Reduced", "fate", "iterate", "limit_orbits", "reduced_step"]

# The cube of u is then far above all other terms: no return.
_LOST = 1e12


class Orbit(NamedTuple):
    """Residual and kernel step by step.

    Attributes
    ----------
    residuals, kernels : ndarray, shape (T + 1,)
        Up to the last finite state.
    diverged : int or None
        The step at which the residual left all bounds; None if it did not.
    """

    residuals: Array
    kernels: Array
    diverged: int | None

    @property
    def losses(self) -> Array:
        """Half the squared residuals."""
        return self.residuals**2 / 2


class Fate(NamedTuple):
    """How runs end; each field has the common shape of the arguments.

    Attributes
    ----------
    converged : ndarray of bool
        The residual fell below the tolerance where the linear map is stable.
    diverged : ndarray of int
        The step at which it left all bounds; -1 if it did not.
    steps : ndarray of int
        Steps taken.
    peak : ndarray
        Largest loss on the way; infinite for runs that diverge.
    peak_step : ndarray of int
        When; -1 for runs that diverge.
    kernel : ndarray
        Tangent kernel at the end; NaN for runs that diverge.
    """

    converged: NDArray[np.bool_]
    diverged: NDArray[np.int64]
    steps: NDArray[np.int64]
    peak: Array
    peak_step: NDArray[np.int64]
    kernel: Array


class Reduced(NamedTuple):
    """The variables in which step size and width do not appear."""

    u: Array
    v: Array
    w: Array


@njit(cache=True, nogil=True, inline="always")
def _advance(e: float, kernel: float, eta: float, c: float, y: float) -> tuple[float, float]:
    product = c * e * (e + y)
    return (
        (1.0 - eta * kernel + eta * eta * product) * e,
        kernel - 4.0 * eta * product + eta * eta * c * e * e * kernel,
    )


@njit(cache=True, nogil=True)
def _orbit(e: float, kernel: float, eta: float, c: float, y: float, steps: int) -> tuple:  # type: ignore[type-arg]
    residuals, kernels = np.empty(steps + 1), np.empty(steps + 1)
    residuals[0], kernels[0] = e, kernel
    for t in range(1, steps + 1):
        e, kernel = _advance(e, kernel, eta, c, y)
        if not (c * (eta * e) ** 2 <= _LOST):
            return residuals[:t], kernels[:t], t
        residuals[t], kernels[t] = e, kernel
    return residuals, kernels, -1


@njit(cache=True, nogil=True)
def _fates(
    start: Array, begin: Array, etas: Array, cs: Array, ys: Array, most: int, tolerance: float
) -> tuple:  # type: ignore[type-arg]
    size = start.size
    converged = np.zeros(size, np.bool_)
    diverged, peak_step = np.full(size, -1), np.full(size, -1)
    steps = np.full(size, most)
    peak, final = np.full(size, np.inf), np.full(size, np.nan)
    for i in range(size):
        e, kernel, eta, c, y = start[i], begin[i], etas[i], cs[i], ys[i]
        small, lost = tolerance * abs(e), _LOST / (c * eta * eta)
        top, when = e * e, 0
        for t in range(1, most + 1):
            e, kernel = _advance(e, kernel, eta, c, y)
            square = e * e
            if not (square <= lost):
                diverged[i], steps[i] = t, t
                break
            if square > top:
                top, when = square, t
            if abs(e) <= small and 0.0 < eta * kernel < 2.0:
                converged[i], steps[i] = True, t
                break
        if diverged[i] < 0:
            peak[i], peak_step[i], final[i] = top / 2.0, when, kernel
    return converged, diverged, steps, peak, peak_step, final


def iterate(
    residual: float,
    kernel: float,
    *,
    step_size: float,
    coupling: float,
    label: float = 0.0,
    steps: int,
) -> Orbit:
    r"""Run gradient descent on one example.

    Parameters
    ----------
    residual : float
        :math:`e = g - y` at the start.
    kernel : float
        Tangent kernel :math:`\lambda` at the start, non-negative.
    step_size : float
        :math:`\eta > 0`, for half the squared residual.
    coupling : float
        :math:`c`; for the two-layer network :math:`|x|^2 / (m d)`.
    label : float, default 0.0
        y, by which output and residual differ.
    steps : int
        Number of steps, at most; a run that diverges ends before.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    The loss rises by four orders of magnitude, and the kernel falls below 2 / step size:

    >>> from traindyn.catapults import iterate
    >>> orbit = iterate(0.1, 1.0, step_size=2.5, coupling=1e-6, steps=200)
    >>> bool(orbit.losses.max() > 1e4 * orbit.losses[0]), bool(orbit.losses[-1] < 1e-9)
    (True, True)
    >>> bool(orbit.kernels[-1] < 2 / 2.5)
    True
    >>> iterate(0.1, 1.0, step_size=4.5, coupling=1e-6, steps=200).diverged
    11
    """
    e = _validate.number("residual", residual)
    start = _validate.non_negative("kernel", kernel)
    eta = _validate.positive("step_size", step_size)
    c = _validate.positive("coupling", coupling)
    y = _validate.number("label", label)
    count = _validate.integer("steps", steps, least=0)
    residuals, kernels, lost = _orbit(e, start, eta, c, y, count)
    return Orbit(residuals, kernels, None if lost < 0 else int(lost))


def fate(
    residual: ArrayLike,
    kernel: ArrayLike,
    *,
    step_size: ArrayLike,
    coupling: ArrayLike,
    label: ArrayLike = 0.0,
    most_steps: int = 10**6,
    tolerance: float = 1e-8,
) -> Fate:
    """Run gradient descent from many starts to its end, without keeping the orbits.

    In wide networks runs with a step size between 2 / kernel and 4 / kernel rise and converge (ZHU
    Theorem 3.3.1, Lemma 3.3.3), and those with a larger one diverge (ZHU Theorem B.7.1).

    Parameters
    ----------
    residual, kernel, step_size, coupling, label : array_like
        As in :func:`iterate`, of shapes that broadcast.
    most_steps : int, default 10**6
        Runs that neither converge nor diverge in that many steps have neither mark.
    tolerance : float, default 1e-8
        Of the residual relative to its start.

    Raises
    ------
    ValueError
        If an argument is out of range or the shapes do not broadcast.

    Examples
    --------
    >>> from traindyn.catapults import fate
    >>> found = fate(0.1, 1.0, step_size=[1.5, 2.5, 4.5], coupling=1e-6)
    >>> found.converged.tolist(), found.diverged.tolist()
    ([True, True, False], [-1, -1, 11])
    >>> found.kernel.round(3).tolist()
    [1.0, 0.513, nan]
    """
    values = [
        _validate.finite("residual", residual),
        _validate.finite("kernel", kernel),
        _validate.finite("step_size", step_size),
        _validate.finite("coupling", coupling),
        _validate.finite("label", label),
    ]
    for name, value in (("step_size", values[2]), ("coupling", values[3])):
        if np.any(value <= 0):
            raise ValueError(f"{name} must be positive, got {value.min():g}")
    if np.any(values[1] < 0):
        raise ValueError(f"kernel must be non-negative, got {values[1].min():g}")
    most = _validate.integer("most_steps", most_steps, least=1)
    small = _validate.positive("tolerance", tolerance)
    names = ("residual", "kernel", "step_size", "coupling", "label")
    common = _validate.broadcast(**dict(zip(names, values)))
    e, k, eta, c, y = (value.ravel() for value in common)
    found = _fates(e, k, eta, c, y, most, small)
    return Fate(*(column.reshape(common[0].shape) for column in found))


def reduced_step(u: ArrayLike, v: ArrayLike, w: ArrayLike = 0.0) -> Reduced:
    """Advance u, v, w by one step (ZHU (3.13), (3.14)).

    Parameters
    ----------
    u, v, w : array_like
        Of shapes that broadcast; w is zero where the label is.

    Examples
    --------
    An unstable equilibrium:

    >>> from traindyn.catapults import reduced_step
    >>> [float(z) for z in reduced_step(4.0, 4.5, 0.5)[:2]]
    [4.0, 4.5]
    """
    u, v, w = _validate.broadcast(
        u=_validate.finite("u", u), v=_validate.finite("v", v), w=_validate.finite("w", w)
    )
    factor = 1 - v + u + w
    return Reduced(factor**2 * u, v - u * (4 - v) - 4 * w, factor * w)


def limit_orbits(excess: float, *, phases: int = 64, start: float = 1e-14) -> tuple[Array, Array]:
    r"""Return peak and end of catapults in the limit of infinite width.

    With :math:`\eta\lambda_0 = 2 + \delta` and a start :math:`u_0 \to 0` the residual grows by the
    factor :math:`1 + \delta` per step for a time of order :math:`\log m / 2 \log(1 + \delta)`, and
    nothing of the start is left but its phase, the fractional part of
    :math:`\log u_0 / 2 \log(1 + \delta)`. The loss at the peak is of order :math:`m \delta^2`, a
    factor :math:`\log m` above the lower bound of ZHU Theorem 3.3.1.

    Parameters
    ----------
    excess : float
        :math:`\delta`, in (0, 2).
    phases : int, default 64
        Starts, at equal distances in phase.
    start : float, default 1e-14
        The smallest :math:`u_0`.

    Returns
    -------
    peaks, ends : ndarray, shape (phases,)
        Largest u, which is :math:`\frac{\delta^2}{2} (1 + \frac23 \delta + \dots)`, and final v,
        which is :math:`2 - \delta - \frac23 \delta^2 + \dots`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from traindyn.catapults import limit_orbits
    >>> peaks, ends = limit_orbits(0.1)
    >>> round(float(peaks.mean() / 0.005), 3), round(float(ends.mean()), 3)
    (1.068, 1.893)
    """
    delta = _validate.positive("excess", excess)
    if delta >= 2:
        raise ValueError(f"excess must be below 2, got {excess!r}: beyond it runs diverge")
    count = _validate.integer("phases", phases, least=1)
    lowest = _validate.positive("start", start)
    begin = lowest * (1 + delta) ** (2 * np.arange(count) / count)
    found = fate(np.sqrt(begin), 2 + delta, step_size=1.0, coupling=1.0, most_steps=10**7)
    if np.any(found.diverged >= 0):
        raise ValueError(f"start must be small, got {start!r}, from where runs diverge")
    return 2 * found.peak, found.kernel
