"""Infinite-precision dynamics: the probability of the own class."""

import numpy as np

from traindyn.problems.k_gmm.limit import own_probability


def test_own_probability_is_the_softmax_and_does_not_overflow():
    """Log-odds form against the definition, and at overlaps where exp overflows."""
    m, k = np.array([-2.0, 0.0, 3.0]), 5
    expected = np.exp(m) / (np.exp(m) + (k - 1) * np.exp(-m / (k - 1)))
    np.testing.assert_allclose(own_probability(m, k), expected, rtol=1e-14)
    np.testing.assert_array_equal(own_probability([-2000.0, 2000.0], k), [0.0, 1.0])
