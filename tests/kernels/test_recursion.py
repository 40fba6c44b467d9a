"""Kernels of infinite width: against formulas of another kind and against sampled networks."""

import numpy as np
import pytest

from companion.lazy_training.tangent_kernel.network import Network
from companion.lazy_training.tangent_kernel.width import (
    antipodal_mean,
    random_covariances,
    width_corrections,
)
from traindyn.activations import ERF, GELU, IDENTITY, RELU, TANH
from traindyn.kernels import infinite_width

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
    outputs = np.stack([net.outputs(net.initial(rng=rng), X) for _ in range(1500)])
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


@pytest.mark.parametrize("activation", [TANH, ERF, GELU], ids=lambda a: a.name)
def test_width_corrections(activation):
    """Mean and variance of the random covariance, against 60 000 draws at widths 100 and 400."""
    found = width_corrections(X, depth=3, activation=activation, bias=0.3)
    limit = np.diag(infinite_width(X, depth=3, activation=activation, bias=0.3).nngp)
    np.testing.assert_allclose(found.nngp, limit, rtol=1e-8)
    shifts, spreads = [], []
    for n in (100, 400):
        drawn = random_covariances(
            X[:1], (n, n), activation=activation, bias=0.3, replicas=60_000, rng=n
        ).ravel()
        shifts.append((drawn.mean() - limit[0]) * n)
        spreads.append(drawn.var() * n)
        error = drawn.std() * n / 60_000**0.5
    # The next order halves twice.
    assert abs(spreads[1] / found.spread[0] - 1) < 0.05
    assert abs(shifts[1] - found.shift[0]) < 5 * error + 0.02 * abs(found.shift[0])
    np.testing.assert_allclose(found.excess, 3 * found.spread / limit**2)


def test_rectifier_is_exact():
    """A bias-free rectifier: E S^2 = (E S)^2 (1 + 5/n)^(L-1) at every width."""
    widths = (3, 7, 5)
    drawn = random_covariances(X[:1], widths, activation=RELU, replicas=400_000, rng=1).ravel()
    exact = np.prod([1 + 5 / n for n in widths])
    ratio = np.mean((drawn / (np.square(X[0]).sum() / 24)) ** 2)
    assert ratio == pytest.approx(exact, rel=0.08)
    assert abs(drawn.mean() / (np.square(X[0]).sum() / 24) - 1) < 5 * (exact / 400_000) ** 0.5
    found = width_corrections(X, depth=4, activation=RELU)
    np.testing.assert_allclose(found.excess, 45.0)
    np.testing.assert_allclose(found.shift, 0.0, atol=1e-12)


def test_antipodal_mean():
    """Networks of width five against the exact sum; at large width one less 3/(2n)."""
    x = np.array([[1.0, 0.5], [-1.0, -0.5]])
    net = Network((2, 5, 5, 1), RELU)
    rng = np.random.default_rng(8)
    seen = np.array([net.tangent_kernel(net.initial(rng=rng), x)[0, 1] for _ in range(6000)])
    limit = infinite_width(x, depth=3, activation=RELU).ntk[0, 1]
    error = seen.std() / 6000**0.5
    assert abs(seen.mean() - limit * antipodal_mean(5)) < 4.5 * error
    assert abs(seen.mean() - limit) > 4.5 * error
    gaps = [(1 - antipodal_mean(n)) * n for n in (100, 1000)]
    np.testing.assert_allclose(gaps, 1.5, atol=0.02)


def test_random_covariances_have_the_law_of_networks():
    """First two moments of the whole matrix against networks with all their weights."""
    net = Network((3, 4, 6, 8), TANH, bias=0.5)
    rng = np.random.default_rng(5)
    seen = []
    for _ in range(8000):
        first, second, _last = net.layers(net.initial(rng=rng))
        hidden = np.tanh(X[:2] @ first.weights.T / 3**0.5 + 0.5 * first.biases)
        hidden = np.tanh(hidden @ second.weights.T / 2.0 + 0.5 * second.biases)
        seen.append(hidden @ hidden.T / 6 + 0.25)
    drawn = random_covariances(X[:2], (4, 6), activation=TANH, bias=0.5, replicas=8000, rng=2)
    for power in (1, 2):
        left, right = np.array(seen) ** power, drawn**power
        error = np.sqrt((left.var(axis=0) + right.var(axis=0)) / 8000)
        assert np.all(np.abs(left.mean(axis=0) - right.mean(axis=0)) < 5 * error)
    # Control: one layer less.
    short = random_covariances(X[:2], (6,), activation=TANH, bias=0.5, replicas=8000, rng=2)
    assert np.all(np.abs(short.mean(axis=0) - np.mean(seen, axis=0)).max() > 10 * error.max())
    np.testing.assert_allclose(
        random_covariances(X, (), activation=TANH, bias=0.5, replicas=2, rng=0)[1],
        infinite_width(X, depth=1, activation=TANH, bias=0.5).nngp,
    )


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
    with pytest.raises(ValueError, match="x must not be zero where there is no bias"):
        width_corrections(np.zeros((1, 3)), depth=2, activation=TANH)
    with pytest.raises(ValueError, match=r"widths\[1\] must be an integer >= 1, got 0"):
        random_covariances(X, (2, 0), activation=RELU, replicas=1, rng=0)
