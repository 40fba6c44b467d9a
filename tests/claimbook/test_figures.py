"""Figures of the pages: files, numbers, captions, the main picture, notebooks to be kept."""

import base64
import io
import re
import zipfile

import nbformat
import pytest
from PIL import Image

from claimbook.site import figures


def picture(colour):
    """PNG of one colour with a mark, in base64."""
    image = Image.new("RGB", (60, 40), colour)
    image.paste((200, 30, 30), (20, 10, 40, 30))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def panel(number):
    """HTML of a panel in both themes."""
    return "".join(
        f'<img class="only-{theme}" alt="a (panel {number})" style="width:100%" '
        f'src="data:image/png;base64,{picture(colour)}">'
        for theme, colour in (("light", "#ffffff"), ("dark", "#121212"))
    )


def shown(label, panels=1, caption="Two < three. More."):
    """Output of a figure."""
    markup = f'<div class="traindyn-figure">{"".join(map(panel, range(panels)))}</div>'
    data = {
        "text/html": markup,
        "image/png": picture("#ffffff"),
        figures.MIME: [{"svg": "<svg/>", "pdf": "JVBERg==", "csv": "x,y,u\n1,2,\n3,,\n"}] * panels,
    }
    entry = {"claimbook": {"figure": label, "alt": caption}}
    return nbformat.v4.new_output("display_data", data=data, metadata=entry)


@pytest.fixture
def notebook():
    """A chapter with a section and two figures."""
    text = nbformat.v4.new_markdown_cell(
        "# Title\n\n## The question\n\nWhy\nso?\n\nThis is learnt."
    )
    code = nbformat.v4.new_code_cell(outputs=[shown("first"), shown("the second", 2)])
    return nbformat.v4.new_notebook(cells=[text, code])


CLAIM = {"chapter": "part/one", "kind": "figure", "figure": "first", "source": "BGJ"}


def put(notebook, folder):
    """Write the figures of the chapter ``part/one``."""
    claims = [
        {**CLAIM, "number": "Figure 6"},
        {**CLAIM, "number": "Figure 7", "chapter": "part/two"},
    ]
    return figures.put(notebook, "part/one", folder, claims)


def test_pictures_become_files(notebook, tmp_path):
    """Nothing stays in the page; the page's ground is exact, and all that is linked is there."""
    found = put(notebook, tmp_path)
    texts = [output["data"]["text/html"] for output in notebook.cells[1].outputs]
    assert not any("base64" in text for text in texts)
    assert not any(figures.MIME in output["data"] for output in notebook.cells[1].outputs)
    folder = tmp_path / "figures"
    assert {path.name for path in folder.iterdir()} == {
        *(
            f"part--one--{name}{end}"
            for name in ("first-1", "the-second-1", "the-second-2")
            for end in ("-light.webp", "-dark.webp")
        ),
        "part--one--first.zip",
        "part--one--the-second.zip",
    }
    with zipfile.ZipFile(folder / "part--one--the-second.zip") as archive:
        assert archive.read("part--one--the-second-2.pdf") == b"%PDF"
        assert archive.read("part--one--the-second-1.svg") == b"<svg/>"
        assert archive.read("part--one--the-second-2.csv") == b"x,y\n1,2\n3,\n"
        assert len(archive.namelist()) == 6
    for theme, ground in (("light", (255, 255, 255)), ("dark", (18, 18, 18))):
        with Image.open(folder / f"part--one--first-1-{theme}.webp") as image:
            assert image.convert("RGB").getpixel((0, 0)) == ground
            assert image.size == (60, 40)
    assert 'src="../../_static/figures/part--one--the-second-2-dark.webp"' in texts[1]
    assert texts[1].count('loading="lazy" width="60" height="40"') == 4
    assert [figure.number for figure in found.values()] == [1, 2]
    assert "\n\n" not in texts[1]  # would end the HTML within Markdown


