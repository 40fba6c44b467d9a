"""Reading ``claims.toml``."""

import subprocess
import sys

import pytest

from claimbook import ClaimError, find_registry, load_registry
from claimbook.registry import schema, together

ENTRY = """
[[claim]]
id = "BGHJ-T1"
source = "BGHJ"
number = "Theorem 1"
kind = "theorem"
statement = "A."
chapter = "a/b"
tested = "All of it."
not_tested = "Nothing."
"""


def test_registry_keeps_the_order_of_the_file(claims):
    """The ledger is sorted by it."""
    registry = load_registry(claims)
    assert [claim.id for claim in registry] == ["BGHJ-L3.1", "BGHJ-T2.3", "BGHJ-F2.1", "OWN-rank"]
    assert registry["BGHJ-T2.3"].finding == "confirmed" and len(registry) == 4
    assert [claim.id for claim in registry.of_chapter("alignment/matrices")] == ["BGHJ-L3.1"]


@pytest.mark.parametrize("module", ["registry", "run.execute", "site.stage"])
def test_no_grammar_is_built_at_import(module):
    """Two seconds in each process, for a format of strings that no schema here has."""
    lines = (
        f"import claimbook.{module}, nbformat, jsonschema, sys",
        "assert 'rfc3987_syntax' not in sys.modules",  # nor forbidden: whoever wants it may have it
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_unknown_id_names_the_nearest(claims):
    """A mistyped id must be easy to repair."""
    with pytest.raises(ClaimError, match=r"no claim 'bghj-t2\.4'.*did you mean BGHJ-T2\.3"):
        load_registry(claims)["bghj-t2.4"]
    with pytest.raises(ClaimError, match=r"no claim 'xyz' in .*claims\.toml$"):
        load_registry(claims)["xyz"]


SMALLER = """
[[smaller]]
chapter = "a/c"
source = "1000"
ours = "500"
why = "Time."
"""


FIGURE = ENTRY.replace('kind = "theorem"', 'kind = "figure"')
PANEL = """
[[claim.panels]]
panel = "(a)"
setting = "Two layers"
finding = "confirmed"
checks = ["a"]
"""
OPEN = PANEL.replace("(a)", "(b)").replace('"confirmed"\nchecks = ["a"]', '"open"')


USES = ENTRY + ENTRY.replace("T1", "T2").replace("Theorem 1", "Theorem 2 (first part)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY + ENTRY, "BGHJ-T1: occurs twice"),
        (ENTRY.replace('"BGHJ"', '"BGJ"'), "BGHJ-T1: must begin with its source, BGJ-"),
        (ENTRY.replace('kind = "theorem"', 'kind = "hunch"'), "BGHJ-T1: kind: 'hunch' is not one"),
        (ENTRY.replace('chapter = "a/b"', ""), "BGHJ-T1: 'chapter' is a required property"),
        (ENTRY.replace('id = "BGHJ-T1"', ""), "claim number 1: 'id' is a required property"),
        (ENTRY.replace("not_tested", "settle"), "BGHJ-T1: 'not_tested' is a required property"),
        (ENTRY.replace("BGHJ", "OWN"), "OWN-T1: 'credit' is a required property"),
        (ENTRY + 'mood = "good"', "BGHJ-T1: Additional properties.*'mood'"),
        (ENTRY + 'finding = "likely"', "BGHJ-T1: finding: 'likely' is not one"),
        (ENTRY + 'finding = "corrected"', "BGHJ-T1: 'printed' is a required property"),
        (ENTRY + 'finding = "corrected"', "BGHJ-T1: 'matters' is a required property"),
        (ENTRY + 'finding = "partial"', "BGHJ-T1: 'settle' is a required property"),
        (ENTRY + 'finding = "data"', "BGHJ-T1: 'settle' is a required property"),
        (ENTRY + 'matters = "much"', "BGHJ-T1: matters: 'much' is not one"),
        (ENTRY + 'matters = "slip"', "BGHJ-T1: matters belongs to corrected claims"),
        (ENTRY + 'settle = "A proof."', "BGHJ-T1: settle belongs to partial and data claims"),
        (ENTRY.replace('"A."', "'$x'"), "BGHJ-T1: statement has mathematics outside its dollars"),
        (ENTRY.replace('"A."', "'\\alpha'"), "BGHJ-T1: statement has mathematics outside"),
        (ENTRY + "printed = 'a\\text{ for $n$}'", "BGHJ-T1: printed has mathematics outside"),
        (ENTRY + PANEL, "BGHJ-T1: panels belong to figures and tables, not to a theorem"),
        (FIGURE + PANEL + PANEL, r"BGHJ-T1: two panels are called '\(a\)'"),
        (FIGURE + PANEL + OPEN, "BGHJ-T1: by its panels the finding is partial, got confirmed"),
        (FIGURE + PANEL.replace("confirmed", "open"), r"\(a\): an open panel has no checks"),
        (FIGURE + OPEN.replace("open", "data"), r"any other has some; got data with 0"),
        (FIGURE + PANEL.replace("Two", "$x"), r"\(a\): setting has mathematics outside"),
        (FIGURE + PANEL.replace("confirmed", "likely"), "finding: 'likely' is not one"),
        (ENTRY + SMALLER, "smaller: no claim belongs to chapter 'a/c'"),
        (USES + "[uses.XYZ]", "uses.XYZ: no claim belongs to this source; known are BGHJ"),
        (USES + "[uses.bghj]", "uses: 'bghj' does not match"),
        (USES + '[uses.BGHJ]\n"Theorem 1" = "x"', "uses.BGHJ.Theorem 1: 'x' is not of type"),
        (USES + '[uses.BGHJ]\n"Theorem 1" = ["Theorem 1"]', "'Theorem 1' uses itself"),
        (USES + '[uses.BGHJ]\n"Theorem 1" = ["BGHJ-T1"]', "'Theorem 1' uses itself"),
        (
            USES + '[uses.BGHJ]\n"Theorem 1" = ["Theorem 3"]',
            "'Theorem 1' uses 'Theorem 3', which has neither claim nor proof; did you mean Theorem",
        ),
        (
            USES + '[uses.BGHJ]\n"Theorem 7" = []',
            "'Theorem 7' has no claim, and no proof uses it; did you mean Theorem",
        ),
        (
            USES + '[uses.BGHJ]\n"Theorem 2 (first part)" = []',
            r"'Theorem 2 \(first part\)' is a part; the statement is 'Theorem 2'",
        ),
        (
            USES + '[uses.BGHJ]\n"Theorem 1" = ["BGHJ-T2"]\n"Theorem 2" = ["Theorem 1"]',
            "a circle, 'Theorem [12]' uses 'Theorem [12]' uses 'Theorem [12]'",
        ),
        (
            USES + '[uses.BGHJ]\n"Theorem 1" = ["Theorem 2", "Theorem 2"]',
            "has non-unique elements",
        ),
        (ENTRY + 'finding = "false"', "BGHJ-T1: 'reason' is a required property"),
        (ENTRY + 'finding = "partial"', "BGHJ-T1: 'reason' is a required property"),
        (ENTRY + 'finding = "data"', "BGHJ-T1: 'reason' is a required property"),
        (ENTRY.replace('"A."', '" "'), "BGHJ-T1: statement"),
        (ENTRY + 'terms = "catapult"', "BGHJ-T1: terms: 'catapult' is not of type 'array'"),
        (ENTRY + "terms = []", "BGHJ-T1: terms"),
        (ENTRY.replace('"a/b"', '"../b"'), "BGHJ-T1: chapter"),
        ("claim = ", "not valid TOML"),
        ("", "'claim' is a required property"),
    ],
)
def test_faulty_registry_is_refused(tmp_path, text, message):
    """Every fault is named with the claim it belongs to."""
    path = tmp_path / "claims.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ClaimError, match=message):
        load_registry(path)


