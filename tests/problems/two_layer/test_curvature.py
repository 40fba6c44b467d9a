"""Population blocks of two-layer mixtures against samples, finite differences and each other."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from companion.alignment.xor_population_matrices.printed import (
    leading_block_one_neuron,
    leading_block_unweighted,
    mixed_block,
)
from companion.sample_complexity.alignment import leading_block_one_centroid
from traindyn import gaussian
from traindyn.problems.base import Sample
from traindyn.problems.two_layer import Point, Statistics, TwoLayerMixture, curvature, integrals

MATRICES = ("hessian", "g_matrix")
FALSE_ALARM = 1e-6


def xor(width, dimension, precision):
    """Return an XOR mixture."""
    return TwoLayerMixture.xor(width, dimension, precision=precision, ridge=0.05)


def random_point(width, dimension, seed=0):
    """Return a point whose neurons point anywhere."""
    rng = np.random.default_rng(seed)
    return Point(rng.standard_normal(width), rng.standard_normal((width, dimension)) * 0.7)


def largest_score(draws, wanted):
    """Largest deviation of a mean from what is wanted, in standard errors."""
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    return np.max(np.abs(draws.mean(axis=0) - wanted) / np.maximum(error, 1e-300))


def threshold(entries):
    """Score that one of these entries exceeds with the false-alarm probability."""
    return norm.isf(FALSE_ALARM / (2 * entries))


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("block", [(0, 0), (0, 2), (2, 1), (3, 3)])
def test_blocks_are_the_mean_of_samples(matrix, block):
    """The factors of the problem, averaged over draws; leading and frozen forms are rejected.

    False-alarm probability 1e-6 per block, for Gaussian means of 200 batches of 1000.
    """
    problem, point = xor(3, 5, 3.0), random_point(3, 5)
    factors = problem.factors(matrix, block, point, problem.sample(200_000, rng=1))
    left = factors.left.reshape(200, 1000, -1)
    right = (factors.right * factors.weights[:, None]).reshape(200, 1000, -1)
    draws = np.einsum("bni,bnj->bij", left, right) / 1000
    limit = threshold(draws[0].size)
    exact = curvature.population_block(problem, matrix, point, block)
    assert largest_score(draws, exact.dense()) < limit
    for approximation in (curvature.frozen_block, curvature.leading_block):
        rough = approximation(problem, matrix, point, block)
        assert largest_score(draws, rough.dense()) > 2 * limit


@pytest.mark.parametrize("matrix", MATRICES)
def test_the_error_is_that_of_the_rule(matrix):
    """Independent scramblings agree, twenty-fold closer than the frozen weights."""
    problem, point = xor(6, 20, 10.0), random_point(6, 20, 2)
    for block in ((6, 6), (0, 0), (1, 4)):
        first, second = (
            curvature.population_block(
                problem, matrix, point, block, rule=gaussian.sobol(8, 2**14, rng=seed)
            ).dense()
            for seed in (1, 2)
        )
        frozen = curvature.frozen_block(problem, matrix, point, block).dense()
        assert np.linalg.norm(first - second) < 0.05 * np.linalg.norm(first - frozen)


def test_off_the_span_a_block_is_its_shift():
    """In dimension 30 with 3 neurons the bulk has multiplicity 30 - 5, embedded 0."""
    problem, point = xor(3, 30, 4.0), random_point(3, 30, 3)
    small, place = problem.embed(problem.statistics(point))
    for matrix in MATRICES:
        for block in ((1, 1), (0, 1)):
            full = curvature.population_block(problem, matrix, point, block)
            levels = full.eigenvalues()
            assert np.sum(np.abs(levels - full.shift) < 1e-12) == 25
            core = curvature.population_block(small, matrix, place, block)
            assert core.size == 5
            # Same quadrature in other coordinates of the plane of the neurons.
            scale = np.abs(levels).max()
            np.testing.assert_allclose(core.eigenvalues(), full.on_span()[0], atol=0.01 * scale)
            frozen = curvature.frozen_block(problem, matrix, point, block)
            exact = curvature.frozen_block(small, matrix, place, block)
            np.testing.assert_allclose(exact.eigenvalues(), frozen.on_span()[0], atol=1e-14)
            assert exact.shift == pytest.approx(frozen.shift, rel=1e-12)


def test_second_layer_is_a_contraction_of_the_first():
    """Entry (i, j) of block (K, K) is W_i . M_ij W_j, integrated in other coordinates."""
    problem, point = xor(3, 5, 3.0), random_point(3, 5, 4)
    for matrix in MATRICES:
        second = curvature.population_block(problem, matrix, point, (3, 3)).dense()
        for i, j in ((0, 0), (0, 2), (1, 2)):
            first = curvature.population_block(problem, matrix, point, (i, j)).dense()
            contracted = point.W[i] @ first @ point.W[j] / (point.v[i] * point.v[j])
            assert second[i, j] == pytest.approx(contracted, abs=2e-3 * np.abs(second).max())


def test_mixed_block_is_the_derivative_of_the_gradient():
    """Central differences in v of the gradient in W_j, smooth there; the printed sign fails."""
    problem, point, j = xor(3, 5, 3.0), random_point(3, 5, 5), 1
    rule = gaussian.sobol(5, 2**14, rng=7)
    inputs = np.concatenate(
        [
            np.pad(center, (0, 3)) + rule.nodes / np.sqrt(problem.precision)
            for center in problem.centroids
        ]
    )
    sample = Sample(inputs, np.repeat(np.arange(4), rule.size))
    step, wanted = 1e-5, np.zeros((3, 5))
    for i in range(3):
        up, down = (point.v + s * step * np.eye(3)[i] for s in (1, -1))
        slopes = [problem.gradient(Point(v, point.W), sample).W[j] for v in (up, down)]
        wanted[i] = (slopes[0] - slopes[1]) / (2 * step)
    # Both integrate over Sobol nodes; the control variate of ours moves the last digits.
    found = curvature.mixed_block(problem, "hessian", point, j)
    np.testing.assert_allclose(found, wanted, atol=5e-4)
    wrong = mixed_block(problem, "hessian", point, j)
    assert np.abs(wrong - wanted).max() > 0.05
    assert np.abs(wrong - wanted)[[0, 2]].max() < 5e-4  # only row j is misprinted


def test_mixed_g_block_is_the_mean_of_samples():
    """Products of the two gradients, over draws; false-alarm probability 1e-6."""
    problem, point, j = xor(3, 5, 3.0), random_point(3, 5, 5), 1
    sample = problem.sample(200_000, rng=2)
    z = sample.inputs @ point.W.T
    hidden = np.maximum(z, 0.0)
    error = 1 / (1 + np.exp(-hidden @ point.v)) - problem.labels[sample.labels]
    by_v, by_w = (
        error[:, None] * hidden,
        (point.v[j] * error * (z[:, j] > 0))[:, None] * (sample.inputs),
    )
    shape = (200, 1000, -1)
    draws = np.einsum("bni,bnj->bij", by_v.reshape(shape), by_w.reshape(shape)) / 1000
    found = curvature.mixed_block(problem, "g_matrix", point, j)
    assert largest_score(draws, found) < threshold(15)
    rough = curvature.mixed_block(replace(problem, precision=np.inf), "g_matrix", point, j)
    assert largest_score(draws, rough) > 2 * threshold(15)


def gradient(problem, point):
    """Gradient of the population loss in W, without the ridge, by polar quadrature (K <= 2)."""
    statistics = problem.statistics(point)
    found = integrals.by_polar(problem, statistics, radial=120, angular=60)
    beside = point.W[:, problem.signal :]
    off = np.linalg.solve(beside @ beside.T, found.A_perp.T).T @ beside
    return point.v[:, None] * np.concatenate([found.A, off], axis=1)


def test_active_error_is_the_response():
    """In the coordinates of the polar quadrature; the control is the leading order."""
    problem, point = xor(2, 4, 3.0), random_point(2, 4, 6)
    wanted = gradient(problem, point) / point.v[:, None]
    for j in (0, 1):
        found = curvature.active_error(problem, point, j)
        np.testing.assert_allclose(found, wanted[j], atol=1e-4)
        assert np.abs(found).max() > 0.01


@pytest.mark.parametrize("binary", [False, True])
def test_hessian_of_the_population_loss_has_a_kink_term(binary):
    """Finite differences of the population gradient; without the kink they are rejected."""
    if binary:
        problem = TwoLayerMixture.binary(2, 3, precision=4.0, ridge=0.05)
        point = Point(np.array([1.0, -0.7]), np.array([[0.1, 0.8, 0.2], [0.3, 0.1, 0.7]]))
    else:
        problem = xor(2, 4, 6.0)
        point = Point(np.array([0.9, -0.6]), np.array([[0.7, 0.1, 0.5, 0], [0.2, -0.6, 0.1, 0.6]]))
    n, step = problem.dimension, 1e-3
    numeric = np.zeros((2, n, 2, n))
    for j in range(2):
        for b in range(n):
            moved = [
                Point(point.v, point.W + s * step * np.outer(np.eye(2)[j], np.eye(n)[b]))
                for s in (1, -1)
            ]
            up, down = (gradient(problem, each) for each in moved)
            numeric[:, :, j, b] = (up - down) / (2 * step)
    scale = np.abs(numeric).max()
    for i, j in ((0, 0), (1, 1), (0, 1)):
        true = curvature.loss_hessian_block(problem, point, (i, j)).dense()
        np.testing.assert_allclose(true, numeric[i, :, j, :], atol=2e-3 * scale)
        smooth = curvature.population_block(problem, "hessian", point, (i, j)).dense()
        gap = np.abs(smooth - numeric[i, :, j, :]).max()
        assert gap > 0.05 * scale if i == j else gap < 2e-3 * scale


def test_kink_of_a_single_neuron():
    """One neuron 0.8 mu at precision 10: second derivative along nu 0.3939 = 0.0471 + 0.3467."""
    problem = xor(1, 3, 10.0)
    point = Point(np.array([0.8]), np.array([[0.8, 0.0, 0.0]]))
    smooth = curvature.population_block(problem, "hessian", point, (0, 0)).dense()
    kink = curvature.kink_block(problem, point, 0).dense()
    both = curvature.loss_hessian_block(problem, point, (0, 0)).dense()
    assert [smooth[1, 1], kink[1, 1], both[1, 1]] == pytest.approx(
        [0.0471, 0.3467, 0.3939], abs=1e-4
    )
    # Where the neuron's preactivation vanishes the output does: the conditional error is known.
    density = np.sqrt(10 / (2 * np.pi)) / 0.8 * np.array([np.exp(-5), 1.0])
    exact = 0.8 * 0.25 * (density @ np.array([-1.0, 1.0]) * 0.2 / 2 + 2 * density[1] / 2 * 1.0)
    assert kink[1, 1] == pytest.approx(exact, rel=1e-12)
    np.testing.assert_allclose(kink[0], 0.0, atol=1e-15)  # none along the neuron


def test_kink_grows_like_the_root_of_the_precision():
    """For a neuron orthogonal to a centroid; exponentially small with every margin open."""
    precisions = 10.0 ** np.arange(2, 6)
    sizes = {"closed": [], "open": []}
    for precision in precisions:
        problem = xor(2, 4, precision)
        for name, aside in (("closed", 0.0), ("open", 0.5)):
            point = Point(np.array([0.9, -0.5]), np.array([[0.8, aside, 0, 0], [0.3, 0.6, 0, 0]]))
            kink = curvature.kink_block(problem, point, 0).dense()
            sizes[name].append(np.linalg.norm(kink, 2))
    slope = np.polyfit(np.log(precisions), np.log(sizes["closed"]), 1)[0]
    assert abs(slope - 0.5) < 0.02
    assert sizes["open"][-1] < 1e-12 < sizes["closed"][-1]


@pytest.mark.parametrize("matrix", MATRICES)
def test_leading_forms_are_the_limit(matrix):
    """At infinite precision all forms agree, and the quadrature needs no rule."""
    problem, point = xor(3, 5, np.inf), random_point(3, 5, 8)
    for block in ((0, 0), (0, 1), (3, 3)):
        exact = curvature.population_block(problem, matrix, point, block).dense()
        for form in (curvature.frozen_block, curvature.leading_block):
            np.testing.assert_allclose(
                form(problem, matrix, point, block).dense(), exact, atol=1e-15
            )
    mixed = curvature.mixed_block(problem, matrix, point, 1)
    assert np.abs(mixed).max() > 0.01
    near = replace(problem, precision=1e8)
    np.testing.assert_allclose(curvature.mixed_block(near, matrix, point, 1), mixed, atol=1e-3)


@pytest.mark.parametrize("matrix", MATRICES)
def test_an_orthogonal_neuron_answers_half_in_the_limit(matrix):
    """The kink keyword tells the limit from the value at infinite precision."""
    point = Point(np.array([0.9, -0.5]), np.array([[0.8, 0, 0, 0], [0.0, -0.6, 0, 0]]))
    at_infinity = xor(2, 4, np.inf)
    for block in ((0, 0), (0, 1), (2, 2)):
        near = curvature.population_block(xor(2, 4, 1e8), matrix, point, block).dense()
        limit = curvature.leading_block(at_infinity, matrix, point, block, kink=0.5).dense()
        np.testing.assert_allclose(near, limit, atol=1e-3 * np.abs(limit).max())
    value = curvature.leading_block(at_infinity, matrix, point, (0, 0)).dense()
    limit = curvature.leading_block(at_infinity, matrix, point, (0, 0), kink=0.5).dense()
    assert value[1, 1] == 0 < limit[1, 1]


def test_printed_leading_blocks_are_rejected():
    """(4.11) with one neuron's output and (7.11) without the weight, at precision 1e6."""
    problem = xor(4, 6, 1e6)
    point = Point(np.full(4, 1.2), np.abs(random_point(4, 6, 9).W))
    exact = curvature.population_block(problem, "hessian", point, (0, 0)).dense()
    scale = np.linalg.norm(exact, 2)

    def gap(form):
        return np.linalg.norm(form(problem, "hessian", point, (0, 0)).dense() - exact, 2) / scale

    assert gap(curvature.leading_block) < 0.01
    assert gap(leading_block_one_neuron) > 0.1
    assert gap(leading_block_unweighted) > 1.0


