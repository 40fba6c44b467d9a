"""Counted outliers against known spectra, predicted bulks and learned classes."""

from __future__ import annotations

import numpy as np
import pytest

from companion.alignment.xor_rank.counting import before_gap, outside, within_edge
from traindyn.problems.base import MATRICES, Factors, Matrix
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.two_layer import TwoLayerMixture
from traindyn.problems.two_layer.equilibria import FixedSet
from traindyn.spectra import blocks, predict


def test_outside_counts_both_sides() -> None:
    """Below, within, above; NaN never; edges broadcast over a film."""
    values = np.array([[5.0, -3.0, 1.0, np.nan], [2.1, 1.9, 0.5, 0.0]])
    np.testing.assert_array_equal(outside(values, -1.0, 2.0), [2, 1])
    np.testing.assert_array_equal(outside(values, [-4.0, 0.1], [0.5, 2.0]), [2, 2])
    np.testing.assert_array_equal(outside(values, -1.0, 2.0, margin=0.1), [2, 0])
    np.testing.assert_array_equal(outside(values, -2.9, 2.0, margin=0.1), [1, 0])
    np.testing.assert_array_equal(outside(values, np.nan, np.nan), [0, 0])
    assert outside(values[0], -1.0, 2.0).shape == ()


def test_gap_of_known_spectra() -> None:
    """Order, signs, NaN, exact zeros, spectra without a gap."""
    values = np.array(
        [
            [0.1, -4.0, 3.0, 0.09, np.nan],
            [1.0, 0.9, 0.8, 0.7, 0.6],
            [2.0, 1.0, 0.0, 1e-17, 0.0],
            [1.0, 1e-3, 1e-9, np.nan, np.nan],
            [5.0, np.nan, np.nan, np.nan, np.nan],
            [0.0, 0.0, 0.0, 0.0, 0.0],
        ]
    )
    np.testing.assert_array_equal(before_gap(values), [2, 0, 2, 2, 0, 0])
    # A bound on the count keeps gaps inside the bulk out.
    np.testing.assert_array_equal(before_gap(values, most=1), [0, 0, 0, 1, 0, 0])
    assert before_gap([3.0, 1.0], ratio=2.9) == 1
    assert before_gap([3.0, 1.0], ratio=3.1) == 0
    assert before_gap(values[:, :1]).tolist() == [0] * 6


def test_spread_within_components_bounds_the_rest() -> None:
    """The decomposition is exact; at most as many eigenvalues beyond it as components."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    features = rng.normal(size=(60, 5)) + 2 * rng.normal(size=(3, 5))[labels]
    weights = rng.random(60)
    weights[:5] = 0.0
    weights[labels == 2] = 0.0
    between = np.zeros((5, 5))
    for c in (0, 1):
        mass = weights[labels == c]
        mean = mass @ features[labels == c] / mass.sum()
        between += mass.sum() * np.outer(mean, mean) / 60
    whole = (features.T * weights) @ features / 60
    edge = within_edge(Factors(weights, features, features), labels)
    assert edge == pytest.approx(np.linalg.eigvalsh(whole - between)[-1], rel=1e-12)
    assert np.count_nonzero(np.linalg.eigvalsh(whole) > edge) <= 2
    # Unlike components of equal weight put together have a larger spread.
    merged = within_edge(Factors(weights, features, features), np.zeros(60, dtype=int))
    assert merged > 1.5 * edge


def test_predicted_and_counted_outliers_agree() -> None:
    """A block of the k-Gaussian mixture, with its predicted bulk moved out by three per cent.

    At d = 300 the extreme eigenvalue of the bulk strays from the edge by about 1 %
    (``edge_scales``, heavy tail outwards 1e-6 at 2.5 %), the nearest outlier is 30 % away.
    """
    problem = KGaussianMixture.orthonormal(3, 300, precision=12.0, ridge=0.05)
    point = Point(problem.initial(rng=0).x + np.eye(3) @ problem.means)
    found = predict.block(problem, problem.statistics(point), "hessian", (1, 1), sample_ratio=8.0)
    sample = problem.sample(2400, rng=1)
    gram = blocks.operator(problem, "hessian", (1, 1), point, sample).dense()
    counted = outside(np.linalg.eigvalsh(gram), *found.edges, margin=0.03)
    assert counted == found.outliers.size == 3
    # Control: without noise in the test set the edge would be that of infinite alpha.
    level = predict.block(problem, problem.statistics(point), "hessian", (1, 1), sample_ratio=1e4)
    assert outside(np.linalg.eigvalsh(gram), *level.edges, margin=0.03) > 20


@pytest.mark.parametrize("matrix", MATRICES)
def test_counts_are_the_learned_classes(matrix: Matrix) -> None:
    """Fixed points of infinite precision with every number of classes, seen at precision 100.

    Eight neurons, misaligned by a tenth of their length or more; 4000 draws. The last outlier is
    5 times the edge or more, the gap behind it a factor of 100 or more; draws change both by a
    few per cent. Counting down to a fixed share of the largest eigenvalue misses some.
    """
    limit = TwoLayerMixture.xor(8, 30, precision=np.inf, ridge=0.03)
    problem = TwoLayerMixture.xor(8, 30, precision=100.0, ridge=0.03)
    rng = np.random.default_rng(2)
    above_share = []
    for learned in range(1, 5):
        classes = rng.permutation(4)[:learned]
        assignment = tuple(np.r_[classes, rng.choice(classes, 8 - learned)].tolist())
        point = problem.place(FixedSet(limit, assignment).point())
        noise = rng.normal(size=point.W.shape) * (0.1 / np.sqrt(30))
        point = point._replace(W=point.W + noise)
        sample = problem.sample(4000, rng=rng)
        source = blocks.at(problem, point, sample)
        values = np.linalg.eigvalsh(blocks.operator_of(source, matrix, (8, 8)).dense())
        assert values[0] > 1e-8
        assert before_gap(values, most=4) == learned
        edge = within_edge(source.factors(matrix, (8, 8)), sample.labels)
        assert outside(values, -np.inf, edge) == learned
        above_share.append(np.count_nonzero(values > 0.9 * values[-1]) == learned)
    assert not all(above_share)


def test_bad_input_is_named() -> None:
    """Every refusal names the argument."""
    features = np.ones((4, 2))
    ones = np.ones(4)
    for call, message in (
        (lambda: outside([1.0], 2.0, 1.0), "lower must not exceed upper"),
        (lambda: outside([1.0], 0.0, 1.0, margin=-0.1), "margin must be non-negative"),
        (lambda: outside(np.ones((2, 3)), np.zeros(4), np.ones(4)), "lower and upper must have"),
        (lambda: outside(1.0, 0.0, 1.0), "eigenvalues must be an array"),
        (lambda: before_gap([np.inf, 1.0]), "eigenvalues must be an array without infinite"),
        (lambda: before_gap([1.0, 0.5], ratio=1.0), "ratio must be greater than one"),
        (lambda: before_gap([1.0, 0.5], most=0), "most must be an integer >= 1"),
        (lambda: within_edge(Factors(ones, features, 2 * features), [0] * 4), "same features"),
        (lambda: within_edge(Factors(-ones, features, features), [0] * 4), "no negative weights"),
        (lambda: within_edge(Factors(ones, features, features), [0.0] * 4), "labels must be 4"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
