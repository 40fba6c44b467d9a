"""Figures a reader can move, in the static pages too.

A figure is one or more Vega-Lite charts, built with Altair, and *parameters*: sliders and
lists that are native inputs of the page, so that the keyboard and a thumb move them. All it
can show is in its specification, computed before, on the grid of the parameters.

:func:`show` displays the specification twice. JupyterLab draws the Vega-Lite output itself.
The pages of the book hold the same specification next to a still version of the figure
(:mod:`traindyn.figures`), which stays where there is no script, and in print
(``book/_static/interactive.js``). Experiment is coloured, theory has the style
:data:`THEORY`, which is the foreground colour of the theme.
"""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair
import numpy as np

from traindyn import _validate
from traindyn.figures import DARK, FILES, LIGHT, PALETTE, Panel, Theme, publish, render

__all__ = ["MOST_BYTES", "TENS", "THEORY", "chart", "choice", "grid", "power", "show", "slider"]

#: Largest specification, data included.
MOST_BYTES = 1_000_000
#: Style of marks that are theory: ``mark_line(style=interactive.THEORY)``.
THEORY = "theory"
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SIZE = "round(abs(log(datum.value)) / LN10)"
#: Labels of the powers of ten on a logarithmic axis: ``altair.Axis(labelExpr=interactive.TENS)``.
TENS = (
    f"abs(abs(log(datum.value)) / LN10 - {_SIZE}) > 1e-6 ? ''"
    " : '10' + (datum.value < 0.5 ? '⁻' : '')"
    f" + ({_SIZE} > 9 ? '{_RAISED}'[floor({_SIZE} / 10)] : '') + '{_RAISED}'[{_SIZE} % 10]"
)
#: What JupyterLab 4 draws; its schema is a subset of the one Altair writes.
MIME = "application/vnd.vegalite.v5+json"

_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
#: Two grid values of a parameter are further apart than this, rounding errors are not.
_CLOSE = 1e-6


class _Exponent(altair.Parameter):
    """A parameter that is the logarithm of what the reader sees."""

    def __init__(self, made: altair.Parameter, label: str, base: int) -> None:
        super().__init__(made.name, made.empty, made.param, made.param_type)
        self.label = label
        self.base = base


def slider(
    name: str,
    label: str,
    *,
    start: float,
    stop: float,
    step: float,
    value: float,
    base: int | None = None,
) -> altair.Parameter:
    """Return a parameter that takes equidistant values.

    Parameters
    ----------
    name : str
        What expressions call it; data columns of that name hold its values.
    label : str
        What the reader sees next to the slider, with the unit.
    start, stop, step, value : float
        Ends, distance of two values, value at first.
    base : int, optional
        If given, the values are exponents: the page shows powers of this base. The last word of
        `label` is then the letter of the power, whose logarithm JupyterLab shows.

    Raises
    ------
    ValueError
        If `name` is no identifier, or a number does not fit the others.

    Examples
    --------
    >>> from traindyn.interactive import grid, slider
    >>> grid(slider("signal", "signal λ", start=0.5, stop=1, step=0.25, value=1))
    [0.5, 0.75, 1.0]
    >>> grid(slider("log_t", "time t", start=0, stop=2, step=1, value=1, base=10))
    [0.0, 1.0, 2.0]
    """
    low, high = _validate.number("start", start), _validate.number("stop", stop)
    if high <= low:
        raise ValueError(f"stop must be above start = {low:g}, got {high:g}")
    native = label
    if base is not None:
        _validate.integer("base", base, least=2)
        words, _, letter = label.rpartition(" ")
        lowered = "".join(chr(ord("₀") + int(digit)) for digit in str(base))
        native = ", ".join(filter(None, [words, f"log{lowered} {letter}"]))
    binding = altair.binding_range(
        min=low, max=high, step=_validate.positive("step", step), name=native
    )
    made = _parameter(name, binding, value)
    return made if base is None else _Exponent(made, label, base)


