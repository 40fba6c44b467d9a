"""k-Gaussian mixture: data law, loss, curvature, statistics, drift."""

import tracemalloc

import numpy as np
import pytest
from numba import njit
from scipy import stats

from companion.alignment.training_dynamics.printed import printed_drift, printed_limit_drift
from traindyn import gaussian, linalg
from traindyn.problems import Problem, Sample
from traindyn.problems.k_gmm import KGaussianMixture, Point, Statistics
from traindyn.problems.k_gmm.printed import literal_ridge

# Nothing is symmetric on purpose: an exchanged index must show.
GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
WEIGHTS = np.array([0.2, 0.3, 0.5])
FALSE_ALARM = 1e-6


def mixture(**changes):
    """Three classes without any symmetry."""
    options = {
        "gram": GRAM,
        "weights": WEIGHTS,
        "precision": 1.5,
        "ridge": 0.1,
        "dimension": 12,
        "support": np.array([7, 0, 10]),
    }
    return KGaussianMixture(**options | changes)


def some_point(problem, seed=0):
    """Draw a point of order-one logits."""
    rng = np.random.default_rng(seed)
    return Point(rng.normal(size=(problem.k, problem.dimension)))


def some_statistics(seed=0, scale=1.0):
    """Draw statistics without structure."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3)) * scale
    return Statistics(rng.normal(size=(3, 3)) * scale, root @ root.T)


# ---------------------------------------------------------------------- data law


def test_it_is_a_problem():
    """A member missing from the protocol would only fail in the rooms above."""
    assert isinstance(mixture(), Problem)


def test_means_have_the_given_gram_matrix_and_support():
    """The Cholesky factor on the support must reproduce the Gram matrix, not its transpose."""
    problem = mixture()
    np.testing.assert_allclose(problem.means @ problem.means.T, GRAM, atol=1e-15)
    assert set(np.flatnonzero(problem.means.any(axis=0))) == {0, 7, 10}


def test_orthonormal_puts_the_means_where_the_figures_have_them():
    """Coordinate 50 i of the source is counted from one."""
    problem = KGaussianMixture.orthonormal(10, 500, precision=10.0, ridge=0.01, spacing=50)
    assert problem.means.argmax(axis=1).tolist() == list(range(49, 500, 50))
    np.testing.assert_allclose(problem.weights, 0.1)


def test_nothing_of_size_k_times_d_is_allocated():
    """Ten million dimensions must cost nothing until a point is drawn."""
    tracemalloc.start()
    problem = KGaussianMixture.orthonormal(10, 10**7, precision=10.0, ridge=0.01, spacing=50)
    statistics = problem.draw_initial_statistics(rng=0)
    problem.reduced_state(statistics)
    problem.reduced_kernel()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6
    np.testing.assert_allclose(statistics.R_perp, np.eye(10), atol=5e-3)


def noise_variance_p_value(problem, sample):
    """P-value of ``precision * |noise|^2 ~ chi2`` under the problem's own precision."""
    noise = sample.inputs - problem.means[sample.labels]
    return 2 * min(
        getattr(stats.chi2(noise.size), side)(problem.precision * np.sum(noise**2))
        for side in ("cdf", "sf")
    )


