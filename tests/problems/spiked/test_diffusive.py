"""Diffusive limits of spiked PCA against the reduced chain, printed variants rejected."""

import itertools
import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from companion.effective_dynamics.pca.printed import printed_diverging_equator, printed_double
from traindyn.problems.spiked import SpikedTensor, Statistics
from traindyn.problems.spiked.diffusive import (
    _curvature,
    diverging_equator,
    equator,
    fluctuations,
    mean_shift,
    small_noise,
    with_diverging_signal,
)
from traindyn.problems.spiked.equilibria import equilibria, informative
from traindyn.sgd import reduced

FALSE_ALARM = 1e-6
EQUATOR = Statistics(np.array(0.0), np.array(1.0))


def scaled_paths(problem, times, *, replicas, start=None, seed=0):
    """Blown-up (m, r2 - 1) of replicas at c_delta = 1, shape (replicas, T, 2)."""
    n = problem.dimension
    path = reduced.run_replicas(
        problem, times, step_size=1.0 / n, replicas=replicas, rng=seed, start=start
    )
    return math.sqrt(n) * np.stack([path.statistics.m, path.statistics.r2 - 1.0], axis=-1)


def variance_p_value(samples, expected):
    """Least two-sided chi-square p-value of the variances of Gaussian samples, Bonferroni."""
    sums = (len(samples) - 1) * samples.var(axis=0, ddof=1) / expected
    tail = stats.chi2(len(samples) - 1)
    return 2 * sums.size * np.minimum(tail.cdf(sums), tail.sf(sums)).min()


def euler(diffusion, start, time, steps, rng):
    """First coordinate of Euler-Maruyama replicas, frozen once it exceeds 8 in size."""
    u, dt = start.copy(), time / steps
    for _ in range(steps):
        moving = np.abs(u[:, 0]) <= 8
        here = u[moving]
        kick = diffusion.factor(here)[..., 0] * rng.normal(size=(len(here), 1))
        u[moving] = here + dt * diffusion.drift(here) + math.sqrt(dt) * kick
    return u[:, 0]


def printed_equator(problem):
    """Limit with the volatility of BGJ Section 7.3 as printed; zero where that is negative."""
    right, k = equator(problem, c_delta=1.0), problem.order

    def factor(u):
        return np.array([[math.sqrt(4 * k * max(u[0] ** (k - 1), 0.0))], [0.0]])

    return right._replace(factor=factor)


@pytest.mark.parametrize(("order", "signal"), [(2, 0.8), (2, 1.3), (3, 2.0)])
def test_one_step_tends_to_the_equator_limit(order, signal):
    """Premises of BGJ Proposition 3.3 at several places: drift and volatility to 1/sqrt(n).

    The volatility printed in BGJ Section 7.3 is rejected.
    """
    n, c = 10**12, 0.7
    problem = SpikedTensor(order, n, signal=signal, ridge=0.3)
    limit = equator(problem, c_delta=c)
    plain = SpikedTensor(order, n, signal=signal)
    printed = printed_equator(plain)
    for m, r2 in ((0.0, 1.0), (1.5, 0.6), (-2.0, 1.4)):
        u = np.array([m, r2])
        drift, noise = scaled_step(problem, u, c)
        np.testing.assert_allclose(drift, limit.drift(u), atol=1e-3)
        factor = limit.factor(u)
        np.testing.assert_allclose(noise, factor @ factor.T, atol=1e-3)
        drift, noise = scaled_step(plain, u, 1.0)
        np.testing.assert_allclose(drift, printed.drift(u), atol=1e-3)
        factor = printed.factor(u)
        assert np.abs(noise - factor @ factor.T).max() > 0.1


def scaled_step(problem, u, c_delta):
    """Drift and diffusion matrix of one step of (sqrt(n) m, r2), in units of its size."""
    n = problem.dimension
    scale = np.array([math.sqrt(n), 1.0])
    size = c_delta / n
    here = Statistics(*(u / scale))
    moments = problem.step_moments(here, step_size=size)
    drift = (np.array(moments.mean) - np.array(here)) * scale / size
    return drift, moments.covariance * np.outer(scale, scale) / size


