"""The result type shared by simulation and theory."""

from typing import NamedTuple

import numpy as np
import pytest

from traindyn.trajectory import Trajectory, stack, whole_steps


class Pair(NamedTuple):
    """A matrix and a scalar."""

    m: np.ndarray
    v: np.ndarray


def path(times, slope=1.0, **options):
    """Statistics linear in time, which linear interpolation reproduces exactly."""
    t = np.asarray(times, dtype=float)
    return Trajectory(t, Pair(slope * t[:, None, None] * np.ones((2, 2)), slope * t), **options)


def test_interpolation_is_exact_on_linear_functions_of_any_shape():
    """An off-by-one in the bracketing interval would show at the knots or between them."""
    trajectory = path([0.0, 1.0, 4.0])
    wanted = np.array([[0.0, 0.25], [1.0, 4.0]])
    found = trajectory.at(wanted)
    assert found.m.shape == (2, 2, 2, 2)
    np.testing.assert_allclose(found.v, wanted, atol=1e-15)
    np.testing.assert_allclose(found.m[..., 1, 0], wanted, atol=1e-15)


def test_interpolation_keeps_the_replica_axis_in_front():
    """Interpolating along the replica axis would pass unnoticed on square data."""
    joined = stack([path([0.0, 1.0, 4.0], slope) for slope in (1.0, 2.0)])
    found = joined.at([2.0, 3.0, 3.5, 4.0])
    assert found.m.shape == (2, 4, 2, 2)
    np.testing.assert_allclose(found.v, [[2, 3, 3.5, 4], [4, 6, 7, 8]])


def test_a_single_time_is_a_trajectory():
    """A bracket needs two knots; one knot must still answer at its own time."""
    assert path([2.0]).at(2.0).v == 2.0


@pytest.mark.parametrize("t", [-0.1, 4.1])
def test_no_extrapolation(t):
    """Silent extrapolation would compare theory and simulation outside their range."""
    with pytest.raises(ValueError, match=r"t must lie in \[0, 4\]"):
        path([0.0, 4.0]).at(t)


def test_steps_undo_the_multiplication_by_the_step_size():
    """Floor instead of rounding loses a step to rounding error."""
    size = 1.0 / 3.0
    steps = np.arange(0, 1000, 7)
    assert np.array_equal(path(steps * size, step_size=size).steps, steps)
    with pytest.raises(ValueError, match="step_size"):
        _ = path([0.0, 1.0]).steps


def test_mean_and_standard_error_match_numpy():
    """The standard error is that of the mean, with n - 1 degrees of freedom."""
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=5)
    joined = stack([path([0.0, 2.0], slope) for slope in slopes])
    mean = joined.mean()
    np.testing.assert_allclose(mean.statistics.v[1], 2 * slopes.mean())
    np.testing.assert_allclose(mean.errors.v[1], 2 * slopes.std(ddof=1) / np.sqrt(5))
    assert mean.replicas is None
    np.testing.assert_allclose(joined.replica(3).statistics.v[1], 2 * slopes[3])
    with pytest.raises(ValueError, match="replicas"):
        mean.mean()
    with pytest.raises(ValueError, match="replicas must be at least 2"):
        stack([path([0.0, 2.0])]).standard_error()


def test_select_keeps_some_times_of_every_replica():
    """Times, statistics and replicas stay together; indices must increase and exist."""
    joined = stack([path([0.0, 2.0, 3.0], slope) for slope in (1.0, 2.0)])
    chosen = joined.select([0, 2])
    np.testing.assert_array_equal(chosen.times, [0.0, 3.0])
    np.testing.assert_array_equal(chosen.statistics.v, joined.statistics.v[:, [0, 2]])
    for indices in ([2, 0], [3], [], [0.5]):
        with pytest.raises(ValueError, match="indices"):
            joined.select(indices)


def test_sup_distance_between_paths_on_different_times():
    """The distance is taken at the times of the first, after interpolation of the second."""
    distance = path([0.0, 1.0, 3.0], 2.0).sup_distance(path([0.0, 2.0, 4.0], 1.0))
    assert distance.m == pytest.approx(3.0)
    assert distance.v == pytest.approx(3.0)


def test_sup_distance_of_replicas_to_one_path():
    """Broadcasting a path against replicas must pair every replica with it."""
    joined = stack([path([0.0, 1.0, 3.0], slope) for slope in (1.0, -1.0, 0.5)])
    one = path([0.0, 1.0, 3.0], 1.0)
    for distance in (joined.sup_distance(one), one.sup_distance(joined)):
        np.testing.assert_allclose(distance.v, [0.0, 6.0, 1.5])
        np.testing.assert_allclose(distance.m, [0.0, 6.0, 1.5])
    np.testing.assert_allclose(joined.sup_distance(joined).m, 0.0)
    with pytest.raises(ValueError, match="replicas"):
        joined.sup_distance(stack([one, one]))


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        ([0.0, 0.0], {}, "times must be strictly increasing"),
        ([0.0, np.nan], {}, "times must be finite"),
        ([0.0, 1.0], {"step_size": -1.0}, "step_size must be positive"),
        ([0.0, 1.0], {"replicas": 2}, "statistics.v must have leading axes"),
        ([0.0, 1.0], {"errors": Pair(np.zeros((2, 2)), np.zeros(2))}, "errors.m must have the"),
        ([0.0, 1.0], {"stopped": [1.0]}, r"stopped must be times of shape \(\), got \[1.0\]"),
        ([0.0, 1.0], {"stopped": np.nan}, "stopped must be times"),
        ([0.0, 1.0], {"stopped": np.ma.array(3.0, mask=True)}, "stopped must have no masked"),
        ([0.0, 1.0], {"snapshots": (np.zeros(2),)}, "snapshots must be a NamedTuple"),
    ],
)
def test_bad_fields_are_named(times, options, message):
    """Each refusal names the field."""
    with pytest.raises(ValueError, match=message):
        path(times, **options)


def test_nan_in_the_statistics_is_refused():
    """A NaN would spread through means and distances without a trace."""
    with pytest.raises(ValueError, match=r"statistics\.v must be finite"):
        Trajectory(np.array([0.0, 1.0]), Pair(np.zeros(2), np.array([0.0, np.nan])))


def test_stopping_times_follow_their_paths():
    """One for each path, infinite or not; a path without one leaves none for the stack."""
    paths = [path([0.0, 1.0], stopped=np.array(t)) for t in (0.5, np.inf)]
    joined = stack(paths)
    np.testing.assert_array_equal(joined.stopped, [0.5, np.inf])
    assert joined.replica(0).stopped == 0.5
    np.testing.assert_array_equal(joined.select([1]).stopped, joined.stopped)
    assert stack([*paths, path([0.0, 1.0])]).stopped is None
    assert joined.mean().stopped is None


def test_stack_refuses_different_times():
    """Replicas on different grids cannot share a time axis."""
    with pytest.raises(ValueError, match="share their times"):
        stack([path([0.0, 1.0]), path([0.0, 2.0])])


def test_whole_steps_rounds_and_refuses_collisions():
    """Two times on one step would make the reported times repeat."""
    assert whole_steps([0.0, 0.3, 50.0], 1e-3).tolist() == [0, 300, 50_000]
    with pytest.raises(ValueError, match="one step apart"):
        whole_steps([0.0, 0.1, 0.11], 0.1)
    with pytest.raises(ValueError, match=r"times must start at 0 or later"):
        whole_steps([-1.0, 0.1], 0.1)
