"""What the pages of a site say of themselves to search engines and to whom they are sent.

A Sphinx extension: each page gets a description, its first paragraph, and a preview card (Open
Graph) with title, description and a picture. The site gets a page for addresses that lead nowhere.
Addresses are absolute if the configuration has ``html_baseurl``, and relative otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from claimbook.pages.parts import Ledger
from claimbook.pages.plain import tex

#: Folder of the pictures of chapters, in the folder of static files.
PREVIEWS = "preview"
#: Name of the page for addresses that lead nowhere; GitHub Pages asks for it.
ABSENT = "404"
_MOST = 200  # characters of a description, about what is shown of one
_LEAST = 40  # of a paragraph that describes a page

_CARD = re.compile(r'<meta (?:name|property)="(?:description|og:|twitter:)[^>]*>')
_OWN_NAME = (
    f'location.pathname.endsWith("/{ABSENT}.html") && document.querySelector("base").remove()'
)
_SKIP = re.compile(r'<div id="pst-skip-link".*?</div>', re.DOTALL)


def describe(document: Any) -> str:
    """Return the first paragraph of a document as plain text, shortened at a word.

    Parameters
    ----------
    document : docutils document
        After its references were resolved.

    Returns
    -------
    str
        Empty if no paragraph is long enough to describe it.
    """
    from docutils import nodes

    for paragraph in document.findall(nodes.paragraph):
        if _within(paragraph, (nodes.table, nodes.footnote, nodes.citation, nodes.image)):
            continue
        words = " ".join("".join(_texts(paragraph)).split())
        words = re.sub(r"\s+([.,;:])", r"\1", words)
        if len(words) >= _LEAST:
            return _shortened(words)
    return ""


def _within(node: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a node stands inside one of some kinds."""
    while node is not None:
        if isinstance(node, kinds):
            return True
        node = node.parent
    return False


def _texts(node: Any) -> Iterator[str]:
    """Text of a node: formulas in plain text, no raw HTML, no marks of the bibliography."""
    from docutils import nodes

    for child in node.children:
        if isinstance(child, nodes.math | nodes.math_block):
            yield tex(child.astext())
        elif isinstance(child, nodes.Text):
            yield child.astext()
        elif not isinstance(child, nodes.raw):
            text = "".join(_texts(child))
            yield "" if re.fullmatch(r"\[[^\]]*\]", text) else text


def _shortened(text: str) -> str:
    if len(text) <= _MOST:
        return text
    return text[: text.rindex(" ", 0, _MOST)].rstrip(" ,;:–-(") + " …"


def write_previews(ledger: Ledger, book: Path) -> None:
    """Put the thumbnail of the first figure of each chapter among the static files.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.
    book : Path
        Staged folder of the pages, with its thumbnails.
    """
    from PIL import Image

    first = {figure["chapter"]: figure["image"] for figure in reversed(ledger["figures"])}
    folder = book / "_static" / PREVIEWS
    folder.mkdir(parents=True, exist_ok=True)
    for chapter, name in first.items():
        source = book / "thumbnails" / "light" / Path(name).with_suffix(".webp").name
        with Image.open(source) as image:  # not every site that shows a card reads WebP
            image.quantize().save(folder / f"{chapter.replace('/', '--')}.png")


def picture(app: Any, page: str) -> str:
    """Return the address, relative to the site, of the picture that stands for a page.

    Parameters
    ----------
    app : Sphinx
        The application.
    page : str
        Name of a document, such as ``book/alignment/beyond``.

    Returns
    -------
    str
        The first figure of the chapter, else the first image of the page, else that of the first
        chapter of its folder, else the first image of the home page; empty if there is none.
    """
    book = Path(app.config.root_doc).parent
    made = Path(app.srcdir, book, "_static", PREVIEWS)
    try:
        name = Path(page).relative_to(book).as_posix().replace("/", "--")
    except ValueError:
        name = page
    if (made / f"{name}.png").is_file():
        return f"_static/{PREVIEWS}/{name}.png"
    for shown in (_image(app, page), *_beside(made, name), _image(app, app.config.root_doc)):
        if shown:
            return shown
    return ""


def _image(app: Any, page: str) -> str:
    """First image of a page that is a file of the site."""
    for pages, name in app.env.images.values():
        if page in pages:
            return f"_images/{name}"
    return ""


def _beside(made: Path, name: str) -> Iterator[str]:
    """Picture of a chapter in the same folder."""
    folder, mark, _ = name.rpartition("--")
    if mark:
        for path in sorted(made.glob(f"{folder}--*.png"))[:1]:
            yield f"_static/{PREVIEWS}/{path.name}"


def card(page: Path) -> str:
    """Return the lines of a built page that describe it, for another that leads to it."""
    return "\n".join(_CARD.findall(page.read_text(encoding="utf8"))) + "\n"


def _add(app: Any, page: str, template: str, context: dict[str, Any], document: Any) -> None:
    """Add the lines to the head of a page (event ``html-page-context``)."""
    base = app.config.html_baseurl
    if page == ABSENT:
        # Whatever the address that was asked for, links start from the base of the site; the page
        # under its own name, on a server without that base, needs none.
        line = f'<base href="{_root(base)}">\n<script>{_OWN_NAME}</script>\n'
        context["metatags"] = line + context.get("metatags", "")
        return
    if document is None:
        return
    title = re.sub(r"<[^>]+>", "", context.get("title", ""))
    title = re.sub(r"\\\((.*?)\\\)", lambda found: tex(found[1]), title)
    home = page == app.config.root_doc
    words = escape(describe(document))
    properties = {
        "og:title": title,
        "og:type": "website" if home else "article",
        "og:site_name": escape(app.config.html_title or app.config.project),
        "og:description": words,
    }
    shown = picture(app, page)
    if shown:
        properties["og:image"] = urljoin(base, shown) if base else context["pathto"](shown, 1)
    if base:
        properties["og:url"] = urljoin(base, app.builder.get_target_uri(page))
    lines = [
        f'<meta property="{key}" content="{text}">' for key, text in properties.items() if text
    ]
    if words and 'name="description"' not in context.get("metatags", ""):
        lines.append(f'<meta name="description" content="{words}">')
    lines.append('<meta name="twitter:card" content="summary_large_image">' if shown else "")
    context["metatags"] = "\n".join([context.get("metatags", ""), *filter(None, lines)])


def _root(base: str) -> str:
    """Path of the site on its server."""
    return (urlsplit(base).path.rstrip("/") if base else "") + "/"


def _absent(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page for addresses that lead nowhere (event ``html-collect-pages``)."""
    if app.builder.name != "html":
        return
    home = app.builder.get_target_uri(app.config.root_doc)
    body = f"""<section id="absent"><h1>There is no such page</h1>
<p>The address may be misspelt, or the page may have been renamed.</p>
<p><a href="{home}">The home page</a> leads to all chapters, and
<a href="search.html">the search page</a> finds words and numbers of statements.</p></section>"""
    yield ABSENT, {"title": "There is no such page", "body": body}, "page.html"


def _finish(app: Any, exception: Exception | None) -> None:
    """Take the links within the absent page away: they start from the base (``build-finished``).

    The only one is that which skips the side bar; landmarks and the heading serve as well.
    """
    page = Path(app.outdir, f"{ABSENT}.html")
    if exception is None and page.is_file():
        text = page.read_text(encoding="utf8")
        page.write_text(_SKIP.sub("", text), encoding="utf8")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _add)
    app.connect("html-collect-pages", _absent)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
