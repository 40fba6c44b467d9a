"""Remainders at large precision: bounds that hold as they stand, orders that cannot be improved."""

import numpy as np
import pytest
from scipy.special import expit

from companion.alignment.xor_population_matrices import expansions
from companion.alignment.xor_population_matrices.printed import (
    feature_excess,
    first_layer_order,
    fourth_moment_bound,
    response_order,
)
from traindyn import gaussian
from traindyn.problems.two_layer import Point, TwoLayerMixture, curvature, limit

MATRICES = ("hessian", "g_matrix")
PRECISIONS = 10.0 ** np.arange(2, 7)


def xor(width, dimension, precision):
    """Return an XOR mixture."""
    return TwoLayerMixture.xor(width, dimension, precision=precision, ridge=0.05)


def remainder(problem, matrix, point, block):
    """Operator norm of a population block minus its leading order."""
    exact = curvature.population_block(problem, matrix, point, block)
    leading = curvature.leading_block(problem, matrix, point, block)
    return np.linalg.norm(exact.dense() - leading.dense(), 2)


@pytest.mark.parametrize("matrix", MATRICES)
def test_the_bound_holds_everywhere(matrix):
    """BGHJ Lemmas 4.4 and 4.5 with constants, at random points and precisions from 1 to 1e4.

    Some neurons are on their kinks.
    A tenth of the bound would fail.
    """
    rng, tightest = np.random.default_rng(0), 0.0
    for _ in range(25):
        K, precision = int(rng.integers(1, 5)), 10 ** rng.uniform(0, 4)
        problem = xor(K, 6, precision)
        W = rng.standard_normal((K, 6)) * (rng.random((K, 6)) < 0.6)
        point = Point(2 * rng.standard_normal(K), W)
        for block in ((0, 0), (0, K - 1), (K, K)):
            error = remainder(problem, matrix, point, block)
            bound = expansions.remainder_bound(problem, matrix, point, block)
            assert error <= bound
            tightest = max(tightest, error / max(bound, 1e-12))
    assert tightest > 0.1


@pytest.mark.parametrize("matrix", MATRICES)
def test_another_neurons_margin_sets_the_order(matrix):
    """Neuron 0 has open margins, neuron 1 none: the error is of order -1/2, not exponential.

    The printed order, of neuron 0's margin alone, falls behind without limit.
    """
    point = Point(np.ones(2), np.array([[0.8, 0.8, 0.0], [0.0, 0.0, 1.0]]))
    errors, orders, alone = (np.empty(len(PRECISIONS)) for _ in range(3))
    for k, precision in enumerate(PRECISIONS):
        problem = xor(2, 3, precision)
        errors[k] = remainder(problem, matrix, point, (0, 0))
        orders[k] = expansions.first_layer_order(problem, point, 0)
        alone[k] = first_layer_order(problem, point, 0)
    ratios = errors / orders
    assert ratios[2:].max() < 1.1 * ratios[2:].min()
    assert errors[-1] / alone[-1] > 50 * errors[1] / alone[1] * 0.1
    assert np.polyfit(np.log(PRECISIONS[2:]), np.log(errors[2:]), 1)[0] == pytest.approx(
        -0.5, abs=0.02
    )
    assert np.polyfit(np.log(PRECISIONS[2:]), np.log(alone[2:]), 1)[0] == pytest.approx(
        -1, abs=0.02
    )
    if matrix == "hessian":
        scaled = (errors * np.sqrt(PRECISIONS))[1:4]
        assert scaled == pytest.approx([0.0072, 0.0078, 0.0080], abs=1e-4)


@pytest.mark.parametrize("matrix", MATRICES)
def test_orders_of_both_layers(matrix):
    """BGHJ Lemmas 4.4 and 4.5: order -1 with every margin open, -1/2 with one closed."""
    for aside, slope in ((0.5, -1.0), (0.0, -0.5)):
        point = Point(np.array([1.0, -0.8]), np.array([[0.8, aside, 0, 0], [0.4, 0.9, 0.3, 0]]))
        first, second, by_first, by_second = (np.empty(len(PRECISIONS)) for _ in range(4))
        for k, precision in enumerate(PRECISIONS):
            problem = xor(2, 4, precision)
            first[k] = remainder(problem, matrix, point, (1, 1))
            second[k] = remainder(problem, matrix, point, (2, 2))
            by_first[k] = expansions.first_layer_order(problem, point, 1)
            by_second[k] = expansions.second_layer_order(problem, point)
        for errors, orders in ((first, by_first), (second, by_second)):
            assert np.polyfit(np.log(PRECISIONS[2:]), np.log(errors[2:]), 1)[0] == pytest.approx(
                slope, abs=0.05
            )
            ratios = errors / orders
            assert ratios[-1] < 1.5 * ratios[2]


