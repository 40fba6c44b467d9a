"""Every link of a built site resolves, and no page loads anything from elsewhere."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from claimbook.site import built

#: Where a tag names something the browser fetches by itself, or when a link is followed.
_RESOURCES = {
    "a": ("ping",),
    "area": ("ping",),
    "script": ("src", "href", "xlink:href"),
    "iframe": ("src",),
    "frame": ("src",),
    "audio": ("src",),
    "video": ("src",),
    "source": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
}
#: Where a tag names an image, which may be written out in the address.
_IMAGES = {
    "img": ("src",),
    "input": ("src",),
    "video": ("poster",),
    "body": ("background",),
    "image": ("href", "xlink:href"),
    "feimage": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
#: Where it names several, each with the screens it is for.
_SETS = {"img": ("srcset",), "source": ("srcset",), "link": ("imagesrcset",)}
#: Where a tag names what a reader can follow: pages, anchors, addresses of the web and of mail.
_FOLLOWED = {
    "a": ("href", "xlink:href"),
    "area": ("href",),
    "form": ("action",),
    "button": ("formaction",),
    "input": ("formaction",),
}
#: They move an attribute of the element that they name, which may be an address.
_MOVING = {"animate", "animatemotion", "animatetransform", "set"}
_LOADING_LINKS = {
    "stylesheet",
    "icon",
    "manifest",
    "preload",
    "modulepreload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
}
#: Attributes with a value of CSS.
_STYLED = {
    "style",
    "clip-path",
    "cursor",
    "fill",
    "filter",
    "marker-end",
    "marker-mid",
    "marker-start",
    "mask",
    "stroke",
}
_REFRESH = re.compile(r"""[\s\d.]*[;,]?\s*(?:url\s*=\s*)?["']?([^"']*)""", re.IGNORECASE)
#: An image or a font in an address; the empty one stands for no icon.
_WRITTEN_OUT = re.compile(r"image/|font/|application/font-|,$")
_IN_SET = re.compile(r"[\s,]*(\S*[^\s,])(?:\s[^,]*)?")


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
    images : list of str
        The images and fonts among what it loads.
    bases : list of str
        What addresses are relative to, if not to the page.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        page = self.page
        attributes = {key: (value or "").strip() for key, value in attrs}

        def named(table: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
            return (attributes[key] for key in table.get(tag, ()) if attributes.get(key))

        page.anchors.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        page.links.extend(attributes[key] for key in _FOLLOWED.get(tag, ()) if key in attributes)
        for value in named(_RESOURCES):
            page.resources.extend(value.split() if tag in ("a", "area") else [value])
        page.images.extend(named(_IMAGES))
        for value in named(_SETS):
            page.images.extend(_IN_SET.findall(value))
        for key in _STYLED & attributes.keys():
            page.images.extend(_in_style(attributes[key]))
        if tag == "link" and "href" in attributes:
            rel = set(attributes.get("rel", "").lower().split())
            loaded = page.images if "icon" in rel else page.resources
            (loaded if _LOADING_LINKS & rel else page.links).append(attributes["href"])
        elif tag == "base" and "href" in attributes:
            page.bases.append(attributes["href"])
        elif tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            found = _REFRESH.match(attributes.get("content", ""))
            page.links.extend(filter(None, found.groups() if found else ()))
        elif tag in _MOVING:
            page.links.extend(_moved(attributes))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "style":
            self.page.images.extend(_in_style(data))


def _moved(attributes: dict[str, str]) -> Iterator[str]:
    """Yield the element an animation moves, and the addresses it writes into it."""
    yield from (attributes[key] for key in ("href", "xlink:href") if key in attributes)
    if attributes.get("attributename", "").lower() in ("href", "xlink:href"):
        for key in ("from", "by", "to", "values"):
            yield from filter(None, map(str.strip, attributes.get(key, "").split(";")))


def _in_style(css: str) -> list[str]:
    """Return the addresses in a piece of CSS, a stylesheet or the value of an attribute."""
    import tinycss2

    return list(_addresses(tinycss2.parse_component_value_list(css)))


def _addresses(nodes: Iterable[Any]) -> Iterator[str]:
    importing = False
    for node in nodes:
        if node.type == "url" or (node.type == "string" and importing):
            yield node.value
        elif node.type == "function":
            if node.lower_name in ("url", "src", "image-set", "-webkit-image-set"):
                yield from (part.value for part in node.arguments if part.type == "string")
            yield from _addresses(node.arguments)
        else:
            yield from _addresses(getattr(node, "content", None) or ())
        if node.type not in ("whitespace", "comment"):
            importing = node.type == "at-keyword" and node.lower_value == "import"


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
    root = site.resolve()
    files = built.pages(root)
    known = dict(zip(files, built.each(read, files)))
    problems = []
    for path, page in known.items():
        found = [(base, _check_base(base)) for base in page.bases]
        # The only base that is allowed is that of the published site.
        start = root / path.name if page.bases else path
        found += [(target, _check_link(target, start, known)) for target in page.links]
        found += [(target, _check_load(target, start)) for target in page.resources]
        found += [(target, _check_load(target, start, image=True)) for target in page.images]
        here = path.relative_to(root).as_posix()
        problems += [
            f"{here}: {problem}: {target}" for target, problem in dict.fromkeys(found) if problem
        ]
    return problems


def _split(target: str) -> SplitResult | None:
    """Return the parts of an address as a browser reads it; None if it is not well-formed."""
    try:
        return urlsplit(target.replace("\\", "/"))
    except ValueError:
        return None


def _resolve(parts: SplitResult, path: Path) -> Path:
    return (path.parent / unquote(parts.path)).resolve() if parts.path else path


def _check_base(target: str) -> str | None:
    """Return what is wrong with a base: it has to be a folder of the same host."""
    parts = _split(target)
    own = parts and not (parts.scheme or parts.netloc) and parts.path.startswith("/")
    return None if own and target.endswith("/") else "unexpected base"


def _check_load(target: str, path: Path, image: bool = False) -> str | None:
    """Return what is wrong with something that the browser loads, if anything."""
    parts = _split(target)
    if parts is None:
        return "not a well-formed address"
    if parts.scheme == "data" and image and _WRITTEN_OUT.match(parts.path):
        return None
    if parts.netloc or parts.scheme in ("http", "https"):
        return "loaded from the network"
    if parts.scheme:
        return "unexpected kind of link"
    return None if _resolve(parts, path).is_file() else "no such file"


def _check_link(target: str, path: Path, known: dict[Path, Page]) -> str | None:
    """Return what is wrong with a link, if anything."""
    parts = _split(target)
    if parts is None:
        return "not a well-formed address"
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
    if anchor and file in known and anchor not in known[file].anchors:
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
