"""Recording, stopping and divergence, common to both levels of SGD."""

import numpy as np
import pytest
from scipy import stats

from traindyn.problems import KGaussianMixture, SpikedTensor, TwoLayerMixture
from traindyn.problems.chain import direct as in_full
from traindyn.problems.chain import reduced as on_statistics
from traindyn.problems.loops import loop_of, repeat
from traindyn.problems.spiked import Point, Statistics
from traindyn.problems.spiked.diffusive import with_diverging_signal
from traindyn.sgd import _loop, direct, reduced

FALSE_ALARM = 1e-6


def explosive(n=400, ratio=0.5):
    """Tensor PCA of order four with diverging signal: every path explodes."""
    return with_diverging_signal(SpikedTensor(4, n, signal=1.0), ratio)


def escaped(level):
    """Whether sqrt(n) |m| is beyond a level, n = 400."""
    return lambda u: np.abs(u.m) > level / 20


def test_an_explosive_chain_runs_past_its_escape():
    """An error without a bound; with one, stopped replicas that say when."""
    problem, times = explosive(), np.linspace(0, 2, 9)
    options = {"step_size": 1 / 400, "replicas": 200, "rng": 1}
    with pytest.raises(FloatingPointError, match=r"replica \d+ of 200: step_size = 0\.0025"):
        reduced.run_replicas(problem, times, **options)
    path = reduced.run_replicas(problem, times, **options, stop=escaped(8))
    m, stopped = path.statistics.m, path.stopped
    assert m.shape == (200, 9) and stopped.shape == (200,)
    assert np.mean(np.isfinite(stopped)) > 0.8
    # Beyond the bound and frozen from then on, within it before.
    beyond = np.abs(m) > 8 / 20
    np.testing.assert_array_equal(beyond, times >= stopped[:, None] - 1e-12)
    assert all(np.unique(row[hit]).size <= 1 for row, hit in zip(m, beyond, strict=True))


@pytest.mark.parametrize("entries", [None, 2 * 7])
def test_a_path_stops_at_its_first_step_beyond(entries, monkeypatch):
    """Against the same path recorded at every step, also where batches are short."""
    if entries:
        monkeypatch.setattr(_loop, "_ENTRIES_PER_RECORD", entries)
    problem, size = explosive(), 1 / 400
    start = Statistics(np.array(0.05), np.array(1.0))
    stop = escaped(4)
    coarse = reduced.run(problem, start, [0.05, 3.0], step_size=size, rng=3, stop=stop)
    last = round(float(coarse.stopped) / size)
    assert 20 < last < 1200
    every = reduced.run(problem, start, np.arange(last + 1) * size, step_size=size, rng=3)
    held = stop(every.statistics)
    assert held[-1] and not held[:-1].any()
    assert coarse.statistics.m[1] == every.statistics.m[-1]
    assert coarse.statistics.r2[1] == every.statistics.r2[-1]
    assert coarse.statistics.m[0] == every.statistics.m[20]


def test_both_levels_stop_at_the_same_law_of_times():
    """Kolmogorov-Smirnov of 400 stopping times in full dimension and reduced, at 1e-6.

    The control has a bound half as high again.
    """
    problem = SpikedTensor(2, 40, signal=1.0)
    options = {"step_size": 1 / 40, "replicas": 400}

    def times(level, bound, seed):
        path = level.run_replicas(
            problem, [2.0], **options, rng=seed, stop=lambda u: np.abs(u.m) > bound
        )
        return np.minimum(path.stopped, 3.0)

    full = times(direct, 0.4, 1)
    assert stats.ks_2samp(full, times(reduced, 0.4, 2)).pvalue > FALSE_ALARM
    assert stats.ks_2samp(full, times(reduced, 0.6, 2)).pvalue < FALSE_ALARM


def test_a_bound_never_met_changes_nothing():
    """The same path, and an infinite time; without a bound there is no time at all."""
    problem, times = SpikedTensor(2, 100, signal=1.5), [0.0, 0.1, 1.0]
    start = problem.initial_statistics()
    free = reduced.run(problem, start, times, step_size=0.01, rng=5)
    held = reduced.run(problem, start, times, step_size=0.01, rng=5, stop=lambda u: u.m > 10)
    np.testing.assert_array_equal(free.statistics.m, held.statistics.m)
    assert free.stopped is None and held.stopped == np.inf


def test_a_start_beyond_the_bound_stays():
    """Stopped at time 0, at every time the start; snapshots included."""
    problem = SpikedTensor(2, 50, signal=1.5)
    point = problem.place(Statistics(np.array(2.0), np.array(1.0)))
    path = direct.run(
        problem,
        point,
        [0.0, 0.1, 0.5],
        step_size=0.02,
        rng=0,
        snapshots=True,
        stop=lambda u: u.m > 1,
    )
    assert path.stopped == 0.0
    np.testing.assert_array_equal(path.statistics.m, [2.0] * 3)
    np.testing.assert_array_equal(path.snapshots.x, [point.x] * 3)


def half_wild(generator):
    """A start that diverges for every other replica."""
    far = generator.random() < 0.5
    return Statistics(np.array(30.0 if far else 0.1), np.array(1.0))


