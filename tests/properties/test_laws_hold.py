"""Laws of random matrices, at arguments that nobody chose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from companion.foundations.random_matrices.resolvent import azuma_tail, empirical_stieltjes
from companion.foundations.random_matrices.spectra import spectral_distance
from traindyn.laws import HardSubspace, MarchenkoPastur, SampleCovariance, WeightedMarchenkoPastur

few = settings(max_examples=12, derandomize=True, deadline=None)
ratios = st.floats(0.1, 6.0).filter(lambda c: abs(c - 1) > 0.02)
scales = st.floats(0.2, 5.0)
weights = st.lists(st.floats(-3, 3), min_size=1, max_size=12).filter(
    lambda g: max(map(abs, g)) > 0.1
)
points = st.complex_numbers(max_magnitude=20, allow_nan=False).filter(lambda z: abs(z.imag) > 0.05)
seeds = st.integers(0, 2**32)


@few
@given(ratios, scales, points)
def test_companion_of_marchenko_pastur(c: float, s2: float, z: complex) -> None:
    """The n by n matrix has the same eigenvalues but for zeros: another law of the family."""
    law, companion = MarchenkoPastur(c, s2), MarchenkoPastur(1 / c, c * s2)
    assert abs(companion.stieltjes(z) - (c * law.stieltjes(z) - (1 - c) / z)) < 1e-10
    np.testing.assert_allclose(companion.edges, law.edges, rtol=1e-12)
    wrong = MarchenkoPastur(1 / c, s2)  # the variance left as it is
    assert abs(c - 1) < 0.1 or abs(wrong.stieltjes(z) - companion.stieltjes(z)) > 1e-10


@few
@given(ratios, scales, st.floats(-1, 20))
def test_a_spike_leaves_the_bulk_above_its_threshold_only(
    c: float, s2: float, spike: float
) -> None:
    """Then its eigenvalue is outside and its overlap positive; else both say that it is not."""
    assume(abs(abs(spike) - np.sqrt(c)) > 1e-3)
    law = MarchenkoPastur(c, s2)
    low, high = law.edges
    outside = not low <= law.outlier(spike) <= high
    assert law.is_supercritical(spike) == outside == (abs(spike) > np.sqrt(c))
    # At -1 a direction of variance zero, with an eigenvector of its own.
    assert (0 < law.overlap(spike) <= 1) if outside else law.overlap(spike) == 0


@few
@given(weights, ratios, scales)
def test_density_of_weights_has_mass_one_between_the_edges(
    g: list[float], c: float, s2: float
) -> None:
    """It vanishes outside, is nowhere negative, and adds up to one with the atom."""
    law = WeightedMarchenkoPastur(g, c, s2)
    edges = law.edges
    assert np.all(np.diff(edges) > 0)
    span = edges[-1] - edges[0]
    x = np.linspace(edges[0] - span, edges[-1] + span, 301)
    density, below = law.density(x), law.cdf(x)
    inside = np.any((x[:, None] > law.intervals[:, 0]) & (x[:, None] < law.intervals[:, 1]), axis=1)
    assert np.all(density >= 0)
    np.testing.assert_array_equal(density > 0, inside)
    assert np.all(np.diff(below) >= -1e-12)
    assert below[0] == 0
    assert abs(below[-1] - 1) < 2e-5
    # The continuous part alone, from the distribution function across each interval.
    steps = np.diff(law.cdf(law.intervals), axis=1).sum()
    zero = np.any((law.intervals[:, 0] < 0) & (law.intervals[:, 1] > 0))
    assert abs(steps - (1 if zero else 1 - law.atom)) < 2e-5


@few
@given(weights, ratios, scales, seeds)
def test_weights_may_be_scaled_mirrored_and_permuted(
    g: list[float], c: float, a: float, seed: int
) -> None:
    """The law follows."""
    law = WeightedMarchenkoPastur(g, c)
    moved = WeightedMarchenkoPastur(-a * np.random.default_rng(seed).permutation(g), c)
    np.testing.assert_allclose(moved.edges, -a * law.edges[::-1], rtol=1e-9, atol=1e-12)
    assert moved.atom == law.atom
    z = np.array([0.3 + 0.7j, -2.0 + 0.1j])
    np.testing.assert_allclose(moved.stieltjes(-a * z), -law.stieltjes(z) / a, rtol=1e-9)
    np.testing.assert_allclose(law.stieltjes(z.conj()), law.stieltjes(z).conj(), rtol=1e-12)
    assert np.all(law.stieltjes(z).imag > 0)
    assert np.all(np.abs(law.stieltjes(z)) <= 1 / z.imag + 1e-12)


@few
@given(weights, ratios, seeds)
def test_outliers_are_outside_and_their_overlaps_shares(
    g: list[float], c: float, seed: int
) -> None:
    """On the side that they say; one hard coordinate at least sums to one with the rest."""
    law = WeightedMarchenkoPastur(g, c)
    found = law.outliers(2 * np.random.default_rng(seed).standard_normal((len(g), 2)))
    low, high = law.edges[0], law.edges[-1]
    for value, side in zip(found.values, found.sides):
        assert value > high if side > 0 else value < low if side < 0 else low < value < high
    assert np.all(np.diff(found.values) <= 0)
    assert np.all((found.overlaps > 0) & (found.overlaps <= 1 + 1e-12))
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=0), 1)


@few
@given(seeds, st.floats(0.3, 8.0), st.sampled_from(["left", "right"]))
def test_the_criterion_of_hard_directions_counts_outliers(
    seed: int, delta: float, side: str
) -> None:
    """The statistic exceeds one if and only if an informative outlier exists."""
    rng = np.random.default_rng(seed)
    g, s = rng.standard_normal(40), rng.standard_normal((40, 2))
    hard = HardSubspace(g, s, delta, side=side)
    assume(abs(hard.statistic - 1) > 1e-6 and abs(hard.edge_statistic - 1) > 1e-6)
    assert (hard.statistic > 1) == (hard.informative.values.size > 0)
    assert (hard.edge_statistic > 1) == (hard.outliers.values.size > 0)
    assert hard.stability <= 1 + 1e-9
    matrix = hard.matrix(hard.edge_parameter / 2)
    np.testing.assert_array_equal(matrix, matrix.T)
    mirrored = HardSubspace(-g, s, delta, side="right" if side == "left" else "left")
    assert abs(mirrored.edge + hard.edge) < 1e-12


@few
@given(st.lists(st.floats(0.1, 5.0), min_size=1, max_size=6), ratios, st.floats(0.01, 3.0))
def test_ridge_only_shrinks(values: list[float], c: float, ridge: float) -> None:
    """More ridge: a larger effective one, fewer degrees of freedom, less variance, more bias."""
    law = SampleCovariance(values, c)
    signal = np.ones(len(values))
    more = 1.5 * ridge
    assert ridge < law.effective_ridge(ridge) < law.effective_ridge(more)
    assert 0 < law.degrees_of_freedom(more) < law.degrees_of_freedom(ridge) < 1
    assert 0 < law.ridge_variance(more) < law.ridge_variance(ridge)
    assert 0 < law.ridge_bias(ridge, signal) < law.ridge_bias(more, signal)
    assert law.ridge_bias(more, signal) < np.sum(values)


@few
@given(st.lists(st.floats(0, 9), min_size=1, max_size=20), points, seeds)
def test_empirical_transforms_and_distances(values: list[float], z: complex, seed: int) -> None:
    """Bounded by the height, of the sign of Im z; distances are shares, whatever the order."""
    s = complex(empirical_stieltjes(values, z))
    assert s.imag * z.imag > 0
    assert abs(s) <= 1 / abs(z.imag) + 1e-12
    law = MarchenkoPastur(0.7, 2.0)
    distance = spectral_distance(values, law)
    assert 0.5 / len(values) <= distance <= 1
    assert distance == spectral_distance(np.random.default_rng(seed).permutation(values), law)


@few
@given(st.floats(0, 5), st.lists(st.floats(0.1, 2), min_size=1, max_size=5))
def test_azuma_falls_with_the_deviation(t: float, increments: list[float]) -> None:
    """And rises with every increment."""
    bound = azuma_tail([t, t + 0.1], increments)
    assert 0 <= bound[1] <= bound[0] <= 1
    assert azuma_tail(t, [*increments, 1.0]) >= bound[0]


GIVEN = np.array([-1.0, 2.0, 0.5])
FEATURES = np.array([[1.5, 0.2], [0.5, -1.0], [0.2, 3.0]])
PLACES, POINTS = np.array([0.4, 1.0, 5.0]), np.array([-1 + 1j, 2 + 0.5j])
OUTSIDE = np.array([-50.0, 50.0])
SIDES = ("left", "right")


def hard(s: float, side: str) -> tuple[list[object], ...]:
    """What changes as the eigenvalues, as one over them, and not at all."""
    law = HardSubspace(s * GIVEN, FEATURES, 2.0, side=side)
    still = [law.statistic, law.edge_statistic, law.stability, law.outliers.overlaps]
    still += [law.matrix(law.edge_parameter / 2), law.informative.overlaps]
    lengths = [law.edge, law.outliers.values, law.informative.values]
    return lengths, [law.edge_parameter, law.end_parameter], still


def classical(s: float) -> tuple[list[object], ...]:
    """A variance in other units."""
    law = MarchenkoPastur(0.5, s)
    lengths = [law.edges, law.norm_error, law.outlier(2.0), law.quantile([0.2, 0.8])]
    densities = [law.density(s * PLACES), law.stieltjes(s * POINTS), law.stieltjes(-s)]
    return lengths, densities, [law.cdf(s * PLACES), law.overlap(2.0), law.atom]


def weighted(s: float) -> tuple[list[object], ...]:
    """Weights in other units."""
    law = WeightedMarchenkoPastur(s * GIVEN, 0.3)
    found = law.outliers(FEATURES)
    lengths = [law.edges, law.edge_scales(10), found.values]
    densities = [law.density(s * PLACES), law.stieltjes(s * POINTS), law.stieltjes(s * OUTSIDE)]
    return lengths, densities, [law.cdf(s * PLACES), found.overlaps, law.atom]


def sampled(s: float) -> tuple[list[object], ...]:
    """A covariance in other units."""
    law = SampleCovariance(s * np.array([[2.0, 1.0], [1.0, 3.0]]), 2.0)
    ridge = 0.5 * s
    lengths = [law.edges, law.effective_ridge(ridge), law.effective_ridge(0.0)]
    lengths += [law.ridge_bias(ridge, [1.0, 2.0])]
    densities = [law.density(s * PLACES), law.companion(s * POINTS), law.stieltjes(-s)]
    densities += [law.resolvent(s * POINTS)]
    return lengths, densities, [law.atom, law.degrees_of_freedom(ridge), law.ridge_variance(ridge)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
@pytest.mark.parametrize(
    "law",
    [*(partial(hard, side=side) for side in SIDES), classical, weighted, sampled],
    ids=[*SIDES, "classical", "weighted", "sampled"],
)
def test_results_do_not_depend_on_the_unit(
    law: Callable[[float], tuple[list[object], ...]], scale: float
) -> None:
    """Eigenvalues are in that of the weights, densities in one over it, shares in none."""
    ordinary, extreme = law(1.0), law(scale)
    for unit, here, there in zip((1 / scale, scale, 1.0), ordinary, extreme, strict=True):
        for one, other in zip(here, there, strict=True):
            np.testing.assert_allclose(unit * np.asarray(other), one, rtol=1e-9, atol=1e-14)
