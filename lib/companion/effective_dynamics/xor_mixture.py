"""The XOR mixture's loss in limit, its slope and its sets of fixed points, ours and as printed.

What is called *printed* describes no training: these are formulas of BGJ with their misprints,
which a check that confirms ours must reject.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from companion.effective_dynamics import xor_mixture
from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer import limit
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, consistent

__all__ = [
    "component_count",
    "gram_gradient",
    "penalty",
    "printed_gram_gradient",
    "printed_limit_loss",
    "printed_penalty",
    "printed_response",
    "quarter_circles",
]


def printed_limit_loss(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Loss of the XOR mixture at infinite precision of BGJ Section 9.3, shape (...).

    Its last term is :math:`\tfrac14 \log(1 + e^{-v \cdot g(-m^\nu)})` for
    :math:`\tfrac14 \log(1 + e^{v \cdot g(-m^\nu)})`.
    """
    o = limit.outputs(problem, statistics)
    wrong = (problem.labels == 0) & (limit.lines(problem).side == -1)
    return np.asarray(limit.loss(problem, statistics) - o @ (wrong * problem.weights))


def printed_response(
    problem: TwoLayerMixture, statistics: Statistics, *, sides: ArrayLike | None = None
) -> Array:
    r"""Limit of :math:`A_i` in the proof of BGJ Proposition 9.2 as printed, shape (..., K, d).

    Along mu it has :math:`-\tfrac14 1\{m < 0\}\, \sigma(v \cdot g(-m))` for
    :math:`+\tfrac14 1\{m < 0\}\, \sigma(-v \cdot g(-m))`.
    """
    right = limit.response(problem, statistics, sides=sides)
    o = limit.outputs(problem, statistics, sides=sides)
    on = limit.activity(problem, statistics, sides=sides)
    wrong = (problem.labels == 1) & (limit.lines(problem).side == -1)
    # The centroid of the second term is -mu: its right share is expit(o) - 1, printed expit(o).
    change = np.where(wrong, 1.0, 0.0) * problem.weights
    return np.asarray(
        right + (on * np.broadcast_to(change, o.shape)[..., None, :]) @ problem.centroids
    )


def printed_penalty(statistics: Statistics) -> float:
    r"""Squared norm of the parameters by BGJ Lemma 9.1, which lacks :math:`|m_i|^2`."""
    return xor_mixture.penalty(statistics) - float(np.square(statistics.m).sum())


def printed_gram_gradient(noise_parts: Array, j: int, k: int) -> Array:
    r"""Gradient of :math:`R^\perp_{jk}` by BGJ (9.3), with the two indices exchanged."""
    parts = _validate.finite("noise_parts", noise_parts, shape=(None, None))
    j = _validate.integer("j", j, least=0, most=len(parts) - 1)
    k = _validate.integer("k", k, least=0, most=len(parts) - 1)
    gradient = np.zeros_like(parts)
    gradient[j] += parts[j]
    gradient[k] += parts[k]
    return gradient


def penalty(statistics: Statistics) -> float:
    r"""Squared norm of the parameters, :math:`\sum_i (v_i^2 + |m_i|^2 + R^\perp_{ii})`."""
    statistics = consistent(statistics)
    size = np.square(statistics.v).sum() + np.square(statistics.m).sum()
    return float(size + np.trace(statistics.R_perp))


def gram_gradient(noise_parts: Array, j: int, k: int) -> Array:
    r"""Gradient of :math:`R^\perp_{jk}` in the first layer, shape (K, N) (BGJ (9.3), corrected).

    .. math:: \nabla_{W_i} R^\perp_{jk} = W_k^\perp \delta_{ij} + W_j^\perp \delta_{ik} .

    Parameters
    ----------
    noise_parts : ndarray, shape (K, N)
        The :math:`W_i^\perp`.
    j, k : int
        Neurons, from 0 to K - 1; they may be equal.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.xor_mixture import gram_gradient
    >>> gram_gradient(np.array([[1.0, 0.0], [0.0, 2.0]]), 0, 1).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    parts = _validate.finite("noise_parts", noise_parts, shape=(None, None))
    j = _validate.integer("j", j, least=0, most=len(parts) - 1)
    k = _validate.integer("k", k, least=0, most=len(parts) - 1)
    gradient = np.zeros_like(parts)
    gradient[j] += parts[k]
    gradient[k] += parts[j]
    return gradient


def component_count(width: int, *, classes: int = 4) -> int:
    r"""Count the components, in closed form.

    .. math:: \sum_{s=0}^{\min(n, K)} \binom{n}{s} \cdot
              \begin{cases} s! & s = K \\ 1 & s < K \end{cases}

    for n classes and width K: with a neuron to spare, any distribution of neurons over s
    given classes can be deformed into any other one.

    Parameters
    ----------
    width : int
        Number K of neurons, at least 1.
    classes : int, default 4
        Four for the XOR mixture, two for the binary one.

    Examples
    --------
    >>> from companion.effective_dynamics.xor_mixture import component_count
    >>> [component_count(width) for width in range(1, 7)]
    [5, 17, 35, 39, 16, 16]
    """
    width = _validate.integer("width", width, least=1)
    count = _validate.integer("classes", classes, least=1)
    return sum(
        math.comb(count, s) * (math.factorial(s) if s == width else 1)
        for s in range(min(count, width) + 1)
    )


def quarter_circles(problem: TwoLayerMixture, a: ArrayLike) -> Statistics:
    """Return the base point of BGJ Proposition 5.1: two quarter circles of the XOR mixture.

    Parameters
    ----------
    problem : TwoLayerMixture
        XOR.
    a : array_like, shape (K,)
        Positive entries are v and the overlap with mu of neurons that answer mu, negative
        ones v and the overlap with nu of neurons that answer -nu, zeros neurons at zero. The
        squares of either sign sum to C.

    Raises
    ------
    ValueError
        If `a` is not on the two quarter circles.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.xor_mixture import quarter_circles
    >>> from traindyn.problems import TwoLayerMixture
    >>> problem = TwoLayerMixture.xor(4, 20, precision=np.inf, ridge=0.1)
    >>> radius = np.sqrt(np.log(1.5))
    >>> base = quarter_circles(problem, radius * np.array([0.6, 0.8, -0.8, -0.6]))
    >>> base.v.round(4).tolist(), base.m[3].round(4).tolist()
    ([0.3821, 0.5094, -0.5094, -0.3821], [-0.0, -0.3821])
    """
    sizes = _validate.finite("a", a, shape=(problem.width,))
    known, labels = limit.lines(problem), np.asarray(problem.labels)
    if sorted(labels.tolist()) != [0, 0, 1, 1] or known.directions.shape[0] != 2:
        raise ValueError(
            f"problem must be an XOR mixture, got labels {labels.tolist()} on "
            f"{known.directions.shape[0]} lines"
        )
    mu = int(np.flatnonzero((labels == 1) & (known.side == 1))[0])
    minus_nu = int(np.flatnonzero((labels == 0) & (known.side == -1))[0])
    group = np.where(sizes > 0, mu, np.where(sizes < 0, minus_nu, -1))
    return FixedSet(problem, tuple(group.tolist())).at(sizes)
