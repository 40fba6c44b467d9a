"""Spiked matrix PCA: closed solution, escape from a random start."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from companion.effective_dynamics.pca.escape import (
    escape_curve,
    escape_probability,
    escape_quantile,
    escape_variance,
)
from companion.effective_dynamics.pca.printed import as_printed
from companion.sample_complexity.effective_dynamics.printed import printed_radius
from traindyn.effective import ode
from traindyn.gaussian import gauss_hermite
from traindyn.problems.spiked import SpikedTensor, Statistics
from traindyn.problems.spiked.matrix import solution

FALSE_ALARM = 1e-6
NO_RULE = gauss_hermite(1, 1)
TIMES = np.linspace(0.0, 2.0, 21)


@pytest.mark.parametrize("signal", [0.4, 1.0, 1.5])
@pytest.mark.parametrize("c_delta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("ridge", [0.0, 0.3, 4.0])
def test_closed_solution_solves_the_effective_dynamics(signal, c_delta, ridge):
    """Against the adaptive solver, at every coincidence of rates, for both signs of m.

    With ridge the printed drift is rejected.
    """
    problem = SpikedTensor(2, 100, signal=signal, ridge=ridge)
    for m, r2 in ((0.3, 1.3), (-0.6, 1.0), (0.0, 0.2), (0.5, 0.0)):
        start = Statistics(np.array(m), np.array(r2))
        options = {"c_delta": c_delta, "rule": NO_RULE, "rtol": 1e-11, "atol": 1e-13}
        closed = solution(problem, start, TIMES, c_delta=c_delta)
        assert max(ode.solve(problem, start, TIMES, **options).sup_distance(closed)) < 1e-9
        printed = ode.solve(as_printed(problem), start, TIMES, **options).sup_distance(closed)
        assert (max(printed) > 1e-3) == (ridge > 0 and m != 0)


def test_closed_solution_against_its_expanded_form():
    """The formula by quotients, where it is regular (no ridge, three distinct rates)."""
    signal, c, p0, q0 = 1.7, 0.6, 0.09, 1.3
    found = solution(
        SpikedTensor(2, 100, signal=signal), Statistics(-0.3, q0), TIMES, c_delta=c
    ).statistics
    kappa = p0 / (q0 - c)
    slow, fast = np.exp(8 * c * TIMES), np.exp(8 * signal * TIMES)
    y = slow / (q0 - c) + (slow - 1) / c + kappa * (fast - slow) / (signal - c)
    np.testing.assert_allclose(found.r2, c + 1 / y, rtol=1e-10)
    np.testing.assert_allclose(found.m, -np.sqrt(kappa * fast / y), rtol=1e-10)


def test_closed_solution_at_late_times():
    """Exponentials of thousands cancel in the ratios."""
    problem = SpikedTensor(2, 100, signal=5.0)
    end = solution(problem, Statistics(1e-6, 1.0), [1e3], c_delta=1.0).statistics
    np.testing.assert_allclose(np.array(end)[:, 0], [2.0, 1.0])


def test_escape_curve_and_quantiles_are_consistent():
    """Half the final squared overlap at the quantile of the value of G it belongs to."""
    problem, c = SpikedTensor(2, 1500, signal=1.5), 0.8
    variance = escape_variance(problem, c_delta=c)
    assert math.isclose(variance, 0.8 * 1.5 / 0.7)
    for level in (0.1, 0.5, 0.9):
        gaussian = math.sqrt(variance * stats.chi2(1).isf(level))
        time = escape_quantile(problem, level, c_delta=c)
        found = escape_curve(problem, time, c_delta=c, gaussian=gaussian)
        assert math.isclose(found, 0.35, rel_tol=1e-12)


@njit
def first_passages(step, constants, starts, level, rng, step_size, most):
    """Steps each chain takes until m^2 reaches `level`, or `most`."""
    found = np.empty(len(starts))
    for r in range(len(starts)):
        pair = starts[r].copy()
        count = 0
        while count < most and pair[0] * pair[0] < level:
            step((pair,), constants, rng, step_size)
            count += 1
        found[r] = count
    return found


def test_law_of_the_escape_time():
    """Kolmogorov-Smirnov of 1500 simulated times against the law, n = 10000.

    False alarm 1e-6. The control, G with the variance of the start alone, is rejected.
    """
    n, replicas, rng = 10_000, 1500, np.random.default_rng(0)
    problem = SpikedTensor(2, n, signal=2.0)
    kernel = problem.reduced_kernel()
    starts = np.array([problem.draw_initial_statistics(rng=rng) for _ in range(replicas)])
    half = 0.5 * (problem.signal - 1.0)
    counts = first_passages(kernel.step, kernel.constants, starts, half, rng, 1 / n, 10 * n)

    def law(variance):
        return lambda t: stats.chi2(1).sf(n * np.exp(-8.0 * t) / variance)

    variance = escape_variance(problem, c_delta=1.0)
    levels = np.array([0.01, 0.5, 0.99])
    quantiles = escape_quantile(problem, levels, c_delta=1.0)
    np.testing.assert_allclose(law(variance)(quantiles), levels)
    np.testing.assert_allclose(escape_probability(problem, quantiles, c_delta=1.0), levels)
    assert stats.kstest(counts / n, law(variance)).pvalue > FALSE_ALARM
    assert stats.kstest(counts / n, law(1.0)).pvalue < FALSE_ALARM


def test_requests_that_make_no_sense_are_refused():
    """Order, ridge, signal and probability out of range."""
    start = Statistics(0.3, 1.0)
    for call, message in (
        (lambda: solution(SpikedTensor(3, 9, signal=1.0), start, [1.0], c_delta=1.0), "order"),
        (lambda: escape_variance(SpikedTensor(2, 9, signal=0.9), c_delta=1.0), "greater than"),
        (lambda: escape_variance(SpikedTensor(2, 9, signal=2.0, ridge=0.1), c_delta=1.0), "ridge"),
        (lambda: escape_quantile(SpikedTensor(2, 9, signal=2.0), 1.0, c_delta=1.0), "probability"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_printed_radius_solves_the_printed_equation_and_not_the_right_one():
    """Its slope by differences, and the closed solution at m = 0 (MDL Section 12.4.2)."""
    h, times = 1e-6, np.linspace(0.01, 0.4, 9)
    for start in (0.4, 1.3):
        q = printed_radius(start, times)
        slope = (printed_radius(start, times + h) - printed_radius(start, times - h)) / (2 * h)
        assert np.abs(slope + 8 * q * (q**2 - 1)).max() < 1e-7
        begin = Statistics(np.zeros(()), np.array(start))
        right = solution(SpikedTensor(2, 100, signal=0.5), begin, times, c_delta=1.0)
        slope = -8 * right.statistics.r2 * (right.statistics.r2 - 1)
        drift = SpikedTensor(2, 100, signal=0.5).drift(right.statistics, c_delta=1.0).r2
        assert np.abs(slope - drift).max() < 1e-12
        assert np.abs(q - right.statistics.r2).max() > 0.05