@pytest.mark.parametrize("order", [2, 3, 4])
def test_diverging_signal_keeps_a_power_of_the_overlap(order):
    """One step at signal 1.4 n^((k-2)/2); the linear drift of BGJ (3.3) is rejected."""
    n, ratio, c = 10**12, 1.4, 0.7
    base = SpikedTensor(order, n, signal=1.0)
    problem = with_diverging_signal(base, ratio)
    limit, printed = (
        diverging_equator(base, ratio, c_delta=c),
        printed_diverging_equator(base, ratio),
    )
    for m, r2 in ((1.5, 0.6), (-2.0, 1.4)):
        u = np.array([m, r2])
        drift, noise = scaled_step(problem, u, c)
        np.testing.assert_allclose(drift, limit.drift(u), rtol=1e-3, atol=1e-3)
        factor = limit.factor(u)
        np.testing.assert_allclose(noise, factor @ factor.T, atol=1e-3)
        drift, noise = scaled_step(problem, u, 1.0)
        gap = np.abs(drift - printed.drift(u)).max()
        assert (gap > 1.0) == (order > 2)
        factor = printed.factor(u)
        np.testing.assert_allclose(noise, factor @ factor.T, atol=1e-3)


def test_variance_at_the_equator():
    """sqrt(n) m is N(0, v(t)) and sqrt(n) (r2 - 1) has its own law, independent.

    1000 replicas, n = 4000: chi-square tests of the variances, Kolmogorov-Smirnov of m at
    the last time, correlation; false alarm 1e-6 each. BGJ (3.5) as printed is rejected, in its
    drift of m and in its radius.
    """
    signal, times = 0.6, np.array([0.05, 0.1, 0.2])
    problem = SpikedTensor(2, 4000, signal=signal)
    found = scaled_paths(problem, times, replicas=1000)
    limit = fluctuations(problem, EQUATOR, c_delta=1.0)
    expected = limit.covariance(times, problem.initial_covariance())
    a = 4 * (signal - 1)
    closed = np.exp(2 * a * times) + 8 * (np.exp(2 * a * times) - 1) / (2 * a)
    np.testing.assert_allclose(expected[:, 0, 0], closed, rtol=1e-12)
    radius = 2 * np.exp(-16 * times) + 4 * (1 - np.exp(-16 * times))
    np.testing.assert_allclose(expected[:, 1, 1], radius, rtol=1e-12)
    np.testing.assert_allclose(expected[:, 0, 1], 0.0, atol=1e-15)
    assert variance_p_value(found[..., 0], closed) > FALSE_ALARM
    assert variance_p_value(found[..., 1], radius) > FALSE_ALARM
    last = found[:, -1]
    assert (
        stats.kstest(last[:, 0], stats.norm(scale=math.sqrt(closed[-1])).cdf).pvalue > FALSE_ALARM
    )
    assert stats.pearsonr(*last.T).pvalue > FALSE_ALARM
    # Printed: rate 4 k^2 = 16, noise 4 k (k - 1) = 8, and a drift of m that ignores its sign.
    printed = 2 * np.exp(-32 * times) + 8 * (1 - np.exp(-32 * times)) / 32
    assert variance_p_value(found[..., 1], printed) < FALSE_ALARM
    assert abs(last[:, 0].mean()) < 0.3
    assert printed_double(problem).drift(np.zeros(2))[0] == -4.0


def test_equator_limit_for_any_step_size_and_its_printed_form():
    """Coefficients at (0, c); what BGJ (3.5) prints at c = 1 differs in three places."""
    for order in (2, 3, 4):
        c, k, signal = 0.7, order, 0.6
        limit = fluctuations(
            SpikedTensor(order, 100, signal=signal),
            Statistics(np.array(0.0), np.array(c)),
            c_delta=c,
        )
        pull = signal / c if k == 2 else 0.0
        matrix = np.diag([2 * k * c ** (k - 1) * (pull - 1), -4 * k * c ** (k - 1)])
        noise = np.diag([4 * k * c**k, 16 * k**2 * c ** (k + 1)])
        np.testing.assert_allclose(limit.matrix, matrix, atol=1e-14)
        np.testing.assert_allclose(limit.noise, noise, rtol=1e-12)
        problem = SpikedTensor(order, 100, signal=signal)
        ours = fluctuations(problem, EQUATOR, c_delta=1.0).diffusion()
        printed = printed_double(problem)
        u = np.array([[0.5, 0.3], [-1.0, 2.0]])
        gap = np.abs(ours.drift(u) - printed.drift(u))
        assert np.all(gap[1] > 1.0)
        sizes = [d.factor(u)[1] for d in (ours, printed)]
        np.testing.assert_allclose(sizes[0][0, 0], sizes[1][0, 0])
        assert sizes[0][1, 1] > 2 * sizes[1][1, 1]


