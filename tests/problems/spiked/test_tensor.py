"""Spiked PCA: the law of a step, three simulations equal in law, the effective dynamics."""

import math
import tracemalloc

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.optimize import brentq

from companion.effective_dynamics.pca.printed import as_printed, printed_hessian, printed_volatility
from traindyn.effective import find, linear_noise, ode
from traindyn.gaussian import gauss_hermite
from traindyn.problems.spiked import Point, SpikedTensor, Statistics
from traindyn.sgd import direct, reduced

FALSE_ALARM = 1e-6
REPLICAS = 10_000
ORDERS = (2, 3, 4)
NO_RULE = gauss_hermite(1, 1)


def some_point(n, seed=0):
    """A point without structure."""
    return Point(0.6 * np.random.default_rng(seed).normal(size=n))


def jacobian_of_statistics(point):
    """Gradients of m and r2 as rows (BGJ (7.1))."""
    rows = np.zeros((2, point.x.size))
    rows[0, 0] = 1.0
    rows[1, 1:] = 2.0 * point.x[1:]
    return rows


def differences(function, x, width=1e-5):
    """Central differences of `function` in every coordinate, on the last axis."""
    shifts = width * np.eye(x.size)
    return np.stack([(function(x + s) - function(x - s)) / (2 * width) for s in shifts], axis=-1)


# ---------------------------------------------------------------------- one observation


@pytest.mark.parametrize("order", ORDERS)
def test_gradient_is_the_derivative_of_the_loss(order):
    """Every slot of a tensor that is not symmetric contributes."""
    problem = SpikedTensor(order, 3, signal=1.7, ridge=0.3)
    tensors, point = problem.observations(4, rng=1), some_point(3)
    slopes = differences(lambda x: problem.loss(Point(x), tensors).mean(), point.x)
    np.testing.assert_allclose(problem.gradient(point, tensors).x, slopes, rtol=1e-7, atol=1e-7)


def test_loss_is_the_squared_distance_to_the_rank_one_tensor():
    """Written out for order two, spike on the first coordinate."""
    problem = SpikedTensor(2, 3, signal=2.5)
    (tensor,), point = problem.observations(1, rng=2), some_point(3)
    expected = np.linalg.norm(tensor - np.outer(point.x, point.x)) ** 2
    np.testing.assert_allclose(problem.loss(point, tensor[None]), [expected])
    noise = np.random.default_rng(2).standard_normal((3, 3))
    noise[0, 0] += 2.5
    np.testing.assert_array_equal(tensor, noise)


@pytest.mark.parametrize("order", ORDERS)
def test_law_of_the_gradient_is_exact(order):
    """Mean and covariance by linearity in the tensor, without sampling (BGJ (7.2)).

    The gradient is A vec(Y) + b; the covariance is A A^T. Noise of the same size for every
    direction, V without its second term, is rejected.
    """
    n = 3
    problem, point = SpikedTensor(order, n, signal=1.7, ridge=0.3), some_point(n)
    shape = (1,) + (n,) * order
    offset = problem.gradient(point, np.zeros(shape)).x
    units = np.eye(n**order).reshape(-1, *shape)
    linear = np.stack([problem.gradient(point, unit).x - offset for unit in units], axis=-1)
    covariance = problem.noise_covariance(point)
    np.testing.assert_allclose(linear @ linear.T, covariance, atol=1e-12)
    mean = offset + 1.7 * linear[:, 0] + problem.ridge * point.x
    np.testing.assert_allclose(problem.population_gradient(point).x, mean, atol=1e-12)
    square = point.x @ point.x
    largest = 4 * order**2 * square ** (order - 1)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance)[-1], largest)
    isotropic = 4 * order * square ** (order - 1) * np.eye(n)
    assert np.abs(linear @ linear.T - isotropic).max() > 0.1 * largest


@pytest.mark.parametrize("order", ORDERS)
def test_population_hessian(order):
    """Derivative of the population gradient; the printed one is not."""
    problem, point = SpikedTensor(order, 4, signal=1.7, ridge=0.3), some_point(4)
    slopes = differences(lambda x: problem.population_gradient(Point(x)).x, point.x)
    np.testing.assert_allclose(problem.population_hessian(point), slopes, atol=1e-7)
    assert np.abs(printed_hessian(problem, point) - slopes).max() > 0.1


