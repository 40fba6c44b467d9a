"""Generic population blocks against the closed forms of the k-Gaussian mixture."""

from __future__ import annotations

import numpy as np
import pytest

from companion.alignment.beyond.spectra import limit_spectra
from companion.alignment.training_dynamics.limit import fixed_point, fixed_point_diagonal
from traindyn import gaussian
from traindyn.problems.base import Block, Matrix
from traindyn.problems.k_gmm import KGaussianMixture, Point, Statistics, limit
from traindyn.problems.k_gmm.population import hessian_block, population_block
from traindyn.problems.two_layer import Point as TwoLayerPoint
from traindyn.problems.two_layer import TwoLayerMixture, curvature
from traindyn.spectra import population

GRAM = np.array([[1.0, 0.4], [0.4, 1.0]])


def _problem(precision: float = 8.0) -> KGaussianMixture:
    return KGaussianMixture(GRAM, np.array([0.3, 0.7]), precision, 0.1, 30)


def _statistics() -> Statistics:
    rng = np.random.default_rng(0)
    return _problem().statistics(Point(rng.standard_normal((2, 30)) / np.sqrt(10)))


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
@pytest.mark.parametrize("block", [(0, 0), (0, 1)])
def test_blocks_match_the_closed_forms(matrix: Matrix, block: Block) -> None:
    """Two independent routes: factors on an embedded grid, and integration by parts."""
    problem, statistics = _problem(), _statistics()
    found = population.block(problem, statistics, matrix, block, rule=gaussian.gauss_hermite(4, 24))
    small, point = problem.embed(statistics)
    assert found.size == small.dimension == 4
    exact = population_block(small, matrix, point, block, rule=gaussian.gauss_hermite(2, 40))
    assert found.shift == pytest.approx(exact.shift, abs=1e-9)
    np.testing.assert_allclose(found.dense(), exact.dense(), atol=1e-9)
    # control: the same block at statistics without the orthogonal part
    bare, point = problem.embed(statistics._replace(R_perp=np.zeros((2, 2))))
    other = population_block(bare, matrix, point, block, rule=gaussian.gauss_hermite(2, 40))
    assert abs(found.shift - other.shift) > 1e-3


def test_embedding_keeps_the_spectrum_of_the_full_dimension() -> None:
    """Eigenvalues in 30 dimensions are those in the embedding plus more of the bulk."""
    problem = _problem()
    point = Point(np.random.default_rng(0).standard_normal((2, 30)) / np.sqrt(10))
    wide = hessian_block(problem, point, (0, 0), rule=gaussian.gauss_hermite(2, 40)).eigenvalues()
    found = population.block(
        problem, problem.statistics(point), "hessian", (0, 0), rule=gaussian.gauss_hermite(4, 24)
    )
    small = np.concatenate([found.eigenvalues(), np.full(30 - found.size, found.shift)])
    np.testing.assert_allclose(np.sort(small), np.sort(wide), atol=1e-9)


def test_population_is_the_mean_of_samples() -> None:
    """Empirical blocks of independent data average to the population block.

    The entries of the mean over 200 blocks of 2000 draws are compared by t tests, 10 entries
    at level 1e-7 each. Power: a matrix two per cent too large is rejected (control).
    """
    problem, statistics = _problem(), _statistics()
    small, point = problem.embed(statistics)
    exact = population.block(
        problem, statistics, "g_matrix", (0, 0), rule=gaussian.gauss_hermite(4, 16)
    ).dense()
    blocks = []
    for child in np.random.default_rng(5).spawn(200):
        factors = small.factors("g_matrix", (0, 0), point, small.sample(2000, rng=child))
        blocks.append((factors.left.T * factors.weights) @ factors.right / 2000)
    upper = np.triu_indices(4)
    entries = np.stack(blocks)[:, *upper]
    error = entries.std(axis=0, ddof=1) / np.sqrt(200)
    bound = 5.5  # t with 199 degrees of freedom, two-sided 1e-7
    assert np.all(np.abs(entries.mean(axis=0) - exact[upper]) < bound * error)
    assert np.any(np.abs(entries.mean(axis=0) - 1.02 * exact[upper]) > bound * error)


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_full_matrix_approaches_its_limit_spectrum(matrix: Matrix) -> None:
    """Ranks k(k-1) and k at large precision, from the fixed point; rate 1/lambda."""
    gaps, precisions = [], [1e3, 1e4, 1e5]
    for precision in precisions:
        problem = KGaussianMixture.orthonormal(3, 50, precision=precision, ridge=0.05)
        statistics = fixed_point(problem)
        own = limit.own_probability(fixed_point_diagonal(problem), 3)
        wanted = limit_spectra(own, weights=problem.weights).full(matrix)
        values, bulk = population.full(problem, statistics, matrix).eigenvalues()
        assert values.shape == (9,) and bulk.shape == (3,)
        assert np.abs(bulk).max() < 1 / precision
        gaps.append(np.abs(values[: wanted.size] - wanted).max())
        assert np.abs(values[wanted.size :]).max(initial=0.0) < 1 / precision
    assert gaps[0] < 1e-3
    slope = np.polyfit(np.log(precisions), np.log(gaps), 1)[0]
    assert abs(slope + 1) < 0.05


