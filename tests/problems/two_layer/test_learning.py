"""Class counts, growth of the classes and bounds of the effective dynamics."""

from itertools import product

import numpy as np
import pytest

from companion.alignment.xor_rank.rank import count_law
from traindyn.effective import sliding
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, limit
from traindyn.problems.two_layer.equilibria import destination, initial_set, success_probability
from traindyn.problems.two_layer.learning import from_zero_overlap, growth, norm_bounds


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_count_law_by_enumeration(classes):
    """All assignments of up to five neurons; the control is one neuron more."""
    for width in range(1, 6):
        counts = [len(set(each)) for each in product(range(classes), repeat=width)]
        wanted = np.bincount(counts, minlength=classes + 1) / classes**width
        np.testing.assert_allclose(count_law(width, classes), wanted, atol=1e-15)
        if classes > 1:
            assert np.abs(count_law(width + 1, classes) - wanted).max() > 0.02


def test_count_law_of_wide_networks():
    """Sums to one without cancellation, and its last entry is the chance of success."""
    for width in (4, 20, 100, 1000):
        law = count_law(width)
        assert law.min() >= 0 and law.sum() == pytest.approx(1.0, abs=1e-15)
        assert law[4] == pytest.approx(success_probability(width), rel=1e-12)
    assert count_law(20)[4] == pytest.approx(0.987321, abs=1e-6)


def test_growth_reference_values():
    """A class of squared length 5: products A B at three times, by an independent program."""
    A, B = growth(np.sqrt(5.0), 0.01, [10.0, 20.0, 50.0])
    np.testing.assert_allclose(A * B, [2.34, 2.88, 3.19], atol=6e-3)
    A, B = growth(np.sqrt(5.0), 0.05, [5.0, 20.0, 100.0])
    np.testing.assert_allclose(A * B, [1.28, 1.47, 1.386], atol=6e-3)
    np.testing.assert_allclose(
        A**2 - B**2, 5.0 * np.exp(-0.1 * np.array([5.0, 20, 100])), atol=1e-12
    )


def test_growth_over_long_times_and_from_little():
    """No overflow at large times, and relative accuracy for tiny starts."""
    A, B = growth(1.0, 0.05, [1e5])
    assert A[0] == pytest.approx(np.sqrt(np.log(4.0)), rel=1e-9)
    A, B = growth(1e-6, 0.0, [4.0])
    # With output zero A, B = cosh, sinh of t / 8.
    assert [A[0], B[0]] == pytest.approx([1e-6 * np.cosh(0.5), 1e-6 * np.sinh(0.5)], rel=1e-9)
    np.testing.assert_array_equal(growth(0.0, 0.1, [0.0, 1.0]), np.zeros((2, 2)))


@pytest.mark.parametrize("mu", [(1.0, 0.0), (0.6, 0.8)])
def test_xor_from_zero_overlap_is_the_flow(mu):
    """The whole flow with sliding integrates to the same; the control shifts the ridge."""
    nu = (-mu[1], mu[0])
    problem = TwoLayerMixture.xor(5, 20, precision=np.inf, ridge=0.05, mu=mu, nu=nu)
    v = np.array([1.2, 0.4, -0.8, 0.9, -1.1])
    signs = np.array([[1, 1], [1, -1], [1, -1], [-1, 1], [-1, 1]])
    start = Statistics(v, np.zeros((5, 2)), np.eye(5) + 0.3)
    times = np.array([0.0, 0.5, 2.0, 10.0, 60.0])
    assignment = initial_set(problem, start, signs=signs).assignment
    found = from_zero_overlap(problem, v, assignment, times, R_perp=start.R_perp)
    wanted = sliding.solve_limit(problem, start, times, signs=signs).statistics
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    other = TwoLayerMixture.xor(5, 20, precision=np.inf, ridge=0.051, mu=mu, nu=nu)
    shifted = from_zero_overlap(other, v, assignment, times, R_perp=start.R_perp)
    assert np.abs(shifted.v - wanted.v).max() > 1e-3


