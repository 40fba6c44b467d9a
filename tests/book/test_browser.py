"""The built site in headless Chromium, on screens from a phone to a wide one, light and dark.

Every night it is every page; with each change, one of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from nightly import nightly_but
from pages import open_quietly, without_formulas

from claimbook.run import chapters
from claimbook.site import stage

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Page,
        Request,
        Response,
        ViewportSize,
    )

ROOT = Path(__file__).resolve().parents[2]
PAGES = stage.expected(ROOT)
#: Pages of the reference, all made in the same way, stand for each other on a desk and to axe.
REFERENCE = [name for name in PAGES if name.startswith("book/api/")]
ON_A_DESK = [name for name in PAGES if name not in REFERENCE[3:]]
CHAPTERS = {f"book/{name}" for name in chapters.chapters(ROOT / "book")}
#: The home page, the page of a part, four chapters, tables, a page of the reference, and results.
DAILY = [
    PAGES[0],
    "book/alignment/index",
    "book/alignment/population-matrices",
    "book/catapults/one-example",
    "book/phase-transitions/hessian",
    "book/your-own-model",
    "book/notation",
    REFERENCE[0],
    "book/map",
    "book/resolution",
    "book/errata",
    "book/status",
]
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
#: With each change on the narrow screen alone, which has less room.
SCREENS = nightly_but([(PHONE, "light")], [(PHONE, "light"), (DESKTOP, "dark")])
#: What a slow machine may take to open a page.
PATIENCE = 120_000  # milliseconds


class Visit:
    """An open page and everything that went wrong on it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("requestfailed", lambda request: self.problems.append(f"failed: {request.url}"))
        page.on("response", self._response)
        page.on("request", self._request)
        self._address = address

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.problems.append(f"status {response.status}: {response.url}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self.problems.append(f"external request: {request.url}")

    def open(
        self,
        name: str,
        until: Literal["load", "networkidle"] = "networkidle",
        *,
        typeset: bool = True,
    ) -> None:
        """Go to a page and wait until it is quiet and, unless nobody looks, typeset."""
        if not typeset:
            without_formulas(self.page)
        if until == "load":
            self.page.goto(f"{self._address}/{name}", wait_until="load")
        else:
            open_quietly(self.page, f"{self._address}/{name}")
        if typeset:
            self.page.evaluate("window.MathJax ? MathJax.startup.promise.then(() => true) : true")


@pytest.fixture
def visit(browser: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh browser context; parameters are its size and colour scheme."""
    context = _context(browser, *getattr(request, "param", (DESKTOP, "light")))
    yield Visit(context.new_page(), address)
    context.close()


@pytest.fixture(scope="class")
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """One for the pages that a class looks at: scripts and fonts are loaded once."""
    context = _context(browser, *request.cls.screen)
    yield context
    context.close()


@pytest.fixture
def glance(context: BrowserContext, address: str) -> Iterator[Visit]:
    """A fresh page in the context of the class."""
    page = context.new_page()
    yield Visit(page, address)
    page.close()


def _context(browser: Browser, size: ViewportSize, scheme: Literal["dark", "light"]) -> Any:
    context = browser.new_context(viewport=size, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    return context


def _check(visit: Visit) -> None:
    """Look at a page that is open for what could be wrong with any, but for barriers."""
    page = visit.page
    assert page.locator("main h1").count() >= 1
    assert visit.problems == []
    undescribed = page.locator("main img:not([alt]), main img[alt='']").count()
    assert undescribed == 0
    broken = page.evaluate(
        """async () => {
          const images = [...document.querySelectorAll('main img')];
          for (const image of images) image.loading = 'eager';
          await Promise.all(images.map((image) => image.complete || new Promise((done) => {
            image.onload = image.onerror = done;
          })));
          return images.filter((image) => !image.naturalWidth).map((image) => image.src);
        }"""
    )
    assert broken == []
    # A light figure would glare on a dark page, and both versions must not be shown.
    dark = page.locator("html[data-theme='dark']").count() == 1
    shown, hidden = ("dark", "light") if dark else ("light", "dark")
    assert page.locator(f"main img.only-{hidden}:visible").count() == 0
    pairs = page.locator(f"main img.only-{hidden}").count()
    assert page.locator(f"main img.only-{shown}").count() == pairs
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The article scrolls in a box of its own; it must not overflow that either.
    overflowing = page.evaluate(
        """() => [...document.querySelectorAll('main, .bd-article-container, article')]
          .filter((box) => box.scrollWidth > box.clientWidth + 1)
          .map((box) => box.className)"""
    )
    assert overflowing == []


# Classes, since those of different ones are looked at side by side.
class TestPagesOnADesk:
    """Pages on a dark desktop, without formulas: on a phone they have less room."""

    screen = (DESKTOP, "dark")

    @pytest.mark.parametrize("name", nightly_but(DAILY, ON_A_DESK))
    def test_page_renders(self, glance: Visit, name: str) -> None:
        """A page could fail, fetch from elsewhere, overflow sideways, or be hard to read."""
        glance.open(f"{name}.html", typeset=False)
        _check(glance)
        assert _unreadable(glance.page) == []


class TestPagesOnAPhone:
    """Every page on a light phone."""

    screen = (PHONE, "light")

    @pytest.mark.parametrize("name", nightly_but(DAILY, PAGES))
    def test_page_renders(self, glance: Visit, name: str) -> None:
        """As on a desk; or formulas could be raw, wrong, or too wide.

        Or it could shut somebody out: headings that skip a level, controls without a name, boxes
        that scroll only for a mouse.
        """
        glance.open(f"{name}.html")
        page = glance.page
        formulas = page.locator("main .math").count()
        assert page.locator("main .math mjx-container").count() >= formulas
        assert page.locator("main mjx-merror, main [data-mml-node='merror']").count() == 0
        if name in CHAPTERS:
            assert formulas > 0
        assert page.evaluate("document.querySelector('main').innerText").count("\\(") == 0
        _check(glance)
        if name in ON_A_DESK:
            assert _violations(page) == []


class TestPagesOnATablet:
    """Every page between a phone and a desk."""

    screen = ({"width": 768, "height": 1024}, "dark")

    @pytest.mark.nightly
    @pytest.mark.parametrize("name", PAGES)
    def test_page_renders(self, glance: Visit, name: str) -> None:
        """A page could fit a phone and a desk, and nothing between."""
        glance.open(f"{name}.html")
        _check(glance)


class TestPagesOnAWideScreen:
    """Every page on more room than it needs."""

    screen = ({"width": 1920, "height": 1080}, "light")

    @pytest.mark.nightly
    @pytest.mark.parametrize("name", PAGES)
    def test_page_renders(self, glance: Visit, name: str) -> None:
        """A figure or a table could grow with the screen."""
        glance.open(f"{name}.html", typeset=False)
        _check(glance)


#: Where axe-core looks at each of ten thousand nodes, a page takes ten seconds.
_LIGHTER = """() => {
  for (const code of document.querySelectorAll('main pre')) code.textContent = code.textContent;
  for (const row of document.querySelectorAll('tbody > tr:nth-child(n+40)')) row.remove();
  for (const formula of document.querySelectorAll('mjx-container:not(.wide)'))
    formula.textContent = 'x';
  // What was far from the screen is now nearer, and would be typeset while axe looks.
  for (const text of document.querySelectorAll('.td-tex:not(:has(mjx-container))'))
    text.textContent = 'x';
}"""
#: Parts of code and of formulas.
_PARTS = [["main pre"], ["mjx-container svg"]]
#: What compares a text with its ground, or a link with the text around it.
_LOOKS = ("color-contrast", "link-in-text-block")
#: Marks one visible text of each colour, size, decoration, ground and colour around it.
_ONE_OF_EACH = """() => {
  const grounds = new Map([[null, '']]), seen = new Set();
  const ground = (node) => {
    if (!grounds.has(node)) {
      const {backgroundColor, backgroundImage, opacity} = getComputedStyle(node);
      const own = [backgroundColor, backgroundImage, opacity].join();
      const plain = own === 'rgba(0, 0, 0, 0),none,1';
      grounds.set(node, ground(node.parentElement) + (plain ? '' : `;${own}`));
    }
    return grounds.get(node);
  };
  for (const node of document.body.querySelectorAll(':not(script, style)')) {
    const text = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!text || !node.checkVisibility({visibilityProperty: true})) continue;
    const {color, fontSize, fontWeight, textDecorationLine} = getComputedStyle(node);
    const around = getComputedStyle(node.parentElement).color;
    const look = [color, fontSize, fontWeight, textDecorationLine, ground(node), around].join();
    if (!seen.has(look)) node.setAttribute('data-look', seen.add(look).size);
  }
}"""


def _violations(page: Page) -> list[str]:
    """What axe-core finds on a page, of which less is left afterwards.

    Taken out are thousands of nodes that are all alike: rows of a table from the fortieth
    on, and the parts of code and of what MathJax drew, at which
    `test_accessibility_of_code_and_formulas` looks once.
    """
    page.evaluate(_LIGHTER)
    others = {"rules": {name: {"enabled": False} for name in _LOOKS}}
    return _found(page, {"exclude": _PARTS}, others) + _unreadable(page)


def _unreadable(page: Page) -> list[str]:
    """What axe-core finds too faint; of texts that look the same, it measures the first."""
    page.evaluate(_ONE_OF_EACH)
    first = {"include": [["[data-look]"]], "exclude": _PARTS}
    return _found(page, first, {"runOnly": list(_LOOKS)})


def _found(
    page: Page, nodes: dict[str, Any] | None = None, rules: dict[str, Any] | None = None
) -> list[str]:
    """What axe-core finds on some nodes of a page by some rules; on all by all unless given."""
    options = {"resultTypes": ["violations"], **(rules or {})}
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in Axe().run(page, context=nodes, options=options).response["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("visit", SCREENS, indirect=True)
def test_accessibility_of_code_and_formulas(visit: Visit) -> None:
    """The colours of code, or the drawing of formulas, could be what is not accessible."""
    visit.open("book/lazy-training/beyond.html?code")  # short: axe looks at each node
    assert visit.page.locator(".cell_input").first.is_visible()
    assert _found(visit.page) == []


@pytest.mark.parametrize("visit", [(PHONE, "light")], indirect=True)
def test_barriers_would_be_seen(visit: Visit) -> None:
    """The checks above could pass on anything: here is one barrier of each kind."""
    visit.open("book/errata.html#erratum-bghj-l3-1")
    visit.page.wait_for_selector("mjx-container.wide")
    visit.page.evaluate(
        """() => {
          const formulas = document.querySelectorAll('mjx-container.wide');
          for (const formula of formulas) formula.removeAttribute('tabindex');
          document.querySelector('article').replaceChildren(
            document.querySelector('h1'), formulas[0]);
          document.querySelector('article').insertAdjacentHTML('beforeend',
            `<h6>Skipped</h6><img src="data:,"><select><option>a</option></select>
             <p style="color: #999; background: #fff">grey</p>`)
        }"""
    )
    kinds = {violation.split(":")[0] for violation in _violations(visit.page)}
    wanted = {"heading-order", "image-alt", "select-name", "color-contrast"}
    assert wanted | {"scrollable-region-focusable"} <= kinds


def _background(page: Page) -> float:
    """Mean brightness of the page's background, 0 to 255."""
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [float(c) for c in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return sum(channels) / 3


def test_dark_mode_can_be_switched_on(visit: Visit) -> None:
    """The theme button could do nothing."""
    visit.open(f"{PAGES[0]}.html")
    assert _background(visit.page) > 200
    button = visit.page.locator("button.theme-switch-button:visible").first
    for _ in range(3):
        button.click()
        if visit.page.locator("html[data-theme='dark']").count():
            break
    assert _background(visit.page) < 60
    assert visit.problems == []


def test_search_finds_a_chapter(visit: Visit) -> None:
    """Search could return nothing on a site without a server behind it."""
    visit.open("search.html?q=eigenvectors")
    visit.page.wait_for_selector("#search-results li a", timeout=15_000)
    targets = visit.page.eval_on_selector_all(
        "#search-results li a", "links => links.map((link) => link.getAttribute('href'))"
    )
    assert any(name in target for name in CHAPTERS for target in targets)
    assert visit.problems == []


#: What a reader may ask, and cards one of which has to be among the first three.
QUESTIONS = {
    "(3.3)": ["bgj-e3-3"],
    "delta_NN": ["mw-c1", "mw-c2", "mw-delta-nn-gelu"],
    "δ_NN": ["mw-c1", "mw-c2", "mw-delta-nn-gelu"],
    r"\delta_{\rm NN}": ["mw-c1", "mw-c2", "mw-delta-nn-gelu"],
    "Theorem 2.6": ["bghj-t2-6-w"],
    "Thm 2.6": ["bghj-t2-6-w"],
    "BGJ Theorem 2.2": ["bgj-t2-2"],
    "Figure 4.11": ["zhu-f4-11"],
    "ZHU-T3.3.4": ["zhu-t3-3-4"],
    "spurious fixed points": ["bgj-p4-2", "bgj-p4-2-ring"],
    "edge of stability": ["own-own-model-critical", "zhu-t3-3-4"],
    "grokking": ["mw-c11"],
    "double descent": ["mdl-5-f3-1", "mdl-7-f1-1"],
    "critical step size": ["own-critical-steps", "own-critical-step", "zhu-f4-3"],
    "catapult": ["zhu-f3-1", "own-catapult-peak"],
}
FOUND = "section[aria-labelledby=td-found] li a"


@pytest.mark.parametrize("visit", [(PHONE, "dark"), (DESKTOP, "light")], indirect=True)
def test_search_leads_to_cards(visit: Visit) -> None:
    """A number, a letter or a phrase could be found nowhere, or lead to the top of a page."""
    narrow = visit.page.viewport_size == PHONE
    for question, wanted in QUESTIONS.items() if narrow else [*QUESTIONS.items()][:2]:
        visit.open(f"search.html?q={quote(question)}", until="load")
        links = visit.page.locator(FOUND)
        links.first.wait_for()
        targets = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
        assert len(targets) <= 12
        first = {target.partition("#claim-")[2] for target in targets[:3]}
        assert first & set(wanted), (question, first)
    width = visit.page.viewport_size["width"] if visit.page.viewport_size else 0
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    # By keyboard: what is found is the next thing after the field.
    visit.open(f"search.html?q={quote('BGJ (3.3)')}", until="load")
    visit.page.locator(FOUND).first.wait_for()
    visit.page.focus(".bd-search-container input[name=q]")
    for _ in range(3):
        visit.page.keyboard.press("Tab")
        if visit.page.evaluate(f"document.activeElement.matches('{FOUND}')"):
            break
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**#claim-*")
    card = visit.page.locator(f"#{visit.page.url.partition('#')[2]}")
    card.wait_for()
    assert "td-card" in (card.get_attribute("class") or "")
    # The search of Sphinx warns of places it does not find, and whoever leaves interrupts it.
    kinds = ("error", "status", "external request")
    assert [problem for problem in visit.problems if problem.startswith(kinds)] == []
    visit.page.go_back(wait_until="load")
    visit.page.locator(FOUND).first.wait_for()
    assert _found(visit.page, {"include": [["section[aria-labelledby=td-found]"]]}) == []


def test_search_explains_letters(visit: Visit) -> None:
    """A letter could be found in claims only, and a link to the page of notation be broken."""
    visit.open("search.html?q=delta_NN", until="load")
    visit.page.locator(FOUND, has_text="Notation:").first.click()
    visit.page.wait_for_url("**/book/notation.html#*")
    assert visit.page.locator(f"#{visit.page.url.partition('#')[2]}").count() == 1


def test_search_explains_words(visit: Visit) -> None:
    """Who asks what a word means would read claims that use it; the key OWN is a word too."""
    visit.open("search.html?q=catapult", until="load")
    visit.page.locator(FOUND, has_text="Glossary:").first.click()
    visit.page.wait_for_url("**/book/glossary.html#term-catapult")
    assert visit.page.locator("#term-catapult").count() == 1
    visit.open("search.html?q=own+model", until="load")
    visit.page.locator(FOUND).first.wait_for()
    assert "/your-own-model.html#" in (visit.page.locator(FOUND).first.get_attribute("href") or "")


#: What a reader may ask in other words than the book's, and what has to be among the first three.
WORDS = {
    "waiting time log d": "#claim-own-xor-log-delay",
    "why does learning take log d": "#claim-bghj-t2-6-w",
    "learning rate larger than 2 over curvature": "#claim-own-critical-step",
    "benign overfitting": "/foundations/interpolation.html",
    "double descent peak": "#claim-mdl-5-f3-1",
    "Hessian outliers align": "/alignment/alignment.html",
    "what is false": "/errata.html",
    "counterexample": "/errata.html",
    "cite": "/intro.html#licence-and-citation",
    "install": "/intro.html#run-it-again",
}


@pytest.mark.parametrize("visit", [(DESKTOP, "light")], indirect=True)
def test_search_knows_other_words(visit: Visit) -> None:
    """Who does not know the words of the book could find nothing."""
    for question, wanted in WORDS.items():
        visit.open(f"search.html?q={quote(question)}", until="load")
        links = visit.page.locator(FOUND)
        links.first.wait_for()
        targets = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
        assert any(target.endswith(wanted) for target in targets[:3]), (question, targets[:3])


@pytest.mark.parametrize("visit", [(DESKTOP, "light")], indirect=True)
def test_tools_of_the_book_come_last(visit: Visit) -> None:
    """Who searches the book could be led to the reference of what made it."""
    visit.open("search.html?q=cards")
    visit.page.wait_for_selector("#search-results li a", timeout=15_000)
    targets = visit.page.eval_on_selector_all(
        "#search-results li a", "links => links.map((link) => link.getAttribute('href'))"
    )
    tools = ["/api/claimbook" in target for target in targets]
    assert any(tools) and not all(tools) and tools == sorted(tools)


RESULTS = ("ledger", "statements", "errata", "figures", "panels", "limits")


@pytest.mark.parametrize("visit", SCREENS, indirect=True)
@pytest.mark.parametrize("name", RESULTS)
def test_pages_of_results_are_light(visit: Visit, name: str) -> None:
    """Hundreds of entries could make a page slow, or put what a reader looks for far below."""
    visit.open(f"book/{name}.html", until="load")
    assert visit.page.evaluate("document.querySelectorAll('*').length") < 8000
    folded = visit.page.locator(".td-group, .td-entry").first.bounding_box()
    size = visit.page.viewport_size
    assert folded and size and folded["y"] < 2 * size["height"]


@pytest.mark.parametrize("visit", SCREENS, indirect=True)
@pytest.mark.parametrize(
    "place",
    [
        "ledger.html#claim-bgj-e3-3",
        "ledger.html?verdict=false#claim-bgj-e3-3",
        "statements.html#statement-bgj-theorem-2-2",
        "errata.html#erratum-bghj-l3-1",
        "limits.html#limit-mw-c11",
        "panels.html#panels-zhu-f4-3",
        "figures.html#figure-zhu-f3-1",
        "foundations/random-matrices.html#claim-mdl-6-3-1",
    ],
)
def test_links_open_what_is_folded(visit: Visit, place: str) -> None:
    """A permanent link could lead to something closed, beside it, or to raw formulas."""
    visit.open(f"book/{place}")
    target = visit.page.locator(f"#{place.partition('#')[2]}")
    if target.locator(".td-tex").count():
        target.locator("mjx-container").first.wait_for()
    box, size = target.bounding_box(), visit.page.viewport_size
    assert box and size and -1 <= box["y"] < size["height"] / 2
    assert "\\(" not in target.inner_text()
    assert visit.problems == []
    if size["width"] == PHONE["width"]:
        assert _violations(visit.page) == []


@pytest.mark.parametrize("visit", SCREENS, indirect=True)
@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("errata.html?source=BGJ&verdict=false", ".td-entry[data-source=BGJ][data-verdict=false]"),
        ("figures.html?source=MW&words=hessian", ".td-figures > li[data-source=MW]"),
        ("ledger.html?order=verdict&source=BGJ&verdict=partial", ".td-claims > li"),
        ("ledger.html?order=chapter", ".td-group > summary"),
    ],
)
def test_pages_of_results_can_be_narrowed(visit: Visit, place: str, shown: str) -> None:
    """A filter could find nothing, leave empty headings, or shut somebody out."""
    page = visit.page
    visit.open(f"book/{place}")
    said = page.locator("#td-count").inner_text().split()
    found = page.locator(f"main {shown}:visible")
    if "order=chapter" in place:  # one group for each
        wanted = page.locator("select[name=chapter] > option").count() - 1
    else:
        wanted = int(said[0])
        assert wanted < int(said[2])
    assert found.count() == wanted > 1
    empty = page.evaluate(
        """() => [...document.querySelectorAll('main section')].filter((section) => {
          const rows = [...section.querySelectorAll('[data-text]')];
          return rows.length && section.checkVisibility() && rows.every((row) => row.hidden);
        }).map((section) => section.id)"""
    )
    assert empty == []
    assert visit.problems == []
    assert _violations(page) == []


