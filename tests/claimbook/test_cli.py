"""The ``traindyn`` command."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claimbook.cli import SEED, app
from claimbook.collect import build

CLAIMS = """
[[claim]]
id = "BGHJ-T2.3"
source = "BGHJ"
number = "Theorem 2.3"
kind = "theorem"
statement = "Two is $1 + 1$."
chapter = "part/sums"
tested = "All of it."
not_tested = "Nothing."

[[claim]]
id = "OWN-three"
source = "OWN"
number = "Three"
kind = "remark"
statement = "Three is larger."
chapter = "part/sums"
tested = "All of it."
not_tested = "Nothing."
credit = "Elementary."
finding = "false"
reason = "It is not."

[[claim]]
id = "OWN-elsewhere"
source = "OWN"
number = "Elsewhere"
kind = "remark"
statement = "Nobody wrote this chapter."
chapter = "other"
tested = "All of it."
not_tested = "Nothing."
credit = "Elementary."

[uses.BGHJ]
"Theorem 2.3" = ["Lemma 2.1"]
"Lemma 2.1" = []
"""

CHAPTER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Sums

```{code-cell} ipython3
:tags: [parameters]
profile = "quick"
seed = 1
```

```{code-cell} ipython3
from claimbook import Chapter, Control, identity
chapter = Chapter("part/sums", profile=profile, seed=seed)
size = {"quick": 2, "paper": 20}[profile]
wrong = Control("as printed", printed=True, observed=3)
check = identity("sum", observed=TWO, expected=2, tolerance=seed * 1e-9 / size, control=wrong)
chapter.claim("OWN-three", check)
chapter.claim("BGHJ-T2.3", check)
```
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a checkout with one chapter; the command runs inside it."""
    folder = tmp_path / "checkout"
    (folder / "book" / "part").mkdir(parents=True)
    (folder / "book" / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    (folder / "book" / "part" / "sums.md").write_text(CHAPTER.replace("TWO", "1 + 1"))
    monkeypatch.delenv("CLAIMBOOK_CLAIMS", raising=False)
    monkeypatch.chdir(folder / "book" / "part")
    return folder


def run(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(app, list(arguments))


def test_claims_lists_and_filters(checkout):
    """Every filter must narrow the list, and findings without a ledger are marked as such."""
    result = run("claims")
    assert result.exit_code == 0
    assert "BGHJ-T2.3" in result.stdout and "(false)" in result.stdout
    assert "3 of 3 claims; no ledger built yet" in result.stdout
    assert "1 of 3 claims" in run("claims", "--source", "BGHJ").stdout
    assert "1 of 3 claims" in run("claims", "--verdict", "false").stdout
    assert "2 of 3 claims" in run("claims", "--chapter", "part/sums").stdout
    assert "2 of 3 claims" in run("claims", "--chapter", "part/").stdout
    (row,) = json.loads(run("claims", "--json", "--source", "BGHJ").stdout)
    assert row["id"] == "BGHJ-T2.3" and row["verdict"] == "confirmed" and not row["recorded"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["claims", "--source", "BGH"], "--source must be one of BGHJ, OWN, got 'BGH'"),
        (["claims", "--chapter", "p"], "--chapter must be one of other, part, part/sums"),
        (["claims", "--verdict", "likely"], "likely"),
        (["verify", "BGHJ-T23"], "did you mean BGHJ-T2.3"),
        (["show", "own-tree"], "did you mean OWN-three"),
        (["show", "Theorem 2.3"], "is not the id of a claim; it finds BGHJ-T2.3 BGHJ, Theorem 2.3"),
        (["show", "own-THREE"], "it finds OWN-three OWN, Three"),
        (["verify", "nobody wrote"], "it finds OWN-elsewhere OWN, Elsewhere"),
        (["verify", "OWN-elsewhere"], "belongs to chapter other, and there is no"),
        (["verify", "BGHJ-T2.3", "--profile", "fast"], "fast"),
        (["verify", "BGHJ-T2.3", "--seed", "-1"], "--seed"),
        (["verify"], "Missing argument"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_usage_exits_with_2(checkout, arguments, message):
    """Scripts must be able to tell a typing error from a failed claim."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in re.sub(r"\s+", " ", result.stderr)


def test_outside_a_checkout(tmp_path, monkeypatch):
    """An installed package has no book: the message must say where to go."""
    monkeypatch.delenv("CLAIMBOOK_CLAIMS", raising=False)
    monkeypatch.chdir(tmp_path)
    for command in (["claims"], ["verify", "BGHJ-T2.3"], ["show", "BGHJ-T2.3"]):
        result = run(*command)
        assert result.exit_code == 2 and "inside a checkout of the book" in result.stderr


def test_verify_runs_the_chapter_and_prints_the_evidence(checkout):
    """One claim, its numbers, and exit code 0; then the ledger built from the same run."""
    result = run("verify", "BGHJ-T2.3", "--profile", "paper", "--seed", "4")
    assert result.exit_code == 0, result.output
    for text in ("Theorem 2.3", "observed: 2 (expected 2)", "error: 2e-10", "CONFIRMED"):
        assert text in result.stdout
    assert "control: as printed, as printed: 3 (expected 2), rejected" in result.stdout
    assert "OWN-three" not in result.stdout
    notebooks = checkout / "_build" / "verify" / "paper-4"
    assert (notebooks / "part" / "sums.ipynb").is_file()

    claims = checkout / "book" / "claims.toml"
    claims.write_text(CLAIMS[: CLAIMS.index('[[claim]]\nid = "OWN-elsewhere')], encoding="utf-8")
    out = checkout / "_build" / "paper" / "ledger.json"
    build(claims, notebooks, profile="paper", seed=4, out=out)
    result = run("claims")
    assert "(false)" not in result.stdout and "profile paper, seed 4" in result.stdout
    assert "no ledger built" in run("claims", "--profile", "quick").stdout
    result = run("show", "OWN-three")
    assert "FALSE AS STATED" in result.stdout and "reason: It is not." in result.stdout
    out.write_text("{}")
    assert run("claims").exit_code == 2


def test_verify_fails_with_the_claim(checkout):
    """A chapter whose check fails exits with 1 and shows the check."""
    source = checkout / "book" / "part" / "sums.md"
    source.write_text(CHAPTER.replace("TWO", "1 + 1.5"))
    result = run("verify", "BGHJ-T2.3")
    assert result.exit_code == 1
    assert "check failed" in result.stderr and "observed 2.5" in result.stderr
    source.write_text(
        CHAPTER.replace("TWO", "1 + 1").replace('chapter.claim("BGHJ-T2.3", check)', "")
    )
    result = run("verify", "BGHJ-T2.3")
    assert result.exit_code == 1 and "no verdict recorded" in result.stderr


def test_verify_uses_the_seed_of_the_book():
    """A verdict that differs from the book's must not be due to another seed."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^SEED\s*\?=\s*(\d+)", makefile, re.MULTILINE)[1] == str(SEED)


def test_help_and_version():
    """The commands must introduce themselves anywhere."""
    text = run("--help").stdout
    assert "verify" in text and "claims" in text and "Exit codes" in text
    assert run("--version").exit_code == 0


def test_find_leads_from_a_number_to_code(checkout):
    """A reader of the paper could look for a theorem in vain."""
    (checkout / "lib").mkdir()
    text = 'def two():\n    """Two, by BGHJ Theorem 2.3."""\n'
    (checkout / "lib" / "sums.py").write_text(text, encoding="utf-8")
    for query in (("BGHJ Theorem 2.3",), ("BGHJ", "Theorem", "2.3"), ("2.3",), ("two is",)):
        result = run("find", *query)
        assert result.exit_code == 0, result.stdout
        assert "BGHJ-T2.3  confirmed" in result.stdout
        assert "sums.md:27, code cell 2" in result.stdout
        assert "sums.two  lib/sums.py:1" in result.stdout
        assert "rests on  Lemma 2.1: not among the claims" in result.stdout
        assert "card      book/part/sums.html#claim-bghj-t2-3\n" in result.stdout
        assert "https:" not in result.stdout
    assert run("find", "Theorem 9.9").exit_code == 1


def test_find_says_where_the_card_is(checkout):
    """A reader could know that there is a site, and have to look for the claim in it."""
    (checkout / "lib").mkdir()
    config = "html:\n  baseurl: https://books.example/sums/\n"
    (checkout / "_config.yml").write_text(config, encoding="utf-8")
    page = checkout / "_build" / "quick" / "html" / "book" / "part" / "sums.html"
    page.parent.mkdir(parents=True)
    page.touch()
    place = "book/part/sums.html#claim-bghj-t2-3\n"
    text = run("find", "BGHJ Theorem 2.3").stdout
    assert f"card      _build/quick/html/{place}" in text
    assert f"card      https://books.example/sums/{place}" in text
