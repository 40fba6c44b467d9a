"""Escape of spiked matrix PCA from a random start."""

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
from traindyn.problems.spiked import SpikedTensor

FALSE_ALARM = 1e-6


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
    """Ridge, signal and probability out of range."""
    for call, message in (
        (lambda: escape_variance(SpikedTensor(2, 9, signal=0.9), c_delta=1.0), "greater than"),
        (lambda: escape_variance(SpikedTensor(2, 9, signal=2.0, ridge=0.1), c_delta=1.0), "ridge"),
        (lambda: escape_quantile(SpikedTensor(2, 9, signal=2.0), 1.0, c_delta=1.0), "probability"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
