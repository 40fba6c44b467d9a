"""Every link of a built site resolves, and no page loads anything from elsewhere."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

#: Where a tag names something the browser fetches by itself.
_RESOURCES = {
    "img": ("src",),
    "script": ("src",),
    "iframe": ("src",),
    "audio": ("src",),
    "video": ("src", "poster"),
    "source": ("src",),
    "embed": ("src",),
    "object": ("data",),
}
#: Where a tag names what a reader can follow: pages, anchors, addresses of the web and of mail.
_FOLLOWED = {
    "a": ("href", "xlink:href"),
    "area": ("href",),
    "form": ("action",),
    "button": ("formaction",),
    "input": ("formaction",),
}
_LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch"}


@dataclass
class Page:
    """Anchors and references of one HTML page.

    Attributes
    ----------
    anchors : set of str
        Values of ``id`` and ``name``.
    links : list of str
        What a reader can follow.
    resources : list of str
        What the browser loads by itself.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {key: value or "" for key, value in attrs}
        self.page.anchors.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        self.page.links.extend(
            attributes[key] for key in _FOLLOWED.get(tag, ()) if key in attributes
        )
        if tag == "link" and "href" in attributes:
            loads = _LOADING_LINKS & set(attributes.get("rel", "").lower().split())
            (self.page.resources if loads else self.page.links).append(attributes["href"])
        elif tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.page.links.append(attributes["content"].partition("url=")[2].strip())
        self.page.resources.extend(
            attributes[key] for key in _RESOURCES.get(tag, ()) if attributes.get(key)
        )


def read(path: Path) -> Page:
    """Read the anchors and references of an HTML file.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.

    Returns
    -------
    Page
    """
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf8"))
    return reader.page


def check(site: Path) -> list[str]:
    """Check all links of a site without using the network.

    Parameters
    ----------
    site : Path
        Folder of HTML files.

    Returns
    -------
    list of str
        Problems, one line each: a target or an anchor that does not exist, an address
        that is not well-formed, something loaded from another host.
    """
    # The theme leaves templates among its static files.
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): read(path) for path in files}
    problems = []
    for path, page in pages.items():
        here = path.relative_to(site.resolve()).as_posix()
        for target in dict.fromkeys(page.links):
            problem = _check_link(target, path, pages)
            if problem:
                problems.append(f"{here}: {problem}: {target}")
        for target in dict.fromkeys(page.resources):
            parts = urlsplit(target)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                problems.append(f"{here}: loaded from the network: {target}")
            elif not _resolve(parts, path).is_file():
                problems.append(f"{here}: no such file: {target}")
    return problems


def _resolve(parts: SplitResult, path: Path) -> Path:
    return (path.parent / unquote(parts.path)).resolve() if parts.path else path


def _check_link(target: str, path: Path, pages: dict[Path, Page]) -> str | None:
    """Return what is wrong with a link, if anything."""
    parts = urlsplit(target)
    if parts.scheme in ("http", "https"):
        well_formed = "." in parts.netloc and not any(c.isspace() for c in target)
        return None if well_formed else "not a well-formed address"
    if parts.scheme == "mailto":
        return None if "@" in parts.path else "not a well-formed address"
    if parts.scheme or parts.netloc:
        return "unexpected kind of link"
    file = _resolve(parts, path)
    if not file.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and file in pages and anchor not in pages[file].anchors:
        return "no such anchor"
    return None


def main(arguments: list[str] | None = None) -> int:
    """Check the links of a site (command line)."""
    parser = argparse.ArgumentParser(prog="python -m claimbook.site.links", description=__doc__)
    parser.add_argument("site", type=Path)
    problems = check(parser.parse_args(arguments).site)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
