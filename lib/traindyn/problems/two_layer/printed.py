"""Formulas of BGJ Sections 4, 5, 8, 9 and 10 as printed, where they differ from the correct ones.

Nothing here describes training. These are the wrong variants against which the correct
formulas of :mod:`traindyn.problems.two_layer` are tested: a check that confirms ours must
reject these. Each has the arguments of its correct counterpart.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from traindyn import _validate
from traindyn.diffusion import LinearDiffusion
from traindyn.problems.base import Array
from traindyn.problems.two_layer import diffusive, limit, preactivation
from traindyn.problems.two_layer.equilibria import FixedSet, classes, locate
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture

__all__ = [
    "printed_around",
    "printed_block_drift",
    "printed_covariance",
    "printed_drift",
    "printed_exponential_moment_bound",
    "printed_gradient_covariance",
    "printed_gram_gradient",
    "printed_independent",
    "printed_kink_response",
    "printed_limit_loss",
    "printed_loss",
    "printed_negative_probability",
    "printed_noise",
    "printed_penalty",
    "printed_response",
    "printed_sizes",
]


def printed_around(
    problem: TwoLayerMixture, base: Statistics, *, c_delta: float = 1.0
) -> LinearDiffusion:
    r"""Diffusive limits of BGJ Propositions 4.3 and 5.1 as printed.

    The radial term :math:`a_i (\alpha - 2 \alpha^2) \sum a_k (\tilde v_k + \tilde m_k)` has a
    plus sign there, from the expansion of :math:`\sigma(-v \cdot m)` in Sections 8.3 and 9.5;
    the right one is in :func:`traindyn.problems.two_layer.diffusive.around`.
    """
    right = diffusive.around(problem, base, c_delta=c_delta)
    return replace(right, matrix=right.matrix + 2.0 * diffusive.radial_pull(problem, base))


def printed_independent(
    problem: TwoLayerMixture, base: Statistics, *, c_delta: float = 1.0
) -> LinearDiffusion:
    """Limit with independent classes, as the caption of BGJ Figure 11 says.

    Proposition 5.1 itself has the right correlation of -1/3.
    """
    return _with_noise_between(problem, base, c_delta, 0.0)


def printed_noise(
    problem: TwoLayerMixture, base: Statistics, *, c_delta: float = 1.0
) -> LinearDiffusion:
    r"""Limit with :math:`-3 \alpha^2 a_i a_j` between classes, as in BGJ Section 9.5.

    Proposition 5.1 itself has the right :math:`-\alpha^2 a_i a_j`.
    """
    return _with_noise_between(problem, base, c_delta, 3.0)


def printed_drift(
    problem: TwoLayerMixture, statistics: Statistics, *, sides: ArrayLike | None = None
) -> Statistics:
    r"""Effective dynamics of the XOR mixture of BGJ Proposition 9.2 as printed.

    The line of :math:`\dot m^\nu` has :math:`\sigma(-v \cdot g(\pm m^\nu))` for
    :math:`\sigma(v \cdot g(\pm m^\nu))`; that of :math:`\dot v` is right.
    """
    right = limit.drift(problem, statistics, sides=sides)
    o = limit.outputs(problem, statistics, sides=sides)
    on = limit.activity(problem, statistics, sides=sides)
    change = np.where(problem.labels == 0, expit(-o) - expit(o), 0.0) * problem.weights
    extra = (on * change[..., None, :]) @ problem.centroids
    return right._replace(m=right.m - np.asarray(statistics.v)[..., None] * extra)


def printed_limit_loss(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Loss of the XOR mixture at infinite precision of BGJ Section 9.3, shape (...).

    Its last term is :math:`\tfrac14 \log(1 + e^{-v \cdot g(-m^\nu)})` for
    :math:`\tfrac14 \log(1 + e^{v \cdot g(-m^\nu)})`.
    """
    o = limit.outputs(problem, statistics)
    wrong = (problem.labels == 0) & (limit.lines(problem).side == -1)
    return np.asarray(limit.loss(problem, statistics) - o @ (wrong * problem.weights))


def printed_block_drift(
    problem: TwoLayerMixture, statistics: Statistics, *, sides: ArrayLike | None = None
) -> Statistics:
    r"""Effective dynamics of the XOR mixture by the reduction of BGJ Section 9.4.

    There each label is "exactly the ballistic limit of the two-layer GMM studied in Section
    8", which has the gain 1/2 for 1/4. The basins are the same; thresholds, sizes and rates
    are not.
    """
    doubled = limit.drift(replace(problem, ridge=0.5 * problem.ridge), statistics, sides=sides)
    return Statistics(2.0 * doubled.v, 2.0 * doubled.m, 2.0 * doubled.R_perp)


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