def test_bad_input_is_named():
    """Blocks, points and rules that do not fit the problem."""
    problem, point = xor(3, 5, 3.0), random_point(3, 5)
    with pytest.raises(ValueError, match=r"block\[1\] must be an integer in \[0, 2\], got 3"):
        curvature.population_block(problem, "hessian", point, (0, 3))
    with pytest.raises(ValueError, match=r"point.v must have shape \(3\), got \(2,\)"):
        curvature.leading_block(problem, "hessian", Point(np.ones(2), point.W), (0, 0))
    with pytest.raises(ValueError, match=r"point\.W must have at least d = 2 columns, got 1"):
        curvature.frozen_block(problem, "hessian", Point(point.v, np.ones((3, 1))), (0, 0))
    with pytest.raises(ValueError, match=r"rule must have the dimension .* = 5 .*, got 2"):
        curvature.population_block(
            problem, "hessian", point, (0, 0), rule=gaussian.gauss_hermite(2, 3)
        )
    with pytest.raises(ValueError, match="matrix must be one of"):
        curvature.population_block(problem, "curl", point, (0, 0))
    with pytest.raises(ValueError, match="precision must be finite"):
        curvature.kink_block(xor(3, 5, np.inf), point, 0)
    with pytest.raises(ValueError, match=r"point\.W must not vanish in row 1"):
        curvature.kink_block(problem, Point(point.v, np.eye(3, 5) * [[1], [0], [1]]), 1)


