"""Figures with parameters: the specification, what it weighs, what is refused."""

import json
import re

import altair
import numpy as np
import pytest
import vl_convert

from claimbook import collect
from traindyn import figures, interactive

LEVEL = interactive.slider("level", "level a (metres)", start=0, stop=0.6, step=0.2, value=0.2)
KIND = interactive.choice("kind", "kind", ["up", "down"], value="up")
READINGS = {(a, k): f"{k} at {a}" for a in interactive.grid(LEVEL) for k in ("up", "down")}


def panel(ax):
    """Draw a line."""
    ax.plot([0, 1], [0, 1])


def curves():
    """One curve of three points for each value of the two parameters."""
    return interactive.chart(
        [LEVEL, KIND],
        {(a, k): {"x": [[0, 1, 2]], "y": [[a, (a + 1) * (-1) ** (k == "down"), a]]}
         for a, k in READINGS},
    )  # fmt: skip


def line():
    """The curve as theory."""
    return curves().mark_line(style=interactive.THEORY).encode(x="x:Q", y="y:Q", order="point:Q")


@pytest.fixture
def published(monkeypatch):
    """Collect what is displayed."""
    seen = []
    monkeypatch.setattr(
        "IPython.display.publish_display_data",
        lambda data, metadata: seen.append((data, metadata)),
    )
    return seen


def show(**changed):
    """Display a small figure, with some arguments changed."""
    options = dict(parameters=[LEVEL, KIND], label="small", alt="a line", reading=READINGS)
    options |= dict(fallback=[panel]) | changed
    charts = options.pop("charts", [line()])
    interactive.show(*charts, **options)


def source(data):
    """What the page's script reads."""
    text = re.search(r'<script type="application/json">(.*?)</script>', data["text/markdown"])
    return json.loads(text.group(1))


def drawn(spec, **values):
    """Points of the line that Vega draws when parameters have some values."""
    for each in spec["params"]:
        each["value"] = values.get(each["name"], each.get("value"))
        if each["value"] is None:
            del each["value"]
    path = re.search(
        r'aria-roledescription="line mark"[^>]*? d="([^"]+)"|class="mark-line[^"]*".*?d="([^"]+)"',
        vl_convert.vegalite_to_svg(spec),
        re.DOTALL,
    )
    numbers = re.findall(r"-?\d+(?:\.\d+)?", next(filter(None, path.groups())))
    return np.array(numbers, float).reshape(-1, 2)


def test_a_figure_has_all_its_versions(published):
    """Each reader gets one: JupyterLab Vega-Lite, the page HTML, the ledger a picture."""
    show()
    ((data, metadata),) = published
    assert list(data) == [
        interactive.MIME, "text/markdown", "image/png", figures.FILES, "text/plain",
    ]  # fmt: skip
    assert metadata == {"claimbook": {"figure": "small", "alt": "a line"}}
    # A blank line would end the HTML within Markdown; HTML itself would win in JupyterLab.
    assert "\n\n" not in data["text/markdown"]
    assert "text/html" not in data
    assert data["text/markdown"].count("<img") == 2
    page = source(data)
    assert set(page["themes"]) == {"light", "dark"}
    native = dict(data[interactive.MIME])
    assert native.pop("$schema").endswith("v5.json")
    assert native.pop("config") == page["themes"]["light"]
    assert native == page["spec"]


@pytest.mark.parametrize("version", ["5.20", "6.4"])
def test_parameters_choose_what_is_drawn(published, version):
    """The versions of Vega-Lite in JupyterLab and on the page both draw the chosen curve."""
    show()
    spec = source(published[0][0])["spec"]
    vega = vl_convert.vegalite_to_vega(spec, vl_version=version)
    inputs = {each["name"]: each["bind"] for each in vega["signals"] if "bind" in each}
    assert inputs["level"] == {
        "input": "range", "name": "level a (metres)", "min": 0, "max": 0.6, "step": 0.2,
    }  # fmt: skip
    assert inputs["kind"]["options"] == ["up", "down"]
    up, down = (drawn(spec, level=0.6, kind=kind) for kind in ("up", "down"))
    assert len(up) == len(down) == 3
    # Pixels count downwards.
    assert up[1, 1] < up[0, 1] == up[2, 1]
    assert down[1, 1] > down[0, 1]
    # 0.2 + 0.2 + 0.2 is not 0.6.
    assert len(drawn(spec, level=0.2 + 0.2 + 0.2, kind="up")) == 3


