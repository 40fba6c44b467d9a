"""The index of statements: what docstrings cite, and how it is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from claimbook.pages.statements import page
from claimbook.registry import load_registry
from claimbook.site import cards
from claimbook.statements import Reference, Statement, index, references, search

KNOWN = {"BGJ": ["Theorem 2.2"], "MW": ["Grokking", "Easy and hard directions"], "MDL": []}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(BGJ Theorem 2.2).", ["Theorem 2.2"]),
        ("MDL Theorems 8.4\n    and 8.6", ["Theorem 8.4", "Theorem 8.6"]),
        ("BGJ Lemmas 8.1-8.3, 9.1", ["Lemma 8.1", "Lemma 8.2", "Lemma 8.3", "Lemma 9.1"]),
        ("BGJ (3.3), (3.4)", ["Equation 3.3", "Equation 3.4"]),
        ("MDL Chapter 14, Equation 1.2", ["Chapter 14, Equation 1.2"]),
        ("(MW, Grokking), as seen", ["Grokking"]),
        ("MW, Easy and hard directions", ["Easy and hard directions"]),
        ("BGJ Appendix A.11.2", ["Appendix A.11.2"]),
        ("BGJ 8.3 says", []),
        ("BGJ-T2.2 and OBGJ Theorem 2.2", []),
        ("BGJ Theorem 2.2, with 3 classes", ["Theorem 2.2"]),
    ],
)
def test_citations_are_read(text, numbers):
    """A citation could be missed, or a number taken for one."""
    assert [item.number for item in references(text, KNOWN)] == numbers


@pytest.fixture
def checkout(claims: Path, tmp_path: Path) -> Path:
    """A library and tests that cite one theorem."""
    root = claims.parent.parent
    (root / "lib" / "room").mkdir(parents=True)
    (root / "lib" / "room" / "__init__.py").write_text("")
    (root / "lib" / "room" / "walls.py").write_text(
        '"""Walls."""\n\n\ndef bulk():\n    """Bulk (BGHJ Theorem 2.3)."""\n\n\n'
        'def other():\n    """BGHJ Lemma 9.9."""\n'
    )
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests" / "test_walls.py").write_text(
        'def test_bulk():\n    """BGHJ Theorem 2.3 holds."""\n\n\n'
        'def help():\n    """BGHJ Theorem 2.3."""\n'
    )
    return root


def test_statements_lead_to_functions_and_tests(checkout):
    """A reader of the paper could look for the code of a theorem in vain."""
    registry = load_registry(checkout / "book" / "claims.toml")
    found = index(registry, library=checkout / "lib", tests=checkout / "tests")
    theorem = found[Reference("BGHJ", "Theorem 2.3")]
    assert [place.name for place in theorem.functions] == ["room.walls.bulk"]
    assert [place.name for place in theorem.tests] == ["test_walls.test_bulk"]
    assert {claim.source for claim in theorem.claims} == {"BGHJ"}
    assert found[Reference("BGHJ", "Lemma 9.9")].claims == []
    for query in ("BGHJ Theorem 2.3", "theorem 2.3", "2.3", theorem.claims[0].id, "bulk"):
        assert theorem in search(query, found), query
    assert search("nothing of this kind", found) == []


def test_cards_and_the_page_of_statements_lead_to_one_another(checkout: Path) -> None:
    """A card could name no code, or a line of links be where there is nothing to link to."""
    registry = load_registry(checkout / "book" / "claims.toml")
    chapter = checkout / "book" / "alignment" / "alignment.md"
    chapter.parent.mkdir()
    cell = 'chapter.claim("BGHJ-T2.3", check)\nchapter.claim("OWN-rank", check)\n'
    chapter.write_text(f"# A\n\n```{{code-cell}} ipython3\n{cell}```\n")
    tests = checkout / "tests"
    found = index(registry, library=checkout / "lib", tests=tests).values()
    claims = [
        {
            **{key: getattr(claim, key) for key in ("id", "source", "number", "kind", "statement")},
            **{"chapter": claim.chapter, "verdict": "confirmed", "figure": None, "evidence": []},
        }
        for claim in registry
    ]
    ledger = {"sources": registry.sources, "claims": claims}
    code = cards.codes(found, checkout, "https://code")
    shown = {claim["id"]: cards.card(claim, {}, code=code) for claim in claims}
    assert (
        "*Functions:* {py:obj}`bulk <room.walls.bulk>` · "
        '*Tests:* [bulk](https://code/tests/test_walls.py#L1 "test_walls.py") · '
        '<a href="../statements.html#statement-bghj-theorem-2-3">index</a>\n'
    ) in shown["BGHJ-T2.3"]
    cell = "[code cell 1](https://code/book/alignment/alignment.md#L4)"
    assert f"\n{cell}\n" in shown["BGHJ-T2.3"]
    # A claim without a function has a cell too; one that the chapter does not name has none.
    assert "*Functions:*" not in shown["OWN-rank"]
    assert "[code cell 1](https://code/book/alignment/alignment.md#L5)" in shown["OWN-rank"]
    assert "code cell" not in shown["BGHJ-F2.1"]
    assert "*Functions:*" not in shown["BGHJ-L3.1"] and "index" not in shown["OWN-rank"]
    text = page(ledger, found, tests=tests, address="https://code/tests")
    assert 'id="statement-bghj-theorem-2-3"' in text
    assert 'href="alignment/alignment.html#claim-bghj-t2-3"' in text
    assert 'id="claim-bghj-t2-3"' in shown["BGHJ-T2.3"]
    # Where the tests are not published their names are no links; a long line is folded.
    bare = cards.card(claims[1], {}, code=cards.codes(found, checkout))
    assert "*Tests:* bulk · <a" in bare and "\ncode cell 1\n" in bare
    assert "<details>" not in bare
    many = "".join(f'def f{i}():\n    """BGHJ Theorem 2.3."""\n\n\n' for i in range(5))
    (checkout / "lib" / "room" / "more.py").write_text(many)
    found = index(registry, library=checkout / "lib", tests=tests).values()
    folded = cards.card(claims[1], {}, code=cards.codes(found, checkout))
    assert "<summary>6 functions, 1 test</summary>\n\n*Functions:*" in folded


def test_definitions_are_found_before_mentions(claims: Path) -> None:
    """Who looks for a symbol would read of what it is compared with before what it is."""
    claim = load_registry(claims)["BGHJ-T2.3"]
    texts = {
        "A threshold": r"$\alpha$, which $\delta_{NN}$ is compared with, is one.",
        "The main result": r"$\delta_{NN}$ is explicit: $\delta_{NN}=\lim\delta$.",
        "Escape": "Neurons beyond it escape.",
        "The delta_NN of networks": "Something tends to a limit.",
    }
    found = {}
    for number, text in texts.items():
        terms = ("delta_NN", "escape") if number == "Escape" else ()
        mine = replace(claim, number=number, statement=text, terms=terms)
        reference = Reference("MW", number)
        found[reference] = Statement(reference, [mine])
    numbers = [item.reference.number for item in search("delta_NN", found)]
    assert numbers == ["Escape", "The delta_NN of networks", "The main result", "A threshold"]


def test_page_has_the_statements_of_the_sources(claims: Path) -> None:
    """A statement of a source, part of which is known from elsewhere, could be left out."""
    registry = load_registry(claims)
    found = [
        Statement(Reference(claim.source, claim.number), [replace(claim, credit="Known.")])
        for claim in registry
    ]
    verdicts = [{"id": claim.id, "verdict": "confirmed"} for claim in registry]
    ledger = {"sources": registry.sources, "claims": verdicts}
    text = page(ledger, found, tests=Path("tests"), address="")
    assert 'id="statement-bghj-theorem-2-3"' in text and "OWN" not in text
