"""From executed notebooks to the ledger: every failure is caught and placed."""

import json
import subprocess

import pytest

from claimbook import MIME, ClaimError
from claimbook.__main__ import main
from claimbook.collect import build
from claimbook.registry import schema_faults


@pytest.fixture
def make(claims, executed, tmp_path):
    """Build the ledger of the executed chapters."""

    def run(**change):
        out = tmp_path / "out" / "ledger.json"
        options = {"profile": "quick", "seed": 1, "out": out, **change}
        return build(claims, executed, **options), out

    return run


def edit(executed, chapter, change):
    """Change an executed notebook in place."""
    path = executed / f"{chapter}.ipynb"
    content = json.loads(path.read_text())
    change(content["cells"])
    path.write_text(json.dumps(content))


def record_of(cells, id):
    """Return the stored record of a claim."""
    for cell in cells:
        for output in cell.get("outputs", []):
            if output["data"].get(MIME, {}).get("id") == id:
                return output["data"][MIME]
    raise KeyError(id)


def test_ledger_is_complete_and_valid(make, picture, dark_picture):
    """What is written must satisfy the committed schema, in the registry's order."""
    ledger, out = make()
    assert json.loads(out.read_text(encoding="utf-8")) == ledger
    assert not schema_faults("ledger", ledger)
    ids = [entry["id"] for entry in ledger["claims"]]
    assert ids == ["BGHJ-L3.1", "BGHJ-T2.3", "BGHJ-F2.1", "OWN-rank"]
    assert ledger["counts"] == {
        "confirmed": 1,
        "corrected": 1,
        "false": 1,
        "partial": 1,
        "data": 0,
    }
    assert ledger["panels"] == dict(confirmed=1, corrected=0, false=0, partial=0, data=0, open=1)
    assert ledger["claims"][2]["panels"][1] == {
        "panel": "(b)",
        "setting": "The same with other data",
        "finding": "open",
    }
    assert ledger["false_alarm_total"] == pytest.approx(1e-6) and ledger["false_pass_total"] == 0
    assert ledger["chapters"] == [
        {"chapter": "alignment/alignment", "claims": 3, "seconds": 75.0, "memory_mib": 310},
        {"chapter": "alignment/matrices", "claims": 1, "seconds": 75.0, "memory_mib": 310},
    ]
    (figure,) = ledger["figures"]
    assert (out.parent / figure["image"]).read_bytes() == picture
    assert (out.parent / figure["dark"]).read_bytes() == dark_picture != picture
    (smaller,) = ledger["smaller"]
    assert smaller["source"] == "$d=1000$"
    assert [entry.get("matters") for entry in ledger["claims"]] == [
        "number",
        None,
        None,
        None,
    ]
    assert ledger["claims"][2]["settle"] == "The number of samples."
    machine = ledger["environment"]
    assert {"traindyn", "numpy", "jupyter-book"} <= machine["packages"].keys()
    assert machine["processor"] and machine["cores"] >= 1
    assert sorted(path.name for path in out.parent.iterdir()) == ["figures", "ledger.json"]


def test_dark_figure_is_found_where_html_is_called_markdown(make, executed, dark_picture):
    """A figure with parameters would have no thumbnail for dark pages."""

    def rename_html(cells):
        data = cells[-1]["outputs"][0]["data"]
        data["text/markdown"] = [data.pop("text/html")]

    edit(executed, "alignment/alignment", rename_html)
    ledger, out = make()
    assert (out.parent / ledger["figures"][0]["dark"]).read_bytes() == dark_picture


def test_same_notebooks_same_bytes(make):
    """Nothing in the ledger may depend on when it was built."""
    first = make()[1].read_bytes()
    assert make()[1].read_bytes() == first


