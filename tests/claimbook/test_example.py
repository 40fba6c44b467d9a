"""A second, tiny book: claimbook makes a companion to a paper that is not about training."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[1] / "example"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Build the example in a folder of its own, by the commands of its README."""
    place = tmp_path_factory.mktemp("example") / "book"
    shutil.copytree(EXAMPLE, place)
    mathjax = EXAMPLE.parents[1] / "book" / "_static" / "mathjax"
    shutil.copytree(mathjax, place / "book" / "_static" / "mathjax")
    block = re.findall(r"^    (.*)$", (place / "README.md").read_text("utf8"), re.MULTILINE)
    for command in "\n".join(block).replace("\\\n", "").splitlines():
        program, *arguments = command.split()
        assert program == "python"
        done = subprocess.run(
            [sys.executable, *arguments], cwd=place, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return place / "build"


def test_each_claim_of_the_example_has_its_verdict(folder):
    """Two statements hold, the misprint is found by the check that our formula passes."""
    ledger = json.loads((folder / "ledger.json").read_text("utf8"))
    verdicts = {claim["id"]: claim["verdict"] for claim in ledger["claims"]}
    assert verdicts == {
        "EULER-T1": "confirmed",
        "EULER-E2": "corrected",
        "EULER-F1": "confirmed",
    }
    assert [figure["label"] for figure in ledger["figures"]] == ["shares"]


def test_site_of_the_example_shows_them(folder):
    """The home page counts the claims, the chapter shows its figure and the errata the misprint."""
    html = folder / "html" / "book"
    assert "3 claims" in (html / "intro.html").read_text("utf8")
    page = (html / "numbers" / "squares.html").read_text("utf8")
    assert "<strong>Figure 1</strong> (EULER, Figure 1). The share settles" in page
    assert "EULER-E2" in (html / "errata.html").read_text("utf8")


def test_cards_of_the_example_show_the_statement(folder):
    """A badge says that something holds, and not what."""
    html = folder / "html" / "book"
    chapter = (html / "numbers" / "squares.html").read_text("utf8")
    card = chapter[chapter.index('id="claim-euler-e2"') :]
    card = card[: card.index("</details>")]
    for words in ("misprint, corrected", "Printed:", "Tested:", "check", "exclude"):
        assert words in card, words
    assert 'href="numbers/squares.html#claim-euler-e2"' in (html / "ledger.html").read_text("utf8")


def test_map_of_the_example_leads_from_one_statement_to_another(folder):
    """What a proof uses could stand in the registry and nowhere else."""
    html = folder / "html" / "book"
    text = (html / "map.html").read_text("utf8")
    card = 'href="numbers/squares.html#claim-euler-'
    assert text.count(f'<a class="td-node td-is-confirmed" data-node="EULER-Theorem-1" {card}') == 1
    assert 'data-from="EULER-Theorem-1" data-to="EULER-Equation-2"' in text
    assert "through a misprint whose corrected form was tested: Equation 2" in text
    assert "No statement rests on a false one." in text
    chapter = (html / "numbers" / "squares.html").read_text("utf8")
    shown = chapter[chapter.index('id="claim-euler-t1"') :]
    shown = shown[: shown.index('id="claim-euler-e2"')]
    assert 'Rests on:</em> <a href="#claim-euler-e2">Equation 2</a>' in shown
    assert 'Used by:</em> <a href="#claim-euler-f1">Figure 1</a>' in shown
    assert 'href="../map.html?focus=EULER-Theorem-1&amp;way=both"' in shown


def test_pages_of_the_example_load_style_and_filter(folder):
    """The configuration of a book does not name them; its pages would be bare lists."""
    text = (folder / "html" / "book" / "ledger.html").read_text("utf8")
    static = r"\.\./_static/{}(\?v=\w+)?"
    assert re.search(f'<link [^>]*href="{static.format("claimbook.css")}"', text)
    for name in ("ledger.js", "map.js", "search.js"):
        assert re.search(f'<script defer="defer" src="{static.format(name)}"', text)
    for name in ("claimbook.css", "claims-index.js", "ledger.js", "map.js", "search.js"):
        assert (folder / "html" / "_static" / name).is_file()


def test_claimbook_stands_alone():
    """No module of the package imports the library of this book."""
    library = EXAMPLE.parents[1] / "lib" / "claimbook"
    found = [
        path.name
        for path in library.rglob("*.py")
        if re.search(r"^\s*(from|import) (traindyn|companion)", path.read_text("utf8"), re.M)
    ]
    assert not found
