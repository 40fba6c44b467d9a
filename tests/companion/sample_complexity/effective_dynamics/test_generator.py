"""The operators of the limit theorem against sampled steps."""

import numpy as np
import pytest

from companion.sample_complexity.effective_dynamics import generator
from traindyn.effective import one_step
from traindyn.problems import SpikedTensor
from traindyn.problems.spiked import Statistics


def operators(problem, point, step_size):
    """Apply them to m and the orthogonal square of spiked PCA."""
    x = point.x
    outside = np.diag(np.r_[0.0, np.ones(problem.dimension - 1)])
    jacobian = np.stack([np.eye(problem.dimension)[0], 2.0 * outside @ x])
    return generator.evaluate(
        problem.population_gradient(point).x,
        problem.noise_covariance(point),
        jacobian,
        np.stack([np.zeros_like(outside), 2.0 * outside]),
        step_size=step_size,
    )


def test_operators_are_the_moments_of_one_step():
    """Drift, corrector and diffusion (MDL Theorem 12.4) within the error of 40 000 steps."""
    problem, step = SpikedTensor(3, 60, signal=2.0), 1 / 60
    point = problem.place(Statistics(np.array(0.6), np.array(0.8)))
    found = operators(problem, point, step)
    sampled = one_step.measure(problem, point, step_size=step, samples=40_000, rng=1)
    slope = problem.population_gradient(point).x
    dropped = np.array([0.0, step * slope[1:] @ slope[1:]])
    for value, estimate in (
        (-found.population, sampled.drift),
        (found.diffusion, sampled.diffusion),
    ):
        assert np.all(np.abs(estimate.value - value) < 6 * estimate.error)
    gap = np.abs(sampled.corrector.value - found.corrector - dropped)
    # The corrector of m is exactly zero in every sample, up to rounding.
    assert np.all(gap < 6 * sampled.corrector.error + 1e-10)
    # Power: a corrector of half the size is seen.
    assert 0.5 * found.corrector[1] > 12 * sampled.corrector.error[1]


def test_operators_refuse_wrong_shapes():
    """Errors tell which argument was wrong."""
    x = np.ones(3)
    with pytest.raises(ValueError, match="hessians"):
        generator.evaluate(x, np.eye(3), [x], np.eye(3), step_size=0.1)
    with pytest.raises(ValueError, match="covariance"):
        generator.evaluate(x, np.eye(2), [x], [np.eye(3)], step_size=0.1)
    with pytest.raises(ValueError, match="step_size"):
        generator.evaluate(x, np.eye(3), [x], [np.eye(3)], step_size=0.0)
