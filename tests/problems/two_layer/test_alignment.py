"""Alignment from statistics: against the point itself, samples, and a plain scan in time."""

import numpy as np
import pytest

from companion.alignment.xor_alignment.start import second_layer_time
from traindyn import gaussian, linalg
from traindyn.problems.two_layer import Statistics, TwoLayerMixture
from traindyn.problems.two_layer.alignment import feature_space, outlier_alignment, span_alignment
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.sgd import reduced
from traindyn.spectra import blocks


def xor(width=8, dimension=60, **options):
    """XOR mixture."""
    return TwoLayerMixture.xor(width, dimension, precision=10.0, ridge=0.03, **options)


def start(problem, seed=0):
    """Statistics and a point with visible overlaps."""
    point = problem.initial(rng=seed)
    point.W[:, :2] += np.random.default_rng(seed).normal(size=(problem.width, 2))
    return point, problem.statistics(point)


@pytest.mark.parametrize("turned", [False, True])
def test_spans_against_the_point(turned):
    """Signal and features from vectors and centroids (BGHJ Theorem 2.7, MDL Theorem 13.7)."""
    a = np.sqrt(0.5)
    problem = xor(mu=(a, a), nu=(a, -a)) if turned else xor()
    point, statistics = start(problem)
    expected = linalg.alignment(point.W, np.eye(60)[:, :2])
    np.testing.assert_allclose(span_alignment(statistics), expected, rtol=1e-12)
    features = np.maximum(point.W @ problem.means.T, 0.0)
    basis = feature_space(problem, statistics)
    np.testing.assert_allclose(basis @ (basis.T @ features), features, atol=1e-12)
    assert basis.shape == (8, 4)
    few = FixedSet(problem, (0, 0, 0, 2, 2, 2, 2, 2)).point()
    assert feature_space(problem, few).shape == (8, 2)


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_outliers_against_many_samples(matrix):
    """The alignment of v in BGHJ Theorem 2.6 and MDL Theorem 13.6, on 2e5 inputs.

    The other matrix is told apart.
    """
    problem = xor()
    point, statistics = start(problem, seed=3)
    sample = problem.sample(200_000, rng=1)
    block = blocks.operator(problem, matrix, (8, 8), point, sample).dense()
    seen = float(linalg.alignment(point.v, np.linalg.eigh(block)[1][:, -4:]))
    found = outlier_alignment(problem, statistics, matrix)
    assert found == pytest.approx(seen, abs=0.02)
    other = "g_matrix" if matrix == "hessian" else "hessian"
    assert abs(outlier_alignment(problem, statistics, other) - seen) > 0.03


def test_time_is_that_of_a_scan():
    """Bisection finds the first crossing of a path that crosses once."""
    problem, times = xor(dimension=2000), np.arange(0, 31, 3.0)
    path = reduced.run(
        problem,
        problem.draw_initial_statistics(rng=2),
        times,
        step_size=1 / 2000,
        rng=1,
    ).statistics
    rule = gaussian.sobol(10, 2**9, rng=0)
    values = np.array(
        [
            outlier_alignment(problem, Statistics(*row), "hessian", rule=rule)
            for row in zip(*path, strict=True)
        ]
    )
    first = int(np.argmax(values >= 0.9))
    assert 0 < first < 10 and (values[first:] >= 0.9).all()
    found = second_layer_time(problem, times, path, 0.9, rule=rule)
    assert found == times[first]
    early = Statistics(*(part[:2] for part in path))
    assert second_layer_time(problem, times[:2], early, 0.9, rule=rule) == np.inf
    late = Statistics(*(part[-2:] for part in path))
    assert second_layer_time(problem, times[-2:], late, 0.9, rule=rule) == times[-2]
    with pytest.raises(ValueError, match="level must be below 1"):
        second_layer_time(problem, times, path, 1.0)
