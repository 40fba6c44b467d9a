"""Population loss, single steps and bounds of BGHJ Section 5.2."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from companion.alignment.training_dynamics import dynamics
from companion.alignment.training_dynamics.printed import (
    as_printed,
    printed_drift,
    printed_limit_drift,
)
from traindyn import gaussian
from traindyn.effective import ode
from traindyn.problems.k_gmm import KGaussianMixture, Point, Statistics
from traindyn.sgd import direct

GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
WEIGHTS = np.array([0.2, 0.3, 0.5])
FALSE_ALARM = 1e-6


def mixture(dimension=30, precision=1.5, support=(4, 0, 11)):
    """Three classes without any symmetry, on shuffled coordinates."""
    return KGaussianMixture(GRAM, WEIGHTS, precision, 0.1, dimension, np.array(support))


def anywhere(seed=0):
    """Statistics without structure."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    return Statistics(0.7 * rng.normal(size=(3, 3)), 0.4 * root @ root.T)


def padded(problem, statistics):
    """A point of `problem`, whose support is the first coordinates, with these statistics."""
    _, small = problem.embed(statistics)
    x = np.zeros((problem.k, problem.dimension))
    x[:, : small.x.shape[1]] = small.x
    return Point(x)


def test_population_gradient_is_the_derivative_of_the_population_loss():
    """BGHJ (5.12) against central differences of (5.11); without the noise term they disagree."""
    problem, point = mixture().embed(anywhere())
    rule = gaussian.gauss_hermite(3, 32)

    def loss(x):
        return dynamics.population_loss(problem, problem.statistics(Point(x)), rule=rule)

    differences = np.empty_like(point.x)
    for index in np.ndindex(*point.x.shape):
        step = np.zeros_like(point.x)
        step[index] = 1e-5
        differences[index] = (loss(point.x + step) - loss(point.x - step)) / 2e-5
    found = dynamics.population_gradient(problem, point, rule=rule).x
    np.testing.assert_allclose(found, differences, atol=1e-9)
    quiet = KGaussianMixture(GRAM, WEIGHTS, 1e9, 0.1, problem.dimension)
    wrong = dynamics.population_gradient(quiet, point, rule=rule).x
    assert np.abs(wrong - differences).max() > 0.01


def test_population_gradient_gives_the_drift_of_the_overlaps():
    """``dm/dt = -gradient . means``, through formulas written apart."""
    problem, point = mixture().embed(anywhere())
    rule = gaussian.gauss_hermite(3, 12)
    pull = dynamics.population_gradient(problem, point, rule=rule).x @ problem.means.T
    drift = problem.drift(problem.statistics(point), rule=rule, c_delta=1.0)
    np.testing.assert_allclose(drift.m, -pull, atol=1e-13)


def test_probability_correction_leaves_a_remainder_of_second_order():
    """BGHJ Lemma 5.11: four times the precision leaves a sixteenth of the remainder."""
    statistics = anywhere()
    limit = softmax(statistics.m.T, axis=1)
    rule = gaussian.gauss_hermite(3, 12)
    remainders = []
    for precision in (256.0, 1024.0):
        problem = mixture(precision=precision)
        mean = problem.moments(statistics, rule=rule).mean
        correction = dynamics.probability_correction(problem, statistics)
        remainders.append(np.abs(mean - limit - correction / precision).max())
    assert remainders[0] / remainders[1] == pytest.approx(16, rel=0.02)


def test_one_step_is_the_step_of_the_simulator():
    """Same draw, same statistics, with the means on any coordinates."""
    problem = mixture()
    point = problem.initial(rng=1)
    path = direct.run(problem, point, [0.0, 0.05], step_size=0.05, rng=2)
    found = dynamics.one_step(problem, point, problem.stream(1, rng=2), step_size=0.05)
    np.testing.assert_allclose(found.m[0], path.statistics.m[1], atol=1e-14)
    np.testing.assert_allclose(found.R_perp[0], path.statistics.R_perp[1], atol=1e-13)


