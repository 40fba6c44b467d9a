r"""Infinite precision: the limit of the effective dynamics (BGJ Propositions 4.2 and 9.2).

Without noise an input is its centroid :math:`s_c`, drawn with probability :math:`p_c` and
labelled :math:`y_c`. A neuron answers it where :math:`m_i \cdot s_c > 0`, so that with
outputs :math:`o_c = \sum_i v_i\, g(m_i \cdot s_c)` and errors :math:`e_c = \sigma(o_c) - y_c`

.. math:: A_i = \sum_c p_c\, e_c\, 1\{m_i \cdot s_c > 0\}\, s_c, \qquad
          \dot v_i = -m_i \cdot A_i - \alpha v_i, \quad
          \dot m_i = -v_i A_i - \alpha m_i, \quad
          \dot R^\perp = -2 \alpha R^\perp,

the gradient flow of :func:`loss` in (v, m). The drift jumps where :math:`m_i` is orthogonal
to a centroid. Centroids on the same line through the origin share that hyperplane, and a
*side* (+1 or -1) for each neuron and line selects one smooth branch of the drift; branches
extend beyond their own side, as an integrator that locates the crossing needs
(:mod:`traindyn.effective.sliding`). Statistics and sides may have leading axes, which are
broadcast against each other.

The source prints two of these formulas with a wrong sign, see
:mod:`traindyn.problems.two_layer.printed`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = [
    "Lines",
    "activity",
    "drift",
    "gradient_covariance",
    "lines",
    "loss",
    "outputs",
    "response",
]

_PARALLEL = 1e-12


class Lines(NamedTuple):
    """The lines through the origin on which centroids lie.

    Attributes
    ----------
    directions : ndarray, shape (L, d)
        Unit vectors, each towards the first centroid of its line.
    line : ndarray of int, shape (C,)
        Line of each centroid.
    side : ndarray of int, shape (C,)
        +1 for a centroid on the side of the direction, -1 opposite to it.
    """

    directions: Array
    line: NDArray[np.int64]
    side: NDArray[np.int64]


def lines(problem: TwoLayerMixture) -> Lines:
    """Lines through the origin on which the centroids lie.

    Raises
    ------
    ValueError
        If a centroid is the origin.

    Examples
    --------
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.limit import lines
    >>> problem = TwoLayerMixture.xor(4, 20, precision=10.0, ridge=0.1)
    >>> found = lines(problem)
    >>> found.line.tolist(), found.side.tolist()
    ([0, 0, 1, 1], [1, -1, 1, -1])
    """
    centroids = problem.centroids
    return _lines(centroids.tobytes(), centroids.shape[1])


@lru_cache(maxsize=64)
def _lines(buffer: bytes, dimension: int) -> Lines:
    """Lines of the centroids held in a buffer, which can be a key of a cache."""
    centroids = np.frombuffer(buffer).reshape(-1, dimension)
    lengths = np.linalg.norm(centroids, axis=1)
    if lengths.min() == 0:
        raise ValueError(
            f"centroids must differ from the origin, got zero in row {int(np.argmin(lengths))}"
        )
    directions: list[Array] = []
    index, side = [], []
    for unit in centroids / lengths[:, None]:
        cosines = np.array([unit @ direction for direction in directions])
        match = np.flatnonzero(np.abs(cosines) > 1 - _PARALLEL)
        if match.size == 0:
            directions.append(unit)
        index.append(int(match[0]) if match.size else len(directions) - 1)
        side.append(int(np.sign(cosines[match[0]])) if match.size else 1)
    return Lines(
        _validate.frozen(np.stack(directions)),
        _validate.frozen(np.array(index)),
        _validate.frozen(np.array(side)),
    )


def activity(
    problem: TwoLayerMixture,
    statistics: Statistics,
    *,
    sides: ArrayLike | None = None,
    kink: float = 0.0,
) -> Array:
    r"""Share of the inputs of each centroid that a neuron answers, shape (..., K, C).

    Parameters
    ----------
    problem : TwoLayerMixture
        Its centroids enter; its precision is not used.
    statistics : Statistics
        Only m enters; leading axes allowed.
    sides : array_like, shape (..., K, L), optional
        Signs +1 or -1 of :math:`m_i` along each of the :func:`lines`, taken instead of the
        actual ones.
    kink : float, default 0
        Value where :math:`m_i \cdot s_c = 0`, when sides are not given. Zero is the
        convention of the network; one half is the limit of high precision of a neuron that
        does not vanish, whose preactivation is then symmetric noise.

    Returns
    -------
    ndarray
        Zeros and ones, and `kink`.

    Raises
    ------
    ValueError
        If the sides are not signs of that shape.
    """
    kink = _validate.number("kink", kink)
    return _activity(problem, checked(problem, statistics), sides, kink)


def _activity(
    problem: TwoLayerMixture, statistics: Statistics, sides: ArrayLike | None, kink: float = 0.0
) -> Array:
    if sides is None:
        return np.asarray(np.heaviside(_projections(problem, statistics), kink))
    known = lines(problem)
    chosen = np.asarray(sides)
    wanted = (problem.width, known.directions.shape[0])
    if chosen.shape[-2:] != wanted:
        raise ValueError(
            f"sides must have shape (..., {wanted[0]}, {wanted[1]}), got {chosen.shape}"
        )
    if not np.all((chosen == 1) | (chosen == -1)):
        raise ValueError(f"sides must be +1 or -1, got {np.unique(chosen).tolist()}")
    return np.asarray((chosen[..., known.line] == known.side).astype(np.float64))


def outputs(
    problem: TwoLayerMixture, statistics: Statistics, *, sides: ArrayLike | None = None
) -> Array:
    r"""Return :math:`o_c = \sum_i v_i\, g(m_i \cdot s_c)` at the centroids, shape (..., C).

    Given sides, g is the identity or zero accordingly.
    """
    statistics = checked(problem, statistics)
    on = _activity(problem, statistics, sides)
    return _outputs(statistics, on * _projections(problem, statistics))


def response(
    problem: TwoLayerMixture,
    statistics: Statistics,
    *,
    sides: ArrayLike | None = None,
    kink: float = 0.0,
) -> Array:
    r"""Limit of :math:`A_i = E[X\, 1\{W_i \cdot X > 0\} (\sigma(o) - y)]`, shape (..., K, d).

    Parameters
    ----------
    problem, statistics, sides, kink
        As for :func:`activity`. With ``kink=0.5`` it is the limit of high precision also
        where a neuron is orthogonal to a centroid, the average of both branches; BGJ Remark
        7 claims it vanishes there.

    Examples
    --------
    A neuron of the binary mixture with :math:`m_i = 0`:

    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.limit import response
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.binary(1, 20, precision=10.0, ridge=0.1)
    >>> start = Statistics(np.array([0.7]), np.zeros((1, 1)), np.eye(1))
    >>> response(problem, start, kink=0.5).tolist()
    [[-0.25]]
    """
    kink = _validate.number("kink", kink)
    return _response(problem, checked(problem, statistics), sides, kink)


def _response(
    problem: TwoLayerMixture, statistics: Statistics, sides: ArrayLike | None, kink: float = 0.0
) -> Array:
    on = _activity(problem, statistics, sides, kink)
    o = _outputs(statistics, on * _projections(problem, statistics))
    pull = problem.weights * (expit(o) - problem.labels)
    return np.asarray((on * pull[..., None, :]) @ problem.centroids)


def drift(
    problem: TwoLayerMixture, statistics: Statistics, *, sides: ArrayLike | None = None
) -> Statistics:
    """Effective dynamics at infinite precision (BGJ Propositions 4.2 and 9.2, corrected).

    BGHJ Proposition 5.18 has it for the XOR mixture and repeats the wrong sign of BGJ.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its precision is not used.
    statistics : Statistics
        Leading axes allowed.
    sides : array_like, shape (..., K, L), optional
        One-sided values, see :func:`activity`.

    Returns
    -------
    Statistics
        Time derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.limit import drift
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)
    >>> root = np.sqrt(np.log(4.0))
    >>> best = Statistics(np.array([root, -root]), np.array([[root], [-root]]), np.zeros((2, 2)))
    >>> bool(np.abs(drift(problem, best).v).max() < 1e-15)
    True
    """
    v, m, R_perp = statistics = checked(problem, statistics)
    found = _response(problem, statistics, sides)
    return Statistics(
        -(m * found).sum(axis=-1) - problem.ridge * v,
        -v[..., None] * found - problem.ridge * m,
        -2.0 * problem.ridge * R_perp,
    )


def loss(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Evaluate the population loss at infinite precision, ridge included, shape (...).

    .. math:: \Phi = \sum_c p_c \big[ \log(1 + e^{o_c}) - y_c o_c \big]
              + \frac\alpha2 \big( |v|^2 + |m|^2 + \mathrm{tr}\, R^\perp \big).

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.limit import loss
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)
    >>> start = Statistics(np.zeros(2), np.zeros((2, 1)), np.zeros((2, 2)))
    >>> round(float(loss(problem, start)), 6)
    0.693147
    """
    statistics = checked(problem, statistics)
    o = outputs(problem, statistics)
    fit = (-log_expit(-o) - problem.labels * o) @ problem.weights
    size = np.square(statistics.v).sum(axis=-1) + np.square(statistics.m).sum(axis=(-2, -1))
    trace = np.trace(statistics.R_perp, axis1=-2, axis2=-1)
    return np.asarray(fit + 0.5 * problem.ridge * (size + trace))


