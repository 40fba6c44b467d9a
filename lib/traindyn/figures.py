"""One figure style for the whole book, in a light and a dark version.

A figure is one or more *panels*, each drawn by a function of a matplotlib ``Axes``.
:func:`show` draws every panel twice, once per theme, and displays them as images that
sit side by side on a wide page and below each other on a phone, so that text stays
legible at any width. The caption is part of the call, as alternative text: a figure without
it cannot be shown. The notebook keeps each panel as SVG and PDF too, and the numbers it shows.

Experiment is coloured (a colour-blind-safe cycle), theory is drawn over it in the
foreground colour (:func:`theory`).
"""

from __future__ import annotations

import base64
import html
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import is_color_like
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from numpy.typing import ArrayLike

from traindyn import _drawn, _validate

Panel = Callable[[Axes], None]

#: MIME type of the files of a figure in a notebook: for each panel ``svg``, ``pdf`` (in base64) and
#: ``csv`` (the numbers drawn).
FILES = "application/vnd.claimbook.figure+json"

_CANVASES = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}

#: Okabe–Ito colours, ordered so that neighbours differ in lightness as well as in hue.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
    "#8C6D1F",
    "#7F7F7F",
)


@dataclass(frozen=True)
class Theme:
    """Colours of one version of the book.

    Attributes
    ----------
    name : {"light", "dark"}
    foreground, background, grid : str
        Text and theory lines, page, grid lines.
    """

    name: Literal["light", "dark"]
    foreground: str
    background: str
    grid: str


LIGHT = Theme("light", foreground="#1a1a1a", background="#ffffff", grid="#d9d9d9")
DARK = Theme("dark", foreground="#e8e8e8", background="#121212", grid="#3a3a3a")


@contextmanager
def style(theme: Theme = LIGHT) -> Iterator[None]:
    """Matplotlib settings of the book, as a context.

    Parameters
    ----------
    theme : Theme
        Colours of text, page and grid.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> from traindyn.figures import DARK, style
    >>> with style(DARK):
    ...     mpl.rcParams["text.color"] == DARK.foreground
    True
    """
    settings: Any = {
        "font.size": 12,
        "axes.labelsize": 12,
        "axes.titlesize": 12,
        "legend.fontsize": 10.5,
        "xtick.labelsize": 11,
        "ytick.labelsize": 11,
        "lines.linewidth": 1.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "axes.prop_cycle": cycler(color=PALETTE),
        "figure.constrained_layout.use": True,
        "figure.facecolor": theme.background,
        "savefig.facecolor": theme.background,
        "axes.facecolor": theme.background,
        "grid.color": theme.grid,
        "image.cmap": "viridis",
    }
    for key in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"):
        settings[key] = theme.foreground
    with mpl.rc_context(settings):
        yield


def theory(ax: Axes, x: ArrayLike, y: ArrayLike, label: str | None = None, **kwargs: Any) -> None:
    """Draw a prediction over an experiment: dashed, in the foreground colour.

    Parameters
    ----------
    ax : Axes
        Where the curves are drawn.
    x, y : array_like, shape (n,) or y of shape (n, curves)
        NaN where there is nothing to draw.
    label : str, optional
        Legend entry, for the first curve only.
    **kwargs
        Passed to ``Axes.plot``.
    """
    options = {
        "color": mpl.rcParams["text.color"],
        "linestyle": (0, (4, 2)),
        "linewidth": 1.3,
        "zorder": 3,
    } | kwargs
    at, drawn = _validate.numeric("x", x, shape=(None,)), _validate.numeric("y", y)
    if drawn.ndim not in (1, 2) or len(drawn) != at.size:
        raise ValueError(
            f"y must have shape ({at.size},) or ({at.size}, curves), got {drawn.shape}"
        )
    for curve, values in enumerate(np.atleast_2d(drawn.T)):
        ax.plot(at, values, label=label if curve == 0 else None, **options)


