"""Fixed points at finite precision: brute-force drifts, flows, thresholds."""

import math

import numpy as np
import pytest

from traindyn.effective import ode
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, integrals
from traindyn.problems.two_layer.finite_equilibria import good
from traindyn.problems.two_layer.thresholds import xor_critical_precision

SIZE = 200_000
DEVIATIONS = 5.5  # two-sided false alarm of 4e-8, for at most 26 entries


def binary(precision, width=2, ridge=0.1):
    """Binary mixture."""
    return TwoLayerMixture.binary(width, 20, precision=precision, ridge=ridge)


def xor(precision, width=4, ridge=0.1):
    """XOR mixture."""
    return TwoLayerMixture.xor(width, 20, precision=precision, ridge=ridge)


def drift_scores(problem, here, c_delta, rng):
    """Drift estimated by plain sampling, in standard errors."""
    v, m, gram = here
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    sd = 1 / math.sqrt(problem.precision)
    c = rng.choice(len(problem.labels), p=problem.weights, size=SIZE)
    x = problem.centroids[c] + sd * rng.normal(size=(SIZE, problem.signal))
    noise = sd * rng.normal(size=(SIZE, len(v))) @ root.T
    z = x @ m.T + noise
    e = 1 / (1 + np.exp(-np.maximum(z, 0) @ v)) - problem.labels[c]
    felt = (z > 0) * e[:, None]
    by_v = -felt * z - problem.ridge * v
    by_m = -(v * felt)[:, :, None] * x[:, None, :] - problem.ridge * m
    flow = (v * felt)[:, :, None] * noise[:, None, :]
    kick = c_delta / problem.precision * (v * felt)[:, :, None] * (v * felt)[:, None, :]
    by_gram = kick - flow - np.swapaxes(flow, 1, 2) - 2 * problem.ridge * gram
    draws = np.concatenate([by_v, by_m.reshape(SIZE, -1), by_gram.reshape(SIZE, -1)], axis=1)
    spread = draws.std(axis=0)
    kept = spread > 1e-14
    return draws.mean(axis=0)[kept] / spread[kept] * math.sqrt(SIZE)


@pytest.mark.parametrize(("kind", "precision"), [(binary, 1.0), (xor, 20.0)])
def test_good_point_stands_still(kind, precision):
    """Sampled drift is zero within 5.5 errors (false alarm 1e-6); five per cent off it is not."""
    problem = kind(precision)
    here, residual = good(problem, c_delta=1.0)
    assert residual < 1e-12
    scores = drift_scores(problem, here, 1.0, np.random.default_rng(0))
    assert np.abs(scores).max() < DEVIATIONS
    off = here._replace(v=1.05 * here.v)
    assert np.abs(drift_scores(problem, off, 1.0, np.random.default_rng(0))).max() > DEVIATIONS


def test_flow_ends_there():
    """Training by the effective dynamics from nearby converges to it, with step size and ridge."""
    problem = binary(2.0)
    best = good(problem, c_delta=2.0).statistics
    start = Statistics(np.array([0.8, -1.1]), np.array([[0.9], [-0.7]]), 0.2 * np.eye(2))
    end = ode.solve(problem, start, [400.0], c_delta=2.0).statistics
    for found, expected in zip(end, best, strict=True):
        np.testing.assert_allclose(found[0], expected, atol=1e-6)
    np.testing.assert_allclose(best.v, [0.9585, -0.9585], atol=1e-4)
    np.testing.assert_allclose(best.R_perp, [[0.1775, -0.0220], [-0.0220, 0.1775]], atol=1e-4)


def test_known_values():
    """Known values at ridge 0.1 and c_delta 1."""
    table = {
        1.0: (0.7984, 0.8505, 0.1492, 0.4688),
        2.0: (0.9726, 0.9915, 0.0879, 0.3721),
        5.0: (1.0988, 1.1020, 0.0342, 0.2873),
        20.0: (1.1594, 1.1596, 0.0075, 0.2391),
        100.0: (1.1739, 1.1739, 0.0014, 0.2263),
    }
    for precision, (v, m, gram, data) in table.items():
        problem = binary(precision)
        here = good(problem, c_delta=1.0).statistics
        found = (here.v[0], here.m[0, 0], here.R_perp[0, 0])
        np.testing.assert_allclose(found, (v, m, gram), atol=6e-5)
        assert abs(integrals.evaluate(problem, here).loss - data) < 6e-5


def test_high_precision_limit():
    """Sizes tend to those at infinite precision like its inverse."""
    for kind, size in ((binary, math.sqrt(math.log(4.0))), (xor, math.sqrt(math.log(1.5)))):
        gaps = [
            size - good(kind(precision), c_delta=1.0).statistics.v[0] for precision in (1e3, 1e4)
        ]
        assert 0 < gaps[1] < gaps[0] < 0.03


def test_wider_networks_split_neurons():
    """Groups of aligned neurons act as one: same outputs, drift zero in all coordinates."""
    problem = binary(2.0, width=4)
    narrow = good(binary(2.0), c_delta=1.0).statistics
    wide = good(problem, [1, 0, 0, 1], [0.3, 0.5, 0.5, 0.7], c_delta=1.0).statistics
    np.testing.assert_allclose(np.square(wide.v) @ [0, 1, 1, 0], narrow.v[0] ** 2)
    np.testing.assert_allclose(wide.m[3] / wide.v[3], narrow.m[1] / narrow.v[1])
    assert np.linalg.matrix_rank(wide.R_perp, tol=1e-10) == 2
    scores = drift_scores(problem, wide, 1.0, np.random.default_rng(2))
    assert np.abs(scores).max() < DEVIATIONS


def test_good_point_dies_at_the_threshold():
    """Its size falls to zero like a square root as the precision falls to the critical one."""
    critical = xor_critical_precision(0.1, c_delta=1.0)
    sizes = [good(xor(factor * critical), c_delta=1.0).statistics.v[0] for factor in (1.02, 1.005)]
    assert math.isclose(sizes[0] / sizes[1], 2.0, rel_tol=0.05)
    with pytest.raises(ValueError, match=r"precision must be above 15\.9196"):
        good(xor(0.995 * critical), c_delta=1.0)


def test_infeasible_requests_are_refused():
    """Ridges above the thresholds, assignments without a class, other mixtures."""
    with pytest.raises(ValueError, match=r"ridge must be below 0\.25, .* got 0\.3"):
        good(binary(5.0, ridge=0.3))
    with pytest.raises(ValueError, match=r"ridge must be below 0\.102698"):
        good(xor(20.0, ridge=0.11))
    with pytest.raises(ValueError, match=r"ridge must be below 0\.1026.* got 0\.2$"):
        good(xor(20.0, ridge=0.2))
    with pytest.raises(ValueError, match="each of the 4 classes a neuron"):
        good(xor(50.0), [0, 1, 2, 2])
    with pytest.raises(ValueError, match="each of the 2 classes a neuron"):
        good(binary(5.0, width=1))
    with pytest.raises(ValueError, match="shares must be positive"):
        good(binary(5.0), shares=[1.0, 0.0])
    lone = TwoLayerMixture(np.ones((1, 1)), np.array([1]), np.ones(1), 1, 20, 1.0, 0.1)
    with pytest.raises(ValueError, match="binary or the XOR mixture"):
        good(lone)
