"""Hessians in closed form, and an eigensolver that works in the space of the weights."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from traindyn import deep
from traindyn.deep import hessian
from traindyn.linalg import top_eigenpairs


def start(network: deep.Network, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weights and an input."""
    rng = np.random.default_rng(seed)
    return network.initial(rng=rng), rng.standard_normal(network.inputs)


def dense(network: deep.Network, weights: np.ndarray, x: np.ndarray, k: int = 0) -> np.ndarray:
    """The Hessian, column by column."""
    return deep.hessian_product(network, weights, x, np.eye(network.parameters), output=k)


def test_operator_in_the_weights() -> None:
    """Where the Hessian is too large to be formed, the block Krylov method must agree."""
    network = deep.drop_edges(deep.fully_connected([8, 64, 64, 1]), 0.5, rng=0)
    weights, x = start(network, 1)
    operator = deep.hessian_operator(network, weights, x)
    spectrum = top_eigenpairs(operator, 2, tolerance=1e-7)
    found = deep.hessian_norms(network, weights, x)
    np.testing.assert_allclose(found.eigenvalues[0], spectrum.eigenvalues[0], rtol=1e-11)
    vectors = np.random.default_rng(0).standard_normal((network.parameters, 2))
    product = deep.hessian_product(network, weights, x, vectors)
    np.testing.assert_allclose(operator.matmat(vectors), product, rtol=1e-14)
    single = deep.hessian_product(network, weights, x, vectors[:, 0])
    np.testing.assert_allclose(single, product[:, 0], rtol=1e-12, atol=1e-15)


def test_compiled_once_whatever_edges_there_are() -> None:
    """Columns by differences of gradients; networks that lack other edges share the code."""
    rng = np.random.default_rng(0)
    compiled = []
    for seed in range(3):
        network = deep.drop_edges(deep.densenet([4, 6, 6, 1]), 0.5, rng=seed)
        weights, x = start(network, seed)
        vector = rng.standard_normal(network.parameters)
        found = deep.hessian_product(network, weights, x, vector)
        ahead, behind = (
            deep.gradients(network, weights + s * vector, x[None])[0] for s in (1e-5, -1e-5)
        )
        np.testing.assert_allclose(found, (ahead - behind) / 2e-5, atol=1e-7)
        compiled.append((hessian._products._cache_size(), network.parameters))
    assert len({sizes for sizes, _ in compiled}) == 1
    assert len({parameters for _, parameters in compiled}) > 1
    other = deep.drop_edges(deep.densenet([4, 7, 6, 1]), 0.5, rng=0)
    deep.hessian_product(other, *start(other), np.zeros(other.parameters))
    assert hessian._products._cache_size() == compiled[0][0] + 1  # the counter counts


@pytest.mark.parametrize("activation", ["tanh", "softplus", "relu"])
def test_two_layers_in_closed_form(activation: str) -> None:
    """All eigenvalues, not only the largest."""
    network = deep.fully_connected([7, 30, 1], activation=activation)
    weights, x = start(network, 2)
    closed = deep.two_layer_eigenvalues(network, weights, x)
    assert closed.shape == (60,)
    found = deep.hessian_norms(network, weights, x)
    np.testing.assert_allclose(found.norms[0], np.abs(closed).max(), rtol=1e-10)
    spectrum = np.linalg.eigvalsh(dense(network, weights, x))
    full = np.sort(np.concatenate([closed, np.zeros(spectrum.size - closed.size)]))
    np.testing.assert_allclose(spectrum, full, atol=1e-14)
    # Control: without the division by d of the first layer.
    assert abs(np.abs(closed).max() * np.sqrt(7) / found.norms[0] - 1) > 1


def test_relu_norm_does_not_depend_on_the_weights() -> None:
    """The norm is |x| / sqrt(m d), to rounding."""
    network = deep.fully_connected([6, 50, 1], activation="relu")
    for seed in range(3):
        weights, x = start(network, seed)
        found = deep.hessian_norms(network, weights, x)
        np.testing.assert_allclose(found.norms[0], np.linalg.norm(x) / 300**0.5, rtol=1e-11)


def test_output_nonlinearity() -> None:
    """ZHU Section 2.3: the Hessian of phi(f) has the part phi'' grad f grad f^T, which stays."""
    plain = deep.fully_connected([5, 40, 40, 1])
    bent = deep.fully_connected([5, 40, 40, 1], output_activation="softplus")
    weights, x = start(plain)
    gradient = deep.gradients(plain, weights, x[None])[0]
    value = plain.values(weights, x[None])[0, 0]
    s = 1 / (1 + np.exp(-value))
    v = np.random.default_rng(0).standard_normal(plain.parameters)
    expected = s * (1 - s) * (gradient @ v) * gradient
    expected += s * deep.hessian_product(plain, weights, x, v)
    np.testing.assert_allclose(deep.hessian_product(bent, weights, x, v), expected, atol=1e-13)
