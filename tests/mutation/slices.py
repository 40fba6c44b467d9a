"""A process that runs only the statements of a chapter that some claims need."""

from __future__ import annotations

import ast
import json
import linecache
import os
import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path

from claimbook.slices import RECORDER, recorded

CAUGHT, SURVIVED, CRASHED = "caught", "survived", "crashed"


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


if __name__ == "__main__":
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf8"))
    os.chdir(task["folder"])
    names = ("statements", "claims", "parameters")
    result = run(*(task[name] for name in names), first=task["first"])
    Path(task["result"]).write_text(json.dumps(result), encoding="utf8")
