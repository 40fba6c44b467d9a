"""A process that runs only the statements of a chapter that some claims need."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from claimbook.slices import RECORDER, recorded

CAUGHT, SURVIVED, CRASHED = "caught", "survived", "crashed"
#: Numbers of an array that differ by less than this share of its largest differ by rounding.
ROUNDING = 1e-7


def run(
    statements: Iterable[str],
    claims: Iterable[str],
    parameters: Mapping[str, object],
    *,
    first: bool = False,
) -> dict[str, tuple[str, str]]:
    """Execute statements of a chapter in this process.

    Parameters
    ----------
    statements : iterable of str
        Result of :func:`claimbook.slices.needed`.
    claims : iterable of str
        Ids of the claims that count.
    parameters : mapping
        Values of ``profile`` and ``seed``; the cell that sets them is not to be executed.
    first : bool
        Whether the first claim that is refused, or the first crash, ends the run.

    Returns
    -------
    dict
        For every claim an outcome, ``caught`` if its evidence is refused, ``survived`` if it
        is recorded, ``crashed`` if something else happens before, and what was said.
    """
    from claimbook import ClaimError

    module = types.ModuleType("chapter_under_mutation")
    module.__dict__.update(parameters)
    sys.modules[module.__name__] = module
    outcome = {claim: (CRASHED, "was not recorded") for claim in claims}
    for number, text in enumerate(statements):
        name = f"<statement {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        try:
            exec(compile(text, name, "exec"), module.__dict__)
        except ClaimError as error:
            said = str(error)
            # A NaN is refused, too, but no check has looked at a number.
            kind = CRASHED if "non-finite" in said else CAUGHT
            ids = {one for one in recorded(ast.parse(text).body[0]) if one in outcome}
            for claim in ids or outcome.keys() - module.__dict__[RECORDER].records.keys():
                outcome[claim] = (kind, said)
            if first:
                return outcome
        except Exception as error:
            lost = outcome.keys() - getattr(module.__dict__.get(RECORDER), "records", {}).keys()
            for claim in lost:
                if outcome[claim][0] != CAUGHT:
                    outcome[claim] = (CRASHED, f"{type(error).__name__}: {error}")
            if first or not any(True for _ in recorded(ast.parse(text).body[0])):
                return outcome
        for claim in outcome.keys() & getattr(module.__dict__.get(RECORDER), "records", {}).keys():
            outcome[claim] = (SURVIVED, "")
    return outcome


def watch() -> list[np.ndarray]:
    """Return a list to which every check adds the numbers it is given and those that decide it."""
    import claimbook

    seen: list[np.ndarray] = []

    def watched(check: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(check)
        def call(*given: Any, **named: Any) -> Any:
            found = check(*given, **named)
            decisive = [(one.observed, one.expected) for one in (found, found.control)]
            seen.extend(_numbers((given, named, decisive)))
            return found

        return call

    for place in (claimbook, claimbook.SequentialTest):
        for name in getattr(place, "__all__", dir(place)):
            value = getattr(place, name)
            if inspect.isfunction(value) and (
                inspect.signature(value).return_annotation == "Evidence"
            ):
                setattr(place, name, watched(value))
    return seen


def _numbers(value: object) -> Iterator[np.ndarray]:
    """Yield the numbers of nested arguments, array by array.

    Functions have none: what a check makes of them is among the numbers that decide it.
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _numbers(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _numbers(getattr(value, field.name))
    elif isinstance(value, int | float | complex | np.generic) or hasattr(value, "__array__"):
        array = np.asarray(value)
        parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
        yield from (part.ravel().astype(float) for part in parts if part.dtype.kind in "biuf")


def same(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    """Whether the checks of two runs have seen the same numbers, up to rounding."""
    return len(first) == len(second) and all(map(_same, first, second))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays differ by rounding, and not in where they are infinite."""
    if a.shape != b.shape:
        return False
    scale = np.abs(a[np.isfinite(a)]).max(initial=0)
    return np.allclose(a, b, rtol=0, atol=ROUNDING * scale, equal_nan=True)


if __name__ == "__main__":
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf8"))
    os.chdir(task["folder"])
    names = ("statements", "claims", "parameters")
    seen = watch()
    result = run(*(task[name] for name in names), first=task["first"])
    np.savez(task["seen"], *seen)
    Path(task["result"]).write_text(json.dumps(result), encoding="utf8")