def test_full_matrix_holds_the_blocks() -> None:
    """Row and column order of the big matrix: parameter vector first, then coordinate."""
    problem, statistics = _problem(), _statistics()
    rule = gaussian.gauss_hermite(4, 10)
    found = population.full(problem, statistics, "hessian", rule=rule)
    corner = population.block(problem, statistics, "hessian", (1, 0), rule=rule)
    np.testing.assert_allclose(found.on_span[4:, :4], corner.dense(), atol=1e-14)
    assert found.bulk[1, 0] == pytest.approx(corner.shift)
    # probabilities sum to one: the blocks of a row of the Hessian sum to zero
    np.testing.assert_allclose(found.on_span[:4, :4] + found.on_span[:4, 4:], 0, atol=1e-14)
    np.testing.assert_allclose(found.bulk.sum(axis=1), 0, atol=1e-14)


def _network() -> tuple[TwoLayerMixture, TwoLayerPoint]:
    """Two neurons in three dimensions: a network that is its own embedding."""
    problem = TwoLayerMixture.xor(2, 4, precision=4.0, ridge=0.1)
    W = np.array([[0.9, -0.4, 0.5, 0.0], [-0.3, 0.7, 0.2, 0.6]])
    return problem, TwoLayerPoint(np.array([1.1, -0.8]), W)


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_two_layer_blocks_match_the_control_variate(matrix: Matrix) -> None:
    """Both layers: plain Sobol points against closed forms plus a small correction.

    A first-layer block jumps where the neuron switches; the error of 2**15 points is 3e-3 of it.
    """
    problem, point = _network()
    statistics = problem.statistics(point)
    small, inside = problem.embed(statistics)
    rule = gaussian.sobol(small.dimension, 2**15, rng=1)
    for block in ((0, 0), (1, 0), (2, 2)):
        found = population.block(problem, statistics, matrix, block, rule=rule)
        exact = curvature.population_block(small, matrix, inside, block)
        scale = np.abs(exact.dense()).max()
        np.testing.assert_allclose(found.dense(), exact.dense(), atol=1e-2 * scale)
        assert found.shift == pytest.approx(exact.shift, abs=1e-2 * scale)
    # control: the weights of the other matrix
    other = population.block(problem, statistics, "hessian", (2, 2), rule=rule).dense()
    wrong = curvature.population_block(small, "g_matrix", inside, (2, 2)).dense()
    assert np.abs(other - wrong).max() > 0.05 * np.abs(wrong).max()


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_full_matrix_of_two_layers(matrix: Matrix) -> None:
    """Neurons on the span, then the second layer: mixed blocks included, bulk for neurons only."""
    problem, point = _network()
    statistics = problem.statistics(point)
    small, inside = problem.embed(statistics)
    r = small.dimension
    rule = gaussian.sobol(r, 2**15, rng=2)
    found = population.full(problem, statistics, matrix, rule=rule)
    assert found.on_span.shape == (2 * r + 2, 2 * r + 2) and found.bulk.shape == (2, 2)
    np.testing.assert_array_equal(found.on_span, found.on_span.T)
    scale = np.abs(found.on_span).max()
    for j in range(2):
        mixed = curvature.mixed_block(small, matrix, inside, j)
        part = found.on_span[2 * r :, j * r : (j + 1) * r]
        np.testing.assert_allclose(part, mixed, atol=2e-3 * scale)
    corner = population.block(problem, statistics, matrix, (1, 0), rule=rule)
    np.testing.assert_allclose(found.on_span[r : 2 * r, :r], corner.dense(), atol=1e-15)
    assert found.bulk[1, 0] == pytest.approx(corner.shift)
    values, bulk = found.eigenvalues()
    assert values.shape == (2 * r + 2,) and bulk.shape == (2,)


def test_bad_input_is_named() -> None:
    """A rule of the wrong dimension, an unknown matrix, features that are not inputs."""
    problem, statistics = _problem(), _statistics()
    with pytest.raises(ValueError, match="rule must have the dimension 4 of the inputs, got 3"):
        population.block(problem, statistics, "hessian", (0, 0), rule=gaussian.rule(3))
    with pytest.raises(ValueError, match="matrix must be one of"):
        population.block(problem, statistics, "gradient", (0, 0))  # type: ignore[arg-type]
    network, point = _network()
    with pytest.raises(ValueError, match=r"the same features on both sides, got \(2, 0\)"):
        population.block(network, network.statistics(point), "hessian", (2, 0))