#: Pages that a phone shows as lists of sections, and one of these sections.
FOLDED = {
    "intro": "what-a-verdict-means",
    "notation": "training",
    "map": "false-statements-that-others-rest-on",
    "resolution": "the-weakest-checks",
    "errata": "slips",
    "limits": "needs-data-that-are-not-shipped",
    "performance": "catapults",
    "breakdown": "the-quick-book",
    "glossary": "c-to-d",
    "status": "run-times",
}


@pytest.mark.parametrize("visit", [(PHONE, "light")], indirect=True)
@pytest.mark.parametrize("name", nightly_but(["intro", "limits"], FOLDED))
def test_a_phone_folds_sections(visit: Visit, name: str) -> None:
    """A page could be ten screens long on a phone, or a link lead to something closed."""
    page = visit.page
    visit.open(f"book/{name}.html")
    height = page.evaluate("document.querySelector('article').offsetHeight")
    assert height <= 6 * PHONE["height"]
    section = page.locator(f"section#{FOLDED[name]}")
    closed = section.bounding_box()
    assert closed and closed["height"] < 150
    summary = section.locator("summary", has=page.locator("h2"))
    summary.focus()
    page.keyboard.press("Enter")
    opened = section.bounding_box()
    assert opened and opened["height"] > closed["height"] + 60
    assert visit.problems == []
    page.goto("about:blank")
    visit.open(f"book/{name}.html#{FOLDED[name]}")
    assert section.locator("details.td-section").get_attribute("open") is not None
    place = section.bounding_box()
    assert place and -1 <= place["y"] < PHONE["height"] / 2
    assert _violations(page) == []


