"""The ledger's pages, built by Jupyter Book and opened in a browser."""

import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from claimbook import ClaimError, report
from claimbook.collect import build
from claimbook.pages import parts
from claimbook.report import write_pages
from claimbook.run import stamps
from claimbook.site import cards, links, stage

ROOT = Path(__file__).parents[2]
PAGES = report.PAGES


@pytest.fixture
def ledger(claims, executed, tmp_path):
    """Path of a built ledger."""
    path = tmp_path / "ledger.json"
    build(claims, executed, profile="quick", seed=1, out=path)
    return path


def add_cards(folder, ledger):
    """Put the cards into notebooks made without a kernel."""
    claims = {claim["id"]: claim for claim in json.loads(ledger.read_text("utf8"))["claims"]}
    for path in folder.rglob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        cards.put(notebook, claims, {})
        nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where the site is built, once for all tests that look at it."""
    return tmp_path_factory.mktemp("site")


@pytest.fixture
def site(ledger, executed, place):
    """Build the pages and the two chapters with the book's own configuration."""
    folder, html = place / "stage", place / "html"
    if html.is_dir():
        return html / "book"
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
    shutil.copytree(executed, folder / "book", dirs_exist_ok=True)
    add_cards(folder / "book", ledger)
    write_pages(ledger, folder / "book")
    # Raises on any warning: unknown targets, missing images, wrong nesting.
    return stage.build(folder, place / "site.log").rename(html) / "book"


