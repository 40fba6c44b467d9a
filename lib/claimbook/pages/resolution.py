"""The page of resolutions: how near to a claim a wrong statement may be and still pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from claimbook.evidence import Evidence
from claimbook.pages import parts
from claimbook.pages.parts import Entry, Ledger
from claimbook.pages.templates import render
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
    far = _far(checks)
    return render(
        "resolution",
        scales=[
            {
                "title": scale.title,
                "heads": [scale.format(limit) for limit in scale.limits],
                "counts": _distribution(scale, items),
                "weakest": _weakest(scale, checks)[:_WEAKEST],
            }
            for scale in _SCALES
        ],
        rest=_rest(items),
        limit=FAR,
        owing=len(far),
        far=far[:_WEAKEST],
    )


def _distribution(scale: _Scale, items: Sequence[Evidence]) -> list[int]:
    """Count the checks of each class of a scale, then all that are on it."""
    found = [value for item in items if (value := scale.measure(item)) is not None]
    limits = (0.0, *scale.limits, float("inf"))
    counts = [
        sum(low < value <= high or value == 0.0 == low for value in found)
        for low, high in pairwise(limits)
    ]
    return [*counts, len(found)]


def _rest(items: Sequence[Evidence]) -> list[tuple[str, int]]:
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
    return [(title, sum(map(member, items))) for title, member in groups.items()]


def _weakest(
    scale: _Scale, checks: Sequence[tuple[Entry, Evidence]]
) -> list[tuple[Entry, Evidence, str]]:
    """List the coarse checks with what they exclude, the coarsest first."""
    measured = [
        (value, claim, item)
        for claim, item in checks
        if (value := scale.measure(item)) is not None and value > scale.limits[0]
    ]
    measured.sort(key=lambda entry: (-entry[0], entry[1]["id"]))
    return [(claim, item, _compared(item)) for _, claim, item in measured]


def _compared(item: Evidence) -> str:
    """Return what a check excludes, with the value that it is a departure from."""
    if item.departure in ("value", "variance"):
        size = item.expected if item.scale is None else item.scale
        return f"{excludes(item)}, from {number(size, 2)}"
    return excludes(item)


def _far(checks: Sequence[tuple[Entry, Evidence]]) -> list[tuple[Entry, Evidence, float]]:
    """List the controls that are neither near nor printed and do not say why."""
    far = [
        (claim, item, distance)
        for claim, item in checks
        if (distance := item.control_distance()) is not None
        and distance > FAR
        and not item.control.printed
        and not item.control.far
    ]
    return sorted(far, key=lambda entry: (-entry[2], entry[0]["id"]))
