"""Links of the built site, and the checker itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimbook.report import PAGES
from claimbook.site import links

KIND = "unexpected kind of link"
NETWORK = "loaded from the network"


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
        ('<a href="javascript:void(0)">', KIND),
        ('<a href=" JavaScript:void(0)">', KIND),
        ('<a href="data:text/html,x">', KIND),
        ('<svg><a xlink:href="javascript:void(0)"></a></svg>', KIND),
        ('<area href="javascript:void(0)">', KIND),
        ('<form action="javascript:void(0)"></form>', KIND),
        ('<button formaction="javascript:void(0)"></button>', KIND),
        ('<img src="absent.png">', "no such file"),
        ('<script src="https://example.org/a.js"></script>', NETWORK),
        ('<link rel="stylesheet" href="//example.org/a.css">', NETWORK),
        ('<link rel="preconnect" href="https://example.org">', NETWORK),
        ('<meta http-equiv="Refresh" content="0; url=absent.html">', "no such file"),
        (
            '<meta http-equiv="refresh" content="0; URL=javascript:void(0)">',
            KIND,
        ),
        ("<meta http-equiv=refresh content='0;uRl = \"javascript:x\"'>", KIND),
        ('<meta http-equiv="refresh" content="0; javascript:void(0)">', KIND),
        ('<meta http-equiv="refresh" content="30">', None),
        ('<meta http-equiv="refresh" content="0; url=other.html#here">', None),
        ('<img srcset="a.svg, a.svg 2x">', None),
        ('<img srcset="data:image/png;base64,AA 1x, a.svg 2x">', None),
        ('<img srcset="a.svg 1x,absent.png 2x">', "no such file"),
        ('<source srcset="a.svg, https://example.org/a.png 2x">', NETWORK),
        ('<link rel="preload" imagesrcset="//example.org/a.png 2x">', NETWORK),
        ('<iframe src="data:text/html,x"></iframe>', KIND),
        ('<iframe src="data:image/svg+xml,x"></iframe>', KIND),
        ('<iframe src="javascript:void(0)"></iframe>', KIND),
        ('<object data="data:text/html,x"></object>', KIND),
        ('<script src="data:text/javascript,x"></script>', KIND),
        ('<img src="data:text/html,x">', KIND),
        ('<link rel="icon" href="data:,">', None),
        ('<svg><use href="#top"/><g id="top"/></svg>', None),
        ('<svg><use href="https://example.org/a.svg#b"/></svg>', NETWORK),
        ('<svg><use xlink:href="absent.svg#b"/></svg>', "no such file"),
        ('<svg><image href="https://example.org/a.png"/></svg>', NETWORK),
        ('<svg><image xlink:href="data:image/png;base64,AA"/></svg>', None),
        ('<svg><script href="https://example.org/a.js"/></svg>', NETWORK),
        ('<svg><feImage href="absent.png"/></svg>', "no such file"),
        ('<svg><animate href="#nowhere"/></svg>', "no such anchor"),
        ('<svg><animate href="javascript:void(0)"/></svg>', KIND),
        (
            '<svg><animate attributeName="href" values="#a;javascript:x"/><a id="a"/></svg>',
            KIND,
        ),
        (
            '<svg><set attributeName="xlink:href" to="javascript:x"/></svg>',
            KIND,
        ),
        ('<svg><set attributeName="fill" to="red"/></svg>', None),
        ('<svg><rect fill="url(https://example.org/a.svg#b)"/></svg>', NETWORK),
        ('<p style="background: url(absent.png)">', "no such file"),
        (
            '<p style="background: URL( &quot;//example.org/a.png&quot; )">',
            NETWORK,
        ),
        (r'<p style="background: \75 rl(https://example.org/a.png)">', NETWORK),
        ('<p style="background: url(data:image/png;base64,AA), url(a.svg)">', None),
        ("<p style=\"background: image-set('absent.png' 2x)\">", "no such file"),
        ("<style>@import 'https://example.org/a.css';</style>", NETWORK),
        ("<style>p { /* url(x) */ background: url(a.svg) } q { content: 'b' }</style>", None),
        ("<style>@media print { p { mask: url(absent.svg#b) } }</style>", "no such file"),
        ("<style>@font-face { src: url(data:font/woff2;base64,AA) }</style>", None),
        ('<p title="url(absent.png)">url(absent.png)', None),
        ('<video><track src="absent.vtt"></video>', "no such file"),
        ('<video poster="https://example.org/a.png"></video>', NETWORK),
        ('<input type="image" src="https://example.org/a.png">', NETWORK),
        ('<link rel="manifest" href="https://example.org/a.json">', NETWORK),
        ('<link rel="modulepreload" href="absent.js">', "no such file"),
        ('<a href="other.html" ping="other.html https://example.org">', NETWORK),
        ('<base href="https://example.org/">', "unexpected base"),
        ('<base href="//example.org/">', "unexpected base"),
        ('<base href="folder/">', "unexpected base"),
        ('<base href="javascript:void(0)">', "unexpected base"),
        ('<base href="/site/"><a href="other.html#here">', None),
        (r'<script src="\\example.org\a.js"></script>', NETWORK),
        ('<a href="//[">', "not a well-formed address"),
        ('<img src="http://[">', "not a well-formed address"),
    ],
)
def test_checker_sees_each_kind_of_fault(tmp_path: Path, body: str, problem: str | None) -> None:
    """A kind of broken link could be overlooked, or a good one refused."""
    (tmp_path / "index.html").write_text(body, encoding="utf8")
    (tmp_path / "other.html").write_text('<p id="here">', encoding="utf8")
    (tmp_path / "a.svg").touch()
    found = links.check(tmp_path)
    assert len(found) == (problem is not None)
    assert all(line.startswith(f"index.html: {problem}: ") for line in found)


def test_a_page_with_a_base_is_read_from_there(tmp_path: Path) -> None:
    """The page of addresses that do not exist is shown in any folder."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.svg").touch()
    body = '<base href="/site/"><img src="folder/a.svg"><img src="a.svg">'
    (tmp_path / "folder" / "index.html").write_text(body, encoding="utf8")
    assert links.check(tmp_path) == ["folder/index.html: no such file: a.svg"]
