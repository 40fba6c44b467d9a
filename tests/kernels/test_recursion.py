"""Kernels of infinite width: against formulas of another kind and against sampled networks."""

import numpy as np
import pytest

from traindyn.activations import ERF, GELU, IDENTITY, RELU, TANH
from traindyn.kernels import Network, infinite_width

X = np.random.default_rng(1).standard_normal((5, 3))


def test_linear_networks():
    """Without an activation: Sigma = G + k-fold bias, K = sum of products, by hand."""
    gram, beta = X @ X.T / 3, 0.4
    found = infinite_width(X, depth=3, activation=IDENTITY, bias=beta)
    first = gram + beta**2
    np.testing.assert_allclose(found.nngp, gram + 3 * beta**2, atol=1e-14)
    np.testing.assert_allclose(found.ntk, 3 * first + 3 * beta**2, atol=1e-14)
    alone = infinite_width(X, depth=1, activation=RELU, bias=beta)
    np.testing.assert_array_equal(alone.ntk, alone.nngp)
    np.testing.assert_allclose(alone.nngp, first, atol=1e-15)


def test_homogeneous_diagonal():
    """A bias-free rectifier: K(x, x) = L 2^{1-L} |x|^2 / n_0, and degree one in each argument."""
    for depth in (1, 2, 5):
        found = infinite_width(X, depth=depth, activation=RELU)
        np.testing.assert_allclose(
            np.diag(found.ntk), depth * 2.0 ** (1 - depth) * np.square(X).sum(axis=1) / 3
        )
        scaled = infinite_width(2 * X, 3 * X, depth=depth, activation=RELU)
        np.testing.assert_allclose(scaled.ntk, 6 * found.ntk, rtol=1e-7)
    # Control: the recursion without its last term, as if only the last layer learnt nothing.
    short = infinite_width(X, depth=4, activation=RELU)
    assert np.abs(np.diag(short.ntk) - 5 / 16 * np.square(X).sum(axis=1) / 3).max() > 0.05


@pytest.mark.parametrize("activation", [RELU, ERF, GELU], ids=lambda a: a.name)
def test_nested_expectations(activation):
    """Depth three by Monte Carlo over two nested Gaussian layers of conditional width 3000."""
    beta, width = 0.3, 3000
    rng = np.random.default_rng(7)
    nngp, ntk = [], []
    for _ in range(20):
        first = X @ rng.standard_normal((3, width)) / 3**0.5 + beta * rng.standard_normal(width)
        values, slopes = activation.value(first), activation.slope(first)
        sigma2 = values @ values.T / width + beta**2
        kernel2 = (X @ X.T / 3 + beta**2) * (slopes @ slopes.T / width) + sigma2
        root = np.linalg.cholesky(sigma2 + 1e-12 * np.eye(5))
        second = root @ rng.standard_normal((5, width))
        sigma3 = activation.value(second) @ activation.value(second).T / width + beta**2
        nngp.append(sigma3)
        ntk.append(
            kernel2 * (activation.slope(second) @ activation.slope(second).T) / width + sigma3
        )
    found = infinite_width(X, depth=3, activation=activation, bias=beta)
    for sampled, expected in ((nngp, found.nngp), (ntk, found.ntk)):
        error = np.std(sampled, axis=0, ddof=1) / 20**0.5
        # Bias of order 1/3000 from the inner layer.
        allowed = 6 * error + 3e-3 * np.abs(expected).max()
        assert np.all(np.abs(np.mean(sampled, axis=0) - expected) < allowed)
    # Control: without the last layer's own share.
    wrong = found.ntk - found.nngp
    assert np.abs(np.mean(ntk, axis=0) - wrong).max() > 5 * allowed.max()


def test_output_covariance_of_networks():
    """MDL Theorem 8.4 at width 100, by 1500 networks; error O(1/width) and sampling."""
    net = Network((3, 100, 100, 1), TANH, bias=0.3)
    rng = np.random.default_rng(3)
    outputs = np.stack([net.outputs(net.initialise(rng=rng), X) for _ in range(1500)])
    limit = infinite_width(X, depth=3, activation=TANH, bias=0.3).nngp
    products = outputs[:, :, None] * outputs[:, None, :]
    error = products.std(axis=0, ddof=1) / 1500**0.5
    assert np.all(np.abs(products.mean(axis=0) - limit) < 5.5 * error + limit.max() / 100)
    wrong = infinite_width(X, depth=3, activation=TANH, bias=0.0).nngp
    assert np.abs(products.mean(axis=0) - wrong).max() > 15 * error.max()


@pytest.mark.parametrize("activation", [RELU, ERF, TANH], ids=lambda a: a.name)
def test_second_set_of_inputs(activation):
    """Blocks of the kernel of all inputs; semi-definite as a whole."""
    whole = infinite_width(X, depth=4, activation=activation, bias=0.2)
    block = infinite_width(X[:2], X[2:], depth=4, activation=activation, bias=0.2)
    for mine, theirs in zip(block, whole):
        np.testing.assert_allclose(mine, theirs[:2, 2:], atol=1e-13)
        np.testing.assert_array_equal(theirs, theirs.T)
        assert np.linalg.eigvalsh(theirs)[0] > 0


def test_refusals():
    """Each message names the argument."""
    with pytest.raises(ValueError, match="depth must be an integer >= 1, got 0"):
        infinite_width(X, depth=0, activation=RELU)
    with pytest.raises(ValueError, match=r"other must have shape \(any, 3\)"):
        infinite_width(X, X[:, :2], depth=2, activation=RELU)
    with pytest.raises(ValueError, match="x must have at least one coordinate"):
        infinite_width(np.empty((4, 0)), depth=2, activation=RELU)
    with pytest.raises(ValueError, match="x must be finite"):
        infinite_width([[np.nan]], depth=2, activation=RELU)
