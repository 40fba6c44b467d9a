"""Spectra of the XOR mixture's population matrices at fixed points and at the start."""

import math

import numpy as np
import pytest

from companion.alignment.xor_alignment.start import initial_second_layer
from companion.alignment.xor_population_matrices import printed
from traindyn.problems.two_layer import Point, Statistics, TwoLayerMixture, curvature, spectra
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.problems.two_layer.thresholds import xor_critical_ridge

MATRICES = ("hessian", "g_matrix")


def at_fixed_point(problem, class_sum, seed=0):
    """Point with two neurons of unequal size in each class, and two idle dimensions."""
    shares = np.random.default_rng(seed).uniform(0.3, 1.0, (4, 2))
    shares /= np.linalg.norm(shares, axis=1, keepdims=True)
    v = (shares * np.array([1, 1, -1, -1])[:, None] * np.sqrt(class_sum)).ravel()
    W = np.abs(v)[:, None] * np.repeat(problem.centroids, 2, axis=0)
    return Point(v, np.hstack([W, np.zeros((8, 2))]))


def class_basis(v):
    """Orthonormal columns, the normalised sizes of v on each class of two."""
    basis = np.zeros((8, 4))
    for c in range(4):
        mine = np.abs(v[2 * c : 2 * c + 2])
        basis[2 * c : 2 * c + 2, c] = mine / np.linalg.norm(mine)
    return basis


def test_class_sum_reference_values():
    """Solved by an independent program; the printed logit of a negative number is none."""
    found = [spectra.class_sum(ridge, 10.0) for ridge in (0.02, 0.03, 0.05)]
    assert found == pytest.approx([2.519, 1.900, 1.113], abs=1e-3)
    assert spectra.class_sum(0.05) == pytest.approx(1.386294, abs=1e-6)
    assert math.isnan(printed.class_sum(0.05))


def test_class_sum_at_the_ends():
    """It vanishes at the critical ridge and tends to the limit of infinite precision."""
    for precision in (1.0, 10.0, 1000.0):
        critical = xor_critical_ridge(precision)
        assert spectra.class_sum(critical * (1 - 1e-6), precision) < 1e-4
        assert spectra.class_sum(critical / 2, precision) > 0.3
        with pytest.raises(ValueError, match=r"ridge must be below .*, the threshold at precision"):
            spectra.class_sum(critical * (1 + 1e-6), precision)
    gaps = [abs(spectra.class_sum(0.02, x) - spectra.class_sum(0.02)) for x in (1e4, 1e6)]
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.05)  # order -1/2


@pytest.mark.parametrize("precision", [2.0, 10.0, 100.0])
def test_it_is_a_fixed_point(precision):
    """The drift of the library vanishes there, and not a fifth further out."""
    problem = TwoLayerMixture.xor(4, 20, precision=precision, ridge=0.02)
    signs = np.array([1, 1, -1, -1])

    def drift(class_sum):
        v = np.sqrt(class_sum) * signs
        m = np.abs(v)[:, None] * problem.centroids
        rates = problem.drift(Statistics(v, m, np.zeros((4, 4))), c_delta=0.0)
        return max(np.abs(rate).max() for rate in rates)

    # 2**14 quasi-random nodes: a few 1e-4.
    assert drift(spectra.class_sum(0.02, precision)) < 5e-4
    assert drift(1.2 * spectra.class_sum(0.02, precision)) > 2e-3


def test_reference_spectra():
    """Ridge 0.03, precision 10."""
    found = spectra.FixedPointSpectra(0.03, 10.0)
    wanted = {
        "hessian": [0.1155, 0.0765, 0.0765, 0.0375],
        "g_matrix": [0.0395, 0.0236, 0.0236, 0.0078],
    }
    for matrix, levels in wanted.items():
        np.testing.assert_allclose(found.second_layer(matrix), levels, atol=6e-5)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("precision", [3.0, 10.0, 300.0])
def test_finite_precision_spectra_against_quadrature(matrix, precision):
    """Both layers at a fixed point with unequal neurons; the limit's levels are rejected."""
    problem = TwoLayerMixture.xor(8, 20, precision=precision, ridge=0.02)
    found = spectra.FixedPointSpectra(0.02, precision)
    point = at_fixed_point(problem, found.class_sum)
    dense = curvature.population_block(problem, matrix, point, (8, 8)).dense()
    levels = found.second_layer(matrix)
    basis = class_basis(point.v)
    wanted = basis @ found.directions.T @ np.diag(levels) @ found.directions @ basis.T
    np.testing.assert_allclose(dense, wanted, atol=1e-3 * levels[0])
    in_limit = spectra.LimitSpectra(0.02, (True,) * 4).second_layer(matrix)
    assert np.abs(in_limit - levels).max() > 0.02 * levels[0]
    for i in (0, 5):
        outlier, bulk = (point.v[i] ** 2 * level for level in found.first_layer(matrix))
        block = curvature.population_block(problem, matrix, point, (i, i))
        np.testing.assert_allclose(
            block.dense(), np.diag([outlier, outlier, bulk, bulk]), atol=2e-3 * outlier
        )
        assert block.shift == pytest.approx(bulk, rel=2e-3)


@pytest.mark.parametrize("matrix", MATRICES)
def test_the_second_layer_belongs_to_the_smallest_outlier(matrix):
    """v is an eigenvector, of the last of the four; the top one has equal signs."""
    found = spectra.FixedPointSpectra(0.02, 10.0)
    coordinates = np.array([1, 1, -1, -1]) / 2
    np.testing.assert_array_equal(found.directions[3], coordinates)
    levels = found.second_layer(matrix)
    assert np.all(np.diff(levels) <= 0) and levels[0] > 2 * levels[3]
    problem = TwoLayerMixture.xor(8, 20, precision=10.0, ridge=0.02)
    point = at_fixed_point(problem, found.class_sum)
    block = curvature.population_block(problem, matrix, point, (8, 8))
    np.testing.assert_allclose(block.matmat(point.v), levels[3] * point.v, atol=1e-4)
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(4), atol=1e-15)