def test_commit_is_named(make, claims):
    """Outside git the commit is unknown; inside, changes are told."""
    ledger = make()[0]
    assert ledger["commit"] == ledger["date"] == "unknown"
    git = ["git", "-C", str(claims.parent), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "one"], check=True)
    ledger = make()[0]
    assert len(ledger["commit"]) == 40
    shown = subprocess.run([*git, "log", "-1", "--format=%cI"], capture_output=True, text=True)
    assert ledger["date"] == shown.stdout.strip()
    claims.write_text(claims.read_text() + "\n")
    again = make()[0]
    assert again["commit"].endswith("-dirty") and again["date"] == ledger["date"]


def remove(cells):
    """Drop the second record."""
    del cells[2]


def repeat(cells):
    """Record one claim twice."""
    cells.append({**cells[1], "execution_count": 9})


def rename(cells):
    """Record under an id the registry does not know."""
    record_of(cells, "BGHJ-T2.3")["id"] = "BGHJ-T2.30"


def poison(cells):
    """Store a NaN."""
    record_of(cells, "BGHJ-T2.3")["evidence"][0]["observed"] = float("nan")


def pass_control(cells):
    """Let a control pass."""
    record_of(cells, "BGHJ-T2.3")["evidence"][0]["control"]["rejected"] = False


def fail(cells):
    """Let a check fail."""
    record_of(cells, "BGHJ-T2.3")["evidence"][0]["passed"] = False


def rename_check(cells):
    """Call the check of a panel by another name."""
    record_of(cells, "BGHJ-F2.1")["evidence"][0]["check"] = "another"


def unlabel(cells):
    """Drop the label of a figure claim."""
    record_of(cells, "BGHJ-F2.1")["figure"] = None


def hide_figure(cells):
    """Remove the figure itself."""
    cells.pop()


def unpaint(cells):
    """Lose the dark version of a figure."""
    data = cells[-1]["outputs"][0]["data"]
    data["text/html"] = data["text/html"].replace("only-dark", "only-light")


def mute_figure(cells):
    """Remove the alternative text."""
    cells[-1]["outputs"][0]["metadata"]["claimbook"]["alt"] = " "


def repeat_figure(cells):
    """Show a figure twice."""
    cells.append({**cells[-1]})


def crash(cells):
    """Leave an error output."""
    cells[1]["outputs"].append(
        {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "0"}
    )


def overspend(cells):
    """Use up the budget of true claims that fail."""
    record_of(cells, "BGHJ-T2.3")["evidence"][1]["false_alarm"] = 0.2


def overpass(cells):
    """Use up the budget of false claims that pass."""
    record_of(cells, "BGHJ-T2.3")["evidence"][1]["false_pass"] = 0.2


def reseed(cells):
    """Come from another run."""
    record_of(cells, "BGHJ-T2.3")["seed"] = 2


def restyle(cells):
    """Come from another version of the records."""
    record_of(cells, "BGHJ-T2.3")["mood"] = "good"


def unprint(cells):
    """Lose the printed control of a refutation."""
    record_of(cells, "OWN-rank")["evidence"][0]["control"]["printed"] = False


def reverdict(cells):
    """Record a verdict that the registry no longer declares."""
    record_of(cells, "BGHJ-T2.3")["verdict"] = "data"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove, r"alignment/alignment: BGHJ-T?F?2\.\d: no verdict recorded"),
        (repeat, r"alignment/alignment, cell 6 \(In \[9\]\): BGHJ-T2\.3: recorded twice"),
        (rename, r"cell 2 \(In \[1\]\): BGHJ-T2\.30: no claim.*did you mean BGHJ-T2\.3"),
        (poison, r"cell 2 \(In \[1\]\): BGHJ-T2\.3: non-finite number in evidence\.0\.observed"),
        (pass_control, r"cell 2.*BGHJ-T2\.3: broken check"),
        (fail, r"cell 2.*BGHJ-T2\.3: check failed"),
        (rename_check, r"cell 3.*BGHJ-F2\.1: panel \(a\) names checks that were not made: \["),
        (unlabel, r"cell 3.*BGHJ-F2\.1: is about a figure and names no figure label"),
        (hide_figure, r"BGHJ-F2\.1: its figure 'alignment over time' is not displayed"),
        (unpaint, r"cell 5.*'alignment over time' has no version for dark pages"),
        (mute_figure, r"cell 5.*'alignment over time' has no alternative text"),
        (repeat_figure, r"cell 6.*'alignment over time' is displayed twice"),
        (crash, r"cell 2.*the cell failed, ZeroDivisionError: 0"),
        (overspend, r"some true claim fails in a repetition, 0\.2, exceeds 0\.05"),
        (overpass, r"some false claim passes a one-sided test, 0\.2, exceeds 0\.03"),
        (reseed, r"cell 2.*profile quick, seed 2; this build is quick, seed 1"),
        (restyle, r"cell 2.*BGHJ-T2\.3: not a record of this version"),
        (unprint, r"cell 4.*OWN-rank: finding 'false' needs a control with printed=True"),
        (reverdict, r"cell 2.*recorded as data, the registry says confirmed"),
    ],
)
def test_disorder_stops_the_build(make, executed, tmp_path, change, message):
    """Each failure names chapter and cell, and nothing is written."""
    edit(executed, "alignment/alignment", change)
    with pytest.raises(ClaimError, match=message):
        make()
    assert not (tmp_path / "out").exists()


