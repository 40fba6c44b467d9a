"""Runs at the source's size: the same at any number of workers, and recorded as they are."""

import runpy

import numpy as np
import pytest

from companion.catapults.features import source_size
from traindyn.catapults import alignment, target
from traindyn.parallel import sweep


@pytest.fixture
def small(monkeypatch):
    """The same runs of networks that take seconds."""
    monkeypatch.setattr(source_size, "_SIZES", (60, 40, 40))
    monkeypatch.setattr(source_size, "_DIMENSION", 12)
    for name, group in source_size.GROUPS.items():
        narrow = group.setting._replace(widths=tuple(24 for _ in group.setting.widths), epochs=400)
        cases = tuple(min(case, 60) for case in group.cases)
        monkeypatch.setitem(
            source_size.GROUPS, name, group._replace(setting=narrow, cases=cases, replicas=2)
        )


@pytest.mark.parametrize("name", source_size.GROUPS)
def test_every_group_has_its_runs(small, name):
    """With losses, a cosine and numbers of steps."""
    (found,) = source_size.ends(name, replicas=1, rng=1, workers=1)
    assert tuple(found) == source_size.GROUPS[name].names
    for end in found.values():
        assert 0 < end.loss and 0 < end.held and 0 < end.alignment <= 1 and end.contrast > 0
        assert all(isinstance(n, int) for n in (end.over, end.steps, end.diverged))


def test_replicas_do_not_depend_on_their_number_or_a_store(small, tmp_path):
    """A second replica leaves the first as it is; what is stored is not run again."""
    one = source_size.ends("rank 2", replicas=1, rng=2, workers=1)
    two = source_size.ends("rank 2", replicas=2, rng=2, workers=1, store=tmp_path)
    assert two[0] == one[0] != two[1]
    held = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert source_size.ends("rank 2", replicas=2, rng=2, workers=1, store=tmp_path) == two
    assert held == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}


def test_some_runs_can_be_made_alone(small):
    """In the order of the group, whichever was asked for first."""
    both = source_size.ends("rank 2", only=["10", "5"], replicas=1, rng=2, workers=1)[0]
    assert list(both) == ["5", "10"] and both["5"].over > 0
    one = source_size.ends("rank 2, rises", only=["1"], replicas=1, rng=4, workers=1)[0]
    assert list(one) == ["1"] and one["1"].over == 0


def test_contrast_is_that_of_ten_rows_and_columns():
    """Of the target itself nothing but two entries is left; a third one is empty."""
    matrix = target("rank-2", 12).egop + 0.01 * np.ones((12, 12))
    assert source_size._contrast(matrix, (0, 1)) == pytest.approx(0.01 / 1.01)
    assert source_size._contrast(matrix, (0, 2)) == pytest.approx((1.01 + 97 * 0.01) / 98 / 0.01)
    assert alignment(matrix, target("rank-2", 12).egop) > 0.99


def test_the_record_has_every_group():
    """With the replicas that its writer makes, and none twice."""
    for name, group in source_size.GROUPS.items():
        held = source_size.recorded(name)
        assert len(held) == group.replicas
        assert len({tuple(replica.values()) for replica in held}) == len(held)
        assert all(tuple(replica) == group.names for replica in held)


@pytest.mark.nightly
@pytest.mark.parametrize("name", source_size.GROUPS)
def test_the_record_is_what_is_found(name):
    """The first replica from the same root; spikes amplify the rounding of another processor."""
    (found,) = source_size.ends(name, replicas=1, rng=source_size._SEED)
    for run, end in source_size.recorded(name)[0].items():
        again = found[run]
        assert again.diverged == end.diverged
        for field in ("loss", "held"):
            assert getattr(again, field) == pytest.approx(getattr(end, field), rel=0.05)
        assert again.alignment == pytest.approx(end.alignment, abs=0.02)
        assert again.contrast == pytest.approx(end.contrast, rel=0.1)
        assert again.over == pytest.approx(end.over, rel=0.1, abs=5)


def test_the_record_is_written_as_it_is(small, tmp_path, monkeypatch):
    """One group is run, the others stay, and the module can be read again."""
    file = tmp_path / "record.py"
    file.write_text(source_size._FILE.read_text())
    monkeypatch.setattr(source_size, "sweep", _alone)
    source_size._record(str(tmp_path / "store"), file, ["rank 4"])
    held = runpy.run_path(str(file))["RUNS"]
    assert held.keys() == source_size.RUNS.keys()
    assert all(held[name] == source_size.RUNS[name] for name in held if name != "rank 4")
    alone = tmp_path / "alone.py"
    source_size._record(str(tmp_path / "store"), alone, ["rank 4"])
    assert runpy.run_path(str(alone))["RUNS"] == {"rank 4": held["rank 4"]}
    found = source_size.ends("rank 4", replicas=2, rng=source_size._SEED, workers=1)
    rows = [[list(end) for end in replica.values()] for replica in found]
    np.testing.assert_allclose(held["rank 4"], rows, rtol=1e-4)
    assert list(tmp_path.glob(".*")) == []


def _alone(*given, **named):
    """Make a sweep in this process, where the sizes are small."""
    return sweep(*given, **{**named, "workers": 1, "progress": False})


def test_refusals_name_the_argument():
    """Groups and numbers of replicas."""
    with pytest.raises(ValueError, match="group must be one of"):
        source_size.recorded("rank 5")
    with pytest.raises(ValueError, match="group must be one of"):
        source_size.ends("rank 5", replicas=1, rng=0)
    with pytest.raises(ValueError, match="only must be one of"):
        source_size.ends("rank 2", only=["6"], replicas=1, rng=0)
    with pytest.raises(ValueError, match="replicas must be"):
        source_size.ends("rank 2", replicas=0, rng=0)
