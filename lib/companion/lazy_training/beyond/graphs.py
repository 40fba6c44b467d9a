r"""Networks on an arbitrary directed acyclic graph, and what the graph says of their linearity.

Vertices without incoming edges are the inputs, those without outgoing ones the outputs; the layer
of a vertex is the length of the longest path that leads to it (ZHU Section 2.2). Attributes of
the graph say the rest:

* vertex, ``activation``: a name or a function of JAX, instead of the one given for all;
* edge, ``shared``: edges into one layer with the same value carry one weight (ZHU (A.14));
* edge, ``skip=True``: the value is added after the activation, without weight (ZHU (A.12)).

**Transition to linearity.** With the width m the smallest in-degree after the first layer, the
Hessian of an output is :math:`\tilde O(1 / \sqrt m)` (ZHU Theorem 2.3.6), and neurons of small
in-degree do no harm where they are a vanishing part of the parents of every other neuron (ZHU
Appendix A.6). Both are sufficient, neither is necessary. We add a quantity that decides in the
cases between: walk backwards from an output, at each vertex to a parent chosen uniformly. The
*influence* of a neuron is the probability that the walk visits it. With linear activations it is
the mean square, over the weights, of the derivative of the output in the neuron's sum, and the
block of the Hessian between the weights into the neuron u and those into the output k obeys

.. math::

   E |\nabla_{w_u} \nabla_{w_k} f_k|_F^2 = influence_k(u) \, E \frac{|f_{S(u)}|^2}{in(u)} .

So a neuron whose influence stays away from zero keeps the Hessian away from zero. The reciprocal of
the largest influence is the *effective width*: in a fully connected network, that of its
narrowest hidden layer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from numpy.typing import NDArray

from traindyn import _validate
from traindyn.activations import Elementwise
from traindyn.deep.activations import identity, resolve
from traindyn.deep.connections import Connection, Metric
from traindyn.deep.network import Layer, Network
from traindyn.deep.network import layer as make_layer

__all__ = [
    "Edges",
    "GraphReport",
    "Linearity",
    "edge_weights",
    "from_graph",
    "influences",
    "inspect",
    "linearity",
    "vertex_layers",
]


@dataclass(frozen=True)
class GraphReport:
    """What decides about the linearity of a network on a graph.

    Attributes
    ----------
    depth : int
        Number L of layers of weights.
    width : int
        Smallest in-degree after the first layer (ZHU (2.8)).
    largest_in_degree : int
        After the first layer (ZHU Assumption 2.3.5).
    bottlenecks : tuple
        Vertices after the first layer with an in-degree below the limit.
    bottleneck_share : float
        Largest part that bottlenecks are of the parents of another neuron (ZHU Appendix A.6); one
        if an output is a bottleneck itself.
    effective_width : float
        One over the largest influence of a hidden neuron on an output.
    critical : Hashable
        The neuron of that influence.
    """

    depth: int
    width: int
    largest_in_degree: int
    bottlenecks: tuple[Hashable, ...]
    bottleneck_share: float
    effective_width: float
    critical: Hashable


@dataclass(frozen=True)
class Linearity:
    """Verdict on a family of growing graphs.

    Attributes
    ----------
    verdict : str
        ``"wide"``: the width grows, the transition is that of ZHU Theorem 2.3.6;
        ``"few bottlenecks"``: it does not, but the bottlenecks' share vanishes (ZHU Appendix A.6);
        ``"spread"``: neither, but no neuron keeps its influence (no theorem);
        ``"broken"``: a neuron keeps its influence.
    reports : tuple of GraphReport
        One per graph.
    width_exponent, share_exponent, effective_exponent : float
        Slopes of the logarithms of width, bottleneck share (minus infinity without
        bottlenecks) and effective width against that of the number of hidden neurons, by least
        squares.
    """

    verdict: str
    reports: tuple[GraphReport, ...]
    width_exponent: float
    share_exponent: float
    effective_exponent: float

    @property
    def linearises(self) -> bool:
        """Whether the network becomes linear in its weights as the graph grows."""
        return self.verdict != "broken"


def vertex_layers(graph: nx.DiGraph) -> list[list[Hashable]]:
    """Vertices by the length of the longest path to them.

    Parameters
    ----------
    graph : networkx.DiGraph
        Acyclic, each vertex with an edge.

    Returns
    -------
    list of list
        Inputs first; in each layer in the order of the graph.

    Raises
    ------
    ValueError
        If it is no directed graph, is a multigraph, has no edge, a cycle (which is named), or a
        vertex without any edge.
    """
    if not isinstance(graph, nx.DiGraph) or graph.is_multigraph():
        raise ValueError(f"graph must be a networkx.DiGraph, got {type(graph).__name__}")
    if graph.number_of_edges() == 0:
        raise ValueError("graph must have edges, got none")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [tail for tail, _ in nx.find_cycle(graph)]
        shown = " -> ".join(map(str, [*cycle, cycle[0]]))
        raise ValueError(f"graph must be acyclic, got the cycle {shown}")
    lonely = [v for v in graph if graph.degree(v) == 0]
    if lonely:
        raise ValueError(f"outputs must be connected to an input, got the lone vertex {lonely[0]}")
    order = {v: number for number, v in enumerate(graph)}
    return [sorted(layer, key=order.__getitem__) for layer in nx.topological_generations(graph)]


def from_graph(graph: nx.DiGraph, *, activation: str | Elementwise = "tanh") -> Network:
    """Network on a directed acyclic graph (ZHU Section 2.2).

    Inputs and outputs of the network are in the order in which the graph lists them. Outputs are
    linear unless their vertex says otherwise, and may lie in different layers. The order of the
    weights is that of :func:`edge_weights`.

    Parameters
    ----------
    graph : networkx.DiGraph
        Its attributes are described at the top of this module.
    activation : str or callable
        Of hidden vertices that have none of their own.

    Raises
    ------
    ValueError
        As :func:`vertex_layers`; if an activation has no derivative; if a vertex that is no
        input has skip edges only; if edges into different layers share a weight.

    Examples
    --------
    A neuron that reads an input and another neuron:

    >>> import networkx as nx
    >>> import numpy as np
    >>> from companion.lazy_training.beyond.graphs import from_graph
    >>> graph = nx.DiGraph([("x", "u"), ("x", "f"), ("u", "f")])
    >>> network = from_graph(graph)
    >>> value = network.values([0.3, 0.5, 0.7], [[2.0]])
    >>> bool(np.isclose(value[0, 0], (0.5 * 2 + 0.7 * np.tanh(0.3 * 2)) / 2**0.5))
    True
    """
    layers = vertex_layers(graph)
    default = resolve(activation)
    weights = edge_weights(graph)
    # Values stand one after the other, layer by layer.
    position = {v: i for i, v in enumerate(v for layer in layers for v in layer)}
    made = []
    fan, first = len(layers[0]), 0
    for depth, vertices in enumerate(layers[1:]):
        edges = [
            (head, position[u], weights[u, v])
            for head, v in enumerate(vertices)
            for u in _parents(graph, v, position)
        ]
        heads, tails, shared = np.array(edges).T
        count = int(shared.max()) + 1 - first
        connection = Edges(len(vertices), fan, count, heads, tails, shared - first)
        functions = [_activation(graph, v, default) for v in vertices]
        distinct = tuple(dict.fromkeys(functions))
        which = np.array([distinct.index(function) for function in functions])
        skips = [
            (head, position[u])
            for head, v in enumerate(vertices)
            for u in graph.predecessors(v)
            if graph.edges[u, v].get("skip")
        ]
        made.append(
            make_layer(
                connection,
                range(depth + 1),
                distinct,
                which=which if len(distinct) > 1 else None,
                skips=tuple(np.array(skips).T) if skips else None,
            )
        )
        fan, first = fan + len(vertices), first + count
    readout = np.array([position[v] for v in graph if graph.out_degree(v) == 0])
    return Network(len(layers[0]), tuple(_on_device(one) for one in made), jnp.asarray(readout))


def edge_weights(graph: nx.DiGraph) -> dict[tuple[Hashable, Hashable], int]:
    """Which entry of the vector of weights each edge carries.

    Weights are numbered layer by layer, vertex by vertex, and for each vertex by its parents in
    the order of the layers and of the graph; shared ones where they first occur. Skip edges carry
    none.

    Parameters
    ----------
    graph : networkx.DiGraph
        Of its attributes `shared` and `skip` are read.

    Returns
    -------
    dict of (tail, head) to int

    Raises
    ------
    ValueError
        As :func:`from_graph`.
    """
    layers = vertex_layers(graph)
    position = {v: i for i, v in enumerate(v for layer in layers for v in layer)}
    numbers: dict[tuple[Hashable, Hashable], int] = {}
    keys: dict[Hashable, tuple[int, int]] = {}
    count = 0
    for depth, vertices in enumerate(layers[1:], start=1):
        for v in vertices:
            parents = _parents(graph, v, position)
            if not parents:
                raise ValueError(f"vertex {v} must have an edge with a weight, got skip edges only")
            for u in parents:
                key = graph.edges[u, v].get("shared")
                if key is not None and key in keys:
                    number, home = keys[key]
                    if home != depth:
                        raise ValueError(
                            f"a weight must be shared within one layer, got {key!r} in layers "
                            f"{home} and {depth}"
                        )
                else:
                    number, count = count, count + 1
                    if key is not None:
                        keys[key] = number, depth
                numbers[u, v] = number
    return numbers


def influences(graph: nx.DiGraph, output: Hashable) -> dict[Hashable, float]:
    """Probability that a uniform backward walk from a vertex visits another.

    Skip edges, which carry no weight, are added instead of averaged: with them (at most one into
    a vertex) the numbers still are mean squares of derivatives, and may exceed one.

    Parameters
    ----------
    graph : networkx.DiGraph
        Of its attributes only `skip` is read.
    output : Hashable
        Where the walk starts.

    Returns
    -------
    dict of vertex to float
        One at the start; zero where the walk does not come.

    Examples
    --------
    >>> import networkx as nx
    >>> from companion.lazy_training.beyond.graphs import influences
    >>> graph = nx.DiGraph([("x", "u"), ("x", "f"), ("u", "f")])
    >>> influences(graph, "f")["u"]
    0.5
    """
    layers = vertex_layers(graph)
    if output not in graph:
        raise ValueError(f"output must be a vertex of the graph, got {output!r}")
    visits: dict[Hashable, float] = dict.fromkeys(graph, 0.0)
    visits[output] = 1.0
    for vertices in reversed(layers[1:]):
        for v in vertices:
            if visits[v]:
                trained = [u for u in graph.predecessors(v) if not graph.edges[u, v].get("skip")]
                for u in graph.predecessors(v):
                    skip = graph.edges[u, v].get("skip")
                    visits[u] += visits[v] / (1 if skip else len(trained))
    return visits


def inspect(graph: nx.DiGraph, *, limit: float | None = None) -> GraphReport:
    """Measure what decides about linearity.

    Parameters
    ----------
    graph : networkx.DiGraph
        With a layer after the first.
    limit : float, optional
        In-degrees below it make a bottleneck; the root of the largest in-degree after the first
        layer, unless given.

    Raises
    ------
    ValueError
        As :func:`vertex_layers`, and if there is no layer after the first.
    """
    layers = vertex_layers(graph)
    if len(layers) < 3:
        raise ValueError("graph must have a layer after the first, got none (it is linear)")
    degrees = {v: _in_degree(graph, v) for layer in layers[2:] for v in layer}
    if limit is None:
        limit = float(np.sqrt(max(degrees.values())))
    limit = _validate.positive("limit", limit)
    narrow = {v for v, degree in degrees.items() if degree < limit}
    outputs = [v for v in degrees if graph.out_degree(v) == 0]
    share = 0.0
    for v in degrees:
        if v not in narrow:
            parents = [u for u in graph.predecessors(v) if not graph.edges[u, v].get("skip")]
            share = max(share, sum(u in narrow for u in parents) / len(parents))
        elif v in outputs:
            share = 1.0
    largest, critical = 0.0, None
    hidden = [v for layer in layers[1:] for v in layer if graph.out_degree(v) > 0]
    for output in outputs:
        visits = influences(graph, output)
        best = max(hidden, key=visits.__getitem__)
        if visits[best] > largest:
            largest, critical = visits[best], best
    return GraphReport(
        depth=len(layers) - 1,
        width=min(degrees.values()),
        largest_in_degree=max(degrees.values()),
        bottlenecks=tuple(v for v in degrees if v in narrow),
        bottleneck_share=share,
        effective_width=1 / largest,
        critical=critical,
    )


def linearity(
    family: Sequence[nx.DiGraph] | Callable[[int], nx.DiGraph],
    sizes: Sequence[int] = (8, 16, 32, 64),
    *,
    least: float = 0.25,
) -> Linearity:
    """Decide whether networks on a family of growing graphs become linear.

    Linearity is a statement about a limit, which no single graph can decide: the verdict is
    drawn from exponents over the family.

    Parameters
    ----------
    family : sequence of networkx.DiGraph, or callable
        At least three graphs, growing; or a function that makes one from a size.
    sizes : sequence of int
        For a function.
    least : float
        An exponent above it counts as growth, below its negative as decay.

    Raises
    ------
    ValueError
        As :func:`inspect`, and if there are fewer than three graphs or they do not grow.
    """
    least = _validate.positive("least", least)
    if callable(family):
        known = _validate.listed("sizes", sizes)
        graphs = [family(_validate.integer("sizes", size, least=1)) for size in known]
    else:
        graphs = _validate.listed("family", family)
    if len(graphs) < 3:
        raise ValueError(f"family must have at least three graphs, got {len(graphs)}")
    counts = [_hidden_neurons(graph) for graph in graphs]
    if min(counts) < 1 or np.any(np.diff(counts) <= 0):
        raise ValueError(f"family must have growing numbers of hidden neurons, got {counts}")
    scale = np.log(counts)
    reports = tuple(inspect(graph) for graph in graphs)

    def exponent(values: Sequence[float]) -> float:
        if min(values) == 0:
            return -np.inf
        return float(np.polyfit(scale, np.log(values), 1)[0])

    width = exponent([report.width for report in reports])
    share = exponent([report.bottleneck_share for report in reports])
    effective = exponent([report.effective_width for report in reports])
    if effective <= least:
        verdict = "broken"
    elif width > least:
        verdict = "wide"
    else:
        verdict = "few bottlenecks" if share < -least else "spread"
    return Linearity(verdict, reports, width, share, effective)


def _parents(graph: nx.DiGraph, v: Hashable, position: dict[Hashable, int]) -> list[Hashable]:
    trained = (u for u in graph.predecessors(v) if not graph.edges[u, v].get("skip"))
    return sorted(trained, key=position.__getitem__)


def _in_degree(graph: nx.DiGraph, v: Hashable) -> int:
    return sum(not graph.edges[u, v].get("skip") for u in graph.predecessors(v))


def _hidden_neurons(graph: nx.DiGraph) -> int:
    return sum(graph.in_degree(v) > 0 and graph.out_degree(v) > 0 for v in graph)


def _activation(graph: nx.DiGraph, v: Hashable, default: Elementwise) -> Elementwise:
    own = graph.nodes[v].get("activation")
    if own is not None:
        return resolve(own)
    return default if graph.out_degree(v) else identity


def _on_device(one: Layer) -> Layer:
    import jax

    moved: Any = jax.tree_util.tree_map(jnp.asarray, one)
    return moved  # type: ignore[no-any-return]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["heads", "tails", "shared"],
    meta_fields=["size", "fan", "parameters"],
)
@dataclass(frozen=True, eq=False)
class Edges:
    """A list of edges, any of which may share a weight (ZHU (A.14)).

    Attributes
    ----------
    size, fan, parameters : int
    heads, tails : array of int, shape (edges,)
        Neuron of this layer that an edge leads to, ascending, and input it comes from.
    shared : array of int, shape (edges,)
        Which weight the edge carries.
    """

    size: int
    fan: int
    parameters: int
    heads: Any
    tails: Any
    shared: Any

    def in_degrees(self) -> NDArray[np.int64]:
        """Count the trained connections into each neuron, shape (size,)."""
        return np.bincount(np.asarray(self.heads), minlength=self.size)

    def unpack(self, flat: Any) -> Any:
        """Return the vector itself."""
        return flat

    def pack(self, array: Any) -> Any:
        """Return the vector itself."""
        return array

    def restrict(self, array: Any) -> Any:
        """Return the array itself: all entries are weights."""
        return array

    def apply(self, weights: jax.Array, inputs: jax.Array) -> jax.Array:
        """Sum over the edges into each neuron, shape (size,)."""
        carried = weights[self.shared] * inputs[self.tails]
        return jax.ops.segment_sum(
            carried, self.heads, num_segments=self.size, indices_are_sorted=True
        )

    def metric(self, inputs: jax.Array, delta: jax.Array) -> Metric:
        """Prepare :meth:`contract`."""
        return inputs, delta

    def contract(self, metric: Metric, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        """V . g and V^T delta of V = T_a g + T_delta b, through V."""
        inputs, delta = metric
        weights = self.direction(inputs, delta, a, b)
        back: jax.Array = jax.vjp(lambda g: self.apply(weights, g), inputs)[1](delta)[0]
        return self.apply(weights, inputs), back

    def direction(
        self, inputs: jax.Array, delta: jax.Array, a: jax.Array, b: jax.Array
    ) -> jax.Array:
        """V itself, one entry per weight."""
        zero = jnp.zeros(self.parameters, dtype=inputs.dtype)
        return _transposed(self, inputs, a, zero) + _transposed(self, b, delta, zero)

    def gram(self, inputs: jax.Array, deltas: jax.Array) -> jax.Array:
        """Inner products of gradients at n points."""
        zero = jnp.zeros(self.parameters, dtype=inputs.dtype)
        gradients = jax.vmap(lambda g, delta: _transposed(self, g, delta, zero))(inputs, deltas)
        return gradients @ gradients.T


def _transposed(
    connection: Connection, inputs: jax.Array, sums: jax.Array, weights: jax.Array
) -> jax.Array:
    """T_s g by automatic differentiation: the derivative of s . (W . g) in W."""
    found: jax.Array = jax.vjp(lambda w: connection.apply(w, inputs), weights)[1](sums)[0]
    return found
