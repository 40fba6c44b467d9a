"""The circle of aligned neurons: known values, sampled drifts, and its quarter at no noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from companion.effective_dynamics.binary_mixture.ring import quarter_circle, ring, single_response
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, integrals
from traindyn.problems.two_layer.finite_equilibria import good

SIZE = 200_000
DEVIATIONS = 5.5  # two-sided false alarm of 4e-8, for at most 26 entries
RADIUS = math.sqrt(math.log(4.0))


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


def test_known_values():
    """Known values at ridge 0.1 and c_delta 1; the ring is not a good point at low precision."""
    for precision, squares in ((1.0, 0.726), (2.0, 0.984), (5.0, 1.2145)):
        here = ring(binary(precision), c_delta=1.0).statistics
        assert abs(np.square(here.m).sum() - squares) < 5.1e-4
    best, aligned = (find(binary(1.0), c_delta=1.0).statistics for find in (good, ring))
    assert best.v[0] - np.linalg.norm(aligned.v) > 1e-3
    # The limit of high precision.
    here = ring(binary(1e6)).statistics
    assert math.isclose(np.square(here.v).sum(), math.log(4.0), rel_tol=1e-5)


def test_ring_is_a_circle_of_fixed_points():
    """Any shares give a fixed point of the full drift; unaligned neurons do not."""
    problem = binary(1.0)
    for shares in ([1.0, 1.0], [0.9, 0.1]):
        here, residual = ring(problem, shares, c_delta=1.0)
        assert residual < 1e-12
        scores = drift_scores(problem, here, 1.0, np.random.default_rng(1))
        assert np.abs(scores).max() < DEVIATIONS
    off = here._replace(R_perp=np.diag(np.diag(here.R_perp)))
    wrong = drift_scores(problem, off, 1.0, np.random.default_rng(1))
    assert np.abs(wrong).max() > DEVIATIONS


def test_single_response():
    """One-dimensional quadrature against the integrals of the problem, both mixtures."""
    for problem in (binary(2.0, width=1), xor(7.0, width=1)):
        rng = np.random.default_rng(3)
        for _ in range(3):
            v, m, gram = rng.normal(), rng.normal(size=problem.signal), rng.uniform(0.1, 2.0)
            A, A_perp, B = single_response(problem, v, m, gram)
            expected = integrals.evaluate(
                problem, Statistics(np.array([v]), m[None], np.array([[gram]]))
            )
            np.testing.assert_allclose(A, expected.A[0], atol=1e-9)
            assert abs(A_perp - expected.A_perp[0, 0]) < 1e-9
            assert abs(B - expected.B[0, 0]) < 1e-9


def test_quarter_circles_are_limits_of_rings():
    """BGJ Proposition 4.2: the same shares at high precision; the other circle is far away."""
    problem = binary(1e6)
    here = ring(problem, [0.36, 0.64]).statistics
    for sign in (1.0, -1.0):
        found = quarter_circle(problem, sign * RADIUS * np.array([0.6, 0.8]))
        gap = max(np.abs(a - b).max() for a, b in zip(found, here, strict=True))
        assert gap < 1e-4 if sign * here.v[0] > 0 else gap > 1


def test_requests_that_make_no_sense_are_refused():
    """Ridges above the threshold, shares, places off the circle, other mixtures."""
    with pytest.raises(ValueError, match=r"ridge must be below 0\.25, .* got 0\.3"):
        ring(binary(5.0, ridge=0.3))
    with pytest.raises(ValueError, match="shares must be positive"):
        ring(binary(5.0), [1.0, 0.0])
    with pytest.raises(ValueError, match=r"problem\.precision must be finite"):
        single_response(replace(binary(1.0), precision=math.inf), 1.0, np.ones(1), 1.0)
    with pytest.raises(ValueError, match=r"squares that sum to 1\.386294361\d* in class 0, got 1"):
        quarter_circle(binary(5.0), [0.6, 0.8])
    for a in ([RADIUS, 0.0], [0.6 * RADIUS, -0.8 * RADIUS]):
        with pytest.raises(ValueError, match="all positive or all negative"):
            quarter_circle(binary(5.0), a)
    with pytest.raises(ValueError, match="problem must be a binary mixture"):
        quarter_circle(xor(5.0), [0.6 * RADIUS] * 4)
    with pytest.raises(ValueError, match=r"ridge must be below 0\.25"):
        quarter_circle(binary(5.0, ridge=0.3), [0.6, 0.8])
