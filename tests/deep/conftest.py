"""Networks in plain NumPy, neuron by neuron: what the room is compared with."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    import networkx as nx


def forward(
    graph: nx.DiGraph,
    numbers: dict[Any, int],
    weights: np.ndarray,
    point: np.ndarray,
    *,
    activation: Callable[[Any], Any] = np.tanh,
    power: float = 0.5,
) -> dict[Any, float]:
    """Values of all vertices by topological order; sums are divided by in-degree ** power."""
    entries = iter(point)
    values: dict[Any, float] = {}
    for v in graph:  # the order of the inputs is that of the graph
        if graph.in_degree(v) == 0:
            values[v] = float(next(entries))
    waiting = [v for v in graph if v not in values]
    while waiting:
        v = next(v for v in waiting if all(u in values for u in graph.predecessors(v)))
        waiting.remove(v)
        total, added, degree = 0.0, 0.0, 0
        for u in graph.predecessors(v):
            if graph.edges[u, v].get("skip"):
                added += values[u]
            else:
                total += weights[numbers[u, v]] * values[u]
                degree += 1
        total /= degree**power
        values[v] = (total if graph.out_degree(v) == 0 else float(activation(total))) + added
    return values


def outputs(graph: nx.DiGraph, *rest: Any, **options: Any) -> np.ndarray:
    """Values of the outputs, in the order of the graph."""
    values = forward(graph, *rest, **options)
    return np.array([values[v] for v in graph if graph.out_degree(v) == 0])


def differences(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Gradient by central differences, good to about 1e-9."""
    step = 1e-5
    return np.array(
        [(function(at + step * e) - function(at - step * e)) / (2 * step) for e in np.eye(at.size)]
    )


def second_differences(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Hessian by second differences, good to about 1e-6."""
    step = 2e-4
    moves = step * np.eye(at.size)
    hessian = np.empty((at.size, at.size))
    for i, a in enumerate(moves):
        for j, b in enumerate(moves[: i + 1]):
            hessian[i, j] = hessian[j, i] = (
                function(at + a + b) - function(at + a - b)
                - function(at - a + b) + function(at - a - b)
            ) / (4 * step**2)  # fmt: skip
    return hessian


@pytest.fixture(scope="session")
def reference() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(
        forward=forward,
        outputs=outputs,
        differences=differences,
        second_differences=second_differences,
    )
