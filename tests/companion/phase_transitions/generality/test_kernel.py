"""Gradients of a kernel machine."""

import numpy as np
import pytest

from companion.phase_transitions.generality.kernel import field_variance, kernel_gradients


def test_moments_against_draws():
    """Mean and second moment of the gradient over fresh inputs."""
    rng = np.random.default_rng(1)
    x, d = rng.standard_normal((30, 6)), 6
    found = kernel_gradients(x, x[:, 0] ** 2, ridge=0.5)
    fresh = rng.standard_normal((400_000, d))
    gradients = np.exp(fresh @ x.T / d) @ (found.coefficients[:, None] * x) / d
    assert gradients.mean(axis=0) == pytest.approx(found.mean, abs=0.01)
    assert gradients.T @ gradients / len(fresh) == pytest.approx(found.second, abs=0.02)
    assert np.cov(gradients.T) == pytest.approx(found.covariance, abs=0.02)


def test_coefficients_solve_the_ridge_equation():
    """K alpha + ridge alpha is the centred label."""
    x = np.random.default_rng(2).standard_normal((20, 5))
    y = np.sin(x[:, 0])
    alpha = kernel_gradients(x, y, ridge=0.3).coefficients
    assert np.exp(x @ x.T / 5) @ alpha + 0.3 * alpha == pytest.approx(y - y.mean())


@pytest.mark.parametrize(("ratio", "ridge"), [(0.5, 0.1), (2.0, 1.0), (6.0, 0.01)])
def test_field_against_eigenvalues(ratio, ridge):
    """The mean of w / (w + shift)^2 over the eigenvalues of one large matrix."""
    d, shift = 1000, ridge + np.e - 2
    x = np.random.default_rng(3).standard_normal((round(ratio * d), d))
    w = np.linalg.eigvalsh(x.T @ x / d)
    assert np.mean(w / (w + shift) ** 2) == pytest.approx(field_variance(ratio, ridge), rel=5e-3)


def test_refusals():
    """A negative ridge, and shapes that disagree."""
    with pytest.raises(ValueError, match="ridge"):
        kernel_gradients(np.ones((3, 2)), np.ones(3), ridge=-1.0)
    with pytest.raises(ValueError, match="labels"):
        kernel_gradients(np.ones((3, 2)), np.ones(4), ridge=1.0)
