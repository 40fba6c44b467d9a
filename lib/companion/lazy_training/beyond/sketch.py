r"""Networks drawn as text: groups of neurons, arrows between them, and how the groups grow.

.. code-block:: text

    x*4 -> a*m -> b*m -> y*1      # groups: a name, how many neurons
    a => u*2                      # two more neurons, of in-degree one
    u -> b

A group is declared where it first appears with its size: a whole number, ``m``, a multiple
``3m``, a power ``m^2``, or a part ``m/2``; after a colon it may have an activation of its own,
``b*m:relu``. Lines are chains of groups with one of three arrows,

* ``->``, every neuron of the head reads every neuron of the tail;
* ``=>``, neuron i of the head reads neuron i of the tail, counted around if there are fewer;
* ``~>``, the value is added after the activation, without weight, neuron by neuron (ZHU (A.12));

several names on a side mean all pairs of them. Groups that read nothing are the inputs, groups
that no other group reads the outputs; neither may grow with m, as in ZHU Section 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from companion.lazy_training.beyond.graphs import Linearity, from_graph, linearity, vertex_layers
from traindyn import _validate
from traindyn.deep.activations import ACTIVATIONS
from traindyn.deep.network import Network

__all__ = ["Group", "Sketch", "positions", "sketch"]

_ARROWS = ("->", "=>", "~>")
_NAME = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\*(?P<size>[^\s:]+))?(?::(?P<activation>\w+))?")
_SIZE = re.compile(r"(?P<factor>\d*)(?:(?P<m>m)(?:\^(?P<power>\d+))?(?:/(?P<part>\d+))?)?")


@dataclass(frozen=True)
class Group:
    """Neurons of one kind.

    Attributes
    ----------
    name : str
    size : str
        As written: ``4``, ``m``, ``3m``, ``m^2``, ``m/2``.
    factor, power, part : int
        The size is ``factor * m**power // part``.
    activation : str or None
        That of the network unless given.
    """

    name: str
    size: str
    factor: int
    power: int
    part: int
    activation: str | None = None

    @property
    def grows(self) -> bool:
        """Whether the size depends on m."""
        return self.power > 0

    def count(self, m: int) -> int:
        """Return the number of neurons at a width m.

        Raises
        ------
        ValueError
            If there are none.
        """
        found: int = self.factor * m**self.power // self.part
        if found < 1:
            raise ValueError(
                f"group {self.name} must have a neuron, got {self.size} = 0 at m = {m}"
            )
        return found


@dataclass(frozen=True)
class Sketch:
    """A family of graphs, one for each width; see :func:`sketch`.

    Attributes
    ----------
    groups : tuple of Group
        In the order of the text.
    arrows : tuple of (str, str, str)
        Tail, arrow, head.
    """

    groups: tuple[Group, ...]
    arrows: tuple[tuple[str, str, str], ...]

    def graph(self, m: int) -> nx.DiGraph:
        """Return the graph at a width.

        Parameters
        ----------
        m : int
            Width, at least 1.

        Returns
        -------
        networkx.DiGraph
            Vertices are pairs (name of the group, number), with the attributes that
            :func:`~companion.lazy_training.beyond.graphs.from_graph` reads.

        Raises
        ------
        ValueError
            If a group is empty at this width.
        """
        m = _validate.integer("m", m, least=1)
        sizes = {group.name: group.count(m) for group in self.groups}
        graph = nx.DiGraph()
        for group in self.groups:
            own = {} if group.activation is None else {"activation": group.activation}
            graph.add_nodes_from(((group.name, i) for i in range(sizes[group.name])), **own)
        for tail, arrow, head in self.arrows:
            if arrow == "->":
                pairs = list(np.ndindex(sizes[tail], sizes[head]))
            else:
                pairs = [(i % sizes[tail], i) for i in range(sizes[head])]
            skip = {"skip": True} if arrow == "~>" else {}
            graph.add_edges_from((((tail, i), (head, j)) for i, j in pairs), **skip)
        return graph

    def network(self, m: int, *, activation: str = "tanh") -> Network:
        """Return the network at a width.

        Parameters
        ----------
        m : int
            Width, at least 1.
        activation : str
            Of hidden groups without their own.
        """
        return from_graph(self.graph(m), activation=activation)

    def linearity(
        self, sizes: Sequence[int] = (8, 16, 32, 64), *, least: float = 0.25
    ) -> Linearity:
        r"""Decide whether the network becomes linear in its weights as m grows.

        An output with an activation of its own counts as a hidden neuron that a linear output
        reads: then all depends on one neuron (ZHU Section 2.3, :math:`\phi(f)`).

        Parameters
        ----------
        sizes : sequence of int
            Widths m.
        least : float
            As for :func:`~companion.lazy_training.beyond.graphs.linearity`.
        """
        return linearity(self._judged, sizes, least=least)

    def _judged(self, m: int) -> nx.DiGraph:
        graph = self.graph(m)
        bent = [
            v
            for v in graph
            if graph.out_degree(v) == 0
            and graph.nodes[v].get("activation", "identity") != "identity"
        ]
        graph.add_edges_from((v, ("read", v)) for v in bent)
        return graph


def sketch(text: str) -> Sketch:
    r"""Read a family of graphs from text, in the format at the top of this module.

    Parameters
    ----------
    text : str
        Lines; what follows ``#`` is ignored.

    Raises
    ------
    ValueError
        With the number of the line, if it cannot be read, a group has no size or two, a size or
        an activation is unknown, an arrow is repeated, or added neurons are not as many as
        those they are added to. If there is no arrow, if groups form a cycle (which is named), if
        a group is on no line with an arrow, and if inputs or outputs grow with m.

    Examples
    --------
    >>> from companion.lazy_training.beyond.sketch import sketch
    >>> drawn = sketch("x*3 -> a*m -> y*1")
    >>> drawn.graph(5).number_of_edges(), drawn.linearity().verdict
    (20, 'wide')
    >>> sketch("x*3 -> a*m -> b*2 -> c*m -> y*1").linearity().verdict
    'broken'
    >>> sketch("x*3 -> a*m -> z")
    Traceback (most recent call last):
    ...
    ValueError: line 1: group z must have a size where it first appears, like z*m or z*1
    """
    groups: dict[str, Group] = {}
    arrows: list[tuple[str, str, str]] = []
    _validate.instance("text", text, str)
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            for arrow in _read_line(line.split("#")[0], groups):
                if any(arrow[0] == one[0] and arrow[2] == one[2] for one in arrows):
                    raise ValueError(f"{arrow[2]} must read {arrow[0]} once, got two arrows")
                arrows.append(arrow)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if not arrows:
        raise ValueError("text must have a line with an arrow, got none")
    found = Sketch(tuple(groups.values()), tuple(arrows))
    _check(found)
    return found


def positions(graph: nx.DiGraph) -> dict[Hashable, tuple[float, float]]:
    """Where to draw the vertices: layers by longest path from left to right, evenly spread.

    Parameters
    ----------
    graph : networkx.DiGraph
        Acyclic, each vertex with an edge.

    Returns
    -------
    dict of vertex to (float, float)
        The layer, and a height between zero and one.

    Examples
    --------
    >>> from companion.lazy_training.beyond.sketch import positions, sketch
    >>> positions(sketch("x*1 -> a*m -> y*1").graph(2))[("a", 1)]
    (1.0, 0.25)
    """
    return {
        v: (float(depth), 1 - (row + 0.5) / len(layer))
        for depth, layer in enumerate(vertex_layers(graph))
        for row, v in enumerate(layer)
    }


def _read_line(line: str, groups: dict[str, Group]) -> Iterator[tuple[str, str, str]]:
    """Declare the groups of a line, and return its arrows."""
    words = re.split(r"\s*(->|=>|~>)\s*", line.strip())
    if words == [""]:
        return
    sides = [[_declare(word, groups) for word in words[i].split()] for i in range(0, len(words), 2)]
    for side, arrow in zip(sides[1:], words[1::2]):
        if not side or not sides[0]:
            raise ValueError(f"{arrow} must have a group on both sides")
    for tails, arrow, heads in zip(sides, words[1::2], sides[1:]):
        for tail in tails:
            for head in heads:
                if arrow == "~>" and _shape(groups[tail]) != _shape(groups[head]):
                    raise ValueError(
                        f"{tail} ~> {head} must have equal sizes, got {groups[tail].size} and "
                        f"{groups[head].size}"
                    )
                yield tail, arrow, head


def _declare(word: str, groups: dict[str, Group]) -> str:
    match = _NAME.fullmatch(word)
    if match is None:
        raise ValueError(
            f"must be groups, like a*m or b*2:relu, between {', '.join(_ARROWS)}, got {word!r}"
        )
    name, size, activation = match["name"], match["size"], match["activation"]
    if activation is not None and activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ValueError(f"activation of {name} must be one of {known}, got {activation!r}")
    if name in groups:
        if size is not None or activation is not None:
            raise ValueError(f"group {name} must be declared once, got it again as {word!r}")
        return name
    if size is None:
        raise ValueError(
            f"group {name} must have a size where it first appears, like {name}*m or {name}*1"
        )
    parts = _SIZE.fullmatch(size)
    if parts is None or not size:
        raise ValueError(f"size of {name} must be like 4, m, 3m, m^2 or m/2, got {size!r}")
    factor = int(parts["factor"] or 1)
    power = int(parts["power"] or 1) if parts["m"] else 0
    part = int(parts["part"] or 1)
    if factor == 0 or part == 0 or (parts["m"] and power == 0):
        raise ValueError(f"size of {name} must be positive, got {size!r}")
    groups[name] = Group(name, size, factor, power, part, activation)
    return name


def _shape(group: Group) -> tuple[int, int, int]:
    return group.factor, group.power, group.part


def _check(found: Sketch) -> None:
    """Refuse what is no family of networks."""
    outline = nx.DiGraph()
    outline.add_nodes_from(group.name for group in found.groups)
    outline.add_edges_from((tail, head) for tail, _, head in found.arrows)
    if not nx.is_directed_acyclic_graph(outline):
        cycle = [tail for tail, _ in nx.find_cycle(outline)]
        raise ValueError(f"groups must not form a cycle, got {' -> '.join([*cycle, cycle[0]])}")
    for group in found.groups:
        read, written = outline.out_degree(group.name), outline.in_degree(group.name)
        if read + written == 0:
            raise ValueError(f"group {group.name} must be connected to an input, got no arrow")
        if group.grows and not (read and written):
            what = "output (nobody reads it)" if written else "input (it reads nothing)"
            raise ValueError(
                f"group {group.name} must not grow with m, got {group.size} for an {what}"
            )
        if not written and group.activation is not None:
            raise ValueError(f"group {group.name} must have no activation, it is an input")
