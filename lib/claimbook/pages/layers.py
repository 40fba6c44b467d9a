"""A drawing of what uses what, in layers: what is used stands below what uses it.

Layers come from the longest chains, the order within a layer from barycentres, positions from the
nearest arrangement that keeps distances. Nothing is drawn at random: equal input, equal picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

#: Heights of a box and of a layer, distance between boxes, and margin, in pixels.
BOX, LAYER, GAP, MARGIN = 30, 74, 12, 8
#: Width that a line takes which passes through a layer.
_LANE = 10
_SWEEPS = 24

#: A box by its name, or a line on its way through a layer: both ends, and the layer.
_Item = str | tuple[str, str, int]


@dataclass(frozen=True)
class Drawing:
    """Where boxes and lines go.

    Attributes
    ----------
    width, height : float
        Of the whole.
    places : mapping
        Centre of each box.
    lines : mapping
        From what uses to what is used: the points that a line passes, from above to below.
    """

    width: float
    height: float
    places: Mapping[str, tuple[float, float]]
    lines: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]


def layers(uses: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Assign layers, counted from below, so that everything stands above what it uses.

    The longest chains fix the height; on these conditions each box stands as high as it can, near
    to what uses it.

    Parameters
    ----------
    uses : mapping
        Every box, with what it uses; without circles.

    Returns
    -------
    dict

    Examples
    --------
    >>> from claimbook.pages.layers import layers
    >>> layers({"theorem": ["lemma", "proposition"], "lemma": [], "proposition": ["lemma"]})
    {'theorem': 2, 'lemma': 0, 'proposition': 1}
    >>> layers({"theorem": ["fact", "claim"], "claim": ["lemma"], "fact": [], "lemma": []})
    {'theorem': 2, 'claim': 1, 'fact': 1, 'lemma': 0}
    """
    order = list(TopologicalSorter(uses).static_order())
    found: dict[str, int] = {}
    for name in order:
        found[name] = max((found[used] + 1 for used in uses[name]), default=0)
    above: dict[str, int] = {}
    for name in reversed(order):
        if name in above:
            found[name] = above[name] - 1
        for used in uses[name]:
            above[used] = min(above.get(used, found[name]), found[name])
    return {name: found[name] for name in uses}


