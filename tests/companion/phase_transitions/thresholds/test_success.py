"""Counts of successes: their law at a small size, their store, their record."""

import runpy

import numpy as np
import pytest
from scipy.stats import binom

from companion.phase_transitions.thresholds import success


def descend(setting, dimension, samples, rng):
    """Step by step and in double precision: when the cosine first exceeds one half."""
    problem, eta, horizon, _ = setting
    data = problem.sample(samples, dimension, rng=rng)
    theta = problem.initial(dimension, rng=rng)[:, 0]
    for step in range(round(horizon / eta) + 1):
        if abs(theta[0]) > np.linalg.norm(theta) / 2:
            return step * eta
        _, force = problem.force((data.inputs @ theta)[:, None], data.labels)
        theta -= eta / samples * data.inputs.T @ force[:, 0]
    return np.inf


@pytest.mark.parametrize("name", success.SETTINGS)
def test_share_of_a_plain_loop(name):
    """Sixty runs of a loop in double precision at one sample ratio, at level 1e-6."""
    rng, setting = np.random.default_rng(7), success.SETTINGS[name]
    ratio = setting.sample_ratios(50)[1]
    plain = np.array([descend(setting, 50, round(50 * ratio), rng) for _ in range(60)])
    counts = success.count([name], [50], runs=200, rng=8, workers=2)[name, 50]
    assert counts.times[-1] == setting.horizon
    for time, successes in zip(counts.times, counts.successes[:, 1]):
        low, high = binom.interval(1 - 1e-6, 60, successes / 200)
        assert low <= np.sum(plain <= time) <= high


def test_counts_do_not_depend_on_workers_store_or_company(tmp_path):
    """The same for one worker and two, alone and beside another setting, fresh and stored."""
    one = success.count(["quadratic"], [50], runs=40, rng=3, workers=1)["quadratic", 50]
    two = success.count(["quadratic"], [50], runs=40, rng=3, workers=2, store=tmp_path)
    more = success.count(["quadratic", "a = 1"], [50], runs=40, rng=3, workers=1)
    np.testing.assert_array_equal(one.successes, two["quadratic", 50].successes)
    np.testing.assert_array_equal(one.successes, more["quadratic", 50].successes)
    assert np.all(np.diff(one.successes, axis=0) >= 0)
    assert one.successes.shape == (3, 4) and one.successes.max() <= one.runs == 40
    held = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = success.count(["quadratic"], [50], runs=40, rng=3, workers=1, store=tmp_path)
    np.testing.assert_array_equal(one.successes, again["quadratic", 50].successes)
    assert held == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}


def test_the_record_has_every_dimension():
    """With the runs that its writer makes, at all sample ratios, and no row twice."""
    for name, setting in success.SETTINGS.items():
        held = [success.recorded(name, dimension) for dimension in success.DIMENSIONS]
        for dimension, counts in zip(success.DIMENSIONS, held):
            np.testing.assert_array_equal(counts.sample_ratios, setting.sample_ratios(dimension))
            assert counts.runs == success._RUNS[dimension] >= counts.successes.max()
            assert np.all(np.diff(counts.successes, axis=0) >= 0)
        assert len({counts.successes.tobytes() for counts in held}) == len(held)


@pytest.mark.parametrize("dimension", [50, pytest.param(800, marks=pytest.mark.nightly)])
def test_the_record_is_what_is_counted(dimension):
    """From the same root; rounding of another processor may turn a run or two."""
    found = success.count(
        list(success.SETTINGS), [dimension], runs=200, rng=success._SEED, workers=2
    )
    for name in success.SETTINGS:
        held = success.recorded(name, dimension)
        assert np.abs(found[name, dimension].successes - held.successes).max() <= 2


def test_the_record_is_written_as_it_is(tmp_path, monkeypatch):
    """A part is counted, the rest stays, and the module can be read again."""
    file = tmp_path / "record.py"
    monkeypatch.setitem(success._RUNS, 50, 20)
    success._record(str(tmp_path / "store"), file, [50])
    counts = runpy.run_path(str(file))["COUNTS"]
    assert set(counts) == set(success.COUNTS)
    assert {key for key in counts if counts[key] != success.COUNTS[key]} == {
        (name, 50) for name in success.SETTINGS
    }
    again = success.count(list(success.SETTINGS), [50], runs=20, rng=success._SEED, workers=1)
    for key, found in again.items():
        assert counts[key] == (20, tuple(map(tuple, found.successes.tolist())))
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: success.recorded("a = 2", 50), "setting must be one of"),
        (lambda: success.recorded("a = 1", 60), "dimension must be one of"),
        (lambda: success.count(["a = 1"], [60], runs=20, rng=0), "dimensions must be one of"),
        (lambda: success.count(["a = 1"], [50], runs=30, rng=0), "runs must be a multiple of 20"),
        (lambda: success.count(["a = 2"], [50], runs=20, rng=0), "settings must be one of"),
        (lambda: success.count([], [50], runs=20, rng=0), "settings must be a list of different"),
        (lambda: success.SETTINGS["a = 1"].sample_ratios(60), "dimension must be one of"),
    ],
)
def test_refusals(call, message):
    """What is unknown or does not divide is named."""
    with pytest.raises(ValueError, match=message):
        call()