@pytest.mark.parametrize(
    ("order", "signal", "expected"),
    [
        (2, 1.2, (3.4405, 0.0532, 3.6667)),
        (2, 1.5, (1.9167, 0.1179, 3.3333)),
        (2, 2.0, (1.4167, 0.1667, 3.0)),
        (3, 5.0, (1.516, 0.108, 3.628)),
    ],
)
def test_stationary_covariance_at_the_informative_point(order, signal, expected):
    """Lyapunov solution against independent values."""
    problem = SpikedTensor(order, 4000, signal=signal)
    best = informative(problem, c_delta=1.0)[-1]
    found = fluctuations(problem, best.statistics, c_delta=1.0).stationary()
    np.testing.assert_allclose(found[[0, 0, 1], [0, 1, 1]], expected, atol=6e-4)


def test_fluctuations_at_the_informative_point():
    """300 replicas after relaxation: chi-square of the variances, false alarm 1e-6.

    The control is the covariance at the equator.
    """
    problem = SpikedTensor(3, 4000, signal=5.0)
    best = informative(problem, c_delta=1.0)[-1].statistics
    path = reduced.run_replicas(problem, [0.3], step_size=1 / 4000, replicas=300, rng=1, start=best)
    found = math.sqrt(4000) * np.concatenate(
        [path.statistics.m - best.m, path.statistics.r2 - best.r2], axis=-1
    )
    expected = np.diag(fluctuations(problem, best, c_delta=1.0).stationary())
    assert variance_p_value(found, expected) > FALSE_ALARM
    wrong = np.diag(fluctuations(problem, EQUATOR, c_delta=1.0).stationary())
    assert variance_p_value(found, wrong) < FALSE_ALARM


@njit
def first_exits(step, constants, starts, level, rng, step_size, steps):
    """Overlap of each chain where it first exceeds `level` in size, or after all steps."""
    found = np.empty(len(starts))
    for r in range(len(starts)):
        pair = starts[r].copy()
        for _ in range(steps):
            if abs(pair[0]) > level:
                break
            step((pair,), constants, rng, step_size)
        found[r] = pair[0]
    return found


@pytest.mark.parametrize(("order", "ratio"), [(3, 0.5), (4, 0.3)])
def test_explosion_at_every_signal_ratio(order, ratio):
    """Share of paths that leave |sqrt(n) m| < 8 by t = 1, below the threshold of BGJ (3.3).

    2000 replicas of the chain at n = 2000 against 2000 of the limit (Euler-Maruyama): exact
    test of two shares, false alarm 1e-6. The printed linear limit sends nobody there; and
    for order three all leave on the positive side.
    """
    n, replicas, rng = 2000, 2000, np.random.default_rng(5)
    base = SpikedTensor(order, n, signal=1.0)
    kernel = with_diverging_signal(base, ratio).reduced_kernel()
    starts = np.array([base.draw_initial_statistics(rng=rng) for _ in range(replicas)])
    level = 8 / math.sqrt(n)
    found = first_exits(kernel.step, kernel.constants, starts, level, rng, 1 / n, n)
    begin = np.stack([rng.normal(size=replicas), np.ones(replicas)], axis=-1)
    ours = euler(diverging_equator(base, ratio, c_delta=1.0), begin, 1.0, 1000, rng)
    printed = euler(printed_diverging_equator(base, ratio), begin, 1.0, 300, rng)
    counts = [int(np.sum(np.abs(m) > 8)) for m in (math.sqrt(n) * found, ours, printed)]

    def p_value(a, b):
        return stats.fisher_exact([[a, replicas - a], [b, replicas - b]]).pvalue

    assert counts[0] > replicas / 3
    assert p_value(counts[0], counts[1]) > FALSE_ALARM
    assert p_value(counts[0], counts[2]) < FALSE_ALARM
    assert (found.min() > -level) == (order == 3)


