"""Figures with parameters in the built site: keyboard, themes, no network, no script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from nightly import nightly_but
from pages import without_formulas

from traindyn import interactive

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, ViewportSize

#: Where such figures are: page, label of the figure.
FIGURES = {
    "book/intro": "moving-catapult",
    "book/foundations/double-descent": "moving-descent",
    "book/effective-dynamics/pca": "moving-plane",
    "book/alignment/alignment": "moving-alignment",
    "book/alignment/beyond": "moving-bulk",
    "book/effective-dynamics/binary-mixture": "moving-circles",
    "book/catapults/one-example": "moving-catapult",
    "book/catapults/beyond": "moving-fate",
    "book/phase-transitions/hessian": "moving-spectrum",
    "book/phase-transitions/grokking": "moving-delay",
    "book/phase-transitions/thresholds": "moving-threshold",
    "book/attention/particles": "moving-tokens",
}
#: Three of them, for what the script does in the same way with each.
SOME = ("book/intro", "book/effective-dynamics/pca", "book/attention/particles")
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


class Figure:
    """A figure of a page that is open, and what the browser asked for and complained about."""

    def __init__(self, page: Page, where: Path, label: str) -> None:
        self.page, self.folder = page, where.parent
        self.requests: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                self.problems.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.goto(where.as_uri())
        self.box = page.locator(f".interactive-figure[aria-label='{label}']")

    def wait(self) -> Figure:
        """Bring it near the screen and wait until it is drawn."""
        self.box.scroll_into_view_if_needed()
        self.box.locator(".traindyn-picture svg").wait_for(timeout=30_000)
        return self

    @property
    def inputs(self) -> Locator:
        """Sliders and lists."""
        return self.box.locator(".traindyn-inputs").locator("input, select")

    @property
    def reading(self) -> str:
        """The sentence below it."""
        return self.box.locator(".traindyn-reading").inner_text()

    def marks(self) -> str:
        """Everything drawn but axes and legends: the shapes of all marks."""
        shapes = self.box.locator(".traindyn-picture").evaluate(
            """(picture) => [...picture.querySelectorAll('[class^="mark-"]')]
              .filter((group) => !group.closest('.role-axis, .role-legend')
                && !group.matches('.mark-group'))
              .map((group) => group.innerHTML)"""
        )
        return "\n".join(shapes)

    def source(self) -> dict[str, Any]:
        """Specification and themes, as they stand beside the pictures."""
        return dict(json.loads(self.specification().partition(" = ")[2].rstrip(";\n")))

    def specification(self) -> str:
        """The file that holds them."""
        address = self.box.locator("template").get_attribute("data-specification") or ""
        return (self.folder / address).read_text(encoding="utf8")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """The page that a test names."""
    return str(request.param)


@pytest.fixture
def opened(
    browser: Browser, site: Path, name: str, request: pytest.FixtureRequest
) -> Iterator[Figure]:
    """The figure, opened as a file and offline; parameters are options of the browser."""
    yield from _open(browser, site, name, **getattr(request, "param", {}))


@pytest.fixture(scope="module", params=FIGURES)
def shown(browser: Browser, site: Path, request: pytest.FixtureRequest) -> Iterator[Figure]:
    """The figure of each page in turn, opened once for all tests that move nothing but it."""
    yield from _open(browser, site, request.param)


def _open(browser: Browser, site: Path, name: str, **options: Any) -> Iterator[Figure]:
    usual: dict[str, Any] = {"viewport": DESKTOP, "color_scheme": "light", "offline": True}
    context = browser.new_context(**usual | options)
    without_formulas(context)
    yield Figure(context.new_page(), site / f"{name}.html", FIGURES[name])
    context.close()


def contrast(colours: list[str]) -> float:
    """Contrast of two colours as the browser writes them, ``rgb(0, 0, 0)`` (WCAG)."""
    shades = []
    for colour in colours:
        parts = [float(each) / 255 for each in re.findall(r"[\d.]+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        shades.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(shades) + 0.05) / (min(shades) + 0.05)


def test_every_such_figure_is_tested(site: Path) -> None:
    """A page could get a figure that the tests below do not know."""
    pages = {
        path.relative_to(site).with_suffix("").as_posix(): text
        for path in (site / "book").rglob("*.html")
        if 'class="interactive-figure"' in (text := path.read_text(encoding="utf8"))
    }
    assert set(pages) == set(FIGURES)
    for page, label in FIGURES.items():
        assert re.findall(r'class="interactive-figure"[^>]*aria-label="([^"]*)"', pages[page]) == [
            label
        ]


def test_the_keyboard_moves_it(shown: Figure) -> None:
    """An arrow key could do nothing, or the picture not be the one of the new value."""
    figure = shown.wait()
    source = figure.source()
    bound = [each for each in source["spec"]["params"] if "bind" in each]
    readings = next(p for p in source["spec"]["params"] if p["name"] == "readings")["value"]
    assert figure.inputs.count() == len(bound)
    for index, parameter in enumerate(bound):
        one = figure.inputs.nth(index)
        one.focus()
        before, said, value = figure.marks(), figure.reading, one.input_value()
        figure.page.keyboard.press("Shift")
        figure.page.wait_for_timeout(150)
        assert figure.marks() == before
        figure.page.keyboard.press("ArrowUp")
        figure.page.wait_for_function(
            "([box, said]) => box.querySelector('.traindyn-reading').innerText !== said",
            arg=[figure.box.element_handle(), said],
        )
        assert one.input_value() != value, parameter["name"]
        assert figure.marks() != before, parameter["name"]
        assert one.evaluate("(input) => input === document.activeElement")
        # Vega writes into the label as well.
        beside = one.evaluate("(input) => input.labels[0].querySelectorAll('span')[1]?.innerText")
        assert (beside or "") in (one.get_attribute("aria-valuetext") or "")
        chosen = [each.input_value() for each in figure.inputs.all()]
        key = "|".join(f"{float(each):.10g}" for each in chosen)
        # A hyphen before a number is printed as a minus sign.
        assert figure.reading == re.sub(r"(?<![\w)])-(?=\d)", "−", readings[key])
    assert figure.problems == []


def test_labels_are_printed_as_a_reader_writes(shown: Figure) -> None:
    """Logarithms, hyphens and underscores could be left where a number and its letter belong."""
    figure = shown.wait()
    for one in figure.inputs.all():
        label, *value = one.evaluate(
            "(input) => [...input.labels[0].querySelectorAll('span')].map((box) => box.innerText)"
        )
        assert "log" not in label and "_" not in label
        assert not any("-" in each for each in value)
        if value and one.get_attribute("type") == "range":
            assert value[0] in (one.get_attribute("aria-valuetext") or "")
        one.focus()
        figure.page.keyboard.press("Home")
        assert not re.search(r"log|_|-\d", figure.reading)
    drawn = figure.box.locator(".traindyn-picture svg text").all_text_contents()
    assert drawn and not [text for text in drawn if re.search(r"_\w", text)]


@pytest.mark.parametrize("name", SOME, indirect=True)
def test_it_needs_no_network(opened: Figure) -> None:
    """A script or a font could come from elsewhere, or the page be too heavy."""
    figure = opened.wait()
    assert [url for url in figure.requests if not url.startswith(("file:", "data:"))] == []
    assert any(url.endswith("/_static/vega.js") for url in figure.requests)
    source = json.dumps(figure.source(), ensure_ascii=False, separators=(",", ":"))
    assert len(source.encode()) <= interactive.MOST_BYTES
    assert figure.box.locator(".traindyn-figure img:visible").count() == 0
    assert figure.problems == []


@pytest.mark.parametrize("name", SOME, indirect=True)
@pytest.mark.parametrize("opened", [{"java_script_enabled": False}], indirect=True)
def test_without_a_script_it_stands_still(opened: Figure) -> None:
    """The page could be left without a picture."""
    images = opened.box.locator("img.only-light")
    assert images.count() >= 1
    assert all(image.is_visible() for image in images.all())
    assert opened.inputs.count() == 0
    assert "vega.js" not in "".join(opened.requests)


@pytest.mark.parametrize("name", SOME, indirect=True)
def test_it_stands_still_when_vega_does_not_come_and_on_paper(
    browser: Browser, site: Path, name: str
) -> None:
    """The still version could be hidden for good."""
    context = browser.new_context(viewport=DESKTOP, color_scheme="light")
    without_formulas(context)
    page = context.new_page()
    page.route("**/vega.js", lambda route: route.abort())
    figure = Figure(page, site / f"{name}.html", FIGURES[name])
    still = figure.box.locator("img.only-light")
    assert all(image.is_visible() for image in still.all())
    page.unroute_all()
    page.reload()
    figure.wait()
    assert not any(image.is_visible() for image in still.all())
    page.emulate_media(media="print")
    assert all(image.is_visible() for image in still.all())
    assert not figure.box.locator(".traindyn-picture").is_visible()
    context.close()


def test_text_can_be_read_and_inputs_be_hit(shown: Figure) -> None:
    """Text of the other theme, inputs too small for a thumb, or a chart wider than the page."""
    _check_reading(shown.wait())


@pytest.mark.parametrize("name", nightly_but(SOME, FIGURES), indirect=True)
@pytest.mark.parametrize(
    "opened", [{"color_scheme": "dark", "viewport": PHONE}], indirect=True, ids=["phone-dark"]
)
def test_the_same_on_a_dark_phone(opened: Figure) -> None:
    """The other theme and a narrow page could be what fails."""
    _check_reading(opened.wait())


def _check_reading(figure: Figure) -> None:
    ground = figure.page.evaluate("getComputedStyle(document.body).backgroundColor")
    texts = figure.box.locator("svg text").evaluate_all(
        "(texts) => [...new Set(texts.map((text) => getComputedStyle(text).fill))]"
    )
    assert texts
    assert min(contrast([ground, colour]) for colour in texts) >= 7
    assert contrast([ground, ground]) == 1
    for one in figure.inputs.all():
        size = one.bounding_box()
        assert size is not None
        assert size["height"] >= 44 and size["width"] >= 100
        label = one.evaluate("(input) => input.labels[0].querySelector('span').innerText")
        assert label.strip()
    wide = "(box) => [box.querySelector('.traindyn-drawn').scrollWidth, box.clientWidth]"
    drawn, room = figure.box.evaluate(wide)
    assert drawn <= room


@pytest.mark.parametrize("name", SOME, indirect=True)
def test_the_theme_can_be_changed_and_the_choice_stays(opened: Figure) -> None:
    """Switching to dark could leave black text, or undo what the reader has chosen."""
    figure = opened.wait()
    one = figure.inputs.first
    one.focus()
    figure.page.keyboard.press("ArrowUp")
    value, light = one.input_value(), figure.source()["themes"]["light"]["axis"]["labelColor"]
    fill = "(text) => getComputedStyle(text).fill"
    before = figure.box.locator("svg text").first.evaluate(fill)
    figure.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    figure.page.wait_for_function(
        f"([box, before]) => ({fill})(box.querySelector('svg text')) !== before",
        arg=[figure.box.element_handle(), before],
    )
    assert light == "#1a1a1a"
    ground = figure.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert contrast([ground, figure.box.locator("svg text").first.evaluate(fill)]) >= 7
    assert contrast([ground, before]) < 2
    assert figure.inputs.first.input_value() == value
    assert figure.problems == []


@pytest.mark.parametrize("name", ["book/attention/particles"], indirect=True)
def test_vega_waits_for_the_figure(opened: Figure) -> None:
    """A reader of the first lines could load a megabyte for a figure far below."""
    opened.page.wait_for_load_state("load")
    opened.page.wait_for_timeout(300)
    assert not any("vega" in url for url in opened.requests)
    assert opened.box.locator(".traindyn-drawn").count() == 0
    opened.wait()
    assert any(url.endswith("/_static/vega.js") for url in opened.requests)
    assert opened.problems == []


def test_other_pages_do_not_fetch_vega(browser: Browser, site: Path) -> None:
    """A page without such a figure could load a megabyte for nothing."""
    context = browser.new_context()
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / "book" / "notation.html").as_uri())
    page.wait_for_load_state("networkidle")
    assert any(url.split("?")[0].endswith("/interactive.js") for url in requests)
    assert not any("vega" in url for url in requests)
    context.close()
