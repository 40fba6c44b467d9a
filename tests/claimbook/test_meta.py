"""What pages say of themselves, and figures that two pages show."""

import json

import pytest
from docutils import nodes
from docutils.utils import new_document

from claimbook.registry import ClaimError
from claimbook.site import meta, reuse


def document(*children):
    """Return a document with these children."""
    made = new_document("page")
    made.extend(children)
    return made


def paragraph(*parts):
    """Return a paragraph of strings and nodes."""
    made = nodes.paragraph()
    made.extend(nodes.Text(part) if isinstance(part, str) else part for part in parts)
    return made


def test_description_is_the_first_paragraph_that_says_something():
    """A count, a table or a mark of the bibliography could stand for the page."""
    table = nodes.table()
    table += paragraph("A cell of a table that is long enough to be taken for prose.")
    said = paragraph(
        "Every class lives in the span of ",
        nodes.math(text=r"\mu_1,\dots,\mu_k"),
        " ",
        nodes.inline("", "", nodes.Text("["), nodes.reference(text="BGHJ"), nodes.Text("]")),
        nodes.raw("", "<b>", format="html"),
        ".",
    )
    made = document(paragraph("Short."), table, said, paragraph("x" * 50))
    made[2][3].clear()
    made[2][3] += nodes.Text("[BGHJ]")
    assert meta.describe(made) == "Every class lives in the span of μ_1,…,μ_k."
    assert meta.describe(document(paragraph("Short."))) == ""


def test_long_description_ends_at_a_word():
    """What is cut off could end within a word, or be longer than what is shown of it."""
    text = meta.describe(document(paragraph("several words, " * 40)))
    assert len(text) <= 202 and text.endswith((" words …", " several …"))


@pytest.fixture
def book(tmp_path):
    """Return a folder with a staged chapter that has one figure."""
    image = '<img alt="Figure 3, panel 2, described below" src="../../_static/figures/a.webp">'
    lines = ['<figure class="td-figure" id="figure-one">', "<div class='interactive-figure'>"]
    lines += [f"{image}</div>", "<figcaption><strong>Figure 3</strong>. It moves.</figcaption>"]
    output = {
        "output_type": "display_data",
        "data": {"text/markdown": "\n".join([*lines, "</figure>"])},
        "metadata": {"claimbook": {"figure": "one", "alt": 'A "curve".'}},
    }
    (tmp_path / "a").mkdir()
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": [output]}]
    (tmp_path / "a" / "b.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf8")
    return tmp_path


def test_page_shows_the_figure_of_a_chapter(book):
    """The place could stay empty, files be looked for elsewhere, or the caption come along."""
    page = book / "page.md"
    page.write_text("# Home\n\n<!-- figure: a/b one -->\n\nText.\n", encoding="utf8")
    image = '<img alt="A &quot;curve&quot;. (panel 2)" src="../_static/figures/a.webp">'
    text = f"# Home\n\n<div class='interactive-figure'>\n{image}</div>\n\nText.\n"
    for _ in range(2):
        reuse.put("page", book)
        assert page.read_text("utf8") == text


@pytest.mark.parametrize("asked", ["a/b two", "a/c one"])
def test_figure_that_is_not_there_stops_the_build(book, asked):
    """A renamed figure could leave a comment that no reader sees."""
    (book / "page.md").write_text(f"<!-- figure: {asked} -->\n", encoding="utf8")
    with pytest.raises(ClaimError, match="figure"):
        reuse.put("page", book)
