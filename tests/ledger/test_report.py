"""The ledger's pages, built by Jupyter Book and opened in a browser."""

import json
import re
import shutil
from pathlib import Path

import pytest

from traindyn.book import stage
from traindyn.ledger import MIME, ClaimError, build, write_pages
from traindyn.ledger.render import badge
from traindyn.ledger.verdict import Record

ROOT = Path(__file__).parents[2]
PAGES = ("ledger", "errata", "figures")


@pytest.fixture
def ledger(claims, executed, tmp_path):
    """Path of a built ledger."""
    path = tmp_path / "ledger.json"
    build(claims, executed, profile="quick", seed=1, out=path)
    return path


def add_badges(folder):
    """Put the HTML of the badges into notebooks made without a kernel."""
    for path in folder.rglob("*.ipynb"):
        content = json.loads(path.read_text())
        for cell in content["cells"]:
            for output in cell.get("outputs", []):
                if MIME in output["data"]:
                    output["data"]["text/html"] = badge(Record.from_json(output["data"][MIME]))
                else:
                    output["data"]["text/html"] = '<img alt="shown" src="data:image/png;base64,">'
        path.write_text(json.dumps(content))


@pytest.fixture
def site(ledger, executed, tmp_path):
    """Build the pages and the two chapters with the book's own configuration."""
    folder = tmp_path / "stage"
    shutil.copytree(ROOT / "book" / "_static", folder / "book" / "_static")
    shutil.copy(ROOT / "_config.yml", folder)
    (folder / "book" / "references.bib").write_text("")
    chapters = ("alignment/matrices", "alignment/alignment")
    toc = "".join(f"  - file: book/{name}\n" for name in (*PAGES, *chapters))
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/intro\nchapters:\n{toc}")
    (folder / "book" / "intro.md").write_text(
        "# Start\n\n{ref}`claim-bghj-t2-3`\n".replace(
            "{ref}`claim-bghj-t2-3`", "{ref}`a verdict <claim-bghj-t2-3>`"
        )
    )
    add_badges(executed)
    shutil.copytree(executed, folder / "book", dirs_exist_ok=True)
    write_pages(ledger, folder / "book")
    # Raises on any warning: unknown targets, missing images, wrong nesting.
    return stage.build(folder, tmp_path / "site.log") / "book"


def test_pages_build_and_work(site):
    """Warnings of the build, missing pages, unescaped text, anything from the network."""
    for name in PAGES:
        assert (site / f"{name}.html").is_file()
    text = (site / "figures.html").read_text(encoding="utf-8")
    assert 'alt="A blue: picture [of] $x$"' in text
    assert "&lt;brackets&gt;" in _main((site / "ledger.html").read_text(encoding="utf-8"))
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', _main(text))


def _main(html):
    """Return the article of a page, without what the theme adds around it."""
    return html[html.index("<article") : html.index("</article>")]


def test_pages_work_in_a_browser(site, browser):
    """A filter that does nothing, hidden evidence, console errors, a phone that scrolls."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    url = f"{(site / 'ledger.html').as_uri()}"
    page.goto(url)
    visible = page.locator("#td-ledger > tbody > tr:visible")
    count = page.locator("#td-count")
    assert visible.count() == 4 and count.inner_text() == "4 of 4 claims"
    page.select_option("select[name=verdict]", "refuted")
    assert visible.count() == 1 and "OWN-rank" in visible.inner_text()
    page.select_option("select[name=source]", "BGHJ")
    assert visible.count() == 0 and count.inner_text() == "0 of 4 claims"
    page.select_option("select[name=verdict]", "")
    page.select_option("select[name=chapter]", "alignment/alignment")
    assert visible.count() == 2
    page.fill("input[name=text]", "FIGURE time")
    assert visible.count() == 1 and "BGHJ-F2.1" in visible.inner_text()
    # A link to a claim clears the filter and opens the row's evidence.
    page.goto(f"{url}#claim-bghj-t2-3")
    page.wait_for_selector("#td-ledger details[open]")
    assert visible.count() == 4
    assert "closed form <b> against quadrature" in page.locator("details[open]").inner_text()
    page.wait_for_selector("#td-ledger mjx-container")
    page.set_viewport_size({"width": 390, "height": 800})
    for name in (*PAGES, "alignment/alignment"):
        page.goto((site / f"{name}.html").as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
        page.wait_for_timeout(300)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{name} is {width} px wide"
    page.close()
    # The theme says this on everybody's first visit.
    assert not [line for line in errors if "invalid theme mode" not in line]


def test_errata_show_both_formulas_and_the_deciding_number(ledger, tmp_path):
    """An erratum without the number that rejects the printed formula is an opinion."""
    write_pages(ledger, tmp_path / "pages")
    text = (tmp_path / "pages" / "errata.md").read_text(encoding="utf-8")
    assert r"\Phi_{bc} = \mathbb{E}[\pi_b\pi_c]" in text
    assert r"\Phi_{bc} = -\mathbb{E}[\pi_b\pi_c]" in text
    assert "the rank is $k^2$" in text and "A counter-example." in text
    assert "as printed (sign as printed) <strong>\N{MINUS SIGN}1</strong>, expected 1" in text
    assert "BGHJ-T2.3" not in text
    assert text.index("## Corrected") < text.index("## Refuted")


def test_errata_are_ordered_by_weight(ledger, tmp_path):
    """What matters most must come first, whatever its place in the registry."""
    content = json.loads(ledger.read_text(encoding="utf-8"))
    for claim in content["claims"]:
        claim["verdict"] = "corrected"
    ledger.write_text(json.dumps(content), encoding="utf-8")
    write_pages(ledger, tmp_path / "pages")
    text = (tmp_path / "pages" / "errata.md").read_text(encoding="utf-8")
    assert text.index("### OWN, Rank") < text.index("### BGHJ, Lemma 3.1")
    assert text.index("### BGHJ, Lemma 3.1") < text.index("### BGHJ, Theorem 2.3")


def test_empty_pages_say_so(claims, tmp_path, notebook, good):
    """A book without errata and figures must still have the pages its contents list."""
    from traindyn.ledger import Chapter

    text = claims.read_text(encoding="utf-8").split("[[claim]]")
    claims.write_text("[[claim]]" + text[2], encoding="utf-8")
    chapter = Chapter("alignment/alignment", profile="quick", seed=1, claims=claims)
    record = chapter.claim("BGHJ-T2.3", good())
    notebook(tmp_path / "notebooks", chapter.name, [record.to_json()])
    out = tmp_path / "ledger.json"
    build(claims, tmp_path / "notebooks", profile="quick", seed=1, out=out)
    write_pages(out, tmp_path / "pages")
    for name in ("errata", "figures"):
        assert "None." in (tmp_path / "pages" / f"{name}.md").read_text()


def test_thumbnails_are_small(ledger, tmp_path):
    """The page of figures must not load every figure at full size."""
    from PIL import Image

    write_pages(ledger, tmp_path / "pages")
    (path,) = (tmp_path / "pages" / "thumbnails").iterdir()
    with Image.open(path) as image:
        assert image.size == (640, 360)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "cannot read the ledger"),
        (lambda path: path.write_text("{"), "cannot read the ledger"),
        (lambda path: path.write_text("{}"), "is a required property"),
        (lambda path: shutil.rmtree(path.parent / "figures"), "figure 'alignment over time'"),
    ],
)
def test_unusable_ledgers_are_refused(ledger, tmp_path, change, message):
    """Half a ledger must not become half a book."""
    change(ledger)
    with pytest.raises(ClaimError, match=message):
        write_pages(ledger, tmp_path / "pages")
