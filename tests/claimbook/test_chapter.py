"""Recording claims in a chapter."""

import json
from dataclasses import replace

import nbformat
import pytest
from nbclient import NotebookClient

from claimbook import MIME, Chapter, ClaimError, Control, Record, identity
from claimbook import chapter as chapter_module


@pytest.fixture
def alignment(claims):
    """Return a chapter with three claims."""
    return Chapter("alignment/alignment", profile="quick", seed=1, claims=claims)


def test_record_holds_the_verdict(alignment, good, noisy, capsys):
    """Plain Python prints what a notebook would show."""
    record = alignment.claim("BGHJ-T2.3", good(), noisy)
    assert (record.verdict, record.chapter, record.profile) == (
        "confirmed",
        "alignment/alignment",
        "quick",
    )
    assert record.seconds >= 0 and len(record.evidence) == 2
    printed = capsys.readouterr().out
    assert "CONFIRMED  BGHJ-T2.3 (Theorem 2.3)" in printed and "rejected" in printed
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
    assert "1/3 claims" in repr(alignment)


def test_seconds_count_from_the_last_claim(alignment, good, monkeypatch):
    """The figures page shows what each figure costs."""
    clock = iter([10.0, 12.5, 13.0])
    monkeypatch.setattr(chapter_module, "perf_counter", lambda: next(clock))
    fresh = Chapter("alignment/alignment", profile="quick", seed=1, claims=alignment.registry)
    assert fresh.claim("BGHJ-T2.3", good()).seconds == 2.5
    assert fresh.claim("BGHJ-F2.1", good(), figure="f").seconds == 0.5


def test_findings_become_verdicts(alignment, good):
    """Partial and false are awarded only with what they need."""
    assert alignment.claim("BGHJ-F2.1", good(), figure="f").verdict == "partial"
    with pytest.raises(ClaimError, match=r"OWN-rank.*'false' needs a control with printed=True"):
        alignment.claim("OWN-rank", good())
    assert alignment.claim("OWN-rank", good(printed=True)).verdict == "false"


def test_unsupported_claims_raise(alignment, good):
    """Whatever is wrong with the evidence stops the cell and says what."""
    loose = identity("loose", observed=1, expected=1, tolerance=9, control=Control("2", expected=2))
    cases = {
        "no evidence": (),
        r"check failed: FAILED: closed form.*observed 2": (good(), good(observed=2.0)),
        "broken check 'loose': its control '2' also passes": (loose,),
        "non-finite observed": (replace(good(), observed=float("nan")),),
        r"non-finite control\.observed": (
            replace(good(), control=replace(good().control, observed=float("inf"))),
        ),
        "must come from a check, got True": (True,),
    }
    for message, evidence in cases.items():
        with pytest.raises(ClaimError, match=message):
            alignment.claim("BGHJ-T2.3", *evidence)
    assert not alignment.records


def test_misplaced_claims_raise(alignment, good):
    """Unknown, foreign and repeated ids, and figures without a label."""
    with pytest.raises(ClaimError, match=r"did you mean BGHJ-T2\.3"):
        alignment.claim("BGHJ-T23", good())
    with pytest.raises(ClaimError, match=r"BGHJ-L3\.1 belongs to chapter 'alignment/matrices'"):
        alignment.claim("BGHJ-L3.1", good(printed=True))
    with pytest.raises(ClaimError, match="about a figure"):
        alignment.claim("BGHJ-F2.1", good())
    alignment.claim("BGHJ-T2.3", good())
    with pytest.raises(ClaimError, match=r"BGHJ-T2\.3 is recorded twice"):
        alignment.claim("BGHJ-T2.3", good())


def test_running_a_cell_again_by_hand_replaces(alignment, good, monkeypatch):
    """A reader who changes a number and runs the cell again must not be stopped."""
    cells = iter([("a", 1), ("a", 2), ("a", 2), ("b", 3)])
    monkeypatch.setattr(chapter_module, "_current_cell", lambda: next(cells))
    alignment.claim("BGHJ-T2.3", good())
    alignment.claim("BGHJ-T2.3", good(tolerance=0.5))
    assert alignment.records["BGHJ-T2.3"].evidence[0].error == 0.5
    for _ in ("twice in one run", "another cell"):
        with pytest.raises(ClaimError, match="recorded twice"):
            alignment.claim("BGHJ-T2.3", good())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "alignment/nothing"}, "no claim of chapter.*alignment/alignment"),
        ({"profile": "fast"}, "profile must be one of quick, paper, got 'fast'"),
        ({"seed": -1}, "seed must be a non-negative integer, got -1"),
        ({"seed": 1.0}, "seed must be a non-negative integer, got 1.0"),
    ],
)
def test_bad_chapters_are_refused(claims, change, message):
    """A mistyped chapter would otherwise record nothing."""
    good = {"name": "alignment/alignment", "profile": "quick", "seed": 1}
    with pytest.raises(ClaimError, match=message):
        Chapter(**{**good, **change}, claims=claims)


def test_badge_in_a_real_kernel(claims, monkeypatch):
    """The notebook must hold one badge with the record: not two, and no plain repr."""
    monkeypatch.setenv("CLAIMBOOK_CLAIMS", str(claims))
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(
                "from claimbook import *\n"
                "chapter = Chapter('alignment/alignment', profile='quick', seed=3)\n"
                "check = identity('a < b', observed=1, expected=1, tolerance=0,\n"
                "                 control=Control('two', expected=2))\n"
                "chapter.claim('BGHJ-T2.3', check)"
            ),
            nbformat.v4.new_code_cell("chapter.claim('BGHJ-T2.3', check)"),
        ]
    )
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data"
    assert Record.from_json(output.data[MIME]).seed == 3
    html = output.data["text/html"]
    assert "<strong>confirmed</strong>" in html and "a &lt; b" in html and "aria-label" in html
    assert output.data["text/plain"].startswith("CONFIRMED")
    (again,) = notebook.cells[1].outputs
    assert again.ename == "ClaimError" and "recorded twice" in again.evalue
