"""How tests open the pages of the built site."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

#: In place of MathJax, which takes seconds on a page with hundreds of formulas.
_LETTERS = """
for (const formula of document.querySelectorAll(".math")) formula.textContent = "x";
MathJax.startup = {promise: Promise.resolve()};
"""


def without_formulas(pages: Page | BrowserContext) -> None:
    """Show a letter in place of each formula of the pages that are opened from now on.

    Parameters
    ----------
    pages : Page or BrowserContext
        Where they are opened.
    """
    pages.route(
        "**/mathjax/*.js*",
        lambda route: route.fulfill(content_type="text/javascript", body=_LETTERS),
    )


def open_quietly(page: Page, address: str) -> None:
    """Go to a page and wait until the network is idle.

    Parameters
    ----------
    page : Page
        Where it is opened.
    address : str
        Of what is opened.
    """
    # The network can be idle for a while before a busy machine has the whole page.
    page.goto(address, wait_until="load")
    page.wait_for_load_state("networkidle")