@pytest.mark.parametrize("order", ORDERS)
def test_population_loss_and_its_drift(order):
    """Derivative along x is the gradient; BGJ (3.4) is the chain rule along the flow."""
    problem, point = SpikedTensor(order, 4, signal=1.7, ridge=0.3), some_point(4)

    def loss(x):
        return problem.population_loss(problem.statistics(Point(x)))

    np.testing.assert_allclose(
        differences(loss, point.x), problem.population_gradient(point).x, atol=1e-7
    )
    u = problem.statistics(point)
    v = np.array(u)
    slopes = differences(lambda w: problem.population_loss(Statistics(*w)), v)
    drift = np.array(problem.drift(u, c_delta=0.7))
    np.testing.assert_allclose(problem.loss_drift(u, c_delta=0.7), slopes @ drift, rtol=1e-6)


def test_loss_drift_as_the_source_expands_it():
    """BGJ (3.4) term by term, and a place where critical SGD raises the loss."""
    problem = SpikedTensor(3, 10, signal=1.7)
    m, r2, c, k = 0.4, 0.3, 1.2, 3
    R2 = m**2 + r2
    expected = -4 * k**2 * m**2 * (1.7**2 * m**2 - 2 * 1.7 * m * R2**2 + R2**4)
    expected -= 4 * k**2 * R2**4 * (r2 - c)
    found = problem.loss_drift(Statistics(m, r2), c_delta=c)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert problem.loss_drift(Statistics(0.0, 0.5), c_delta=1.0) > 0


# ---------------------------------------------------------------------- statistics of a step


@pytest.mark.parametrize("order", ORDERS)
def test_volatility_is_the_projected_noise(order):
    """J V J^T with leading axes; what BGJ (7.3) prints is rejected."""
    problem, points = SpikedTensor(order, 5, signal=1.7), [some_point(5, seed) for seed in (0, 1)]
    stacked = Statistics(*map(np.stack, zip(*map(problem.statistics, points), strict=True)))
    for found, point in zip(problem.volatility(stacked), points, strict=True):
        rows = jacobian_of_statistics(point)
        expected = rows @ problem.noise_covariance(point) @ rows.T
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        printed = printed_volatility(problem, problem.statistics(point))
        assert abs(printed[1, 1] / expected[1, 1] - 1) > 0.2
        assert np.isclose(2 * printed[0, 1], expected[0, 1])


@pytest.mark.parametrize("order", ORDERS)
def test_moments_of_a_step_are_exact(order):
    """Against sampled gradients in full dimension, corrector included.

    Chi-square on the means and on the second moments, false alarm 1e-6 each. The step has
    size 2 / n: without the corrector r2 would be off by more than 40 standard errors.
    """
    n, step_size = 6, 0.02
    problem, point = SpikedTensor(order, n, signal=1.7, ridge=0.3), some_point(n)
    drawn = problem.gradients(point, 200_000, rng=3)
    after = np.stack(problem.one_step(point, drawn, step_size=step_size), axis=-1)
    exact = problem.step_moments(problem.statistics(point), step_size=step_size)
    assert mean_p_value(after, np.array(exact.mean)) > FALSE_ALARM
    centred = after - np.array(exact.mean)
    products = np.stack([centred[:, i] * centred[:, j] for i, j in ((0, 0), (0, 1), (1, 1))], 1)
    entries = exact.covariance[[0, 0, 1], [0, 1, 1]]
    assert mean_p_value(products, entries) > FALSE_ALARM
    u = problem.statistics(point)
    flow = np.array(u) + step_size * np.array(problem.drift(u, c_delta=0.0))
    assert mean_p_value(after, flow) < FALSE_ALARM