def power(base: float, exponent: float) -> str:
    """Return a power as a reader writes it: to three digits, large and small ones with a ten.

    Parameters
    ----------
    base, exponent : float
        As a slider with a base moves them.

    Examples
    --------
    >>> from traindyn.interactive import power
    >>> power(2, 5), power(10, 2.25), power(10, -4), power(10, 5.5)
    ('32', '178', '10⁻⁴', '3.2·10⁵')
    """
    number = float(base) ** exponent
    if 1e-3 <= number < 9995:
        return f"{number:.3g}" if number < 999.5 else f"{float(f'{number:.3g}'):.0f}"
    front, _, back = f"{number:.1e}".partition("e")
    raised = "".join("⁻" if sign == "-" else _RAISED[int(sign)] for sign in f"{int(back)}")
    return f"10{raised}" if front == "1.0" else f"{float(front):g}·10{raised}"


def choice(
    name: str, label: str, options: Sequence[float | str], *, value: Any
) -> altair.Parameter:
    """Return a parameter that takes one of a few values, by a list.

    Parameters
    ----------
    name, label : str
        As for :func:`slider`.
    options : sequence
        Numbers or words.
    value : float or str
        At first.

    Raises
    ------
    ValueError
        If `name` is no identifier, `options` is empty or `value` is not among them.

    Examples
    --------
    >>> from traindyn.interactive import choice, grid
    >>> grid(choice("beta", "inverse temperature β", [1, 4], value=4))
    [1, 4]
    """
    if not len(options):
        raise ValueError("options must not be empty: there is nothing to choose from")
    return _parameter(name, altair.binding_select(options=list(options), name=label), value)


def grid(parameter: altair.Parameter) -> list[Any]:
    """Return the values that a parameter takes.

    Parameters
    ----------
    parameter : altair.Parameter
        From :func:`slider` or :func:`choice`.

    Returns
    -------
    list of float or str
    """
    binding = _binding(parameter)
    if "options" in binding:
        return list(binding["options"])
    low, high, step = (binding[key] for key in ("min", "max", "step"))
    return [float(f"{low + k * step:.10g}") for k in range(round((high - low) / step) + 1)]


def chart(
    parameters: Sequence[altair.Parameter],
    found: Mapping[Any, Mapping[str, Any]],
    *,
    digits: int = 4,
) -> altair.Chart:
    """Return a chart of the data that belong to the present values of some parameters.

    It has a column for each of the `parameters` and each name in `found`, and ``row``, the
    number of the row among those with the same values. Curves are unrolled: ``row`` tells them
    apart, ``point`` is the number of a point, to be used as order where it is not that of x.

    Parameters
    ----------
    parameters : sequence of altair.Parameter
        May be empty: the data are then always shown.
    found : mapping
        For each value of the parameter (each tuple of values, unless there is one parameter)
        a mapping of columns: scalars, or arrays with one entry per row, or arrays with one
        curve per row, all of the same length. What is not finite interrupts a line.
    digits : int
        Significant ones that are kept. A pixel shows three.

    Returns
    -------
    altair.Chart
        Without mark and encoding.

    Raises
    ------
    ValueError
        If columns differ in length, or a key has another length than `parameters`.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.interactive import chart, choice
    >>> beta = choice("beta", "inverse temperature β", [1, 4], value=4)
    >>> dots = chart([beta], {1: {"m": [[0.123456, np.nan]]}, 4: {"m": [[1, 2]]}})
    >>> dots.data.values
    [{'beta': 1, 'row': 0, 'm': [0.1235, None]}, {'beta': 4, 'row': 0, 'm': [1, 2]}]
    """
    rows: list[dict[str, Any]] = []
    lists: dict[str, None] = {}
    for key, columns in found.items():
        values = key if isinstance(key, tuple) else (key,)
        if len(values) != len(parameters):
            raise ValueError(
                f"found must have one value for each of {len(parameters)} parameters as its keys, "
                f"got {key!r}"
            )
        place = {each.name: value for each, value in zip(parameters, values, strict=True)}
        rows += [{**place, **row} for row in _rows(columns, digits)]
        lists |= {name: None for name, column in columns.items() if np.ndim(column) > 1}
    made = altair.Chart(altair.InlineData(rows))
    if parameters:
        made = made.transform_filter(" && ".join(map(_matches, parameters)))
    if lists:
        made = made.transform_flatten(list(lists)).transform_window(point="row_number()")
    return made


