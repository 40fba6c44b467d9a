"""The numbers behind a picture, read back from what matplotlib drew."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib import cbook
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.quiver import Quiver

#: Columns of :func:`table`.
COLUMNS = ("series", "kind", "x", "y", "u", "v")

_Row = tuple[str, str, float, float] | tuple[str, str, float, float, float, float]


def table(figure: Figure) -> str:
    """Return what the axes of a figure show as comma-separated values.

    Parameters
    ----------
    figure : Figure
        Colour bars, and what has a place on the page and not among the data, are left out.

    Returns
    -------
    str
        One line for each point, under the names ``series`` (entry of the legend), ``kind``,
        ``x``, ``y``, ``u`` and ``v``. A ``point`` has its colour's value in `u` where there
        is one, a ``bar`` (height `y` above `x`) its width, an ``image`` its value; a
        ``segment`` ends at (u, v), an ``arrow`` has that direction. A ``line`` is listed
        point by point, and so is the outline of an ``area``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from traindyn._drawn import table
    >>> figure = Figure()
    >>> _ = figure.add_subplot().plot([1, 2], [3, 4.5], label="loss")
    >>> print(table(figure), end="")
    series,kind,x,y,u,v
    loss,line,1,3,,
    loss,line,2,4.5,,
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for ax in figure.axes:
        if ax.get_label() != "<colorbar>":
            for row in _rows(ax):
                numbers = ["" if np.isnan(value) else f"{value:.7g}" for value in row[2:]]
                writer.writerow([*row[:2], *numbers, *[""] * (len(COLUMNS) - len(row))])
    return buffer.getvalue()


def _rows(ax: Axes) -> Iterator[_Row]:
    # Bars and points with error bars have their entry in the legend together.
    together = {
        part: container.get_label() for container in ax.containers for part in _parts(container)
    }

    def name(artist: Artist) -> str:
        # Names that matplotlib gives begin with an underscore.
        label = str(together.get(artist, artist.get_label()))
        return "" if label.startswith("_") else label

    for line in ax.lines:
        if line.get_transform() == ax.transData:
            places = np.broadcast_arrays(*map(_floats, line.get_data()))
            yield from _points(name(line), "line", np.column_stack(places))
    for patch in ax.patches:
        if isinstance(patch, Rectangle) and patch.get_data_transform() == ax.transData:
            middle = patch.get_x() + patch.get_width() / 2
            yield name(patch), "bar", middle, patch.get_height(), patch.get_width(), np.nan
    for collection in ax.collections:
        yield from _collected(name(collection), collection)
    for image in ax.images:
        yield from _pixels(name(image), image)


def _parts(container: Any) -> list[Artist]:
    return list(cbook.flatten(part for part in container if part is not None))


def _collected(name: str, drawn: Collection) -> Iterator[_Row]:
    values = drawn.get_array()
    if isinstance(drawn, Quiver):
        yield from _points(name, "arrow", np.column_stack([drawn.XY, drawn.U, drawn.V]))
    elif isinstance(drawn, QuadMesh) and values is not None:
        corners = _floats(drawn.get_coordinates())
        middles = (corners[:-1, :-1] + corners[1:, 1:]) / 2
        yield from _valued(name, "image", middles.reshape(-1, 2), _floats(values))
    elif isinstance(drawn, PathCollection):
        places = _floats(drawn.get_offsets())
        if values is None:
            yield from _points(name, "point", places)
        else:
            yield from _valued(name, "point", places, _floats(values))
    elif isinstance(drawn, LineCollection):
        for segment in drawn.get_segments():
            ends = _floats(segment)
            yield from _points(name, "segment", np.column_stack([ends[:-1], ends[1:]]))
    else:
        for path in drawn.get_paths():
            yield from _points(name, "area", _floats(path.vertices))


def _pixels(name: str, image: AxesImage) -> Iterator[_Row]:
    values = _floats(image.get_array())
    if values.ndim == 2:
        left, right, bottom, top = image.get_extent()
        high, wide = values.shape
        x = left + (right - left) * (np.arange(wide) + 0.5) / wide
        # The first row is that at the end of the y axis which `origin` names.
        ends = (bottom, top) if image.origin == "lower" else (top, bottom)
        y = ends[0] + (ends[1] - ends[0]) * (np.arange(high) + 0.5) / high
        places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        yield from _valued(name, "image", places, values)


def _valued(name: str, kind: str, places: np.ndarray, values: np.ndarray) -> Iterator[_Row]:
    rest = np.full(len(places), np.nan)
    yield from _points(name, kind, np.column_stack([places, values.ravel(), rest]))


def _points(name: str, kind: str, rows: np.ndarray) -> Iterator[_Row]:
    for row in rows:
        yield (name, kind, *row)


def _floats(values: object) -> np.ndarray:
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