def test_barrier_is_the_top_of_the_potential():
    """The drift vanishes there, and its work against the noise is the height."""
    for order, ratio, c in ((3, 0.5, 1.0), (4, 0.3, 0.7), (6, 2.0, 1.5)):
        top = (c ** (order - 1) / ratio) ** (1 / (order - 2))
        height = (order - 2) / (2 * order) * top**2 / c
        limit = diverging_equator(SpikedTensor(order, 100, signal=1.0), ratio, c_delta=c)
        m = np.linspace(0.0, top, 2001)
        u = np.stack([m, np.full_like(m, c)], axis=-1)
        assert abs(limit.drift(u)[-1, 0]) < 1e-12
        slope = -2 * limit.drift(u)[:, 0] / limit.factor(u)[:, 0, 0] ** 2
        assert math.isclose(np.trapezoid(slope, m), height, rel_tol=1e-5)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_curvature_is_the_derivative_of_the_jacobian(order):
    """Symmetric in its last axes, off the fixed points too."""
    problem, c = SpikedTensor(order, 9, signal=1.7, ridge=0.3), 0.6
    for u in (np.array([0.5, 0.8]), np.array([-0.3, 1.4])):
        columns = []
        for shift in 1e-5 * np.eye(2):
            ahead, behind = (
                problem.jacobian(Statistics(*(u + sign * shift)), c_delta=c) for sign in (1, -1)
            )
            columns.append((ahead - behind) / 2e-5)
        found = _curvature(problem, *u, c)
        np.testing.assert_allclose(found, np.stack(columns, axis=-1), rtol=1e-7, atol=1e-6)
        np.testing.assert_array_equal(found, np.swapaxes(found, 1, 2))


@pytest.mark.parametrize(
    ("order", "signal", "ridge", "c_delta"), [(2, 2.0, 0.0, 1.0), (3, 5.0, 0.4, 0.8)]
)
def test_stationary_mean_is_shifted_by_the_inverse_dimension(order, signal, ridge, c_delta):
    """Mean of both statistics over 4000 chains at n = 400 against the predicted shift.

    z-tests, false alarm 1e-6. The tolerance is the next order, the step size times the fastest
    rate relative to the shift. No shift is rejected for both.
    """
    n, replicas = 400, 4000
    problem = SpikedTensor(order, n, signal=signal, ridge=ridge)
    place = informative(problem, c_delta=c_delta)[-1]
    best, fastest = place.statistics, np.abs(place.eigenvalues).max()
    shift = np.array(mean_shift(problem, best, c_delta=c_delta))
    times = np.linspace(1.0, 4.0, 13)
    path = reduced.run_replicas(
        problem, times, step_size=c_delta / n, replicas=replicas, rng=4, start=best
    )
    means = np.stack([values.mean(axis=1) for values in path.statistics], axis=-1)
    gap = means.mean(axis=0) - np.array(best)
    error = means.std(axis=0, ddof=1) / math.sqrt(replicas)
    next_order = np.abs(shift).max() / n * fastest * c_delta / n
    allowed = next_order + stats.norm.isf(FALSE_ALARM / 4) * error
    assert np.all(np.abs(gap - shift / n) < allowed)
    assert np.all(np.abs(gap) > allowed)


def test_small_noise_holds_in_every_regime():
    """Drift of one step exactly, its covariance to 1/n, from the equator to order-one overlap."""
    c = 0.7
    for order, n in itertools.product((2, 3, 4), (40, 10**8)):
        problem = SpikedTensor(order, n, signal=1.7, ridge=0.3)
        limit = small_noise(problem, c_delta=c)
        for m, r2 in ((0.0, 0.7), (1e-4, 1.1), (-0.8, 0.6), (0.5, 0.0)):
            u = np.array([m, r2])
            moments = problem.step_moments(Statistics(*u), step_size=c / n)
            speed = (np.array(moments.mean) - u) * n / c
            # Differences of the means lose the digits of the step size.
            np.testing.assert_allclose(limit.drift(u), speed, rtol=1e-7, atol=2e-16 * n * 10)
            if n == 10**8:
                factor = limit.factor(u)
                expected = moments.covariance * n / c
                np.testing.assert_allclose(factor @ factor.T, expected, rtol=1e-5, atol=1e-14)
        np.testing.assert_array_equal(limit.factor(np.zeros((3, 2))), 0.0)


def test_bad_requests_are_named():
    """No stationary law, not a fixed point."""
    problem = SpikedTensor(2, 100, signal=1.5)
    with pytest.raises(ValueError, match="negative real parts"):
        fluctuations(problem, EQUATOR, c_delta=1.0).stationary()
    with pytest.raises(ValueError, match="must be a fixed point"):
        fluctuations(problem, Statistics(0.5, 1.0), c_delta=1.0)
    for each in equilibria(SpikedTensor(4, 100, signal=9.0, ridge=0.5), c_delta=1.0):
        fluctuations(SpikedTensor(4, 100, signal=9.0, ridge=0.5), each.statistics, c_delta=1.0)
