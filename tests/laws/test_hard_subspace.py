"""The parameter-free criterion against the general law, closed forms and matrices.

Matrices are compared with the prediction for their own weights and features, so that only
the components off the hard subspace are random.
"""

import numpy as np
import pytest

from traindyn.gaussian import gauss_hermite
from traindyn.laws import HardSubspace, WeightedMarchenkoPastur
from traindyn.problems.multi_index import MultiIndex


def draws(n, r, rng):
    """Bounded weights of both signs, and r coordinates they depend on."""
    v, s = rng.standard_normal(n), rng.standard_normal((n, r))
    labels = (s**2 * (1.0 / (1 + np.arange(r)))).sum(axis=1)
    return MultiIndex().block_weights(v[:, None], labels)[:, 0], s


def optimal(delta, rule):
    """Optimal weights of phase retrieval (Mondelli-Montanari preprocessing)."""
    s = rule.nodes[:, 0]
    return -(s**2 - 1) / (s**2 - 1 + np.sqrt(2 * delta)), s


@pytest.mark.parametrize("delta", [0.52, 0.6, 1.0, 2.0])
def test_optimal_weights_have_their_threshold_at_one_half(delta):
    """a_c = delta and P(a_c) = sqrt(2 delta) exactly: an outlier if and only if delta > 1/2."""
    rule = gauss_hermite(1, 60)
    weights, s = optimal(delta, rule)
    side = HardSubspace(weights, s, delta, probabilities=rule.weights)
    assert side.edge_parameter == pytest.approx(delta, rel=1e-9)
    assert side.statistic == pytest.approx(np.sqrt(2 * delta), rel=1e-9)
    assert side.stability == pytest.approx(1.0)
    assert side.informative.values.size == 1
    # The control: weights of the other sign say nothing on this side.
    wrong = HardSubspace(-weights, s, delta, probabilities=rule.weights)
    assert wrong.informative.values.size == 0


@pytest.mark.parametrize("delta", [0.5, 3.0, 6.0, 20.0, 200.0])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("side", ["left", "right"])
def test_agrees_with_the_general_law(delta, rank, side):
    """Edge, eigenvalues, directions and overlaps by two parametrisations and solvers."""
    weights, s = draws(4000, rank, np.random.default_rng(1))
    found = HardSubspace(weights, s, delta, side=side)
    law = WeightedMarchenkoPastur(weights, 1 / delta)
    sign = -1 if side == "left" else 1
    general = law.outliers(s)
    keep = general.sides == sign
    order = np.argsort(-sign * general.values[keep])
    np.testing.assert_allclose(found.edge, law.edges[0 if side == "left" else -1], rtol=1e-9)
    np.testing.assert_allclose(found.outliers.values, general.values[keep][order], rtol=1e-9)
    np.testing.assert_allclose(found.outliers.overlaps, general.overlaps[keep][order], rtol=1e-7)
    np.testing.assert_allclose(
        np.abs(found.outliers.vectors), np.abs(general.vectors[:, keep][:, order]), atol=1e-7
    )
    assert np.all(found.outliers.sides == sign)
    assert (found.edge_statistic > 1) == (found.outliers.values.size > 0)
    assert (found.statistic > 1) == (found.informative.values.size > 0)
    np.testing.assert_allclose(found.law.edges, law.edges)


def test_cases_occur_that_the_tests_are_about():
    """No outlier, one and two, negative and positive edges, over the deltas used above."""
    weights, s = draws(4000, 2, np.random.default_rng(1))
    sides = [HardSubspace(weights, s, delta) for delta in (0.5, 3.0, 6.0, 20.0, 200.0)]
    assert {side.outliers.values.size for side in sides} == {0, 1, 2}


def test_mirror_of_the_sides():
    """The right side of G is the left of -G."""
    weights, s = draws(1000, 1, np.random.default_rng(2))
    right = HardSubspace(-weights, s, 6.0, side="right")
    left = HardSubspace(weights, s, 6.0)
    assert right.edge == -left.edge and right.statistic == left.statistic
    np.testing.assert_array_equal(right.outliers.values, -left.outliers.values)


def test_marchenko_pastur():
    """Equal weights: (1 -+ 1/sqrt delta)^2, and a hard edge at zero."""
    s = np.random.default_rng(3).standard_normal(100)
    s /= np.sqrt(np.mean(s**2))
    for delta in (0.25, 4.0):
        right = HardSubspace(np.ones(100), s, delta, side="right")
        assert right.edge == pytest.approx((1 + 1 / np.sqrt(delta)) ** 2)
        left = HardSubspace(np.ones(100), s, delta)
        assert left.edge == pytest.approx((1 - 1 / np.sqrt(delta)) ** 2 if delta > 1 else 0.0)
        assert left.informative.values.size == 0


def test_positive_edge_ends_the_search_at_zero():
    """At c > 0 an outlier in (0, c) leaves the bulk but is not in the criterion."""
    side = _at_positive_edge(1.2)
    assert side.edge > 0
    assert side.edge_statistic > 1 > side.statistic
    assert side.outliers.values.size == 1 and side.informative.values.size == 0
    assert 0 < side.outliers.values[0] < side.edge
    # psi vanishes at the end of the search.
    assert side.matrix(side.end_parameter) == pytest.approx(side.statistic)
    assert side.stability < 1
    assert _at_positive_edge(4.0).informative.values.size == 1


def _at_positive_edge(strength):
    rule = gauss_hermite(1, 40)
    s = rule.nodes[:, 0]
    weights = 1 - strength * (s**2 - 1) / (s**2 + 1)
    return HardSubspace(weights, s, 40.0, probabilities=rule.weights)