def test_feature_moments_have_the_order_of_psi_2():
    """BGHJ Lemma 4.1 over random margins of every size: the constant is one, and reached."""
    rng, ratios = np.random.default_rng(1), []
    for _ in range(400):
        K, precision = int(rng.integers(1, 5)), 10 ** rng.uniform(0, 6)
        W = rng.standard_normal((K, 5))
        m = W[:, 0] * precision ** rng.uniform(-1, 0)
        gram = W @ W.T
        excess = expansions.feature_excess(m, gram, precision)
        ratios.append(np.abs(excess).max() / expansions.psi_2(m, gram, precision))
    assert 0.99 < max(ratios) < 1 + 1e-9


def test_feature_excess_against_quadrature():
    """BGHJ Lemma 4.1, Case 1: the expectation holds the variables, not their means as printed."""
    W = np.array([[1.0, 0.2], [0.5, -0.8]])
    gram, precision = W @ W.T, 3.0
    m = np.array([0.3, 0.2])
    rule = gaussian.sobol(2, 2**17, rng=0)
    u = m + rule.nodes @ W.T / np.sqrt(precision)
    negative = (u < 0).any(axis=1)
    wanted = gram / precision - np.einsum("n,ni,nj->ij", rule.weights * negative, u, u)
    off = ~np.eye(2, dtype=bool)  # on the diagonal both events are the same one
    found = expansions.feature_excess(m, gram, precision)
    np.testing.assert_allclose(found[off], wanted[off], atol=1e-4)
    assert np.abs(feature_excess(m, gram, precision) - wanted)[off].min() > 0.01


def test_fourth_moment_is_exact_and_bounds_the_rectified_one():
    """Against Gauss-Hermite, exact for quartics; the control loses the cross term."""
    rng = np.random.default_rng(7)
    root, mean = rng.standard_normal((3, 3)), rng.standard_normal(3)
    rule = gaussian.gauss_hermite(3, 5)
    y = mean + rule.nodes @ root.T
    found = expansions.fourth_moment_bound(mean, root @ root.T, 1.0)
    wanted = rule.expect(np.sum(y**2, axis=1) ** 2)
    assert found == pytest.approx(wanted, rel=1e-12)
    assert abs(found - 4 * mean @ root @ root.T @ mean - wanted) > 0.1
    fine = gaussian.sobol(3, 2**14, rng=0)
    rectified = np.maximum(mean + fine.nodes @ root.T, 0.0)
    assert fine.expect(np.sum(rectified**2, axis=1) ** 2) < found


def test_fourth_moment_needs_the_lengths():
    """BGHJ Lemma 4.2: the printed bound fails for long neurons, whatever its constant."""
    for constant in (3.0, 100.0):
        for length in (1.0, 10 * np.sqrt(constant)):
            gram, m = np.array([[length**2]]), np.zeros(1)
            exact = 1.5 * length**4 / 4.0**2  # E g^4 is half of the fourth moment
            assert exact <= expansions.fourth_moment_bound(m, gram, 4.0)
            wrong = fourth_moment_bound(m, gram, 4.0, constant=constant)
            assert (exact <= wrong) == (length == 1.0)