@pytest.mark.parametrize("name", nightly_but(["intro", "limits"], FOLDED))
def test_sections_are_open_on_a_desk_and_on_paper(
    visit: Visit, browser: Browser, address: str, name: str
) -> None:
    """What a phone folds could be closed elsewhere, and missing in print."""
    visit.open(f"book/{name}.html", until="load")
    assert visit.page.locator(".td-section").count() == 0
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.goto(f"{address}/book/{name}.html")
    assert page.locator(".td-section:not([open])").count() > 0
    page.pdf()
    assert page.locator(".td-section:not([open])").count() == 0
    context.close()


@pytest.mark.parametrize("visit", [(PHONE, "light")], indirect=True)
def test_a_phone_opens_the_chosen_statement(visit: Visit) -> None:
    """The address of one statement's view could lead to a folded graph."""
    visit.open("book/map.html?focus=BGHJ-Theorem-2.6")
    form = visit.page.locator("#td-map-form")
    assert form.is_visible()
    assert visit.page.locator(".td-map .td-focus").count() == 1
    assert visit.page.locator(".td-map .td-focus").is_visible()
    # What explains the marks is folded, so that the graph begins on the first screen.
    assert visit.page.locator(".td-legend:visible").count() == 0
    box = visit.page.locator(".td-map:visible").bounding_box()
    assert box and box["y"] < 0.8 * PHONE["height"]
    visit.page.locator(".td-marks > summary").click()
    assert visit.page.locator(".td-legend:visible").count() == 2
    assert _violations(visit.page) == []


