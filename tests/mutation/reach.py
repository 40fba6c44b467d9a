"""Which chapters reach a definition of the library, by name.

A chapter reaches a top-level definition if its code cells use it, or use one that uses it. Names
are resolved through imports, re-exports and attributes of modules; a class counts as a whole.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from claimbook.run import chapters
from claimbook.run.stamps import code

#: A definition: its module and its name; a module: its name and an empty one.
Place = tuple[str, str]


@dataclass
class Module:
    """A file of the library: its syntax, and what its names stand for."""

    path: Path
    tree: ast.Module
    names: dict[str, Place] = field(default_factory=dict)


def definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Top-level definitions of a module, by name."""
    found: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id: node for one in targets if isinstance(one, ast.Name)}
    return found


def _bindings(tree: ast.AST, package: str) -> dict[str, Place]:
    """Return what the imports of a piece of Python bind, not yet resolved."""
    found: dict[str, Place] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            found |= {alias.asname or alias.name: (base, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                found[name] = (alias.name if alias.asname else name, "")
    return found


class Reach:
    """The definitions of a library and the chapters that reach each.

    Parameters
    ----------
    library : Path
        Folder that holds the packages.
    book : Path
        Folder of the chapters.
    """

    def __init__(self, library: Path, book: Path) -> None:
        self.modules: dict[str, Module] = {}
        for path in sorted(library.rglob("*.py")):
            parts = path.relative_to(library).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(path, ast.parse(path.read_text(encoding="utf8")))
        for name, module in self.modules.items():
            package = name if module.path.name == "__init__.py" else name.rpartition(".")[0]
            module.names = _bindings(module.tree, package)
            module.names |= {own: (name, own) for own in definitions(module.tree)}
        self.uses = {
            (name, own): self._used(node, module.names) - {(name, own)}
            for name, module in self.modules.items()
            for own, node in definitions(module.tree).items()
        }
        self.chapters: dict[Place, set[str]] = defaultdict(set)
        for chapter in chapters.chapters(book):
            tree = ast.parse(code((book / f"{chapter}.md").read_text(encoding="utf8")))
            for place in self._closure(self._used(tree, _bindings(tree, ""))):
                self.chapters[place].add(chapter)

    def _resolve(self, place: Place | None, depth: int = 0) -> Place | None:
        """Follow re-exports to where a name is defined, or to the module it is."""
        if place is None or depth > 20:
            return None
        module, name = place
        if not name:
            return place if module in self.modules else None
        if module in self.modules:
            found = self.modules[module].names.get(name)
            if found == place:
                return place
            if found is not None and (end := self._resolve(found, depth + 1)):
                return end
        full = f"{module}.{name}"
        return (full, "") if full in self.modules else None

    def _target(self, node: ast.AST, names: dict[str, Place]) -> Place | None:
        if isinstance(node, ast.Name):
            return self._resolve(names.get(node.id))
        if isinstance(node, ast.Attribute):
            owner = self._target(node.value, names)
            return self._resolve((owner[0], node.attr)) if owner and not owner[1] else owner
        return None

    def _used(self, tree: ast.AST, names: dict[str, Place]) -> set[Place]:
        found = (
            self._target(node, names)
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        return {place for place in found if place and place[1]}

    def _closure(self, start: set[Place]) -> set[Place]:
        seen: set[Place] = set()
        todo = list(start)
        while todo:
            place = todo.pop()
            if place not in seen and place in self.uses:
                seen.add(place)
                todo.extend(self.uses[place])
        return seen
