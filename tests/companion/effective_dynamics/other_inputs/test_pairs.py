"""Classifiers of clouds whose noise is correlated in pairs."""

import numpy as np
import pytest
from steps import moved

from companion.effective_dynamics.other_inputs.pairs import PairedMixture, PairStatistics
from traindyn.problems.clouds.laws import Law


def test_pairs_have_the_covariance_they_say():
    """Steps at w = 0 are half of the inputs times their labels, whatever the loss."""
    n, rho = 40, -0.5
    mean = np.tile([1.0, 0.0], n // 2) / np.sqrt(n / 2)
    problem = PairedMixture(mean, law=Law("sparse", 0.3), correlation=rho, precision=2.0)
    kernel, rng = problem.direct_kernel(), np.random.default_rng(4)
    inputs = []
    for _ in range(20_000):
        state = (np.zeros(n),)
        kernel.step(state, kernel.constants, rng, 2.0)
        inputs.append(state[0])
    inputs = np.array(inputs)
    np.testing.assert_allclose(inputs.mean(axis=0), mean, atol=0.03)
    covariance = np.cov(inputs.T) * 2
    np.testing.assert_allclose(np.diag(covariance), 1.0, atol=0.08)
    np.testing.assert_allclose(covariance[range(0, n, 2), range(1, n, 2)], rho, atol=0.08)
    assert abs(covariance[1, 2]) < 0.08


def test_drift_of_pairs():
    """Mean of one step on drawn inputs."""
    n, c = 600, 2.0
    mean = np.tile([1.0, 0.3], n // 2) / np.sqrt(1.09 * n / 2)
    problem = PairedMixture(mean, law=Law("signs"), correlation=0.6)
    np.testing.assert_allclose(problem.shares.sum(), 1.0)
    here = PairStatistics(np.array([0.5, 0.4]), np.array([0.2, 0.3]))
    point = problem.place(here, rng=0)
    np.testing.assert_allclose(problem.statistics(point).r2, here.r2)
    moves = (moved(problem, point, c / n, 40_000, 1) - np.concatenate(here)) * n / c
    drift = np.concatenate(problem.drift(here, c_delta=c))
    error = moves.std(axis=0) / np.sqrt(len(moves))
    assert np.all(np.abs(moves.mean(axis=0) - drift) <= 5 * error + 20 / n)


def test_refuses_bad_pairs():
    """Correlation, parity, spread and both parts."""
    for mean, correlation, match in (
        (np.full(64, 0.125), 0.1, "both parts"),
        (np.eye(4)[0], 0.1, "fourth powers"),
        (np.full(25, 0.2), 0.1, "even number"),
        (np.full(64, 0.125), 1.0, "correlation"),
    ):
        with pytest.raises(ValueError, match=match):
            PairedMixture(mean, correlation=correlation)
