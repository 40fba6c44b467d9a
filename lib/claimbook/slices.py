"""The statements of a chapter that some claims need.

A chapter is a straight sequence of statements. Read backwards from the statement that
records a claim, a statement is needed if it binds or may change a name that is needed
later. Everything else (pictures, other claims) is left out.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

#: Recording a claim changes the chapter's list of records, on which no other claim depends.
RECORDER = "chapter"
#: What makes a stream of random numbers; a statement that uses one moves the draws below it.
_STREAMS = {"SeedSequence", "default_rng", "iter", "spawn"}


class _Names(NamedTuple):
    """Global names that a statement binds, uses, or may change in place."""

    bound: set[str]
    used: set[str]
    changed: set[str]


class _Part(NamedTuple):
    """A statement with its source and its names."""

    statement: ast.stmt
    text: str
    names: _Names


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
    # What a loop runs over changes with the part of it that has the loop's name.
    for node in ast.walk(statement):
        if isinstance(node, ast.For) and roots & set(_loaded(node.target)):
            roots |= set(_loaded(node.iter))
    return {name for name in roots if name and name != RECORDER}


def _loaded(node: ast.expr) -> Iterator[str]:
    """Names that occur in an expression."""
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def recorded(statement: ast.stmt) -> Iterator[str | None]:
    """Ids of the claims a statement records; None for one that is computed."""
    for node in ast.walk(statement):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "claim"
            and _root(node.func) == RECORDER
        ):
            first = node.args[0] if node.args else None
            value = first.value if isinstance(first, ast.Constant) else None
            yield value if isinstance(value, str) else None


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
    parts = _parts(cells)
    claims = set(claims)
    named = {name for part in parts for name in recorded(part.statement)}
    # Those that no statement names are recorded by one that computes its ids, if at all.
    computed = {None} if claims - named else set()
    if claims - named and None not in named:
        raise ValueError(
            f"claims must be recorded in the chapter, {', '.join(sorted(claims - named))} are not"
        )
    wanting = {
        index
        for index, part in enumerate(parts)
        if (claims | computed).intersection(recorded(part.statement))
    }
    return [parts[index].text for index in _needed(parts, wanting)]


def evidence(cells: Iterable[str]) -> list[str]:
    """Statements of a chapter on which what it records of its claims depends.

    They are those that some claim needs, and all that draw from a stream of random numbers from
    which these draw too: a draw more or less changes those that follow.

    Parameters
    ----------
    cells : iterable of str
        Code of the chapter, cell after cell.

    Returns
    -------
    list of str
        In the order of the chapter.

    Examples
    --------
    >>> from claimbook.slices import evidence
    >>> evidence(["x = 1", "y = plot(x)", "chapter.claim('A', x)"])
    ['x = 1', "chapter.claim('A', x)"]
    """
    parts = _parts(cells)
    wanting = _users(parts, {RECORDER})
    while True:
        kept = _needed(parts, wanting)
        streams = {
            name
            for index in kept
            if _makes_stream(parts[index].statement)
            for name in parts[index].names.bound
        }
        more = _users(parts, {RECORDER} | streams)
        if more <= wanting:
            return [parts[index].text for index in kept]
        wanting |= more


def _users(parts: Sequence[_Part], shared: set[str]) -> set[int]:
    """Return indices of the statements that use some names, or a function that uses them."""
    found: set[int] = set()
    for index, part in enumerate(parts):
        if part.names.used & shared:
            found.add(index)
            if isinstance(part.statement, ast.FunctionDef):
                shared = shared | part.names.bound
    return found


def _makes_stream(statement: ast.stmt) -> bool:
    """Whether a statement binds a stream of random numbers; what was drawn from one is none."""
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return statement.value is not None and _is_stream(statement.value)
    if isinstance(statement, ast.For | ast.While | ast.If | ast.With | ast.Try):
        return any(isinstance(node, ast.expr) and _is_stream(node) for node in ast.walk(statement))
    return False


def _is_stream(value: ast.expr) -> bool:
    """Whether an expression is such a stream, or a collection of them."""
    match value:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _STREAMS
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(map(_is_stream, parts))
        case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
            return _is_stream(part)
        case ast.Starred(value=part) | ast.NamedExpr(value=part) | ast.Subscript(value=part):
            return _is_stream(part)
        case ast.IfExp(body=first, orelse=second):
            return _is_stream(first) or _is_stream(second)
    return False


def _parts(cells: Iterable[str]) -> list[_Part]:
    statements = [
        (statement, _source(lines, statement))
        for cell, lines in ((cell, cell.encode().split(b"\n")) for cell in cells)
        for statement in ast.parse(cell).body
    ]
    parts = [_Part(statement, text, _names(statement, text)) for statement, text in statements]
    # A call of a function of a module changes nothing here.
    modules = {
        name
        for part in parts
        if isinstance(part.statement, ast.Import | ast.ImportFrom)
        for name in part.names.bound
    }
    return [
        part._replace(names=part.names._replace(changed=part.names.changed - modules))
        for part in parts
    ]


def _needed(parts: Sequence[_Part], wanting: set[int]) -> list[int]:
    """Return indices of some statements and of those that they depend on."""
    late: set[str] = set()
    while True:
        kept = _backwards(parts, wanting, late)
        # What a function reads may be bound or changed below its definition.
        more = {
            name
            for index in kept
            if isinstance(parts[index].statement, ast.FunctionDef)
            for name in parts[index].names.used
            if any(name in part.names.bound | part.names.changed for part in parts[index + 1 :])
        }
        if more <= late:
            return kept
        late |= more


def _backwards(parts: Sequence[_Part], wanting: set[int], late: set[str]) -> list[int]:
    """Return indices of the statements needed; all that bind one of the names `late` are."""
    wanted: set[str] = set()
    kept = []
    for index in reversed(range(len(parts))):
        statement, _, names = parts[index]
        if not (index in wanting or (wanted | late) & (names.bound | names.changed)):
            continue
        # A name bound here for sure needs nothing above, one bound on a condition may.
        if not isinstance(statement, ast.If | ast.For | ast.While | ast.Try):
            wanted -= names.bound
        wanted |= names.used
        kept.append(index)
    return kept[::-1]


def _source(lines: Sequence[bytes], statement: ast.stmt) -> str:
    """Source of a statement of a cell, with the decorators that stand before its first line."""
    marks = getattr(statement, "decorator_list", [])
    # As `ast.get_source_segment`, which takes the whole cell apart for every statement.
    rows = list(lines[statement.lineno - 1 : statement.end_lineno])
    rows[-1] = rows[-1][: statement.end_col_offset]
    rows[0] = rows[0][statement.col_offset :]
    return "\n".join([*(f"@{ast.unparse(mark)}" for mark in marks), b"\n".join(rows).decode()])
