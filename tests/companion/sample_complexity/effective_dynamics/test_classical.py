"""Exit of a Gaussian chain: quadrature against sampling, and its rate."""

import numpy as np
import pytest
from scipy import stats

from companion.sample_complexity.effective_dynamics import classical
from traindyn.problems.spiked import Statistics
from traindyn.trajectory import Trajectory


def chain(step_size, steps, count, seed=0):
    """Return paths of the chain, shape (steps + 1, count)."""
    noise = np.random.default_rng(seed).standard_normal((steps, count))
    path = np.zeros((steps + 1, count))
    for i, z in enumerate(noise):
        path[i + 1] = (1 - step_size) * path[i] + step_size * z
    return path


def end_probability(level, horizon, step_size):
    """Probability that the Gaussian chain is outside at the end, from its variance."""
    left = (1 - step_size) ** (2 * round(horizon / step_size))
    variance = step_size * (1 - left) / (2 - step_size)
    return 2 * stats.norm.sf(level / np.sqrt(variance))


@pytest.mark.parametrize("step_size", [0.2, 0.1])
def test_probabilities_against_sampling(step_size):
    """Counts of both events in 200 000 paths."""
    steps, count = round(2.0 / step_size), 200_000
    path = chain(step_size, steps, count)
    for found, event in (
        (classical.exit_probability, np.abs(path).max(axis=0) > 0.4),
        (end_probability, np.abs(path[-1]) > 0.4),
    ):
        expected = found(0.4, 2.0, step_size)
        p_value = stats.binomtest(int(event.sum()), count, expected).pvalue
        assert p_value > 1e-6
        # Power: a twentieth more is rejected.
        assert stats.binomtest(int(event.sum()), count, 1.05 * expected).pvalue < 1e-6


def test_quadrature_has_converged(monkeypatch):
    """Twice the nodes change nothing."""
    coarse = classical.exit_probability(0.4, 1.0, 0.01)
    monkeypatch.setattr(classical, "_NODES_PER_STEP", 12.0)
    assert classical.exit_probability(0.4, 1.0, 0.01) == pytest.approx(coarse, rel=1e-10)


def test_probability_of_leaving_at_the_first_step():
    """One step: leaving is being outside at the end."""
    assert classical.exit_probability(0.4, 0.1, 0.1) == pytest.approx(
        end_probability(0.4, 0.1, 0.1), rel=1e-12
    )


def test_rate_is_that_of_the_end_in_the_limit():
    """The I of MDL Section 12.1.1 at a tiny step size; an infinite horizon is told apart."""
    ratio = -1e-4 * np.log(end_probability(0.1, 1.0, 1e-4))
    assert ratio == pytest.approx(classical.deviation_rate(0.1, 1.0), rel=0.05)
    assert abs(ratio - 0.1**2) > 0.1 * ratio


def test_printed_interpolation_misses_the_next_iterate():
    """Just before a grid point the right one is the next iterate."""
    path = np.array([1.0, 2.0, 4.0, 3.0])
    times = np.array([0.0, 0.1 - 1e-12])
    printed = classical.printed_interpolation(path, times, step_size=0.1)
    right = Trajectory(np.arange(4) * 0.1, Statistics(path, path)).at(times).m
    assert printed[0] == right[0] == 1.0
    assert right[1] == pytest.approx(2.0)
    assert printed[1] == pytest.approx(1.2)


def test_printed_interpolation_is_the_source_s_own():
    """The display of MDL Section 12.1.1, by hand.

    Printed there: X(floor(t/delta)) + (t - floor(t/delta) delta) X(floor(t/delta) + 1).
    """
    path = np.array([1.0, 2.0, 4.0, 3.0])
    by_hand = [1.0 + 0.04 * 2.0, 2.0 + 0.05 * 4.0, 4.0 + 0.01 * 3.0]
    printed = classical.printed_interpolation(path, [0.04, 0.15, 0.21], step_size=0.1)
    np.testing.assert_allclose(printed, by_hand, rtol=1e-12)


def test_bad_arguments_are_named():
    """Errors tell which argument was wrong."""
    with pytest.raises(ValueError, match="step_size"):
        classical.exit_probability(0.4, 1.0, 1.5)
    with pytest.raises(ValueError, match="times"):
        classical.printed_interpolation([1.0, 2.0], [0.1], step_size=0.1)
