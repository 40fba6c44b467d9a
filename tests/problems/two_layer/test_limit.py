"""Infinite precision: response, drift, loss and noise against independent routes."""

import math
from dataclasses import replace

import numpy as np
import pytest

from companion.effective_dynamics.binary_mixture.printed import (
    printed_gradient_covariance,
    printed_kink_response,
)
from companion.effective_dynamics.xor_mixture import printed_limit_loss, printed_response
from traindyn.problems.base import Sample
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, integrals, limit
from traindyn.problems.two_layer.printed import printed_drift

BINARY = TwoLayerMixture.binary(2, 20, precision=math.inf, ridge=0.1)
XOR = TwoLayerMixture.xor(4, 20, precision=math.inf, ridge=0.07)
TURNED = TwoLayerMixture.xor(3, 20, precision=math.inf, ridge=0.07, mu=(0.6, 0.8), nu=(-0.8, 0.6))
UNEVEN = TwoLayerMixture(
    np.array([[1.0, 0.5], [-2.0, 0.3], [0.1, 0.9]]),
    np.array([1, 0, 1]),
    np.array([0.5, 0.2, 0.3]),
    3,
    20,
    math.inf,
    0.1,
)


def random_statistics(problem, rng):
    """Statistics in general position."""
    factor = rng.normal(size=(problem.width, problem.width))
    return Statistics(
        rng.normal(size=problem.width),
        rng.normal(size=(problem.width, problem.signal)),
        factor @ factor.T,
    )


def packed(statistics):
    """Second layer and signal coordinates as one vector."""
    return np.concatenate([statistics.v, np.ravel(statistics.m)])


def minus_gradient(problem, statistics, loss=limit.loss, h=1e-6):
    """Minus the gradient of the limit loss in (v, m), by central differences."""
    width = problem.width
    u = packed(statistics)
    slopes = []
    for k in range(u.size):
        values = []
        for sign in (1, -1):
            moved = u.copy()
            moved[k] += sign * h
            there = Statistics(moved[:width], moved[width:].reshape(width, -1), statistics.R_perp)
            values.append(loss(problem, there))
        slopes.append((values[1] - values[0]) / (2 * h))
    return np.array(slopes)


def printed_block_drift(problem, here):
    """Drift of XOR by the reduction of BGJ Section 9.4, with the gain 1/2 for 1/4."""
    rate = limit.drift(replace(problem, ridge=problem.ridge / 2), here)
    return Statistics(*(2 * part for part in rate))


@pytest.mark.parametrize("problem", [BINARY, XOR, TURNED, UNEVEN])
def test_drift_is_the_gradient_flow_of_the_loss(problem):
    """Off the kinks; the drift of BGJ Proposition 9.2, its reduction and its loss are rejected."""
    rng = np.random.default_rng(1)
    wrong, reduced, slopes = [], [], []
    for _ in range(10):
        here = random_statistics(problem, rng)
        expected = minus_gradient(problem, here)
        np.testing.assert_allclose(packed(limit.drift(problem, here)), expected, atol=1e-8)
        wrong.append(np.abs(packed(printed_drift(problem, here)) - expected).max())
        reduced.append(np.abs(packed(printed_block_drift(problem, here)) - expected).max())
        slope = minus_gradient(problem, here, loss=printed_limit_loss)
        slopes.append(np.abs(slope - expected).max())
    if problem is XOR or problem is TURNED:
        assert min(np.median(each) for each in (wrong, reduced, slopes)) > 0.02


@pytest.mark.parametrize("problem", [BINARY, XOR, TURNED, UNEVEN])
def test_agrees_with_the_problem_itself(problem):
    """The kernel-side evaluation without noise is another implementation."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        here = random_statistics(problem, rng)
        for one, other in zip(limit.drift(problem, here), problem.limit_drift(here), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-13)
        assert math.isclose(limit.loss(problem, here), problem.population_loss(here))


@pytest.mark.parametrize("problem", [BINARY, replace(XOR, width=2), replace(TURNED, width=2)])
def test_is_the_limit_of_high_precision(problem):
    """BGHJ Proposition 5.18: the gap between the drifts is inverse to the precision."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        overlaps = rng.uniform(0.5, 1.5, size=(2, problem.signal))
        overlaps *= rng.choice([-1.0, 1.0], size=overlaps.shape)
        m = overlaps @ limit.lines(problem).directions
        here = Statistics(rng.normal(size=2), m, 0.3 * np.eye(2))
        gaps, wrong = [], []
        for precision in (1e3, 1e4, 1e5):
            finite = packed(replace(problem, precision=precision).drift(here, c_delta=1.0))
            gaps.append(np.abs(finite - packed(limit.drift(problem, here))).max())
            wrong.append(np.abs(finite - packed(printed_drift(problem, here))).max())
        assert gaps[0] < 1e-2 and gaps[2] < 2e-4
        np.testing.assert_allclose(np.array(gaps[:2]) / gaps[1:], 10.0, rtol=0.2)
        assert problem is BINARY or wrong[2] > 1e-3