def test_sample_follows_its_law():
    """Labels, means and noise of a sample; 1/lambda^2 for the variance must be rejected.

    False alarm 1e-6 for each of three tests. With 2.4e5 noise entries a relative error of
    1.5 % in the variance is found almost surely; the control is off by 50 %.
    """
    problem = mixture()
    sample = problem.sample(20_000, rng=5)
    counts = np.bincount(sample.labels, minlength=3)
    assert stats.chisquare(counts, counts.sum() * WEIGHTS).pvalue > FALSE_ALARM
    noise = sample.inputs - problem.means[sample.labels]
    for c in range(3):
        own = noise[sample.labels == c]
        z2 = problem.precision * len(own) * np.sum(own.mean(axis=0) ** 2)
        assert stats.chi2(12).sf(z2) > FALSE_ALARM / 3
    assert noise_variance_p_value(problem, sample) > FALSE_ALARM
    wrong = mixture(precision=1.5**2)
    assert noise_variance_p_value(problem, wrong.sample(20_000, rng=5)) < FALSE_ALARM


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gram": GRAM * 1.1}, "gram must have unit diagonal"),
        ({"gram": np.ones((3, 3))}, "gram must be positive definite"),
        ({"gram": GRAM + np.triu(GRAM, 1)}, "gram must be symmetric"),
        ({"gram": np.full((3, 3), np.nan)}, "gram must be finite"),
        ({"weights": WEIGHTS * 0.9}, "weights must sum to one"),
        ({"weights": np.array([-0.5, 0.5, 1.0])}, "weights must be positive"),
        ({"weights": np.array([0.5, 0.5])}, r"weights must have one entry per mean \(3\)"),
        ({"precision": 0.0}, "precision must be positive, got 0.0"),
        ({"ridge": -0.1}, "ridge must be positive, got -0.1"),
        ({"dimension": 2}, r"dimension must be an integer >= 3, got 2"),
        ({"support": np.array([0, 1, 12])}, r"support must lie in \[0, 11\]"),
        ({"support": np.array([0, 1, 1])}, "support must have 3 different"),
        ({"support": np.array([0.0, 1.0, 2.0])}, "support must be 3 integers"),
    ],
)
def test_bad_parameters_are_named(changes, message):
    """Each refusal names the argument, the value and what is allowed."""
    with pytest.raises(ValueError, match=message):
        mixture(**changes)


def test_bad_data_are_named():
    """NaN, wrong shapes and labels out of range must not reach the linear algebra."""
    problem = mixture()
    point, sample = some_point(problem), problem.sample(4, rng=0)
    dirty = sample.inputs.copy()
    dirty[1, 2] = np.nan
    with pytest.raises(ValueError, match="inputs must be finite"):
        problem.loss(point, Sample(dirty, sample.labels))
    with pytest.raises(ValueError, match=r"inputs must have shape \(any, 12\)"):
        problem.gradient(point, Sample(sample.inputs[:, 1:], sample.labels))
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 2\]"):
        problem.loss(point, Sample(sample.inputs, sample.labels + 3))
    with pytest.raises(ValueError, match=r"point.x must have shape \(3, 12\)"):
        problem.loss(Point(point.x.T), sample)
    with pytest.raises(ValueError, match=r"point\.x must be finite"):
        problem.statistics(Point(point.x * np.inf))
    with pytest.raises(ValueError, match="block"):
        problem.factors("hessian", (0, 3), point, sample)
    with pytest.raises(ValueError, match="matrix must be one of"):
        problem.factors("fisher", (0, 0), point, sample)
    with pytest.raises(ValueError, match="R_perp must be positive semi-definite"):
        problem.embed(Statistics(np.zeros((3, 3)), -np.eye(3)))
    with pytest.raises(ValueError, match="dimension must be greater than 2 k = 6"):
        mixture(dimension=6, support=np.arange(3)).reduced_kernel()


# ---------------------------------------------------------------------- loss and curvature


