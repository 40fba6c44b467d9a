"""Graphs from text: edges, verdicts, places and refusals."""
# ruff: noqa: E402

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
nx = pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.beyond.sketch import positions, sketch
from traindyn import deep


def test_a_chain_is_the_fully_connected_network() -> None:
    """Same graph up to names, and the same values for the same weights."""
    drawn = sketch("x*3 -> a*m -> b*2m -> y*2  # as usual")
    built = deep.fully_connected([3, 4, 8, 2])
    graph = drawn.graph(4)
    assert nx.is_isomorphic(graph, built.graph())
    network = drawn.network(4)
    weights = network.initial(rng=0)
    x = np.array([[0.3, -1.0, 2.0], [1.0, 0.5, 0.0]])
    np.testing.assert_allclose(network.values(weights, x), built.values(weights, x), atol=1e-14)


def test_arrows() -> None:
    """All pairs, one by one around, and skips, edge by edge."""
    drawn = sketch("x*2 z*1 -> a*m -> b*m -> y*1\na => u*5 -> y\na ~> c*m\nb -> c -> y")
    graph = drawn.graph(3)
    assert set(graph.predecessors(("a", 1))) == {("x", 0), ("x", 1), ("z", 0)}
    assert [list(graph.predecessors(("u", i))) for i in range(5)] == [
        [("a", i % 3)] for i in range(5)
    ]
    skips = {edge for edge in graph.edges if graph.edges[edge].get("skip")}
    assert skips == {(("a", i), ("c", i)) for i in range(3)}
    assert graph.in_degree(("y", 0)) == 3 + 5 + 3
    sizes = sketch("x*2 -> a*m^2 -> b*3m -> c*m/2 -> d*5m^2/4:erf -> y*1").graph(6)
    counts = {name: sum(v[0] == name for v in sizes) for name in "xabcdy"}
    assert counts == {"x": 2, "a": 36, "b": 18, "c": 3, "d": 45, "y": 1}
    assert sizes.nodes[("d", 0)]["activation"] == "erf"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("x*3 -> a*m -> b*m -> y*1", "wide"),
        ("x*3 -> a*m^2 -> b*m -> y*1", "wide"),
        ("x*3 -> a*m -> b*m -> c*m -> y*1\na => u*2 -> c", "few bottlenecks"),
        ("x*3 -> a*m -> b*m -> y*1\na => u*m -> y", "spread"),
        ("x*3 -> a*m -> b*2 -> c*m -> y*1", "broken"),
        ("x*3 -> a*m -> b*2 -> c*m -> y*1\na -> c", "wide"),
        ("x*3 -> a*m -> b*1 -> c*m -> y*1\nx -> d*m -> y", "broken"),
        ("x*3 -> a*m -> y*1:identity", "wide"),
        ("x*3 -> a*m -> y*1:softplus", "broken"),
    ],
)
def test_verdicts(text: str, verdict: str) -> None:
    """Of wide and narrow layers, detours, and outputs with an activation."""
    found = sketch(text).linearity((8, 16, 32))
    assert found.verdict == verdict
    assert found.linearises is (verdict != "broken")


def test_a_bent_output_is_measured_as_broken() -> None:
    """The Hessian keeps its size; without the activation it does not."""
    norms = {}
    for name, text in (("bent", "x*3 -> a*m -> y*1:swish"), ("plain", "x*3 -> a*m -> y*1")):
        for m in (16, 256):
            network, rng = sketch(text).network(m), np.random.default_rng(0)
            draws = [
                deep.hessian_norms(network, network.initial(rng=rng), np.ones(3)).norms[0]
                for _ in range(30)
            ]
            norms[name, m] = np.mean(draws)
    assert norms["bent", 256] > 0.7 * norms["bent", 16]
    assert norms["plain", 256] < 0.4 * norms["plain", 16]


def test_positions() -> None:
    """A vertex stands to the right of all it reads, and no two at one place."""
    graph = sketch("x*3 -> a*m -> b*2 -> y*1\nx -> b\na -> y").graph(4)
    places = positions(graph)
    assert all(places[u][0] < places[v][0] for u, v in graph.edges)
    assert len(set(places.values())) == graph.number_of_nodes()
    assert all(0 < height < 1 for _, height in places.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text must have a line with an arrow"),
        ("x*2 -> a*m -> y", "line 1: group y must have a size"),
        ("x*2 -> a*0 -> y*1", "line 1: size of a must be positive"),
        ("x*2 -> a*m^0 -> y*1", "line 1: size of a must be positive"),
        ("x*2 -> a*k -> y*1", "line 1: size of a must be like"),
        ("x*2 -> a*m*2 -> y*1", "line 1: size of a must be like"),
        ("x*2 -> a*m:cosh -> y*1", "line 1: activation of a must be one of"),
        ("x*2 ->", "line 1: -> must have a group on both sides"),
        ("-> y*1", "line 1: -> must have a group on both sides"),
        ("x*2 -> a*m, b*m -> y*1", "line 1: size of a must be like"),
        ("x*2 -> 3a -> y*1", "line 1: must be groups"),
        ("x*2 -> a*m -> y*1\nb*3 -> a*m", "line 2: group a must be declared once"),
        ("x*2 -> y*1\nx => y", "line 2: y must read x once"),
        ("x*2 -> a*m -> b*2 -> y*1\na ~> b", "line 2: a ~> b must have equal sizes"),
        ("x*2 -> a*m -> b*m -> a", "groups must not form a cycle, got a -> b -> a"),
        ("x*2 -> a*m -> a", "groups must not form a cycle, got a -> a"),
        ("x*2 -> a*m -> y*1\nw*3", "group w must be connected"),
        ("x*m -> a*m -> y*1", "group x must not grow with m, got m for an input"),
        ("x*2 -> a*m -> y*m", "group y must not grow with m, got m for an output"),
        ("x*2:relu -> a*m -> y*1", "group x must have no activation"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    """Each message names the line or the group."""
    with pytest.raises(ValueError, match=message.replace("^", r"\^").replace("*", r"\*")):
        sketch(text)


def test_late_refusals() -> None:
    """What only a width can tell."""
    with pytest.raises(ValueError, match=r"group a must have a neuron, got m/9 = 0 at m = 4"):
        sketch("x*2 -> a*m/9 -> y*1").graph(4)
    with pytest.raises(ValueError, match="m must be an integer >= 1"):
        sketch("x*2 -> a*m -> y*1").graph(0)