def test_problems_are_not_reported_twice(make, executed):
    """A claim with a faulty record has a record."""
    edit(executed, "alignment/alignment", poison)
    with pytest.raises(ClaimError) as caught:
        make()
    assert str(caught.value).count("\n") == 0


def test_runs_that_noted_no_memory_are_read(make, executed):
    """Notebooks that were made before, or where nobody counts it, would stop the build."""
    for path in executed.rglob("*.ipynb"):
        path.write_text(path.read_text().replace(', "memory_mib": 310', ""))
    ledger, _ = make()
    assert all("memory_mib" not in entry for entry in ledger["chapters"])


def test_missing_and_foreign_notebooks(make, executed):
    """A chapter that did not run, or whose records come from elsewhere, is a failure."""
    (executed / "alignment/matrices.ipynb").rename(executed / "alignment/moved.ipynb")
    with pytest.raises(ClaimError, match=r"BGHJ-L3\.1: belongs to chapter alignment/matrices"):
        make()
    (executed / "alignment/moved.ipynb").unlink()
    with pytest.raises(ClaimError, match=r"BGHJ-L3\.1: the chapter has no notebook"):
        make()
    (executed / "alignment/matrices.ipynb").write_text("{")
    with pytest.raises(ClaimError, match="alignment/matrices: not a readable notebook"):
        make()


def test_all_problems_are_listed(make, executed):
    """One build shows everything there is to repair."""
    edit(executed, "alignment/alignment", unlabel)
    (executed / "alignment/matrices.ipynb").unlink()
    with pytest.raises(ClaimError, match=r"(?s)names no figure label.*has no notebook"):
        make()


def test_checkpoints_are_ignored(make, executed):
    """Jupyter's hidden copies are not chapters."""
    hidden = executed / ".ipynb_checkpoints"
    hidden.mkdir()
    (hidden / "old.ipynb").write_text("{")
    make()


def test_command_line(claims, executed, tmp_path, capsys):
    """The Makefile relies on exit codes and on the list of problems."""
    out = tmp_path / "ledger.json"
    arguments = ["build", "--claims", str(claims), "--notebooks", str(executed), "--seed", "1"]
    arguments += ["--profile", "quick", "--out", str(out)]
    assert main(arguments) == 0
    assert "4 claims, 1 confirmed, 1 corrected, 1 false, 1 partial" in capsys.readouterr().out
    assert main(["pages", "--ledger", str(out), "--out", str(tmp_path / "pages")]) == 0
    edit(executed, "alignment/alignment", unlabel)
    edit(executed, "alignment/alignment", fail)
    before = out.read_bytes()
    assert main(arguments) == 1
    problems = capsys.readouterr().err
    assert "names no figure label" in problems and "check failed" in problems
    assert out.read_bytes() == before
    assert main([*arguments[:4], str(tmp_path / "nowhere"), *arguments[5:]]) == 1
