"""Docstrings: examples run as they are pasted, and parameters are those of the signature."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
import symtable
from collections.abc import Iterator
from pathlib import Path

import pytest

import traindyn

LIBRARY = Path(traindyn.__file__).parents[1]
MODULES = sorted(LIBRARY.rglob("*.py"))
#: An entry of the section *Parameters*: names, before their types.
ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?")

Definition = ast.FunctionDef | ast.ClassDef


def documented(source: str) -> Iterator[tuple[str, Definition | ast.Module, str]]:
    """Dotted name, definition and docstring of what a module documents."""
    tree = ast.parse(source)
    yield "", tree, ast.get_docstring(tree) or ""
    stack: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while stack:
        outer, node = stack.pop()
        if isinstance(node, Definition):
            name = f"{outer}{node.name}"
            yield name, node, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                stack += [(f"{name}.", inner) for inner in node.body]


def lacking(docstring: str) -> set[str]:
    """Names that the example of a docstring uses and does not define."""
    source = "".join(each.source for each in doctest.DocTestParser().get_examples(docstring))
    table = symtable.symtable(source, "<example>", "exec")
    known = {each.get_name() for each in table.get_symbols() if not only_read(each)}
    used: set[str] = set()
    tables = [table]
    while tables:
        inner = tables.pop()
        tables += inner.get_children()
        used |= {each.get_name() for each in inner.get_symbols() if each.is_global()}
    return used - known - vars(builtins).keys()


def only_read(symbol: symtable.Symbol) -> bool:
    """Whether a script reads a name that it neither assigns nor imports."""
    return not (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace())


def parameters(docstring: str) -> list[str] | None:
    """Names in the section *Parameters*, in order; None if there is no such section."""
    section = re.search(
        r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-{3,}\n|\Z)", docstring, re.MULTILINE | re.DOTALL
    )
    if section is None:
        return None
    entries = (ENTRY.fullmatch(line) for line in section[1].splitlines())
    return [name for entry in entries if entry for name in entry["names"].split(", ")]


def signature(node: ast.FunctionDef, *, method: bool) -> list[str]:
    """Names of the arguments of a function, as numpydoc writes them."""
    given = node.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    names = names[1:] if method and not static else names
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    names += [each.arg for each in given.kwonlyargs]
    return names + ([f"**{given.kwarg.arg}"] if given.kwarg else [])


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_examples_run_as_they_are_pasted(path: Path) -> None:
    """An example imports all that it uses: readers do not know the names of the module."""
    found = {
        name or path.stem: sorted(names)
        for name, _, docstring in documented(path.read_text(encoding="utf-8"))
        if (names := lacking(docstring))
    }
    assert not found, "examples must import these names"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_parameters_are_those_of_the_signature(path: Path) -> None:
    """Where a function describes its arguments it describes all of them, and no others.

    One whose arguments are those of its neighbours, such as a formula as printed, may leave the
    description to them.
    """
    wrong = {
        name: (wanted, given)
        for name, node, docstring in documented(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.FunctionDef)
        and (given := parameters(docstring)) is not None
        and sorted(given) != sorted(wanted := signature(node, method="." in name))
    }
    assert not wrong, "of a function: arguments, and what the docstring describes"


@pytest.mark.parametrize("room", traindyn.__all__)
def test_what_a_room_publishes_describes_its_arguments(room: str) -> None:
    """The names that a room hands on are those which users look up."""
    module = getattr(traindyn, room)
    silent = [
        name
        for name in getattr(module, "__all__", [each for each in vars(module) if each[0] != "_"])
        if inspect.isfunction(function := getattr(module, name))
        and function.__module__.startswith("traindyn")
        and inspect.signature(function).parameters
        and parameters(inspect.getdoc(function) or "") is None
    ]
    assert not silent, "functions without a section Parameters"


def test_faults_would_be_seen() -> None:
    """A name from nowhere, and arguments that one side alone has."""
    example = "Line.\n\n>>> import numpy as np\n>>> [x + y for x in np.ones(2)]\n[...]\n"
    assert lacking(example) == {"y"}
    section = "Parameters\n----------\na, b : int\n    Two.\n*rest : int\n"
    docstring = f"Line.\n\n{section}\nReturns\n-------\nint\n"
    assert parameters(docstring) == ["a", "b", "*rest"]
    node = ast.parse("def f(b, a, *rest, c): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    assert signature(node, method=False) == ["b", "a", "*rest", "c"]