def test_pages_build_and_work(site):
    """Warnings of the build, missing pages, unescaped text, anything from the network."""
    for name in PAGES:
        assert (site / f"{name}.html").is_file()
    text = (site / "figures.html").read_text(encoding="utf-8")
    assert text.count('alt="A blue: picture [of] $x$"') == 2  # one for each theme
    assert text.count('loading="lazy"') == 2
    assert "&lt;brackets&gt;" in _main((site / "ledger.html").read_text(encoding="utf-8"))
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?:', _main(text))
    assert links.check(site.parent) == []


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
    rows = page.locator("li[data-text]")
    visible = page.locator("li[data-text]:visible")
    count = page.locator("#td-count")
    # The sources are folded until one of them, or the filter, is asked.
    assert rows.count() == 4 and visible.count() == 0 and count.inner_text() == "4 of 4 claims"
    page.get_by_text("A paper with x in its title 3 claims").click()
    assert visible.count() == 3
    page.wait_for_selector("#claim-bghj-l3-1 mjx-container")
    page.select_option("select[name=verdict]", "false")
    assert visible.count() == 1 and "OWN-rank" in visible.inner_text()
    page.select_option("select[name=source]", "BGHJ")
    assert visible.count() == 0 and count.inner_text() == "0 of 4 claims"
    page.select_option("select[name=verdict]", "")
    page.select_option("select[name=chapter]", "alignment/alignment")
    assert visible.count() == 2
    page.fill("input[name=words]", "FIGURE time")
    assert visible.count() == 1 and "BGHJ-F2.1" in visible.inner_text()
    # The address holds the choice: opened anew, the page shows the same rows.
    chosen = page.url
    assert "chapter=alignment%2Falignment" in chosen and "verdict" not in chosen
    page.goto("about:blank")
    page.goto(chosen)
    assert visible.count() == 1 and page.input_value("input[name=words]") == "FIGURE time"
    page.click("button[type=reset]")
    page.wait_for_url(lambda address: "?" not in address)
    assert visible.count() == 0 and count.inner_text() == "4 of 4 claims"
    # A choice that does not exist chooses nothing.
    page.goto(f"{url}?verdict=likely")
    assert count.inner_text() == "4 of 4 claims" and page.input_value("select[name=verdict]") == ""
    # A number of the overview leads to the claims it counts.
    page.get_by_role("row", name="OWN").get_by_role("link").first.click()
    page.wait_for_url("**?source=OWN#td-filter")
    page.get_by_text("1 of 4 claims").wait_for()
    assert "OWN-rank" in visible.inner_text()
    # In another order: the same claims, put together anew; a link to one of its groups undoes it.
    page.goto(f"{url}?order=verdict")
    groups = page.locator(".td-group:visible > summary")
    assert groups.all_inner_texts() == [
        *("confirmed 1 claim", "misprint, corrected 1 claim"),
        *("false as stated 1 claim", "partial 1 claim"),
    ]
    groups.first.click()
    assert visible.count() == 1 and "BGHJ-T2.3" in visible.inner_text()
    page.select_option("select[name=source]", "OWN")
    assert groups.all_inner_texts() == ["false as stated 1 of 1 claim"]
    page.focus("select[name=order]")
    page.keyboard.type("by chap")
    assert groups.all_inner_texts() == ["alignment/alignment 1 of 3 claims"]
    assert page.url.endswith("?source=OWN&order=chapter")
    page.click("button[type=reset]")
    page.wait_for_url(lambda address: "?" not in address)
    assert groups.all_inner_texts() == [
        "BGHJ A paper with x in its title 3 claims",
        "OWN 1 claim",
    ]
    ids = "rows => rows.map((row) => row.id)"
    assert rows.evaluate_all(ids)[:2] == ["claim-bghj-l3-1", "claim-bghj-t2-3"]
    page.goto("about:blank")
    page.goto(f"{url}?order=verdict#claims-own")
    assert visible.count() == 1 and "OWN-rank" in visible.inner_text()
    # Errata and pictures are narrowed in the same way.
    page.goto((site / "errata.html").as_uri())
    errata = page.locator(".td-entry:visible")
    assert errata.count() == 2 and count.inner_text() == "2 of 2 errata"
    page.select_option("select[name=source]", "OWN")
    assert errata.count() == 1 and count.inner_text() == "1 of 2 errata"
    assert page.locator("main h2:visible").all_inner_texts() == ["False as stated"]
    page.goto("about:blank")
    page.goto(f"{(site / 'errata.html').as_uri()}?source=OWN#erratum-bghj-l3-1")
    page.wait_for_selector("#erratum-bghj-l3-1[open]")
    page.goto(f"{(site / 'errata.html').as_uri()}?words=counter-example")
    assert errata.count() == 1 and "OWN" in errata.inner_text()
    page.goto(f"{(site / 'figures.html').as_uri()}?verdict=partial")
    assert count.inner_text() == "1 of 1 pictures" and page.locator("main img:visible").count() == 1
    page.fill("input[name=words]", "green")
    assert count.inner_text() == "0 of 1 pictures"
    assert page.locator("main h2:visible").count() == 0
    page.fill("input[name=words]", "blue")
    assert page.locator("main img:visible").count() == 1
    # By keyboard alone: to the first field, choose, go on to the claim and to its card.
    page.goto(url)
    page.focus("select[name=source]")
    page.keyboard.press("Tab")
    page.keyboard.type("misp")
    assert count.inner_text() == "1 of 4 claims"
    focused = "document.activeElement.textContent"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "Lemma 3.1":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/alignment/matrices.html#claim-bghj-l3-1")
    # A link to a claim that the filter hides clears it and opens its source.
    page.goto("about:blank")
    page.goto(f"{url}?verdict=false#claim-bghj-l3-1")
    page.wait_for_selector("#claim-bghj-l3-1 mjx-container")
    assert visible.count() == 3 and count.inner_text() == "4 of 4 claims"
    # A link to an erratum opens it, and one to the figures of a source shows them.
    page.goto((site / "errata.html").as_uri())
    assert page.locator("#erratum-own-rank").inner_text() == "OWN, Rank A counter-example."
    page.goto(f"{(site / 'errata.html').as_uri()}#erratum-bghj-l3-1")
    page.wait_for_selector("#erratum-bghj-l3-1[open] .td-printed mjx-container")
    page.goto(f"{(site / 'figures.html').as_uri()}#figures-bghj")
    page.wait_for_selector("#figures-bghj-figures-and-tables[open]")
    assert page.locator("main img:visible").count() == 1
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


def test_map_works_in_a_browser(site, browser):
    """A view that cannot be kept, boxes out of the reach of the keyboard, nothing unscripted."""
    url = (site / "map.html").as_uri()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    boxes = page.locator(".td-map .td-node:visible")
    lines = page.locator(".td-map .td-line:not(.td-hidden)")
    assert boxes.count() == 3 and lines.count() == 2
    page.select_option("select[name=focus]", "BGHJ-Lemma-3.1")
    assert boxes.count() == 2 and lines.count() == 1
    assert page.locator("#td-map-count").inner_text() == "2 statements"
    assert page.url.endswith("?focus=BGHJ-Lemma-3.1&way=down")
    page.select_option("select[name=way]", "up")
    assert boxes.evaluate_all("found => found.map((box) => box.dataset.node)") == [
        "BGHJ-Lemma-3.1",
        "BGHJ-Theorem-2.3",
    ]
    # The address holds the choice; what is not there is not chosen.
    page.goto(f"{url}?focus=BGHJ-Theorem-2.3&depth=1&way=down")
    assert boxes.count() == 2 and page.input_value("select[name=depth]") == "1"
    page.goto(f"{url}?focus=BGHJ-Theorem-9&depth=7")
    assert boxes.count() == 3 and page.input_value("select[name=focus]") == ""
    page.goto(f"{url}?focus=BGHJ-Theorem-2.3")
    page.click("#td-map-form button[type=reset]")
    page.wait_for_url(lambda address: "?" not in address)
    assert boxes.count() == 3
    # By keyboard to a box, and on to the card of its statement.
    page.focus("#td-map-form button")
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.node") == "BGHJ-Theorem-2.3":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/alignment/alignment.html#claim-bghj-t2-3")
    page.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    assert page.locator(".td-map .td-node:visible").count() == 3
    assert not page.locator("#td-map-form").is_visible()
    assert page.locator(".td-legend:visible").count() == 2
    for name, shown in (("ledger", "li[data-text]"), ("errata", ".td-entry")):
        page.goto((site / f"{name}.html").as_uri())
        page.locator("summary").first.click()
        assert not page.locator(".td-filter").is_visible()
        assert page.locator(shown).count() == page.locator(f"{shown}:not([hidden])").count() > 1
    context.close()
    assert not errors


