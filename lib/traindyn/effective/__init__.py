"""Effective dynamics of summary statistics: ODE limits, fixed points, fluctuations."""

from traindyn.effective.fixed_points import FixedPoint, find
from traindyn.effective.fluctuations import LinearNoise, linear_noise
from traindyn.effective.ode import solve, solve_limit, solve_with_error

__all__ = [
    "FixedPoint",
    "LinearNoise",
    "find",
    "linear_noise",
    "solve",
    "solve_limit",
    "solve_with_error",
]
