"""Links of the built site, and the checker itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimbook.report import PAGES
from claimbook.site import links


def test_links_of_the_site_resolve(site: Path) -> None:
    """A page could point at nothing, or load something from the network."""
    assert links.check(site) == []


def test_site_has_links_to_check(site: Path) -> None:
    """An empty or misread site would pass the check above."""
    pages = [links.read(path) for path in site.rglob("*.html")]
    internal = sum("://" not in link for page in pages for link in page.links)
    assert internal > 10 * len(pages) / 2
    assert any("://" in link for page in pages for link in page.links)


def test_what_the_search_page_finds_is_there(site: Path) -> None:
    """The index of the search page, which is no page, could lead to nothing."""
    text = (site / "_static" / "claims-index.js").read_text(encoding="utf8")
    index = json.loads(text.removeprefix("window.claimsIndex = ").removesuffix(";\n"))
    entries = [*index["claims"], *index["figures"]]
    places = {f"{entry['chapter']}#{entry['place']}" for entry in entries}
    places |= {page["place"] for page in index["pages"]}
    places |= {f"notation#{letter['place']}" for letter in index["letters"]}
    places |= {f"glossary#{term['place']}" for term in index["terms"]}
    names = {place.partition("#")[0] for place in places}
    anchors = {name: links.read(site / index["folder"] / f"{name}.html").anchors for name in names}
    parts = [place.partition("#") for place in places]
    absent = [(name, anchor) for name, _, anchor in parts if anchor and anchor not in anchors[name]]
    assert absent == []
    assert set(PAGES) <= names, "each page of results is found by words of its own"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="other.html#here">', None),
        ('<a href="#top"><p id="top">', None),
        ('<a href="https://example.org/a?b=c#d">', None),
        ('<img src="data:image/png;base64,AAAA">', None),
        ('<a href="absent.html">', "no such file"),
        ('<a href="other.html#there">', "no such anchor"),
        ('<a href="#nowhere">', "no such anchor"),
        ('<a href="https://exa mple.org">', "not a well-formed address"),
        ('<a href="https://">', "not a well-formed address"),
        ('<a href="mailto:nobody">', "not a well-formed address"),
        ('<a href="javascript:void(0)">', "unexpected kind of link"),
        ('<a href=" JavaScript:void(0)">', "unexpected kind of link"),
        ('<a href="data:text/html,x">', "unexpected kind of link"),
        ('<svg><a xlink:href="javascript:void(0)"></a></svg>', "unexpected kind of link"),
        ('<area href="javascript:void(0)">', "unexpected kind of link"),
        ('<form action="javascript:void(0)"></form>', "unexpected kind of link"),
        ('<button formaction="javascript:void(0)"></button>', "unexpected kind of link"),
        ('<img src="absent.png">', "no such file"),
        ('<script src="https://example.org/a.js"></script>', "loaded from the network"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "loaded from the network"),
        ('<link rel="preconnect" href="https://example.org">', "loaded from the network"),
        ('<meta http-equiv="Refresh" content="0; url=absent.html">', "no such file"),
    ],
)
def test_checker_sees_each_kind_of_fault(tmp_path: Path, body: str, problem: str | None) -> None:
    """A kind of broken link could be overlooked, or a good one refused."""
    (tmp_path / "index.html").write_text(body, encoding="utf8")
    (tmp_path / "other.html").write_text('<p id="here">', encoding="utf8")
    found = links.check(tmp_path)
    assert len(found) == (problem is not None)
    assert all(line.startswith(f"index.html: {problem}: ") for line in found)