def gradient_covariance(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Covariance V of the gradient of one draw in (v, m) at infinite precision.

    Exact, from the C values of the gradient. In the binary mixture with
    :math:`m_1 m_2 < 0` its off-diagonal entry is
    :math:`-\tfrac14 m_1 m_2 \sigma(-v_1 m_1) \sigma(-v_2 m_2)`; BGJ Section 8.3 prints a plus.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its precision is not used.
    statistics : Statistics
        Without leading axes.

    Returns
    -------
    ndarray, shape (K + K d, K + K d)
        In the order :math:`v_1 \dots v_K, m_{11} \dots m_{1d}, m_{21} \dots`
    """
    statistics = checked(problem, statistics, single=True)
    on = _activity(problem, statistics, None)
    felt = on * _projections(problem, statistics)
    errors = expit(_outputs(statistics, felt)) - problem.labels
    by_v = (felt * errors).T
    by_m = (statistics.v[:, None] * on * errors).T[:, :, None]
    by_m = by_m * problem.centroids[:, None, :]
    draws = np.concatenate([by_v, by_m.reshape(len(errors), -1)], axis=1)
    draws = draws - problem.weights @ draws
    return np.asarray(draws.T @ (problem.weights[:, None] * draws))


def _projections(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    return np.asarray(statistics.m @ problem.centroids.T)


def _outputs(statistics: Statistics, felt: Array) -> Array:
    return np.asarray((statistics.v[..., None] * felt).sum(axis=-2))
