r"""The one-example map with heavy-ball momentum and weight decay.

A bilinear model :math:`g = \frac{\sqrt c}2 (|p|^2 - |q|^2)`, p and q the parts of the weights in
the two eigenspaces of its Hessian, has the tangent kernel :math:`\lambda = c\,(|p|^2 + |q|^2)` up
to the units of p and q. A step with momentum :math:`\beta` and decay :math:`\mu` is linear in the
weights, given the residual e:

.. math::

    p_{t+1} &= (1 + \beta - \eta\mu - \eta\sqrt c\, e_t)\, p_t - \beta\, p_{t-1}, \\
    q_{t+1} &= (1 + \beta - \eta\mu + \eta\sqrt c\, e_t)\, q_t - \beta\, q_{t-1}.

From rest, :math:`p_{-1} = p_0`, both stay on the lines they start on. So four numbers are the
whole dynamics: residual and kernel, and their two companions of the step before. With
:math:`S = v + 2\sqrt c\,\eta g` and :math:`D = v - 2\sqrt c\,\eta g`, :math:`v = \eta\lambda`,
lengths are :math:`\sqrt S, \sqrt D` in the unit in which
:math:`\eta\sqrt c\, g = (p^2 - q^2) / 4`. Without momentum these are two numbers, and the map of
:mod:`traindyn.catapults.maps`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.catapults.maps import Fate, Orbit

__all__ = ["critical_kernel", "heavy_ball", "heavy_ball_fate"]

_LOST = 1e12


@njit(cache=True, nogil=True)
def _orbit(p: float, q: float, label: float, shrink: float, beta: float, steps: int) -> tuple:  # type: ignore[type-arg]
    """Follow both lengths; residuals and kernels come in the units of the reduced map."""
    residuals, kernels = np.empty(steps + 1), np.empty(steps + 1)
    p_speed, q_speed = 0.0, 0.0
    for t in range(steps + 1):
        e = (p * p - q * q) / 4 - label
        if not (e * e <= _LOST):
            return residuals[:t], kernels[:t], t
        residuals[t], kernels[t] = e, (p * p + q * q) / 2
        p_speed = beta * p_speed - (shrink + e) * p
        q_speed = beta * q_speed - (shrink - e) * q
        p, q = p + p_speed, q + q_speed
    return residuals, kernels, -1


@njit(cache=True, nogil=True)
def _fates(ps: Array, qs: Array, labels: Array, betas: Array, most: int, tolerance: float) -> tuple:  # type: ignore[type-arg]
    size = ps.size
    converged = np.zeros(size, np.bool_)
    diverged, peak_step = np.full(size, -1), np.full(size, -1)
    steps = np.full(size, most)
    peak, final = np.full(size, np.inf), np.full(size, np.nan)
    for i in range(size):
        p, q, label, beta = ps[i], qs[i], labels[i], betas[i]
        p_speed, q_speed = 0.0, 0.0
        e = (p * p - q * q) / 4 - label
        small, top, when, quiet = tolerance * abs(e), e * e, 0, 0
        for t in range(1, most + 1):
            p_speed = beta * p_speed - e * p
            q_speed = beta * q_speed + e * q
            p, q = p + p_speed, q + q_speed
            e = (p * p - q * q) / 4 - label
            if not (e * e <= _LOST):
                diverged[i], steps[i] = t, t
                break
            if e * e > top:
                top, when = e * e, t
            kernel = (p * p + q * q) / 2
            quiet = quiet + 1 if abs(e) <= small and 0 < kernel < 2 * (1 + beta) else 0
            if quiet == 10:
                converged[i], steps[i] = True, t
                break
        if diverged[i] < 0:
            peak[i], peak_step[i], final[i] = top / 2, when, kernel
    return converged, diverged, steps, peak, peak_step, final


def heavy_ball(
    residual: float,
    kernel: float,
    *,
    step_size: float,
    coupling: float,
    label: float = 0.0,
    momentum: float = 0.0,
    decay: float = 0.0,
    steps: int,
) -> Orbit:
    r"""Run gradient descent with momentum and weight decay on one example, from rest.

    Parameters
    ----------
    residual, kernel : float
        e and :math:`\lambda` at the start.
    step_size : float
        :math:`\eta` of half the squared residual, positive.
    coupling : float
        c; for the two-layer network :math:`|x|^2 / (m d)`.
    label : float, default 0.0
        y, with which the residual is :math:`e = g - y`.
    momentum : float, default 0.0
        In [0, 1); the velocity is the gradient plus momentum times the last velocity.
    decay : float, default 0.0
        Factor of half the squared weights in the loss.
    steps : int
        Number of steps; a run that diverges ends before.

    Raises
    ------
    ValueError
        If an argument is out of range, or no weights have that output and that kernel:
        :math:`2 \sqrt c\, |g| \le \lambda`.

    Examples
    --------
    With momentum the step size 2.4 is sub-critical, and without it is not:

    >>> from companion.catapults.beyond.momentum import heavy_ball
    >>> options = dict(step_size=2.4, coupling=1e-6, steps=100)
    >>> loss = heavy_ball(0.1, 1.0, momentum=0.5, **options).losses
    >>> plain = heavy_ball(0.1, 1.0, **options).losses
    >>> bool(loss.max() < 3 * loss[0]), bool(plain.max() > 1e4 * loss[0])
    (True, True)
    """
    eta = np.asarray(_validate.positive("step_size", step_size))
    scale = np.asarray(eta * np.sqrt(_validate.positive("coupling", coupling)))
    e, at = _validate.number("residual", residual), _validate.number("kernel", kernel)
    p, q, goal = _lengths(e, at, eta, scale, label)
    beta = _momentum(_validate.number("momentum", momentum))
    shrink = float(eta) * _validate.non_negative("decay", decay)
    count = _validate.integer("steps", steps, least=0)
    residuals, kernels, lost = _orbit(float(p), float(q), float(goal), shrink, beta, count)
    return Orbit(residuals / scale, kernels / eta, None if lost < 0 else int(lost))


def heavy_ball_fate(
    residual: ArrayLike,
    kernel: ArrayLike,
    *,
    step_size: ArrayLike,
    coupling: float,
    label: float = 0.0,
    momentum: ArrayLike = 0.0,
    most_steps: int = 10**6,
    tolerance: float = 1e-8,
) -> Fate:
    """Run gradient descent with momentum from many starts to its end.

    A run has converged when the residual was below the tolerance for ten steps.

    Parameters
    ----------
    residual, kernel, step_size, momentum : array_like
        As in :func:`heavy_ball`, of shapes that broadcast.
    coupling, label : float
        As in :func:`heavy_ball`, the same for all runs.
    most_steps : int, default 10**6
        Of a run that neither converges nor diverges.
    tolerance : float, default 1e-8
        Of the residual relative to its start.

    Raises
    ------
    ValueError
        As :func:`heavy_ball`.

    Examples
    --------
    >>> from companion.catapults.beyond.momentum import heavy_ball_fate
    >>> found = heavy_ball_fate(0.1, 1.0, step_size=[2.9, 3.1, 5.9], coupling=1e-8, momentum=0.5)
    >>> found.converged.tolist(), (found.peak > 1).tolist()
    ([True, True, False], [False, True, True])
    """
    eta = _validate.finite("step_size", step_size)
    if np.any(eta <= 0):
        raise ValueError(f"step_size must be positive, got {eta.min():g}")
    root = float(np.sqrt(_validate.positive("coupling", coupling)))
    e, at, eta, beta = _validate.broadcast(
        residual=_validate.finite("residual", residual),
        kernel=_validate.finite("kernel", kernel),
        step_size=eta,
        momentum=np.asarray(_momentum(momentum)),
    )
    p, q, goal = _lengths(e, at, eta, eta * root, label)
    most = _validate.integer("most_steps", most_steps, least=1)
    small = _validate.positive("tolerance", tolerance)
    arrays = np.broadcast_arrays(p, q, goal, beta, eta)
    shape = arrays[0].shape
    columns = [np.ascontiguousarray(each, np.float64).ravel() for each in arrays]
    ends = _fates(columns[0], columns[1], columns[2], columns[3], most, small)
    found = Fate(*(each.reshape(shape) for each in ends))
    return found._replace(
        peak=found.peak / (arrays[4] * root) ** 2, kernel=found.kernel / arrays[4]
    )


def critical_kernel(*, momentum: float = 0.0, decay: float = 0.0, step_size: float = 1.0) -> float:
    r"""Return the largest :math:`\eta\lambda` at which small residuals do not grow.

    With momentum it is :math:`2 (1 + \beta)`; with decay (and label zero)
    :math:`\alpha + 1/\alpha`, where :math:`\alpha = 1 - \eta\mu`.

    Parameters
    ----------
    momentum : float, default 0.0
        :math:`\beta`, in [0, 1).
    decay : float, default 0.0
        Only without momentum, and :math:`\eta\mu < 1`.
    step_size : float, default 1.0
        :math:`\eta`, which only matters with decay.

    Raises
    ------
    ValueError
        If an argument is out of range, or both momentum and decay are given.

    Examples
    --------
    >>> from companion.catapults.beyond.momentum import critical_kernel
    >>> critical_kernel(momentum=0.9), critical_kernel(decay=0.5)
    (3.8, 2.5)
    """
    beta = _momentum(_validate.number("momentum", momentum))
    kept = 1 - _validate.positive("step_size", step_size) * _validate.non_negative("decay", decay)
    if kept <= 0 or (beta > 0 and kept < 1):
        raise ValueError(
            f"decay must be below 1 / step_size, and zero with momentum, got {decay!r}"
        )
    return 2 * (1 + beta) if kept == 1 else kept + 1 / kept


def _momentum(momentum: ArrayLike) -> Any:
    beta = _validate.finite("momentum", momentum)
    if np.any((beta < 0) | (beta >= 1)):
        raise ValueError(f"momentum must be in [0, 1), got {beta}")
    return beta if beta.ndim else float(beta)


def _lengths(
    residual: ArrayLike, kernel: ArrayLike, eta: Array, scale: Array, label: float
) -> tuple[Array, Array, Array]:
    """Return the two lengths, and the label, in the units of the reduced map."""
    goal = np.asarray(scale * np.float64(_validate.number("label", label)))
    output = scale * _validate.finite("residual", residual) + goal
    v = np.asarray(eta * _validate.finite("kernel", kernel))
    if np.any(v < 2 * np.abs(output)):
        raise ValueError("kernel must be at least 2 sqrt(coupling) |residual + label|")
    return np.sqrt(v + 2 * output), np.sqrt(v - 2 * output), goal