def test_an_exponent_is_shown_as_a_power(published):
    """The page could show a logarithm, or JupyterLab call the logarithm by the power's name."""
    late = interactive.slider("late", "time t_0", start=-4, stop=6, step=5, value=1, base=10)
    show(charts=[altair.Chart().mark_point()], parameters=[late],
         reading=dict.fromkeys(interactive.grid(late), "seen"))  # fmt: skip
    data = published[0][0]
    assert source(data)["powers"] == {
        "late": {"label": "time t_0", "values": ["10⁻⁴", "10", "10⁶"]}
    }
    (bound,) = (each["bind"] for each in data[interactive.MIME]["params"] if "bind" in each)
    assert (bound["name"], bound["min"]) == ("time, log₁₀ t_0", -4)
    show()
    assert source(published[1][0])["powers"] == {}


@pytest.mark.parametrize(
    ("base", "exponent", "text"),
    [(10, 3.99999, "10⁴"), (10, 4, "10⁴"), (10, 3.5, "3160"), (2, -1, "0.5"), (10, -3, "0.001"),
     (10, -3.25, "5.6·10⁻⁴"), (10, 12.999, "10¹³"), (2, 10, "1020"), (10, 2.9999, "1000")],
)  # fmt: skip
def test_powers_are_printed_to_three_digits(base, exponent, text):
    """A power next to a border could be printed with too many digits, or as 10e3."""
    assert interactive.power(base, exponent) == text


def test_base_of_a_slider_is_an_integer():
    """A logarithm to base one or 2.5 has no name."""
    options = dict(start=0, stop=1, step=1, value=0)
    with pytest.raises(ValueError, match="base must be an integer >= 2, got 1"):
        interactive.slider("a", "time t", **options, base=1)


def test_a_logarithmic_axis_shows_powers():
    """Labels could be 1e+4, or the power of another tick."""
    values = [1e-12, 0.01, 1, 10, 20, 1e9]
    axis = altair.Axis(labelExpr=interactive.TENS, values=values, labelOverlap=False)
    across = altair.X("x:Q", axis=axis, scale=altair.Scale(type="log", domain=[1e-12, 1e9]))
    chart = altair.Chart(altair.InlineData([{"x": 1}])).mark_point().encode(x=across)
    drawn_axis = vl_convert.vegalite_to_svg(chart.properties(width=900).to_dict())
    labels = re.findall(r"<text[^>]*>(10[⁻⁰¹²³⁴-⁹]+)</text>", drawn_axis)
    assert labels == ["10⁻¹²", "10⁻²", "10⁰", "10¹", "10⁹"]


def test_the_same_figure_twice_is_the_same_output(published):
    """Names of data or parameters could be counted or drawn at random."""
    show()
    show()
    assert published[0] == published[1]


def test_no_text_ends_the_script(published):
    """A label could close the element that holds the specification."""
    show(reading=dict.fromkeys(READINGS, "</script><b>"))
    data = published[0][0]
    assert data["text/markdown"].count("</script>") == 1
    assert source(data)["spec"]["params"][-2]["value"]["0|up"] == "</script><b>"


def test_readings_belong_to_their_values(published):
    """The expression of the page and the keys could disagree."""
    show()
    params = {each["name"]: each for each in source(published[0][0])["spec"]["params"]}
    assert params["readings"]["value"]["0.6|down"] == "down at 0.6"
    assert params["reading"]["expr"] == "readings[toString(level) + '|' + toString(kind)]"