def test_loss_agrees_with_its_definition_and_survives_large_logits():
    """The shifted logarithm of a sum must neither overflow nor lose the shift."""
    problem = mixture()
    point, sample = some_point(problem), problem.sample(6, rng=1)
    logits = sample.inputs @ point.x.T
    naive = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(6), sample.labels]
    np.testing.assert_allclose(problem.loss(point, sample), naive, rtol=1e-12)
    huge = problem.loss(Point(1e6 * point.x), sample)
    gap = logits.max(axis=1) - logits[np.arange(6), sample.labels]
    np.testing.assert_allclose(huge, 1e6 * gap, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(problem.probabilities(point, sample.inputs).sum(axis=1), 1.0)


def test_gradient_matches_finite_differences_of_the_loss():
    """BGHJ (3.1): central differences at step 1e-5 are exact to 1e-9; a wrong sign is not."""
    problem = mixture()
    point, sample = some_point(problem), problem.sample(6, rng=1)
    step, numeric = 1e-5, np.empty_like(point.x)
    for index in np.ndindex(point.x.shape):
        shift = np.zeros_like(point.x)
        shift[index] = step
        up, down = (problem.loss(Point(point.x + s * shift), sample).mean() for s in (1, -1))
        numeric[index] = (up - down) / (2 * step)
    np.testing.assert_allclose(problem.gradient(point, sample).x, numeric, atol=1e-8)


def dense(factors):
    """Assemble a block from its factors."""
    return (factors.left * factors.weights[:, None]).T @ factors.right / factors.weights.size


def test_hessian_blocks_match_finite_differences_of_the_gradient():
    """All nine blocks of BGHJ (3.2), of which Lemma 3.1 misprints the off-diagonal sign."""
    problem = mixture()
    point, sample = some_point(problem), problem.sample(5, rng=1)
    step, d = 1e-5, problem.dimension
    numeric = np.empty((3, d, 3, d))
    for c, j in np.ndindex(3, d):
        shift = np.zeros_like(point.x)
        shift[c, j] = step
        up, down = (problem.gradient(Point(point.x + s * shift), sample).x for s in (1, -1))
        numeric[:, :, c, j] = (up - down) / (2 * step)
    for b, c in np.ndindex(3, 3):
        ours = dense(problem.factors("hessian", (b, c), point, sample))
        np.testing.assert_allclose(ours, numeric[b, :, c, :], atol=1e-8)
        printed_sign = np.abs(-ours - numeric[b, :, c, :]).max()
        assert printed_sign > 1e-2


def test_g_matrix_blocks_match_outer_products_of_single_gradients():
    """BGHJ (3.3) is uncentred: subtracting the mean gradient is a different matrix."""
    problem = mixture()
    point, sample = some_point(problem), problem.sample(5, rng=1)
    singles = np.stack(
        [
            problem.gradient(point, Sample(sample.inputs[i : i + 1], sample.labels[i : i + 1])).x
            for i in range(5)
        ]
    )
    for b, c in np.ndindex(3, 3):
        ours = dense(problem.factors("g_matrix", (b, c), point, sample))
        np.testing.assert_allclose(ours, singles[:, b].T @ singles[:, c] / 5, atol=1e-13)


def test_blocks_and_their_parameters():
    """A diagonal block belongs to a row; an off-diagonal one to none."""
    problem = mixture()
    point = some_point(problem)
    assert problem.blocks == ((0, 0), (1, 1), (2, 2))
    np.testing.assert_array_equal(problem.parameter((1, 1), point), point.x[1])
    assert problem.outlier_count((1, 1)) == 3
    with pytest.raises(ValueError, match="diagonal"):
        problem.parameter((0, 1), point)


# ---------------------------------------------------------------------- statistics


def test_statistics_agree_with_dense_projections():
    """The summation between support coordinates against an explicit projector."""
    for problem in (mixture(), mixture(support=np.array([0, 1, 11])), mixture(dimension=11)):
        point = some_point(problem)
        basis, _ = np.linalg.qr(problem.means.T)
        rest = point.x - point.x @ basis @ basis.T
        found = problem.statistics(point)
        np.testing.assert_allclose(found.m, point.x @ problem.means.T, atol=1e-13)
        np.testing.assert_allclose(found.R_perp, rest @ rest.T, atol=1e-13)


def test_span_alignment_agrees_with_the_projection():
    """For oblique means the Gram matrix matters (BGHJ Theorem 2.4, MDL Theorem 13.4)."""
    problem = mixture()
    point = some_point(problem)
    statistics = problem.statistics(point)
    expected = linalg.alignment(point.x, problem.means.T)
    np.testing.assert_allclose(problem.span_alignment(statistics), expected, atol=1e-12)
    orthonormal = KGaussianMixture.orthonormal(3, problem.dimension, precision=1, ridge=1)
    assert np.abs(orthonormal.span_alignment(statistics) - expected).max() > 0.01


@pytest.mark.parametrize("rank", [3, 1, 0])
def test_embedding_has_the_same_statistics_in_the_fewest_dimensions(rank):
    """A singular orthogonal part must not leave spurious dimensions or NaN."""
    problem = mixture()
    root = np.random.default_rng(1).normal(size=(3, rank))
    statistics = Statistics(some_statistics().m, root @ root.T)
    small, point = problem.embed(statistics)
    assert small.dimension == 3 + rank
    found = small.statistics(point)
    np.testing.assert_allclose(found.m, statistics.m, atol=1e-13)
    np.testing.assert_allclose(found.R_perp, statistics.R_perp, atol=1e-13)


@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_reduced_state_holds_the_statistics(scale):
    """Coordinates and factor must reproduce m and R_perp, also a zero R_perp."""
    problem = mixture()
    m, R_perp = some_statistics()
    state = problem.reduced_state(Statistics(m, scale * R_perp))
    found = problem.reduced_statistics(state)
    np.testing.assert_allclose(found.m, m, atol=1e-13)
    np.testing.assert_allclose(found.R_perp, scale * R_perp, atol=1e-13)
    assert np.array_equal(state[1], np.triu(state[1]))
    stacked = problem.reduced_statistics(tuple(np.stack([a, 2 * a]) for a in state))
    np.testing.assert_allclose(stacked.R_perp[1], 4 * found.R_perp, atol=1e-13)


def entries(statistics):
    """Free entries of a batch of statistics and their products, shape (n, 15 + 120)."""
    upper = np.triu_indices(3)
    flat = np.hstack([statistics.m.reshape(-1, 9), statistics.R_perp[:, *upper]])
    pairs = np.triu_indices(flat.shape[1])
    return np.hstack([flat, flat[:, pairs[0]] * flat[:, pairs[1]]])


def mean_p_value(first, second):
    """P-value of equal means of two samples of vectors (Hotelling, large n)."""
    gap = first.mean(axis=0) - second.mean(axis=0)
    covariance = np.cov(first.T) / len(first) + np.cov(second.T) / len(second)
    return stats.chi2(gap.size).sf(gap @ np.linalg.solve(covariance, gap))


@pytest.mark.parametrize("dimension", [5, 9])
def test_initial_statistics_are_drawn_from_their_law(dimension):
    """First and second moments against the statistics of drawn points (both branches).

    False alarm 1e-6. Degrees of freedom d instead of d - k for the Wishart part, the
    mistake to fear, shift its diagonal by a factor 9/6 or more and are rejected.
    """
    problem = mixture(dimension=dimension, support=np.arange(3))
    rng = np.random.default_rng(0)

    def batch(draw):
        drawn = [draw() for _ in range(4000)]
        return Statistics(*(np.stack(column) for column in zip(*drawn, strict=True)))

    points = entries(batch(lambda: problem.statistics(problem.initial(rng=rng))))[:, :15]
    ours = entries(batch(lambda: problem.draw_initial_statistics(rng=rng)))[:, :15]
    assert mean_p_value(np.hstack([points, points**2]), np.hstack([ours, ours**2])) > FALSE_ALARM
    wrong = ours.copy()
    wrong[:, 9:] *= dimension / (dimension - 3)
    assert mean_p_value(points, wrong) < FALSE_ALARM


# ---------------------------------------------------------------------- effective dynamics


def test_moments_match_their_expansion_at_large_precision():
    """First order in 1/lambda of BGHJ Lemma 5.11; the covariance R of (5.10) is off by lambda."""
    statistics = some_statistics(scale=0.5)
    precision = 1e4
    problem = mixture(precision=precision)
    R = statistics.R_perp + statistics.m @ np.linalg.solve(GRAM, statistics.m.T)
    moments = problem.moments(statistics, rule=gaussian.gauss_hermite(3, 12))
    for c in range(3):
        pi = np.exp(statistics.m[:, c]) / np.exp(statistics.m[:, c]).sum()
        shift = np.diag(R) - 2 * R @ pi - pi @ np.diag(R) + 2 * pi @ R @ pi
        expected = pi + pi * shift / (2 * precision)
        np.testing.assert_allclose(moments.mean[c], expected, atol=1e-6)
    np.testing.assert_allclose(moments.response.sum(axis=2), 0.0, atol=1e-14)


def test_drift_tends_to_the_limit_drift_at_rate_one_over_precision():
    """BGHJ Proposition 5.10: precision times the gap has a limit; printed (5.18) has none."""
    statistics, rule = some_statistics(), gaussian.gauss_hermite(3, 12)
    gaps, printed = [], []
    for precision in (1e4, 1e6):
        problem = mixture(precision=precision)
        drift = problem.drift(statistics, rule=rule, c_delta=1.0)
        limit = problem.limit_drift(statistics)
        gaps.append([precision * np.abs(a - b).max() for a, b in zip(drift, limit, strict=True)])
        wrong = printed_limit_drift(problem, statistics)
        printed.append(precision * np.abs(drift.R_perp - wrong.R_perp).max())
    np.testing.assert_allclose(gaps[0], gaps[1], rtol=1e-2)
    assert printed[1] > 50 * printed[0]


@njit
def mean_increment(step, constants, start, rows, rng, step_size, n):
    """Mean and variance of (m, R_perp) after one step, over n fresh samples."""
    parallel, upper, work = start
    k = upper.shape[0]
    state = (parallel.copy(), upper.copy(), work.copy())
    before = np.hstack((parallel.T @ rows.T, upper.T @ upper))
    total, square = np.zeros((k, 2 * k)), np.zeros((k, 2 * k))
    for _ in range(n):
        state[0][:] = parallel
        state[1][:] = upper
        step(state, constants, rng, step_size)
        after = np.hstack((state[0].T @ rows.T, state[1].T @ state[1]))
        rate = (after - before) / step_size
        total += rate
        square += rate**2
    mean = total / n
    return mean, np.sqrt((square / n - mean**2) / n)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drift_is_the_mean_of_one_step(seed):
    """BGHJ Theorem 5.7, corrected, is the mean of fresh steps, as Theorem 5.5 asks.

    The corrector is included, and the drift of (5.5) and (5.6) as printed is rejected.
    Largest of 15 free z-scores; false alarm 1e-6 by Bonferroni (|z| < 5.4). At dimension
    10^7 the step's own bias is 1e-7. Standard errors are below 5e-3 with 4e5 steps, so a
    wrong entry off by .06 is found with probability 1 - 1e-6; each control is off by more.
    """
    d = 10**7
    problem = mixture(dimension=d, support=np.arange(3))
    statistics = some_statistics(seed)
    step_size, c_delta = 2.0 / d, 2.0
    kernel = problem.reduced_kernel()
    rng = np.random.default_rng(seed)
    rule = gaussian.gauss_hermite(3, 20)

    def observe(constants):
        return mean_increment(
            kernel.step, constants, problem.reduced_state(statistics), problem.rows, rng,
            step_size, 400_000,
        )  # fmt: skip

    def worst(observed, expected):
        mean, error = observed
        return np.abs((mean - np.hstack(expected)) / error).max()

    bound = stats.norm.isf(FALSE_ALARM / (2 * 15))
    observed = observe(kernel.constants)
    assert observed[1].max() < 0.06 / (2 * bound)
    assert worst(observed, problem.drift(statistics, rule=rule, c_delta=c_delta)) < bound
    for control in (
        printed_drift(problem, statistics, rule=rule, c_delta=c_delta),
        problem.drift(statistics, rule=rule, c_delta=0.0),
    ):
        assert worst(observed, control) > bound
    literal = literal_ridge(problem, step_size).reduced_kernel()
    assert (
        worst(observe(literal.constants), problem.drift(statistics, rule=rule, c_delta=c_delta))
        > bound
    )