def test_registry_says_what_proofs_use(claims):
    """A table could be read and lost."""
    assert load_registry(claims).uses == {
        "BGHJ": {"Theorem 2.3": ("Lemma 3.1",), "Lemma 3.1": ("Lemma 3.0",), "Lemma 3.0": ()}
    }


def test_panels_together_give_the_finding(claims):
    """The least certain panel decides, and no panel that is open counts as anything."""
    panels = load_registry(claims)["BGHJ-F2.1"].panels
    assert [(each.panel, each.finding, each.ours) for each in panels] == [
        ("(a)", "confirmed", "Dimension $500$"),
        ("(b)", "open", ""),
    ]
    assert together(["confirmed", "confirmed"]) == "confirmed"
    assert together(["confirmed", "corrected"]) == "corrected"
    assert together(["data", "partial", "corrected"]) == "partial"
    assert together(["false", "open"]) == "false"
    assert together(["open", "open"]) is None and together([]) is None


def test_all_faults_are_listed(tmp_path):
    """One run shows everything there is to repair."""
    path = tmp_path / "claims.toml"
    path.write_text(ENTRY.replace('"theorem"', '"hunch"') + ENTRY.replace('"A."', "3"))
    with pytest.raises(ClaimError, match=r"(?s)hunch.*statement"):
        load_registry(path)


def test_registry_is_found_from_below(claims, monkeypatch, tmp_path):
    """Notebooks run in the folder of their source, the command anywhere in the checkout."""
    monkeypatch.delenv("CLAIMBOOK_CLAIMS", raising=False)
    inside = claims.parent / "alignment"
    inside.mkdir()
    monkeypatch.chdir(inside)
    assert find_registry() == claims.resolve()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClaimError, match="inside a checkout of the book"):
        find_registry()
    monkeypatch.setenv("CLAIMBOOK_CLAIMS", str(claims))
    assert find_registry() == claims.resolve()
    monkeypatch.setenv("CLAIMBOOK_CLAIMS", str(tmp_path / "nothing"))
    with pytest.raises(ClaimError, match="is not a file"):
        load_registry()


@pytest.mark.parametrize("name", ["claims", "ledger"])
def test_schemas_are_schemas(name):
    """A typing error in a schema would silently allow everything."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema(name))
