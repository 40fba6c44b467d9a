"""Networks against NumPy, neuron by neuron; builders against graphs; bad input."""
# ruff: noqa: E402

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
nx = pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from random_graphs import random_graph

from companion.lazy_training.beyond.graphs import edge_weights, from_graph
from traindyn import deep

SIZES = [4, 6, 5, 2]


def dropped() -> deep.Network:
    """A network without some of its edges."""
    return deep.drop_edges(deep.densenet(SIZES), 0.7, rng=1)


def narrowed() -> deep.Network:
    """A network with bottleneck neurons."""
    return deep.with_bottlenecks(deep.fully_connected(SIZES), 2, 3, rng=2)


MATRICES: dict[str, Callable[[], deep.Network]] = {
    "fully connected": lambda: deep.fully_connected(SIZES),
    "densenet": lambda: deep.densenet(SIZES),
    "densenet without inputs": lambda: deep.densenet(SIZES, read_inputs=False),
    "dropped": dropped,
    "bottlenecks": narrowed,
    "residual": lambda: deep.residual([4, 6, 6, 6, 2]),
    "residual from the inputs": lambda: deep.residual([6, 6, 6, 2]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_builders_are_their_graphs(name: str, reference: SimpleNamespace) -> None:
    """Wrong sources, transposed weights or in-degrees before dropping would differ."""
    network = MATRICES[name]()
    if name.startswith("residual"):
        # A skip runs along a trained edge here, which a graph cannot say twice.
        with pytest.raises(ValueError, match="runs along a trained edge"):
            network.graph()
        return
    graph = network.graph()
    numbers = edge_weights(graph)
    weights = network.initial(rng=3)
    points = np.random.default_rng(4).standard_normal((3, network.inputs))
    expected = np.array([reference.outputs(graph, numbers, weights, x) for x in points])
    np.testing.assert_allclose(network.values(weights, points), expected, rtol=1e-12)
    again = from_graph(graph)
    np.testing.assert_allclose(again.values(weights, points), expected, rtol=1e-12)
    assert again.width == network.width
    # Control: the mean instead of the NTK scaling.
    wrong = np.array([reference.outputs(graph, numbers, weights, x, power=1.0) for x in points])
    assert np.abs(wrong - expected).max() > 0.05


def test_residual_by_hand() -> None:
    """The output layer adds nothing, the first one only at equal sizes."""
    network = deep.residual([4, 6, 6, 6, 2])
    weights = network.initial(rng=0)
    first, second, third, last = (w for w in network.unpack(weights))
    x = np.random.default_rng(1).standard_normal(4)
    h = np.tanh(first @ x / 2)
    for w in (second, third):
        h = np.tanh(w @ h / np.sqrt(6)) + h
    np.testing.assert_allclose(
        network.values(weights, x[None])[0], last @ h / np.sqrt(6), rtol=1e-12
    )
    square = deep.residual([6, 6, 1])
    weights = square.initial(rng=0)
    first, last = square.unpack(weights)
    x = np.arange(6.0)
    h = np.tanh(first @ x / np.sqrt(6)) + x
    np.testing.assert_allclose(square.values(weights, x[None])[0], last @ h / np.sqrt(6))


def test_convolution_by_hand() -> None:
    """Loops over channels, positions and taps; a flipped kernel or no padding would differ."""
    c, m, s, p = 2, 3, 5, 3
    network = deep.convolutional([c, m, m], positions=s, kernel=p, outputs=2)
    weights = network.initial(rng=0)
    arrays = network.unpack(weights)
    x = np.random.default_rng(1).standard_normal(c * s)
    values, channels = x.reshape(c, s), c
    for array in arrays[:2]:
        kernel = array.reshape(m, channels, p)
        found = np.zeros((m, s))
        for i in range(m):
            for q in range(s):
                for j in range(channels):
                    for t in range(p):
                        if 0 <= q + t - 1 < s:
                            found[i, q] += kernel[i, j, t] * values[j, q + t - 1]
        values, channels = np.tanh(found / np.sqrt(channels * p)), m
    expected = arrays[2] @ values.reshape(-1) / np.sqrt(m * s)
    np.testing.assert_allclose(network.values(weights, x[None])[0], expected, rtol=1e-12)
    assert network.parameters == m * c * p + m * m * p + 2 * m * s
    assert network.width == m * p


def test_any_graph() -> None:
    """Outputs in two layers, skips, shared weights and activations of their own at once."""
    graph = nx.DiGraph()
    graph.add_nodes_from(["x", "y"])
    graph.add_edges_from([("x", "a"), ("y", "a"), ("y", "b"), ("a", "c"), ("b", "c"), ("x", "c")])
    graph.add_edges_from([("c", "f"), ("a", "f"), ("x", "g"), ("b", "g"), ("y", "d"), ("d", "f")])
    graph.add_edge("b", "f", skip=True)
    graph.nodes["c"]["activation"] = "softplus"
    graph.edges["y", "b"]["shared"] = graph.edges["x", "a"]["shared"] = "s"
    network = from_graph(graph)
    numbers = edge_weights(graph)
    assert numbers["y", "b"] == numbers["x", "a"]
    assert network.parameters == 11  # of twelve trained edges, two share a weight
    weights = network.initial(rng=0)
    w = {edge: weights[number] for edge, number in numbers.items()}
    x, y = 0.7, -1.2
    a = np.tanh((w["x", "a"] * x + w["y", "a"] * y) / 2**0.5)
    b, d = np.tanh(w["y", "b"] * y), np.tanh(w["y", "d"] * y)
    c = np.log1p(np.exp((w["a", "c"] * a + w["b", "c"] * b + w["x", "c"] * x) / 3**0.5))
    f = (w["c", "f"] * c + w["a", "f"] * a + w["d", "f"] * d) / 3**0.5 + b
    g = (w["x", "g"] * x + w["b", "g"] * b) / 2**0.5
    assert list(v for v in graph if graph.out_degree(v) == 0) == ["f", "g"]
    np.testing.assert_allclose(network.values(weights, [[x, y]])[0], [f, g], rtol=1e-12)


def test_random_graph_against_topological_order(reference: SimpleNamespace) -> None:
    """In-degrees as asked for, values as in NumPy."""
    graph = random_graph([5, 8, 8, 8, 3], [3, 5, 6, 7], seed=0)
    network = from_graph(graph)
    numbers, weights = edge_weights(graph), network.initial(rng=1)
    points = np.random.default_rng(2).standard_normal((4, 5))
    expected = np.array([reference.outputs(graph, numbers, weights, x) for x in points])
    np.testing.assert_allclose(network.values(weights, points), expected, rtol=1e-12)
    for layer, degree in zip(network.in_degrees[:-1], [3, 5, 6]):
        assert set(layer) == {degree}


def test_heads_are_sums_before_the_activation() -> None:
    """ZHU Theorem 2.3.8 speaks of these."""
    network = deep.fully_connected(SIZES)
    weights = network.initial(rng=0)
    points = np.random.default_rng(1).standard_normal((3, 4))
    head = network.head(2)
    sums = head.values(weights[: head.parameters], points)
    np.testing.assert_allclose(np.tanh(sums), network.neurons(weights, points)[1], rtol=1e-12)


def test_second_moment_of_the_output() -> None:
    """Without biases and the factor 2, ReLU halves the second moment at each hidden layer."""
    network = deep.fully_connected([3, 40, 40, 1], activation="relu")
    x = np.ones((1, 3))
    rng = np.random.default_rng(0)
    squares = [network.values(network.initial(rng=rng), x)[0, 0] ** 2 for _ in range(4000)]
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - 0.25) < 5 * error
    assert abs(np.mean(squares) - 1.0) > 20 * error  # with a factor of 2


def test_dropping() -> None:
    """The probability is that of keeping, and no neuron is left without an edge."""
    network = deep.drop_edges(deep.fully_connected([10, 300, 300, 1]), 0.3, rng=0)
    kept = network.in_degrees[1]
    # Binomial(300, 0.3) over 300 neurons: five standard errors of the mean.
    assert abs(kept.mean() - 90) < 5 * np.sqrt(300 * 0.3 * 0.7 / 300)
    assert abs(kept.mean() - 210) > 100  # the probability is that of keeping, not of dropping
    thin = deep.drop_edges(deep.fully_connected([2, 50, 1]), 0.01, rng=0)
    assert thin.in_degrees[0].min() == 1


def test_bottleneck_neurons() -> None:
    """As many as asked for, with parents of their own or one for all."""
    wide = deep.fully_connected([5, 12, 12, 1])
    network = deep.with_bottlenecks(wide, 2, 4, rng=0)
    assert sorted(network.in_degrees[1])[:5] == [1, 1, 1, 1, 12]
    mask = np.asarray(network.layers[1].connection.mask)
    assert len(set(np.argmax(mask[mask.sum(1) == 1], axis=1))) == 4
    shared = deep.with_bottlenecks(wide, 2, 4, shared=True, rng=0)
    mask = np.asarray(shared.layers[1].connection.mask)
    assert len(set(np.argmax(mask[mask.sum(1) == 1], axis=1))) == 1


def bad_sharing() -> nx.DiGraph:
    """One weight in two layers."""
    graph = nx.DiGraph([("x", "a"), ("a", "f")])
    for edge in graph.edges:
        graph.edges[edge]["shared"] = 0
    return graph


def skips_only() -> nx.DiGraph:
    """A neuron without a weight."""
    graph = nx.DiGraph([("x", "a"), ("a", "f")])
    graph.edges["x", "a"]["skip"] = True
    return graph


def lone_vertex() -> nx.DiGraph:
    """An output that no input reaches."""
    graph = nx.DiGraph([("x", "a"), ("a", "f")])
    graph.add_node("g")
    return graph


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_graph(nx.DiGraph([(0, 1), (1, 2), (2, 1)])), "the cycle 1 -> 2 -> 1"),
        (lambda: from_graph(lone_vertex()), "outputs must be connected.*lone vertex g"),
        (lambda: from_graph(nx.Graph([(0, 1)])), "must be a networkx.DiGraph, got Graph"),
        (lambda: from_graph(nx.MultiDiGraph([(0, 1)])), "got MultiDiGraph"),
        (lambda: from_graph(nx.DiGraph()), "must have edges"),
        (lambda: from_graph(bad_sharing()), "shared within one layer.*layers 1 and 2"),
        (lambda: from_graph(skips_only()), "vertex a must have an edge with a weight"),
        (lambda: deep.fully_connected([3, 0, 1]), r"sizes\[1\] must be an integer >= 1, got 0"),
        (lambda: deep.fully_connected([3]), "at least two entries"),
        (lambda: deep.residual([3, 4, 5, 1]), "hidden layers of one width"),
        (lambda: deep.convolutional([2, 3], positions=4, kernel=2), "kernel must be odd"),
        (lambda: deep.convolutional([2, 0], positions=4), r"channels\[1\]"),
        (lambda: deep.drop_edges(dropped(), 1.5, rng=0), r"keep must be in \(0, 1\]"),
        (lambda: deep.drop_edges(deep.convolutional([1, 2], positions=3), 0.5, rng=0), "matrices"),
        (lambda: deep.convolutional([1, 2], positions=3).graph(), "network of matrices"),
        (lambda: deep.with_bottlenecks(deep.fully_connected(SIZES), 1, 1, rng=0), "depth must be"),
        (lambda: deep.with_bottlenecks(deep.fully_connected(SIZES), 2, 6, rng=0), "count must be"),
        (lambda: deep.fully_connected(SIZES).head(4), "depth must be"),
        (lambda: deep.fully_connected([3, 1]).width, "width"),
        (lambda: deep.fully_connected(SIZES, activation="tan"), "activation must be one of"),
        (lambda: deep.fully_connected(SIZES, activation=jax.numpy.sign), "zero everywhere"),
        (lambda: deep.fully_connected(SIZES, activation=np.sin), "JAX cannot differentiate"),
        (lambda: deep.fully_connected(SIZES, activation=np.heaviside), "cannot differentiate"),
        (lambda: deep.fully_connected(SIZES, activation=jax.nn.softmax), "entry by entry|JAX"),
        (lambda: deep.fully_connected(SIZES, activation=jax.lax.stop_gradient), "of its values"),
        (lambda: deep.fully_connected(SIZES, activation=jax.numpy.sqrt), "not finite"),
        (lambda: deep.fully_connected(SIZES, activation=3), "name or callable"),  # type: ignore
    ],
)
def test_bad_networks(make: Callable[[], object], message: str) -> None:
    """Each error names what is wrong."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("weights", "points", "message"),
    [
        (np.zeros(10), np.ones((1, 4)), "weights must have shape (64)"),
        (np.full(64, np.nan), np.ones((1, 4)), "weights must be finite"),
        (np.zeros(64), np.ones((1, 3)), "points must have shape"),
        (np.zeros(64), np.ones(4), "points must have shape"),
    ],
)
def test_bad_arguments(weights: np.ndarray, points: np.ndarray, message: str) -> None:
    """Each error names what is wrong."""
    network = deep.fully_connected(SIZES)
    with pytest.raises(ValueError, match=re.escape(message)):
        network.values(weights, points)
