"""The policy of a page: what it runs, what it does not, and that a browser keeps to it."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from claimbook.site import policy, stage

PAGE = """<html><head>
<title>t</title><script>window.own = "é";</script>
<script type="application/json">{"a": 1}</script>
</head><body><button onclick="window.pressed = 1 &lt; 2">b</button>
<script src="beside.js"></script></body></html>
"""


def hashed(text: str) -> str:
    """How a policy names a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_names_what_the_page_runs() -> None:
    """A hash too few would stop the page, one too many or a wildcard would let others in."""
    script, handler = 'window.own = "é";', "window.pressed = 1 < 2"
    rules = dict(rule.partition(" ")[::2] for rule in policy.policy(PAGE).split("; "))
    sources = rules["script-src"].split()
    assert sources == ["'self'", "'unsafe-hashes'", *sorted([hashed(script), hashed(handler)])]
    assert rules["default-src"] == "'none'"
    assert policy.policy("<p>").endswith("; script-src 'self'")


def test_browser_keeps_to_the_policy(tmp_path: Path, browser: Any) -> None:
    """A policy behind the first script, or a wrong hash, is none; that of a folder counts too."""
    (tmp_path / "page.html").write_text(PAGE, encoding="utf8")
    (tmp_path / "beside.js").write_text("window.beside = true;", encoding="utf8")
    (tmp_path / "index.html").write_text('<meta http-equiv="Refresh" content="0">', "utf8")
    policy.put(tmp_path)
    index = (tmp_path / "index.html").read_text("utf8")
    assert index.startswith('<meta http-equiv="Content-S')
    assert hashed("window.pressed = 1 < 2") in index  # what another page holds, a search reads
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.click("button")
    seen = page.evaluate("[window.own, window.pressed, window.beside]")
    assert seen == ["é", True, True]
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.foreign = 1";
          const box = document.createElement("div");
          box.innerHTML = '<img src="absent" onerror="window.foreign = 2">';
          document.body.append(script, box);
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.foreign ?? null") is None
    page.close()


def test_licences_travel_with_the_bundle(tmp_path: Path) -> None:
    """The bundle is made without the notices that its parts ask for."""
    stage._copy_vega(tmp_path / "vega.js")
    start = (tmp_path / "vega.js").read_text("utf8").partition("*/\n(() => {")[0]
    assert start.startswith("/*!\n")
    for words in (
        "Copyright (c) 2015-2023, University of Washington Interactive Data Lab",
        "Redistributions in binary form must reproduce the above copyright notice",
        "Mike Bostock",
        "Permission to use, copy, modify, and/or distribute",
    ):
        assert words in start
