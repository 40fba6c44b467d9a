"""From each numbered statement to its function and its test, and back."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from claimbook import Registry, load_registry
from claimbook.statements import Reference, Statement, index

HERE = Path(__file__).parent
SAID = tomllib.loads((HERE / "unmarked.toml").read_text(encoding="utf8"))


@pytest.fixture(scope="module")
def registry(root: Path) -> Registry:
    """Claims of the book."""
    return load_registry(root / "book" / "claims.toml")


@pytest.fixture(scope="module")
def statements(root: Path, registry: Registry) -> dict[Reference, Statement]:
    """The index of the project."""
    return index(registry, library=root / "lib", tests=root / "tests")


@pytest.mark.parametrize("what", ["function", "test"])
def test_each_numbered_statement_is_cited_or_says_why_not(
    statements: dict[Reference, Statement], registry: Registry, what: str
) -> None:
    """A reader of the paper could look for the code of a theorem in vain."""
    needed = {
        " ".join(item.reference): item
        for item in statements.values()
        if item.reference.source in registry.sources
        and item.reference.source != "OWN"
        and any(claim.kind in ("theorem", "formula") for claim in item.claims)
    }
    places = {
        name: item.functions if what == "function" else item.tests for name, item in needed.items()
    }
    excused = SAID[what]
    missing = sorted(name for name, found in places.items() if not found and name not in excused)
    assert missing == []
    idle = sorted(name for name in excused if name not in needed or places[name])
    assert idle == [], "these have a place and need no excuse"


def test_each_marker_names_a_number_that_exists(statements: dict[Reference, Statement]) -> None:
    """A mistyped number would lead nowhere."""
    cited = {" ".join(item.reference) for item in statements.values() if not item.claims}
    exists = {
        f"{source} {number}" for source, numbers in SAID["cited"].items() for number in numbers
    }
    assert sorted(cited - exists) == []
    assert sorted(exists - cited) == [], "no docstring cites these"
