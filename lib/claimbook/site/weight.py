"""A site without what no reader needs of what its theme and Sphinx put there.

A first view of a page loads what its head names. The theme names a script with 2000 icons,
although its style draws the same icons from fonts, and the index of all words, although only the
page of the search reads it. The fonts keep the icons that the site has.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pygments.formatters import HtmlFormatter
from pygments.token import Token

from claimbook.site import built

#: Files for those who debug or translate the theme, its script of icons, the larger form of fonts
#: that every browser reads in a smaller one, and the text of pages, which is in the repository or
#: was generated: only notebooks are worth a download.
_UNREAD = (
    "**/*.map",
    "_static/locales",
    "_static/scripts/fontawesome.js*",
    "_static/vendor/fontawesome/webfonts/*.woff2",
    "_static/vendor/fontawesome/webfonts/*.ttf",
    "_sources/**/*.md",
)
_SCRIPT = '<script[^>]* src="[^"]*{}[^"]*"></script>\n?'
_ICONS = re.compile(_SCRIPT.format(r"fontawesome\.js"))
_INDEX = re.compile(_SCRIPT.format(r"(?:searchtools|language_data|searchindex)\.js"))
_DOWNLOAD = re.compile(r'<li><a href="[^"]*_sources/[^"]*\.md".*?</li>\s*', re.DOTALL)
_SOURCES = re.compile(
    r'url\(([^()]*)\.woff2\) format\("woff2"\),url\([^()]*\) format\("truetype"\)'
)
_ICON = re.compile(r'<(i|span) class="([^"]*\bfa-[^"]*)"')
_RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}')
#: Icons that rules of the theme draw beside links and boxes, and those of its scripts.
_POINTS = re.compile(r'"(?:\\(f[0-9a-f]{3})|([\ue000-\uf8ff]))"')
_NAMES = re.compile(r"\bfa-[a-z0-9-]+")


def reduce(html: Path) -> None:
    """Take away from a built site what no reader needs.

    Parameters
    ----------
    html : Path
        Folder of the built site, changed in place.
    """
    styles = [*html.glob("_static/styles/*.css"), *html.glob("_static/*.css")]
    used: set[str] = set()
    for page in built.pages(html):
        text = page.read_text(encoding="utf8")
        for _, names in _ICON.findall(text):
            used.update(_NAMES.findall(names))
        text = _DOWNLOAD.sub("", _ICONS.sub("", text))
        text = _ICON.sub(r'<\1 aria-hidden="true" class="\2"', text)
        if page.name != "search.html":
            text = _INDEX.sub("", text)
        page.write_text(text, encoding="utf8")
    for script in html.glob("_static/scripts/*theme.js"):
        used.update(_NAMES.findall(script.read_text(encoding="utf8")))
    points = set(_points([style.read_text(encoding="utf8") for style in styles], used))
    for font in html.glob("_static/vendor/fontawesome/webfonts/*.ttf"):
        _keep_icons(font, points)
    for style in styles:
        text = style.read_text(encoding="utf8")
        style.write_text(_SOURCES.sub(r'url(\1.woff) format("woff")', text), encoding="utf8")
    for pattern in _UNREAD:
        for path in html.glob(pattern):
            _remove(path)


def _points(styles: Iterable[str], used: set[str]) -> Iterator[int]:
    """Yield the code points of the icons that are used, by name or in rules of the theme."""
    for style in styles:
        for names, point in _RULE.findall(style):
            if used.intersection(_NAMES.findall(names)):
                yield int(point, 16)
        for point, letter in _POINTS.findall(_RULE.sub("", style)):
            yield int(point, 16) if point else ord(letter)


def _keep_icons(font: Path, points: set[int]) -> None:
    """Write a font, as WOFF beside it, with some of its icons alone."""
    from fontTools import subset

    options = subset.Options(flavor="woff", layout_features=[], hinting=False)
    options.drop_tables += ["GSUB", "GPOS"]
    with subset.load_font(str(font), options) as whole:
        chosen = subset.Subsetter(options)
        chosen.populate(unicodes=points)
        chosen.subset(whole)
        subset.save_font(whole, str(font.with_suffix(".woff")), options)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


class Coloured(HtmlFormatter):  # type: ignore[misc]
    """Highlighted code in which names and brackets, which have the colour of text, are text.

    Two thirds of the elements of a chapter would say nothing else.
    """

    _AS_TEXT = frozenset({Token.Name, Token.Punctuation, Token.Text.Whitespace})

    def format(self, tokensource: Any, outfile: Any) -> None:
        """Write highlighted code."""
        shown = (
            (Token.Text if kind in self._AS_TEXT else kind, word) for kind, word in tokensource
        )
        super().format(shown, outfile)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    from sphinx.highlighting import PygmentsBridge

    PygmentsBridge.html_formatter = Coloured
    return {"parallel_read_safe": True, "parallel_write_safe": True}
