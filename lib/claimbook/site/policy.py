"""A content security policy for every page of a site.

A page runs the scripts that lie beside it, and those that stand in it when the site is built, which
the policy names by their hashes. It also allows the handlers of events that stand in any page of
the site, since a search reads other pages. It runs nothing else and loads nothing from another
host: a script that gets into a page by a text, a label or an address does not run. Styles may
stand in a page: formulas and charts bring their own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

from claimbook.site import built

_RULES = (
    "default-src 'none'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'self'",
)
#: Types of what a browser runs; others, such as JSON, are data.
_SCRIPTS = ("", "module", "text/javascript", "application/javascript")


class _Reader(HTMLParser):
    """Collects what a page would run: texts of scripts, and handlers of events."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {key: value or "" for key, value in attrs}
        self.handlers += [attributes[key] for key in attributes if key.startswith("on")]
        runs = attributes.get("type", "").lower() in _SCRIPTS and "src" not in attributes
        self._inside = tag == "script" and runs
        if self._inside:
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def policy(page: str, *, handlers: Iterable[str] = ()) -> str:
    """Return the policy of a page.

    Parameters
    ----------
    page : str
        Its HTML.
    handlers : iterable of str
        Handlers of events on other pages, which the page may hold too: a search reads them.

    Returns
    -------
    str
        What stands in the header ``Content-Security-Policy``.

    Examples
    --------
    >>> from claimbook.site.policy import policy
    >>> policy("<p>Text.</p>").split("; ")[-1]
    "script-src 'self'"
    """
    scripts, own = _parts(page)
    return _policy(scripts, {*own, *handlers})


def _read(path: Path) -> tuple[list[str], list[str]]:
    return _parts(path.read_text(encoding="utf8"))


def _parts(page: str) -> tuple[list[str], list[str]]:
    """Return the scripts and the handlers of a page."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.scripts, reader.handlers


def _policy(scripts: list[str], handlers: set[str]) -> str:
    sources = ["'self'", *(["'unsafe-hashes'"] if handlers else [])]
    sources += sorted({_hash(text) for text in (*scripts, *handlers)})
    return "; ".join([*_RULES, f"script-src {' '.join(sources)}"])


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def put(html: Path) -> None:
    """Write the policy into every page of a built site, before all that it is about.

    Parameters
    ----------
    html : Path
        Folder of the built site, changed in place.
    """
    paths = built.pages(html)
    read = built.each(_read, paths)
    handlers = {handler for _, own in read for handler in own}
    for path, (scripts, _) in zip(paths, read):
        text, content = path.read_text(encoding="utf8"), _policy(scripts, handlers)
        line = f'<meta http-equiv="Content-Security-Policy" content="{content}">\n'
        before, head, after = text.partition("<head>\n")
        path.write_text(before + head + line + after if head else line + text, encoding="utf8")
