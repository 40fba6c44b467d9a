"""HTML of verdicts and evidence, shared by the badges in chapters and the ledger's pages.

Colours come from custom properties with fallbacks and text keeps the page's own colour,
so both themes of the book work; nothing is loaded from elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from claimbook.evidence import ControlResult, Evidence, Value
from claimbook.registry import Finding, PanelFinding
from claimbook.verdict import Record

MARKS: dict[Finding, str] = {
    "confirmed": "✓",
    "corrected": "✎",
    "false": "✗",
    "partial": "◐",
    "data": "⛁",
}
#: Verdicts as pages say them.
WORDS: dict[str, str] = {
    "confirmed": "confirmed",
    "corrected": "misprint, corrected",
    "false": "false as stated",
    "partial": "partial",
    "data": "undecided for want of data",
}
#: The same of a panel of a figure.
PANEL_WORDS: dict[str, str] = {**WORDS, "data": "holds on other data", "open": "open"}
_COLOURS: dict[Finding, str] = {
    "confirmed": "#2e8b57",
    "corrected": "#b8860b",
    "false": "#c0392b",
    "partial": "#2f7fb5",
    "data": "#7f7f7f",
}
_LIST = "display:grid;grid-template-columns:max-content minmax(0,1fr);gap:0 .8em;margin:.1em 0 .6em"


def colour(verdict: Finding) -> str:
    """CSS colour of a verdict, overridable as ``--td-<verdict>``."""
    return f"var(--td-{verdict}, {_COLOURS[verdict]})"


def verdict_word(verdict: Finding) -> str:
    """Return the verdict as HTML: a decorative mark and the word."""
    return f'<span aria-hidden="true">{MARKS[verdict]}</span> <strong>{WORDS[verdict]}</strong>'


def panel_word(finding: PanelFinding) -> str:
    """Return what was found of a panel as HTML, as `verdict_word` does of a claim."""
    mark = "○" if finding == "open" else MARKS[finding]
    return f'<span aria-hidden="true">{mark}</span> {PANEL_WORDS[finding]}'


def panel_counts(findings: Iterable[PanelFinding]) -> str:
    """Say of how many panels what was found.

    Examples
    --------
    >>> from claimbook.render import panel_counts
    >>> panel_counts(["open", "data", "data"]), panel_counts(["confirmed"])
    ('3 panels: 2 hold on other data, 1 open', '1 panel: confirmed')
    """
    found: Counter[str] = Counter(findings)
    if found.total() == 1:
        return f"1 panel: {PANEL_WORDS[next(iter(found))]}"
    parts = [
        f"{found[name]} {word if found[name] == 1 else word.replace('holds', 'hold')}"
        for name, word in PANEL_WORDS.items()
        if found[name]
    ]
    return f"{found.total()} panels: {', '.join(parts)}"


def number(value: Value, digits: int = 6) -> str:
    """Return a number or an interval, with a typographic minus and exponent.

    Examples
    --------
    >>> from claimbook.render import number
    >>> number(-1e-06), number((0.0, 1 / 3), digits=2)
    ('−1e−6', '[0, 0.33]')
    """
    if isinstance(value, tuple):
        return "[" + ", ".join(number(part, digits) for part in value) + "]"
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    text = f"{mantissa}e{int(exponent)}" if exponent else mantissa
    return text.replace("-", "\N{MINUS SIGN}")


def excludes(item: Evidence) -> str:
    """Say in words what the check rules out: the smallest departure it would have refused.

    Examples
    --------
    >>> from claimbook.render import excludes
    >>> from claimbook import Control, identity
    >>> wrong = Control("doubled", observed=2.0)
    >>> excludes(identity("pi", observed=3.14, expected=3.141, tolerance=0.01, control=wrong))
    'a departure of 0.35 %'
    """
    if item.resolution is None:
        return "not computed"
    if item.resolution == 0:
        return "any departure"
    if item.departure == "exponent":
        return f"an exponent off by {number(item.resolution, 2)}"
    if item.departure == "law":
        return f"laws whose distribution functions differ by {number(item.resolution, 2)}"
    if item.departure == "share":
        return f"a probability off by {number(item.resolution, 2)}"
    if item.departure == "variance":
        return f"a variance larger by {number(item.resolution, 2)}"
    if item.departure == "margin":
        far = _relative(item)
        return f"values {number(item.resolution, 2)}{far} nearer to the bound, or beyond it"
    if item.departure == "side":
        far = _relative(item)
        return (
            "every value beyond the bound (one within it passes from a distance of "
            f"{number(item.resolution, 2)}{far})"
        )
    part = item.relative_resolution()
    if part is None or part > 0.5:
        return f"a departure of {number(item.resolution, 2)}"
    single = item.scale is None or item.scale == np.max(np.abs(item.expected))
    of = "" if single else " of the largest value compared"
    if part < 1e-6:
        return f"a relative departure of {number(part, 2)}"
    return f"a departure of {number(100 * part, 2)} %{of}"


def _relative(item: Evidence) -> str:
    part = item.relative_resolution()
    return "" if part is None or part > 10 else f" ({number(100 * part, 2)} %)"


def _decision(item: Evidence) -> str:
    parts = [escape(item.method)] if item.method else []
    parts.append(f"n = {item.n}")
    if item.p_value is not None:
        parts.append(f"p = {number(item.p_value, 2)}")
    if item.reason:
        parts.append(f"tolerance: {escape(item.reason)}")
    return "; ".join(parts)


def _chances(item: Evidence) -> str:
    """Say both probabilities of error of a random check."""
    fails = f"a true claim fails with probability {number(item.false_alarm, 2)}"
    if item.false_pass:
        return f"{fails}, a false one passes with probability {number(item.false_pass, 2)}"
    return f"{fails}; a false one that is nearer than the departure named may pass"


def comparison(item: Evidence, wrong: ControlResult | None = None) -> str:
    """Return the two numbers of a check, or those of its wrong variant, as HTML.

    Both are rounded to what the error of the check lets one see.
    """
    observed, expected = (wrong or item).observed, (wrong or item).expected
    word = "bound" if item.departure in ("margin", "side") else "expected"
    digits = _digits(item, expected)
    what = "exponent " if item.departure == "exponent" else ""
    return f"{what}<strong>{number(observed, digits)}</strong>, {word} {number(expected, digits)}"


def _digits(item: Evidence, expected: Value) -> int:
    """Digits that the error of a number leaves: 3 to 6, and all before the point."""
    size = float(np.max(np.abs(expected)))
    if not 0 < size < np.inf:
        return 3
    if item.error == 0:
        return 4 if item.departure in ("margin", "side") else 6
    left = np.log10(size / item.error) + 1
    return int(np.clip(np.ceil(max(left, np.log10(size) + 1)), 3, 6))


def evidence_list(evidence: Sequence[Evidence]) -> str:
    """Return the numbers that decide as HTML in a single line, readable at any width."""
    entries = []
    for item in evidence:
        control = item.control
        wrong = f"{escape(control.variant)}{' (as printed)' if control.printed else ''}: "
        wrong += f"{comparison(item, control)}; rejected"
        if control.far:
            wrong += f"; {escape(control.far)}"
        rows = {
            "observed": f"{comparison(item)}, error {number(item.error, 2)}",
            "wrong variant": wrong,
            "excludes": excludes(item),
            **({"errors": _chances(item)} if item.sampling == "random" else {}),
            "decided by": _decision(item),
        }
        body = "".join(
            f'<dt style="font-weight:normal;opacity:.8">{name}</dt><dd style="margin:0">{row}</dd>'
            for name, row in rows.items()
        )
        entries.append(
            f'<p style="margin:0">{escape(item.check)}</p><dl style="{_LIST}">{body}</dl>'
        )
    return (
        '<div class="td-evidence" style="font-size:.9em;margin:.4em 0 0;overflow-wrap:break-word">'
        f"{''.join(entries)}</div>"
    ).replace("\n", " ")


def badge(record: Record) -> str:
    """Return the badge of a recorded claim."""
    label = escape(f"Verdict on {record.id}, {record.number}: {WORDS[record.verdict]}", quote=True)
    return (
        f'<div class="td-badge td-{record.verdict}" role="note" aria-label="{label}" '
        f'style="border-left:.35em solid {colour(record.verdict)};padding:.3em .8em;margin:.5em 0">'
        f'<details><summary style="cursor:pointer">{verdict_word(record.verdict)} '
        f"<code>{escape(record.id)}</code> {escape(record.number)}</summary>"
        f"{evidence_list(record.evidence)}</details></div>"
    )
