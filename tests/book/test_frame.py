"""The frame of the built book: pages of the parts, glossary, descriptions, page 404, print."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from nightly import nightly_but
from pages import open_quietly, without_formulas

from claimbook.pages.parts import anchor
from claimbook.registry import load_registry
from claimbook.run import chapters
from claimbook.site import stage

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
PAGES = stage.expected(ROOT)
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
#: Chapters of each part, by the page that opens it.
PARTS = {
    entry["file"]: list(stage.listed(entry["sections"]))
    for part in TOC["parts"]
    for entry in part["chapters"]
    if "sections" in entry and "/api/" not in entry["file"]
}
BASE = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))["html"]["baseurl"]
#: What a link to a card says of its claim.
SAID = {"false as stated": "false", "misprinted": "corrected", "confirmed": "confirmed"}


def article(site: Path, name: str) -> str:
    """The text of a page, without side bars."""
    html = (site / f"{name}.html").read_text(encoding="utf8")
    return html[html.index("<article") : html.index("</article>")]


# ----------------------------------------------------------------------------- the parts


def test_every_chapter_belongs_to_a_part() -> None:
    """A chapter could be missing from all pages of the parts."""
    listed = [name for chosen in PARTS.values() for name in chosen]
    assert len(listed) == len(set(listed))
    have = {f"book/{name}" for name in chapters.chapters(BOOK)}
    assert have - set(listed) == {"book/your-own-model", "book/your-own-network"}


@pytest.mark.parametrize("part", PARTS)
def test_page_of_a_part_leads_to_its_chapters(site: Path, part: str) -> None:
    """A part could be opened by a page that leaves out one of its chapters."""
    targets = {
        (site / part).parent.joinpath(urlsplit(link).path).resolve()
        for link in re.findall(r'<a [^>]*href="([^"#:]+)"', article(site, part))
    }
    missing = [n for n in PARTS[part] if (site / f"{n}.html").resolve() not in targets]
    assert missing == []


def claims_named(page: Path) -> list[tuple[str, str]]:
    """Links of a source page to cards: the place and the words."""
    text = " ".join(page.read_text(encoding="utf8").split())
    return re.findall(r'<a href="[^"]*#(claim-[^"]*)">([^<]*)</a>', text)


@pytest.mark.parametrize("name", [n for n in PAGES if n in PARTS or n == TOC["root"]])
def test_words_of_a_link_are_the_verdict(name: str) -> None:
    """A page could call a claim false that is not, or lead to the card of another."""
    claims = load_registry(BOOK / "claims.toml").claims.values()
    findings = {anchor("claim", claim.id): claim.finding for claim in claims}
    named = claims_named(ROOT / f"{name}.md")
    assert len(named) >= 3
    assert [place for place, _ in named if place not in findings] == []
    wrong = [
        (place, words)
        for place, words in named
        if findings[place] != SAID.get(words.lower(), findings[place])
    ]
    assert wrong == []


def test_wrong_word_of_a_link_would_be_seen(tmp_path: Path) -> None:
    """The comparison above could read no link at all."""
    page = tmp_path / "page.md"
    page.write_text('It is <a\nhref="a.html#claim-x">false\nas stated</a>.', encoding="utf8")
    assert claims_named(page) == [("claim-x", "false as stated")]


def test_numbers_of_runs_are_not_typed() -> None:
    """A count of claims could be typed by hand and drift from the ledger."""
    for name in PARTS:
        text = (ROOT / f"{name}.md").read_text(encoding="utf8")
        assert "{{ found_" in text, name
        assert not re.search(r"\b\d+ (claims|misprint|false|confirmed|partial)", text), name


def test_breadcrumbs_lead_to_the_part(site: Path) -> None:
    """A reader who comes from a search engine could not see where a chapter belongs."""
    for part, its in PARTS.items():
        for name in its:
            html = (site / f"{name}.html").read_text(encoding="utf8")
            crumbs = html[html.index("bd-breadcrumbs") :]
            links = re.findall(r'href="([^"]+)"', crumbs[: crumbs.index("</ul>")])
            assert [(site / name).parent.joinpath(link).resolve() for link in links] == [
                (site / f"{target}.html").resolve() for target in (TOC["root"], part)
            ]


# -------------------------------------------------------------------------- the glossary


def defined() -> list[str]:
    """Terms of the glossary, as written."""
    text = (BOOK / "glossary.md").read_text(encoding="utf8")
    blocks = re.findall(r"^```\{glossary\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).splitlines()
    return [line for line in lines if line and not line.startswith((" ", ":"))]


def test_terms_are_shown_in_order(site: Path) -> None:
    """A term could be lost, stand twice, or be out of order."""
    html = article(site, "book/glossary")
    shown = re.findall(r'<dt id="term-[^"]*">(.*?)<a class="headerlink"', html)
    terms = [unescape(re.sub(r"<[^>]+>", "", term)) for term in shown]
    assert sorted(terms, key=str.lower) == terms
    assert sorted(terms) == sorted(defined())
    assert len({term.lower() for term in terms}) == len(terms)


def test_definitions_lead_to_pages(site: Path) -> None:
    """A definition could be empty, or leave the reader without a place to go on."""
    html = article(site, "book/glossary")
    definitions = re.findall(r"<dd>(.*?)</dd>", html, re.DOTALL)
    assert len(definitions) == len(defined())
    for definition in definitions:
        assert re.search(r'<a class="reference internal" href="[^#"]+"', definition), definition
        assert len(re.sub(r"<[^>]+>", "", definition).split()) >= 10, definition


def test_terms_that_pages_use_are_defined() -> None:
    """A page could use a term that is not there (Sphinx stops then, but only at a build)."""
    known = {term.lower() for term in defined()}
    for page in BOOK.rglob("*.md"):
        for used in re.findall(r"\{term\}`([^`]*)`", page.read_text(encoding="utf8")):
            named = re.sub(r".*<(.*)>", r"\1", " ".join(used.split())).lower()
            assert named in known, (page, used)


# ---------------------------------------------------------- what pages say of themselves


def head(site: Path, name: str) -> dict[str, list[str]]:
    """Content of the tags ``meta`` of a page, by name or property."""
    html = (site / f"{name}.html").read_text(encoding="utf8")
    found: dict[str, list[str]] = {}
    for key, text in re.findall(r'<meta (?:name|property)="([^"]*)" content="([^"]*)"', html):
        found.setdefault(key, []).append(unescape(text))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_page_describes_itself(site: Path, name: str) -> None:
    """A link to a page could be shown without title, words or picture, or with raw formulas."""
    tags = head(site, name)
    (words,) = tags["description"]
    assert 40 <= len(words) <= 202
    assert not re.search(r"[\\$]", words), words
    assert tags["og:description"] == [words]
    (title,) = tags["og:title"]
    assert title and not re.search(r"[\\$]", title)
    (image,), (address,) = tags["og:image"], tags["og:url"]
    assert image.startswith(BASE) and (site / image.removeprefix(BASE)).is_file()
    assert address == f"{BASE}{name}.html"


def test_descriptions_differ(site: Path) -> None:
    """All pages could have the words of one."""
    words = [head(site, name)["description"][0] for name in PAGES]
    assert len(set(words)) >= 0.9 * len(words)


def test_root_of_the_site_has_the_card(site: Path) -> None:
    """The address that people send leads on to the home page and would say nothing itself."""
    assert head(site, "index")["og:title"] == head(site, TOC["root"])["og:title"]


def test_base_is_the_address_of_the_repository() -> None:
    """The pages could claim to be published elsewhere than the workflow puts them."""
    url = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))["repository"]["url"]
    owner, name = urlsplit(url).path.strip("/").split("/")
    assert BASE == f"https://{owner}.github.io/{name}/"


# ------------------------------------------------------------------------- the page 404


@pytest.fixture
def published(site: Path, tmp_path: Path) -> Iterator[str]:
    """Address of a server that serves the site below its base, and 404.html for the rest."""
    folder = urlsplit(BASE).path.strip("/")
    (tmp_path / folder).symlink_to(site)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            pass

        def send_error(self, code: int, *_: object, **__: object) -> None:
            body = (site / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{folder}"
        server.shutdown()


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["absent.html", "book/a/b/c.html"])
def test_absent_page_works_at_any_depth(browser: Browser, published: str, place: str) -> None:
    """Styles, scripts or links of the page could be looked for where it is not."""
    context = browser.new_context()
    page = context.new_page()
    failed: list[str] = []
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)
    open_quietly(page, f"{published}/{place}")
    assert failed == [f"{published}/{place}"]
    assert "no such page" in page.locator("article h1").inner_text()
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
    page.locator("article a", has_text="home page").click()
    page.wait_for_url(f"{published}/{TOC['root']}.html")
    open_quietly(page, f"{published}/{place}")
    page.locator(".bd-sidebar-primary button.search-button-field").click()
    page.locator("#pst-search-dialog input[type=search]").fill("catapult")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{published}/search.html?q=catapult*")
    context.close()


def test_absent_page_works_under_its_name(browser: Browser, address: str) -> None:
    """Seen on another server than the one of the base, it could be without styles."""
    page = browser.new_page()
    failed: list[str] = []
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)
    open_quietly(page, f"{address}/404.html")
    assert page.locator("article h1").evaluate("h => getComputedStyle(h).fontSize") != "32px"
    page.locator("article a", has_text="home page").click()
    page.wait_for_url(f"{address}/{TOC['root']}.html")
    # The browser looks ahead, and asks for the base before the page has done without it.
    assert [url for url in failed if not url.startswith(address + urlsplit(BASE).path)] == []
    page.close()


# ------------------------------------------------------------------------------- print

#: A4 without margins of 10 mm, in pixels of CSS.
PAPER = {"width": 718, "height": 1047}
PRINTED = [
    TOC["root"],
    "book/alignment/index",
    "book/alignment/alignment",
    "book/effective-dynamics/pca",
    "book/notation",
    "book/errata",
    "book/glossary",
    "book/api/traindyn.laws",
    "book/map",
    "book/panels",
    "book/limits",
    "book/status",
]
#: Elements that reach beyond the paper, but those that a reader cannot see.
BEYOND = """() => {
  const width = document.documentElement.clientWidth;
  return [...document.querySelectorAll('article *')]
    .filter((each) => !each.closest('svg, mjx-assistive-mml, .sr-only, .visually-hidden'))
    .filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > width + 1)
    .map((each) => `${each.tagName}.${each.className} ${each.textContent.slice(0, 40)}`)
}"""


def on_paper(browser: Browser, address: str, name: str, *, formulas: bool = True) -> Page:
    """A page as it is printed by a reader who has chosen dark mode and to see code."""
    context = browser.new_context(viewport=PAPER, color_scheme="dark")
    if not formulas:
        without_formulas(context)
    context.set_default_timeout(120_000)  # a slow machine takes its time
    page = context.new_page()
    open_quietly(page, f"{address}/{name}.html?code")
    page.evaluate("window.MathJax ? MathJax.startup.promise.then(() => true) : true")
    page.emulate_media(media="print", color_scheme="dark")
    return page


@pytest.mark.parametrize("name", nightly_but(PRINTED[2:5], PRINTED))
def test_nothing_is_cut_on_paper(browser: Browser, address: str, name: str) -> None:
    """Code, tables, formulas or figures could leave the paper, or be lost in a box that scrolls."""
    page = on_paper(browser, address, name)
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]
    assert page.evaluate(BEYOND) == []
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('article pre, article .td-scroll,'
            + 'article .pst-scrollable-table-container, article .cell_output, article .td-map,'
            + 'article .td-entry > summary')]
          .filter((box) => box.checkVisibility() && (box.scrollWidth > box.clientWidth + 1
            || box.scrollHeight > box.clientHeight + 1 && box.matches('summary')))
          .map((box) => box.className + box.textContent.slice(0, 60))"""
    )
    assert boxes == []
    page.context.close()