def test_statistics_suffice():
    """A point placed from statistics has the same blocks as any other with them."""
    problem = xor(4, 12, 10.0)
    statistics = Statistics(np.array([1.0, 0.5, -1, 0.3]), np.full((4, 2), 0.2), 0.4 * np.eye(4))
    point = problem.place(statistics)
    rotation = np.eye(12)
    rotation[2:, 2:] = np.linalg.qr(np.random.default_rng(0).standard_normal((10, 10)))[0]
    turned = Point(point.v, point.W @ rotation)
    for block in ((0, 0), (4, 4)):
        first, second = (
            curvature.frozen_block(problem, "hessian", each, block).eigenvalues()
            for each in (point, turned)
        )
        np.testing.assert_allclose(first, second, atol=1e-14)


def test_one_weight_for_all_centroids_is_wrong_unless_outputs_agree():
    """The summary of MDL Section 13.2, at two points; equal without an output."""
    problem, silent = xor(4, 6, 1e6), random_point(4, 6)
    silent, point = Point(np.zeros(4), silent.W), Point(2.0 * silent.v, silent.W)
    block = (4, 4)
    for place, agree in ((silent, True), (point, False)):
        right = curvature.leading_block(problem, "hessian", place, block).dense()
        exact = curvature.population_block(problem, "hessian", place, block).dense()
        wrong = leading_block_one_centroid(problem, "hessian", place, 2).dense()
        assert np.abs(right - exact).max() < 0.01 * np.abs(exact).max()
        assert (np.abs(wrong - right).max() < 1e-12) == agree
        assert agree or np.abs(wrong - exact).max() > 0.05 * np.abs(exact).max()
