"""The page of all verdicts: a table that can be filtered, and both budgets of errors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from html import escape

from claimbook.collect import MAX_FALSE_ALARM, MAX_FALSE_PASS
from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.registry import FINDINGS, PRINTED_MUST_FAIL, UNSETTLED
from claimbook.render import WORDS, colour, number, verdict_word

#: What can be chosen in the filter; with `words`, also the keys of the page's address.
_CHOICES = ("source", "verdict", "kind", "chapter")

_SCRIPT = """\
<script>
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("td-filter");
  const rows = [...document.querySelectorAll("#td-ledger > tbody > tr")];
  const count = document.getElementById("td-count");
  const choices = ["source", "verdict", "kind", "chapter"];
  const keys = [...choices, "words"];
  const filter = () => {
    const wanted = choices.map((key) => [key, form.elements[key].value]);
    const words = form.elements.words.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.dataset.text;
      row.hidden = !wanted.every(([key, value]) => !value || row.dataset[key] === value)
        || !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} claims`;
  };
  // The address holds what is chosen, so that it can be kept and passed on.
  const remember = () => {
    const query = new URLSearchParams();
    for (const key of keys) {
      const value = form.elements[key].value.trim();
      if (value) query.set(key, value);
    }
    history.replaceState(null, "", `${query}` ? `?${query}` : location.pathname);
  };
  const recall = () => {
    const query = new URLSearchParams(location.search);
    for (const key of keys) {
      const field = form.elements[key];
      field.value = query.get(key) ?? "";
      if (field.selectedIndex === -1) field.value = "";
    }
    filter();
  };
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    const row = target && target.closest("#td-ledger > tbody > tr");
    if (!row) return;
    if (row.hidden) {
      form.reset();
      filter();
    }
    row.querySelector("details").open = true;
    row.scrollIntoView();
  };
  const change = () => {
    filter();
    remember();
  };
  form.addEventListener("input", change);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(change));
  window.addEventListener("hashchange", open);
  form.hidden = false;
  recall();
  open();
});
</script>
"""


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
    claims = ledger["claims"]
    meanings = "\n".join(
        f"- **{WORDS[name]}** ({ledger['counts'][name]}): {parts.MEANING[name]}."
        for name in FINDINGS
    )
    return "\n".join(
        [
            "# Ledger of claims\n",
            f"{len(claims)} claims, each with its verdict and the numbers that decide it. Each of "
            f"the {parts.checks(claims)} checks also ran on a wrong variant of its claim, and "
            "rejected it. {doc}`status` says from which build the numbers come.\n",
            meanings + "\n",
            *_sources(ledger),
            "## Two errors\n",
            "*A true claim fails*: the probability that in a repetition with another seed some "
            "check fails although its claim is true is at most "
            f"{number(ledger['false_alarm_total'], 2)}, the sum over all checks; a build in which "
            f"it exceeds {number(MAX_FALSE_ALARM)} fails.\n",
            "*A false claim passes*: the probability that some one-sided test passed although its "
            f"claim is false is at most {number(ledger['false_pass_total'], 2)} (limit "
            f"{number(MAX_FALSE_PASS)}). The two-sided checks let pass what is nearer to the claim "
            "than their resolution; {doc}`resolution` says how near that is. The two errors are "
            "never added. A number in the table leads to its claims.\n",
            parts.STYLE,
            _budget(ledger),
            "## Claims\n",
            _filter_form(ledger),
            parts.table(
                "td-table",
                ("Claim", "Verdict", "Statement and evidence"),
                map(_row, claims),
                id="td-ledger",
            ),
            _SCRIPT,
        ]
    )


def _sources(ledger: Ledger) -> Iterator[str]:
    if ledger["sources"]:
        lines = (f"- `{key}`: {parts.text(name)}" for key, name in ledger["sources"].items())
        yield "Sources:\n"
        yield "\n".join(lines) + "\n"


def _budget(ledger: Ledger) -> str:
    """Verdicts, checks and the bounds on both errors, by source."""
    groups = list(parts.by_source(ledger, ledger["claims"]))
    rows = [[escape(source), *_sums(claims, source)] for source, claims in groups]
    heads = (
        "source",
        "claims",
        *(WORDS[name] for name in FINDINGS),
        "checks",
        "of which random",
        "a true claim fails",
        "a false claim passes",
    )
    return parts.counts(heads, [*rows, ["all", *_sums(ledger["claims"])]])


def _sums(claims: list[Entry], source: str = "") -> list[str]:
    found = Counter(claim["verdict"] for claim in claims)
    items = [item for claim in claims for item in claim["evidence"]]
    where = {"source": source} if source else {}
    return [
        _chosen(len(claims), **where),
        *(_chosen(found[name], **where, verdict=name) for name in FINDINGS),
        str(len(items)),
        str(sum(item["sampling"] == "random" for item in items)),
        number(math.fsum(item["false_alarm"] for item in items), 2),
        number(math.fsum(item["false_pass"] for item in items), 2),
    ]


def _chosen(count: int, **wanted: str) -> str:
    """Return a number that leads to the claims it counts."""
    if not count or not wanted:
        return str(count)
    query = "&amp;".join(f"{key}={escape(value)}" for key, value in wanted.items())
    return f'<a href="?{query}#td-filter">{count}</a>'


def _filter_form(ledger: Ledger) -> str:
    claims = ledger["claims"]
    order: dict[str, list[str]] = {
        "source": [source for source, _ in parts.by_source(ledger, claims)],
        "verdict": [name for name in FINDINGS if ledger["counts"][name]],
        **{key: sorted({claim[key] for claim in claims}) for key in ("kind", "chapter")},
    }
    selects = []
    for key in _CHOICES:
        options = "".join(
            f'<option value="{escape(value, quote=True)}">'
            f"{escape(WORDS.get(value, value))}</option>"
            for value in order[key]
        )
        selects.append(
            f'<label>{key}<select name="{key}"><option value="">all</option>{options}'
            "</select></label>"
        )
    return (
        f'<form class="td-filter" id="td-filter" hidden>{"".join(selects)}'
        '<label>words<input type="search" name="words"></label>'
        '<button type="reset">show all</button>'
        '<output id="td-count" aria-live="polite"></output></form>\n'
    )


def _row(claim: Entry) -> str:
    place = parts.anchor("claim", claim["id"])
    words = " ".join((claim["id"], claim["number"], claim["statement"])).lower()
    data = " ".join(
        f'data-{key}="{escape(value, quote=True)}"'
        for key, value in (
            *((key, claim[key]) for key in _CHOICES),
            ("text", " ".join(words.split())),
        )
    )
    border = f"border-left:.35em solid {colour(claim['verdict'])}"
    statement = [f"({place})=", parts.text(claim["statement"]), ""]
    if "reason" in claim:
        reason = parts.text(claim["reason"])
        statement += [f"*{WORDS[claim['verdict']].capitalize()}:* {reason}", ""]
    statement += parts.scope(claim)
    return "\n".join(
        [
            f'<tr {data}><td style="{border}"><a href="#{place}"><code>{escape(claim["id"])}'
            f"</code></a><br>{escape(claim['number'])}</td>"
            f"<td>{verdict_word(claim['verdict'])}",
            "",
            *_more(claim),
            parts.chapter_link(claim["chapter"]),
            "",
            "</td><td>",
            "",
            *statement,
            f"{parts.details(claim)}</td></tr>",
        ]
    )


def _more(claim: Entry) -> Iterator[str]:
    """Link to the page that says more about a verdict, if there is one."""
    if claim["verdict"] in PRINTED_MUST_FAIL:
        yield f"{{ref}}`erratum <{parts.anchor('erratum', claim['id'])}>`"
        yield ""
    elif claim["verdict"] in UNSETTLED:
        yield f"{{ref}}`what would settle it <{parts.anchor('limit', claim['id'])}>`"
        yield ""