@pytest.mark.parametrize("name", [*PRINTED[:4], "book/status"])
def test_paper_is_light_and_has_the_article_alone(
    browser: Browser, address: str, name: str
) -> None:
    """A dark page could be printed black, with side bars, buttons and dark figures."""
    page = on_paper(browser, address, name, formulas=False)
    gone = ".bd-sidebar-primary, .bd-sidebar-secondary, .td-one-code, .td-all-code, .copybtn"
    gone += ", .prev-next-area, .bd-header-article, .headerlink, img.only-dark"
    assert page.locator(gone).locator("visible=true").count() == 0
    if page.locator("img.only-light").count():
        assert page.locator("img.only-light").locator("visible=true").count() > 0
    colours = page.evaluate(
        """() => [document.body, document.querySelector('article p')]
          .map((each) => getComputedStyle(each))
          .map((style) => [style.backgroundColor, style.color])"""
    )
    assert colours[0][0] in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert colours[1][1] == "rgb(0, 0, 0)"
    links = page.locator("article a[href]:not(.td-node)").locator("visible=true")
    inks = links.evaluate_all("(links) => links.map((link) => getComputedStyle(link).color)")
    assert set(inks) <= {"rgb(0, 66, 122)"}
    page.context.close()


def test_what_is_cut_would_be_seen(browser: Browser, address: str) -> None:
    """The checks above could pass on anything."""
    page = on_paper(browser, address, PRINTED[1])
    page.evaluate(
        """document.querySelector('article').insertAdjacentHTML('beforeend',
          '<p style="width:900px">wide</p>')"""
    )
    assert any(found.startswith("P.") for found in page.evaluate(BEYOND))
    page.context.close()
