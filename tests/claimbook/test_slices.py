"""Slices of a chapter hold what its claims need, and nothing else."""

import pytest

from claimbook.slices import evidence, needed

CELLS = (
    "import numpy as np\nchapter = Chapter()",
    "a = [1]\nb = 2\nunused = figure(a)",
    "def double(a):\n    return factor * a",
    "a.append(b)\nfactor = 3\nfactor *= b\nc = [double(x) for x in a]\nx = 5",
    "chapter.claim('ONE', c)\nchapter.claim('TWO', np.ones(3))",
    "for name in ('THREE',):\n    chapter.claim(name, b)",
)


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("ONE", "chapter a b double append factor c 'ONE'"),
        ("TWO", "import chapter 'TWO'"),
        ("THREE", "chapter b 'THREE'"),
    ],
)
def test_a_slice_holds_what_a_claim_needs_and_nothing_else(claim, holds):
    """Also what a function reads that is bound below it; not what only a picture needs."""
    marks = {
        "import": "import numpy", "chapter": "Chapter()", "a": "a = [1]", "b": "b = 2",
        "unused": "figure", "double": "def double", "append": "append",
        "factor": "factor = 3\nfactor *= b",
        "c": "c = [", "x": "x = 5", "'ONE'": "'ONE'", "'TWO'": "'TWO'", "'THREE'": "'THREE'",
    }  # fmt: skip
    found = "\n".join(needed(CELLS, [claim]))
    assert {name for name, mark in marks.items() if mark in found} == set(holds.split())


def test_a_claim_that_no_statement_records_is_refused():
    """Its mutation would survive for no reason."""
    with pytest.raises(ValueError, match="FOUR"):
        needed(CELLS[:-1], ["FOUR"])


def test_what_a_function_reads_may_change_below_it():
    """The claim would be repeated with an empty table, and stop."""
    cells = [
        "table = {}",
        "def read():\n    return table['x']",
        "table['x'] = 1\npicture = 2",
        "chapter.claim('ONE', read())",
    ]
    assert needed(cells, ["ONE"]) == [*cells[:2], "table['x'] = 1", cells[3]]


def test_a_loop_changes_what_it_runs_over():
    """A list that is filled under the name that the loop gives it."""
    cells = [
        "runs = {'a': [], 'b': []}\nother = [1, 2]",
        "for name, own in runs.items():\n    own.append(len(name))",
        "for each in other:\n    shown = plot(each)",
        "chapter.claim('ONE', runs['a'])",
    ]
    kept = "\n".join(needed(cells, ["ONE"]))
    assert "own.append" in kept and "plot" not in kept and "other" not in kept


def test_statements_are_cut_where_they_end():
    """Several could stand on a line, letters take two bytes, and decorators stand above."""
    one = "λ = 'é'; x = f(λ); chapter.claim('ONE', x)"
    function = "@cache\ndef f(a):\n    return a"
    assert needed([function, one], ["ONE"]) == [
        function, "λ = 'é'", "x = f(λ)", "chapter.claim('ONE', x)"
    ]  # fmt: skip


def test_evidence_needs_no_picture():
    """A figure more, drawn from numbers of its own, leaves what the claims rest on as it is."""
    picture = "own = np.random.default_rng(7)\ndots = own.normal(size=3)\nshow(dots)"
    assert evidence([*CELLS, picture]) == evidence(CELLS)


@pytest.mark.parametrize("stream", ["iter(spawned)", "[root.spawn(1)[0]]", "default_rng(seed)"])
def test_evidence_needs_what_draws_from_a_shared_stream(stream):
    """A picture that takes a draw changes the draws that follow."""
    cells = [
        f"streams = {stream}",
        "picture = f(next(streams))",
        "chapter.claim('ONE', g(streams))",
    ]
    assert evidence(cells) == cells
    assert "picture" not in "".join(needed(cells, ["ONE"]))


def test_evidence_needs_what_records_for_several_claims():
    """A function that records a claim is called by statements that name no recorder."""
    cells = ["def record(name):\n    chapter.claim(name, x)", "x = 1\ny = 2", "record('ONE')"]
    assert evidence(cells) == [cells[0], "x = 1", "record('ONE')"]
