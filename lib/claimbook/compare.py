"""Whether two runs of the book found the same: claims and figures, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from claimbook.registry import ClaimError

#: What makes two ledgers comparable.
_SAME = ("schema", "profile", "seed")


def differences(first: Path, second: Path) -> list[str]:
    """List what differs between two ledgers, times apart.

    Parameters
    ----------
    first, second : Path
        Ledgers, ``ledger.json``, with their figures beside them.

    Returns
    -------
    list of str
        A line per claim, with the first entry that differs, and per figure.

    Raises
    ------
    ClaimError
        If one is not a ledger, or they are of different profiles or seeds.
    """
    ledgers = [_read(path) for path in (first, second)]
    for name in _SAME:
        values = [ledger.get(name) for ledger in ledgers]
        if values[0] != values[1]:
            raise ClaimError(f"these are runs of {name} {values[0]} and {values[1]}")
    return [
        *_unequal("claim", _claims(ledgers[0]), _claims(ledgers[1])),
        *_unequal("figure", _figures(first.parent), _figures(second.parent)),
    ]


def _read(path: Path) -> dict[str, Any]:
    try:
        ledger: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        ledger["claims"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClaimError(f"{path} is not a ledger: {error!r}") from None
    return ledger


def _claims(ledger: dict[str, Any]) -> dict[str, Any]:
    """Return the claims by id, without their times."""
    return {
        claim["id"]: {key: value for key, value in claim.items() if key != "seconds"}
        for claim in ledger["claims"]
    }


def _figures(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted((folder / "figures").rglob("*.png"))
    }


def _unequal(kind: str, first: dict[str, Any], second: dict[str, Any]) -> Iterator[str]:
    for key in sorted(first.keys() | second.keys()):
        if key not in first or key not in second:
            yield f"{key}: the {'second' if key in first else 'first'} run has no such {kind}"
        elif kind == "figure" and first[key] != second[key]:
            yield f"{key}: other pixels or metadata"
        elif kind == "claim":
            where = f"{key} ({first[key].get('chapter')})"
            for place, one, other in islice(_leaves(first[key], second[key], ""), 1):
                yield f"{where}: {place} is {one} in the first and {other} in the second"


def _leaves(one: Any, other: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """Yield the places at which two pieces of JSON differ, with their texts."""
    if type(one) is type(other) is dict and one.keys() == other.keys():
        for key in one:
            yield from _leaves(one[key], other[key], f"{place}.{key}" if place else key)
    elif type(one) is type(other) is list and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _leaves(*pair, f"{place}[{index}]")
    elif (texts := (json.dumps(one), json.dumps(other)))[0] != texts[1]:
        yield place or "it", *texts
