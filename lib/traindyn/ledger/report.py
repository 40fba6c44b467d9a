"""The ledger's pages for the book: every verdict, the errata, the figures.

The pages are MyST, so that mathematics and links between pages are the book's own (and
checked by its build), with raw HTML around them for the filterable table. They stand in
the folder that holds the chapters' folders: a chapter is linked by its name.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from traindyn.ledger.evidence import Evidence
from traindyn.ledger.files import write
from traindyn.ledger.registry import FINDINGS, ClaimError, schema_faults
from traindyn.ledger.render import colour, comparison, evidence_list, number, verdict_word

_THUMBNAIL_WIDTH = 640  # pixels; shown at half of that

_MEANING = {
    "confirmed": "holds as stated",
    "corrected": "the source misprints it: ours holds, the printed formula fails the same check",
    "refuted": "does not hold as stated",
    "partial": "holds in part; the entry says which",
    "data": "needs data that are not shipped; tested on a substitute",
}

_STYLE = """\
<style>
.td-table {width: 100%; border-collapse: collapse; font-size: .9em; table-layout: fixed}
.td-table th, .td-table td {text-align: left; vertical-align: top; padding: .5em .6em;
  border-bottom: 1px solid var(--pst-color-border, #8886); overflow-wrap: break-word}
#td-ledger th:nth-child(-n+2) {width: 22%}
#td-figures th {width: 18%}
#td-figures th:nth-child(2) {width: auto}
.td-table td p {margin: 0 0 .4em; overflow-x: auto; overflow-y: hidden}
.td-table td img {width: 20rem; max-width: 100%; height: auto}
.td-table td ul {margin: 0; padding: 0; list-style: none}
.td-table details > summary {cursor: pointer}
.td-filter {display: flex; flex-wrap: wrap; gap: .5em 1em; margin: 1em 0; align-items: end}
.td-filter[hidden] {display: none}
.td-filter label {display: flex; flex-direction: column; font-size: .85em}
.td-filter select, .td-filter input {font: inherit; padding: .25em .4em; margin: 0;
  max-width: 80vw}
.td-scroll {overflow-x: auto; max-width: 100%}
.td-scroll mjx-container > svg {max-width: none}
@media (max-width: 48rem) {
  .td-table thead {position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%)}
  .td-table, .td-table tbody, .td-table > tbody > tr, .td-table > tbody > tr > td {display: block}
  .td-table > tbody > tr {border-bottom: 2px solid var(--pst-color-border, #8886)}
  .td-table > tbody > tr > td {border-bottom: 0; padding: .25em .6em}
  .td-table > tbody > tr[hidden] {display: none}
}
</style>
"""

_SCRIPT = """\
<script>
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("td-filter");
  const rows = [...document.querySelectorAll("#td-ledger > tbody > tr")];
  const count = document.getElementById("td-count");
  const filter = () => {
    const wanted = ["source", "verdict", "chapter"].map((key) => [key, form.elements[key].value]);
    const words = form.elements.text.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.dataset.text;
      row.hidden = !wanted.every(([key, value]) => !value || row.dataset[key] === value)
        || !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} claims`;
  };
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    const row = target && target.closest("#td-ledger > tbody > tr");
    if (!row) return;
    form.reset();
    filter();
    row.querySelector("details").open = true;
    row.scrollIntoView();
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  window.addEventListener("hashchange", open);
  form.hidden = false;
  filter();
  open();
});
</script>
"""


def write_pages(ledger_json: Path, out_dir: Path) -> list[Path]:
    """Write ``ledger.md``, ``errata.md``, ``figures.md`` and the thumbnails they show.

    Parameters
    ----------
    ledger_json : Path
        As written by :func:`traindyn.ledger.build`, with ``figures/`` beside it.
    out_dir : Path
        Folder in which the chapter ``a/b`` is the page ``a/b``.

    Returns
    -------
    list of Path
        The three pages.

    Raises
    ------
    ClaimError
        If the ledger or one of its images is missing or not valid.
    """
    try:
        ledger = json.loads(ledger_json.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ClaimError(f"cannot read the ledger {ledger_json}: {error}") from error
    broken = schema_faults("ledger", ledger)
    if broken:
        raise ClaimError(f"{ledger_json}: {broken[0].json_path}: {broken[0].message}")
    out_dir.mkdir(parents=True, exist_ok=True)
    thumbnails = _write_thumbnails(ledger, ledger_json.parent, out_dir)
    pages = {
        "ledger.md": _ledger_page(ledger),
        "errata.md": _errata_page(ledger),
        "figures.md": _figures_page(ledger, thumbnails),
    }
    return [write(out_dir / name, text.encode()) for name, text in pages.items()]


def _write_thumbnails(
    ledger: dict[str, Any], source: Path, out_dir: Path
) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (path relative to the pages, alternative text) by (chapter, label)."""
    from PIL import Image

    folder = out_dir / "thumbnails"
    folder.mkdir(exist_ok=True)
    found = {}
    for figure in ledger["figures"]:
        path = source / figure["image"]
        try:
            with Image.open(path) as image:
                image.thumbnail((_THUMBNAIL_WIDTH, 2 * _THUMBNAIL_WIDTH))
                buffer = io.BytesIO()
                image.save(buffer, format="PNG", optimize=True)
        except OSError as error:
            raise ClaimError(f"figure {figure['label']!r}: cannot read {path}: {error}") from error
        write(folder / path.name, buffer.getvalue())
        found[figure["chapter"], figure["label"]] = (f"thumbnails/{path.name}", figure["alt"])
    return found


def _anchor(id: str) -> str:
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def _chapter_link(chapter: str) -> str:
    return f"{{doc}}`{chapter}`"


def _ledger_link(id: str) -> str:
    return f"{{ref}}`{id} <{_anchor(id)}>`"


def _text(text: str) -> str:
    """One line of MyST that starts no block and holds no HTML, outside mathematics."""
    parts = " ".join(text.split()).split("$")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    line = "$".join(parts)
    return "\\" + line if re.match(r"[#>]|[-+*] |\$\$", line) else line


def _formula(text: str) -> str:
    """Display mathematics; text that brings its own dollars is left as it is."""
    return _text(text) if "$" in text else f"$$\n{' '.join(text.split())}\n$$"


def _evidence(claim: dict[str, Any]) -> list[Evidence]:
    return [Evidence.from_json(item) for item in claim["evidence"]]


def _table(id: str, heads: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "\n\n".join(rows)
    return (
        f'<table class="td-table" id="{id}"><thead><tr>{head}</tr></thead><tbody>\n\n'
        f"{body}\n\n</tbody></table>\n"
    )


def _details(claim: dict[str, Any]) -> str:
    evidence = _evidence(claim)
    checks = "1 check" if len(evidence) == 1 else f"{len(evidence)} checks"
    return f"<details><summary>{checks}</summary>{evidence_list(evidence)}</details>"


def _ledger_page(ledger: dict[str, Any]) -> str:
    claims = ledger["claims"]
    counts = "\n".join(
        f"- **{name}** ({ledger['counts'][name]}): {_MEANING[name]}." for name in FINDINGS
    )
    packages = ", ".join(f"{k} {v}" for k, v in ledger["environment"]["packages"].items())
    environment = ledger["environment"]
    parts = [
        "# Ledger of claims\n",
        f"{len(claims)} claims, each with its verdict and the numbers that decide it. Every check "
        "also ran on a wrong variant of its claim, and rejected it. The probability that chance "
        "alone decided some verdict wrongly (a true claim failed or, in one-sided tests, a false "
        f"one passed) is at most {number(ledger['false_alarm_total'], 2)}.\n",
        counts + "\n",
        *_sources(ledger),
        f"Profile `{ledger['profile']}`, seed `{ledger['seed']}`, "
        f"commit `{ledger['commit'][:12]}`; "
        f"Python {environment['python']} on {environment['platform']}, "
        f"{environment['cores']} cores; {packages}.\n",
        _STYLE,
        _filter_form(claims),
        _table(
            "td-ledger",
            ("Claim", "Verdict", "Statement and evidence"),
            map(_ledger_row, claims),
        ),
        _SCRIPT,
    ]
    return "\n".join(parts)


def _sources(ledger: dict[str, Any]) -> Iterator[str]:
    if ledger["sources"]:
        lines = (f"- `{key}`: {_text(text)}" for key, text in ledger["sources"].items())
        yield "Sources:\n"
        yield "\n".join(lines) + "\n"


def _filter_form(claims: list[dict[str, Any]]) -> str:
    selects = []
    for key in ("source", "verdict", "chapter"):
        values = sorted({claim[key] for claim in claims})
        options = "".join(f"<option>{escape(value)}</option>" for value in values)
        selects.append(
            f'<label>{key}<select name="{key}"><option value="">all</option>{options}'
            "</select></label>"
        )
    return (
        f'<form class="td-filter" id="td-filter" hidden>{"".join(selects)}'
        '<label>words<input type="search" name="text"></label>'
        '<output id="td-count" aria-live="polite"></output></form>\n'
    )


def _ledger_row(claim: dict[str, Any]) -> str:
    words = " ".join((claim["id"], claim["number"], claim["statement"])).lower()
    data = " ".join(
        f'data-{key}="{escape(value, quote=True)}"'
        for key, value in (
            ("source", claim["source"]),
            ("verdict", claim["verdict"]),
            ("chapter", claim["chapter"]),
            ("text", " ".join(words.split())),
        )
    )
    border = f"border-left:.35em solid {colour(claim['verdict'])}"
    statement = [f"({_anchor(claim['id'])})=", _text(claim["statement"]), ""]
    if "reason" in claim:
        statement += [f"*{claim['verdict'].capitalize()}:* {_text(claim['reason'])}", ""]
    return "\n".join(
        [
            f'<tr {data}><td style="{border}"><code>{escape(claim["id"])}</code><br>'
            f"{escape(claim['number'])}</td>"
            f"<td>{verdict_word(claim['verdict'])}",
            "",
            _chapter_link(claim["chapter"]),
            "",
            "</td><td>",
            "",
            *statement,
            f"{_details(claim)}</td></tr>",
        ]
    )


def _errata_page(ledger: dict[str, Any]) -> str:
    parts = [
        "# Errata\n",
        "Formulas and statements of the sources that do not hold as printed. For each, the "
        "corrected and the printed version went through the same check.\n",
        _STYLE,
    ]
    for verdict, title in (("corrected", "Corrected"), ("refuted", "Refuted")):
        chosen = [claim for claim in ledger["claims"] if claim["verdict"] == verdict]
        chosen.sort(key=lambda claim: -claim.get("weight", 0.0))
        if chosen:
            parts += [f"## {title}\n", *map(_erratum, chosen)]
    if len(parts) == 3:
        parts.append("None.\n")
    return "\n".join(parts)


def _erratum(claim: dict[str, Any]) -> str:
    lines = [
        f"### {claim['source']}, {claim['number']}\n",
        _text(claim["statement"]) + "\n",
    ]
    if "printed" in claim:
        lines += ["**Printed**\n", _scroll(_formula(claim["printed"]))]
    if "ours" in claim:
        lines += ["**Ours**\n", _scroll(_formula(claim["ours"]))]
    if "reason" in claim:
        lines.append(f"**Why** {_text(claim['reason'])}\n")
    lines.append("**The numbers that decide**\n")
    lines += ["<ul>" + "".join(map(_decider, _evidence(claim))) + "</ul>\n"]
    lines.append(f"{_details(claim)}\n")
    lines.append(f"{_chapter_link(claim['chapter'])} · {_ledger_link(claim['id'])}\n")
    return "\n".join(lines)


def _scroll(block: str) -> str:
    """Let a wide formula scroll inside its own box."""
    return f'<div class="td-scroll">\n\n{block}\n\n</div>\n'


def _decider(item: Evidence) -> str:
    """One list entry for a check whose control is the printed version; empty otherwise."""
    if not item.control.printed:
        return ""
    variant = item.control.variant
    printed = "as printed" if variant == "as printed" else f"as printed ({escape(variant)})"
    return (
        f"<li>{escape(item.check)}: ours {comparison(item.observed, item.expected)} "
        f"(error {number(item.error)}); {printed} "
        f"{comparison(item.control.observed, item.control.expected)}</li>"
    )


def _figures_page(
    ledger: dict[str, Any], thumbnails: dict[tuple[str, str], tuple[str, str]]
) -> str:
    seconds = {entry["chapter"]: entry["seconds"] for entry in ledger["chapters"]}
    shown: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for claim in ledger["claims"]:
        if claim["figure"]:
            key = (claim["source"], claim["number"], claim["chapter"], claim["figure"])
            shown.setdefault(key, []).append(claim)
    rows = [
        _figure_row(group, *thumbnails[key[2], key[3]], seconds[key[2]])
        for key, group in shown.items()
    ]
    return "\n".join(
        [
            "# Figures\n",
            "Each figure of the sources, and the one we recompute for it. Runtimes are those of "
            f"this build (profile `{ledger['profile']}`, {ledger['environment']['cores']} cores), "
            "counted from the claim before.\n",
            _STYLE,
            _table("td-figures", ("Source", "Ours", "Verdicts", "Runtime"), rows)
            if rows
            else "None.\n",
        ]
    )


def _figure_row(claims: list[dict[str, Any]], image: str, alt: str, seconds: float) -> str:
    """One row for the claims of one number that show the same figure."""
    first = claims[0]
    verdicts = [f"- {claim['verdict']} {_ledger_link(claim['id'])}" for claim in claims]
    own = sum(claim["seconds"] for claim in claims)
    return "\n".join(
        [
            f"<tr><td>{escape(first['source'])}<br>{escape(first['number'])}",
            "",
            _chapter_link(first["chapter"]),
            "",
            "</td><td>",
            "",
            f"```{{image}} {image}",
            f":alt: {' '.join(alt.split())}",
            "```",
            "",
            "</td><td>",
            "",
            *verdicts,
            "",
            f"</td><td>{own:.1f} s<br>(chapter {seconds:.1f} s)</td></tr>",
        ]
    )
