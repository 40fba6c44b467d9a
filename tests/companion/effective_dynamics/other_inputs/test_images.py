"""Two classes of inputs: preparation, draws, and the equation for Gaussians."""

import numpy as np
import pytest

from companion.effective_dynamics.other_inputs.images import Resampled, whitened
from traindyn.effective import ode
from traindyn.problems.clouds.mixture import Mixture, Statistics
from traindyn.sgd import direct


def clouds(n, d, seed=0):
    """Two overlapping classes with different covariances."""
    rng = np.random.default_rng(seed)
    signs = np.repeat([-1.0, 1.0], n // 2)
    rows = rng.normal(size=(n, d)) * np.linspace(0.5, 1.5, d)
    rows[signs > 0] *= 1.3
    return rows + signs[:, None] * np.linspace(0, 1, d) / np.sqrt(d), signs


def test_draws_have_the_moments_they_say():
    """A step from zero is half an input times its label."""
    rows, signs = clouds(200, 6)
    for gaussian in (False, True):
        problem = Resampled(rows, signs, gaussian=gaussian)
        kernel, rng, seen = problem.direct_kernel(), np.random.default_rng(2), []
        for _ in range(30_000):
            state = (np.zeros(6),)
            kernel.step(state, kernel.constants, rng, 2.0)
            seen.append(state[0])
        seen = np.array(seen)
        np.testing.assert_allclose(seen.mean(axis=0), problem.mean, atol=0.05)
        np.testing.assert_allclose(np.cov(seen.T), problem.covariances.mean(axis=0), atol=0.08)
    point = problem.initial(rng=0)._replace(w=np.arange(6.0))
    margins = (problem.inputs * problem.signs[:, None]) @ point.w
    spread = np.mean([margins[signs == sign].var() for sign in (-1, 1)])
    np.testing.assert_allclose(problem.statistics(point), [margins.mean(), spread])


def test_gaussians_follow_the_equation():
    """SGD on Gaussians like the rows, in a hundred dimensions."""
    problem = Resampled(*clouds(400, 100), gaussian=True)
    step = 1.0 / np.trace(problem.covariances.mean(axis=0))
    times = np.array([1.0, 3.0])
    path = direct.run_replicas(
        problem, times, step_size=step, replicas=60, rng=1, start=problem.initial(rng=0), workers=1
    ).statistics
    foreseen = problem.follow(times, step_size=step)
    for seen, expected in zip(path, foreseen, strict=True):
        np.testing.assert_allclose(seen.mean(axis=0), expected, rtol=0.05)


def test_isotropic_clouds_follow_the_equation_of_the_mixture():
    """Where mean and covariances are those of the other problem, both agree as steps get small."""
    d = 40
    root = np.sqrt(d) * np.vstack([np.eye(d), -np.eye(d)])
    mean = np.full(d, d**-0.5)
    rows = np.vstack([root + mean, root - mean])
    problem = Resampled(rows, np.repeat([1.0, -1.0], 2 * d))
    np.testing.assert_allclose(problem.covariances, np.stack([np.eye(d)] * 2), atol=1e-12)
    c = 0.2
    seen = problem.follow([2.0], step_size=c / d)
    start = Statistics(np.array(0.0), np.array(0.0))
    expected = ode.solve(Mixture(mean), start, [2.0], c_delta=c).statistics
    np.testing.assert_allclose(seen.overlap, expected.m, rtol=0.01)
    np.testing.assert_allclose(seen.spread, expected.r2 + expected.m**2, rtol=0.02)


def test_noise_within_classes_becomes_round():
    """Noise within classes has variance one in every kept direction."""
    rows, signs = clouds(300, 8)
    white = whitened(rows, (signs > 0).astype(int), components=5)
    within = Resampled(white, signs).covariances.mean(axis=0)
    np.testing.assert_allclose(within, np.eye(5), atol=1e-10)


def test_refuses_bad_inputs():
    """Wrong labels, classes of different size, and more components than there are."""
    rows, signs = clouds(10, 3)
    with pytest.raises(ValueError, match="labels must have shape"):
        whitened(rows, [0, 1, 1], components=2)
    with pytest.raises(ValueError, match="rank of the noise"):
        whitened(np.hstack([rows, rows]), (signs > 0).astype(int), components=6)
    for bad in (np.ones(10), signs * 2):
        with pytest.raises(ValueError, match="signs must be -1 and 1"):
            Resampled(rows, bad)