@pytest.mark.parametrize("times", [[0.0, 0.1, 0.5], [0.5]])
def test_diverging_replicas_are_reported_on_request(times):
    """They repeat their last finite record and say when; the others are what they were."""
    problem = SpikedTensor(3, 100, signal=2.0)
    options = {"step_size": 0.01, "replicas": 30, "rng": 4}
    path = reduced.run_replicas(problem, times, **options, start=half_wild, on_divergence="stop")
    lost = np.isfinite(path.stopped)
    assert 5 < lost.sum() < 25
    np.testing.assert_array_equal(path.statistics.m[lost, -1], 30.0)
    assert np.all(path.stopped[lost] <= 0.5)
    for i, generator in enumerate(np.random.default_rng(4).spawn(30)):
        start = half_wild(generator)
        if lost[i]:
            with pytest.raises(FloatingPointError):
                reduced.run(problem, start, times, step_size=0.01, rng=generator)
        else:
            alone = reduced.run(problem, start, times, step_size=0.01, rng=generator)
            np.testing.assert_array_equal(alone.statistics.m, path.statistics.m[i])
    first = int(np.argmax(lost))
    with pytest.raises(FloatingPointError, match=f"replica {first} of 30: step_size = 0.01"):
        reduced.run_replicas(problem, times, **options, start=half_wild)


def test_divergence_in_full_dimension_keeps_snapshots():
    """Statistics and point at the same last finite time."""
    problem = SpikedTensor(3, 40, signal=2.0)

    def start(generator):
        return Point(problem.initial(rng=generator).x * 8)

    path = direct.run_replicas(
        problem,
        [0.0, 5.0],
        step_size=0.05,
        replicas=3,
        rng=0,
        start=start,
        snapshots=True,
        on_divergence="stop",
    )
    np.testing.assert_array_equal(path.stopped, 5.0)  # the first look after the start
    np.testing.assert_array_equal(path.snapshots.x[:, 1], path.snapshots.x[:, 0])
    np.testing.assert_array_equal(path.statistics.m[:, 1], path.snapshots.x[:, 1, 0])


@pytest.mark.parametrize("entries", [2, 2 * 5, 2**18])
def test_batches_of_records_change_nothing(entries, monkeypatch):
    """Dense times in batches of one, five and all records, against single runs."""
    monkeypatch.setattr(_loop, "_ENTRIES_PER_RECORD", entries)
    problem = SpikedTensor(2, 100, signal=1.5)
    start, seen = problem.initial_statistics(), []
    times = np.r_[np.arange(7), 9, 20, np.arange(31, 44)] * 0.01
    path = reduced.run(
        problem, start, times, step_size=0.01, rng=5, progress=lambda *done: seen.append(done)
    )
    assert seen[-1] == (43, 43)
    for i in (0, 3, 6, 8, 9, 19):
        alone = reduced.run(problem, start, times[i : i + 1], step_size=0.01, rng=5)
        assert path.statistics.m[i] == alone.statistics.m[0]


def test_checks_between_records_find_divergence_early(monkeypatch):
    """A long gap between times is cut into checks; the error says between which."""
    monkeypatch.setattr(_loop, "_STEPS_PER_CHECK", 10)
    problem = SpikedTensor(3, 100, signal=2.0)
    start = Statistics(np.array(30.0), np.array(1.0))
    with pytest.raises(FloatingPointError, match=r"between t = 0 and t = 0\.1;"):
        reduced.run(problem, start, [100.0], step_size=0.01, rng=0)


def test_bad_requests_are_named():
    """An unknown policy, an answer that is not one bool for each time, no replica."""
    problem = KGaussianMixture.orthonormal(2, 20, precision=5.0, ridge=0.1)
    options = {"step_size": 0.05, "replicas": 2, "rng": 0}
    with pytest.raises(ValueError, match="on_divergence must be one of 'raise', 'stop'"):
        reduced.run_replicas(problem, [1.0], **options, on_divergence="drop")
    with pytest.raises(ValueError, match=r"stop\(statistics\) must have shape \(1,\) of bool"):
        reduced.run_replicas(problem, [1.0], **options, stop=lambda u: u.m > 1)
    with pytest.raises(ValueError, match="replicas must be an integer >= 1, got 0"):
        direct.run_replicas(problem, [1.0], **options | {"replicas": 0})


KEPT = {
    "tensor": SpikedTensor(3, 6, signal=1.0),
    "explicit tensor": SpikedTensor(3, 6, signal=1.0).explicit(),
    "mixture": KGaussianMixture(np.eye(2), [0.5, 0.5], 4.0, 0.03, 8),
    "two layers": TwoLayerMixture.xor(4, 9, precision=4.0, ridge=0.03),
}


@pytest.mark.parametrize("name", KEPT)
def test_loops_kept_on_disk_are_the_one_compiled_anew(name):
    """The same draws; a step that is not the library's own has no loop of its own."""
    problem = KEPT[name]
    chains = [in_full(problem, problem.initial(rng=1))]
    if name != "explicit tensor":
        chains.append(on_statistics(problem, problem.draw_initial_statistics(rng=1)))
    for chain in chains:
        step, constants = chain.kernel
        kept, found = loop_of(step), []
        assert kept.stats.cache_path
        for loop in (kept, lambda *arguments, step=step: repeat(step, *arguments)):
            vector, state = chain.state()
            records = np.empty((2, vector.size))
            out = np.array([3, 11]), vector, records
            loop((state, constants), np.random.default_rng(2), 0.01, out)
            found.append(records)
        np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-13)
        assert np.ptp(found[0], axis=0).max() > 1e-3
        assert loop_of(step.py_func).func is repeat
