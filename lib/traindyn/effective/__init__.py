"""Effective dynamics of summary statistics: limits, fixed points, fluctuations."""

from traindyn.effective.fixed_points import FixedPoint, find
from traindyn.effective.fluctuations import LinearNoise, fixed_point_noise, linear_noise
from traindyn.effective.ode import solve, solve_limit
from traindyn.effective.one_step import OneStep
from traindyn.effective.sde import Coordinates

__all__ = [
    "Coordinates",
    "FixedPoint",
    "LinearNoise",
    "OneStep",
    "find",
    "fixed_point_noise",
    "linear_noise",
    "solve",
    "solve_limit",
]
