"""Random directed acyclic graphs, on which several rooms of deep networks are tested."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np


def random_graph(sizes: Sequence[int], in_degrees: Sequence[int], *, seed: int) -> nx.DiGraph:
    """Draw a graph in which each neuron reads some neurons of any of the earlier layers.

    `sizes` counts inputs, hidden neurons by layer, and outputs; `in_degrees` has an entry for each
    layer but the inputs. Vertices are pairs (layer, neuron). One edge comes from the layer before,
    so that the layer is the intended one; the others are drawn without replacement. A hidden
    neuron that nobody reads is read by an output.
    """
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    earlier: list[tuple[int, int]] = []
    before: list[tuple[int, int]] = []
    for depth, (size, degree) in enumerate(zip(sizes, [0, *in_degrees], strict=True)):
        vertices = [(depth, i) for i in range(size)]
        graph.add_nodes_from(vertices)
        for v in vertices if depth else []:
            first = before[rng.integers(len(before))]
            others = [u for u in earlier if u != first]
            chosen = rng.choice(len(others), degree - 1, replace=False)
            graph.add_edges_from((u, v) for u in [first, *(others[i] for i in chosen)])
        earlier, before = earlier + vertices, vertices
    for v in earlier[: -len(before)]:
        if graph.out_degree(v) == 0:
            graph.add_edge(v, before[rng.integers(len(before))])
    return graph