def test_columns_are_rows_and_curves():
    """Scalars are repeated, holes become null, digits are few."""
    chart = interactive.chart(
        [LEVEL], {0.2: {"a": 1.23456, "b": [1, 2], "c": [[np.inf, 2e-7], [3, 4]]}}, digits=3
    )
    assert chart.data.values == [
        {"level": 0.2, "row": 0, "a": 1.23, "b": 1, "c": [None, 2e-7]},
        {"level": 0.2, "row": 1, "a": 1.23, "b": 2, "c": [3, 4]},
    ]
    spec = chart.mark_point().to_dict()
    assert [next(iter(each)) for each in spec["transform"]] == ["filter", "flatten", "window"]
    plain = interactive.chart([], {(): {"a": [1, 2]}}).mark_point().to_dict()
    assert "transform" not in plain


def test_what_cannot_be_shown_is_refused(published):
    """An error names the argument."""
    unnamed = altair.param(name="level", value=0, bind=altair.binding_range(min=0, max=1, step=1))
    heavy = interactive.chart([], {(): {"x": np.linspace(0, 1, 60_000)}}).mark_point()
    wrong = [
        (dict(alt=" "), "alt must not be empty"),
        (dict(label=""), "label must not be empty"),
        (dict(charts=[]), "charts must not be empty"),
        (dict(parameters=[]), "parameters must not be empty"),
        (dict(parameters=[unnamed]), "parameters must have a label each, 'level' has none"),
        (dict(fallback=[]), "panels must not be empty"),
        (dict(reading={(0, "up"): "one"}), r"reading must have .* none for 0\|down and 6 more"),
        (dict(charts=[heavy]), r"charts must hold at most 1,000,000 bytes .* got 1,\d{3},\d{3}"),
    ]
    for options, message in wrong:
        with pytest.raises(ValueError, match=message):
            show(**options)
    with pytest.raises(ValueError, match="columns must have one length"):
        interactive.chart([], {(): {"a": [1, 2], "b": [1, 2, 3]}})
    with pytest.raises(ValueError, match="found must have one value for each of 2 parameters"):
        interactive.chart([LEVEL, KIND], {0.2: {"a": 1}})
    assert not published


@pytest.mark.parametrize(
    "changed, message",
    [
        (dict(name="no name"), "name must be an identifier"),
        (dict(step=0), "step must be"),
        (dict(stop=0), "stop must be above start = 0, got 0"),
        (dict(start=np.nan), "start must be"),
        (dict(value=0.3), r"value must be one of \[0.0, 0.25, .* got 0.3"),
    ],
)
def test_a_slider_takes_values_it_has(changed, message):
    """Nothing would be drawn for a value between two of the grid."""
    good = dict(name="a", start=0, stop=1, step=0.25, value=0.5)
    assert len(interactive.grid(interactive.slider(label="a", **good))) == 5
    with pytest.raises(ValueError, match=message):
        interactive.slider(label="a", **good | changed)


def test_a_list_offers_its_first_value():
    """A page could open with a picture that no choice brings back."""
    with pytest.raises(ValueError, match=r"value must be one of \['up'\], got 'left'"):
        interactive.choice("kind", "kind", ["up"], value="left")
    with pytest.raises(ValueError, match="options must not be empty"):
        interactive.choice("kind", "kind", [], value="up")


def test_the_ledger_finds_both_versions(published):
    """The page of figures shows the still version, light or dark."""
    show()
    data, metadata = published[0]
    output = {"output_type": "display_data", "data": data, "metadata": metadata}
    reading = collect.Reading()
    collect._read_output(reading, output, "part/one", "cell 1", None, "quick", 1)
    assert reading.problems == []
    image = reading.images["part/one", "small"]
    assert image.light.startswith(b"\x89PNG") and image.dark.startswith(b"\x89PNG")
    assert image.light != image.dark


@pytest.mark.parametrize("theme", [figures.LIGHT, figures.DARK])
def test_text_and_theory_have_the_colours_of_the_theme(published, theme):
    """Text of one theme could be shown on the other."""
    show()
    config = source(published[0][0])["themes"][theme.name]
    assert config["axis"]["labelColor"] == config["axis"]["titleColor"] == theme.foreground
    assert config["style"][interactive.THEORY]["color"] == theme.foreground
    assert config["background"] == theme.background
