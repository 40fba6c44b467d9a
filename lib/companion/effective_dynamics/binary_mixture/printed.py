"""Formulas of BGJ on the binary mixture as printed, where they differ from the correct ones.

These are wrong variants, as in :mod:`traindyn.problems.two_layer.printed`: a check that confirms
ours must reject them.
"""

from __future__ import annotations

import math

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer import limit
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture

__all__ = [
    "printed_exponential_moment_bound",
    "printed_gradient_covariance",
    "printed_kink_response",
    "printed_loss",
]


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
    factor one half; elsewhere the right
    :attr:`~traindyn.problems.two_layer.equilibria.FixedSet.loss`.
    """
    if len(place.occupied) != 1:
        return place.loss
    return float(place.loss - 0.5 * place.problem.ridge * place.classes.sizes[place.occupied[0]])


def printed_gradient_covariance(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Second moments of the binary mixture at infinite precision of BGJ Section 8.3.

    For :math:`m_1 m_2 < 0` they have a plus sign between the two neurons.
    """
    right = limit.gradient_covariance(problem, statistics)
    side = np.tile(np.sign(np.asarray(statistics.m)[:, 0]), 2)
    return np.where(np.outer(side, side) < 0, -right, right)


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