@pytest.fixture
def written(ledger, tmp_path):
    """Write the pages of a ledger, changed on the way, and return their texts by name."""

    def write(change=None):
        content = json.loads(ledger.read_text(encoding="utf-8"))
        if change:
            change(content)
            ledger.write_text(json.dumps(content), encoding="utf-8")
        paths = write_pages(ledger, tmp_path / "pages")
        return {path.stem: path.read_text(encoding="utf-8") for path in paths}

    return write


def test_errata_show_both_formulas_and_the_deciding_number(written):
    """An erratum without the number that rejects the printed formula is an opinion."""
    text = written()["errata"]
    assert r"\Phi_{bc} = \mathbb{E}[\pi_b\pi_c]" in text
    assert r"\Phi_{bc} = -\mathbb{E}[\pi_b\pi_c]" in text
    assert r"the rank is \(k^2\)" in text and "A counter-example." in text
    assert (
        text.count("<em>False as stated.</em> ") == 1
        and "False as stated.</em> The rank is at most" in text
    )
    assert "as printed (sign as printed) <strong>\N{MINUS SIGN}1</strong>, expected 1" in text
    assert "BGHJ-T2.3" not in text


def headings(text):
    """Headings of a page, in order."""
    return re.findall(r"^#+ (.*)$", text, re.MULTILINE)


def entries(text):
    """Headings of a page and what is folded under them, in order."""
    return [
        heading or folded
        for heading, folded in re.findall(
            r"^#+ (.*)$|<summary><strong>(.*?)</strong>", text, re.MULTILINE
        )
    ]


def test_errata_are_ordered_by_how_much_they_matter(written):
    """What changes a conclusion must come first, and among equals a theorem before a caption."""
    titles = [title for title, _ in parts.ERRATA.values()]
    false, number, slip = titles
    assert entries(written()["errata"]) == ["Errata", false, "OWN, Rank", number, "BGHJ, Lemma 3.1"]

    def change(content):
        matters = {"OWN-rank": "slip", "BGHJ-F2.1": "number", "BGHJ-T2.3": "number"}
        for claim in content["claims"]:
            claim["verdict"] = "corrected"
            claim["matters"] = matters.get(claim["id"], "number")

    assert entries(written(change)["errata"]) == [
        "Errata",
        number,
        "BGHJ, Theorem 2.3",
        "BGHJ, Lemma 3.1",
        "BGHJ, Figure 2.1",
        slip,
        "OWN, Rank",
    ]


def test_figures_follow_the_numbers_of_their_source(written):
    """Figure 10 could stand before Figure 9, or a figure under another source."""

    def change(content):
        (shown,) = (claim for claim in content["claims"] if claim["figure"])
        for index, number in enumerate(("Figure B.1", "Figure 10", "Figure 9", "Lemma 1")):
            kind = "figure" if number.startswith("F") else "theorem"
            extra = {"id": f"BGHJ-X{index}", "number": number, "kind": kind}
            content["claims"].append({**shown, **extra})
        content["claims"].append({**shown, "id": "OWN-F1", "source": "OWN"})

    text = written(change)["figures"]
    assert re.findall(r"^\*\*(.*?)\*\*", text, re.MULTILINE) == [
        "Figure 2.1",
        "Figure 9",
        "Figure 10",
        "Figure B.1",
        "Lemma 1",
        "Figure 2.1",
    ]
    assert headings(text) == [
        "Figures",
        "BGHJ",
        "OWN",
    ]
    assert re.findall(r"<summary>(.*)</summary>", text) == [
        '<strong>BGHJ</strong> figures and tables <span class="td-number">4</span>',
        '<strong>BGHJ</strong> other statements <span class="td-number">1</span>',
        '<strong>OWN</strong> figures and tables <span class="td-number">1</span>',
    ]
    assert text.index("(figures-bghj)=") < text.index("Figure 9") < text.index("(figures-own)=")


