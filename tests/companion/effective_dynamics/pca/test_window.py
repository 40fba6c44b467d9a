"""The critical window of spiked matrix PCA: limit of a step, moments, law."""

import math

import numpy as np
from scipy import stats

from companion.effective_dynamics.pca.window import (
    critical_window,
    critical_window_cdf,
    critical_window_moment,
)
from traindyn.effective import sde
from traindyn.problems.spiked import SpikedTensor, Statistics

FALSE_ALARM = 1e-6


def test_critical_window_is_the_limit_of_a_step():
    """One step at signal c + kappa / sqrt(n), with r2 at rest, in units of sqrt(n) steps."""
    n, c, kappa = 10**16, 0.7, 1.3
    problem = SpikedTensor(2, n, signal=c + kappa / math.sqrt(n))
    limit = critical_window(kappa, c_delta=c)
    for y in (0.4, -1.5):
        u = np.array([y])
        here = Statistics(y * n**-0.25, c)
        # The difference of the means would lose every digit at this size.
        speed = problem.drift(here, c_delta=c).m * n**0.25 * math.sqrt(n)
        np.testing.assert_allclose(speed, limit.drift(u)[0], rtol=1e-3)
        noise = c * problem.volatility(here)[0, 0]
        np.testing.assert_allclose(noise, limit.factor(u)[0, 0] ** 2, rtol=1e-3)


def test_critical_window_moments():
    """Second moments against independent values, far windows against their asymptotics."""
    for kappa, expected in ((-1.0, 0.468), (0.0, 0.676), (1.0, 1.042), (2.0, 1.665)):
        assert abs(critical_window_moment(kappa, 2.0, c_delta=1.0) - expected) < 6e-4
    # Scaling: y / sqrt(c) at kappa / c has the law of c = 1.
    scaled = 0.5 * critical_window_moment(2.0, 2.0, c_delta=1.0)
    assert math.isclose(critical_window_moment(1.0, 2.0, c_delta=0.5), scaled, rel_tol=1e-9)
    assert math.isclose(critical_window_moment(-200.0, 2.0, c_delta=1.0), 1 / 200, rel_tol=1e-3)
    assert math.isclose(critical_window_moment(100.0, 2.0, c_delta=1.0), 100.0, rel_tol=1e-3)


def test_critical_window_distribution():
    """Moments of the distribution function are those by quadrature, at either sign of kappa."""
    for kappa, c in ((-2.0, 1.0), (0.0, 0.6), (3.0, 1.0), (9.0, 0.7)):
        y = np.linspace(0.0, 8.0, 4001)
        upper = 1.0 - critical_window_cdf(kappa, y, c_delta=c)
        second = 4.0 * np.trapezoid(y * upper, y)
        assert math.isclose(
            second, critical_window_moment(kappa, 2.0, c_delta=c), rel_tol=1e-5, abs_tol=1e-5
        )
        np.testing.assert_allclose(critical_window_cdf(kappa, -y, c_delta=c), upper, atol=1e-9)


def test_stationary_moment_of_the_critical_window():
    """E y^2 of a nonlinear equation; 10000 paths, t-test at 1e-6, another window rejected."""
    for kappa in (0.0, 1.0):
        limit = critical_window(kappa, c_delta=1.0)
        path = sde.solve(limit, [0.5], [2.0], step=0.005, replicas=10_000, rng=3)
        square = path.statistics.u[:, 0, 0] ** 2
        ours, other = (critical_window_moment(k, 2.0, c_delta=1.0) for k in (kappa, kappa + 0.3))
        assert stats.ttest_1samp(square, ours).pvalue > FALSE_ALARM
        assert stats.ttest_1samp(square, other).pvalue < FALSE_ALARM
