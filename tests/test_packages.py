"""The arrows between the packages, and what of the core a chapter alone uses."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import traindyn

#: What each package may import of the others.
MAY = {"traindyn": set(), "claimbook": set(), "companion": {"traindyn", "claimbook"}}


def _imported(path: Path) -> Iterator[str]:
    """Yield what a module imports: ``package.module.name`` of each name that it takes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _parts(path: Path, package: Path) -> tuple[str, ...]:
    """Return the room or chapter of a module, and the names below it."""
    return path.relative_to(package).with_suffix("").parts


@pytest.mark.parametrize("package", MAY)
def test_arrows_between_packages_point_one_way(root: Path, package: str) -> None:
    """A room could come to need what stands above it, and never be used without it."""
    for path in sorted((root / "lib" / package).rglob("*.py")):
        others = {name.partition(".")[0] for name in _imported(path)} & MAY.keys()
        assert others <= {package, *MAY[package]}, path


def test_installed_packages_have_their_files(root: Path) -> None:
    """A template, a schema or a style could be missing once the package is installed."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf8"))["tool"]
    for package, patterns in settings["setuptools"]["package-data"].items():
        folder = root / "lib" / package
        shipped = {path for pattern in patterns for path in folder.glob(pattern)}
        files = {path for path in folder.rglob("*") if path.is_file()}
        code = {p for p in files if p.suffix == ".py" or "__pycache__" in p.parts}
        assert files - code == shipped


def test_the_package_loads_none_of_its_rooms() -> None:
    """Whoever wants one room would wait for NumPy, SciPy and all the others."""
    code = "import sys, traindyn; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "traindyn" in loaded and not loaded & {"numpy", "scipy"}


def test_the_package_names_all_its_rooms(root: Path) -> None:
    """A room could be there that neither completion in an editor nor its users find."""
    folder = root / "lib" / "traindyn"
    rooms = {room.name for room in pkgutil.iter_modules([str(folder)]) if room.name[0] != "_"}
    assert rooms == set(traindyn.__all__) and rooms <= set(dir(traindyn))
    for room in sorted(rooms - {"deep"}):  # which needs JAX
        assert getattr(traindyn, room).__name__ == f"traindyn.{room}"


def test_what_one_chapter_needs_is_used_by_it_alone(root: Path) -> None:
    """What a second chapter uses belongs into the core."""
    for path in sorted((root / "book").rglob("*.md")):
        own = path.relative_to(root / "book").with_suffix("").as_posix().replace("-", "_")
        for line in path.read_text(encoding="utf8").splitlines():
            words = line.split()
            if words[:1] == ["from"] and words[1].startswith("companion."):
                name = words[1].removeprefix("companion.").replace(".", "/")
                places = {f"{name}/{each.strip(',')}" for each in words[3:]} | {name}
                assert any(f"{place}/".startswith(f"{own}/") for place in places), (path, line)


def test_no_chapter_needs_what_is_of_another(root: Path) -> None:
    """What two chapters use belongs into the core, however small."""
    package = root / "lib" / "companion"
    for path in sorted(package.rglob("*.py")):
        for name in _imported(path):
            others = tuple(name.split(".")[1:3])
            if name.partition(".")[0] == "companion":
                assert others == _parts(path, package)[:2], (path, name)


def test_rooms_import_only_from_those_above_them(root: Path) -> None:
    """The table of the core says what can be used without what."""
    package = root / "lib" / "traindyn"
    page = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf8")))
    rooms = re.findall(r"^`(\w+)`  ", page or "", re.MULTILINE)
    found = {_parts(path, package)[0] for path in package.rglob("*.py")}
    assert {room for room in found if not room.startswith("_")} == set(rooms)
    for path in sorted(package.rglob("*.py")):
        room = _parts(path, package)[0]
        if room == "__init__":
            continue
        # Modules that begin with an underscore are below all rooms.
        allowed = rooms[: rooms.index(room) + 1] if room in rooms else []
        for name in _imported(path):
            _, *inner = name.split(".")
            if name.startswith("traindyn.") and not inner[0].startswith("_"):
                assert inner[0] in allowed, (path, name)
