"""Identities of resolvents against direct inversion, bounds against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import binom

from companion.foundations.random_matrices.printed import (
    printed_azuma_tail,
    printed_leave_one_out_bound,
    printed_off_diagonal_variance,
    printed_rank_one_solution,
)
from companion.foundations.random_matrices.resolvent import (
    azuma_tail,
    concentration_tail,
    empirical_stieltjes,
    leave_one_out_bound,
    matrix_function,
    quadratic_form_variance,
    rank_one_inverse,
    smoothed_density,
)
from traindyn.laws import MarchenkoPastur


def test_empirical_transform_is_the_normalised_trace() -> None:
    """One over d belongs to it; the trace itself is the wrong variant."""
    a = np.random.default_rng(0).standard_normal((7, 7))
    a = a + a.T
    points = np.array([0.3 + 0.2j, -1 - 0.5j])
    trace = [np.trace(np.linalg.inv(a - z * np.eye(7))) for z in points]
    found = empirical_stieltjes(np.linalg.eigvalsh(a), points)
    np.testing.assert_allclose(found, np.array(trace) / 7, rtol=1e-12)
    assert np.all(np.abs(found - trace) > 0.1)
    stacked = empirical_stieltjes(np.stack([np.linalg.eigvalsh(a)] * 3), points)
    np.testing.assert_allclose(stacked, np.stack([found] * 3))


def test_cauchy_formula_gives_functions_and_projections() -> None:
    """Around all eigenvalues the exponential, around one its projection (MDL Theorem 6.9)."""
    a = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 9.0]])
    found = matrix_function(np.exp, a, centre=5, radius=6.0, nodes=80)
    np.testing.assert_allclose(found, expm(a), rtol=1e-9, atol=1e-6)
    vector = np.linalg.eigh(a)[1][:, -1]
    part = matrix_function(np.ones_like, a, centre=9, radius=2.0)
    np.testing.assert_allclose(part, np.outer(vector, vector), atol=1e-12)


def test_rank_one_update() -> None:
    """Against inversion; the denominator printed in MDL Theorem 6.15 is the negative control."""
    rng = np.random.default_rng(1)
    a, v = rng.standard_normal((6, 6)) + 4j * np.eye(6), rng.standard_normal(6)
    inverse = np.linalg.inv(a)
    expected = np.linalg.inv(a - 0.3 * np.outer(v, v))
    np.testing.assert_allclose(rank_one_inverse(inverse, v, -0.3), expected, rtol=1e-11)
    printed = printed_rank_one_solution(a, v, -0.3)
    assert np.abs(printed - expected @ v).max() > 1e-2
    with pytest.raises(ValueError, match="invertible"):
        rank_one_inverse(np.eye(2), [1.0, 0.0], -1.0)


def test_leave_one_out_bound_holds_and_is_attained() -> None:
    """A shift of one eigenvalue by twice the height attains the bound behind MDL Lemma 6.16."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 10))
    whole = np.linalg.eigvalsh(x.T @ x / 40)
    for z in (1 + 0.01j, 0.3 + 0.5j, 2 - 0.001j):
        for k in range(5):
            rest = np.delete(x, k, axis=0)
            gap = empirical_stieltjes(whole, z) - empirical_stieltjes(
                np.linalg.eigvalsh(rest.T @ rest / 40), z
            )
            assert abs(gap) < leave_one_out_bound(z, 10)
    ends = empirical_stieltjes([2.0], 1 + 1j) - empirical_stieltjes([0.0], 1 + 1j)
    assert abs(ends) > printed_leave_one_out_bound(1 + 1j, 3)
    assert abs(ends) == pytest.approx(leave_one_out_bound(1 + 1j, 1), rel=1e-14)


def test_azuma_against_the_binomial() -> None:
    """Exact tails of a sum of signs; as printed MDL Theorem 6.20 fails."""
    n = 400
    t = 2.0 * np.arange(1, 60)
    tail = 2 * binom.sf((n + t) / 2 - 1, n, 0.5)
    assert np.all(tail <= azuma_tail(t, np.ones(n)))
    assert np.any(tail > printed_azuma_tail(t, np.ones(n)))
    assert azuma_tail(0.0, [1.0]) == 1
    np.testing.assert_allclose(printed_azuma_tail(3.0, [1.0, 2.0]), 2 * np.exp(-9 / 5), rtol=1e-14)


def test_concentration_tail_is_two_azuma_tails() -> None:
    """MDL Lemma 6.16, corrected, written out with the number of samples: the ratio is d / n."""
    t = np.array([0.7, 1.0])
    expected = 4 * np.exp(-(400 * t**2 * 0.8 * 0.5**2) / 16)
    np.testing.assert_allclose(concentration_tail(t, 1 + 0.5j, 400, 500), expected, rtol=1e-12)


def test_variance_of_quadratic_forms_by_enumeration() -> None:
    """The variance behind MDL Lemma 6.18, over all signs.

    A matrix that is not symmetric tells the two off-diagonal sums apart.
    """
    a = np.random.default_rng(3).standard_normal((7, 7))
    signs = np.array(list(product([-1.0, 1.0], repeat=7)))
    forms = np.einsum("si,ij,sj->s", signs, a, signs)
    assert forms.mean() == pytest.approx(np.trace(a))
    assert forms.var() == pytest.approx(quadratic_form_variance(a, 1.0), rel=1e-12)
    off = a - np.diag(np.diag(a))
    without = forms - np.trace(a)
    assert np.mean(without**2) == pytest.approx(quadratic_form_variance(off, 1.0), rel=1e-12)
    assert abs(printed_off_diagonal_variance(a) / np.mean(without**2) - 1) > 0.05


def test_smoothing_is_convolution_with_cauchy() -> None:
    """What MDL Theorem 6.13 integrates, for a law with an atom."""
    law = MarchenkoPastur(2.0)
    nodes, weights = np.polynomial.legendre.leggauss(2000)
    low, high = law.edges
    t = np.pi * (nodes + 1) / 2
    y = (low + high) / 2 - (high - low) / 2 * np.cos(t)
    mass = law.density(y) * (high - low) / 2 * np.sin(t) * np.pi / 2 * weights
    x, eps = np.array([-0.1, 0.7, 3.0]), 0.1
    kernel = eps / np.pi / ((x[:, None] - y) ** 2 + eps**2)
    expected = kernel @ mass + law.atom * eps / np.pi / (x**2 + eps**2)
    np.testing.assert_allclose(smoothed_density(law.stieltjes, x, eps), expected, rtol=1e-8)


def test_bad_input_is_named() -> None:
    """Every refusal names the argument."""
    with pytest.raises(ValueError, match="z must not be an eigenvalue"):
        empirical_stieltjes([1.0, 2.0], 2.0)
    with pytest.raises(ValueError, match="z must have a non-zero imaginary part"):
        leave_one_out_bound(1.0, 3)
    with pytest.raises(ValueError, match="matrix must be square"):
        matrix_function(np.exp, np.ones((2, 3)), centre=0, radius=1.0)
    with pytest.raises(ValueError, match="kurtosis must be at least 1"):
        quadratic_form_variance(np.eye(2), 0.5)
    with pytest.raises(ValueError, match="increments must be positive"):
        azuma_tail(1.0, [1.0, 0.0])
    with pytest.raises(ValueError, match="height must be positive"):
        smoothed_density(MarchenkoPastur(0.5).stieltjes, 1.0, 0.0)
