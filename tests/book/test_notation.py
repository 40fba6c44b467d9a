"""The page on notation: every library name it mentions exists."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import companion
import traindyn

PAGE = Path(__file__).resolve().parents[2] / "book" / "notation.md"
ROLE = re.compile(r"\{[\w:]+\}`[^`]*`")
NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(([A-Za-z_]\w*)\))?")
#: Code on the page that is no name in the library but explains how names are written.
PROSE = {"traindyn", "companion", "problems", "step_size", "traindyn.sgd.direct.run"}


def look_up(parts: list[str], argument: str | None) -> bool:
    """Whether the path leads from the package to something, with that argument if any."""
    found: Any = traindyn
    if parts[0] == "companion":
        found, parts = companion, parts[1:]
    for depth, part in enumerate(parts):
        if inspect.ismodule(found):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(f"{found.__name__}.{part}")
        if depth == len(parts) - 1 and argument is None:
            # A field without a default is no attribute of its class.
            return hasattr(found, part) or part in getattr(found, "__dataclass_fields__", {})
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return argument in inspect.signature(found).parameters


def resolve(name: str) -> None:
    """Follow a name of the page; raise LookupError where it leads nowhere."""
    match = NAME.fullmatch(name)
    if match is None:
        raise LookupError(f"{name} is not written as a library name")
    parts, argument = match[1].split("."), match[2]
    if not any(look_up(room + parts, argument) for room in ([], ["problems"])):
        raise LookupError(f"{name}: no such thing in traindyn, traindyn.problems or companion")


def mentioned() -> list[str]:
    """Names in code on the page, each once."""
    text = ROLE.sub("", PAGE.read_text(encoding="utf8"))
    return [name for name in dict.fromkeys(re.findall(r"`([^`]+)`", text)) if name not in PROSE]


@pytest.mark.parametrize("name", mentioned())
def test_name_exists(name: str) -> None:
    """A reader who copies a name from the page can import it."""
    if name.startswith("deep."):
        pytest.importorskip("jax")
    resolve(name)


@pytest.mark.parametrize(
    "name",
    [
        "sgd.direct.run(delta)",  # a letter of a source, not an argument
        "sgd.direct.walk(step_size)",
        "KGaussianMixture(beta)",
        "two_layer.Statistics.Q",
        "laws.MarchenkoPastur(alpha)",
        "nowhere.run",
        "step size",
    ],
)
def test_wrong_name_is_found_out(name: str) -> None:
    """The same test rejects names that nearly exist."""
    with pytest.raises(LookupError):
        resolve(name)


def test_every_row_has_a_name() -> None:
    """Each row of the tables that lead to the library does lead there."""
    inside, rows = False, 0
    for line in PAGE.read_text(encoding="utf8").splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.startswith("| here |") or line.endswith("| library |"):
            inside = True
        elif inside and not line.startswith("|---"):
            rows += 1
            assert re.search(r"`[^`]+`", line), line
    assert rows > 50
