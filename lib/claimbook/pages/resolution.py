"""The page of resolutions: how near to a claim a wrong statement may be and still pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from claimbook.evidence import Evidence
from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.render import excludes, number

#: Controls further away than this, in resolutions, say why.
FAR = 10.0
_WEAKEST = 30


@dataclass(frozen=True)
class _Scale:
    """A kind of departure, the limits of its classes, and how a check is measured on it."""

    title: str
    limits: tuple[float, ...]
    measure: Callable[[Evidence], float | None]
    format: Callable[[float], str]


def _value(item: Evidence) -> float | None:
    return item.relative_resolution() if item.departure in ("value", "variance") else None


def _exponent(item: Evidence) -> float | None:
    return item.resolution if item.departure == "exponent" else None


def _probability(item: Evidence) -> float | None:
    return item.resolution if item.departure in ("share", "law") else None


_SCALES = (
    _Scale(
        "a constant, relative to it",
        (1e-6, 0.01, 0.03, 0.1, 0.3),
        _value,
        lambda limit: "rounding" if limit == 1e-6 else f"{number(100 * limit)} %",
    ),
    _Scale("an exponent", (0.01, 0.03, 0.1, 0.3), _exponent, number),
    _Scale("a probability or a law", (0.01, 0.03, 0.1, 0.3), _probability, number),
)


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
    checks = [(claim, item) for claim in ledger["claims"] for item in parts.evidence(claim)]
    items = [item for _, item in checks]
    return "\n".join(
        [
            "# What the verdicts exclude\n",
            "The resolution of a check is the smallest departure from the claim that the check "
            "refuses with probability at least 0.99. A wrong statement nearer than that passes, "
            "so that no verdict is sharper than the resolution of its checks. For inequalities "
            "the checks keep the distance to the bound; one-sided tests refuse everything on the "
            "wrong side of their bound. {doc}`ledger` has the resolution of every check.\n",
            parts.STYLE,
            "## How fine the checks are\n",
            "Number of checks by the departure that they exclude, each class up to the limit "
            "named.\n",
            *(_distribution(scale, items) for scale in _SCALES),
            _rest(items),
            "## The weakest checks\n",
            "The coarsest of each kind: a wrong statement within the departure named would pass "
            "this check. Another check of the same claim may be finer.\n",
            *(_weakest(scale, checks) for scale in _SCALES),
            "## Wrong variants that are far away\n",
            *_far(checks),
        ]
    )


def _distribution(scale: _Scale, items: Sequence[Evidence]) -> str:
    found = [value for item in items if (value := scale.measure(item)) is not None]
    limits = (0.0, *scale.limits, float("inf"))
    counts = [
        sum(low < value <= high or value == 0.0 == low for value in found)
        for low, high in pairwise(limits)
    ]
    heads = [scale.format(limit) for limit in scale.limits]
    return parts.counts([scale.title, *heads, "more", "all"], [["checks", *counts, len(found)]])


def _rest(items: Sequence[Evidence]) -> str:
    """Count the checks that are on none of the scales."""
    groups = {
        "an inequality that no draw can change": lambda item: item.departure == "margin",
        "a one-sided test": lambda item: item.departure == "side",
        "a value whose claim is zero, or an interval": lambda item: (
            item.departure in ("value", "variance")
            and item.resolution is not None
            and _value(item) is None
        ),
        "resolution not computed": lambda item: item.resolution is None,
    }
    rows = [[title, sum(map(member, items))] for title, member in groups.items()]
    return parts.counts(["other checks", "number"], rows)


def _weakest(scale: _Scale, checks: Sequence[tuple[Entry, Evidence]]) -> str:
    measured = [
        (value, claim, item)
        for claim, item in checks
        if (value := scale.measure(item)) is not None and value > scale.limits[0]
    ]
    measured.sort(key=lambda entry: (-entry[0], entry[1]["id"]))
    rows = (_row(claim, item, _compared(item)) for _, claim, item in measured[:_WEAKEST])
    return parts.table("td-table", ("Claim", "Check", f"Excludes ({scale.title})"), rows)


def _compared(item: Evidence) -> str:
    """Return what a check excludes, with the value that it is a departure from."""
    if item.departure in ("value", "variance"):
        size = item.expected if item.scale is None else item.scale
        return f"{excludes(item)}, from {number(size, 2)}"
    return excludes(item)


def _far(checks: Sequence[tuple[Entry, Evidence]]) -> Iterator[str]:
    """List the controls that are neither near nor printed and do not say why."""
    far = [
        (distance, claim, item)
        for claim, item in checks
        if (distance := item.control_distance()) is not None
        and distance > FAR
        and not item.control.printed
        and not item.control.far
    ]
    far.sort(key=lambda entry: (-entry[0], entry[1]["id"]))
    yield (
        "Each check has refused a wrong variant of its claim. A variant more than "
        f"{number(FAR)} resolutions away shows little about nearer ones; unless it is the printed "
        f"formula, the check says why there is none nearer. {len(far)} checks still owe that "
        "reason" + ("; the furthest are these.\n" if far else ".\n")
    )
    if far:
        yield parts.table(
            "td-table",
            ("Claim", "Check", "Wrong variant, in resolutions"),
            (
                _row(claim, item, f"{escape(item.control.variant)}: {number(distance, 2)}")
                for distance, claim, item in far[:_WEAKEST]
            ),
        )


def _row(claim: Entry, item: Evidence, last: str) -> str:
    return "\n".join(
        [
            "<tr><td>",
            "",
            parts.ledger_link(claim["id"]),
            "",
            f"</td><td>{escape(item.check)}</td><td>{last}</td></tr>",
        ]
    )
