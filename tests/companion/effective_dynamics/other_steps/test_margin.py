"""The rule over margins: against adaptive quadrature, and refusals."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from companion.effective_dynamics.other_steps.margin import margins
from traindyn.problems.spiked import Statistics


@pytest.mark.parametrize(("m", "spread"), [(0.5, 0.0), (0.5, 1.0), (1.0, 3.0), (0.0, 30.0)])
def test_means_of_the_curvature(m, spread):
    """Of the second and fourth derivative of the logistic loss, narrow in a wide law."""

    def curvature(s):
        h = expit(s) * expit(-s)
        return np.array([h, h * (1 - 6 * h)])

    variance = max(spread**2, m**2)
    mean, off, weights = margins(Statistics(np.array(m), np.array(variance - m**2)), precision=1.0)
    found = curvature(mean + off) @ weights
    for index, value in enumerate(found):
        expected, _ = integrate.quad(
            lambda s, i=index: curvature(s)[i] * stats.norm.pdf(s, m, np.sqrt(variance)),
            m - 9 * np.sqrt(variance),
            m + 9 * np.sqrt(variance),
            points=[-2.0, 0.0, 2.0],
            limit=500,
            epsabs=1e-13,
        )
        assert abs(value - expected) < 1e-9


def test_refuses_margins_that_are_too_wide():
    """Their rule would have too many points."""
    with pytest.raises(ValueError, match="statistics must leave"):
        margins(Statistics(np.array(0.0), np.array(1e12)), precision=1.0)
