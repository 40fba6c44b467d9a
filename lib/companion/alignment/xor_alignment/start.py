"""The second layer of the XOR mixture at the start: its spectrum, and when it aligns."""

from __future__ import annotations

import math

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Matrix
from traindyn.problems.two_layer.alignment import outlier_alignment
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = ["initial_second_layer", "second_layer_time"]


def second_layer_time(
    problem: TwoLayerMixture,
    times: Array,
    statistics: Statistics,
    level: float,
    *,
    matrix: Matrix = "hessian",
    rule: Rule | None = None,
) -> float:
    """First recorded time from which v is aligned with the outliers of its population block.

    Found by bisection: the alignment is taken to cross the level once, from below.

    Parameters
    ----------
    problem : TwoLayerMixture
        Whose block (K, K) has the outliers.
    times : array_like, shape (T,)
        Increasing and non-negative.
    statistics : Statistics
        Path with leading axis T.
    level : float
        Alignment asked for, in (0, 1).
    matrix, rule
        As for :func:`~traindyn.problems.two_layer.alignment.outlier_alignment`.

    Returns
    -------
    float
        Infinite if the last alignment is below the level.

    Raises
    ------
    ValueError
        If the level or the times are out of range.
    """
    grid = _validate.increasing("times", times)
    level = _validate.positive("level", level)
    statistics = checked(problem, statistics)
    if len(statistics.v) != grid.size:
        raise ValueError(f"statistics must have {grid.size} rows, got {len(statistics.v)}")
    if level >= 1:
        raise ValueError(f"level must be below 1, got {level:g}")

    def aligned(n: int) -> bool:
        here = Statistics(*(part[n] for part in statistics))
        return outlier_alignment(problem, here, matrix, rule=rule) >= level

    low, high = 0, grid.size - 1
    if aligned(low):
        return float(grid[low])
    if not aligned(high):
        return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if aligned(middle) else (middle, high)
    return float(grid[high])


def initial_second_layer(
    width: int, precision: float, *, square: float = 1.0
) -> tuple[float, float]:
    r"""Outlier and bulk of block (K, K) for orthogonal neurons of zero overlap and small output.

    .. math:: \frac{R}{4 \lambda} \Big( \frac12 + \frac{K - 1}{2 \pi} \Big), \qquad
              \frac{R}{4 \lambda} \Big( \frac12 - \frac1{2 \pi} \Big),

    for the Hessian and the G-matrix alike, whose weights are both 1/4. Already before training
    there is one outlier, along the vector of ones: the features are positive.

    Parameters
    ----------
    width : int
        Number K of neurons.
    precision : float
        Positive; infinity gives zero.
    square : float, default 1
        Square length R of a neuron.

    Returns
    -------
    outlier, bulk : float
        Of multiplicity 1 and K - 1.

    Examples
    --------
    >>> from companion.alignment.xor_alignment.start import initial_second_layer
    >>> [round(level, 4) for level in initial_second_layer(20, 10.0)]
    [0.0881, 0.0085]
    """
    width = _validate.integer("width", width, least=1)
    square = _validate.non_negative("square", square)
    if precision != math.inf:
        precision = _validate.positive("precision", precision)
    unit = square / (4 * precision)
    return (
        unit * (0.5 + (width - 1) / (2 * math.pi)),
        unit * (0.5 - 1 / (2 * math.pi)),
    )