def show(
    *charts: altair.Chart | altair.LayerChart,
    parameters: Sequence[altair.Parameter],
    label: str,
    alt: str,
    fallback: Sequence[Panel],
    reading: Mapping[Any, str],
    size: tuple[int, int] = (340, 270),
) -> None:
    """Display charts with parameters, and a still version for pages without a script.

    Parameters
    ----------
    *charts : altair.Chart or altair.LayerChart
        Side by side on a wide page, below each other on a phone.
    parameters : sequence of altair.Parameter
        From :func:`slider` or :func:`choice`.
    label : str
        Name of the figure, as in :func:`traindyn.figures.show`.
    alt : str
        What the figure shows and how it changes, for those who cannot see it.
    fallback : sequence of callable
        Panels of the still version, as for :func:`traindyn.figures.show`.
    reading : mapping
        A sentence on what is seen for each value of the parameter (for each tuple of values
        of several), shown below the figure and read out when it changes.
    size : tuple of int
        Width and height of each chart, in pixels, where there is room.

    Raises
    ------
    ValueError
        If `label`, `alt`, `charts`, `parameters` or `fallback` is empty, a parameter has no
        label, `reading` lacks a value, or the specification exceeds :data:`MOST_BYTES`.
    """
    spec = _specification(charts, parameters, _by_key(parameters, reading), alt, size)
    powers = {
        each.name: {
            "label": each.label,
            "values": [power(each.base, exponent) for exponent in grid(each)],
        }
        for each in parameters
        if isinstance(each, _Exponent)
    }
    themes = {theme.name: _config(theme) for theme in (LIGHT, DARK)}
    source = json.dumps(
        {"spec": spec, "themes": themes, "powers": powers},
        ensure_ascii=False,
        separators=(",", ":"),
    )
    length = len(source.encode())
    if length > MOST_BYTES:
        raise ValueError(
            f"charts must hold at most {MOST_BYTES:,} bytes with their data, got {length:,}"
        )
    still, png, files = render(*fallback, label=label, alt=alt)
    # No end tag may stand inside a script.
    script = source.replace("</", "<\\/")
    markup = (
        f'<div class="interactive-figure" role="group" aria-label="{html.escape(label)}">'
        f'{still}<script type="application/json">{script}</script></div>'
    )
    native = {"$schema": _SCHEMA, **spec, "config": _config(LIGHT)}
    # JupyterLab prefers HTML to Vega-Lite, but Vega-Lite to Markdown.
    versions = {MIME: native, "text/markdown": markup, "image/png": png, FILES: files}
    publish(versions, label=label, alt=alt)


def _specification(
    charts: Sequence[Any],
    parameters: Sequence[altair.Parameter],
    readings: Mapping[str, str],
    description: str,
    size: tuple[int, int],
) -> dict[str, Any]:
    """One Vega-Lite specification without schema and colours."""
    if not charts:
        raise ValueError("charts must not be empty: a figure needs at least one chart")
    key = " + '|' + ".join(f"toString({each.name})" for each in parameters)
    sized = [chart.properties(width=size[0], height=size[1]) for chart in charts]
    whole = altair.concat(*sized, columns=len(sized), data=altair.InlineData([]))
    whole = whole.add_params(
        *parameters,
        altair.param(name="readings", value=dict(readings)),
        altair.param(name="reading", expr=f"readings[{key}]"),
    ).properties(
        description=description,
        title=altair.Title(altair.expr("reading"), anchor="start"),
    )
    spec: dict[str, Any] = whole.to_dict()
    for unwanted in ("$schema", "config"):
        spec.pop(unwanted, None)
    return spec


