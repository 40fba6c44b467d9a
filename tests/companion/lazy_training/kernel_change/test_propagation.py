"""Derivatives of neurons, gradients of ReLU networks in the mean, counted dependence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

import networkx as nx

from companion.lazy_training.kernel_change import blocks, propagation
from traindyn import deep

NETWORKS: dict[str, Callable[[], deep.Network]] = {
    "chain": lambda: deep.fully_connected([1, 1, 1, 1], activation="relu"),
    "narrow": lambda: deep.fully_connected([3, 7, 2, 1], activation="relu"),
    "dropped densenet": lambda: deep.drop_edges(
        deep.densenet([4, 3, 5, 1], activation="relu"), 0.6, rng=2
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_relu_networks(name: str) -> None:
    """Five standard errors; control: all paths as long as the longest."""
    network = NETWORKS[name]()
    x = np.linspace(0.5, 2, network.inputs)
    squares = propagation.gradient_squares(network, 60_000, point=x, rng=1)
    expected = propagation.relu_gradient_moment(network, x)[0]
    error = squares.std() / squares.size**0.5
    assert abs(squares.mean() - expected) < 5 * error
    longest = network.depth * 2.0 ** (1 - network.depth) * np.mean(x**2)
    if name == "dropped densenet":
        assert abs(squares.mean() - longest) > 5 * error
    else:
        np.testing.assert_allclose(expected, longest, rtol=1e-14)


def test_squares_are_those_of_the_gradient() -> None:
    """The draws in plain order: weights first, then points."""
    network = NETWORKS["dropped densenet"]()
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((3, network.parameters))
    points = rng.standard_normal((3, network.inputs))
    expected = [np.sum(deep.gradients(network, w, x[None]) ** 2) for w, x in zip(weights, points)]
    found = propagation.gradient_squares(network, 3, rng=5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_lower_bound() -> None:
    """ZHU Proposition 2.4.4: the bound for a cubic activation, and below the mean for ReLU."""
    constant = 15.0  # the sixth moment of a standard Gaussian
    assert propagation.gradient_moment_bound(constant, 3, 4) == 1
    np.testing.assert_allclose(propagation.gradient_moment_bound(0.5, 3, 4), 0.5**13)
    assert propagation.gradient_moment_bound(0.5, 1, 1) == 1
    for depth in (1, 2, 3, 6):
        assert propagation.gradient_moment_bound(0.5, 1, depth) <= depth * 2.0 ** (1 - depth)
    with pytest.raises(ValueError, match="power must be at least 1"):
        propagation.gradient_moment_bound(0.5, 0.5, 3)


def test_matrix_variances() -> None:
    """The sum of ZHU Lemma A.11.9, with gradients of every neuron; control: layers exchanged."""
    network = deep.drop_edges(deep.densenet([4, 7, 6, 2]), 0.6, rng=3)
    rng = np.random.default_rng(0)
    weights, x = network.initial(rng=rng), rng.standard_normal(4)
    found = propagation.matrix_variances(network, weights, x, output=1)
    mask = np.asarray(network.layers[-1].connection.mask)[1]
    head = network.head(2)
    inner = weights[: head.parameters]
    ends = [network.layers[0].connection.parameters]
    sums, gradients = head.values(inner, x[None])[0], []
    for i in np.flatnonzero(mask[-6:]):
        slope = deep.gradients(head, inner, x[None], output=int(i))[0]
        gradients.append((2 * np.tanh(sums[i]) * (1 - np.tanh(sums[i]) ** 2), slope))
    for a in range(2):
        for b in range(2):
            total = 0.0
            for bend, slope in gradients:
                first, second = (np.split(slope, ends)[part] for part in (a, b))
                total = total + bend**2 * (first @ first) * np.outer(second, second)
            expected = np.linalg.norm(total, 2) / mask.sum()
            np.testing.assert_allclose(found.norms[a, b], expected, rtol=1e-10)
    lengths = [[part @ part for part in np.split(slope, ends)] for _, slope in gradients]
    np.testing.assert_allclose(found.squares, np.transpose(lengths), rtol=1e-10)
    assert abs(found.norms[0, 0] / found.norms[0, 1] - 1) > 0.05
    with pytest.raises(ValueError, match="at least two layers"):
        propagation.matrix_variances(deep.fully_connected([2, 1]), np.zeros(2), np.zeros(2))


def test_incoming_norms_are_blocks() -> None:
    """Both norms of ZHU Lemma A.2.1: the last column of blocks, and gradients of the neurons."""
    network = deep.drop_edges(deep.densenet([4, 9, 8, 2]), 0.6, rng=1)
    rng = np.random.default_rng(0)
    weights, x = network.initial(rng=rng), rng.standard_normal(4)
    found = propagation.incoming_norms(network, weights, x, output=1)
    parts = blocks.hessian_blocks(network, weights, x, output=1)
    np.testing.assert_allclose(parts.norms[:2, 2] * found.count**0.5, found.spectral, rtol=1e-9)
    # Frobenius norms from difference quotients of the neurons.
    who = np.asarray(network.layers[-1].connection.mask)[1][4:]
    step, squares = 1e-5, []
    for number in range(network.parameters):
        move = step * np.eye(network.parameters)[number]
        ahead, behind = (network.neurons(weights + s * move, x[None])[:2] for s in (1, -1))
        change = (np.concatenate(ahead, axis=1) - np.concatenate(behind, axis=1)) / (2 * step)
        squares.append(np.sum(change[0, who] ** 2))
    parts = network.split(np.array(squares))
    np.testing.assert_allclose(found.frobenius**2, [p.sum() for p in parts[:2]], rtol=1e-7)


def test_dependence_by_walking_the_graph() -> None:
    """ZHU Proposition A.9.1 counts the ancestors of every vertex, and their in-degrees."""
    for network in (
        deep.drop_edges(deep.densenet([4, 9, 8, 3]), 0.2, rng=3),
        deep.drop_edges(deep.fully_connected([3, 20, 20, 20, 2]), 0.1, rng=4),
    ):
        graph = network.graph()
        expected = np.zeros(network.depth, dtype=int)
        for vertex in graph:
            counts = np.zeros(network.depth, dtype=int)
            for one in (*nx.ancestors(graph, vertex), vertex):
                if one[0]:
                    counts[one[0] - 1] += graph.in_degree(one)
            expected = np.maximum(expected, counts)
        np.testing.assert_array_equal(propagation.dependence(network), expected)
    # A skip connection makes dependent, but carries no weight.
    np.testing.assert_array_equal(propagation.dependence(deep.residual([2, 3, 3, 1])), [6, 9, 3])


def test_only_matrices() -> None:
    """Shared weights are refused, and networks the mean is not known of."""
    shared = deep.convolutional([1, 2], positions=3)
    with pytest.raises(ValueError, match="layers of matrices"):
        propagation.dependence(shared)
    smooth = deep.fully_connected([2, 3, 1])
    with pytest.raises(ValueError, match="hidden neurons of ReLU"):
        propagation.relu_gradient_moment(smooth, [1.0, 1.0])