def printed_kink_response(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Limit of :math:`A_i` where :math:`m_i = 0` by BGJ Remark 7: zero, shape (K, d).

    Right for the XOR mixture by its symmetry; in the binary mixture the limit is the average
    of the two one-sided ones, ``limit.response(..., kink=0.5)``.
    """
    vanishing = ~np.any(np.asarray(statistics.m), axis=-1, keepdims=True)
    return np.where(vanishing, 0.0, limit.response(problem, statistics))


def printed_loss(place: FixedSet) -> float:
    r"""Loss on the quarter circle of the binary mixture as printed in BGJ Section 8.2.

    :math:`\tfrac12 (\log 2 + \log(1 + e^{-C}) + \alpha C)`, for :math:`\alpha C` without the
    factor one half; elsewhere the right :attr:`~FixedSet.loss`.
    """
    if len(place.occupied) != 1:
        return place.loss
    return float(place.loss - 0.5 * place.problem.ridge * place.classes.sizes[place.occupied[0]])


def printed_sizes(problem: TwoLayerMixture) -> Array:
    r"""Sizes of the classes of the XOR mixture by BGJ Proposition 9.3: logit(-4 alpha).

    Not defined; Section 5 has the right :math:`-\mathrm{logit}(4 \alpha)`.
    """
    return np.full(classes(problem).sizes.shape, math.nan)


def printed_gradient_covariance(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Second moments of the binary mixture at infinite precision of BGJ Section 8.3.

    For :math:`m_1 m_2 < 0` they have a plus sign between the two neurons.
    """
    right = limit.gradient_covariance(problem, statistics)
    side = np.tile(np.sign(np.asarray(statistics.m)[:, 0]), 2)
    return np.where(np.outer(side, side) < 0, -right, right)


def printed_covariance(statistics: Statistics, *, precision: float) -> Array:
    r"""Covariance of the preactivations by BGJ Lemma 8.1 as printed, shape (K, K).

    With independent signal noise :math:`Z_{i,\mu}` for each neuron.
    """
    m = np.asarray(statistics.m)
    right = preactivation.covariance(statistics, precision=precision)
    return right - (m @ m.T - np.diag(np.square(m).sum(axis=1))) / precision


def printed_penalty(statistics: Statistics) -> float:
    r"""Squared norm of the parameters by BGJ Lemma 9.1, which lacks :math:`|m_i|^2`."""
    return preactivation.penalty(statistics) - float(np.square(statistics.m).sum())


def printed_gram_gradient(noise_parts: Array, j: int, k: int) -> Array:
    r"""Gradient of :math:`R^\perp_{jk}` by BGJ (9.3), with the two indices exchanged."""
    parts = _validate.finite("noise_parts", noise_parts, shape=(None, None))
    j = _validate.integer("j", j, least=0, most=len(parts) - 1)
    k = _validate.integer("k", k, least=0, most=len(parts) - 1)
    gradient = np.zeros_like(parts)
    gradient[j] += parts[j]
    gradient[k] += parts[k]
    return gradient


def printed_exponential_moment_bound(
    slope: float, m: float, square: float, *, precision: float
) -> float:
    r"""Return the bound :math:`e^{a m + a^2 R_{ii} / (2 \lambda)}` of BGJ Fact 8.1.

    With :math:`R_{ii} = |W_i|^2 - m^2`, for one signal direction.
    """
    slope, m = _validate.number("slope", slope), _validate.number("m", m)
    square = _validate.number("square", square)
    precision = _validate.positive("precision", precision)
    gram = _validate.non_negative("square - m**2", square - m**2)
    return math.exp(slope * m + 0.5 * slope**2 * gram / precision)


def printed_negative_probability(m: float, square: float, *, precision: float) -> float:
    """Probability that an input is not answered by BGJ Lemma 10.2: its bound, as an equality."""
    return preactivation.negative_probability_bound(m, square, precision=precision)


def _with_noise_between(
    problem: TwoLayerMixture, base: Statistics, c_delta: float, factor: float
) -> LinearDiffusion:
    """Correct limit with the noise between classes multiplied by a factor."""
    right = diffusive.around(problem, base, c_delta=c_delta)
    place = locate(problem, base)
    group = np.tile(np.array(place.assignment)[place.members], 2)
    return replace(
        right, noise=np.where(group[:, None] == group, right.noise, factor * right.noise)
    )
