"""The circle of fixed points of aligned neurons, at infinite and at finite precision.

Neurons that are positive multiples of one another act as a single neuron, whose averages are
one-dimensional integrals.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer import limit
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.problems.two_layer.finite_equilibria import (
    Solved,
    check_feasible,
    follow,
    split,
)
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture

__all__ = ["quarter_circle", "ring", "single_response"]

# Gauss-Legendre nodes over +- `_REACH` standard deviations: the integrands are smooth there.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_REACH = 9.5


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
    >>> from companion.effective_dynamics.binary_mixture.ring import ring
    >>> from traindyn.problems import TwoLayerMixture
    >>> problem = TwoLayerMixture.binary(2, 20, precision=5.0, ridge=0.1)
    >>> statistics, residual = ring(problem, c_delta=1.0)
    >>> round(float((statistics.m**2).sum()), 3), residual < 1e-12
    (1.215, True)
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    check_feasible(problem, c_delta)
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
    (size, overlap, gram), residual = follow(field, np.array([size, size, 0.0]), problem.precision)
    single = Statistics(np.array([sign * size]), (overlap * direction)[None], np.array([[gram]]))
    return Solved(split(single, np.zeros(problem.width, dtype=np.int64), shares), residual)


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
    >>> import numpy as np
    >>> from companion.effective_dynamics.binary_mixture.ring import single_response
    >>> from traindyn.problems import TwoLayerMixture
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


def quarter_circle(problem: TwoLayerMixture, a: ArrayLike) -> Statistics:
    """Point of the quarter circle of the binary mixture with v = m = a (BGJ Proposition 4.2).

    Parameters
    ----------
    problem : TwoLayerMixture
        Binary; of any width, then it is a piece of a sphere.
    a : array_like, shape (K,)
        All of one sign, with squares that sum to C.

    Raises
    ------
    ValueError
        If `a` is not on the open quarter circle.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.binary_mixture.ring import quarter_circle
    >>> from traindyn.problems import TwoLayerMixture
    >>> problem = TwoLayerMixture.binary(2, 20, precision=np.inf, ridge=0.1)
    >>> radius = np.sqrt(np.log(4.0))
    >>> quarter_circle(problem, [0.6 * radius, 0.8 * radius]).m.round(5).tolist()
    [[0.70645], [0.94193]]
    """
    sizes = _validate.finite("a", a, shape=(problem.width,))
    if not (np.all(sizes > 0) or np.all(sizes < 0)):
        raise ValueError(f"a must be all positive or all negative, got {sizes.tolist()}")
    labels = np.asarray(problem.labels)
    if limit.lines(problem).directions.shape[0] != 1 or sorted(labels.tolist()) != [0, 1]:
        raise ValueError(
            f"problem must be a binary mixture, got labels {labels.tolist()} on "
            f"{limit.lines(problem).directions.shape[0]} lines"
        )
    c = int(np.flatnonzero(labels == int(sizes[0] > 0))[0])
    return FixedSet(problem, (c,) * problem.width).at(sizes)