def test_binary_from_zero_overlap_is_the_flow():
    """Two classes of gain one half, from Gaussian starts, up to the predicted end."""
    problem = TwoLayerMixture.binary(4, 20, precision=np.inf, ridge=0.1)
    v = np.random.default_rng(3).standard_normal(4)
    start = Statistics(v, np.zeros((4, 1)), np.zeros((4, 4)))
    times = np.array([0.0, 1.0, 5.0, 400.0])
    found = from_zero_overlap(problem, v, (v < 0).astype(int), times, R_perp=np.zeros((4, 4)))
    wanted = sliding.solve_limit(problem, start, times).statistics
    np.testing.assert_allclose(found.m, wanted.m, atol=1e-8)
    end = destination(problem, start)
    np.testing.assert_allclose(found.v[-1], end.v, atol=1e-8)
    # The derivative, too, is the drift.
    near = from_zero_overlap(problem, v, (v < 0).astype(int), [1.0, 1.0 + 1e-5], R_perp=np.eye(4))
    here = Statistics(near.v[0], near.m[0], near.R_perp[0])
    rate = limit.drift(problem, here)
    np.testing.assert_allclose(np.diff(near.v, axis=0)[0] / 1e-5, rate.v, atol=1e-5)
    np.testing.assert_allclose(np.diff(near.R_perp, axis=0)[0] / 1e-5, rate.R_perp, atol=1e-5)


@pytest.mark.parametrize("precision", [2.0, 20.0, 1000.0])
def test_norms_are_bounded_at_every_precision(precision):
    """BGHJ Lemma 5.19: rates of both squared norms; a quarter of the constant would fail."""
    rng = np.random.default_rng(4)
    closest = 0.0
    for _ in range(20):
        problem = TwoLayerMixture.xor(2, 20, precision=precision, ridge=0.05)
        v, m = 1.5 * rng.standard_normal(2), 1.5 * rng.standard_normal((2, 2))
        if rng.random() < 0.5:
            m = np.abs(v)[:, None] * np.eye(2)
            v = np.abs(v) * [1, -1]
        here = Statistics(v, m, 0.1 * np.eye(2))
        second, first = norm_bounds(problem, here, c_delta=1.0)
        rate = problem.drift(here, c_delta=1.0)
        by_v = 2 * v @ rate.v + 0.1 * v @ v
        by_w = 2 * np.sum(m * rate.m) + np.trace(rate.R_perp) + 0.1 * (np.sum(m**2) + 0.2)
        pull = 0.05 * norm_bounds(problem, Statistics(0 * v, 0 * m, np.zeros((2, 2))))[0]
        assert by_v <= 2 * pull
        assert by_w <= 2 * pull + v @ v / precision
        assert second >= v @ v and first >= np.sum(m**2) + 0.2
        closest = max(closest, by_v / (2 * pull))
    assert closest > 0.25 or precision < 10


def test_norm_bounds_hold_along_a_run():
    """The L of BGHJ Lemma 5.19 and Proposition 5.2, from a large start; half of it would fail."""
    problem = TwoLayerMixture.xor(4, 20, precision=np.inf, ridge=0.05)
    v = np.array([3.0, 2.0, -1.0, -2.0])
    start = Statistics(v, np.zeros((4, 2)), np.eye(4))
    found = from_zero_overlap(problem, v, (0, 1, 2, 3), np.linspace(0, 50, 101), R_perp=np.eye(4))
    second, first = norm_bounds(problem, start)
    squares = np.sum(found.v**2, axis=1)
    lengths = np.sum(found.m**2, axis=(1, 2)) + np.trace(found.R_perp, axis1=1, axis2=2)
    assert squares.max() <= second and 0.5 * first < lengths.max() <= first


def test_bad_input_is_named():
    """Classes of the wrong label, shapes and times."""
    problem = TwoLayerMixture.xor(2, 20, precision=10.0, ridge=0.05)
    with pytest.raises(ValueError, match="neuron 1 a class of label 0 for v = -1, got 1"):
        from_zero_overlap(problem, [1.0, -1.0], (0, 1), [1.0], R_perp=np.eye(2))
    with pytest.raises(ValueError, match="neuron 0 a class of label 1 for v = 1, got -1"):
        from_zero_overlap(problem, [1.0, -1.0], (-1, 2), [1.0], R_perp=np.eye(2))
    with pytest.raises(ValueError, match=r"assignment must hold 2 classes in \[0, 3\] or -1"):
        from_zero_overlap(problem, [1.0, -1.0], (0, 4), [1.0], R_perp=np.eye(2))
    with pytest.raises(ValueError, match="times must be strictly increasing"):
        growth(1.0, 0.1, [1.0, 1.0])
    with pytest.raises(ValueError, match="gain must be positive"):
        growth(1.0, 0.1, [1.0], gain=0.0)
    with pytest.raises(ValueError, match=r"problem\.ridge must be positive"):
        flat = TwoLayerMixture.xor(2, 20, precision=10.0, ridge=0.0)
        norm_bounds(flat, flat.initial_statistics())
    with pytest.raises(ValueError, match="width must be an integer >= 1"):
        count_law(0)
