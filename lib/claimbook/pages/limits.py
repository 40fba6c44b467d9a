"""The page of what could not be reproduced, why, and what would settle it."""

from __future__ import annotations

from collections.abc import Iterator

from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.registry import UNSETTLED, Finding

_SECTIONS: dict[Finding, tuple[str, str]] = {
    "partial": (
        "Holds in part",
        "One part was tested and holds; the entry says what does not, or was not tested.",
    ),
    "data": (
        "Needs data that are not shipped",
        "The experiment runs on a substitute, named in the entry, and shows there what the source "
        "describes. The source's own data, or which part of a public set it took, are not known.",
    ),
}


def page(ledger: Ledger) -> str:
    """Return the page as MyST text.

    Parameters
    ----------
    ledger : mapping
        Content of ``ledger.json``.

    Returns
    -------
    str
    """
    chosen = [claim for claim in ledger["claims"] if claim["verdict"] in UNSETTLED]
    lines = [
        "# What could not be reproduced, and why\n",
        f"{len(chosen)} of {len(ledger['claims'])} claims are not settled here as they stand in "
        "their source. Each says why, and what would settle it; times and sizes named there "
        "are our estimates. Statements found false are among the {doc}`errata`.\n",
        parts.STYLE,
    ]
    if not chosen:
        return "\n".join([*lines, "None.\n"])
    names = [name for name in _SECTIONS if any(claim["verdict"] == name for claim in chosen)]
    rows = [
        [source, *(sum(claim["verdict"] == name for claim in mine) for name in names)]
        for source, mine in [*parts.by_source(ledger, chosen), ("all", chosen)]
    ]
    heads = [f'<a href="#{_place(name)}">{_SECTIONS[name][0].lower()}</a>' for name in names]
    lines.append(parts.counts(["source", *heads], rows))
    for name in names:
        mine = [claim for claim in chosen if claim["verdict"] == name]
        lines += _section(ledger, name, mine)
    return "\n".join([*lines, *_smaller(ledger)])


def _place(name: str) -> str:
    return parts.anchor("limits", name)


def _section(ledger: Ledger, name: Finding, claims: list[Entry]) -> Iterator[str]:
    title, meaning = _SECTIONS[name]
    yield f"({_place(name)})="
    yield f"## {title}\n"
    yield f"{meaning}\n"
    for source, mine in parts.by_source(ledger, claims):
        yield f"### {source}: {title.lower()}\n"
        yield from map(_limit, sorted(mine, key=lambda c: parts.numerically(c["number"])))


def _limit(claim: Entry) -> str:
    return "\n".join(
        [
            f"({parts.anchor('limit', claim['id'])})=",
            f"**{claim['number']}.** {parts.text(claim['statement'])}\n",
            f"*Why.* {parts.text(claim['reason'])}\n",
            f"*What would settle it.* {parts.text(claim['settle'])}\n",
            *parts.scope(claim),
            f"{parts.chapter_link(claim['chapter'])} · {parts.ledger_link(claim['id'])}\n",
            "---\n",
        ]
    )


def _smaller(ledger: Ledger) -> Iterator[str]:
    """Sizes that stay below those of the source even at paper sizes."""
    if not ledger["smaller"]:
        return
    yield "## Sizes below those of the source\n"
    yield (
        "The profile `paper` takes the sizes of the source where it states them, with these "
        "exceptions. The verdicts of these chapters are about our sizes.\n"
    )
    rows = (
        "\n".join(
            [
                "<tr><td>",
                "",
                parts.chapter_link(entry["chapter"]),
                *(
                    f"\n</td><td>\n\n*{key.capitalize()}:* {parts.text(entry[key])}"
                    for key in ("source", "ours", "why")
                ),
                "",
                "</td></tr>",
            ]
        )
        for entry in ledger["smaller"]
    )
    yield parts.table("td-table", ("Chapter", "Source", "Ours", "Why"), rows)