@pytest.mark.parametrize("name", RESULTS)
def test_results_can_be_read_without_a_script(browser: Browser, address: str, name: str) -> None:
    """What is folded could stay closed where no script runs."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/book/{name}.html")
    folded = page.locator(".td-group, .td-entry").first
    closed = len(folded.inner_text())
    folded.locator("summary").first.click()
    assert len(folded.inner_text()) > closed + 100
    context.close()


@pytest.mark.parametrize("visit", [(PHONE, "light")], indirect=True)
def test_brackets_stay_with_their_formulas(visit: Visit) -> None:
    """A line could end with a bracket that opens before a formula, or begin with a full stop."""
    visit.open(f"{min(CHAPTERS)}.html")
    apart = visit.page.evaluate(
        """() => [...document.querySelectorAll('article p > span.math')]
          .filter((formula) => formula.querySelector(':scope > mjx-container:not([display])'))
          .filter(({previousSibling: before, nextSibling: after}) =>
            before?.nodeType === Node.TEXT_NODE && before.data.endsWith('(')
            || after?.nodeType === Node.TEXT_NODE && after.data.startsWith('.'))
          .map((formula) => formula.parentElement.textContent)"""
    )
    assert apart == []
    together = visit.page.locator(".td-together").all_text_contents()
    assert any(text.startswith("(") for text in together)


def test_buttons_of_a_chapter(visit: Visit) -> None:
    """Download, launch, previous or next could be missing or not work."""
    name = sorted(CHAPTERS)[0]
    visit.open(f"{name}.html")
    page = visit.page
    assert page.locator(".dropdown-launch-buttons a[href*='mybinder.org']").count() == 1
    assert page.locator("a.left-prev").count() + page.locator("a.right-next").count() == 2
    page.locator("button[aria-label='Download this page']").click()
    with page.expect_download() as download:
        page.locator(".dropdown-download-buttons a[href$='.ipynb']").click()
    assert download.value.suggested_filename == f"{name.rsplit('/', 1)[-1]}.ipynb"


@pytest.mark.parametrize("visit", SCREENS, indirect=True)
def test_code_is_folded_until_asked_for(visit: Visit) -> None:
    """A chapter could be a test file with prose between the cells, or lose its code."""
    visit.open(f"{min(CHAPTERS)}.html")
    page = visit.page
    code, outputs = page.locator(".cell_input:visible"), page.locator(".cell_output:visible")
    results = outputs.count()
    assert code.count() == 0 and results > 0
    one = page.locator(".td-one-code").first
    one.focus()
    page.keyboard.press("Enter")
    assert one.get_attribute("aria-expanded") == "true" and code.count() > 0
    page.get_by_role("button", name="Show code").click()
    assert page.url.endswith("?code")
    assert page.locator(".cell_input:not(.above-input .cell_input):visible").count() > 10
    cut = page.locator(".cell_input pre:visible").evaluate_all(
        "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length"
    )
    assert cut == 0
    assert outputs.count() == results
    page.goto(page.url.removesuffix("?code"))
    page.wait_for_load_state("networkidle")
    assert page.get_by_role("button", name="Hide code").count() == 1, "the choice is kept"
    assert visit.problems == []


@pytest.mark.parametrize("visit", SCREENS, indirect=True)
def test_a_figure_leads_to_its_code(visit: Visit) -> None:
    """What draws a figure could be three screens above it, or stay folded."""
    name = f"{min(CHAPTERS)}.html"
    visit.open(name)
    page = visit.page
    links = page.locator(".td-to-code:visible")
    assert links.count() > 1
    figure = links.last.evaluate("link => link.closest('figure').id")
    cell = page.locator(f".cell:has(#{figure})")
    assert page.locator(".cell_input:visible").count() == 0
    links.last.focus()
    page.keyboard.press("Enter")
    code = cell.locator(".cell_input")
    box, size = code.bounding_box(), page.viewport_size
    assert code.is_visible() and box and size and -1 <= box["y"] < size["height"] / 2
    shown = page.locator(".cell_input:visible").count()
    assert shown < page.locator(".cell_input").count()
    # As an address it shows all code, for the others too.
    address = links.last.get_attribute("href")
    page.goto("about:blank")
    visit.open(f"{name}{address}")
    assert code.is_visible() or cell.locator("details.above-input").is_visible()
    assert page.locator(".cell_input:visible").count() > shown
    assert visit.problems == []


def test_home_page_opens_from_the_root(visit: Visit) -> None:
    """The address without a page name could show nothing."""
    visit.open("")
    visit.page.wait_for_url(f"**/{PAGES[0]}.html")
    assert visit.problems == []


def test_site_works_from_a_folder(browser: Browser, site: Path) -> None:
    """Opened as files, without any server, mathematics or styles could be missing."""
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    outside: list[str] = []
    page.on(
        "request",
        lambda request: (
            outside.append(request.url) if not request.url.startswith(("file:", "data:")) else None
        ),
    )
    page.goto((site / f"{sorted(CHAPTERS)[0]}.html").as_uri())
    page.wait_for_selector("main mjx-container", state="attached", timeout=30_000)
    assert outside == []
    context.close()


def test_overflow_and_missing_files_would_be_seen(browser: Browser, address: str) -> None:
    """The checks above could pass on anything: here is a page that must fail each of them.

    Without the policy of the site, which refuses requests to others before they are made.
    """
    context = browser.new_context(viewport=DESKTOP, bypass_csp=True)
    visit = Visit(context.new_page(), address)
    visit.open(f"{PAGES[0]}.html")
    visit.page.evaluate(
        """() => {
          document.querySelector('article').insertAdjacentHTML('beforeend',
            '<div style="width:3000px">wide</div><img src="absent.png">');
          return fetch('http://127.0.0.2:9/').catch(() => console.error('refused'));
        }"""
    )
    visit.page.wait_for_timeout(300)
    kinds = {problem.split(":")[0] for problem in visit.problems}
    assert {"status 404", "external request", "console"} <= kinds
    assert visit.page.evaluate(
        """[...document.querySelectorAll('html, main, .bd-article-container, article')]
          .some((box) => box.scrollWidth > box.clientWidth + 1)"""
    )
    context.close()
