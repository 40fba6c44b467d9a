"""Deterministic equivalents against sampled matrices and against the isotropic law."""

from __future__ import annotations

import numpy as np
import pytest

from traindyn.laws import MarchenkoPastur, SampleCovariance


def autoregressive(d: int, rho: float) -> np.ndarray:
    """Toeplitz covariance: far from a multiple of the identity."""
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_identity_is_marchenko_pastur(ratio: float) -> None:
    """Both sides of one, complex and real points, atom and density, and MDL Theorem 7.6."""
    law, classical = SampleCovariance(np.ones(4), ratio), MarchenkoPastur(ratio)
    z = np.array([0.5 + 0.3j, -1 + 1j, 2 - 0.1j])
    np.testing.assert_allclose(law.stieltjes(z), classical.stieltjes(z), rtol=1e-10)
    assert law.stieltjes(-0.3) == pytest.approx(classical.stieltjes(-0.3), rel=1e-12)
    np.testing.assert_allclose(law.edges, classical.edges, rtol=1e-10)
    x = np.linspace(0.2, 5, 9)
    np.testing.assert_allclose(law.density(x), classical.density(x), atol=1e-8)
    assert law.atom == pytest.approx(classical.atom)
    beta = np.array([1.0, 2.0, 0.0, 1.0])
    assert law.quadratic_form(-0.3, beta) == pytest.approx(6 * classical.stieltjes(-0.3))


@pytest.mark.parametrize("n", [600, 200])
def test_equivalent_of_the_resolvent(n: int) -> None:
    """Bilinear forms of two vectors; the isotropic law is the wrong variant."""
    d = 400
    sigma = autoregressive(d, 0.7)
    root = np.linalg.cholesky(sigma)
    u, v = np.eye(d)[3], np.ones(d) / np.sqrt(d)
    law = SampleCovariance(sigma, d / n)
    assert "400 eigenvalues" in repr(law)
    for z in (-0.5, 1.0 + 0.5j):
        drawn = []
        for seed in range(6):
            x = np.random.default_rng(seed).standard_normal((n, d)) @ root.T
            inverse = np.linalg.inv(x.T @ x / n - z * np.eye(d))
            drawn.append([u @ inverse @ u, v @ inverse @ v, u @ inverse @ v])
        expected = [law.quadratic_form(z, *pair) for pair in ((u,), (v, v), (u, v))]
        assert np.abs(np.mean(drawn, axis=0) - expected).max() < 0.04
        wrong = MarchenkoPastur(d / n).stieltjes(z)
        assert abs(np.mean(drawn, axis=0)[1] - wrong) > 0.2


def test_effective_ridge_solves_its_equation() -> None:
    """The companion's transform against the fixed point in its usual form."""
    tau = np.array([0.0, 0.2, 1.0, 3.0, 3.0])
    for ratio, ridge in ((0.5, 0.3), (3.0, 0.3), (3.0, 0.0), (1.25, 0.1)):
        law = SampleCovariance(tau, ratio)
        kappa = law.effective_ridge(ridge)
        right = ridge + kappa * ratio * np.mean(tau / (tau + kappa))
        assert kappa == pytest.approx(right, rel=1e-10)
        assert law.degrees_of_freedom(ridge, 1) == pytest.approx(1 - ridge / kappa, rel=1e-9)
    assert SampleCovariance(tau, 1.25).rank_ratio == 1.0
    assert SampleCovariance(tau, 1.25).effective_ridge(0.0) == 0
    assert SampleCovariance(tau, 1.25).ridge_variance(0.0) == np.inf
    assert SampleCovariance(tau, 3.0).atom == pytest.approx(1 - 1 / 3)


def test_bad_input_is_named() -> None:
    """Every refusal names the argument."""
    with pytest.raises(ValueError, match="covariance must be non-negative"):
        SampleCovariance([1.0, -1.0], 0.5)
    with pytest.raises(ValueError, match="covariance must not be zero"):
        SampleCovariance([0.0], 0.5)
    with pytest.raises(ValueError, match="positive semi-definite"):
        SampleCovariance(np.diag([1.0, -1.0]), 0.5)
    with pytest.raises(ValueError, match="z must not be 0"):
        SampleCovariance([1.0], 2.0).resolvent(0.0)
    with pytest.raises(ValueError, match="left must have shape"):
        SampleCovariance([1.0, 2.0], 2.0).quadratic_form(-1.0, [1.0])
    with pytest.raises(ValueError, match="ridge must be non-negative"):
        SampleCovariance([1.0], 2.0).effective_ridge(-1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("z", [1.7e308, -1.7e308, 1.7e308j, 5e-324, -5e-324])
def test_points_at_the_ends_of_the_numbers_are_refused(z):
    """One was called infinite, and next to zero the transform was zero with a warning."""
    law = SampleCovariance([1.0, 2.0], 0.5)
    for call in (law.stieltjes, law.companion):
        with pytest.raises(ValueError, match=r"^z must be where the transform can be computed"):
            call(z)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e-70, 1e-60, 1e-8])
def test_transform_next_to_zero_is_that_at_zero(size):
    """Below the atom of the companion the root takes more halvings than were made."""
    law = SampleCovariance([1.0, 2.0], 0.5)
    for z in (size, -size):
        assert law.stieltjes(z) == pytest.approx(1.5, rel=1e-6)
