"""The tally of seeds: failures are counted, and hidden randomness is found."""

import json

import pytest

from claimbook import Chapter, ClaimError, Control, below, identity, seeds
from claimbook.__main__ import main
from claimbook.collect import build

ALIGNMENT = "alignment/alignment"
CELL = "```{code-cell} ipython3\nx = 1\nchapter.claim('A', x)\n```\n"


def bounded(value, **options):
    """Return a check of an inequality."""
    return below("norm", observed=value, bound=2.0, control=Control("3", observed=3.0), **options)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (bounded(1.0), bounded(1.1), True),
        (bounded(1.0), bounded(1.0 + 1e-9), False),
        (bounded(1.0, how="a sum of squares"), bounded(1.1, how="a sum of squares"), False),
        (
            bounded(1.0, false_alarm=1e-6, how="Hoeffding"),
            bounded(1.1, false_alarm=1e-6, how="Hoeffding"),
            False,
        ),
    ],
)
def test_moved_observations_are_found(first, second, expected):
    """An inequality on a random run without a level is no check."""
    assert seeds.moved(first, second) is expected


def test_identities_may_be_checked_at_points_that_are_drawn():
    """Both sides then move; only a tolerance that hides noise is refused."""

    def equal(observed, expected):
        wrong = Control("9", observed=9.0)
        return identity("i", observed=observed, expected=expected, tolerance=0.5, control=wrong)

    assert not seeds.moved(equal(1.0, 1.0), equal(2.0, 2.0))
    assert seeds.moved(equal(1.0, 1.0), equal(1.2, 1.0))


@pytest.fixture
def repetition(claims, executed, tmp_path, notebook, good):
    """Write the notebooks of a build at another seed."""
    (claims.parent / "alignment").mkdir()
    for name in ("alignment", "matrices"):
        (claims.parent / f"alignment/{name}.md").write_text("# A chapter\n")

    def write(seed, check, monkeypatch):
        monkeypatch.setenv("CLAIMBOOK_TALLY", "1")
        chapter = Chapter(ALIGNMENT, profile="quick", seed=seed, claims=claims)
        chapter.claim("BGHJ-T2.3", check)
        chapter.claim("BGHJ-F2.1", good(), figure="alignment over time")
        folder = tmp_path / "seeds" / str(seed)
        records = [record.to_json() for record in chapter.records.values()]
        notebook(folder / "notebooks", ALIGNMENT, records)
        monkeypatch.delenv("CLAIMBOOK_TALLY")
        return folder

    return write


def test_failures_and_silence_are_counted(claims, repetition, monkeypatch, capsys):
    """A failing check must not stop the tally, nor a missing verdict go unnoticed."""
    folders = [
        repetition(1, bounded(1.0, how="sure"), monkeypatch),
        repetition(2, bounded(2.5, how="sure"), monkeypatch),
    ]
    assert main(["seeds", "--claims", str(claims), *map(str, folders)]) == 1
    said = capsys.readouterr().out
    assert "BGHJ-T2.3: norm: failed at 2" in said
    assert f"OWN-rank: {seeds.SILENT}: failed at 1, 2" in said
    tally = seeds.read(claims.parent / seeds.FILE)[ALIGNMENT]
    assert tally.seeds == [1, 2] and tally.failed["BGHJ-T2.3: norm"] == [2] and not tally.moved
    # A seed that ran again counts as it ran last; other runs of the same source are kept.
    folder = repetition(2, bounded(1.5, how="sure"), monkeypatch)
    main(["seeds", "--claims", str(claims), str(folder)])
    tally = seeds.read(claims.parent / seeds.FILE)[ALIGNMENT]
    assert tally.seeds == [1, 2] and "BGHJ-T2.3: norm" not in tally.failed
    # Runs of another source are forgotten.
    (claims.parent / f"{ALIGNMENT}.md").write_text(f"# New\n{CELL}")
    folder = repetition(2, bounded(1.4, how="sure"), monkeypatch)
    main(["seeds", "--claims", str(claims), str(folder)])
    assert seeds.read(claims.parent / seeds.FILE)[ALIGNMENT].seeds == [2]


@pytest.mark.fault
def test_crash_counts_as_silence(claims, repetition, monkeypatch, tmp_path):
    """A chapter that ended in an error said nothing on any claim."""
    folder = repetition(1, bounded(1.0, how="sure"), monkeypatch)
    (folder / "notebooks" / f"{ALIGNMENT}.ipynb").rename(
        folder / "notebooks" / f"{ALIGNMENT}.failed"
    )
    main(["seeds", "--claims", str(claims), str(folder)])
    assert len(seeds.read(claims.parent / seeds.FILE)[ALIGNMENT].failed) == 3


def test_ledger_refuses_hidden_randomness(claims, executed, repetition, monkeypatch, tmp_path):
    """The build must stop while a check that states no chance is known to move."""
    folders = [repetition(seed, bounded(1.0 + seed / 10), monkeypatch) for seed in (1, 2)]
    main(["seeds", "--claims", str(claims), *map(str, folders)])
    options = {"profile": "quick", "seed": 1, "out": tmp_path / "ledger.json"}
    with pytest.raises(ClaimError, match=r"BGHJ-T2\.3: norm: moves with the seed"):
        build(claims, executed, **options)
    (claims.parent / f"{ALIGNMENT}.md").write_text(f"# New\n{CELL}")
    build(claims, executed, **options)


