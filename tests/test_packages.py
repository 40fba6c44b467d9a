"""The arrows between the packages, and what of the core a chapter alone uses."""

from __future__ import annotations

import ast
import pkgutil
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
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


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
