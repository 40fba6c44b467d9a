"""Thresholds along training: reference values, half points, crossings and extrapolation."""

import numpy as np
import pytest

from traindyn.dmft.curve import (
    crossing,
    extrapolate,
    half_point,
    threshold_curve,
)
from traindyn.problems.multi_index import SQUARED, MultiIndex, polynomial


def test_no_step_is_initialisation():
    """The mean-field route at t = 0 against quadrature, 1 %."""
    found = threshold_curve(MultiIndex(), [0], [1.4, 1.6, 1.8, 2.0], step_size=0.5, rng=0)
    assert found.values[0] == pytest.approx(1.693, rel=0.01)
    assert found.errors[0] < 0.02


@pytest.mark.parametrize(("step", "expected"), [(5, 2.84), (10, 3.84), (20, 5.28)])
def test_reference_values_at_finite_times(step, expected):
    """MW, Main result, at eta t = 2.5, 5, 10: values of both branches found elsewhere, to 3 %."""
    near = expected * np.array([0.8, 0.94, 1.08, 1.22])
    found = threshold_curve(MultiIndex(), [step], near, step_size=0.5, rng=1, paths=2**13)
    assert found.values[0] == pytest.approx(expected, rel=0.03)
    assert found.errors[0] < 0.03 * expected


def test_curve_rises_in_time():
    """One solution per delta for all steps; NaN where the deltas do not bracket."""
    deltas = [1.4, 1.7, 2.0, 2.5, 3.0, 3.5]
    options = {"step_size": 0.5, "rng": 1, "paths": 2**12, "replicas": 2}
    curve = threshold_curve(MultiIndex(), [0, 3, 5, 15], deltas, **options)
    assert curve.values[0] == pytest.approx(1.693, rel=0.02)
    assert curve.values[2] == pytest.approx(2.84, rel=0.05)
    assert curve.values[0] < curve.values[1] < curve.values[2]
    assert np.isnan(curve.values[3])
    assert np.all(np.diff(curve.statistics.mean(axis=2), axis=0) > 0)


def test_half_point_covers_the_truth():
    """Estimates over repeated experiments: unbiased, with the spread their error says."""
    deltas, trials = np.array([4.0, 5.0, 6.0, 7.0, 8.0]), np.full(5, 30)
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-1.5 * (deltas - 5.8)))
    found = [half_point(deltas, rng.binomial(trials, p), trials) for _ in range(100)]
    values, errors = np.array(found).T
    assert values.mean() == pytest.approx(5.8, abs=4 * values.std() / 10)
    assert errors.mean() == pytest.approx(values.std(), rel=0.25)
    # The likelihood on a grid: the prior moves the maximum by less than its width.
    hits = np.array([2, 8, 15, 27, 29])
    place, slope = np.meshgrid(np.linspace(4, 8, 401), np.linspace(0.3, 4, 371), indexing="ij")
    logit = slope * (deltas[:, None, None] - place)
    grid = np.einsum("i,ijk->jk", hits, logit) - 30 * np.logaddexp(0, logit).sum(axis=0)
    top = place[np.unravel_index(grid.argmax(), grid.shape)]
    assert half_point(deltas, hits, trials).value == pytest.approx(top, abs=0.03)
    # A step: every delta has one outcome only.
    step = half_point(deltas, [0, 0, 30, 30, 30], trials)
    assert 5.0 < step.value < 6.0 and 0 < step.error < 0.5
    for call, message in (
        (lambda: half_point(deltas, [30, 20, 10, 0, 0], trials), "successes must rise"),
        (lambda: half_point(deltas, [31, 0, 0, 0, 0], trials), "between 0 and trials"),
        (lambda: half_point([1.0], [1], [2]), "at two sample_ratios or more"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_least_threshold_over_neurons():
    """Neurons of both signs (MW, Main result): the least threshold is that of the positive ones."""
    options = {"step_size": 1.0, "rng": 0, "paths": 2**12, "replicas": 2}
    problem, deltas = MultiIndex(second_layer=(1.0, -1.0)), [2.0, 3.0, 4.0, 5.0]
    both = threshold_curve(problem, [2], deltas, **options)
    alone = threshold_curve(problem, [2], deltas, neuron=0, **options)
    assert both.values[0] == pytest.approx(alone.values[0], rel=0.02)


def test_crossing_of_a_quadratic():
    """Exact for a quadratic; refused where there is none."""
    deltas = np.array([1.0, 2.0, 3.0, 4.0])
    values = 0.2 + 0.3 * deltas + 0.05 * deltas**2
    assert crossing(deltas, values) == pytest.approx((-0.3 + np.sqrt(0.25)) / 0.1)
    for call, message in (
        (lambda: crossing(deltas, values + 5), "statistics must reach one near the sample_ratios"),
        (lambda: crossing(deltas[:2], values[:2]), "sample_ratios must be at least three, got 2"),
        (lambda: crossing(deltas, values[:2]), r"statistics must have shape \(4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_extrapolation_of_a_power():
    """Exact data give the limit; noisy data give it within the error returned."""
    times = np.array([10.0, 20.0, 40.0, 80.0, 160.0, 320.0])
    exact = 10.4 - 16.0 * times**-0.7
    assert extrapolate(times, exact).value == pytest.approx(10.4, abs=1e-3)
    noisy = exact + 0.03 * np.random.default_rng(0).standard_normal(6)
    found = extrapolate(times, noisy, np.full(6, 0.03))
    assert abs(found.value - 10.4) < 5 * found.error
    assert found.error < 0.6
    for call, message in (
        (lambda: extrapolate(times[:3], exact[:3]), "times must be at least four"),
        (lambda: extrapolate(times, exact, np.zeros(6)), "errors must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_requests_that_make_no_sense_are_refused():
    """Unbounded weights with the reason; nothing hard; too few ratios."""
    three = [1.0, 2.0, 3.0]
    for problem, ratios, message in (
        (MultiIndex(loss=SQUARED), three, "no left edge"),
        (MultiIndex(polynomial({(3,): 1.0})), three, "must have a hard direction"),
        (MultiIndex(), [1.0, 2.0], "sample_ratios must be at least three"),
    ):
        with pytest.raises(ValueError, match=message):
            threshold_curve(problem, [1], ratios, step_size=0.1, rng=0)
