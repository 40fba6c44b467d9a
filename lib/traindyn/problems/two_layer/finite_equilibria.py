r"""Fixed points of the effective dynamics at finite precision (beyond the source).

Two facts make them small systems of equations. Neurons that are positive multiples of one
another, :math:`v_i = a_i s` and :math:`W_i = a_i w` with :math:`\sum a_i^2 = 1`, stay so and act
as the single neuron (s, w): every fixed point of a narrow network is a sphere of fixed points of
a wider one. And at the best classifier with one neuron per class, the symmetries of the mixture
leave the common size of v, the common overlap and a few entries of the Gram matrix.

They are followed from infinite precision down to the one asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root

from traindyn import _validate
from traindyn._types import Array, IntArray
from traindyn.gaussian import Rule
from traindyn.problems.two_layer import thresholds
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.problems.two_layer.limit import lines
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture

__all__ = ["Solved", "good"]

# Precisions along which fixed points are followed, each warm-started from the one above.
_FIRST_PRECISION = 1e4
_RATIO = 0.25
_TOLERANCE = 1e-9


class Solved(NamedTuple):
    """A fixed point and how well it solves the equations.

    Attributes
    ----------
    statistics : Statistics
    residual : float
        Largest absolute entry of the drift, in the reduced coordinates.
    """

    statistics: Statistics
    residual: float


def good(
    problem: TwoLayerMixture,
    assignment: ArrayLike | None = None,
    shares: ArrayLike | None = None,
    *,
    c_delta: float = 0.0,
    rule: Rule | None = None,
) -> Solved:
    """Find the fixed point of the best classifier of the binary or the XOR mixture.

    Parameters
    ----------
    problem : TwoLayerMixture
        Binary or XOR, at least as wide as it has classes.
    assignment : array_like of int, shape (K,), optional
        Class of each neuron, every class occurring; by default class i mod C for neuron i.
        Neurons of one class are exactly aligned.
    shares : array_like, shape (K,), optional
        Positive relative sizes of :math:`v_i^2` within each class; by default equal.
    c_delta : float, default 0
        Step size times dimension.
    rule : Rule, optional
        Gaussian rule of the drift of the network with one neuron per class; by default that
        of the problem. Its error is the error of the result.

    Raises
    ------
    ValueError
        If the ridge or the precision does not allow it, naming the threshold.
    FloatingPointError
        If no fixed point is found.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.finite_equilibria import good
    >>> problem = TwoLayerMixture.binary(2, 20, precision=5.0, ridge=0.1)
    >>> good(problem, c_delta=1.0).statistics.m.round(4).tolist()
    [[1.102], [-1.102]]
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    count = len(problem.labels)
    groups = np.arange(problem.width) % count if assignment is None else np.asarray(assignment)
    if groups.shape != (problem.width,) or sorted(set(groups.tolist())) != list(range(count)):
        raise ValueError(
            f"assignment must give each of {problem.width} neurons a class and each of the "
            f"{count} classes a neuron, got {groups.tolist()}"
        )
    check_feasible(problem, c_delta)
    best = FixedSet(replace(problem, width=count), tuple(range(count)))
    directions, signs = best.classes.directions, best.classes.signs
    antipodal = np.round(directions @ directions.T) == -1
    across = np.round(directions @ directions.T) == 0

    def place(x: Array) -> Statistics:
        size, overlap, own, opposite, other = x
        gram = own * np.eye(count) + opposite * antipodal + other * across
        return Statistics(size * signs, overlap * directions, gram)

    def field(x: Array, precision: float) -> Array:
        here = replace(best.problem, precision=precision)
        rate = here.drift(place(x), rule=rule, c_delta=c_delta)
        return np.array(
            [
                (signs * rate.v).mean(),
                (directions * rate.m).sum() / count,
                np.diag(rate.R_perp).mean(),
                rate.R_perp[antipodal].mean(),
                rate.R_perp[across].mean() if across.any() else -x[4],
            ]
        )

    size = math.sqrt(best.classes.sizes[0])
    start = np.array([size, size, 0.0, 0.0, 0.0])
    solution, residual = follow(field, start, problem.precision)
    return Solved(split(place(solution), groups, shares), residual)


def check_feasible(problem: TwoLayerMixture, c_delta: float) -> None:
    """Refuse ridges and precisions at which the origin attracts, naming the threshold."""
    known = lines(problem)
    counts = (len(problem.labels), known.directions.shape[0])
    if counts == (2, 1):
        threshold = thresholds.BINARY_RIDGE
    elif counts == (4, 2):
        threshold = thresholds.xor_critical_ridge(problem.precision, c_delta=c_delta)
    else:
        raise ValueError(
            f"centroids must be those of the binary or the XOR mixture, got {counts[0]} on "
            f"{counts[1]} lines"
        )
    if problem.ridge < threshold:
        return
    message = (
        f"ridge must be below {threshold:.6g}, the threshold at precision "
        f"{problem.precision:g}, got {problem.ridge:g}"
    )
    if counts == (4, 2) and problem.ridge < thresholds.XOR_RIDGE:
        least = thresholds.xor_critical_precision(problem.ridge, c_delta=c_delta)
        message += f"; at this ridge the precision must be above {least:.6g}"
    raise ValueError(message)


def follow(
    field: Callable[[Array, float], Array], start: Array, precision: float
) -> tuple[Array, float]:
    """Solve at one precision after another, from high to the one wanted."""
    x, current = start, max(precision, _FIRST_PRECISION)
    while True:
        found = root(field, x, args=(current,), method="hybr", options={"xtol": 1e-13})
        residual = float(np.abs(found.fun).max())
        if residual > _TOLERANCE or found.x[0] <= 0:
            raise FloatingPointError(
                f"fixed point must be found at precision {current:g}, got residual {residual:.3g}"
            )
        x = found.x
        if current == precision:
            return x, residual
        current = max(precision, current * _RATIO)


def split(base: Statistics, groups: IntArray, shares: ArrayLike | None) -> Statistics:
    """Share each neuron of `base` among the neurons of its group."""
    width = len(groups)
    given = np.ones(width) if shares is None else shares
    weights = _validate.finite("shares", given, shape=(width,))
    if np.any(weights <= 0):
        raise ValueError(f"shares must be positive, got {weights.tolist()}")
    totals = np.bincount(groups, weights=weights)
    a = np.sqrt(weights / totals[groups])
    return Statistics(
        a * base.v[groups],
        a[:, None] * base.m[groups],
        np.outer(a, a) * base.R_perp[np.ix_(groups, groups)],
    )