@pytest.mark.parametrize("rank", [1, 2])
def test_against_matrices(rank):
    """Extreme eigenvalues, overlaps of 1/n X^T G X at d = 600 (MW, Main theorem), mean of 4 draws.

    Tolerances 3 % and 0.06; the control, coordinates that the weights do not depend on,
    predicts no outlier.
    """
    d, delta, replicas = 600, 12.0, 4
    n = int(d * delta)
    rng = np.random.default_rng(4)
    gaps, overlaps, edges = [], [], []
    for _ in range(replicas):
        weights, s = draws(n, rank, rng)
        x = rng.standard_normal((n, d))
        x[:, :rank] = s
        values, vectors = np.linalg.eigh((x * weights[:, None]).T @ x / n)
        side = HardSubspace(weights, s, n / (d - rank))
        count = side.informative.values.size
        assert count >= 1
        gaps.append(values[0] / side.informative.values[0] - 1)
        edges.append(values[side.outliers.values.size] / side.edge - 1)
        overlaps.append(np.sum(vectors[:rank, 0] ** 2) - side.informative.overlaps[0])
        unrelated = HardSubspace(weights, rng.permutation(s), n / (d - rank))
        assert unrelated.informative.values.size == 0
    assert abs(np.mean(gaps)) < 0.03
    assert abs(np.mean(edges)) < 0.03
    assert abs(np.mean(overlaps)) < 0.06


def test_tiny_probabilities_at_the_extreme_weight():
    """A quadrature node of weight 1e-60 must not fool the search for the edge."""
    rule = gauss_hermite(1, 100)
    used = rule.weights > 1e-70
    weights, s = optimal(2.0, rule)
    side = HardSubspace(
        weights[used], s[used], 2.0, probabilities=rule.weights[used] / rule.weights[used].sum()
    )
    assert side.edge_parameter == pytest.approx(2.0, rel=1e-9)


def test_requests_that_make_no_sense_are_refused():
    """Each message names the argument."""
    for call, message in (
        (lambda: HardSubspace([0.0], [1.0], 1.0), "weights must not be all zero"),
        (lambda: HardSubspace([1e305], [1.0], 1.0), "weights must have a largest size between"),
        (lambda: HardSubspace([1e-305], [1.0], 1.0), "weights must have a largest size between"),
        (lambda: HardSubspace([1.0, np.nan], [1.0, 1.0], 1.0), "weights must be finite"),
        (lambda: HardSubspace([1.0, 2.0], [1.0], 1.0), r"features must have shape \(2,\)"),
        (lambda: HardSubspace([1.0], [[]], 1.0), "r >= 1"),
        (lambda: HardSubspace([1.0], [1.0], 0.0), "sample_ratio must be positive, got 0"),
        (
            lambda: HardSubspace([1.0], [1.0], 1e120).edge,
            r"sample_ratio must be between .* 1e\+120",
        ),
        (lambda: HardSubspace([1.0], [1.0], 1e-200), "sample_ratio must be between .* got 1e-200"),
        (lambda: HardSubspace([1.0], [1.0], 1.0, side="top"), "side must be one of 'left'"),
        (
            lambda: HardSubspace([1.0], [1.0], 1.0, probabilities=[0.5, 0.5]),
            "probabilities must have the 1 entries",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("exponent", [-900, -61, 61, 900])
def test_rescaled_weights_change_no_digit(exponent):
    """A power of two is the unit of the calculation, however large; ordinary weights have none."""
    weights, s = np.array([-1.0, 2.0, 0.5]), np.array([1.5, 0.5, 0.2])
    law = HardSubspace(weights, s, 2.0)
    moved = HardSubspace(np.ldexp(weights, exponent), s, 2.0)
    assert moved.outliers.values == np.ldexp(law.outliers.values, exponent)
    assert moved.outliers.overlaps == law.outliers.overlaps
    assert moved.edge == np.ldexp(law.edge, exponent)
    assert moved.end_parameter == np.ldexp(law.end_parameter, -exponent)
    assert (moved.statistic, moved.stability) == (law.statistic, law.stability)


@pytest.mark.filterwarnings("error")
def test_ends_of_the_sample_ratio():
    """The law of many samples is narrow, that of few is one of single draws."""
    s = np.array([1.5, 0.5])
    many = HardSubspace([1.0, -0.5], s, 1e12)
    assert many.edge == pytest.approx(0.25 - 2 * np.sqrt(0.625 / 1e12), abs=1e-12)
    few = HardSubspace([1.0, -0.5], s, 1e-100)
    assert few.edge == pytest.approx(-0.5e100, rel=1e-9)


@pytest.mark.filterwarnings("error")
def test_shares_that_rounding_alone_takes_above_one_have_a_hard_edge():
    """Three fifths of 5/3 samples per dimension: the search for an edge went on and on."""
    law = HardSubspace([1.0, 1.0, 1.0, 0.0, 0.0], np.ones(5), np.nextafter(5 / 3, 2))
    assert law._share[:3].sum() > 1
    assert (law.edge_parameter, law.edge) == (np.inf, 0.0)


@pytest.mark.filterwarnings("error")
def test_a_weight_far_below_the_others_is_zero():
    """Both of all sizes: the positive part of a law with an atom has a hard edge."""
    law = HardSubspace([1.0, 1e-320], [1.5, 0.5], 2.0)
    assert law.edge_parameter == np.inf
    assert law.statistic == HardSubspace([1.0, 0.0], [1.5, 0.5], 2.0).statistic
