"""Escape from zero overlap: linearisation, Gaussian paths and passage times."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from companion.alignment.xor_alignment.escape import escape, linearise
from traindyn import gaussian
from traindyn.effective import ode
from traindyn.problems.two_layer import Statistics, TwoLayerMixture
from traindyn.sgd import reduced
from traindyn.trajectory import first_passage

V = np.array([1.2, -0.7, 0.5])
GRAM = np.array([[1.0, 0.2, -0.1], [0.2, 0.8, 0.1], [-0.1, 0.1, 0.9]])


def xor(width, dimension=1000, precision=10.0, ridge=0.03, **options):
    """XOR mixture."""
    return TwoLayerMixture.xor(width, dimension, precision=precision, ridge=ridge, **options)


def here():
    """A state without overlap."""
    return Statistics(V, np.zeros((3, 2)), GRAM)


def derivative(problem, rule, width=1e-4):
    """Derivative of the drift of m, by central differences of the smooth quadrature."""
    columns = []
    for k in range(6):
        m = np.zeros(6)
        m[k] = width
        ends = [
            problem.drift(here()._replace(m=sign * m.reshape(3, 2)), c_delta=1.0, rule=rule)
            for sign in (1, -1)
        ]
        columns.append((ends[0].m - ends[1].m).ravel() / (2 * width))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("turned", [False, True])
def test_growth_is_the_derivative_of_the_drift(turned):
    """Also where the centroids are not on the axes; a dropped cross term would show."""
    a = np.sqrt(0.5)
    problem = xor(3, mu=(a, a), nu=(a, -a)) if turned else xor(3)
    found = linearise(problem, here(), rule=gaussian.sobol(3, 2**14, rng=1))
    expected = derivative(problem, gaussian.sobol(3, 2**12, rng=2))
    np.testing.assert_allclose(found.growth, expected, atol=3e-4)
    alone = linearise(
        problem, here()._replace(v=V * [1, 0, 0]), rule=gaussian.sobol(3, 2**14, rng=1)
    )
    assert np.abs(found.growth - alone.growth)[:2, :2].max() > 3e-3


def test_noise_is_the_volatility():
    """The covariance of one step of m, from the library's own integrals."""
    found = linearise(xor(3), here(), rule=gaussian.sobol(3, 2**14, rng=1))
    expected = xor(3).volatility(here(), c_delta=1.0)[3:9, 3:9]
    np.testing.assert_allclose(found.noise, expected, atol=3e-4)
    assert np.abs(expected).max() > 0.1


def test_rate_of_a_small_neuron():
    """The textbook rate |v| sqrt(lambda / (2 pi)) / 4 on the line of its label."""
    found = linearise(xor(1), xor(1).initial_statistics(v=[-1e-4])).growth
    rate = 0.25e-4 * np.sqrt(10.0 / (2 * np.pi))
    np.testing.assert_allclose(np.diag(found) + 0.03, [-rate, rate], rtol=1e-3)


def along(problem, v, end=12.0, step=0.25):
    """Linearised paths from the limit of a random start."""
    times = np.arange(0, end + step / 2, step)
    calm = ode.solve(problem, problem.initial_statistics(v=v), times, c_delta=1.0, rtol=1e-6)
    return escape(problem, times, calm.statistics, c_delta=1.0)


@pytest.mark.nightly
def test_passage_times_follow_sgd():
    """Law of the time at which an overlap reaches 0.1: KS test at 1e-6, 300 runs.

    The law in a dimension three times as large is rejected.
    """
    v, size, level = [1.5, -1.0], 4000, 0.1
    found = along(xor(2), v)
    linear = np.abs(found.paths(size, 4000, rng=1)).max(axis=(-1, -2))
    expected = np.minimum(first_passage(found.times, linear, level), found.times[-1])
    problem = xor(2, size)
    runs = reduced.run_replicas(
        problem,
        found.times,
        step_size=1 / size,
        replicas=300,
        rng=2,
        start=lambda rng: problem.draw_initial_statistics(rng=rng)._replace(v=np.array(v)),
        workers=2,
    )
    seen = first_passage(found.times, np.abs(runs.statistics.m).max(axis=(-1, -2)), level)
    seen = np.minimum(seen, found.times[-1])
    assert ks_2samp(seen, expected).pvalue > 1e-6
    larger = np.abs(found.paths(3 * size, 4000, rng=1)).max(axis=(-1, -2))
    larger = np.minimum(first_passage(found.times, larger, level), found.times[-1])
    assert ks_2samp(seen, larger).pvalue < 1e-6


def test_paths_are_gaussian_with_the_right_covariance():
    """Recursion of the covariance against that of 20000 drawn paths, five deviations."""
    found = along(xor(2), [1.0, -0.5], end=3.0)
    covariance = np.eye(4)
    for P, Q in zip(found.transitions, found.kicks, strict=True):
        covariance = P @ covariance @ P.T + Q @ Q
    ends = found.paths(100.0, 20_000, rng=3)[:, -1].reshape(-1, 4) * 10
    error = np.sqrt(2 / 20_000) * np.outer(*[np.sqrt(np.diag(covariance))] * 2)
    assert (np.abs(ends.T @ ends / 20_000 - covariance) < 5 * error).all()
    assert not (np.abs(ends.T @ ends / 20_000 - np.eye(4)) < 5 * error).all()


def test_steps_of_the_grid_do_not_matter():
    """Halving the grid changes the covariance by the square of its step."""
    results = []
    for step in (0.5, 0.25):
        found = along(xor(2), [1.5, -1.0], end=8.0, step=step)
        covariance = np.eye(4)
        for P, Q in zip(found.transitions, found.kicks, strict=True):
            covariance = P @ covariance @ P.T + Q @ Q
        results.append(covariance)
    np.testing.assert_allclose(results[0], results[1], rtol=5e-3, atol=1e-3)


def test_first_passage():
    """Geometric interpolation, a start beyond the level, and paths that never reach it."""
    paths = [[1.0, 2.0, 8.0], [5.0, 9.0, 9.0], [1.0, 1.0, 1.0], [1.0, 4.0, 1.0]]
    found = first_passage([0.0, 1.0, 3.0], paths, 4.0)
    np.testing.assert_allclose(found, [2.0, 0.0, np.inf, 1.0])


def test_refusals():
    """A start where the two labels differ in mean, no noise, no neuron, odd grids."""
    binary = TwoLayerMixture.binary(1, 100, precision=10.0, ridge=0.1)
    with pytest.raises(ValueError, match="centroids of mean zero"):
        linearise(binary, binary.initial_statistics(v=[1.0]))
    with pytest.raises(ValueError, match=r"problem\.precision"):
        linearise(xor(3, precision=np.inf), here())
    with pytest.raises(ValueError, match="must hold neurons that do not vanish"):
        linearise(xor(3), here()._replace(R_perp=np.diag([1.0, 0.0, 1.0])))
    with pytest.raises(ValueError, match="rule must have dimension 3"):
        linearise(xor(3), here(), rule=gaussian.sobol(2, 16, rng=0))
    path = Statistics(*(np.stack([part, part]) for part in here()))
    with pytest.raises(ValueError, match="times must start at 0"):
        escape(xor(3), [1.0, 2.0], path, c_delta=1.0)
    with pytest.raises(ValueError, match="level"):
        first_passage([0.0, 1.0], [1.0, 2.0], 0.0)
