"""A late neuron: its turning rate from the full drift of a network that has learned."""

import math

import numpy as np
import pytest

from companion.alignment.xor_alignment.late import turning_rate
from traindyn import gaussian
from traindyn.problems.two_layer import Statistics, TwoLayerMixture
from traindyn.problems.two_layer.spectra import class_sum
from traindyn.problems.two_layer.thresholds import xor_critical_ridge

OVERLAP = 0.02


def late_drift(ridge, precision, u, *, rng=0):
    """Drift of a tiny fifth neuron of unit size beside four that have learned."""
    size, tiny = math.sqrt(class_sum(ridge, precision)), 1e-4
    problem = TwoLayerMixture.xor(5, 100, precision=precision, ridge=ridge)
    v = np.r_[size * np.array([1, 1, -1, -1]), u * tiny]
    m = np.vstack([size * problem.centroids, np.full((1, 2), OVERLAP * tiny)])
    R = np.zeros((5, 5))
    R[4, 4] = tiny**2
    drift = problem.drift(Statistics(v, m, R), c_delta=0.0, rule=gaussian.sobol(5, 2**13, rng=rng))
    return drift.m[4] / (OVERLAP * tiny), drift.v[4] / (u * tiny), drift.R_perp[4, 4] / tiny**2


@pytest.mark.parametrize(("ridge", "precision"), [(0.03, 10.0), (0.05, 40.0), (0.02, 3.0)])
@pytest.mark.parametrize("u", [0.3, -1.0])
def test_against_the_drift(ridge, precision, u):
    """The overlaps turn at +-u gamma, the sizes shrink with the ridge.

    Tolerance: quadrature with 2**8 nodes per sign pattern, 3e-3 in units of the rate before
    learning.
    """
    gamma = turning_rate(ridge, precision)
    runs = [late_drift(ridge, precision, u, rng=k) for k in range(4)]
    own, shrink, square = (np.mean(part, axis=0) for part in zip(*runs, strict=True))
    before = 0.25 * math.sqrt(precision / (2 * math.pi))
    tolerance = 0.02 * before * max(1.0, abs(u))
    np.testing.assert_allclose(own + ridge, [u * gamma, -u * gamma], atol=tolerance)
    assert abs(shrink + ridge) < tolerance
    assert abs(square + 2 * ridge) < 2 * tolerance
    assert np.abs(own + ridge - u * before * np.array([1, -1])).max() > 5 * tolerance


def test_limits():
    """Twice the ridge in units of the ReLU's density at high precision, nothing above threshold."""
    for ridge in (0.02, 0.08):
        scaled = [turning_rate(ridge, x) * math.sqrt(2 * math.pi / x) for x in (1e4, 1e6)]
        assert scaled[1] == pytest.approx(2 * ridge, rel=0.01)
        assert abs(scaled[1] - 2 * ridge) < 0.2 * abs(scaled[0] - 2 * ridge)
    with pytest.raises(ValueError, match=r"ridge must be below"):
        turning_rate(xor_critical_ridge(10.0) + 1e-6, 10.0)
