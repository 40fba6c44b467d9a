"""Regression and classification where the model fits its data exactly.

===============  ===================================================================
`least_squares`  more unknowns than equations: what descent picks, in closed form
===============  ===================================================================
"""

from traindyn.problems.regression.least_squares import DescentStatistics, LeastSquares

__all__ = [
    "DescentStatistics",
    "LeastSquares",
]
