"""Block norms against the full Hessian, and the norm of all outputs against a scan."""
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.kernel_change import blocks
from traindyn import deep

NETWORKS: dict[str, Callable[[], deep.Network]] = {
    "fully connected": lambda: deep.fully_connected([5, 8, 9, 2]),
    "dropped densenet": lambda: deep.drop_edges(
        deep.densenet([4, 8, 7, 2], activation="softplus"), 0.6, rng=1
    ),
    "convolutional": lambda: deep.convolutional([2, 4, 3], positions=5, outputs=2),
}


def start(network: deep.Network, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weights and an input."""
    rng = np.random.default_rng(seed)
    return network.initial(rng=rng), rng.standard_normal(network.inputs)


def dense(network: deep.Network, weights: np.ndarray, x: np.ndarray, k: int) -> np.ndarray:
    """The Hessian, column by column."""
    return deep.hessian_product(network, weights, x, np.eye(network.parameters), output=k)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NETWORKS)
def test_blocks_and_outputs_together(name: str) -> None:
    """Against the Hessian in the weights; two outputs together by a scan of all mixtures.

    A block could be that of other layers (ZHU Lemma A.2.2), the sum of the norms could lie below
    the norm (ZHU Lemma A.11.1), or the norm of both outputs above that of the vector of their norms
    (ZHU Corollary A.3.1).
    """
    network = NETWORKS[name]()
    weights, x = start(network)
    hessians = [dense(network, weights, x, k) for k in range(2)]
    found = blocks.hessian_blocks(network, weights, x, output=1)
    ends = np.cumsum([layer.connection.parameters for layer in network.layers])[:-1]
    rows = np.split(hessians[1], ends, axis=0)
    norms = [[np.linalg.norm(b, 2) for b in np.split(row, ends, axis=1)] for row in rows]
    np.testing.assert_allclose(found.norms, norms, atol=1e-9 * np.max(norms))
    assert found.converged.all()
    assert found.norms[-1, -1] == 0
    np.testing.assert_array_equal(found.norms, found.norms.T)
    if name != "convolutional":
        closed = blocks.last_blocks(network, weights, x, output=1)
        np.testing.assert_allclose(closed, found.norms[-2, -2:], rtol=1e-8)
    # The sum of the block norms bounds the norm; the largest block alone does not.
    norm = np.linalg.norm(hessians[1], 2)
    assert found.norms.max() < norm < found.total

    together = blocks.vector_norm(network, weights, x, starts=6)
    angles = np.linspace(0, np.pi, 181)
    scan = [np.linalg.norm(np.cos(a) * hessians[0] + np.sin(a) * hessians[1], 2) for a in angles]
    # Between two angles of the scan the norm changes by the square of half a degree.
    np.testing.assert_allclose(together.norm, max(scan), rtol=2e-4)
    np.testing.assert_allclose(together.outputs, [scan[0], scan[90]], rtol=1e-7)
    mixed = together.mixture[0] * hessians[0] + together.mixture[1] * hessians[1]
    np.testing.assert_allclose(together.norm, np.linalg.norm(mixed, 2), rtol=1e-7)
    assert together.converged
    assert together.outputs.max() <= together.norm * (1 + 1e-9)
    assert together.norm <= np.linalg.norm(together.outputs)


@pytest.mark.parametrize("outputs", [1, 10])
def test_two_layers_in_closed_form(outputs: int) -> None:
    """Control: the closed form of a single output is too small."""
    network = deep.fully_connected([6, 30, outputs])
    weights, x = start(network, 3)
    closed = blocks.two_layer_vector_norm(network, weights, x)
    found = blocks.vector_norm(network, weights, x, starts=6)
    np.testing.assert_allclose(found.norm, closed, rtol=1e-8)
    if outputs == 1:
        single = np.abs(deep.two_layer_eigenvalues(network, weights, x)).max()
        np.testing.assert_allclose(closed, single, rtol=1e-14)
    else:
        assert found.outputs.max() < 0.9 * closed


def test_nothing_to_find() -> None:
    """A linear network, one that is dead here, and one with equal outputs."""
    linear = deep.fully_connected([3, 2])
    weights, x = start(linear)
    assert blocks.hessian_blocks(linear, weights, x).total == 0
    assert blocks.vector_norm(linear, weights, x).norm == 0
    dead = deep.fully_connected([2, 3, 3, 1], activation="relu")
    found = blocks.hessian_blocks(dead, -np.ones(dead.parameters), [1.0, 1.0])
    assert found.total == 0
    assert found.converged.all()


def test_gives_up_honestly_and_names_overflow() -> None:
    """Too few products show in the result, and NaN never comes back as a norm."""
    network = deep.fully_connected([5, 40, 40, 1])
    weights, x = start(network)
    rough = blocks.hessian_blocks(network, weights, x, max_products=5)
    assert not rough.converged.all()
    assert rough.products == 5
    assert rough.residuals.max() > 1e-5
    good = blocks.hessian_blocks(network, weights, x)
    assert np.all(rough.norms <= good.norms * (1 + 1e-9))
    steep = deep.fully_connected([2, 3, 1], activation=jax.numpy.exp)
    with pytest.raises(FloatingPointError, match="must be finite"):
        blocks.hessian_blocks(steep, np.full(steep.parameters, 50.0), [9.0, 9.0])


def test_bad_arguments() -> None:
    """Each error names what is wrong."""
    network = deep.fully_connected([3, 4, 4, 1])
    weights, x = start(network)
    with pytest.raises(ValueError, match="output must be"):
        blocks.hessian_blocks(network, weights, x, output=1)
    with pytest.raises(ValueError, match="tolerance must be positive"):
        blocks.hessian_blocks(network, weights, x, tolerance=0)
    with pytest.raises(ValueError, match="starts must be"):
        blocks.vector_norm(network, weights, x, starts=-1)
    with pytest.raises(ValueError, match="two layers of matrices"):
        blocks.last_blocks(deep.fully_connected([3, 1]), np.ones(3), x)
    with pytest.raises(ValueError, match="sizes"):
        blocks.two_layer_vector_norm(network, weights, x)
