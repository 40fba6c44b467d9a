"""Effective dynamics: the ordinary differential equation of the summary statistics.

As the dimension grows with step size ``c_delta / d``, the summary statistics of one-pass
SGD follow ``du/dt = drift(u)`` (BGHJ Theorem 5.5, applied in Theorem 5.7). The drift
holds Gaussian expectations; they are evaluated with one quadrature rule for the whole
run, which makes the right-hand side smooth and an adaptive high-order solver efficient.
What that rule leaves out is seen by repeating the run with another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from traindyn import _validate
from traindyn._evaluations import bounded
from traindyn._types import Array
from traindyn.effective._layout import Layout
from traindyn.gaussian import Rule
from traindyn.problems.base import Dynamics, LimitDynamics, require
from traindyn.trajectory import Trajectory

__all__ = ["solve", "solve_limit"]


def solve(
    problem: Dynamics,
    start: Any,
    times: ArrayLike,
    *,
    c_delta: float = 0.0,
    rule: Rule | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
) -> Trajectory[Any]:
    """Integrate the effective dynamics at finite precision.

    Parameters
    ----------
    problem : Dynamics
        Whose drift is integrated.
    start : NamedTuple of arrays
        Statistics at time 0.
    times : array_like, shape (T,)
        Increasing, non-negative; ``steps * step_size`` of the simulation.
    c_delta : float, default 0
        Step size times dimension; 0 is a step size of smaller order than ``1/d``.
    rule : Rule, optional
        Gaussian rule of dimension ``problem.drift_dimension``. By default the problem
        chooses its quadrature.
    rtol, atol : float
        Tolerances of the solver (Dormand-Prince of order 8).

    Returns
    -------
    Trajectory
        On the requested times, ``step_size`` None.

    Raises
    ------
    ValueError
        If an argument is out of range, or the last time is not reached within 100000 evaluations
        of the drift.
    FloatingPointError
        If the solution leaves every bounded set before the last time.
    """
    require(problem, "effective.ode.solve", "drift")
    c_delta = _validate.non_negative("c_delta", c_delta)
    return _integrate(
        lambda statistics: problem.drift(statistics, rule=rule, c_delta=c_delta),
        start,
        times,
        rtol=rtol,
        atol=atol,
    )


def solve_limit(
    problem: LimitDynamics,
    start: Any,
    times: ArrayLike,
    *,
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Trajectory[Any]:
    """Integrate the effective dynamics in the limit of infinite precision.

    Parameters
    ----------
    problem, start, times, rtol, atol
        As for :func:`solve`; the drift is ``problem.limit_drift`` (BGHJ Proposition 5.10).

    Raises
    ------
    ValueError, FloatingPointError
        As :func:`solve`.
    """
    require(problem, "effective.ode.solve_limit", "limit_drift")
    return _integrate(problem.limit_drift, start, times, rtol=rtol, atol=atol)


def _integrate(
    drift: Callable[[Any], Any],
    start: Any,
    times: ArrayLike,
    *,
    rtol: float,
    atol: float,
) -> Trajectory[Any]:
    """Solve ``du/dt = drift(u)`` from time 0 and return it on `times`."""
    grid = _validate.increasing("times", times)
    rtol = _validate.positive("rtol", rtol)
    atol = _validate.positive("atol", atol)
    _validate.providing("start", start, "_fields")
    layout = Layout(start)
    first = layout.pack(start)
    if grid[-1] == 0:
        path = first[None]
    else:
        path = _solve_ivp(
            lambda _, vector: layout.pack(drift(layout.unpack(vector))), first, grid, rtol, atol
        )
    return Trajectory(times=grid, statistics=layout.unpack(path), step_size=None)


def _solve_ivp(
    field: Callable[[float, Array], Array], start: Array, grid: Array, rtol: float, atol: float
) -> Array:
    """Solve an initial value problem from time 0, shape (T, n), or raise where it stops."""
    reached = 0.0

    limited = bounded(field, float(grid[-1]))

    def watched(t: float, vector: Array) -> Array:
        nonlocal reached
        reached = t
        return limited(t, vector)

    try:
        with np.errstate(over="raise", invalid="raise"):
            solution = solve_ivp(
                watched, (0.0, grid[-1]), start, method="DOP853", t_eval=grid, rtol=rtol, atol=atol
            )
        reason = "" if solution.success else solution.message
    except FloatingPointError as error:
        reason = str(error)
    if reason:
        raise FloatingPointError(
            f"effective dynamics must stay finite until time {grid[-1]:g}, "
            f"the solver stopped near {reached:g}: {reason}"
        )
    return np.ascontiguousarray(solution.y.T)
