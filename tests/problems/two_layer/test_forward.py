"""All blocks of both layers together, against derivatives and products of gradients."""

import numpy as np
import pytest

from traindyn import linalg
from traindyn.problems.base import MATRICES, Sample
from traindyn.problems.two_layer import Point, TwoLayerMixture
from traindyn.spectra import blocks

K, N, DRAWS = 3, 5, 11


def small():
    """A network, a point with every neuron active now and then, and data."""
    problem = TwoLayerMixture.xor(K, N, precision=3.0, ridge=0.2, mu=(0.8, 0.6), nu=(-0.6, 0.8))
    rng = np.random.default_rng(1)
    point = Point(rng.normal(size=K), 0.6 * rng.normal(size=(K, N)))
    sample = problem.sample(DRAWS, rng=2)
    active = sample.inputs @ point.W.T > 0
    assert active.any(axis=0).all() and not active.all(axis=0).any()
    return problem, point, sample


def gradient(problem, vector, sample):
    """Gradient in the order of the full matrix: neurons first, then the second layer."""
    found = problem.gradient(Point(vector[K * N :], vector[: K * N].reshape(K, N)), sample)
    return np.concatenate([found.W.ravel(), found.v])


def hessian_by_differences(problem, point, sample, width=1e-6):
    """Central differences of the mean gradient, shape (K N + K, K N + K)."""
    start = np.concatenate([point.W.ravel(), point.v])
    steps = width * np.eye(start.size)
    pairs = [(start + step, start - step) for step in steps]
    slopes = [
        (gradient(problem, up, sample) - gradient(problem, down, sample)) / (2 * width)
        for up, down in pairs
    ]
    return np.stack(slopes, axis=-1)


def test_full_hessian_is_the_derivative_of_the_gradient():
    """Both layers and their mixed blocks; the sign of BGHJ (6.16) as printed is rejected."""
    problem, point, sample = small()
    expected = hessian_by_differences(problem, point, sample)
    full = blocks.full(problem, "hessian", point, sample)
    assert full.size == K * N + K
    dense = full.dense()
    np.testing.assert_allclose(dense, expected, atol=1e-8)
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_allclose(full.matmat(np.eye(full.size)), dense, atol=1e-14)
    _, errors, _ = problem._response(point, sample)
    printed = dense.copy()
    for j in range(K):
        active = sample.inputs @ point.W[j] > 0
        first = (errors * active) @ sample.inputs / DRAWS
        printed[K * N + j, j * N : (j + 1) * N] -= 2 * first
    assert np.abs(printed - expected).max() > 0.05


def test_full_g_matrix_is_the_mean_of_products_of_gradients():
    """One draw at a time, written out."""
    problem, point, sample = small()
    start = np.concatenate([point.W.ravel(), point.v])
    singles = [Sample(sample.inputs[[n]], sample.labels[[n]]) for n in range(DRAWS)]
    gradients = np.array([gradient(problem, start, single) for single in singles])
    expected = gradients.T @ gradients / DRAWS
    full = blocks.full(problem, "g_matrix", point, sample)
    np.testing.assert_allclose(full.dense(), expected, atol=1e-14)
    np.testing.assert_allclose(full.matmat(np.eye(full.size)), expected, atol=1e-14)
    rank = np.linalg.matrix_rank(expected)
    top = linalg.top_eigenpairs(full, 3)
    assert rank <= DRAWS
    np.testing.assert_allclose(top.eigenvalues, np.linalg.eigvalsh(expected)[::-1][:3], rtol=1e-10)
    np.testing.assert_array_equal(blocks.parameters(problem, point), start)


@pytest.mark.parametrize("matrix", MATRICES)
def test_mixed_block_and_its_transpose(matrix):
    """Rows of the second layer against columns of a neuron, and the other way round."""
    problem, point, sample = small()
    for j in range(K):
        pairs = [problem.factors(matrix, block, point, sample) for block in ((K, j), (j, K))]
        across, down = ((f.left.T * f.weights) @ f.right / DRAWS for f in pairs)
        assert across.shape == (K, N)
        np.testing.assert_allclose(across, down.T, atol=1e-15)
        with pytest.raises(ValueError, match="block must be symmetric"):
            blocks.operator(problem, matrix, (K, j), point, sample)


@pytest.mark.parametrize("matrix", MATRICES)
def test_inactive_draws_have_weight_exactly_zero(matrix):
    """So that every block of a neuron leaves them out."""
    problem, point, sample = small()
    source = problem.forward(point, sample)
    active = sample.inputs @ point.W.T > 0
    for i in range(K):
        for j in range(K):
            weights = source.factors(matrix, (i, j)).weights
            np.testing.assert_array_equal(weights != 0, active[:, i] & active[:, j])
        for block in ((K, i), (i, K)):
            weights = source.factors(matrix, block).weights
            np.testing.assert_array_equal(weights != 0, active[:, i])


def test_blocks_that_do_not_exist_are_refused():
    """The index is named."""
    problem, point, sample = small()
    source = problem.forward(point, sample)
    for block, message in (((0, 4), r"block\[1\] must be"), ((-1, 0), r"block\[0\] must be")):
        with pytest.raises(ValueError, match=message):
            source.factors("hessian", block)
    with pytest.raises(ValueError, match="matrix must be one of"):
        source.factors("fisher", (0, 0))