def reduced(uses: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Leave out what is also used on a longer way.

    Parameters
    ----------
    uses : mapping
        Every box, with what it uses; without circles.

    Returns
    -------
    dict

    Examples
    --------
    >>> from claimbook.pages.layers import reduced
    >>> reduced({"theorem": ["lemma", "proposition"], "proposition": ["lemma"], "lemma": []})
    {'theorem': ['proposition'], 'proposition': ['lemma'], 'lemma': []}
    """
    under: dict[str, set[str]] = {}
    for name in TopologicalSorter(uses).static_order():
        under[name] = set(uses[name]).union(*(under[used] for used in uses[name]))
    return {
        name: [used for used in targets if not any(used in under[other] for other in targets)]
        for name, targets in uses.items()
    }


def direct(drawing: Drawing, above: str, below: str) -> tuple[tuple[float, float], ...]:
    """Return the points of a straight line from one box to another, across what lies between."""
    return _line([drawing.places[above], drawing.places[below]])


def draw(
    uses: Mapping[str, Sequence[str]], widths: Mapping[str, float], *, wide: float = 1000
) -> Drawing:
    """Arrange boxes in layers, unconnected parts beside and below each other.

    Parameters
    ----------
    uses : mapping
        Every box, with what it uses; without circles.
    widths : mapping
        Width of each box.
    wide : float
        Width up to which parts go beside each other; the widest part may be wider.

    Returns
    -------
    Drawing
    """
    pieces = sorted(
        (_piece({name: uses[name] for name in part}, widths) for part in _parts(uses)),
        key=lambda piece: (-piece.height, -len(piece.places)),
    )
    limit = max([wide, *(piece.width for piece in pieces)])
    places: dict[str, tuple[float, float]] = {}
    lines: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {}
    left = top = right = bottom = 0.0
    for piece in pieces:
        if left and left + piece.width > limit:
            left, top = 0.0, bottom + GAP
        places |= {name: _moved(place, left, top) for name, place in piece.places.items()}
        lines |= {
            ends: tuple(_moved(point, left, top) for point in line)
            for ends, line in piece.lines.items()
        }
        left += piece.width + GAP
        right, bottom = max(right, left - GAP), max(bottom, top + piece.height)
    return Drawing(width=round(right, 1), height=round(bottom, 1), places=places, lines=lines)


def _moved(point: tuple[float, float], x: float, y: float) -> tuple[float, float]:
    return round(point[0] + x, 1), round(point[1] + y, 1)


def _parts(uses: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the names that hang together, in the order of the first of each part."""
    near: dict[str, list[str]] = {name: list(used) for name, used in uses.items()}
    for name, used in uses.items():
        for other in used:
            near[other].append(name)
    found: list[list[str]] = []
    seen: set[str] = set()
    for name in uses:
        part, rim = [], [name]
        while rim:
            here = rim.pop()
            if here not in seen:
                seen.add(here)
                part.append(here)
                rim += near[here]
        if part:
            found.append(part)
    return found


def _piece(uses: Mapping[str, Sequence[str]], widths: Mapping[str, float]) -> Drawing:
    """Arrange boxes that hang together."""
    layer = layers(uses)
    rows: list[list[_Item]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for name, number in layer.items():
        rows[number].append(name)
    chains: dict[tuple[str, str], list[_Item]] = {}
    above: dict[_Item, list[_Item]] = {}
    below: dict[_Item, list[_Item]] = {}
    for name, targets in uses.items():
        for used in targets:
            lanes: list[_Item] = [
                (name, used, number) for number in range(layer[name] - 1, layer[used], -1)
            ]
            for number, lane in zip(range(layer[name] - 1, layer[used], -1), lanes, strict=True):
                rows[number].append(lane)
            chains[name, used] = [name, *lanes, used]
            for upper, lower in pairwise(chains[name, used]):
                below.setdefault(upper, []).append(lower)
                above.setdefault(lower, []).append(upper)
    _order(rows, above, below)
    x = _positions(rows, above, below, widths)
    left = min((x[item] - _width(item, widths) / 2 for item in x), default=0.0) - MARGIN
    right = max((x[item] + _width(item, widths) / 2 for item in x), default=0.0) + MARGIN
    centre = {
        item: (
            round(x[item] - left, 1),
            round(MARGIN + BOX / 2 + (len(rows) - 1 - number) * LAYER, 1),
        )
        for number, row in enumerate(rows)
        for item in row
    }
    return Drawing(
        width=round(right - left, 1),
        height=2 * MARGIN + BOX + max(len(rows) - 1, 0) * LAYER,
        places={name: centre[name] for name in uses},
        lines={ends: _line([centre[item] for item in chain]) for ends, chain in chains.items()},
    )


def _width(item: _Item, widths: Mapping[str, float]) -> float:
    return widths[item] if isinstance(item, str) else _LANE


def _order(
    rows: list[list[_Item]],
    above: Mapping[_Item, list[_Item]],
    below: Mapping[_Item, list[_Item]],
) -> None:
    """Sort each layer by the mean place of the neighbours, down and up; keep the best order."""
    best = [list(row) for row in rows]
    fewest = _crossings(rows, below)
    for sweep in range(_SWEEPS):
        neighbours = below if sweep % 2 == 0 else above
        places: dict[_Item, float] = {
            item: (index + 0.5) / len(row) for row in rows for index, item in enumerate(row)
        }
        for number in range(len(rows)) if sweep % 2 == 0 else reversed(range(len(rows))):
            row = rows[number]
            wanted = {
                item: _mean([places[other] for other in neighbours.get(item, ())], places[item])
                for item in row
            }
            row.sort(key=wanted.__getitem__)  # stable: ties keep their order
            places.update({item: (index + 0.5) / len(row) for index, item in enumerate(row)})
        crossings = _crossings(rows, below)
        if crossings < fewest:
            fewest, best = crossings, [list(row) for row in rows]
    for row, kept in zip(rows, best, strict=True):
        row[:] = kept


def _crossings(rows: list[list[_Item]], below: Mapping[_Item, list[_Item]]) -> int:
    """Count the pairs of lines that cross between two layers."""
    found = 0
    for lower, upper in pairwise(rows):
        place = {item: index for index, item in enumerate(lower)}
        ends = [sorted(place[other] for other in below.get(item, ())) for item in upper]
        flat = [end for group in ends for end in group]
        for index, end in enumerate(flat):
            found += sum(later < end for later in flat[index + 1 :])
    return found


def _positions(
    rows: list[list[_Item]],
    above: Mapping[_Item, list[_Item]],
    below: Mapping[_Item, list[_Item]],
    widths: Mapping[str, float],
) -> dict[_Item, float]:
    """Draw each box towards its neighbours, as far as the others of its layer let it."""
    x: dict[_Item, float] = {}
    for row in rows:
        offsets = _offsets(row, widths)
        x.update(
            {item: offset - offsets[-1] / 2 for item, offset in zip(row, offsets, strict=True)}
        )
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [
                _mean([x[other] for other in (*above.get(item, ()), *below.get(item, ()))], x[item])
                for item in row
            ]
            offsets = _offsets(row, widths)
            found = _increasing([a - b for a, b in zip(wanted, offsets, strict=True)])
            x.update({i: a + b for i, a, b in zip(row, found, offsets, strict=True)})
    return x


def _offsets(row: Sequence[_Item], widths: Mapping[str, float]) -> list[float]:
    """Return the least distances of the items of a layer from its first one."""
    found = [0.0]
    for left, right in pairwise(row):
        half = (_width(left, widths) + _width(right, widths)) / 2
        found.append(found[-1] + half + GAP)
    return found


def _increasing(values: Sequence[float]) -> list[float]:
    """Return the nearest sequence that does not decrease: pools of neighbours with their mean.

    Examples
    --------
    >>> from claimbook.pages.layers import _increasing
    >>> _increasing([1.0, 3.0, 2.0, 4.0])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        pool = (value, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, number = pools.pop()
            total = number + pool[1]
            pool = ((mean * number + pool[0] * pool[1]) / total, total)
        pools.append(pool)
    return [mean for mean, number in pools for _ in range(number)]


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _line(centres: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Let a line start and end at the rims of its boxes, and cross layers upright on the way."""
    points = [(centres[0][0], centres[0][1] + BOX / 2)]
    for x, y in centres[1:-1]:
        points += [(x, y - BOX / 2), (x, y + BOX / 2)]
    return (*points, (centres[-1][0], centres[-1][1] - BOX / 2))
