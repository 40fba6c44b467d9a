"""Stability of the origin: response, growth rates and thresholds from the full dynamics."""

import math
from dataclasses import replace

import numpy as np
import pytest

from companion.effective_dynamics.binary_mixture.origin import origin_response
from traindyn.effective import ode
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, integrals
from traindyn.problems.two_layer.thresholds import (
    BINARY_RIDGE,
    XOR_RIDGE,
    xor_critical_precision,
    xor_critical_ridge,
)


def binary(precision, ridge=0.0, width=1):
    """Binary mixture."""
    return TwoLayerMixture.binary(width, 20, precision=precision, ridge=ridge)


def xor(precision, ridge=0.0, width=1):
    """XOR mixture."""
    return TwoLayerMixture.xor(width, 20, precision=precision, ridge=ridge)


@pytest.mark.parametrize("kind", [binary, xor])
@pytest.mark.parametrize("precision", [0.3, 2.0, 30.0])
def test_origin_response_against_the_integrals(kind, precision):
    """Elementary expressions against two-dimensional quadrature at v = 0."""
    problem = kind(precision, width=2)
    rng = np.random.default_rng(0)
    for _ in range(3):
        factor = rng.normal(size=(2, 2))
        here = Statistics(np.zeros(2), rng.normal(size=(2, problem.signal)), factor @ factor.T)
        A, A_perp = origin_response(problem, here)
        expected = integrals.evaluate(problem, here)
        np.testing.assert_allclose(A, expected.A, atol=1e-7)
        np.testing.assert_allclose(A_perp, expected.A_perp, atol=1e-7)
        if kind is binary:
            np.testing.assert_allclose(A, -0.25, rtol=1e-14)
            np.testing.assert_allclose(A_perp, 0.0, atol=1e-16)


def measured_growth(problem, c_delta, m):
    """Growth rate of a small neuron, from the end of an integration of the full dynamics.

    The dynamics is homogeneous near zero; the rate at 1e-5 is that at zero up to 1e-5.
    """
    size = 1e-5
    start = Statistics(
        np.array([size]), size * np.asarray(m, dtype=float)[None], np.array([[1e-2 * size**2]])
    )
    path = ode.solve(problem, start, [150.0, 160.0], c_delta=c_delta, rtol=1e-8, atol=1e-17)
    v = path.statistics.v[:, 0]
    return math.log(v[1] / v[0]) / 10.0, v[1]


@pytest.mark.parametrize("precision", [1.0, 5.0, 50.0])
@pytest.mark.parametrize("c_delta", [0.0, 1.0, 5.0])
def test_growth_of_xor_neurons(precision, c_delta):
    """At the threshold a neuron neither grows nor decays; without corrector it is elsewhere."""
    threshold = xor_critical_ridge(precision, c_delta=c_delta)
    found, end = measured_growth(xor(precision, threshold), c_delta, [1.0, 0.0])
    assert end < 1e-3
    assert abs(found) < 2e-5
    plain = xor_critical_ridge(precision)
    assert plain >= threshold
    if c_delta == 5.0 and precision < 10:
        assert abs(found - (plain - threshold)) > 1e-3


@pytest.mark.parametrize("precision", [0.5, 5.0])
@pytest.mark.parametrize("c_delta", [0.0, 3.0])
def test_growth_of_binary_neurons(precision, c_delta):
    """The threshold 1/4 depends neither on the precision nor on the step size."""
    found, end = measured_growth(binary(precision, 0.24), c_delta, [0.3])
    assert end < 1e-3
    assert abs(found - (BINARY_RIDGE - 0.24)) < 2e-5


def test_no_other_direction_grows_faster():
    """Pull along the weights over random directions is largest along a centroid."""
    rng = np.random.default_rng(1)
    for precision in (0.5, 3.0, 40.0):
        problem = xor(precision)
        best = xor_critical_ridge(precision)
        for _ in range(200):
            w = rng.normal(size=3)
            w /= np.linalg.norm(w)
            here = Statistics(np.zeros(1), w[None, :2], np.array([[w[2] ** 2]]))
            A, A_perp = origin_response(problem, here)
            pull = abs(float(A[0] @ w[:2] + A_perp[0, 0]))
            assert pull <= best + 1e-12


def test_values():
    """Known values of the threshold, its limits and its inverse."""
    table = {1: 0.0461, 2: 0.0608, 5: 0.0809, 10: 0.0935, 15: 0.0992, 20: 0.1027}
    table |= {30: 0.1068, 50: 0.1109, 100: 0.1150, 1000: 0.1218}
    for precision, expected in table.items():
        assert abs(xor_critical_ridge(precision) - expected) < 5.1e-5
    assert xor_critical_ridge(math.inf) == XOR_RIDGE
    assert math.isclose(xor_critical_ridge(1e8), XOR_RIDGE, rel_tol=1e-3)
    grid = [xor_critical_ridge(precision) for precision in np.geomspace(1e-6, 1e6, 40)]
    assert np.all(np.diff(grid) > 0)
    for ridge in (1e-4, 0.03, 0.1, 0.12):
        for c_delta in (0.0, 2.0):
            precision = xor_critical_precision(ridge, c_delta=c_delta)
            assert math.isclose(xor_critical_ridge(precision, c_delta=c_delta), ridge, rel_tol=1e-9)
    assert abs(xor_critical_precision(0.1) - 15.915) < 1e-3
    # Far below its other scales it falls with the square of the precision.
    small = [xor_critical_ridge(precision, c_delta=1.0) for precision in (1e-10, 1e-25)]
    assert math.isclose(small[0], 1e30 * small[1], rel_tol=1e-3)
    assert math.isclose(xor_critical_precision(small[1], c_delta=1.0), 1e-25, rel_tol=1e-9)


def test_infeasible_requests_are_refused():
    """No precision is enough from 1/8 on; weights and precisions that make no sense."""
    for ridge in (0.125, 0.2):
        with pytest.raises(ValueError, match=r"ridge must be below 0\.125, the threshold"):
            xor_critical_precision(ridge)
    with pytest.raises(ValueError, match="ridge must be positive"):
        xor_critical_precision(0.0)
    with pytest.raises(ValueError, match="precision must be positive"):
        xor_critical_ridge(0.0)
    with pytest.raises(ValueError, match="c_delta must be non-negative"):
        xor_critical_ridge(1.0, c_delta=-1.0)
    for c_delta, precision in ((1e300, 1.0), (1.0, 1e-100)):
        with pytest.raises(FloatingPointError, match="c_delta must leave a ray whose cosine"):
            xor_critical_ridge(precision, c_delta=c_delta)
    for c_delta in (0.0, 1.0, 1e300):
        with pytest.raises(FloatingPointError, match="ridge must have a critical precision"):
            xor_critical_precision(1e-300, c_delta=c_delta)
    here = Statistics(np.zeros(1), np.zeros((1, 2)), np.zeros((1, 1)))
    with pytest.raises(ValueError, match="zero for neuron 0"):
        origin_response(xor(1.0), here)
    with pytest.raises(ValueError, match=r"problem\.precision must be finite"):
        origin_response(replace(xor(1.0), precision=math.inf), here)
