"""Spectra at infinite precision against dense matrices built from the probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from companion.alignment.beyond.spectra import LimitSpectra, limit_spectra
from companion.alignment.training_dynamics.limit import fixed_point, fixed_point_diagonal
from traindyn.problems.base import Matrix
from traindyn.problems.k_gmm import KGaussianMixture, limit


def _dense(spectra: LimitSpectra, matrix: Matrix) -> np.ndarray:
    """Full k^2 x k^2 matrix for orthonormal means, from its definition at the means."""
    k = spectra.k
    total = np.zeros((k * k, k * k))
    for label, (weight, pi) in enumerate(zip(spectra.weights, spectra.probabilities, strict=True)):
        residual = np.eye(k)[label] - pi
        small = (
            np.diag(pi) - np.outer(pi, pi) if matrix == "hessian" else np.outer(residual, residual)
        )
        mean = np.eye(k)[label]
        total += weight * np.kron(small, np.outer(mean, mean))
    return total


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_full_spectrum_and_rank(matrix: Matrix) -> None:
    """Ranks k(k-1) and k, unequal weights and probabilities; a missing factor k shows."""
    spectra = limit_spectra([0.3, 0.5, 0.7, 0.9], weights=[0.1, 0.2, 0.3, 0.4])
    k = spectra.k
    dense = _dense(spectra, matrix)
    direct = np.linalg.eigvalsh(dense)[::-1]
    values = spectra.full(matrix)
    assert values.size == (k * (k - 1) if matrix == "hessian" else k)
    np.testing.assert_allclose(direct[: values.size], values, atol=1e-14)
    np.testing.assert_allclose(direct[values.size :], 0, atol=1e-14)
    for label, row in enumerate(spectra.directions):
        vector = np.kron(row, np.eye(k)[label])
        image = dense @ vector
        np.testing.assert_allclose(image, (vector @ image) * vector, atol=1e-14)
    # control: the direction without the 1 / (k - 1)
    wrong = np.kron(2 * np.eye(k)[0] - 1, np.eye(k)[0]) / np.sqrt(k)
    assert np.linalg.norm(dense @ wrong - (wrong @ dense @ wrong) * wrong) > 1e-3


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_blocks_are_the_diagonal_blocks_of_the_full_matrix(matrix: Matrix) -> None:
    """Own and other eigenvalues by class, and the ratio (k - 1)^2 of G for equal weights.

    MDL Theorem 13.5 takes the own one to be the largest, which two classes contradict.
    """
    spectra = limit_spectra([0.3, 0.5, 0.7, 0.9], weights=[0.1, 0.2, 0.3, 0.4])
    dense = _dense(spectra, matrix)
    for a in range(4):
        part = dense[4 * a : 4 * a + 4, 4 * a : 4 * a + 4]
        np.testing.assert_allclose(part, np.diag(spectra.block(matrix, a)), atol=1e-15)
    equal = limit_spectra(0.37, 5)
    own, *others = equal.block("g_matrix", 0)
    np.testing.assert_allclose(own / np.array(others), 16.0)
    own, *others = equal.block("hessian", 0)
    assert own > max(others)
    pair = limit_spectra(0.8, 2).block("hessian", 0)
    assert pair[0] == pytest.approx(pair[1])  # degenerate for two classes


def test_reference_values_at_the_fixed_point() -> None:
    """k=10, p=.1, beta=.01: blocks .0202, .00303, .00795, .0000981; full .02249, .00313, .00883."""
    problem = KGaussianMixture.orthonormal(10, 500, precision=10.0, ridge=0.01)
    own = limit.own_probability(fixed_point_diagonal(problem), 10)
    spectra = limit_spectra(own, weights=problem.weights)
    np.testing.assert_allclose(spectra.block("hessian", 0)[:2], [0.0202, 0.00303], rtol=3e-3)
    np.testing.assert_allclose(spectra.block("g_matrix", 0)[:2], [0.00795, 0.0000981], rtol=3e-3)
    np.testing.assert_allclose(
        spectra.full("hessian")[[0, 9, 10]], [0.02249, 0.02249, 0.00313], rtol=2e-3
    )
    np.testing.assert_allclose(spectra.full("g_matrix"), np.full(10, 0.00883), rtol=2e-3)


def test_fixed_point_form_in_terms_of_the_ridge() -> None:
    """With p (1 - q) = beta m the eigenvalues are functions of the overlaps.

    BGHJ Theorem 2.5 fails for a rare class: its own mean is not on top of the Hessian block.
    """
    weights = np.array([0.02, 0.49, 0.49])
    problem = KGaussianMixture.orthonormal(3, 9, precision=1.0, ridge=0.01, weights=weights)
    m = fixed_point_diagonal(problem)
    q = limit.own_probability(m, 3)
    spectra = limit_spectra(q, weights=weights)
    beta, k = problem.ridge, 3
    hessian = beta * m * (k - 2 + q) / (k - 1) ** 2
    hessian[0] = beta * m[0] * q[0]
    g_matrix = (beta * m) ** 2 / (weights * (k - 1) ** 2)
    g_matrix[0] = (beta * m[0]) ** 2 / weights[0]
    np.testing.assert_allclose(spectra.block("hessian", 0), hessian, rtol=1e-10)
    np.testing.assert_allclose(spectra.block("g_matrix", 0), g_matrix, rtol=1e-10)
    # unequal weights: the own mean is not on top of the Hessian block, but is for G
    np.testing.assert_allclose(hessian, [0.00474, 0.01185, 0.01185], atol=6e-6)
    assert np.argmax(hessian) != 0 and np.argmax(g_matrix) == 0


def test_trained_parameters_lie_in_the_top_space() -> None:
    """The fixed point is a combination of the k directions, exactly."""
    weights = [0.1, 0.2, 0.3, 0.4]
    problem = KGaussianMixture.orthonormal(4, 9, precision=1.0, ridge=0.05, weights=weights)
    m = fixed_point(problem).m
    spectra = limit_spectra(0.5, weights=weights)
    basis = np.stack(
        [np.kron(row, np.eye(4)[label]) for label, row in enumerate(spectra.directions)]
    )
    vector = m.ravel()
    np.testing.assert_allclose(basis.T @ (basis @ vector), vector, atol=1e-12)
    moved = np.random.default_rng(0).standard_normal(16)
    assert np.linalg.norm(basis.T @ (basis @ moved)) < 0.9 * np.linalg.norm(moved)  # control


def test_bad_input_is_named() -> None:
    """Probabilities outside [0, 1] and shapes that disagree."""
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\], got 1.2"):
        limit_spectra(1.2, 3)
    with pytest.raises(ValueError, match="q and weights must have k = 3 entries, got 2 and 3"):
        limit_spectra([0.1, 0.2], 3)
    with pytest.raises(ValueError, match="weights must sum to one"):
        limit_spectra([0.1, 0.2], weights=[0.1, 0.2])
    with pytest.raises(ValueError, match=r"a must be an integer in \[0, 2\], got 3"):
        limit_spectra(0.5, 3).block("hessian", 3)