def test_a_figure_has_number_caption_and_place(notebook, tmp_path):
    """The number of the source is that of the claims of this chapter."""
    put(notebook, tmp_path)
    first, second = (output["data"]["text/html"] for output in notebook.cells[1].outputs)
    assert 'id="figure-first"' in first
    assert "<strong>Figure 1</strong> (BGJ, Figure 6). Two &lt; three. More." in first
    archive = '<a href="../../_static/figures/part--one--first.zip">SVG, PDF and data (ZIP)</a>'
    assert archive in first
    assert "<strong>Figure 2</strong>. Two" in second
    assert '<a class="td-to-code" href="?code#figure-first">code</a> · <a' in first
    assert "still version" not in first + second
    assert 'data-panels="2"' in second


def test_the_main_picture_follows_the_question(notebook, tmp_path):
    """It stands behind the first paragraph, with its caption."""
    notebook.metadata["picture"] = "the second"
    figures.lead(notebook, put(notebook, tmp_path))
    text = notebook.cells[0].source
    assert text.index("so?") < text.index("<figure") < text.index("This is learnt.")
    caption = '<a href="#figure-the-second">Figure 2</a>. Two &lt; three. More.'
    assert f'{caption}<span class="td-stacked">' in text  # of more panels than one
    assert "\n\n" not in text[text.index("<figure") : text.index("</figure>")]


def test_a_main_picture_that_is_not_there_is_refused(notebook, tmp_path):
    """The error says what there is; a chapter that names none stays as it is."""
    before = notebook.cells[0].source
    found = put(notebook, tmp_path)
    figures.lead(notebook, found)
    assert notebook.cells[0].source == before
    notebook.metadata["picture"] = "third"
    with pytest.raises(ValueError, match="picture must be one of first, the second, got 'third'"):
        figures.lead(notebook, found)
    notebook.metadata["picture"] = "first"
    notebook.cells[0].source = "# Title"
    with pytest.raises(ValueError, match="no section"):
        figures.lead(notebook, found)


def test_a_notebook_to_be_kept_has_one_picture_of_all_panels(notebook):
    """It refers to no file, and no panel is lost."""
    figures.compact(notebook)
    sizes = []
    for output in notebook.cells[1].outputs:
        assert set(output["data"]) == {"image/png"}
        with Image.open(io.BytesIO(base64.b64decode(output["data"]["image/png"]))) as image:
            sizes.append(image.size)
            panels = image.size[0] // 60
            shown = [
                image.convert("RGB").getpixel((60 * panel + 30, 20)) for panel in range(panels)
            ]
            assert shown == [(200, 30, 30)] * panels
    assert sizes == [(60, 40), (120, 40)]


def test_what_a_figure_with_parameters_is_drawn_from_is_a_file(notebook, tmp_path):
    """A page that held it would weigh several times as much; text may not end its script."""
    output = notebook.cells[1].outputs[0]
    script = r'<script type="application/json">{"spec":"<\/script>"}</script>'
    output["data"]["text/markdown"] = output["data"].pop("text/html") + script
    put(notebook, tmp_path)
    text = output["data"]["text/markdown"]
    assert "Of the still version: <a" in text
    address = re.search('<template data-specification="([^"]+)"></template>', text).group(1)
    assert "<script" not in text and address.startswith("../../_static/figures/")
    written = (tmp_path / "figures" / address.rpartition("/")[2]).read_text()
    name = address.rpartition("/")[2]
    assert written == (f'(window.specifications ??= {{}})["{name}"] = {{"spec":"<\\/script>"}};\n')


def test_a_figure_of_which_nothing_is_kept_leads_to_its_code(notebook, tmp_path):
    """The link to the code could stand among those to files only."""
    del notebook.cells[1].outputs[0]["data"][figures.MIME]
    put(notebook, tmp_path)
    text = notebook.cells[1].outputs[0]["data"]["text/html"]
    assert 'href="?code#figure-first">code</a></span>' in text and "ZIP" not in text