def _by_key(parameters: Sequence[altair.Parameter], reading: Mapping[Any, str]) -> dict[str, str]:
    """Sentences by what the page's expression makes of the values: numbers joined by bars."""
    if not parameters:
        raise ValueError("parameters must not be empty: nothing could be moved")
    for each in parameters:
        if not str(_binding(each).get("name", "")).strip():
            raise ValueError(f"parameters must have a label each, {each.name!r} has none")
    given = {
        _key(values if isinstance(values, tuple) else (values,)): text
        for values, text in reading.items()
    }
    wanted = [_key(values) for values in itertools.product(*map(grid, parameters))]
    missing = [key for key in wanted if key not in given]
    if missing:
        raise ValueError(
            f"reading must have a sentence for each of the {len(wanted)} values of "
            f"{', '.join(each.name for each in parameters)}, none for {missing[0]} "
            f"and {len(missing) - 1} more"
        )
    return {key: given[key] for key in wanted}


def _key(values: Iterable[Any]) -> str:
    return "|".join(value if isinstance(value, str) else f"{value:.10g}" for value in values)


def _parameter(name: str, binding: Any, value: float | str) -> altair.Parameter:
    """Return a parameter whose first value is one that it can take."""
    if not name.isidentifier():
        raise ValueError(f"name must be an identifier, got {name!r}")
    made = altair.param(name=name, value=value, bind=binding)
    values = grid(made)
    if _key([value]) not in {_key([each]) for each in values}:
        raise ValueError(f"value must be one of {values}, got {value!r}")
    return made


def _binding(parameter: altair.Parameter) -> dict[str, Any]:
    """Return what the specification says about the input of a parameter."""
    definition: Any = parameter.param
    return dict(definition.to_dict().get("bind", {}))


def _matches(parameter: altair.Parameter) -> str:
    """Vega expression for rows that belong to the present value of a parameter."""
    name = parameter.name
    if any(isinstance(value, str) for value in grid(parameter)):
        return f"datum['{name}'] == {name}"
    return f"abs(datum['{name}'] - {name}) < {_CLOSE:g}"


def _rows(columns: Mapping[str, Any], digits: int) -> list[dict[str, Any]]:
    lengths = {name: len(column) for name, column in columns.items() if np.ndim(column)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have one length, got {lengths}")
    rounded = {name: _rounded(column, digits) for name, column in columns.items()}
    return [
        {"row": row} | {name: c[row] if name in lengths else c for name, c in rounded.items()}
        for row in range(next(iter(lengths.values()), 1))
    ]


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, str):
        return value
    if np.ndim(value):
        return [_rounded(each, digits) for each in value]
    number = float(value)
    if not np.isfinite(number):
        return None
    number = float(f"{number:.{digits}g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _config(theme: Theme) -> dict[str, Any]:
    """Colours and sizes of a theme, as a Vega-Lite configuration."""
    text = {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal"}
    ink = {"labelColor": theme.foreground, "titleColor": theme.foreground}
    return {
        # Marks are no landmarks: what they show is said once, by the description.
        "aria": False,
        "background": theme.background,
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {
            **text,
            **ink,
            "domainColor": theme.foreground,
            "tickColor": theme.foreground,
            "gridColor": theme.grid,
            "labelFlush": False,
        },
        "legend": {**text, **ink, "orient": "top", "title": None, "symbolOpacity": 1},
        "title": {"color": theme.foreground, "fontSize": 13, "fontWeight": "normal"},
        "text": {"color": theme.foreground, "fontSize": 12},
        "rule": {"color": theme.foreground},
        "range": {"category": list(PALETTE)},
        "circle": {"opacity": 1},
        "style": {THEORY: {"color": theme.foreground, "strokeWidth": 1.4, "opacity": 1}},
    }
