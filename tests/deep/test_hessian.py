"""Hessians against finite differences, and norms against the Hessians themselves."""
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
nx = pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from random_graphs import random_graph

from companion.lazy_training.beyond.graphs import edge_weights, from_graph
from companion.lazy_training.linearity.ball import hessian_ball
from traindyn import deep

NETWORKS: dict[str, Callable[[], deep.Network]] = {
    "fully connected": lambda: deep.fully_connected([5, 20, 20, 2]),
    "dropped densenet": lambda: deep.drop_edges(deep.densenet([5, 16, 16, 2]), 0.5, rng=1),
    "residual": lambda: deep.residual([5, 12, 12, 12, 2]),
    "convolutional": lambda: deep.convolutional([2, 6, 6], positions=5, outputs=2),
    "graph": lambda: from_graph(random_graph([5, 10, 10, 2], [4, 6, 8], seed=3), activation="erf"),
}


def start(network: deep.Network, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weights and an input."""
    rng = np.random.default_rng(seed)
    return network.initial(rng=rng), rng.standard_normal(network.inputs)


def dense(network: deep.Network, weights: np.ndarray, x: np.ndarray, k: int = 0) -> np.ndarray:
    """The Hessian, column by column."""
    return deep.hessian_product(network, weights, x, np.eye(network.parameters), output=k)


def test_finite_differences_of_numpy(reference: SimpleNamespace) -> None:
    """Nothing of JAX on the other side: a graph with a skip and a shared weight."""
    graph = random_graph([2, 4, 3, 2], [2, 3, 4], seed=0)
    graph.add_edge((0, 0), (2, 1), skip=True)
    for edge in list(graph.in_edges((1, 0)))[:1] + list(graph.in_edges((1, 2)))[:1]:
        graph.edges[edge]["shared"] = "s"
    network = from_graph(graph)
    numbers = edge_weights(graph)
    weights, x = start(network)
    for k in range(network.outputs):

        def value(w: np.ndarray, k: int = k) -> float:
            return float(reference.outputs(graph, numbers, w, x)[k])

        expected = reference.second_differences(value, weights)
        found = dense(network, weights, x, k)
        np.testing.assert_allclose(found, expected, atol=2e-6)
        norms = deep.hessian_norms(network, weights, x, outputs=[k])
        largest = np.abs(np.linalg.eigvalsh(expected)).max()
        # Weyl: a norm moves by at most the norm of the error of the differences.
        assert abs(norms.norms[0] - largest) < 2e-6 * network.parameters
        assert np.abs(np.diag(expected)).max() < 0.9 * largest  # no cheap stand-in would pass


@pytest.mark.parametrize("name", NETWORKS)
def test_problem_on_the_neurons(name: str) -> None:
    """The norm from N G is that of the Hessian itself, eigenvector and residual included."""
    network = NETWORKS[name]()
    weights, x = start(network)
    found = deep.hessian_norms(network, weights, x, vectors=True, rng=5)
    assert found.converged.all()
    assert found.vectors is not None
    for k in range(network.outputs):
        hessian = dense(network, weights, x, k)
        np.testing.assert_allclose(hessian, hessian.T, atol=1e-15)
        spectrum = np.linalg.eigvalsh(hessian)
        largest = spectrum[np.argmax(np.abs(spectrum))]
        np.testing.assert_allclose(found.norms[k], abs(largest), rtol=1e-11)
        np.testing.assert_allclose(found.eigenvalues[k], largest, rtol=1e-11)
        v = found.vectors[:, k]
        assert abs(np.linalg.norm(v) - 1) < 1e-12
        gap = np.linalg.norm(hessian @ v - found.eigenvalues[k] * v) / found.norms[k]
        np.testing.assert_allclose(found.residuals[k], gap, rtol=1e-4, atol=1e-13)
        # Control: the next pair is far enough for the wrong one to be noticed.
        assert abs(np.sort(np.abs(spectrum))[-2] / abs(largest) - 1) > 1e-6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda n, w, x: deep.hessian_norms(n, w[:-1], x), "weights must have shape"),
        (lambda n, w, x: deep.hessian_norms(n, w, x[:-1]), "point must have shape"),
        (lambda n, w, x: deep.hessian_norms(n, w, x, outputs=[1]), "outputs must consist of"),
        (lambda n, w, x: deep.hessian_norms(n, w, x, tolerance=0), "tolerance must be positive"),
        (lambda n, w, x: deep.hessian_product(n, w, x, w[:-1]), "vectors must have shape"),
        (lambda n, w, x: deep.hessian_operator(n, w, x, output=2), "output must be"),
        (lambda n, w, x: hessian_ball(n, w, x, -1.0, rng=0), "radius must be non-negative"),
        (lambda n, w, x: hessian_ball(n, w, x, 1.0, points=0, rng=0), "points must be"),
        (
            lambda n, w, x: hessian_ball(n, w, x, 1.0, along=0 * w[:, None], rng=0),
            "along must have non-zero",
        ),
        (lambda n, w, x: deep.two_layer_eigenvalues(n, w, x), "fully connected with sizes"),
    ],
)
def test_bad_arguments(call: Callable[..., object], message: str) -> None:
    """Each error names what is wrong."""
    network = deep.fully_connected([3, 4, 4, 1])
    weights, x = start(network)
    with pytest.raises(ValueError, match=message):
        call(network, weights, x)