def mean_p_value(samples, expected):
    """P-value of the mean of vectors (chi-square; samples are many)."""
    gap = samples.mean(axis=0) - expected
    return stats.chi2(gap.size).sf(len(samples) * gap @ np.linalg.solve(np.cov(samples.T), gap))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_step_moments_tend_to_drift_and_volatility(order, ridge):
    """BGJ Theorem 2.2 in its premises (2.2)-(2.3): errors of order 1/n, ten at a time.

    With ridge the drift printed in BGJ Section 7.1 does not converge.
    """
    u, c = Statistics(0.5, 0.8), 0.7

    def gaps(n, problem):
        moments = problem.step_moments(u, step_size=c / n)
        speed = (np.array(moments.mean) - np.array(u)) * n / c
        drift = np.abs(speed - np.array(problem.drift(u, c_delta=c))).max()
        noise = np.abs(moments.covariance * (n / c) ** 2 - problem.volatility(u)).max()
        return np.array([drift, noise])

    sizes = [10**3, 10**4, 10**5, 10**6]
    found = [gaps(n, SpikedTensor(order, n, signal=1.7, ridge=ridge)) for n in sizes]
    np.testing.assert_allclose(np.divide(found[:-1], found[1:]), 10.0, rtol=0.1)
    printed = gaps(10**6, as_printed(SpikedTensor(order, 10**6, signal=1.7, ridge=ridge)))[0]
    assert (printed > 0.1) == (ridge > 0)


