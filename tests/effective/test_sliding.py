"""Flows with jumps: crossing, sliding and repelling zeros, and the limit flow of two layers."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from traindyn import _evaluations
from traindyn.effective import sliding
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, limit


def friction(u, sides):
    """A point (u, clock) pushed by clock - 2 against the friction -side(u)."""
    push = u[1] - 2.0 - sides[:, 0]
    return np.stack([push, np.ones(len(sides))], axis=-1)


def test_sticks_between_the_two_thresholds():
    """Closed form: falls onto zero at t = 1, sticks while |clock - 2| < 1, leaves at t = 3."""
    times = np.array([0.5, 1.0, 1.5, 2.9, 3.0, 4.0])
    # u' = t - 3 from 5/2: at zero at t = 1; u' = t - 3 again on the other side of t = 3.
    path = sliding.solve(friction, [2.5, 0.0], times, switches=[0])
    expected = [2.5 - 1.5 + 0.125, 0.0, 0.0, 0.0, 0.0, 0.5]
    np.testing.assert_allclose(path[:, 0], expected, atol=1e-9)
    assert np.all(path[2:4, 0] == 0.0)


def test_leaves_to_either_side():
    """The mirrored push leaves to the negative side."""

    def mirrored(u, sides):
        return friction(np.array([-u[0], u[1]]), -sides) * np.array([-1.0, 1.0])

    times = [2.0, 4.0, 5.0]
    one = sliding.solve(friction, [2.5, 0.0], times, switches=[0])
    other = sliding.solve(mirrored, [-2.5, 0.0], times, switches=[0])
    np.testing.assert_allclose(other[:, 0], -one[:, 0], atol=1e-11)


def test_crosses_with_the_speed_of_each_side():
    """Speed 1 below and 3 above zero; a start at zero moves without a sign."""

    def field(u, sides):
        return (2.0 + sides).astype(float)

    path = sliding.solve(field, [-1.0], [0.5, 1.0, 2.0], switches=[0])
    np.testing.assert_allclose(path[:, 0], [-0.5, 0.0, 3.0], atol=1e-11)
    path = sliding.solve(field, [0.0], [0.0, 2.0], switches=[0])
    np.testing.assert_allclose(path[:, 0], [0.0, 6.0], atol=1e-11)


def test_simultaneous_events():
    """Two coordinates that reach zero together: both slide, or one slides and one crosses."""

    def field(u, sides):
        return np.stack([-sides[:, 0], -2.0 + 0.0 * sides[:, 1]], axis=-1).astype(float)

    path = sliding.solve(field, [1.0, 2.0], [1.5, 2.0], switches=[0, 1])
    np.testing.assert_allclose(path, [[0.0, -1.0], [0.0, -2.0]], atol=1e-9)
    path = sliding.solve(lambda u, sides: -sides.astype(float), [1.0, -1.0], [3.0], switches=[0, 1])
    assert np.all(path == 0.0)


def test_filippov_velocity():
    """While sliding, other coordinates move with the mixture of both fields, not with either.

    Sides +1 and -1 give (-1, 4) and (3, 0): the mixture with zero first component is (0, 3).
    """

    def field(u, sides):
        up = sides[:, 0] > 0
        return np.where(up[:, None], [-1.0, 4.0], [3.0, 0.0])

    path = sliding.solve(field, [0.0, 0.0], [2.0], switches=[0])
    np.testing.assert_allclose(path[0], [0.0, 6.0], atol=1e-11)


def test_repelling_start_needs_a_sign():
    """Both continuations exist; without a sign the message names the coordinate."""

    def field(u, sides):
        return sides.astype(float) + u

    for sign in (1, -1):
        path = sliding.solve(field, [0.0], [1.0], switches=[0], signs=[sign])
        np.testing.assert_allclose(path[0], sign * (math.e - 1.0), rtol=1e-9)
    with pytest.raises(ValueError, match=r"signs must be \+1 or -1 .* coordinate 0"):
        sliding.solve(field, [0.0], [1.0], switches=[0])


def test_explosion_and_bad_arguments_are_reported():
    """Infinite paths, wrong switches and signs."""
    with pytest.raises(FloatingPointError, match="finite until time 5"):
        sliding.solve(lambda u, sides: (u**2)[None], [1.0], [5.0], switches=[])
    for switches in ([0, 0], [1], [-1], [0.5]):
        with pytest.raises(ValueError, match="switches must be"):
            sliding.solve(friction, [1.0], [1.0], switches=switches)
    with pytest.raises(ValueError, match="signs must be"):
        sliding.solve(friction, [1.0, 0.0], [1.0], switches=[0], signs=[2])
    with pytest.raises(ValueError, match="times must be strictly increasing"):
        sliding.solve(friction, [1.0, 0.0], [1.0, 1.0], switches=[0])


def start_at(rng, width, signal):
    """A random start off all zeros."""
    return Statistics(rng.normal(size=width), rng.normal(size=(width, signal)), np.eye(width))


def mixtures(width, ridge=0.05):
    """Binary, XOR and rotated XOR mixtures, and one with two lines at an angle."""
    turned = {"mu": (0.6, 0.8), "nu": (-0.8, 0.6)}
    skew = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.6, 0.8, 0.0]])
    return [
        TwoLayerMixture.binary(width, 20, precision=math.inf, ridge=ridge),
        TwoLayerMixture.xor(width, 20, precision=math.inf, ridge=ridge),
        TwoLayerMixture.xor(width, 20, precision=math.inf, ridge=ridge, **turned),
        TwoLayerMixture(
            skew, np.array([1, 0, 0]), np.array([0.5, 0.2, 0.3]), width, 20, math.inf, ridge
        ),
    ]


@pytest.mark.parametrize("case", range(4))
def test_limit_flow_against_brute_force(case):
    """Euler steps of the drift with its jumps come close; balance decays exactly.

    v_i^2 - |m_i|^2 = exp(-2 ridge t) times its start, whatever is crossed.
    """
    problem = mixtures(3)[case]
    rng = np.random.default_rng(case)
    times = np.array([1.0, 4.0])
    for _ in range(3):
        start = start_at(rng, 3, problem.signal)
        found = sliding.solve_limit(problem, start, times).statistics
        np.testing.assert_allclose(np.stack(found.v), euler(problem, start, 4.0), atol=3e-3)
        balance = np.square(found.v) - np.square(found.m).sum(axis=-1)
        first = np.square(start.v) - np.square(start.m).sum(axis=-1)
        decay = np.exp(-2 * problem.ridge * times)
        np.testing.assert_allclose(balance, decay[:, None] * first, atol=1e-8)
        np.testing.assert_allclose(found.R_perp, decay[:, None, None] * np.eye(3), rtol=1e-14)


def euler(problem, start, end, dt=1e-3):
    """Second layer at times 1 and 4 by explicit Euler on the discontinuous drift."""
    v, m, gram = start
    kept = []
    for step in range(round(end / dt)):
        rate = limit.drift(problem, Statistics(v, m, gram))
        v, m = v + dt * rate.v, m + dt * rate.m
        if (step + 1) * dt in (1.0, 4.0):
            kept.append(v)
    return np.stack(kept)


def test_loss_never_increases():
    """The flow descends the limit loss through all its events, and the sum of squares matches."""
    rng = np.random.default_rng(5)
    times = np.linspace(0.0, 30.0, 301)
    for problem in mixtures(4):
        start = start_at(rng, 4, problem.signal)
        path = sliding.solve_limit(problem, start, times).statistics
        assert np.all(np.diff(limit.loss(problem, path)) < 1e-12)


def test_xor_neurons_slide_on_the_line_of_the_other_label():
    """From v > 0 the overlap with nu comes to zero in finite time and stays exactly there."""
    problem = mixtures(1)[1]
    start = Statistics(np.array([1.0]), np.array([[0.2, 0.3]]), np.eye(1))
    path = sliding.solve_limit(problem, start, np.linspace(0.0, 20.0, 41)).statistics
    overlap = path.m[:, 0, 1]
    stuck = int(np.argmax(overlap == 0.0))
    assert 0 < stuck < 10 and np.all(overlap[stuck:] == 0.0) and np.all(overlap[:stuck] > 0)
    assert path.m[-1, 0, 0] > 0.5


def test_rotation_of_the_mixture_rotates_the_path():
    """The frame of the lines is only a change of coordinates."""
    rng = np.random.default_rng(3)
    straight, turned = mixtures(4)[1:3]
    rotation = np.array([[0.6, 0.8], [-0.8, 0.6]])
    start = start_at(rng, 4, 2)
    one = sliding.solve_limit(straight, start, [3.0, 10.0]).statistics
    other = sliding.solve_limit(turned, start._replace(m=start.m @ rotation), [3.0, 10.0])
    np.testing.assert_allclose(other.statistics.m, one.m @ rotation, atol=1e-9)
    np.testing.assert_allclose(other.statistics.v, one.v, atol=1e-9)


def test_smooth_stretch_agrees_with_a_plain_solver():
    """Without events in sight the general machinery changes nothing."""
    problem = mixtures(2)[0]
    start = Statistics(np.array([0.5, -0.7]), np.array([[0.4], [-0.1]]), np.zeros((2, 2)))

    def rate(_, u):
        found = limit.drift(problem, Statistics(u[:2], u[2:, None], np.zeros((2, 2))))
        return np.concatenate([found.v, found.m[:, 0]])

    plain = solve_ivp(
        rate, (0.0, 5.0), [0.5, -0.7, 0.4, -0.1], method="DOP853", rtol=1e-10, atol=1e-12
    )
    found = sliding.solve_limit(problem, start, [5.0]).statistics
    np.testing.assert_allclose(found.v[0], plain.y[:2, -1], atol=1e-9)


def test_starts_at_zero_of_both_mixtures():
    """Binary: no sign is needed, zero is crossed at once. XOR: zero repels along one line."""
    binary, xor = mixtures(1)[:2]
    start = Statistics(np.array([-0.5]), np.zeros((1, 1)), np.eye(1))
    assert sliding.solve_limit(binary, start, [1.0]).statistics.m[0, 0, 0] < 0
    start = Statistics(np.array([-0.5]), np.zeros((1, 2)), np.eye(1))
    for side in (1, -1):
        path = sliding.solve_limit(xor, start, [5.0], signs=[[0, side]]).statistics
        assert path.m[0, 0, 0] == 0.0 and side * path.m[0, 0, 1] > 0.1
    with pytest.raises(ValueError, match="signs must be"):
        sliding.solve_limit(xor, start, [5.0])


def test_bad_starts_are_refused():
    """Shapes, a Gram matrix that is none, dependent lines."""
    problem = mixtures(2)[0]
    good = Statistics(np.ones(2), np.ones((2, 1)), np.eye(2))
    with pytest.raises(ValueError, match=r"start\.m must have shape"):
        sliding.solve_limit(problem, good._replace(m=np.ones((2, 2))), [1.0])
    with pytest.raises(ValueError, match=r"start\.R_perp must be positive"):
        sliding.solve_limit(problem, good._replace(R_perp=-np.eye(2)), [1.0])
    fan = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    problem = TwoLayerMixture(fan, np.array([1, 0, 1]), np.full(3, 1 / 3), 2, 20, math.inf, 0.1)
    with pytest.raises(ValueError, match="3 lines in dimension 2"):
        sliding.solve_limit(problem, Statistics(np.ones(2), np.ones((2, 2)), np.eye(2)), [1.0])


def test_the_work_between_two_events_is_bounded(monkeypatch):
    """A path at rest went on for ever."""
    monkeypatch.setattr(sliding, "bounded", partial(_evaluations.bounded, most=500))
    with pytest.raises(ValueError, match=r"^times must be within reach of 500 evaluations"):
        sliding.solve(lambda u, sides: -u, [1.0], [1e7], switches=[])
