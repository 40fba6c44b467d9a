"""Linear-noise process around the effective dynamics."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from companion.alignment.training_dynamics import dynamics
from companion.effective_dynamics.pca.printed import printed_volatility
from traindyn import gaussian
from traindyn.effective import find, fixed_point_noise, linear_noise, ode
from traindyn.problems import KGaussianMixture, SpikedTensor
from traindyn.problems.spiked import diffusive
from traindyn.problems.spiked.equilibria import equilibria
from traindyn.sgd import reduced
from traindyn.trajectory import Trajectory

FALSE_ALARM = 1e-6


class Plane(NamedTuple):
    """Two numbers."""

    v: np.ndarray


PULL = np.array([[-0.5, 1.0], [-1.0, -0.2]])
NOISE = np.array([[0.3, 0.1], [0.1, 0.2]])


def rotation(times, start, c_delta=2.0):
    """Linear drift and constant noise, for which everything is known."""
    path = Trajectory(np.linspace(0, 4, 5), Plane(np.zeros((5, 2))))
    return linear_noise(
        path,
        times,
        drift=lambda u: Plane(PULL @ u.v),
        volatility=lambda u: NOISE,
        start=start,
        c_delta=c_delta,
    )


def test_stationary_covariance_stays():
    """Started from the solution of the Lyapunov equation; half of it does not stay."""
    size = np.eye(2)
    lyapunov = np.kron(PULL, size) + np.kron(size, PULL)
    stationary = np.linalg.solve(lyapunov, -2.0 * NOISE.ravel()).reshape(2, 2)
    times = np.linspace(0, 4, 9)
    found = rotation(times, stationary).covariance()
    np.testing.assert_allclose(found, np.broadcast_to(stationary, found.shape), atol=1e-9)
    assert np.abs(rotation(times, stationary / 2).covariance()[-1] - stationary).max() > 1e-3


def test_samples_have_the_covariance_in_time():
    """Covariance of G(t) with G(s), by its transition, over 20000 paths.

    Worst of 12 entries, z-test at 1e-6; a process without noise is rejected.
    """
    times = np.array([0.0, 0.5, 2.0, 3.0])
    process = rotation(times, np.eye(2))
    paths = process.sample(20_000, rng=1)
    assert paths.shape == (20_000, 4, 2)
    covariance = process.covariance()
    pairs = [(2, 2, covariance[2]), (2, 3, covariance[2] @ process.transitions[2].T)]
    quiet = rotation(times, np.eye(2), c_delta=0.0).covariance()[2]

    def worst(i, j, expected):
        products = paths[:, i, :, None] * paths[:, j, None, :]
        error = products.std(axis=0) / np.sqrt(len(paths))
        return (np.abs(products.mean(axis=0) - expected) / error).max()

    critical = stats.norm.isf(FALSE_ALARM / 12 / 2)
    assert all(worst(*pair) < critical for pair in pairs)
    assert worst(2, 2, quiet) > critical


def test_predicts_the_spread_of_sgd():
    """How far SGD is from the equation of BGHJ Lemma 5.6: variances over 400 replicas at d = 1000.

    All entries at two times. Chi-square test of each of 30 variances, level 1e-6 in all; a
    fluctuation of 1.6 times the variance fails with probability above .999. Leaving out the
    random start or the noise of the steps is rejected.
    """
    gram = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
    problem = KGaussianMixture(gram, np.array([0.2, 0.3, 0.5]), 1.5, 0.1, 1000)
    rule, pairs = gaussian.gauss_hermite(3, 10), gaussian.sobol(6, 2**11, rng=0)
    times = np.r_[0, np.geomspace(0.25, 8, 12)]
    path = ode.solve(problem, problem.initial_statistics(), times, c_delta=1.0, rule=rule)

    def variances(start=1.0, c_delta=1.0):
        process = linear_noise(
            path,
            np.linspace(0, 8, 33),
            c_delta=c_delta,
            drift=lambda u: problem.drift(u, rule=rule, c_delta=1.0),
            volatility=lambda u: dynamics.volatility(problem, u, rule=pairs, c_delta=1.0),
            start=start * dynamics.initial_covariance(problem),
        )
        return np.diagonal(process.covariance(), axis1=1, axis2=2)[[4, 32]]

    n = 400
    runs = reduced.run_replicas(problem, [1.0, 8.0], step_size=1e-3, replicas=n, rng=5)
    upper = np.triu_indices(3)
    m, R_perp = runs.statistics
    entries = np.concatenate([m.reshape(n, 2, 9), R_perp[..., *upper]], axis=-1)
    found = 1000 * entries.var(axis=0, ddof=1)

    def p_value(expected):
        law, statistic = stats.chi2(n - 1), (n - 1) * found / expected
        return found.size * 2 * np.minimum(law.cdf(statistic), law.sf(statistic)).min()

    assert p_value(variances()) > FALSE_ALARM
    assert p_value(variances(start=1e-6)) < FALSE_ALARM
    assert p_value(variances(c_delta=0.0)) < FALSE_ALARM


@pytest.mark.parametrize(("order", "signal", "ridge"), [(2, 1.5, 0.3), (4, 9.0, 0.0)])
def test_noise_at_fixed_points_agrees_with_the_closed_form(order, signal, ridge):
    """Stable or not, every fixed point of the spiked tensor; the printed volatility is not it."""
    problem, c = SpikedTensor(order, 100, signal=signal, ridge=ridge), 0.7
    for each in equilibria(problem, c_delta=c):
        point = find(problem, each.statistics, c_delta=c)
        found = fixed_point_noise(point, volatility=problem.volatility, c_delta=c)
        closed = diffusive.fluctuations(problem, each.statistics, c_delta=c)
        np.testing.assert_allclose(found.matrix, closed.matrix, atol=1e-7)
        np.testing.assert_allclose(found.noise, closed.noise, atol=1e-9)
        printed = fixed_point_noise(
            point, volatility=lambda u: printed_volatility(problem, u), c_delta=c
        )
        if each.statistics.r2 > 0:
            assert np.abs(printed.noise - closed.noise).max() > 0.1


def test_noise_at_a_fixed_point_is_where_the_path_ends():
    """Linear noise along a path that has settled tends to the stationary covariance.

    The mixture has no closed form; the control is the covariance without relaxation.
    """
    problem = KGaussianMixture.orthonormal(2, 1000, precision=4.0, ridge=0.3)
    rule, pairs = gaussian.gauss_hermite(2, 10), gaussian.gauss_hermite(4, 6)
    point = find(problem, c_delta=1.0, rule=rule)

    def volatility(u):
        return dynamics.volatility(problem, u, rule=pairs, c_delta=1.0)

    noise = fixed_point_noise(point, volatility=volatility, c_delta=1.0)
    assert noise.names[:2] == ("m[0,0]", "m[0,1]")
    times = np.linspace(0, 40, 9)
    settled = Trajectory(
        times, type(point.statistics)(*(np.stack([a] * 9) for a in point.statistics))
    )
    process = linear_noise(
        settled,
        times,
        drift=lambda u: problem.drift(u, rule=rule, c_delta=1.0),
        volatility=volatility,
        start=dynamics.initial_covariance(problem),
        c_delta=1.0,
    )
    stationary = noise.stationary()
    np.testing.assert_allclose(process.covariance()[-1], stationary, atol=1e-6)
    assert np.abs(process.covariance()[0] - stationary).max() > 0.1


def test_bad_input_is_named():
    """Too few times, a late beginning, a covariance of the wrong size."""
    with pytest.raises(ValueError, match="times must run from 0 to at most 4, got 1 to 2"):
        rotation([1.0, 2.0], np.eye(2))
    with pytest.raises(ValueError, match="times must run from 0 to at most 4, got 0 to 5"):
        rotation([0.0, 5.0], np.eye(2))
    with pytest.raises(ValueError, match="start"):
        rotation([0.0, 1.0], np.eye(3))
    short = Trajectory(np.array([0.0, 1.0]), Plane(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="path must have at least 4 times, got 2"):
        linear_noise(
            short,
            [0.0, 1.0],
            drift=lambda u: u,
            volatility=lambda u: NOISE,
            start=NOISE,
            c_delta=1.0,
        )
    tensor = SpikedTensor(3, 50, signal=5.0)
    point = find(tensor, tensor.initial_statistics(), c_delta=1.0)
    with pytest.raises(ValueError, match=r"volatility must have shape \(2, 2\), got \(3, 3\)"):
        fixed_point_noise(point, volatility=lambda u: np.eye(3), c_delta=1.0)
    with pytest.raises(ValueError, match="c_delta must be non-negative"):
        fixed_point_noise(point, volatility=lambda u: np.eye(2), c_delta=-1.0)