def test_response_at_high_precision():
    """Responses of XOR against the integrals; the proof of BGJ Proposition 9.2 has a sign slip."""
    problem = replace(XOR, width=2)
    here = Statistics(np.array([0.7, -1.1]), np.array([[-0.8, 0.4], [0.5, -0.9]]), 0.3 * np.eye(2))
    found = integrals.evaluate(replace(problem, precision=1e5), here, None).A
    np.testing.assert_allclose(limit.response(problem, here), found, atol=1e-4)
    assert np.abs(printed_response(problem, here) - found).max() > 0.1


def test_kink_is_the_average_of_both_sides():
    """m_1 = 0 in the binary mixture; BGJ Remark 7, by which the response is zero, is rejected."""
    sharp = replace(BINARY, precision=1e7)
    for overlap, expected in ((0.6, -0.2102), (-0.6, -0.2898)):
        here = Statistics(np.array([1.0, 1.1]), np.array([[0.0], [overlap]]), 0.4 * np.eye(2))
        found = integrals.evaluate(sharp, here, None).A
        averaged = limit.response(BINARY, here, kink=0.5)
        np.testing.assert_allclose(averaged, found, atol=1e-3)
        assert abs(averaged[0, 0] - expected) < 5e-5
        assert abs(printed_kink_response(BINARY, here)[0, 0] - found[0, 0]) > 0.2
        sides = [
            limit.response(BINARY, here, sides=[[side], [np.sign(overlap)]])[0] for side in (1, -1)
        ]
        np.testing.assert_allclose(averaged[0], np.mean(sides, axis=0), rtol=1e-14)


def test_sides_are_one_sided_limits():
    """At an exact zero each side gives the value just beyond it, and nothing else changes."""
    rng = np.random.default_rng(4)
    here = random_statistics(XOR, rng)
    here.m[1, 0] = 0.0
    sides = np.sign(here.m)
    for side in (1.0, -1.0):
        sides[1, 0] = side
        near = here._replace(m=here.m.copy())
        near.m[1, 0] = side * 1e-9
        one_sided = packed(limit.drift(XOR, here, sides=sides))
        np.testing.assert_allclose(one_sided, packed(limit.drift(XOR, near)), atol=1e-8)
    stacked = np.stack([sides, -sides])
    both = limit.drift(XOR, here, sides=stacked)
    np.testing.assert_array_equal(both.m[0], limit.drift(XOR, here, sides=sides).m)
    np.testing.assert_array_equal(both.v[1], limit.drift(XOR, here, sides=-sides).v)


def exact_covariance(problem, statistics):
    """Covariance of the gradient of the problem itself over its noiseless inputs."""
    point = problem.place(statistics)
    inputs = np.zeros((len(problem.labels), problem.dimension))
    inputs[:, : problem.signal] = problem.centroids
    draws = []
    for c in range(len(inputs)):
        one = problem.gradient(point, Sample(inputs[c : c + 1], np.array([c])))
        draws.append(np.concatenate([one.v, one.W[:, : problem.signal].ravel()]))
    return np.cov(np.array(draws).T, aweights=problem.weights, ddof=0)


@pytest.mark.parametrize("problem", [BINARY, XOR, TURNED, UNEVEN])
def test_gradient_covariance(problem):
    """Exact second moments of full gradients; the printed sign for m_1 m_2 < 0 is rejected."""
    rng = np.random.default_rng(6)
    for _ in range(5):
        here = random_statistics(problem, rng)
        expected = exact_covariance(problem, here)
        np.testing.assert_allclose(limit.gradient_covariance(problem, here), expected, atol=1e-13)
    if problem is BINARY:
        for overlap, differs in ((0.5, False), (-0.5, True)):
            here = Statistics(np.array([0.7, 0.9]), np.array([[0.4], [overlap]]), np.eye(2))
            gap = printed_gradient_covariance(BINARY, here) - exact_covariance(BINARY, here)
            assert (np.abs(gap).max() > 1e-2) == differs


def test_lines_of_parallel_and_scaled_centroids():
    """Multiples share a line with the right side; others have their own."""
    centroids = np.array([[1.0, 1.0], [0.0, 3.0], [-2.0, -2.0], [0.5, 0.5]])
    problem = TwoLayerMixture(
        centroids, np.array([1, 0, 1, 0]), np.full(4, 0.25), 2, 20, math.inf, 0.1
    )
    found = limit.lines(problem)
    assert found.line.tolist() == [0, 1, 0, 0] and found.side.tolist() == [1, 1, -1, 1]
    np.testing.assert_allclose(found.directions[0], np.full(2, math.sqrt(0.5)))


def test_bad_sides_and_centroids_are_refused():
    """Shape and values of sides; a centroid at the origin has no line."""
    here = random_statistics(BINARY, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"sides must have shape \(\.\.\., 2, 1\)"):
        limit.drift(BINARY, here, sides=np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"sides must be \+1 or -1"):
        limit.drift(BINARY, here, sides=np.zeros((2, 1)))
    centred = replace(BINARY, centroids=np.array([[1.0], [0.0]]))
    with pytest.raises(ValueError, match="zero in row 1"):
        limit.lines(centred)