def test_volatility_is_the_covariance_of_one_step():
    """The covariance that vanishes in BGHJ Theorem 5.5, against sampled steps at d = 1000.

    Each entry lies within six standard errors and 2 k / d.
    False alarm about 120 times 2e-9 (Gaussian sums). Without the corrector's share the
    same comparison fails.
    """
    problem, d, n = mixture(1000, support=(0, 1, 2)), 1000, 20_000
    statistics = anywhere()
    point = padded(problem, statistics)
    upper = np.triu_indices(3)
    moved = []
    for stream in np.random.default_rng(3).spawn(4):
        step = dynamics.one_step(
            problem, point, problem.sample(n // 4, rng=stream), step_size=4.0 / d
        )
        parts = (step.m.reshape(n // 4, -1), step.R_perp[:, *upper])
        moved.append(np.hstack(parts) * d / 4.0)
    centred = np.concatenate(moved) - np.concatenate(moved).mean(axis=0)
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    rule = gaussian.sobol(6, 2**15, rng=0)

    def worst(c_delta):
        expected = dynamics.volatility(problem, statistics, rule=rule, c_delta=c_delta)
        return (np.abs(products.mean(axis=0) - expected) / (error + 1e-3)).max()

    assert worst(4.0) < 6.0
    assert worst(0.0) > 12.0


def test_initial_covariance_is_that_of_the_random_start():
    """Second moments over 4000 draws at d = 400, z-test at 1e-6 over all pairs.

    Products of nearly Gaussian entries; identity covariance is rejected.
    """
    problem, upper, n = mixture(400, support=(0, 1, 2)), np.triu_indices(3), 4000
    draws = [problem.draw_initial_statistics(rng=s) for s in np.random.default_rng(4).spawn(n)]
    entries = np.sqrt(400) * np.array(
        [np.r_[s.m.ravel(), (s.R_perp - np.eye(3) * 397 / 400)[upper]] for s in draws]
    )
    products = entries[:, :, None] * entries[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    critical = stats.norm.isf(FALSE_ALARM / products[0].size / 2)
    expected = dynamics.initial_covariance(problem)
    # 3 / 400: the Wishart factor has d - k degrees of freedom.
    assert (np.abs(products.mean(axis=0) - expected) < critical * error + 2 * 3 / 400).all()
    assert (np.abs(products.mean(axis=0) - np.eye(15)) > critical * error + 2 * 3 / 400).any()


@pytest.mark.parametrize(("precision", "c_delta"), [(0.5, 1.0), (1.5, 8.0), (50.0, 0.0)])
def test_dynamics_stays_within_the_confinement_radius(precision, c_delta):
    """BGHJ Lemma 5.9, also at low precision and large steps; a tenth of the radius is left."""
    problem, start = mixture(precision=precision), mixture().initial_statistics()
    path = ode.solve(
        problem,
        start,
        [1.0, 5.0, 20.0, 60.0],
        c_delta=c_delta,
        rule=gaussian.gauss_hermite(3, 16),
        rtol=1e-5,
        atol=1e-7,
    )
    radius = dynamics.confinement_radius(problem, start, c_delta=c_delta)
    norms = dynamics.total_norm(problem, path.statistics)
    assert (norms < radius).all()
    assert (norms > radius / 10).any()


def test_norms_are_those_of_the_point():
    """The lengths of BGHJ Proposition 5.1 and the distance, against a point in full dimension."""
    problem = mixture()
    x = problem.initial(rng=5).x
    statistics = problem.statistics(Point(x))
    span = np.linalg.qr(problem.means.T)[0]
    np.testing.assert_allclose(
        dynamics.parallel_norms(problem, statistics.m), np.linalg.norm(x @ span, axis=1)
    )
    np.testing.assert_allclose(dynamics.total_norm(problem, statistics), np.linalg.norm(x))
    m = np.stack([statistics.m, 2 * statistics.m])
    stacked = dynamics.parallel_coordinates(problem, m)
    np.testing.assert_allclose(stacked[1], problem.coordinates(2 * statistics.m))
    origin = Statistics(np.zeros((3, 3)), statistics.R_perp)
    np.testing.assert_allclose(
        dynamics.distance(problem, statistics, origin), np.linalg.norm(x @ span)
    )


def test_limit_dynamics_contracts_in_the_distance():
    """Two solutions approach each other at rate beta at least, and not at twice this rate."""
    problem = mixture()
    times = np.array([0.0, 1.0, 4.0, 10.0])
    one, two = (ode.solve_limit(problem, anywhere(seed), times) for seed in (1, 2))
    gap = dynamics.distance(problem, one.statistics, two.statistics)
    assert (gap[1:] <= np.exp(-problem.ridge * times[1:]) * gap[0]).all()
    assert (gap[1:] > np.exp(-2 * problem.ridge * times[1:]) * gap[0]).any()


def test_drift_gap_shrinks_like_one_over_the_precision():
    """Along one path, ratio four for four times the precision."""
    path = Statistics(*(np.stack(pair) for pair in zip(anywhere(1), anywhere(2), strict=True)))
    rule = gaussian.gauss_hermite(3, 12)
    near, far = (
        dynamics.drift_gap(mixture(precision=p), path, rule=rule, c_delta=1.0)
        for p in (1024.0, 256.0)
    )
    np.testing.assert_allclose(far / near, 4.0, rtol=0.02)


def test_printed_mixture_differs_from_the_mixture_in_its_drifts_only():
    """Its drifts are the printed formulas, its steps those of SGD."""
    problem, statistics = mixture(), anywhere()
    wrong, rule = as_printed(problem), gaussian.gauss_hermite(3, 8)
    pairs = (
        (
            wrong.drift(statistics, rule=rule, c_delta=1.0),
            printed_drift(problem, statistics, rule=rule, c_delta=1.0),
        ),
        (wrong.limit_drift(statistics), printed_limit_drift(problem, statistics)),
    )
    for found, expected in pairs:
        np.testing.assert_array_equal(found.m, expected.m)
        np.testing.assert_array_equal(found.R_perp, expected.R_perp)
    point = problem.initial(rng=0)
    ours, theirs = (
        direct.run(p, point, [0, 1], step_size=0.1, rng=1).statistics.m for p in (problem, wrong)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_bad_input_is_named():
    """Wrong shapes, dimensions and signs."""
    problem = mixture()
    with pytest.raises(ValueError, match="rule must have dimension 2 k = 6, got 3"):
        dynamics.volatility(problem, anywhere(), rule=gaussian.gauss_hermite(3, 4), c_delta=1.0)
    with pytest.raises(ValueError, match="c_delta must be non-negative"):
        dynamics.confinement_radius(problem, anywhere(), c_delta=-1.0)
    with pytest.raises(ValueError, match="m must end in the axes"):
        dynamics.parallel_norms(problem, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="step_size must be positive"):
        dynamics.one_step(problem, problem.initial(rng=0), problem.sample(2, rng=1), step_size=0.0)