def test_runs_say_which_library_they_used(claims, repetition, monkeypatch):
    """Runs with a library that has changed since could pass for runs with this one."""
    root = claims.parents[1]
    chapter = claims.parent / f"{ALIGNMENT}.md"
    chapter.write_text(f"# A chapter\n{CELL.replace('x = 1', 'import room')}")
    room = root / "lib" / "room.py"
    room.parent.mkdir()
    room.write_text("x = 1\n")

    def run(seed):
        folder = repetition(seed, bounded(1.0, how="sure"), monkeypatch)
        path = folder / "notebooks" / f"{ALIGNMENT}.ipynb"
        content = json.loads(path.read_text())
        (used,) = seeds.libraries([ALIGNMENT], root).values()
        content["metadata"]["claimbook"]["library"] = used
        path.write_text(json.dumps(content))
        main(["seeds", "--claims", str(claims), str(folder)])
        tally = seeds.read(claims.parent / seeds.FILE)[ALIGNMENT]
        return tally.seeds, tally.current(used)

    assert run(1) == ([1], 1) and run(2) == ([1, 2], 2)
    room.write_text("'Said.'\nx = 1\n")
    assert run(2) == ([1, 2], 2)
    room.write_text("x = 2\n")
    assert run(2) == ([1, 2], 1) and run(1) == ([1, 2], 2)
    # What ran before runs recorded their library used an earlier one.
    folder = repetition(3, bounded(1.0, how="sure"), monkeypatch)
    main(["seeds", "--claims", str(claims), str(folder)])
    tally = seeds.read(claims.parent / seeds.FILE)[ALIGNMENT]
    assert tally.seeds == [1, 2, 3] and tally.library.keys() == {1, 2}


def test_what_is_expected_is_kept_by_seed(claims, repetition, monkeypatch):
    """One seed at which a true claim may well fail would be hidden in a sum over all."""
    folders = [
        repetition(seed, bounded(1.0, how="sure", false_alarm=risk), monkeypatch)
        for seed, risk in ((1, 1e-6), (2, 3e-6))
    ]
    file = claims.parent / seeds.FILE
    main(["seeds", "--claims", str(claims), *map(str, folders)])
    assert seeds.read(file)[ALIGNMENT].expected == {1: 1e-6, 2: 3e-6}
    # The earlier form has the sum alone; every run then counts its share until it is made again.
    entries = json.loads(file.read_text())
    entries[ALIGNMENT]["expected"] = 8e-6
    del entries[ALIGNMENT]["library"]
    file.write_text(json.dumps(entries))
    assert seeds.read(file)[ALIGNMENT].expected == {1: 4e-6, 2: 4e-6}
    main(["seeds", "--claims", str(claims), str(folders[0])])
    assert seeds.read(file)[ALIGNMENT].expected == {1: 1e-6, 2: 4e-6}
    assert seeds.largest(seeds.read(file)) == (4e-6, 2)


@pytest.mark.fault
def test_damaged_tally_is_named(tmp_path):
    """A tally cut short must not pass for an empty one."""
    path = tmp_path / seeds.FILE
    path.write_text(json.dumps({"a": {"speed": 1}}))
    with pytest.raises(ClaimError, match="not a tally of seeds"):
        seeds.read(path)
    assert seeds.read(tmp_path / "none.json") == {}


def test_a_function_may_move_without_voiding_the_runs(tmp_path):
    """Tidying the library would throw away days of runs; another formula must."""

    def digest(cell):
        path = tmp_path / "chapter.md"
        text = f"# Title\n\n```{{code-cell}} ipython3\n{cell}\nchapter.claim('A', x)\n```\n"
        path.write_text(text, encoding="utf8")
        return seeds.digest(path)

    before = digest("from a import b\nx = b.f(1)  # one")
    assert digest("from c.d import f\n\n\nx = f(1)") == before
    assert digest("from a import b\nx = b.f(2)") != before
    assert digest("from a import b\nx = b.g(1)") != before
    assert digest("from a import b\nx = b.f(1)\nshow(x, 3)") == before


def test_tidied_code_that_finds_the_same_numbers_keeps_the_runs(claims, repetition, monkeypatch):
    """Another way to write a chapter would throw away days of runs; other numbers must."""
    file, chapter = claims.parent / seeds.FILE, claims.parent / f"{ALIGNMENT}.md"

    def run(seed, value, cell):
        chapter.write_text(f"# A chapter\n{CELL.replace('x = 1', cell)}")
        folder = repetition(seed, bounded(value, how="sure"), monkeypatch)
        main(["seeds", "--claims", str(claims), str(folder)])
        return seeds.read(file)[ALIGNMENT].seeds

    assert run(1, 1.0, "x = 1") == [1] and run(2, 1.5, "x = 1") == [1, 2]
    assert run(1, 1.0, "x = 2 - 1") == [1, 2]
    assert seeds.read(file)[ALIGNMENT].digest == seeds.digest(chapter)
    # Another seed shows nothing of the kind, and neither does another number.
    assert run(3, 1.0, "x = 3") == [3]
    assert run(3, 1.0 + 1e-15, "x = 4") == [3] and run(1, 1.0, "x = 4") == [1, 3]
    assert run(3, 1.0, "x = 5") == [3]
