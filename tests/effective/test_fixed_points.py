"""Fixed points of the effective dynamics of the k-Gaussian mixture."""

from __future__ import annotations

import numpy as np
import pytest

from companion.alignment.training_dynamics.limit import fixed_point
from traindyn import effective, gaussian
from traindyn.problems.k_gmm import KGaussianMixture, Statistics
from traindyn.problems.projection_model import Local, ProjectionModel
from traindyn.problems.two_layer import TwoLayerMixture


def _orthonormal(k: int = 3, precision: float = 10.0) -> KGaussianMixture:
    weights = np.arange(1, k + 1) / (k * (k + 1) / 2)
    return KGaussianMixture.orthonormal(k, 40, precision=precision, ridge=0.05, weights=weights)


def _oblique() -> KGaussianMixture:
    gram = np.array(
        [[1, 0.4, 0.1, 0.4], [0.4, 1, 0.4, 0.1], [0.1, 0.4, 1, 0.4], [0.4, 0.1, 0.4, 1]]
    )
    return KGaussianMixture(gram, np.array([0.1, 0.2, 0.3, 0.4]), 10.0, 0.05, 40)


def test_limit_fixed_point_is_the_scalar_root() -> None:
    """Newton's point against the root of BGHJ (5.19), unequal weights."""
    problem = _orthonormal()
    found = effective.find(problem, limit=True)
    np.testing.assert_allclose(found.statistics.m, fixed_point(problem).m, atol=1e-12)
    np.testing.assert_allclose(found.statistics.R_perp, np.zeros((3, 3)), atol=1e-12)
    assert found.residual < 1e-12
    # control: the zero of the drift without ridge in the second class
    assert abs(found.statistics.m[1, 1] - fixed_point(problem).m[0, 0]) > 0.1


@pytest.mark.parametrize("problem", [_orthonormal(), _oblique()], ids=["orthonormal", "oblique"])
def test_limit_jacobian_lies_below_minus_ridge(problem: KGaussianMixture) -> None:
    """Preconditioned gradient flow of a beta-convex function: real spectrum, at most -beta."""
    found = effective.find(problem, limit=True)
    k = problem.k
    assert found.jacobian.shape == (k * k + k * (k + 1) // 2,) * 2
    slack = 10 * found.jacobian.shape[0] * found.jacobian_error
    assert found.jacobian_error < 1e-9
    assert np.all(found.eigenvalues.real <= -problem.ridge + slack)
    assert np.abs(found.eigenvalues.imag).max() < 1e-6
    assert found.stable
    # R_perp decays at rate 2 beta in each of its k (k + 1) / 2 directions; beta is printed.
    count = np.sum(np.abs(found.eigenvalues + 2 * problem.ridge) < 1e-7)
    assert count >= k * (k + 1) // 2
    assert np.sum(np.abs(found.eigenvalues + problem.ridge) < 1e-7) < k * (k + 1) // 2


def test_limit_fixed_point_is_unique_for_oblique_means() -> None:
    """Five random starts, far from each other, reach one point."""
    problem = _oblique()
    rng = np.random.default_rng(7)
    points = []
    for _ in range(5):
        half = rng.standard_normal((4, 4))
        start = Statistics(3 * rng.standard_normal((4, 4)), half @ half.T)
        path = effective.solve_limit(problem, start, [100.0], rtol=1e-6, atol=1e-8)
        end = Statistics(*(array[-1] for array in path.statistics))
        points.append(effective.find(problem, end, limit=True).statistics.m)
    assert np.ptp(np.stack(points), axis=0).max() < 1e-10
    assert np.abs(points[0]).max() > 0.3


@pytest.mark.parametrize("c_delta", [0.0, 1.0])
def test_finite_precision_fixed_point_and_its_jacobian(c_delta: float) -> None:
    """Residual, stability and the derivative along a random direction, by another step."""
    problem = _orthonormal(precision=4.0)
    rule = gaussian.gauss_hermite(3, 12)
    found = effective.find(problem, c_delta=c_delta, rule=rule)
    assert found.residual < 1e-12
    assert found.stable
    assert np.all(found.eigenvalues.real <= -problem.ridge + 1e-7)
    if c_delta:
        assert np.linalg.eigvalsh(found.statistics.R_perp)[-1] > 1e-3
        # The direction of a common shift of all rows is null: stay orthogonal to it.
        shift = np.array([1.0, -0.4, -0.6])
        half = 1e-3 * np.outer(shift, shift)

        def drift(sign: float) -> Statistics:
            moved = Statistics(found.statistics.m, found.statistics.R_perp + sign * half)
            return problem.drift(moved, rule=rule, c_delta=c_delta)

        exact = (drift(1.0).m - drift(-1.0).m).ravel() / 2
        predicted = found.jacobian[:9, 9:] @ half[np.triu_indices(3)]
        np.testing.assert_allclose(predicted, exact, atol=1e-9)
        # control: counting each off-diagonal direction of R_perp twice
        twice = half.copy() * (2 - np.eye(3))
        assert np.abs(found.jacobian[:9, 9:] @ twice[np.triu_indices(3)] - exact).max() > 1e-6
    else:
        np.testing.assert_allclose(found.statistics.R_perp, 0, atol=1e-12)


def test_not_converged_names_the_residual() -> None:
    """A silent non-solution would poison every prediction built on it."""
    problem = _oblique()
    far = Statistics(np.full((4, 4), 5.0) + 20 * np.eye(4), np.eye(4))
    with pytest.raises(FloatingPointError, match=r"residual of 1e-10 .* got residual"):
        effective.find(problem, far, limit=True, max_iterations=1)
    with pytest.raises(ValueError, match="tolerance must be positive"):
        effective.find(problem, limit=True, tolerance=0.0)


def test_jacobian_at_the_edge_of_the_domain() -> None:
    """Where R_perp is zero the differences are one-sided, and the slope is not cut in half."""
    local = Local(
        lambda z, u, label: 0.5 * (z[0] - u[0]) ** 2,
        lambda z, u, label: np.array([z[0] - u[0]]),
        lambda z, u, label: np.array([[1.0]]),
    )
    problem = ProjectionModel(local, np.zeros((1, 1)), np.ones(1), precision=4.0, dimension=100)
    found = effective.find(problem, problem.initial_statistics(), rule=gaussian.gauss_hermite(2, 4))
    assert abs(found.statistics.R_perp[0, 0]) < 1e-9
    # m goes at the rate 1 / precision, R at twice that.
    np.testing.assert_allclose(found.eigenvalues.real, [-0.25, -0.5], atol=1e-6)


@pytest.mark.parametrize("width", [2, 4])
def test_jacobian_at_a_gram_matrix_of_zero(width: int) -> None:
    """An entry off the diagonal cannot be moved alone; every entry decays at twice the ridge."""
    problem = TwoLayerMixture.binary(width, 100, precision=np.inf, ridge=0.1)
    found = effective.find(problem, problem.initial_statistics(), limit=True)
    assert found.residual == 0.0 and found.iterations == 0
    size = width * (width + 1) // 2
    np.testing.assert_allclose(found.jacobian[-size:, -size:], -0.2 * np.eye(size), atol=1e-8)
    np.testing.assert_allclose(found.jacobian[:-size, -size:], 0.0, atol=1e-8)
