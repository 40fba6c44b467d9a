"""The templates of the pages, in ``templates`` beside this package: MyST with HTML in it.

Nothing is escaped by itself, for what is right in Markdown, in HTML and in mathematics differs. A
template says for each value which of the three it becomes: `text`, `html` or `formula`.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from claimbook import render as html
from claimbook.pages import parts, plain

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
    undefined=StrictUndefined,
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(
    colour=html.colour,
    display=parts.display,
    duration=parts.duration,
    evidence=parts.evidence,
    evidence_list=html.evidence_list,
    formula=parts.formula,
    html=escape,
    number=html.number,
    panel_counts=html.panel_counts,
    panel_word=html.panel_word,
    paragraph=parts.paragraph,
    plain=plain.plain,
    printed=plain.printed,
    text=parts.text,
    verdict=html.verdict_word,
)
_TEMPLATES.globals.update(anchor=parts.anchor, comparison=html.comparison)
_TEMPLATES.globals.update(words=html.WORDS, panel_words=html.PANEL_WORDS)


def render(page: str, **values: object) -> str:
    """Return a page as MyST text.

    Parameters
    ----------
    page : str
        Name of its template, without the suffix.
    **values
        What the template shows.
    """
    return _TEMPLATES.get_template(f"{page}.md.j2").render(values).rstrip("\n") + "\n"
