"""Formulas of BGHJ on the dynamics of the k-Gaussian mixture as printed, where they differ.

Nothing here describes training. These are the wrong variants against which the formulas of
:mod:`traindyn.problems.k_gmm` and :mod:`companion.alignment.training_dynamics.limit` are tested: a
check that confirms ours must reject these.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from scipy.special import logsumexp

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule, default_rule, symmetric_sqrt
from traindyn.problems.k_gmm import KGaussianMixture, Statistics
from traindyn.problems.k_gmm.mixture import checked

__all__ = ["as_printed", "printed_drift", "printed_energy", "printed_limit_drift"]


def as_printed(problem: KGaussianMixture) -> KGaussianMixture:
    """Problem whose effective dynamics is the one printed, to be integrated like ours.

    Returns
    -------
    KGaussianMixture
        With ``drift`` and ``limit_drift`` replaced by :func:`printed_drift` and
        :func:`printed_limit_drift`; everything else, SGD included, is unchanged.
    """
    return _PrintedMixture(**{each.name: getattr(problem, each.name) for each in fields(problem)})


def printed_drift(
    problem: KGaussianMixture, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
) -> Statistics:
    r"""Drift of BGHJ (5.5) and (5.6) as printed.

    .. math::

        \dot R^\perp_{ab} = -\beta R^\perp_{ab}
          + \sum_c (p_a Q_a^{c,b} + p_b Q_b^{c,a})
          - \sum_c \frac{c_\delta p_c}{\lambda^2} \mathrm{Var}(\pi_{Y_c}(a) \pi_{Y_c}(b))
          + \frac{c_\delta p_a}{\lambda} 1_{a=b}

    against :meth:`~traindyn.problems.k_gmm.mixture.KGaussianMixture.drift`: beta for 2 beta, the
    sign of the Q terms and their weight, the corrector. The printed :math:`Q_a^{c,R^\perp_{bb}}` is
    read as
    :math:`E \langle Z, x^{b,\perp} \rangle \pi_{Y_c}(a) = (K_c R^\perp)_{ab} / \lambda`, the
    reading under which it is best; it does not depend on the length of
    :math:`x^{b,\perp}` alone.
    """
    statistics = checked(problem, statistics, single=True)
    c_delta = _validate.non_negative("c_delta", c_delta)
    p, k, precision = problem.weights, problem.k, problem.precision
    rule = default_rule(k) if rule is None else rule
    moments = problem.moments(statistics, rule=rule)
    noise_term = moments.response.sum(axis=0) @ statistics.R_perp / precision
    parallel = problem.coordinates(statistics.m)
    covariance = (statistics.R_perp + parallel @ parallel.T) / precision
    root = symmetric_sqrt(covariance, scale=1.0)
    variance = np.zeros((k, k))
    for c in range(k):
        logits = rule.nodes @ root + statistics.m[:, c]
        pi = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        fourth = (rule.weights[:, None] * pi**2).T @ pi**2
        variance += p[c] * (fourth - moments.second[c] ** 2)
    weighted: Array = p[:, None] * noise_term
    dR_perp = (
        -problem.ridge * statistics.R_perp
        + weighted
        + weighted.T
        - c_delta / precision**2 * variance
        + c_delta / precision * np.diag(p)
    )
    correct = KGaussianMixture.drift(problem, statistics, rule=rule, c_delta=c_delta)
    return Statistics(correct.m, dR_perp)


def printed_limit_drift(problem: KGaussianMixture, statistics: Statistics) -> Statistics:
    """Drift of BGHJ (5.17) and (5.18) as printed: R_perp decays at rate beta, not 2 beta."""
    statistics = checked(problem, statistics, single=True)
    correct = KGaussianMixture.limit_drift(problem, statistics)
    return Statistics(correct.m, -problem.ridge * statistics.R_perp)


def printed_energy(problem: KGaussianMixture, statistics: Statistics) -> float:
    r"""Energy of BGHJ Lemma 5.13 as printed.

    .. math::

        -\sum_a p_a m_{aa} + \sum_a p_a \log \sum_b e^{m_{ab}}
        + \frac\beta2 (\|m\|^2 + \|R^\perp\|^2)

    sums over the wrong index of m;
    :func:`companion.alignment.training_dynamics.limit.energy` is right.
    """
    statistics = checked(problem, statistics, single=True)
    m, R_perp = statistics
    fit = problem.weights @ (logsumexp(m, axis=1) - np.diag(m))
    return float(fit + 0.5 * problem.ridge * (np.sum(m**2) + np.sum(R_perp**2)))


@dataclass(frozen=True, eq=False)
class _PrintedMixture(KGaussianMixture):
    """The mixture with the printed effective dynamics, see :func:`as_printed`."""

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        """Drift as printed."""
        return printed_drift(self, statistics, rule=rule, c_delta=c_delta)

    def limit_drift(self, statistics: Statistics) -> Statistics:
        """Limit of the drift as printed."""
        return printed_limit_drift(self, statistics)