def test_jacobian_is_the_derivative_of_the_drift():
    """Every order, ridge, leading axes."""
    for order in ORDERS:
        problem = SpikedTensor(order, 9, signal=1.7, ridge=0.3)
        u = np.array([[0.5, 0.8], [-0.3, 1.4]])
        for each, jacobian in zip(u, problem.jacobian(Statistics(*u.T), c_delta=0.6), strict=True):
            slopes = differences(
                lambda w, p=problem: np.array(p.drift(Statistics(*w), c_delta=0.6)), each
            )
            np.testing.assert_allclose(jacobian, slopes, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------- three simulations

START = Statistics(0.5, 0.7)
STEP_SIZE = 0.02
PAUSES = np.array([4, 8])


def small_problem(**changes):
    """Order three in four dimensions: 64 normals, 4, or 2 and a chi-square."""
    return SpikedTensor(**{"order": 3, "dimension": 4, "signal": 1.5, "ridge": 0.8} | changes)


@njit
def isotropic_step(state, constants, rng, step_size):
    """A direct step with the second term of V left out."""
    (x,) = state
    order, signal, ridge = constants
    square = (x * x).sum()
    pull = 2.0 * step_size * signal * order * x[0] ** (order - 1)
    noise = 2.0 * step_size * math.sqrt(order * square ** (order - 1))
    keep = 1.0 - step_size * (2.0 * order * square ** (order - 1) + ridge)
    for i in range(x.size):
        x[i] = keep * x[i] - noise * rng.standard_normal()
    x[0] += pull


@njit
def ends(step, constants, start, state, rng, step_size, pauses, replicas):
    """State at two times over many replicas."""
    found = np.empty((replicas, 2, start.size))
    for r in range(replicas):
        state[0][:] = start
        for pause in range(2):
            for _ in range(pauses[pause]):
                step(state, constants, rng, step_size)
            found[r, pause] = state[0]
    return found


def batch(problem, kernel, start, seed):
    """Statistics of replicas of a kernel, shape (replicas, 2, 2)."""
    state = (start.copy(),)
    rng = np.random.default_rng(seed)
    found = ends(kernel.step, kernel.constants, start, state, rng, STEP_SIZE, PAUSES, REPLICAS)
    if start.size > 2:
        return np.stack([found[..., 0], (found[..., 1:] ** 2).sum(axis=-1)], axis=-1)
    return found


def direct_batch(problem, seed):
    """Statistics of replicas in full dimension or with explicit tensors."""
    return batch(problem, problem.direct_kernel(), problem.place(START).x, seed)


def reduced_batch(problem, seed, freedom=None):
    """Statistics of replicas of the reduced chain, on request with wrong degrees of freedom."""
    kernel = problem.reduced_kernel()
    if freedom is not None:
        kernel = kernel._replace(constants=(*kernel.constants[:-1], freedom))
    return batch(problem, kernel, problem.reduced_state(START)[0], seed)


def same_law_p_value(first, second):
    """Least p-value of three tests, times three.

    Kolmogorov-Smirnov on both statistics at both times (Bonferroni), Hotelling on their
    means, and Hotelling on means and all second moments, cross-moments in time included.
    The moments are those of bounded functions: far out, gradients grow like R^(2k - 1).
    """
    pairs = np.triu_indices(4)

    def features(found):
        m, r2 = found[..., 0], found[..., 1]
        bounded = [m / np.sqrt(1.0 + m**2 + r2), r2 / (1.0 + m**2 + r2)]
        flat = np.stack(bounded, axis=-1).reshape(len(found), 4)
        return flat, np.hstack([flat, flat[:, pairs[0]] * flat[:, pairs[1]]])

    (a, a2), (b, b2) = features(first), features(second)
    marginal = [stats.ks_2samp(x, y, method="asymp").pvalue for x, y in zip(a.T, b.T, strict=True)]
    return 3 * min(4 * min(marginal), hotelling(a, b), hotelling(a2, b2))


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
    """Full-dimensional runs seen after 4 and 12 steps."""
    return direct_batch(small_problem(), seed=1)


def test_explicit_step_is_the_gradient_on_the_same_tensor():
    """Numbers drawn from the same stream, orders two to four."""
    for order in ORDERS:
        problem = SpikedTensor(order, 3, signal=1.5, ridge=0.8).explicit()
        start, tensor = some_point(3), problem.observations(1, rng=5)
        gradient = problem.gradient(start, tensor).x + problem.ridge * start.x
        path = direct.run(problem, start, [0.0, 0.01], step_size=0.01, rng=5, snapshots=True)
        np.testing.assert_allclose(path.snapshots.x[1], start.x - 0.01 * gradient, rtol=1e-13)


def test_three_simulations_are_equal_in_law(simulated):
    """Joint law of (m, r2) at two times at strong noise: explicit, direct, reduced.

    False alarm 1e-6 each. A mean off by .15 standard deviations is rejected with
    probability 1 - 1e-6 (asserted); the next test shows the rejection of the mistakes one
    could make.
    """
    assert detectable_shift(dimensions=4) < 0.15
    problem = small_problem()
    assert same_law_p_value(direct_batch(problem.explicit(), seed=2), simulated) > FALSE_ALARM
    assert same_law_p_value(reduced_batch(problem, seed=3), simulated) > FALSE_ALARM


@pytest.mark.parametrize("mistake", ["freedom", "isotropic", "ridge", "signal", "order"])
def test_mistakes_are_rejected_by_the_same_test(simulated, mistake):
    """Degrees of freedom n - 1, V without its second term, printed ridge, other data."""
    problem = small_problem()
    if mistake == "freedom":
        found = reduced_batch(problem, 3, freedom=3.0)
    elif mistake == "isotropic":
        kernel = problem.direct_kernel()._replace(step=isotropic_step)
        found = batch(problem, kernel, problem.place(START).x, 3)
    else:
        change = {"ridge": {"ridge": 1.6}, "signal": {"signal": 1.0}, "order": {"order": 2}}
        found = reduced_batch(small_problem(**change[mistake]), 3)
    assert same_law_p_value(found, simulated) < FALSE_ALARM


def test_default_start_has_the_law_of_the_direct_default():
    """Statistics of N(0, I / n): m and r2 by Kolmogorov-Smirnov, false alarm 1e-6 each."""
    problem, rng = SpikedTensor(2, 6, signal=1.0), np.random.default_rng(0)
    drawn = np.array([problem.draw_initial_statistics(rng=rng) for _ in range(4000)])
    full = np.array([problem.statistics(problem.initial(rng=rng)) for _ in range(4000)])
    for i in range(2):
        assert stats.ks_2samp(drawn[:, i], full[:, i]).pvalue > FALSE_ALARM
    assert stats.kstest(6 * full[:, 1], stats.chi2(5).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(6 * drawn[:, 1], stats.chi2(6).cdf).pvalue < FALSE_ALARM


def test_origin_stands_still():
    """There is neither gradient nor noise at zero, and nothing is divided by zero."""
    problem = SpikedTensor(3, 4, signal=2.0)
    origin = Statistics(np.zeros(()), np.zeros(()))
    for path in (
        reduced.run(problem, origin, [1.0], step_size=0.1, rng=0),
        direct.run(problem, problem.place(origin), [1.0], step_size=0.1, rng=0),
        direct.run(problem.explicit(), problem.place(origin), [1.0], step_size=0.1, rng=0),
    ):
        np.testing.assert_array_equal(np.array(path.statistics), 0.0)


# ---------------------------------------------------------------------- effective dynamics


@pytest.mark.parametrize(
    ("order", "signal", "c_delta", "start", "time", "expected"),
    [
        (2, 1.5, 1.0, (0.3, 1.3), 1.0, (0.6699639357, 1.0000091928)),
        (3, 5.0, 1.0, (0.6, 1.3), 1.0, (1.2068386269, 1.0)),
        (4, 9.0, 1.0, (0.7, 1.3), 0.5, (1.1075565886, 1.0)),
        (2, 1.5, 0.5, (0.05, 1.0), 2.0, (0.9999550528, 0.5000000075)),
    ],
)
def test_effective_dynamics_against_independent_integrations(
    order, signal, c_delta, start, time, expected
):
    """End points of BGJ (3.1) from another integrator."""
    problem = SpikedTensor(order, 100, signal=signal)
    options = {"c_delta": c_delta, "rule": NO_RULE, "rtol": 1e-11, "atol": 1e-13}
    path = ode.solve(problem, Statistics(*map(np.asarray, start)), [time], **options)
    np.testing.assert_allclose(np.array(path.statistics)[:, 0], expected, atol=1e-9)


def test_sgd_follows_the_effective_dynamics_at_the_rate_of_its_fluctuations():
    """Covariance of sqrt(n) (u - limit) at two times against linear noise (BGJ Proposition 3.1).

    400 replicas, chi-square test of each variance, false alarm 1e-6; the printed (7.3),
    with a third of the noise of the radius, is rejected.
    """
    n, replicas, c = 4000, 400, 1.0
    problem, start = SpikedTensor(3, n, signal=5.0), Statistics(np.array(0.6), np.array(1.3))
    times = np.array([0.0, 0.05, 0.2])
    path = reduced.run_replicas(
        problem, times, step_size=c / n, replicas=replicas, rng=0, start=start
    )
    grid = np.linspace(0, 0.2, 101)
    limit = ode.solve(problem, start, grid, c_delta=c, rule=NO_RULE)

    def variances(volatility):
        noise = linear_noise(
            limit,
            grid,
            drift=lambda u: problem.drift(u, c_delta=c),
            volatility=volatility,
            start=np.zeros((2, 2)),
            c_delta=c,
        )
        return noise.covariance()[[25, 100]][:, [0, 1], [0, 1]]

    samples = np.stack(path.statistics, axis=-1)[:, 1:] * math.sqrt(n)
    means = samples.mean(axis=0) / math.sqrt(n)
    exact = np.stack(limit.statistics, axis=-1)[[25, 100]]
    np.testing.assert_allclose(means, exact, atol=0.02)

    def p_value(expected):
        sums = (replicas - 1) * samples.var(axis=0, ddof=1) / expected
        tail = stats.chi2(replicas - 1)
        return 2 * sums.size * np.minimum(tail.cdf(sums), tail.sf(sums)).min()

    assert p_value(variances(problem.volatility)) > FALSE_ALARM
    assert p_value(variances(lambda u: printed_volatility(problem, u))) < FALSE_ALARM


def test_subcritical_steps_follow_the_flow_without_corrector():
    """Step size n^(-3/2) (MDL Section 12.3.2): the radius collapses, the critical drift is off."""
    n = 4000
    problem, start = SpikedTensor(2, n, signal=1.5), Statistics(np.array(0.3), np.array(1.3))
    times = np.linspace(0.02, 0.5, 25)
    path = reduced.run(problem, start, times, step_size=n**-1.5, rng=0)
    for c_delta, close in ((0.0, True), (1.0, False)):
        limit = ode.solve(problem, start, path.times, c_delta=c_delta, rule=NO_RULE)
        assert (max(path.sup_distance(limit)) < 0.05) == close


def test_generic_fixed_point_search():
    """Newton's method of the room above finds the informative point, with its stability."""
    problem = SpikedTensor(2, 100, signal=3.0)
    start = Statistics(np.array(1.2), np.array(0.9))
    found = find(problem, start, c_delta=1.0, rule=NO_RULE)
    np.testing.assert_allclose(np.array(found.statistics), [math.sqrt(2.0), 1.0], rtol=1e-9)
    np.testing.assert_allclose(found.eigenvalues, [-16.0, -24.0], rtol=1e-6)
    assert found.stable


# ---------------------------------------------------------------------- behaviour


def test_ten_million_dimensions_fit_anywhere():
    """Nothing may scale with the dimension."""
    problem = SpikedTensor(3, 10**7, signal=2.0)
    start = problem.draw_initial_statistics(rng=0)
    reduced.run(problem, start, [1e-6], step_size=1e-7, rng=0)
    tracemalloc.start()
    path = reduced.run(problem, Statistics(0.5, 1.2), [0, 0.1], step_size=1e-7, rng=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7
    limit = ode.solve(problem, Statistics(0.5, 1.2), [0, 0.1], c_delta=1.0, rule=NO_RULE)
    assert max(path.sup_distance(limit)) < 0.01


def test_replicas_do_not_depend_on_the_workers_and_the_start_is_left_alone():
    """One and two workers, both simulations: the same numbers."""
    problem = SpikedTensor(2, 20, signal=1.5)
    options = {"step_size": 0.02, "replicas": 4, "rng": 3}
    for room in (direct, reduced):
        one = room.run_replicas(problem, [0.0, 0.4], workers=1, **options)
        two = room.run_replicas(problem, [0.0, 0.4], workers=2, **options)
        np.testing.assert_array_equal(one.statistics, two.statistics)
    start = Statistics(np.array(0.3), np.array(1.1))
    path = reduced.run(problem, start, [0.0, 0.4], step_size=0.02, rng=0)
    np.testing.assert_array_equal(start, (0.3, 1.1))
    np.testing.assert_array_equal([value[0] for value in path.statistics], (0.3, 1.1))


@pytest.mark.parametrize(
    "ridge",
    [
        0.1,
        0.0,
    ],
)
@pytest.mark.parametrize("room", [direct, reduced])
def test_divergence_names_the_step_size(room, ridge):
    """Gradients grow like R^(2k - 1): a large step leaves the finite numbers."""
    problem = SpikedTensor(3, 20, signal=2.0, ridge=ridge)
    with pytest.raises(FloatingPointError, match=r"step_size = 0\.5"):
        room.run_replicas(problem, [50.0], step_size=0.5, replicas=1, rng=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": 1}, "order must be an integer >= 2, got 1"),
        ({"dimension": 1}, "dimension must be an integer >= 2, got 1"),
        ({"signal": -1.0}, "signal must be positive, got -1.0"),
        ({"signal": np.nan}, "signal must be finite"),
        ({"ridge": -0.1}, "ridge must be non-negative, got -0.1"),
    ],
)
def test_bad_problems_are_named(changes, message):
    """Argument, value and allowed range."""
    with pytest.raises(ValueError, match=message):
        small_problem(**changes)


def test_bad_input_is_named():
    """Points, tensors, statistics, sizes."""
    problem = small_problem()
    good = some_point(4)
    for call, message in (
        (lambda: problem.statistics(Point(np.zeros(3))), r"point.x must have shape \(4\)"),
        (lambda: problem.loss(good, np.zeros((2, 4, 4))), "tensors must have shape"),
        (lambda: problem.gradient(good, np.zeros((0, 4, 4, 4))), "at least one observation"),
        (lambda: problem.reduced_state(Statistics(0.0, -1.0)), "r2 must be non-negative"),
        (lambda: problem.reduced_state(Statistics(np.nan, 1.0)), "m must be finite"),
        (lambda: problem.drift(START, c_delta=-1.0), "c_delta must be non-negative"),
        (lambda: small_problem(dimension=2).reduced_kernel(), "dimension must be greater than 2"),
        (lambda: small_problem(dimension=600).explicit().direct_kernel(), "134217728 tensor"),
        (lambda: small_problem(dimension=100).observations(200, rng=0), "134217728 tensor"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