def test_kink_levels():
    """Against the kink of the population Hessian, which dominates the average at precision 100."""
    for precision in (3.0, 10.0, 100.0):
        problem = TwoLayerMixture.xor(8, 20, precision=precision, ridge=0.02)
        found = spectra.FixedPointSpectra(0.02, precision)
        outlier, bulk = found.kink()
        point = at_fixed_point(problem, found.class_sum)
        for i, order in ((0, [0, 1]), (6, [1, 0])):
            kink = curvature.kink_block(problem, point, i)
            levels = np.diag([*np.array([0.0, outlier])[order], bulk, bulk])
            np.testing.assert_allclose(kink.dense(), levels, atol=3e-3 * outlier)
            assert kink.shift == pytest.approx(bulk, rel=3e-3)
            smooth = curvature.population_block(problem, "hessian", point, (i, i))
            assert outlier > smooth.eigenvalues()[0] or precision < 100


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize(
    "assignment", [(0, 1, 2, 3, 0), (0, 0, 2, 2, 2), (1, 1, 1, 0, 1), (0, 1, 2, 2, 1)]
)
def test_limit_spectra_against_the_leading_blocks(matrix, assignment):
    """Any set of learned classes: outliers of both layers, one per class and two per neuron."""
    ridge = 0.05
    problem = TwoLayerMixture.xor(5, 20, precision=np.inf, ridge=ridge)
    point = problem.place(FixedSet(problem, assignment).point([1.0, 2.0, 0.5, 1.5, 1.0]))
    learned = tuple(c in assignment for c in range(4))
    found = spectra.LimitSpectra(ridge, learned)
    block = curvature.leading_block(problem, matrix, point, (5, 5), kink=0.5)
    wanted = np.zeros(5)
    wanted[: sum(learned)] = np.sort(found.second_layer(matrix))[::-1]
    np.testing.assert_allclose(block.eigenvalues(), wanted, atol=1e-15)
    s = spectra.class_sum(ridge)
    rest = ridge * (1 - 4 * ridge) if matrix == "hessian" else 4 * ridge**2
    np.testing.assert_allclose(found.second_layer(matrix), rest * s)
    for i, c in enumerate(assignment):
        own, other = found.first_layer(matrix, c)
        dense = curvature.leading_block(problem, matrix, point, (i, i), kink=0.5).dense()
        expected = np.zeros(20)
        expected[:2] = (own, other) if c < 2 else (other, own)
        np.testing.assert_allclose(dense, point.v[i] ** 2 * np.diag(expected), atol=1e-15)
        assert own == pytest.approx(rest)
        other_side = learned[2:] if c < 2 else learned[:2]
        if not any(other_side):
            assert other == 1 / 16
        elif all(other_side):
            assert other == pytest.approx(rest)


@pytest.mark.parametrize("matrix", MATRICES)
def test_finite_precision_tends_to_the_limit(matrix):
    """All levels of both layers, with errors of order -1/2."""
    limit = spectra.LimitSpectra(0.05, (True,) * 4)
    errors = []
    for precision in (1e4, 1e6):
        near = spectra.FixedPointSpectra(0.05, precision)
        gaps = np.append(
            near.second_layer(matrix) / limit.second_layer(matrix) - 1,
            near.first_layer(matrix)[0] / limit.first_layer(matrix, 0)[1] - 1,
        )
        errors.append(np.abs(gaps).max())
    assert errors[0] < 0.05
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.1)


def test_one_outlier_at_the_start():
    """The closed form is that of orthogonal neurons of small output; ones, not none."""
    problem = TwoLayerMixture.xor(20, 100, precision=10.0, ridge=0.05)
    _, point = problem.embed(problem.initial_statistics())
    outlier, bulk = initial_second_layer(20, 10.0)
    for matrix in MATRICES:
        levels = curvature.population_block(problem, matrix, point, (20, 20)).eigenvalues()
        assert levels[0] == pytest.approx(outlier, rel=1e-12)
        np.testing.assert_allclose(levels[1:], bulk, rtol=1e-12)
    assert outlier == pytest.approx(0.088, abs=5e-4) and bulk == pytest.approx(0.0085, abs=5e-5)
    assert initial_second_layer(20, 10.0, square=2.0)[0] == pytest.approx(2 * outlier)
    assert initial_second_layer(20, np.inf) == (0.0, 0.0)


def test_bad_input_is_named():
    """Ridges, learned classes and precisions out of range."""
    with pytest.raises(ValueError, match=r"ridge must be below 0\.125, got 0\.2"):
        spectra.LimitSpectra(0.2, (True,) * 4)
    with pytest.raises(ValueError, match="learned must have 4 entries, got 2"):
        spectra.LimitSpectra(0.05, (True, True))
    with pytest.raises(ValueError, match="centroid must have a learned class, got 3"):
        spectra.LimitSpectra(0.05, (True, True, True, False)).first_layer("hessian", 3)
    with pytest.raises(ValueError, match="precision must be finite"):
        spectra.FixedPointSpectra(0.05, np.inf)
    with pytest.raises(ValueError, match="matrix must be one of"):
        spectra.FixedPointSpectra(0.05, 10.0).second_layer("curl")
    with pytest.raises(ValueError, match="width must be an integer >= 1"):
        initial_second_layer(0, 10.0)
