"""Layers, influences and the classification of graphs, against brute force and the Hessian."""
# ruff: noqa: E402

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
nx = pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from random_graphs import random_graph

from companion.lazy_training.beyond.graphs import (
    edge_weights,
    from_graph,
    influences,
    inspect,
    linearity,
    vertex_layers,
)
from traindyn import deep


def test_layers_are_longest_paths() -> None:
    """By enumeration of all paths."""
    graph = random_graph([3, 4, 4, 2], [2, 3, 4], seed=0)
    layers = vertex_layers(graph)
    for depth, vertices in enumerate(layers):
        for v in vertices:
            ends = [u for u in graph if graph.in_degree(u) == 0]
            longest = max(
                len(path) - 1 for u in ends for path in nx.all_simple_paths(graph, u, v)
            ) if depth else 0  # fmt: skip
            assert longest == depth
            assert v[0] == depth  # as it was asked for


def test_influence_is_a_probability_of_visits() -> None:
    """Against a simulation of the walk; and inputs share all of it."""
    graph = random_graph([4, 5, 5, 5, 1], [2, 3, 4, 5], seed=1)
    influence = influences(graph, (4, 0))
    assert abs(sum(influence[v] for v in graph if graph.in_degree(v) == 0) - 1) < 1e-12
    rng = np.random.default_rng(0)
    walks, visits = 4000, dict.fromkeys(graph, 0)
    for _ in range(walks):
        v = (4, 0)
        while True:
            visits[v] += 1
            parents = list(graph.predecessors(v))
            if not parents:
                break
            v = parents[rng.integers(len(parents))]
    for v, p in influence.items():
        assert abs(visits[v] / walks - p) <= 5 * np.sqrt(p * (1 - p) / walks) + 1e-12


@pytest.mark.nightly
def test_influence_is_the_size_of_a_block_of_the_hessian() -> None:
    """The formula at the top of the module, over random weights of a linear network."""
    graph = random_graph([3, 4, 4, 4, 1], [2, 3, 4, 5], seed=2)
    network = from_graph(graph, activation="identity")
    numbers = edge_weights(graph)
    output, neuron = (4, 0), (2, 1)
    rows = [numbers[edge] for edge in graph.in_edges(output)]
    columns = [numbers[edge] for edge in graph.in_edges(neuron)]
    rng, x = np.random.default_rng(0), np.array([1.0, -1.0, 1.0])
    units = np.eye(network.parameters)[:, columns]
    draws, inputs = [], []
    order = [v for layer in vertex_layers(graph) for v in layer]
    parents = [order.index(u) for u in graph.predecessors(neuron)]
    for _ in range(3000):
        weights = network.initial(rng=rng)
        block = deep.hessian_product(network, weights, x, units)[rows]
        values = np.concatenate([x, *(v[0] for v in network.neurons(weights, x[None]))])
        draws.append(np.sum(block**2))
        inputs.append(np.mean(values[parents] ** 2))
    expected = influences(graph, output)[neuron] * np.mean(inputs)
    gap = np.array(draws) - influences(graph, output)[neuron] * np.array(inputs)
    error = gap.std() / np.sqrt(gap.size)
    assert abs(gap.mean()) < 5 * error
    assert expected > 20 * error  # an influence wrong by a quarter would be seen
    assert 0.02 < influences(graph, output)[neuron] < 0.9


def test_width_of_known_architectures() -> None:
    """ZHU (2.8), and the neuron on which all depends."""
    plain = inspect(deep.fully_connected([3, 12, 8, 20, 1]).graph())
    assert (plain.width, plain.largest_in_degree, plain.depth) == (8, 20, 4)
    assert abs(plain.effective_width - 8) < 1e-12
    assert plain.critical[0] == 2  # type: ignore[index]
    dense = deep.densenet([3, 12, 12, 1])
    assert inspect(dense.graph()).width == dense.width == 15
    narrow = inspect(deep.fully_connected([3, 16, 1, 16, 1]).graph(), limit=2)
    assert narrow.effective_width == 1
    assert narrow.bottleneck_share == 1
    assert narrow.critical == (2, 0)
    assert len(narrow.bottlenecks) == 16  # the layer that reads the single neuron


def plain(m: int) -> nx.DiGraph:
    """A fully connected graph of three hidden layers."""
    return deep.fully_connected([4, m, m, m, 1]).graph()


def two_bottlenecks(m: int) -> nx.DiGraph:
    """The same with two neurons of in-degree 1 (ZHU Figure 2.3)."""
    return deep.with_bottlenecks(deep.fully_connected([4, m, m, m, 1]), 3, 2, rng=m).graph()


def half(m: int, shared: bool) -> nx.DiGraph:
    """The same with half of the last hidden layer of in-degree 1."""
    network = deep.fully_connected([4, m, m, m, 1])
    return deep.with_bottlenecks(network, 3, m // 2, shared=shared, rng=m).graph()


def test_verdicts() -> None:
    """The cases of ZHU Section 2.3 and Appendix A.6, and one on either side of its condition."""
    sizes = (8, 16, 32)
    wide = linearity(plain, sizes)
    assert (wide.verdict, wide.linearises) == ("wide", True)
    assert abs(wide.width_exponent - 1) < 1e-12
    assert abs(wide.effective_exponent - 1) < 1e-12
    few = linearity(two_bottlenecks, sizes)
    assert few.verdict == "few bottlenecks"
    assert abs(few.width_exponent) < 1e-12
    # Half of a layer have one parent each: different ones do no harm, one for all does.
    assert linearity(lambda m: half(m, False), sizes).verdict == "spread"
    broken = linearity(lambda m: half(m, True), sizes)
    assert (broken.verdict, broken.linearises) == ("broken", False)
    narrow = linearity(lambda m: deep.fully_connected([4, m, 2, m, 1]).graph(), sizes)
    assert narrow.verdict == "broken"
    last = linearity(lambda m: deep.fully_connected([4, m, m, 2, 1]).graph(), sizes)
    assert last.verdict == "broken"


def test_bad_arguments() -> None:
    """Each error names what is wrong."""
    with pytest.raises(ValueError, match="at least three graphs"):
        linearity([plain(4), plain(8)])
    with pytest.raises(ValueError, match="growing numbers of hidden neurons"):
        linearity([plain(4)] * 3)
    with pytest.raises(ValueError, match="layer after the first"):
        inspect(deep.fully_connected([3, 2]).graph())
    with pytest.raises(ValueError, match="output must be a vertex"):
        influences(plain(4), "nobody")
    with pytest.raises(ValueError, match="limit must be positive"):
        inspect(plain(4), limit=0)
    with pytest.raises(ValueError, match="must be acyclic"):
        inspect(nx.DiGraph([(0, 1), (1, 0)]))
