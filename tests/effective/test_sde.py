"""Euler-Maruyama paths against closed laws."""

import math

import numpy as np
import pytest
from scipy import stats

from traindyn.diffusion import Diffusion, LinearDiffusion
from traindyn.effective import sde
from traindyn.problems import SpikedTensor
from traindyn.problems.spiked.diffusive import diverging_equator

FALSE_ALARM = 1e-6
# A rotation with decay, and a noise of rank one in three directions.
MATRIX = np.array([[-0.5, 1.0, 0.0], [-1.0, -0.2, 0.3], [0.0, 0.4, -1.0]])
ROOT = np.array([[0.5], [0.1], [-0.7]])
LINE = LinearDiffusion(("x", "y", "z"), MATRIX, ROOT @ ROOT.T)
START = np.array([1.0, 0.0, -0.5])


def covariance_p_value(u, expected):
    """Worst z-test over the entries of a covariance of Gaussian samples."""
    n, found = len(u), np.cov(u.T)
    size = np.diag(expected)
    error = np.sqrt((np.outer(size, size) + expected**2) / n)
    upper = np.triu_indices(len(expected))
    return upper[0].size * 2 * stats.norm.sf((np.abs(found - expected) / error)[upper].max())


def scheme_covariance(step, time):
    """Covariance of the scheme itself after whole steps, exactly."""
    push = np.eye(3) + step * MATRIX
    found = np.zeros((3, 3))
    for _ in range(round(time / step)):
        found = push @ found @ push.T + step * LINE.noise
    return found


def test_law_of_the_scheme_and_its_weak_order():
    """Means and covariances at two times, singular noise; errors of order step.

    20000 paths: z-tests at 1e-6 against the recursion of the scheme; at step .25 the exact
    covariance is rejected. The recursion itself tends to it at first order.
    """
    times, step = [0.5, 1.5], 0.25
    path = sde.solve(LINE.diffusion(), START, times, step=step, replicas=20_000, rng=1)
    exact = LINE.covariance(times, np.zeros((3, 3)))
    for i, time in enumerate(times):
        u = path.statistics.u[:, i]
        expected = scheme_covariance(step, time)
        assert covariance_p_value(u, expected) > FALSE_ALARM
        assert covariance_p_value(u, exact[i]) < FALSE_ALARM
        mean = np.linalg.matrix_power(np.eye(3) + step * MATRIX, round(time / step)) @ START
        gap = np.abs(u.mean(axis=0) - mean) / np.sqrt(np.diag(expected) / len(u))
        assert 6 * stats.norm.sf(gap.max()) > FALSE_ALARM
    errors = [np.abs(scheme_covariance(h, 1.5) - exact[1]).max() for h in (0.05, 0.025)]
    assert 1.9 < errors[0] / errors[1] < 2.1


def test_fine_steps_give_the_exact_covariance():
    """At step 1/100 the bias is below the error; the covariance of full noise is rejected."""
    path = sde.solve(LINE.diffusion(), START, [1.0], step=0.01, replicas=5_000, rng=2)
    exact = LINE.covariance([1.0], np.zeros((3, 3)))[0]
    u = path.statistics.u[:, 0]
    assert covariance_p_value(u, exact) > FALSE_ALARM
    full = LinearDiffusion(LINE.names, MATRIX, np.diag(np.diag(LINE.noise)))
    assert covariance_p_value(u, full.covariance([1.0], np.zeros((3, 3)))[0]) < FALSE_ALARM


def brownian(drift=0.0):
    """Standard Brownian motion with a drift."""
    return Diffusion(("x",), lambda u: np.full_like(u, drift), lambda u: np.ones((*np.shape(u), 1)))


def test_stopped_paths_tell_when():
    """First passage of a drifted Brownian motion over 1; false alarm 1e-6.

    Steps miss passages in between, a shift of the level by .5826 sqrt(step) to leading order;
    the control has no shift.
    """
    step, level, drift = 0.01, 1.0, 0.5
    path = sde.solve(
        brownian(drift),
        [0.0],
        [1.0, 2.0],
        step=step,
        replicas=20_000,
        rng=4,
        stop=lambda u: u[:, 0] >= level,
    )
    u, stopped = path.statistics.u[..., 0], path.stopped

    def passed(level, time=2.0):
        """Probability of a passage by a time (reflection principle)."""
        root = math.sqrt(time)
        cdf = stats.norm.cdf
        reflected = math.exp(2 * drift * level) * cdf(-(level + drift * time) / root)
        return cdf((drift * time - level) / root) + reflected

    count = int(np.sum(stopped <= 2.0))
    assert stats.binomtest(count, 20_000, passed(level + 0.5826 * 0.1)).pvalue > FALSE_ALARM
    assert stats.binomtest(count, 20_000, passed(level)).pvalue < FALSE_ALARM
    # Stopped where it passed, frozen from then on; whole steps.
    early = stopped <= 1.0
    np.testing.assert_array_equal(u[early, 0], u[early, 1])
    assert np.all(u[early, 1] >= level)
    assert np.all(u[stopped == np.inf] < level)
    finite = stopped[np.isfinite(stopped)]
    np.testing.assert_allclose(finite / step, np.rint(finite / step), atol=1e-9)


