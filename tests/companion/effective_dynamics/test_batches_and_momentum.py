"""Batches and momentum: the same chain by two routes, the map, and where it loses stability."""

import math

import numpy as np
import pytest

from companion.effective_dynamics.batches_and_momentum import (
    HeavyBall,
    averaged,
    edge,
    large_batch_step,
    run_averaged,
)
from traindyn.problems import TwoLayerMixture
from traindyn.problems.spiked import SpikedTensor, Statistics
from traindyn.sgd import direct


def pair(m, r2):
    """Statistics of one point."""
    return Statistics(np.asarray(float(m)), np.asarray(float(r2)))


def test_a_batch_is_the_mean_of_single_steps():
    """Two steps with a batch of two and momentum, by hand from the steps of single samples."""
    network = TwoLayerMixture.binary(2, 12, precision=2.0, ridge=0.1)
    start, step, momentum = network.initial(rng=0), 0.3, 0.6
    heavy = HeavyBall(network, batch=2, momentum=momentum)
    path = direct.run(heavy, heavy.rest(start), [0.6], step_size=step, rng=7, snapshots=True)
    kernel, rng = network.direct_kernel(), np.random.default_rng(7)
    x, velocity = [np.array(part) for part in start], [0.0, 0.0]
    for _ in range(2):
        moves = []
        for _ in range(2):
            after = tuple(part.copy() for part in x)
            kernel.step(after, kernel.constants, rng, step)
            moves.append([new - old for new, old in zip(after, x, strict=True)])
        velocity = [momentum * v + (a + b) / 2 for v, a, b in zip(velocity, *moves, strict=True)]
        x = [part + v for part, v in zip(x, velocity, strict=True)]
    flat = np.concatenate([part.ravel() for part in x])
    np.testing.assert_allclose(path.snapshots.x[-1], flat, rtol=1e-12)
    seen, expected = (
        heavy.statistics(heavy.rest(type(start)(*x))),
        network.statistics(type(start)(*x)),
    )
    for one, other in zip(seen, expected, strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(path.statistics.R_perp[-1], expected.R_perp, rtol=1e-12)


def test_without_batch_and_momentum_nothing_changes():
    """The path of the problem itself, with the same random numbers."""
    problem = SpikedTensor(3, 9, signal=2.0)
    heavy = HeavyBall(problem)
    begin, grid = problem.initial(rng=1), [0.1, 0.5]
    moving = direct.run(heavy, heavy.rest(begin), grid, step_size=0.01, rng=2).statistics
    plain = direct.run(problem, begin, grid, step_size=0.01, rng=2).statistics
    np.testing.assert_allclose(moving, plain, rtol=1e-10)
    assert heavy.dimension == 9
    np.testing.assert_array_equal(heavy.initial(rng=1).x, begin.x)


def test_moments_of_an_averaged_step():
    """Mean and covariance of a step are those of the gradient with its covariance over b."""
    order, n, batch, step = 3, 40, 5, 0.02
    problem, here = SpikedTensor(order, n, signal=1.7, ridge=0.4), pair(0.5, 0.8)
    single, length, factor = averaged(problem, batch)
    moments = single.step_moments(
        Statistics(here.m * length, here.r2 * length**2), step_size=step * factor
    )
    point = problem.place(here)
    slope, noise = problem.population_gradient(point).x, problem.noise_covariance(point) / batch
    after = point.x - step * slope
    np.testing.assert_allclose(moments.mean.m / length, after[0], rtol=1e-12)
    r2 = after[1:] @ after[1:] + step**2 * np.trace(noise[1:, 1:])
    np.testing.assert_allclose(moments.mean.r2 / length**2, r2, rtol=1e-12)
    np.testing.assert_allclose(
        moments.covariance[0, 0] / length**2, step**2 * noise[0, 0], rtol=1e-12
    )


def test_times_of_a_run_are_those_asked_for():
    """The other units of the single tensors do not show."""
    path = run_averaged(
        SpikedTensor(3, 50, signal=2.0),
        [0.0, 0.3],
        step_size=0.01,
        batch=7,
        replicas=3,
        rng=0,
        start=pair(0.4, 1.1),
    )
    np.testing.assert_allclose(path.times, [0.0, 0.3])
    np.testing.assert_allclose(path.statistics.m[:, 0], 0.4)
    np.testing.assert_allclose(path.statistics.r2[:, 0], 1.1)
    assert path.step_size == 0.01 and path.replicas == 3


def test_the_map_is_the_mean_of_a_step():
    """Of the exact step in large dimension, with ridge; without noise it is gradient descent."""
    n, batch, step = 10**9, 2 * 10**8, 0.07
    for order in (2, 3):
        problem, here = SpikedTensor(order, n, signal=1.3, ridge=0.2), pair(0.6, 0.5)
        single, length, factor = averaged(problem, batch)
        mean = single.step_moments(
            Statistics(here.m * length, here.r2 * length**2), step_size=step * factor
        ).mean
        found = large_batch_step(problem, here, step_size=step, ratio=n / batch)
        np.testing.assert_allclose(found, [mean.m / length, mean.r2 / length**2], rtol=1e-6)
        small = SpikedTensor(order, 5, signal=1.3, ridge=0.2)
        point = small.place(here)
        moved = point.x - step * small.population_gradient(point).x
        found = large_batch_step(small, here, step_size=step, ratio=0.0)
        np.testing.assert_allclose(found, small.statistics(type(point)(moved)), rtol=1e-12)


def _multipliers(problem, step, ratio):
    """Of the map at its fixed point, by central differences."""
    radial = step * ratio / (1 - 2 * step * problem.signal)
    rest, width = np.array([math.sqrt(problem.signal - radial), radial]), 1e-6

    def moved(u):
        return np.array(large_batch_step(problem, pair(*u), step_size=step, ratio=ratio))

    np.testing.assert_allclose(moved(rest), rest, rtol=1e-12)
    columns = [(moved(rest + e) - moved(rest - e)) / (2 * width) for e in width * np.eye(2)]
    return np.linalg.eigvals(np.array(columns).T)


@pytest.mark.parametrize(
    ("share", "beyond"),
    [(50.0, "lost"), (2.0, "lost"), (1.9, "turning"), (0.3, "turning"), (0.12, "turning"),
     (0.11, "alternating"), (0.03, "alternating"), (0.0, "alternating")],
)  # fmt: skip
def test_the_edge_is_where_a_multiplier_leaves_the_circle(share, beyond):
    """At no smaller step size, and in the way that is said."""
    problem = SpikedTensor(2, 9, signal=1.6)
    ratio = share * 1.6**2
    found = edge(problem, ratio=ratio)
    assert found.beyond == beyond
    for part in (0.05, 0.3, 0.6, 0.9, 0.97, 0.999):
        assert np.abs(_multipliers(problem, part * found.step_size, ratio)).max() < 1
    near = _multipliers(problem, (1 - 1e-7) * found.step_size, ratio)
    leaving = near[np.argmax(np.abs(near))]
    np.testing.assert_allclose(np.abs(leaving), 1.0, atol=1e-4)
    if beyond == "alternating":
        np.testing.assert_allclose(leaving, -1.0, atol=1e-4)
    elif share > 2:
        np.testing.assert_allclose(leaving, 1.0, atol=1e-4)


def test_bad_input_is_refused():
    """Each message names what was given."""
    problem = SpikedTensor(2, 9, signal=1.0)
    with pytest.raises(ValueError, match=r"momentum must be less than 1, got 1"):
        HeavyBall(problem, momentum=1.0)
    with pytest.raises(ValueError, match="batch"):
        HeavyBall(problem, batch=0)
    with pytest.raises(ValueError, match="ridge must be 0"):
        edge(SpikedTensor(2, 9, signal=1.0, ridge=0.1), ratio=1.0)
    with pytest.raises(ValueError, match="order"):
        edge(SpikedTensor(3, 9, signal=1.0), ratio=1.0)