def test_errors_are_added_up_by_source(written):
    """The budget could leave out a source, or add up to something else."""

    def change(content):
        for claim in content["claims"]:
            for item in claim["evidence"]:
                item["false_alarm"] = 3e-5 if claim["source"] == "BGHJ" else 2e-5
                item["false_pass"] = 1e-6
                item["sampling"] = "random"

    text = written(change)["ledger"]
    rows = re.findall(r'<th scope="row">(\w+)</th>(.*?)</tr>', text)
    cells = {name: re.findall(r"<td>(.*?)</td>", row) for name, row in rows}
    assert list(cells) == ["BGHJ", "OWN", "all"]
    ends = {name: row[-4:] for name, row in cells.items()}
    assert ends == {
        "BGHJ": ["4", "4", "0.00012", "4e\N{MINUS SIGN}6"],
        "OWN": ["1", "1", "2e\N{MINUS SIGN}5", "1e\N{MINUS SIGN}6"],
        "all": ["5", "5", "0.00014", "5e\N{MINUS SIGN}6"],
    }
    assert 'href="?source=BGHJ&amp;verdict=corrected#td-filter">1</a>' in cells["BGHJ"][2]
    assert "exceeds 0.05 fails" in text


def test_limits_say_why_and_what_would_settle(written):
    """A claim could be given up without saying what is missing."""
    text = written()["limits"]
    assert headings(text)[:3] == [
        "What could not be reproduced, and why",
        "Holds in part",
        "BGHJ: holds in part",
    ]
    assert "<em>Why.</em> Only for \\(\\alpha \\ge 40\\)." in text
    assert "<em>What would settle it.</em> The number of samples." in text
    assert "BGHJ-T2.3" not in text and "OWN-rank" not in text
    assert '<a href="panels.html#panels-bghj-f2-1">2 panels: 1 confirmed, 1 open</a>' in text
    assert "*Source:* $d=1000$\n\n</td><td>\n\n*Ours:* $d=500$" in text

    def change(content):
        content["claims"][2]["verdict"] = "data"
        content["smaller"] = []

    text = written(change)["limits"]
    assert "Holds in part" not in text and "Needs data" in text
    assert "below those of the source" not in text


def test_panels_say_what_ran_and_what_was_found(written):
    """A figure could be called by the verdict of one of its panels."""
    text = written()["panels"]
    cells = "<td>1</td>" + 4 * "<td>0</td>" + "<td>1</td><td>2</td>"
    assert f'<th scope="row">BGHJ</th>{cells}' in text
    assert "Figure 2.1" in text and "2 panels: 1 confirmed, 1 open" in text
    assert "<em>Source:</em> Dimension \\(1000\\), ten" in text
    assert "<em>Here:</em> not run" in text and "Theorem 2.3" not in text
    text = written(lambda content: content["claims"][2].pop("panels"))["panels"]
    assert "None." in text


def test_status_tells_the_build_apart(written):
    """A reader could not know what was run, where, and for how long."""

    def change(content):
        content["chapters"][0]["seconds"] = 4.26
        content["chapters"][1]["seconds"] = 3700.0
        content["commit"] = "0123456789abcdef-dirty"
        content["environment"]["memory_gib"] = 7.5

    text = written(change)["status"]
    assert "2 panels: 1 confirmed, 1 open" in text
    assert "`0123456789ab-dirty`" in text and "7.5 GiB" in text
    assert "2 chapters, 1 h 1 min one after the other; the longest is" in text
    assert text.index("1 h 1 min\n") < text.index("  - 4.3 s\n")
    assert "4, with 5 checks" in text and "at most 1e\N{MINUS SIGN}6" in text
    assert "No chapter has been run with other seeds." in text
    assert "* - numpy\n  - " in text


