"""Two runs are compared to the last byte, times apart."""

import json

import pytest

from claimbook.__main__ import main

CLAIMS = [
    {
        "id": f"BGHJ-L{n}",
        "chapter": "alignment/alignment",
        "verdict": "confirmed",
        "evidence": [{"observed": [0.25, n], "passed": True}],
        "seconds": 0.5,
    }
    for n in (1, 2)
]


@pytest.fixture
def runs(tmp_path):
    """Two ledgers with figures, and a way to doctor the second."""
    paths = [tmp_path / name / "ledger.json" for name in ("first", "second")]
    for path in paths:
        (path.parent / "figures" / "dark").mkdir(parents=True)
        (path.parent / "figures" / "dark" / "curve.png").write_bytes(b"picture")
        ledger = {"schema": 1, "profile": "quick", "seed": 1, "claims": CLAIMS}
        path.write_text(json.dumps(ledger), encoding="utf-8")

    def doctor(change):
        ledger = json.loads(paths[1].read_text(encoding="utf-8"))
        change(ledger)
        paths[1].write_text(json.dumps(ledger), encoding="utf-8")

    return *map(str, paths), doctor


def test_the_same_run_agrees_whatever_its_times(runs, capsys):
    """Times differ between any two runs and are no finding."""
    first, second, doctor = runs
    doctor(lambda ledger: ledger["claims"][0].update(seconds=1e6))
    assert main(["compare", first, second]) == 0
    assert "agree in every claim and figure" in capsys.readouterr().out


def test_the_last_bit_of_a_number_is_reported(runs, capsys):
    """Workers that add in another order change just that."""
    first, second, doctor = runs

    doctor(lambda ledger: ledger["claims"][1]["evidence"][0].update(observed=[0.25 + 2**-54, 2]))
    assert main(["compare", first, second]) == 1
    assert capsys.readouterr().out == (
        "BGHJ-L2 (alignment/alignment): evidence[0].observed[0] is 0.25 in the first and "
        "0.25000000000000006 in the second\n"
    )


def test_a_missing_claim_or_check_is_reported(runs, capsys):
    """What one run lacks it cannot have confirmed."""
    first, second, doctor = runs
    doctor(lambda ledger: ledger["claims"][1]["evidence"].clear())
    doctor(lambda ledger: ledger["claims"].pop(0))
    assert main(["compare", first, second]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "BGHJ-L1: the second run has no such claim"
    assert lines[1].startswith("BGHJ-L2 (alignment/alignment): evidence is [{")
    assert len(lines) == 2


def test_another_picture_is_reported(runs, capsys, tmp_path):
    """A figure may differ where all numbers agree."""
    first, second, _ = runs
    picture = tmp_path / "second" / "figures" / "dark" / "curve.png"
    picture.write_bytes(b"Picture")
    assert main(["compare", first, second]) == 1
    assert capsys.readouterr().out == "figures/dark/curve.png: other pixels or metadata\n"
    picture.unlink()
    assert main(["compare", first, second]) == 1
    assert "the second run has no such figure" in capsys.readouterr().out


def test_runs_of_other_seeds_are_not_compared(runs, capsys, tmp_path):
    """They differ by right, in everything."""
    first, second, doctor = runs
    doctor(lambda ledger: ledger.update(seed=2))
    assert main(["compare", first, second]) == 1
    assert "runs of seed 1 and 2" in capsys.readouterr().err
    assert main(["compare", first, str(tmp_path / "none.json")]) == 1
    assert "none.json is not a ledger" in capsys.readouterr().err
