"""Infinite-precision dynamics: scalar reduction, fixed point, energy."""

import numpy as np
import pytest

from companion.alignment.training_dynamics.limit import (
    energy,
    fixed_point,
    from_diagonal,
    scalar_drift,
)
from companion.alignment.training_dynamics.printed import printed_energy
from traindyn.problems.k_gmm import KGaussianMixture, Statistics

GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])


def orthonormal(k=4, weights=(0.1, 0.2, 0.3, 0.4), ridge=0.05):
    """Orthonormal means, unequal weights."""
    return KGaussianMixture.orthonormal(k, 3 * k, precision=10.0, ridge=ridge, weights=weights)


def test_scalar_drift_is_the_full_drift_on_its_manifold():
    """Column b of m keeps its form, and its speed is the scalar equation's."""
    problem = orthonormal()
    diagonal = np.array([0.3, 1.0, -0.5, 2.0])
    drift = problem.limit_drift(from_diagonal(problem, diagonal, t=0.7))
    speed = scalar_drift(problem, diagonal)
    np.testing.assert_allclose(drift.m, from_diagonal(problem, speed).m, atol=1e-15)
    decay = -2 * problem.ridge * np.exp(-2 * problem.ridge * 0.7)
    np.testing.assert_allclose(drift.R_perp, decay * np.eye(4))


@pytest.mark.parametrize("ridge", [1e-4, 0.05, 3.0])
def test_fixed_point_stands_still(ridge):
    """The point of BGHJ Proposition 5.14, a root of (5.19), is a zero of the full drift."""
    problem = orthonormal(ridge=ridge)
    point = fixed_point(problem)
    for part in problem.limit_drift(point):
        np.testing.assert_allclose(part, 0.0, atol=1e-13)
    assert np.all(np.diag(point.m) > 0)
    assert np.all(np.diag(point.m) < problem.weights / ridge)


def test_limit_dynamics_is_preconditioned_gradient_descent_of_the_energy():
    """BGHJ Lemma 5.13: dm/dt = -grad H gram for any means; the printed energy has another one."""
    rng = np.random.default_rng(0)
    problem = KGaussianMixture(GRAM, np.array([0.2, 0.3, 0.5]), 1.0, 0.1, 3)
    m, root = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    R_perp = root @ root.T
    drift = problem.limit_drift(Statistics(m, R_perp))

    def mismatch(energy):
        gradient = np.empty((3, 3))
        for index in np.ndindex(3, 3):
            shift = np.zeros((3, 3))
            shift[index] = 1e-6
            up, down = (energy(problem, Statistics(m + s * shift, R_perp)) for s in (1, -1))
            gradient[index] = (up - down) / 2e-6
        return np.abs(drift.m + gradient @ GRAM).max()

    assert mismatch(energy) < 1e-8
    assert mismatch(printed_energy) > 1e-2


def test_scalar_reduction_needs_orthonormal_means():
    """For other Gram matrices the manifold is not invariant."""
    problem = KGaussianMixture(GRAM, np.array([0.2, 0.3, 0.5]), 1.0, 0.1, 3)
    with pytest.raises(ValueError, match="gram must be the identity"):
        scalar_drift(problem, np.zeros(3))