def test_status_shows_the_runs_with_other_seeds(claims, ledger, tmp_path):
    """Failures could be expected by nobody and shown nowhere."""
    tally = {"digest": "0", "seeds": [1, 2], "expected": 1e-4, "moved": []}
    tally["failed"] = {"BGHJ-T2.3: mean": [2]}
    tally["library"] = {"2": stamps.library("", tmp_path / "lib")}
    (tmp_path / "book" / "alignment").mkdir(parents=True)
    (tmp_path / "book" / "alignment" / "alignment.md").write_text("# Nothing to run\n")
    (tmp_path / "book" / "seeds.json").write_text(json.dumps({"alignment/alignment": tally}))
    shutil.copy(claims, tmp_path / "book" / "claims.toml")
    write_pages(ledger, tmp_path / "pages", root=tmp_path)
    text = (tmp_path / "pages" / "status.md").read_text(encoding="utf-8")
    assert "2 runs of chapters, 1 failures of checks, expected at most 0.0001" in text
    assert "add up to at most 5e\N{MINUS SIGN}5, at seed 2;" in text
    assert "at this seed, 5e\N{MINUS SIGN}5 at the worst of those below\n" in text
    assert (
        "  - 1, 2\n  - 1\n  - 0.0001\n  - 1, earlier 1\n" in text
        and "BGHJ-T2.3: mean, at 2" in text
    )


def test_resolution_sorts_the_weakest_first(written):
    """A coarse check could be hidden among fine ones, or a far control go unnamed."""

    def change(content):
        item = content["claims"][1]["evidence"][1]
        for index, resolution in enumerate((0.2, 0.6)):
            coarse = {**item, "expected": 1.0, "scale": 1.0, "check": f"c{index}"}
            coarse["resolution"] = resolution
            content["claims"][1]["evidence"].append(coarse)
        exponent = {**item, "departure": "exponent", "resolution": 0.25, "check": "slope"}
        content["claims"][1]["evidence"].append(exponent)

    text = written(change)["resolution"]
    assert text.index("<td>c1</td>") < text.index("<td>c0</td>")
    assert "<td>c0</td><td>a departure of 20 %, from 1</td>" in text
    assert "<td>c1</td><td>a departure of 0.6, from 1</td>" in text
    assert "<td>slope</td><td>an exponent off by 0.25</td>" in text
    assert "<td>slope</td><td>5: 20</td>" in text and "<td>c1</td><td>5:" not in text


def test_numbers_for_other_pages(ledger):
    """Home could show counts that are not those of the ledger."""
    content = report.read_ledger(ledger)
    numbers = report.substitutions(content)
    assert {name: int(numbers[name]) for name in content["counts"]} == content["counts"]
    expected = {"claims": "4", "checks": "5", "chapters": "2", "figures": "1", "minutes": "2"}
    expected |= {"errata": "2", "falsehoods": "1", "numbers": "1", "slips": "0", "limits": "1"}
    assert expected.items() <= numbers.items()
    assert '<a href="ledger.html?verdict=false">1 false as stated</a>' in numbers["verdicts"]
    assert "want of data" not in numbers["verdicts"]
    folders = {claim["chapter"].rpartition("/")[0] for claim in content["claims"]} - {""}
    found = {name: text for name, text in numbers.items() if name.startswith("found_")}
    assert found.keys() == {f"found_{folder.replace('-', '_')}" for folder in folders}
    counts = [int(text.split(" claim", 1)[0]) for text in found.values()]
    assert sum(counts) == sum("/" in claim["chapter"] for claim in content["claims"]) > 0
    content["counts"]["data"] = 7
    assert "7 undecided for want of data" in report.substitutions(content)["verdicts"]


def test_empty_pages_say_so(claims, tmp_path, notebook, good):
    """A book without errata and figures must still have the pages its contents list."""
    from claimbook import Chapter

    text = claims.read_text(encoding="utf-8").split("[[claim]]")
    claims.write_text("[[claim]]" + text[2], encoding="utf-8")
    chapter = Chapter("alignment/alignment", profile="quick", seed=1, claims=claims)
    record = chapter.claim("BGHJ-T2.3", good())
    notebook(tmp_path / "notebooks", chapter.name, [record.to_json()])
    out = tmp_path / "ledger.json"
    build(claims, tmp_path / "notebooks", profile="quick", seed=1, out=out)
    write_pages(out, tmp_path / "pages")
    for name in ("errata", "figures", "limits"):
        assert "None." in (tmp_path / "pages" / f"{name}.md").read_text()


def test_thumbnails_are_small_and_fit_both_themes(ledger, tmp_path):
    """The page of figures must not load every figure at full size, or glare on a dark page."""
    from PIL import Image

    write_pages(ledger, tmp_path / "pages")
    name = "alignment--alignment--alignment-over-time.webp"
    brightness = {}
    for theme in ("light", "dark"):
        with Image.open(tmp_path / "pages" / "thumbnails" / theme / name) as image:
            assert image.size == (480, 270)
            brightness[theme] = image.convert("L").getpixel((9, 9))
    assert brightness["dark"] < 50 < 200 < brightness["light"]


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