def test_output_fluctuation_bounds_the_weights():
    """BGHJ Lemma 4.3: exact second moment of the output, and what Lipschitz weights make of it."""
    rng = np.random.default_rng(2)
    rule = gaussian.sobol(4, 2**14, rng=0)
    for precision in (1.0, 30.0, 1000.0):
        problem = xor(3, 4, precision)
        point = Point(rng.standard_normal(3), rng.standard_normal((3, 4)))
        found = expansions.output_fluctuation(problem, point)
        assert np.all(found <= point.v @ point.v * np.sum(point.W**2) / precision)
        for c, center in enumerate(np.pad(problem.centroids, ((0, 0), (0, 2)))):
            outputs = problem.outputs(point, center + rule.nodes / np.sqrt(precision))
            middle = problem.outputs(point, center[None])[0]
            spread = rule.expect((outputs - middle) ** 2)
            assert spread == pytest.approx(found[c], abs=2e-3 * found.max())
            for matrix in MATRICES:
                label = problem.labels[c]
                spread = curvature.weight(matrix, outputs, label) - curvature.weight(
                    matrix, middle, label
                )
                allowed = expansions.LIPSCHITZ[matrix] ** 2 * found[c]
                assert rule.expect(spread**2) <= allowed
                size = point.v @ point.v * np.sum(point.W**2) / precision
                assert rule.expect(spread**2) <= expansions.psi_3(size)


def test_lipschitz_constants_are_sharp():
    """Largest slope of both weights on a fine grid."""
    o = np.linspace(-10, 10, 200_001)
    for matrix, wanted in expansions.LIPSCHITZ.items():
        slope = np.abs(np.gradient(curvature.weight(matrix, o, 1.0), o)).max()
        assert slope == pytest.approx(wanted, rel=1e-6)


def test_soft_response():
    """BGHJ Lemma 5.16: order -1/2 on a kink, -1 with open margins; hard steps are worse."""
    for aside, slope in ((0.5, -1.0), (0.0, -0.5)):
        point = Point(np.array([1.0, -0.8]), np.array([[0.8, aside, 0, 0], [0.4, 0.9, 0.3, 0]]))
        errors, orders = np.empty(len(PRECISIONS)), np.empty(len(PRECISIONS))
        for k, precision in enumerate(PRECISIONS):
            problem = xor(2, 4, precision)
            exact = curvature.active_error(problem, point, 0)[:2]
            errors[k] = np.abs(exact - expansions.soft_response(problem, point)[0]).max()
            orders[k] = expansions.response_order(problem, point, 0)
        assert np.polyfit(np.log(PRECISIONS[2:]), np.log(errors[2:]), 1)[0] == pytest.approx(
            slope, abs=0.05
        )
        assert np.all(errors <= orders)
    hard = limit.response(problem, problem.statistics(point))[0]
    assert np.abs(hard - exact).max() > 100 * errors[-1]


def test_short_neurons_let_the_noise_through():
    """BGHJ Lemma 5.16 as printed vanishes with the length of a neuron; the error does not."""
    precision = 1e6
    problem = xor(1, 3, precision)
    for length in (1.0, 1e-3):
        point = Point(np.ones(1), np.array([[length, 0.0, 0.0]]))
        error = np.abs(
            curvature.active_error(problem, point, 0)[:2]
            - expansions.soft_response(problem, point)[0]
        ).max()
        # A neuron along mu passes phi(0) of the noise along mu around either +-nu.
        passed = 2 * 0.25 * expit(0.0) / np.sqrt(2 * np.pi * precision)
        assert error == pytest.approx(passed, rel=0.01)
        assert error < expansions.response_order(problem, point, 0)
    assert error > 10 * response_order(problem, point, 0)


def test_margins():
    """Scale-free, zero for a vanishing or orthogonal neuron, infinite without noise."""
    point = Point(np.ones(3), np.array([[0.3, -0.4], [0.0, 2.0], [0.0, 0.0]]))
    found = expansions.margins(xor(3, 2, 4.0), point)
    np.testing.assert_allclose(found[0], [1.2, -1.2, -1.6, 1.6])
    np.testing.assert_allclose(found[1:, :2], 0.0)
    np.testing.assert_allclose(found[1:, 2], [2.0, 0.0])
    np.testing.assert_array_equal(
        expansions.margins(xor(3, 2, np.inf), point)[1], [0.0, 0.0, np.inf, -np.inf]
    )


def test_bad_input_is_named():
    """Neurons out of range and misshaped Gram matrices."""
    problem, point = xor(2, 3, 4.0), Point(np.ones(2), np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"i must be an integer in \[0, 1\], got 2"):
        expansions.first_layer_order(problem, point, 2)
    with pytest.raises(ValueError, match=r"problem\.precision must be finite"):
        expansions.remainder_bound(xor(2, 3, np.inf), "hessian", point, (0, 1))
    with pytest.raises(ValueError, match="gram must be square"):
        expansions.psi_2([1.0], np.ones((1, 2)), 1.0)
