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
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import root
from scipy.special import expit

from traindyn import _validate
from traindyn.gaussian import Rule
from traindyn.problems.base import Array
from traindyn.problems.two_layer import thresholds
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.problems.two_layer.limit import lines
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture

__all__ = ["Solved", "good", "ring", "single_response"]

IntArray: TypeAlias = NDArray[np.int64]

# Gauss-Legendre nodes over +- `_REACH` standard deviations: the integrands are smooth there.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_REACH = 9.5

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


def ring(
    problem: TwoLayerMixture, shares: ArrayLike | None = None, *, c_delta: float = 0.0
) -> Solved:
    """Find the fixed point with all neurons in the class of the first centroid, exactly aligned.

    At infinite precision these are the points of the quarter circle of BGJ Proposition 4.2 and
    its higher-dimensional analogues; they are fixed points at every precision.

    Parameters
    ----------
    problem : TwoLayerMixture
        Binary or XOR mixture, its ridge below the threshold at its precision.
    shares : array_like, shape (K,), optional
        Positive relative sizes of :math:`v_i^2`; by default equal.
    c_delta : float, default 0
        Step size times dimension.

    Returns
    -------
    Solved
        Accurate to rounding: the integrals are one-dimensional.

    Raises
    ------
    ValueError
        If the ridge is not below the threshold at this precision, naming it.
    FloatingPointError
        If no fixed point is found.

    Examples
    --------
    >>> problem = TwoLayerMixture.binary(2, 20, precision=5.0, ridge=0.1)
    >>> statistics, residual = ring(problem, c_delta=1.0)
    >>> round(float((statistics.m**2).sum()), 3), residual < 1e-12
    (1.215, True)
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    _check_feasible(problem, c_delta)
    one = FixedSet(replace(problem, width=1), (0,))
    direction, sign = one.classes.directions[0], one.classes.signs[0]

    def field(x: Array, precision: float) -> Array:
        size, overlap, gram = x
        here = replace(one.problem, precision=precision)
        A, A_perp, B = single_response(here, sign * size, overlap * direction, gram)
        along, alpha = float(A @ direction), problem.ridge
        fed = c_delta / precision * size**2 * B
        return np.array(
            [
                -sign * (overlap * along + A_perp) - alpha * size,
                -sign * size * along - alpha * overlap,
                -2.0 * sign * size * A_perp - 2.0 * alpha * gram + fed,
            ]
        )

    size = math.sqrt(one.classes.sizes[0])
    (size, overlap, gram), residual = _follow(field, np.array([size, size, 0.0]), problem.precision)
    single = Statistics(np.array([sign * size]), (overlap * direction)[None], np.array([[gram]]))
    return Solved(_split(single, np.zeros(problem.width, dtype=np.int64), shares), residual)


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
    _check_feasible(problem, c_delta)
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
    solution, residual = _follow(field, start, problem.precision)
    return Solved(_split(place(solution), groups, shares), residual)


def single_response(
    problem: TwoLayerMixture, v: float, m: Array, gram: float
) -> tuple[Array, float, float]:
    r"""Response of a network of one neuron, by one-dimensional quadrature.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision.
    v : float
        Second-layer weight of the neuron.
    m : ndarray, shape (d,)
        Coordinates of W in the signal space.
    gram : float
        Squared length of the noise part of the weights.

    Returns
    -------
    A : ndarray, shape (d,)
        :math:`E[X\, 1\{W \cdot X > 0\}\, e]` in the signal space, with the error e.
    A_perp : float
        Its inner product with the noise part of W.
    B : float
        :math:`E[1\{W \cdot X > 0\}\, e^2]`.

    Raises
    ------
    ValueError
        If the precision is infinite or the weights vanish.

    Examples
    --------
    >>> problem = TwoLayerMixture.binary(1, 20, precision=2.0, ridge=0.1)
    >>> A, _, _ = single_response(problem, 0.0, np.array([0.3]), 0.5)
    >>> A.round(12).tolist()
    [-0.25]
    """
    v, gram = _validate.number("v", v), _validate.number("gram", gram)
    m = _validate.finite("m", m, shape=(problem.signal,))
    precision = _validate.positive("problem.precision", problem.precision)
    square = _validate.positive("m @ m + gram", float(m @ m) + gram)
    spread = math.sqrt(square / precision)
    means = problem.centroids @ m
    low = np.maximum(means - _REACH * spread, 0.0)
    high = np.maximum(means + _REACH * spread, 0.0)
    half = 0.5 * (high - low)
    z = low[:, None] + half[:, None] * (1.0 + _NODES)
    height = (z - means[:, None]) / spread
    density = np.exp(-0.5 * height**2) / (math.sqrt(2.0 * math.pi) * spread)
    mass = problem.weights[:, None] * half[:, None] * _WEIGHTS * density
    error = expit(v * z) - np.asarray(problem.labels)[:, None]
    # Given the preactivation z, the mean noise is its share along the weights.
    pull = (mass * error * height).sum() * spread / square
    A = (mass * error).sum(axis=1) @ problem.centroids + pull * m
    return np.asarray(A), float(pull * gram), float((mass * error**2).sum())


def _check_feasible(problem: TwoLayerMixture, c_delta: float) -> None:
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


def _follow(
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


def _split(base: Statistics, groups: IntArray, shares: ArrayLike | None) -> Statistics:
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