def test_stopping_changes_no_other_path():
    """The noise of a path must not depend on when the others stop."""
    options = {"step": 0.1, "replicas": 50, "rng": 5}
    free = sde.solve(brownian(), [0.0], [1.0, 3.0], **options)
    held = sde.solve(brownian(), [0.0], [1.0, 3.0], **options, stop=lambda u: u[:, 0] > 1)
    running = held.stopped == np.inf
    assert 5 < running.sum() < 45
    np.testing.assert_array_equal(free.statistics.u[running], held.statistics.u[running])
    assert free.stopped is None


def test_explosion_of_tensor_pca():
    """The equator of order four explodes: an error with step and time, or stopped paths.

    At ratio .5 an independent simulation saw .81 and .97 beyond |m| = 8 by t = .5 and 1: exact
    tests of two shares at 1e-6; the control exchanges the two.
    """
    limit = diverging_equator(SpikedTensor(4, 100, signal=1.0), 0.5, c_delta=1.0)
    start = np.stack([np.random.default_rng(0).normal(size=500), np.ones(500)], axis=-1)
    options = {"step": 1e-3, "replicas": 500, "rng": 6}
    with pytest.raises(FloatingPointError, match=r"step = 0\.001 .* of 500 paths .* by t = 0\."):
        sde.solve(limit, start, [4.0], **options)
    path = sde.solve(limit, start, [0.5, 1.0], **options, stop=lambda u: np.abs(u[:, 0]) > 8)
    assert np.isfinite(path.statistics.u).all()
    for time, share, other in ((0.5, 0.81, 0.97), (1.0, 0.97, 0.81)):
        count = int(np.sum(path.stopped <= time))
        assert stats.binomtest(count, 500, share).pvalue > FALSE_ALARM
        assert stats.binomtest(count, 500, other).pvalue < FALSE_ALARM


def test_all_stopped_and_stopped_at_the_start():
    """Nothing is left to move: the start stands at every time, stopped at 0."""
    path = sde.solve(
        brownian(),
        [[2.0], [3.0]],
        [0.0, 1.0],
        step=0.1,
        replicas=2,
        rng=0,
        stop=lambda u: u[:, 0] > 1,
    )
    np.testing.assert_array_equal(path.statistics.u[..., 0], [[2.0, 2.0], [3.0, 3.0]])
    np.testing.assert_array_equal(path.stopped, [0.0, 0.0])


def test_reproducible_and_exact_times():
    """Same seed, same paths; times that are no multiples of the step are met."""
    options = {"step": 0.3, "replicas": 3}
    one, two, three = (
        sde.solve(brownian(), [0.0], [0.0, 0.5, 1.0], **options, rng=rng).statistics.u
        for rng in (1, np.random.default_rng(1), 2)
    )
    np.testing.assert_array_equal(one, two)
    assert np.all(one[:, 0] == 0) and np.all(one[:, 1:] != three[:, 1:])
    slope = Diffusion(("x",), np.ones_like, lambda u: np.zeros((*np.shape(u), 0)))
    path = sde.solve(slope, [0.0], [0.5, 1.1], **options, rng=0)
    np.testing.assert_allclose(path.statistics.u[0, :, 0], [0.5, 1.1], rtol=1e-14)


def test_bad_arguments_are_named():
    """Step, shapes, times, the answer of stop."""
    options = {"step": 0.1, "replicas": 3, "rng": 0}
    with pytest.raises(ValueError, match="step must be positive, got 0"):
        sde.solve(brownian(), [0.0], [1.0], **options | {"step": 0.0})
    with pytest.raises(ValueError, match="replicas must be an integer >= 1"):
        sde.solve(brownian(), [0.0], [1.0], **options | {"replicas": 0})
    with pytest.raises(ValueError, match=r"start must have shape \(1,\) or \(3, 1\), got \(2,\)"):
        sde.solve(brownian(), [0.0, 1.0], [1.0], **options)
    with pytest.raises(ValueError, match="times must be strictly increasing"):
        sde.solve(brownian(), [0.0], [1.0, 0.5], **options)
    with pytest.raises(ValueError, match=r"stop\(u\) must have shape \(3,\) of bool"):
        sde.solve(brownian(), [0.0], [1.0], **options, stop=lambda u: u > 1)