def band(ax: Axes, x: ArrayLike, mean: ArrayLike, error: ArrayLike, label: str, color: str) -> None:
    """Draw a mean with a band of two standard errors on each side.

    Parameters
    ----------
    ax : Axes
        Where line and band are drawn.
    x, mean, error : array_like, shape (n,)
        NaN where there is nothing to draw.
    label : str
        Legend entry of the line; the band has none.
    color : str
        Any colour that matplotlib accepts, for line and band.
    """
    at = _validate.numeric("x", x, shape=(None,))
    centre = _validate.numeric("mean", mean, shape=at.shape)
    half = 2 * _validate.numeric("error", error, shape=at.shape)
    if not is_color_like(color):
        raise ValueError(f"color must be one that matplotlib knows, got {color!r}")
    ax.plot(at, centre, color=color, label=label)
    ax.fill_between(at, centre - half, centre + half, color=color, alpha=0.25, lw=0)


def plain_ticks(axis: Axis, values: Sequence[float]) -> None:
    """Label an axis, logarithmic or not, at the given values only, as plain numbers.

    Parameters
    ----------
    axis : Axis
        ``ax.xaxis`` or ``ax.yaxis``.
    values : sequence of float
        Where the major ticks go, in the units of the data.
    """
    places = _validate.finite("values", values, shape=(None,))
    axis.set_major_locator(FixedLocator(places.tolist()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def spectral_density(ax: Axes, eigenvalues: ArrayLike, *, bins: int = 60, label: str) -> None:
    """Draw a histogram of eigenvalues, as a density, with a tick per eigenvalue on the axis.

    Parameters
    ----------
    ax : Axes
        Where histogram and ticks are drawn.
    eigenvalues : array_like, shape (n,)
        At least one, in any order.
    bins : int
        Number of bars of equal width.
    label : str
        Legend entry of the histogram.
    """
    values = _validate.finite("eigenvalues", eigenvalues, shape=(None,))
    if values.size == 0:
        raise ValueError("eigenvalues must not be empty")
    ax.hist(
        values,
        bins=_validate.integer("bins", bins, least=1),
        density=True,
        color=PALETTE[4],
        alpha=0.7,
        label=label,
    )
    ax.plot(values, np.zeros_like(values), "|", color=PALETTE[0], markersize=9, clip_on=False)


def show(
    *panels: Panel, label: str, alt: str, size: tuple[float, float] = (4.8, 3.6), dpi: int = 150
) -> None:
    """Draw the panels of a figure in both themes and display them.

    Nothing is drawn where the environment variable TRAINDYN_FIGURES is ``none``: runs that only
    count verdicts save the time.

    Parameters
    ----------
    *panels : callable
        Each draws on the ``Axes`` it is given. Called once per theme.
    label : str
        Name of the figure; the ledger and the page of figures find it by this.
    alt : str
        The caption: what is drawn, what is predicted, what there is to see. It stands below the
        figure and describes it to those who cannot see it.
    size : tuple of float
        Width and height of a panel, in inches.
    dpi : int
        Pixels per inch.

    Raises
    ------
    ValueError
        If there is no panel, or if `label` or `alt` is empty.
    """
    if os.environ.get("TRAINDYN_FIGURES") == "none":
        return
    markup, png, files = render(*panels, label=label, alt=alt, size=size, dpi=dpi)
    publish({"text/html": markup, "image/png": png, FILES: files}, label=label, alt=alt)


def render(
    *panels: Panel, label: str, alt: str, size: tuple[float, float] = (4.8, 3.6), dpi: int = 150
) -> tuple[str, str, list[dict[str, str]]]:
    """Draw the panels of a figure in both themes without displaying them.

    Parameters
    ----------
    *panels, label, alt, size, dpi
        As for :func:`show`.

    Returns
    -------
    markup : str
        HTML with all panels, light and dark.
    png : str
        The first panel, light, in base64.
    files : list of dict
        For each panel what :data:`FILES` names.

    Raises
    ------
    ValueError
        As :func:`show`.
    """
    if not panels:
        raise ValueError("panels must not be empty: a figure needs at least one panel")
    for name, value in (("label", label), ("alt", alt)):
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{name} must not be empty, got {value!r}")
    drawn = [_pictures(panel, size, dpi) for panel in panels]
    pairs = [pair for pair, _ in drawn]
    pictures = {name: [pair[name] for pair in pairs] for name in pairs[0]}
    first = base64.b64encode(pictures["light"][0]).decode()
    return _markup(pictures, alt, size), first, [files for _, files in drawn]


def publish(versions: Mapping[str, Any], *, label: str, alt: str) -> None:
    """Display a figure so that the ledger and the page of figures find it.

    Parameters
    ----------
    versions : mapping
        The figure by MIME type, ``image/png`` among them.
    label, alt : str
        As for :func:`show`.
    """
    # IPython is there whenever a notebook runs; scripts need not have it to import this room
    from IPython.display import publish_display_data

    publish_display_data(
        {**versions, "text/plain": f"Figure {label}: {alt}"},
        metadata={"claimbook": {"figure": label, "alt": alt}},
    )


def _pictures(
    panel: Panel, size: tuple[float, float], dpi: int
) -> tuple[dict[Literal["light", "dark"], bytes], dict[str, str]]:
    """Draw a panel in both themes, which differ in colours alone: they share one layout."""
    found: dict[Literal["light", "dark"], bytes] = {}
    files: dict[str, str] = {}
    first: Figure | None = None
    for theme in (LIGHT, DARK):
        # Ticks are made while saving, so that too belongs in the style.
        with style(theme):
            figure = Figure(figsize=size, dpi=dpi)
            panel(figure.add_subplot())
            if first is not None:
                figure.set_layout_engine("none")
                for placed, ax in zip(first.axes, figure.axes, strict=True):
                    ax.set_position(placed.get_position(original=True))
            found[theme.name] = _saved(figure, "png", {"Software": None})
            if first is None:
                files = _files(figure)
        first = figure
    return found, files


def _files(figure: Figure) -> dict[str, str]:
    """Return a picture that has its layout in forms to be kept: for print, to draw it anew."""
    figure.set_layout_engine("none")
    # Names of clip paths come from the salt, not from chance; text stays text, to be edited.
    with mpl.rc_context({"svg.hashsalt": "traindyn", "svg.fonttype": "none"}):
        svg = _saved(figure, "svg", {"Date": None, "Creator": None}).decode()
    pdf = _saved(figure, "pdf", {"CreationDate": None, "Creator": None, "Producer": None})
    # A hundredth of a point is enough for a path.
    rounded = re.sub(r' d="[^"]+"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path.group()), svg)
    return {
        "svg": rounded,
        "pdf": base64.b64encode(pdf).decode(),
        "csv": _drawn.table(figure),
    }


def _saved(figure: Figure, kind: Literal["png", "svg", "pdf"], metadata: dict[str, Any]) -> bytes:
    """Return a picture as ``savefig`` writes it, which draws everything once more before."""
    buffer = io.BytesIO()
    getattr(_CANVASES[kind](figure), f"print_{kind}")(buffer, metadata=metadata)
    return buffer.getvalue()


def _markup(
    pictures: Mapping[Literal["light", "dark"], Sequence[bytes]],
    alt: str,
    size: tuple[float, float],
) -> str:
    panels = []
    # one panel may fill the column; of several, two share a row and an odd one stays as small
    widest = size[0] * (130 if len(pictures["light"]) == 1 else 78)
    for number, (light, dark) in enumerate(zip(pictures["light"], pictures["dark"], strict=True)):
        part = f" (panel {number + 1})" if len(pictures["light"]) > 1 else ""
        text = html.escape(alt + part, quote=True)
        # the dark picture is hidden unless the page says it is dark (book/_static/traindyn.css)
        panels.append(
            f'<span class="traindyn-panel" style="flex:1 1 {size[0] * 70:.0f}px;'
            f'max-width:{widest:.0f}px">'
            f'<img class="only-light" alt="{text}" style="width:100%" '
            f'src="data:image/png;base64,{base64.b64encode(light).decode()}">'
            f'<img class="only-dark" alt="{text}" style="width:100%;display:none" '
            f'src="data:image/png;base64,{base64.b64encode(dark).decode()}"></span>'
        )
    return (
        '<div class="traindyn-figure" style="display:flex;flex-wrap:wrap;gap:.5rem;'
        f'justify-content:center">{"".join(panels)}</div>'
    )
