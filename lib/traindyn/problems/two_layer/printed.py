"""Formulas of BGJ Sections 4, 5, 8 and 9 as printed, where they differ from the correct ones.

Nothing here describes training. These are the wrong variants against which the correct
formulas of :mod:`traindyn.problems.two_layer` are tested: a check that confirms ours must
reject these. Each has the arguments of its correct counterpart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from traindyn._types import Array
from traindyn.diffusion import LinearDiffusion
from traindyn.problems.two_layer import diffusive, limit, preactivation
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture

__all__ = [
    "printed_around",
    "printed_covariance",
    "printed_drift",
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


def printed_drift(
    problem: TwoLayerMixture, statistics: Statistics, *, sides: ArrayLike | None = None
) -> Statistics:
    r"""Effective dynamics of XOR as BGJ Proposition 9.2 and BGHJ Proposition 5.18 print it.

    The line of :math:`\dot m^\nu` has :math:`\sigma(-v \cdot g(\pm m^\nu))` for
    :math:`\sigma(v \cdot g(\pm m^\nu))`; that of :math:`\dot v` is right.
    """
    right = limit.drift(problem, statistics, sides=sides)
    o = limit.outputs(problem, statistics, sides=sides)
    on = limit.activity(problem, statistics, sides=sides)
    change = np.where(problem.labels == 0, expit(-o) - expit(o), 0.0) * problem.weights
    extra = (on * change[..., None, :]) @ problem.centroids
    return right._replace(m=right.m - np.asarray(statistics.v)[..., None] * extra)


def printed_covariance(statistics: Statistics, *, precision: float) -> Array:
    r"""Covariance of the preactivations by BGJ Lemma 8.1 as printed, shape (K, K).

    With independent signal noise :math:`Z_{i,\mu}` for each neuron.
    """
    m = np.asarray(statistics.m)
    right = preactivation.covariance(statistics, precision=precision)
    return right - (m @ m.T - np.diag(np.square(m).sum(axis=1))) / precision
