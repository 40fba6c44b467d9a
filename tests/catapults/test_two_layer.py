"""The tangent kernel of a two-layer network at the start."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, chi2

from traindyn.catapults.two_layer import kernel_rate


def tail(level: float, width: int) -> float:
    """Logarithm of the probability that the kernel lies beyond a level on the far side of one.

    The number of active neurons is binomial, and given it the sum is that number and a chi-square
    variable.
    """
    active = np.arange(1, width + 1)
    side = chi2.logsf if level > 1 else chi2.logcdf
    terms = binom.logpmf(active, width, 0.5) + side(level * width - active, active)
    return float(logsumexp(terms))


@pytest.mark.parametrize("level", [0.5, 0.8, 1.2, 1.5, 2.0])
def test_rate_is_that_of_the_exact_tail(level):
    """Cramér's bound (ZHU Proposition B.9.1) could be no bound, or not the best of its form."""
    for width in (50, 400, 3000):
        exact = -tail(level, width) / width
        assert 0 < exact - kernel_rate(level) < 2 * np.log(width) / width
