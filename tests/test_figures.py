"""Figures: both themes, alternative text, colours that can be told apart."""

import base64
import csv
import io
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from traindyn import figures


@pytest.fixture
def published(monkeypatch):
    """Collect what :func:`figures.show` displays."""
    seen = []
    monkeypatch.setattr(
        "IPython.display.publish_display_data",
        lambda data, metadata: seen.append((data, metadata)),
    )
    return seen


def line(ax):
    """Draw a line and a theory with a hole."""
    ax.plot([0, 1], [0, 1])
    figures.theory(ax, [0, 1], np.array([[1, 2], [0, np.nan]]), label="theory")


def test_every_panel_is_shown_in_both_themes_with_its_description(published):
    """Two panels make four images; the ledger finds the figure by its label."""
    figures.show(line, line, label="two", alt='rises from 0 to "1" & falls', size=(2, 1.5), dpi=40)
    ((data, metadata),) = published
    images = re.findall(
        r'<img class="only-(light|dark)" alt="([^"]+)"[^>]*base64,([^"]+)"', data["text/html"]
    )
    assert [theme for theme, *_ in images] == ["light", "dark"] * 2
    assert images[0][1] == "rises from 0 to &quot;1&quot; &amp; falls (panel 1)"
    pictures = [base64.b64decode(code) for *_, code in images]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]
    assert data["image/png"] == images[0][2]
    assert metadata == {"claimbook": {"figure": "two", "alt": 'rises from 0 to "1" & falls'}}


@pytest.mark.parametrize(
    "options, name",
    [(dict(label=" ", alt="x"), "label"), (dict(label="x", alt=""), "alt")],
)
def test_a_figure_needs_a_label_and_a_description(published, options, name):
    """Nothing is shown without them."""
    with pytest.raises(ValueError, match=f"{name} must not be empty"):
        figures.show(line, **options)
    with pytest.raises(ValueError, match="panels must not be empty"):
        figures.show(label="x", alt="x")
    assert not published


def test_drawing_leaves_no_trace_in_the_settings(published):
    """A notebook's own matplotlib settings survive."""
    before = dict(mpl.rcParams)
    figures.show(line, label="one", alt="a line", size=(2, 1.5), dpi=40)
    assert dict(mpl.rcParams) == before


def luminance(colour):
    """Relative luminance (WCAG)."""
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_nothing_is_drawn_where_no_figures_are_wanted(published, monkeypatch):
    """Runs that only count verdicts need no pictures."""
    monkeypatch.setenv("TRAINDYN_FIGURES", "none")
    figures.show(line, label="one", alt="a line")
    assert not published


@pytest.mark.parametrize("theme", [figures.LIGHT, figures.DARK])
def test_text_and_lines_stand_out(theme):
    """Contrast: text at least 7, every line colour at least 2 against the page."""

    def contrast(colour):
        low, high = sorted((luminance(colour), luminance(theme.background)))
        return (high + 0.05) / (low + 0.05)

    assert contrast(theme.foreground) > 7
    assert min(contrast(colour) for colour in figures.PALETTE) > 2


def test_ticks_are_plain_numbers():
    """A logarithmic axis shows the given values and nothing else."""
    ax = mpl.figure.Figure().add_subplot()
    ax.set(xscale="log", xlim=(0.1, 20))
    figures.plain_ticks(ax.xaxis, (0.5, 10))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.5", "10"]
    assert not any(label.get_text() for label in ax.get_xticklabels(minor=True))


def test_a_figure_carries_its_files_and_its_numbers(published):
    """Per panel a drawing for print and the data behind it, the same at each run."""
    for _ in range(2):
        figures.show(line, line, label="two", alt="Two lines.", size=(2, 1.5), dpi=40)
    (first, _), (second, _) = published
    assert first == second
    panels = first[figures.FILES]
    assert len(panels) == 2
    assert panels[0]["svg"].startswith("<?xml")
    assert base64.b64decode(panels[0]["pdf"]).startswith(b"%PDF")
    rows = list(csv.DictReader(io.StringIO(panels[0]["csv"])))
    assert [(row["series"], row["x"], row["y"]) for row in rows] == [
        ("", "0", "0"), ("", "1", "1"), ("theory", "0", "1"), ("theory", "1", "0"),
        ("", "0", "2"), ("", "1", ""),
    ]  # fmt: skip


def _everything(ax):
    ax.scatter([1, 2], [3, 4], c=[5, 6], label="dots")
    ax.errorbar([0, 1], [2, 3], [0.1, 0.2], fmt="o", label="means")
    ax.bar([1], [4], width=0.5, label="bars")
    ax.fill_between([0, 1], [0, 0], [1, 2], label="band")
    ax.imshow([[1, 2], [3, 4]], extent=(0, 2, 0, 2), origin="lower")
    ax.pcolormesh([0, 2], [0, 4], [[7]])
    ax.quiver([0], [1], [2], [3])
    ax.axhline(5, label="not data")


@pytest.mark.parametrize(
    "row",
    [
        "dots,point,1,3,5,",
        "means,line,1,3,,",
        "means,segment,1,2.8,1,3.2",
        "bars,bar,1,4,0.5,",
        ",image,0.5,1.5,3,",
        ",image,1,2,7,",
        ",arrow,0,1,2,3",
    ],
)
def test_every_kind_of_mark_gives_its_numbers(row):
    """What a reader downloads is what was drawn."""
    *_, (files,) = figures.render(_everything, label="all", alt="All marks.")
    lines = files["csv"].splitlines()
    assert row in lines
    assert any(line.startswith("band,area,") for line in lines)
    assert not any(line.startswith("not data") for line in lines)


def _curves(ax):
    ax.plot([1, 2, 3], [1e-3, 1, 50], label="a longer name")
    ax.set(xlabel="step", ylabel="loss $L_{\\leq 5}$", yscale="log", title="title")
    ax.legend()


def _bar(ax):
    ax.figure.colorbar(ax.pcolormesh(np.arange(12.0).reshape(3, 4)), ax=ax, label="level")


def _twin(ax):
    ax.plot([1, 2])
    ax.twinx().set(ylim=(0, 1e5), ylabel="other")


def _square(ax):
    ax.imshow(np.eye(3))
    ax.inset_axes([0.5, 0.5, 0.4, 0.4]).plot([1, 2])


@pytest.mark.parametrize("panel", [_curves, _bar, _twin, _square])
def test_the_layout_shared_by_both_themes_is_that_of_each(panel):
    """Pixel for pixel, the dark picture is what matplotlib lays out by itself."""
    markup, *_ = figures.render(panel, label="one", alt="A figure.")
    pictures = re.findall(r"base64,([^\"]+)", markup)
    assert len(pictures) == 2
    for theme, found in zip((figures.LIGHT, figures.DARK), pictures):
        with figures.style(theme):
            figure = Figure(figsize=(4.8, 3.6), dpi=150)
            panel(figure.add_subplot())
            own = io.BytesIO()
            figure.savefig(own, format="png")
        ours = imread(io.BytesIO(base64.b64decode(found)))
        np.testing.assert_array_equal(ours, imread(io.BytesIO(own.getvalue())))
