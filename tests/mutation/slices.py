"""The statements of a chapter that one claim needs, and a process that runs only these.

A chapter is a straight sequence of statements. Read backwards from the statement that
records a claim, a statement is needed if it binds or may change a name that is needed
later. Everything else (pictures, other claims) is left out.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import symtable
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

#: Recording a claim changes the chapter's list of records, on which no other claim depends.
RECORDER = "chapter"
CAUGHT, SURVIVED, CRASHED = "caught", "survived", "crashed"


class _Names(NamedTuple):
    """Global names that a statement binds, uses, or may change in place."""

    bound: set[str]
    used: set[str]
    changed: set[str]


def _names(statement: ast.stmt, text: str) -> _Names:
    """Names of a statement; those of functions and comprehensions inside it are their own."""
    top = symtable.symtable(text, "<statement>", "exec")
    symbols = top.get_symbols()
    bound = {
        one.get_name()
        for one in symbols
        if one.is_assigned() or one.is_imported() or one.is_namespace()
    }
    used = {one.get_name() for one in symbols if one.is_referenced()}
    # ``x += 1`` reads x, which the symbol table does not say.
    used |= {
        node.target.id
        for node in ast.walk(statement)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    inner = top.get_children()
    while inner:
        table = inner.pop()
        used |= {
            one.get_name() for one in table.get_symbols() if one.is_global() and one.is_referenced()
        }
        inner += table.get_children()
    return _Names(bound, used, _changed(statement) & used)


def _root(node: ast.expr) -> str | None:
    """Name at the bottom of ``name.attribute[index].method``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _changed(statement: ast.stmt) -> set[str]:
    """Roots of what is assigned to in place, or has a method called whose value is dropped."""
    roots: set[str | None] = set()
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            roots.add(_root(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            roots.add(_root(node.value.func))
    return {name for name in roots if name and name != RECORDER}


def _recorded(statement: ast.stmt) -> Iterator[str | None]:
    """Ids of the claims a statement records; None for one that is computed."""
    for node in ast.walk(statement):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "claim"
            and _root(node.func) == RECORDER
        ):
            first = node.args[0] if node.args else None
            yield first.value if isinstance(first, ast.Constant) else None


def needed(cells: Iterable[str], claims: Iterable[str]) -> list[str]:
    """Statements of a chapter that some of its claims depend on.

    Parameters
    ----------
    cells : iterable of str
        Code of the chapter, cell after cell.
    claims : iterable of str
        Ids of claims.

    Returns
    -------
    list of str
        In the order of the chapter, with the statements that record the claims.

    Raises
    ------
    ValueError
        If no statement records one of the claims.
    """
    statements = [
        (statement, _source(cell, statement))
        for cell in cells
        for statement in ast.parse(cell).body
    ]
    claims = set(claims)
    named = {name for statement, _ in statements for name in _recorded(statement)}
    # Those that no statement names are recorded by one that computes its ids, if at all.
    computed = {None} if claims - named else set()
    if claims - named and None not in named:
        raise ValueError(
            f"claims must be recorded in the chapter, {', '.join(sorted(claims - named))} are not"
        )
    # A call of a function of a module changes nothing here.
    modules = {
        name
        for statement, text in statements
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name in _names(statement, text).bound
    }
    parts = []
    for statement, text in statements:
        names = _names(statement, text)
        wanting = bool((claims | computed).intersection(_recorded(statement)))
        parts.append(
            _Part(statement, text, names._replace(changed=names.changed - modules), wanting)
        )
    late: set[str] = set()
    while True:
        kept = _backwards(parts, late)
        # What a function reads may be bound below its definition.
        more = {
            name
            for index in kept
            if isinstance(parts[index].statement, ast.FunctionDef)
            for name in parts[index].names.used
            if any(name in part.names.bound for part in parts[index + 1 :])
        }
        if more <= late:
            return [parts[index].text for index in kept]
        late |= more


class _Part(NamedTuple):
    """A statement, and whether it records one of the claims."""

    statement: ast.stmt
    text: str
    names: _Names
    wanting: bool


def _backwards(parts: Sequence[_Part], late: set[str]) -> list[int]:
    """Indices of the statements needed; all that bind one of the names `late` are."""
    wanted: set[str] = set()
    kept = []
    for index in reversed(range(len(parts))):
        statement, _, names, wanting = parts[index]
        if not (wanting or (wanted | late) & (names.bound | names.changed)):
            continue
        # A name bound here for sure needs nothing above, one bound on a condition may.
        if not isinstance(statement, ast.If | ast.For | ast.While | ast.Try):
            wanted -= names.bound
        wanted |= names.used
        kept.append(index)
    return kept[::-1]


def _source(cell: str, statement: ast.stmt) -> str:
    """Source of a statement with its decorators, which its segment leaves out."""
    marks = getattr(statement, "decorator_list", [])
    text = ast.get_source_segment(cell, statement) or ""
    return "\n".join([*(f"@{ast.unparse(mark)}" for mark in marks), text])


def run(
    statements: Iterable[str], claims: Iterable[str], parameters: Mapping[str, object]
) -> dict[str, tuple[str, str]]:
    """Execute statements of a chapter in this process.

    Parameters
    ----------
    statements : iterable of str
        Result of :func:`needed`.
    claims : iterable of str
        Ids of the claims that count.
    parameters : mapping
        Values of ``profile`` and ``seed``; the cell that sets them is not to be executed.

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
            ids = {one for one in _recorded(ast.parse(text).body[0]) if one in outcome}
            for claim in ids or outcome.keys() - module.__dict__[RECORDER].records.keys():
                outcome[claim] = (kind, said)
        except Exception as error:
            lost = outcome.keys() - getattr(module.__dict__.get(RECORDER), "records", {}).keys()
            for claim in lost:
                if outcome[claim][0] != CAUGHT:
                    outcome[claim] = (CRASHED, f"{type(error).__name__}: {error}")
            if not any(True for _ in _recorded(ast.parse(text).body[0])):
                return outcome
        for claim in outcome.keys() & getattr(module.__dict__.get(RECORDER), "records", {}).keys():
            outcome[claim] = (SURVIVED, "")
    return outcome


if __name__ == "__main__":
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf8"))
    os.chdir(task["folder"])
    result = run(task["statements"], task["claims"], task["parameters"])
    Path(task["result"]).write_text(json.dumps(result), encoding="utf8")
