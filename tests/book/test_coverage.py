"""The registry answers for every numbered statement of the sources."""

import tomllib
from pathlib import Path

import pytest

from claimbook.registry import load_registry

NUMBERING = tomllib.loads(Path(__file__).with_name("numbering.toml").read_text(encoding="utf8"))
CLAIMS = Path(__file__).parents[2] / "book" / "claims.toml"


def missing(source: str, answered: set[tuple[str, str]]) -> list[str]:
    """Numbers of a source that no claim answers for."""
    return [number for number in wanted(source) if (source, number) not in answered]


def wanted(source: str) -> list[str]:
    """Numbers of a source, written as in the registry; those without a kind stand alone."""
    return [
        f"{kind} {number}".strip()
        for kind, numbers in NUMBERING[source].items()
        for number in numbers
    ]


@pytest.mark.parametrize("source", NUMBERING)
def test_every_number_of_a_source_has_a_claim(source: str) -> None:
    """A statement left out of claims.toml would be missing from the ledger in silence."""
    claims = load_registry(CLAIMS).claims.values()
    answered = {(claim.source, claim.number) for claim in claims}
    assert missing(source, answered) == []
    # Control: without its last claim the same comparison names it.
    last = wanted(source)[-1]
    assert missing(source, answered - {(source, last)}) == [last]
