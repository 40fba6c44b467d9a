"""SGD on summary statistics: equal in law to SGD in full dimension."""

import tracemalloc

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.optimize import brentq

from traindyn.problems.k_gmm import KGaussianMixture, Point, Statistics
from traindyn.problems.k_gmm.printed import literal_ridge
from traindyn.sgd import direct, reduced

GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
WEIGHTS = np.array([0.2, 0.3, 0.5])
FALSE_ALARM = 1e-6
REPLICAS = 10_000
DIMENSION = 30
STEP_SIZE = 2.0 / DIMENSION


def mixture(dimension=DIMENSION, **changes):
    """Three classes without any symmetry."""
    options = {"gram": GRAM, "weights": WEIGHTS, "precision": 1.5, "ridge": 0.1}
    return KGaussianMixture(**options | changes, dimension=dimension)


def start_statistics():
    """Statistics without structure."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    return Statistics(0.5 * rng.normal(size=(3, 3)), 0.3 * root @ root.T)


def padded_point(problem, statistics):
    """A point in full dimension with the given statistics."""
    _, small = problem.embed(statistics)
    x = np.zeros((problem.k, problem.dimension))
    x[:, : small.x.shape[1]] = small.x
    return Point(x)


@njit
def ends(step, constants, start, state, which, rng, step_size, pauses, replicas):
    """State at two times over many replicas: its first array, and the one numbered `which`."""
    first = np.empty((replicas, 2, *start[0].shape))
    second = np.empty((replicas, 2, *start[which].shape))
    for r in range(replicas):
        for target, source in zip(state, start):
            target[:] = source
        for pause in range(2):
            for _ in range(pauses[pause]):
                step(state, constants, rng, step_size)
            first[r, pause] = state[0]
            second[r, pause] = state[which]
    return first, second


def run_ends(kernel, start, which, rng, pauses):
    """Run `ends` from copies of the arrays of `start`."""
    state = tuple(array.copy() for array in start)
    step, constants = kernel
    return ends(step, constants, start, state, which, rng, STEP_SIZE, pauses, REPLICAS)


def direct_batch(problem, statistics, rng, pauses):
    """Statistics of replicas in full dimension."""
    start = (padded_point(problem, statistics).x,)
    x, _ = run_ends(problem.direct_kernel(), start, 0, rng, pauses)
    parallel, rest = x[..., :3], x[..., 3:]
    return Statistics(parallel @ problem.rows.T, rest @ np.swapaxes(rest, -1, -2))


def reduced_batch(problem, statistics, rng, pauses, freedom=None):
    """Statistics of replicas of the reduced chain, on request with wrong degrees of freedom."""
    kernel = problem.reduced_kernel()
    if freedom is not None:
        kernel = kernel._replace(constants=(*kernel.constants[:-1], freedom))
    start = problem.reduced_state(statistics)
    return problem.reduced_statistics(run_ends(kernel, start, 1, rng, pauses))


def features(batch):
    """Free entries at both times, shape (n, 22), and their products with the final ones.

    The last row of m and the last entry of R_perp are left out: the sum over classes is not
    random (see the test of its decay), so they are functions of the others.
    """
    upper = np.triu_indices(3)
    m, R_perp = batch
    flat = np.concatenate(
        [m[:, :, :2].reshape(*m.shape[:2], 6), R_perp[:, :, *upper][..., :5]], axis=-1
    )
    middle, end = flat[:, 0], flat[:, 1]
    pairs = np.triu_indices(11)
    products = [end[:, pairs[0]] * end[:, pairs[1]]]
    products.append((middle[:, :, None] * end[:, None, :]).reshape(len(end), -1))
    return np.hstack([middle, end]), np.hstack(products)


def same_law_p_value(first, second):
    """Least p-value of three tests, times three.

    Kolmogorov-Smirnov on each of the 22 entries (Bonferroni), Hotelling on their means, and
    Hotelling on means and second moments together, cross-moments in time included.
    """
    (a, a2), (b, b2) = features(first), features(second)
    pairs = ((a, b), (np.hstack([a, a2]), np.hstack([b, b2])))
    return 3 * min(marginal_p_value(a, b), *(hotelling(x, y) for x, y in pairs))


def marginal_p_value(a, b):
    """Least Kolmogorov-Smirnov p-value over the columns, times their number."""
    found = [stats.ks_2samp(x, y, method="asymp").pvalue for x, y in zip(a.T, b.T, strict=True)]
    return len(found) * min(found)


def hotelling(a, b):
    """P-value of equal means of two samples of vectors of the same size."""
    gap = a.mean(axis=0) - b.mean(axis=0)
    covariance = (np.cov(a.T) + np.cov(b.T)) / len(a)
    n, p = 2 * len(a) - 2, gap.size
    t2 = gap @ np.linalg.solve(covariance, gap)
    return stats.f(p, n - p + 1).sf(t2 * (n - p + 1) / (n * p))


def detectable_shift(dimensions):
    """Shift of one mean, in standard deviations, missed with probability 1e-6 at most."""
    threshold = stats.chi2(dimensions).isf(FALSE_ALARM / 3)
    power = brentq(lambda nc: stats.ncx2(dimensions, nc).cdf(threshold) - 1e-6, 10, 1000)
    return np.sqrt(2 * power / REPLICAS)


@pytest.fixture(scope="module")
def simulated():
    """Full-dimensional runs at order-one noise, seen after 20 and 60 steps."""
    problem = mixture()
    pauses = np.array([20, 40])
    return (
        problem,
        pauses,
        direct_batch(problem, start_statistics(), np.random.default_rng(1), pauses),
    )


def test_equal_in_law_to_the_direct_simulation(simulated):
    """Joint law of (m, R_perp) at two times, step_size * dimension = 2.

    False alarm 1e-6. A mean off by .18 standard deviations in one entry is rejected with
    probability 1 - 1e-6 (asserted); the next test shows the rejection of the mistakes one
    could make.
    """
    assert detectable_shift(dimensions=22) < 0.18
    problem, pauses, expected = simulated
    found = reduced_batch(problem, start_statistics(), np.random.default_rng(2), pauses)
    assert same_law_p_value(found, expected) > FALSE_ALARM


@pytest.mark.parametrize("mistake", ["freedom", "corrector", "ridge", "weights", "gram", "start"])
def test_mistakes_are_rejected_by_the_same_test(simulated, mistake):
    """Degrees of freedom d - k, no outer noise, printed ridge, other data or start."""
    problem, pauses, expected = simulated
    statistics, freedom = start_statistics(), None
    if mistake == "freedom":
        freedom = float(DIMENSION - 3)
    elif mistake == "corrector":
        freedom = 0.1
    elif mistake == "ridge":
        problem = literal_ridge(problem, STEP_SIZE)
    elif mistake == "weights":
        problem = mixture(weights=np.full(3, 1 / 3))
    elif mistake == "gram":
        problem = mixture(gram=np.eye(3))
    elif mistake == "start":
        statistics = Statistics(statistics.m, np.diag(np.diag(statistics.R_perp)))
    found = reduced_batch(problem, statistics, np.random.default_rng(2), pauses, freedom)
    assert same_law_p_value(found, expected) < FALSE_ALARM


def test_equal_in_law_from_a_point_in_the_span():
    """R_perp = 0 at the start, a singular factor, in the fewest dimensions allowed (7)."""
    problem = mixture(dimension=7)
    statistics = Statistics(start_statistics().m, np.zeros((3, 3)))
    pauses = np.array([1, 3])
    expected = direct_batch(problem, statistics, np.random.default_rng(3), pauses)
    found = reduced_batch(problem, statistics, np.random.default_rng(4), pauses)
    # After few steps R_perp is singular, and its products are: marginal laws only.
    p_value = marginal_p_value(features(found)[0], features(expected)[0])
    assert p_value > FALSE_ALARM


def test_default_start_has_the_law_of_the_direct_default():
    """Random start included, both agree in first and second moments of the entries.

    False alarm 1e-6. The control starts at the limit of the initial law: without its
    variance the second moments of m after two steps are too small.
    """
    problem = mixture(dimension=10)
    times, options = [0.0, 0.2], {"step_size": 0.1, "replicas": 2000}

    def moments(path):
        entries = features(path.statistics)[0][:, 11:]
        return np.hstack([entries, entries**2])

    full = moments(direct.run_replicas(problem, times, rng=1, **options))
    ours = moments(reduced.run_replicas(problem, times, rng=2, **options))
    assert hotelling(full, ours) > FALSE_ALARM
    limit = problem.initial_statistics()
    fixed = moments(reduced.run_replicas(problem, times, rng=2, start=limit, **options))
    assert hotelling(full, fixed) < FALSE_ALARM


def test_sum_of_rows_decays_by_the_ridge_alone():
    """Gradients sum to zero over classes: an exact law that rounding must not spoil.

    After t = 300 the sum direction of R_perp is 1e-13 of the others: the factor is
    singular to rounding, and everything stays finite and positive.
    """
    problem = mixture(dimension=1000)
    start = start_statistics()
    step_size = 1e-2
    path = reduced.run(problem, start, [100.0, 150.0, 2000.0], step_size=step_size, rng=0)
    decay = (1 - step_size * problem.ridge) ** path.steps
    total = path.statistics.m.sum(axis=1)
    np.testing.assert_allclose(total, decay[:, None] * start.m.sum(axis=0), rtol=1e-7, atol=1e-13)
    total = path.statistics.R_perp.sum(axis=(1, 2))
    np.testing.assert_allclose(total, decay**2 * start.R_perp.sum(), rtol=1e-2, atol=1e-13)
    assert np.all(np.linalg.eigvalsh(path.statistics.R_perp)[:, 0] > -1e-15)
    assert np.all(np.linalg.eigvalsh(path.statistics.R_perp)[:, 1] > 1e-3)


def test_ten_million_dimensions_fit_anywhere():
    """Nothing may scale with the dimension."""
    problem = KGaussianMixture.orthonormal(10, 10**7, precision=10.0, ridge=0.01)
    reduced.run(problem, problem.initial_statistics(), [0, 1e-6], step_size=1e-7, rng=0)
    tracemalloc.start()
    path = reduced.run(problem, problem.initial_statistics(), [0, 1e-3], step_size=1e-7, rng=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7
    # The drift at the start moves the own overlap by weight * (1 - 1/k) * t.
    np.testing.assert_allclose(np.diag(path.statistics.m[-1]), 0.09e-3, rtol=0.05)


def test_replicas_do_not_depend_on_the_workers():
    """One and two workers: the same numbers."""
    options = {"step_size": 0.05, "replicas": 5, "rng": 3}
    one = reduced.run_replicas(mixture(), [0.0, 1.0], workers=1, **options)
    two = reduced.run_replicas(mixture(), [0.0, 1.0], workers=2, **options)
    for a, b in zip(one.statistics, two.statistics, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_start_is_left_alone():
    """The state is a copy of the statistics given."""
    start = start_statistics()
    before = [array.copy() for array in start]
    path = reduced.run(mixture(), start, [0.0, 1.0], step_size=0.05, rng=3)
    for array, old, found in zip(start, before, path.statistics, strict=True):
        np.testing.assert_array_equal(array, old)
        np.testing.assert_allclose(found[0], old, atol=1e-14)


def test_divergence_names_the_step_size():
    """As in full dimension."""
    with pytest.raises(FloatingPointError, match="step_size = 60"):
        reduced.run(mixture(), start_statistics(), [60.0 * 2000], step_size=60.0, rng=0)


def test_bad_statistics_are_named():
    """A matrix that is no Gram matrix has no square root."""
    m = np.zeros((3, 3))
    for R_perp, message in (
        (-np.eye(3), "R_perp must be positive semi-definite"),
        (np.full((3, 3), np.nan), "R_perp must be finite"),
        (np.eye(2), r"R_perp must have shape \(3, 3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            reduced.run(mixture(), Statistics(m, R_perp), [1.0], step_size=0.1, rng=0)
    with pytest.raises(ValueError, match="dimension must be greater than 2 k"):
        reduced.run(mixture(dimension=6), start_statistics(), [1.0], step_size=0.1, rng=0)
