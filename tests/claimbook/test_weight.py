"""A site without what no reader needs: which scripts, fonts and elements stay."""

import shutil
from pathlib import Path

import matplotlib
import pytest
from fontTools.ttLib import TTFont
from pygments import highlight
from pygments.lexers import PythonLexer

from claimbook.site import weight

HEAD = """<script defer src="_static/scripts/fontawesome.js?digest=1"></script>
<script src="_static/searchtools.js"></script>
<script src="searchindex.js"></script>
<script src="_static/own.js"></script>"""
STYLE = (
    '@font-face{src:url(../vendor/fontawesome/webfonts/fa-solid-900.woff2) format("woff2"),'
    'url(../vendor/fontawesome/webfonts/fa-solid-900.ttf) format("truetype")}'
    '.fa-home:before,.fa-house:before{content:"\\41"}.fa-bars:before{content:"\\42"}'
    '.fa-rocket:before{content:"\\43"}'
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of two pages with one icon, and a font in which icons are letters."""
    fonts = tmp_path / "_static" / "vendor" / "fontawesome" / "webfonts"
    for folder in (fonts, tmp_path / "_static" / "styles", tmp_path / "_static" / "scripts"):
        folder.mkdir(parents=True)
    source = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    shutil.copy(source, fonts / "fa-solid-900.ttf")
    (fonts / "fa-solid-900.woff2").write_bytes(b"")
    (tmp_path / "_static" / "styles" / "theme.css").write_text(STYLE)
    (tmp_path / "_static" / "scripts" / "fontawesome.js").write_text("")
    (tmp_path / "_static" / "scripts" / "some-theme.js").write_text('"fa-solid fa-bars"')
    page = f'{HEAD}<i class="fa-solid fa-home"></i>'
    for name in ("index", "search"):
        (tmp_path / f"{name}.html").write_text(page)
    return tmp_path


def test_pages_keep_their_scripts_and_lose_the_others(site: Path) -> None:
    """The page of the search could lose its index, or a page a script of its own."""
    weight.reduce(site)
    index, search = ((site / f"{name}.html").read_text() for name in ("index", "search"))
    assert "own.js" in index and "search" not in index and "fontawesome" not in index
    assert "searchtools.js" in search and "searchindex.js" in search
    assert '<i aria-hidden="true" class="fa-solid fa-home"></i>' in index
    assert not (site / "_static" / "scripts" / "fontawesome.js").exists()


def test_only_notebooks_are_downloads(site: Path) -> None:
    """Megabytes of generated text could stay, or a button lead to a file that is gone."""
    button = '<li><a href="_sources/{}"\n  class="btn">\n<span>{}</span>\n</a>\n</li>'
    (site / "_sources" / "book").mkdir(parents=True)
    for name in ("book/ledger.md", "book/chapter.ipynb"):
        (site / "_sources" / name).write_text("")
    buttons = [button.format(name, name) for name in ("book/ledger.md", "book/chapter.ipynb")]
    printing = "<li>\n<button>print</button></li>"
    (site / "index.html").write_text(f"<ul>{buttons[1]}{buttons[0]}{printing}</ul>")
    weight.reduce(site)
    assert (site / "index.html").read_text() == f"<ul>{buttons[1]}{printing}</ul>"
    kept = [path.name for path in site.glob("_sources/**/*") if path.is_file()]
    assert kept == ["chapter.ipynb"]


def test_fonts_keep_the_icons_of_the_site(site: Path) -> None:
    """An icon of a page or of a script could be drawn as an empty box."""
    weight.reduce(site)
    (font,) = (site / "_static" / "vendor" / "fontawesome" / "webfonts").iterdir()
    with TTFont(font) as kept:
        assert set(kept.getBestCmap()) == {0x41, 0x42}
    style = (site / "_static" / "styles" / "theme.css").read_text()
    assert 'src:url(../vendor/fontawesome/webfonts/fa-solid-900.woff) format("woff")}' in style


def test_code_keeps_its_text_and_its_colours() -> None:
    """Code could lose a character, or a keyword its colour."""
    found = highlight("for x in range(3):\n    print(x)\n", PythonLexer(), weight.Coloured())
    assert '<span class="k">for</span> x ' in found
    assert 'class="n"' not in found and 'class="p"' not in found
