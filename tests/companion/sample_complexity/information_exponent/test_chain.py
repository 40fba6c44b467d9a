"""The chain of the overlap against SGD in full dimension, in law."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from companion.sample_complexity.information_exponent.assumptions import (
    gradient_errors,
    norm_moment,
    norm_moment_bound,
)
from companion.sample_complexity.information_exponent.links import RELU, TANH, hermite
from companion.sample_complexity.information_exponent.model import Point, SingleIndex, Statistics
from companion.sample_complexity.information_exponent.models import (
    BinaryMixture,
    OnlinePCA,
    TeacherStudent,
)
from companion.sample_complexity.information_exponent.passage import decompose, passages
from traindyn.effective import ode
from traindyn.problems.base import Dynamics
from traindyn.sgd import direct, reduced

LEVEL = 1e-5
N = 6
BEGIN = Point(np.array([0.3, math.sqrt(0.91), 0.0, 0.0, 0.0, 0.0]))
MODELS = [
    OnlinePCA(N, signal=1.5),
    BinaryMixture(N, field=0.4),
    TeacherStudent(N, TANH, label_noise=0.5),
    TeacherStudent(N, hermite(3), RELU),
]


def plain(problem: SingleIndex, steps: int, h: float, replicas: int, seed: int) -> np.ndarray:
    """All replicas at once in NumPy, with the projection (I - x x^T) written out."""
    rng = np.random.default_rng(seed)
    x = np.tile(BEGIN.x, (replicas, 1))
    for _ in range(steps):
        sample = rng.standard_normal((replicas, N))
        y = np.zeros(replicas)
        if isinstance(problem, OnlinePCA):
            sample[:, 0] *= math.sqrt(1 + problem.signal)
        elif isinstance(problem, BinaryMixture):
            sample[:, 0] += np.where(rng.random(replicas) < problem.share, 1.0, -1.0)
        elif isinstance(problem, TeacherStudent):
            noise = problem.label_noise * rng.standard_normal(replicas)
            y = problem.teacher.value(sample[:, 0]) + noise
        t = np.sum(x * sample, axis=1)
        euclidean = problem.slope_at(t, y)[:, None] * sample
        radial = np.sum(euclidean * x, axis=1, keepdims=True)
        x = x - h * (euclidean - radial * x)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x[:, 0])


def chain(problem: SingleIndex, steps: int, h: float, seed: int) -> np.ndarray:
    """End of paths of the overlap alone, the dimension being that of the problem."""
    found = passages(
        problem, [], c_delta=h * problem.dimension, most=steps, replicas=2500, rng=seed,
        start=0.3, stay=True,
    )  # fmt: skip
    return found.last


@pytest.mark.parametrize("problem", MODELS, ids=lambda p: type(p).__name__)
def test_chain_has_the_law_of_sgd(problem: SingleIndex) -> None:
    """Six dimensions, large steps: every draw matters."""
    h = 0.3 if not isinstance(problem, TeacherStudent) else 0.1
    assert isinstance(problem, Dynamics)
    reference = plain(problem, 4, h, 20_000, 1)
    assert stats.ks_2samp(chain(problem, 4, h, 2), reference).pvalue > LEVEL


def test_kernels_of_the_sgd_room() -> None:
    """The same law from the loops that other problems use, in full dimension and reduced."""
    problem, h = MODELS[1], 0.3
    reference = plain(problem, 4, h, 20_000, 1)
    options = dict(step_size=h, replicas=800, rng=3)
    start = problem.statistics(BEGIN)
    full = direct.run_replicas(problem, [4 * h], start=BEGIN, **options)
    slim = reduced.run_replicas(problem, [4 * h], start=start, **options)
    for path in (full, slim):
        assert stats.ks_2samp(path.statistics.m[:, 0], reference).pvalue > LEVEL


@pytest.mark.parametrize("wrong", [3, N + 4])
def test_wrong_degrees_of_freedom_are_seen(wrong: int) -> None:
    """One degree in place of four, nearly a dropped chi-square, and four too many."""
    problem = MODELS[0]
    reference = plain(problem, 4, 0.3, 20_000, 1)
    other = chain(replace(problem, dimension=wrong), 4, 0.3, 2)
    assert stats.ks_2samp(other, reference).pvalue < LEVEL


def test_direct_step_is_the_formula() -> None:
    """The same stream, one step by hand."""
    problem = OnlinePCA(5, signal=1.5)
    x = problem.initial(rng=4).x
    h = 0.2
    path = direct.run(problem, Point(x), [h], step_size=h, rng=9, snapshots=True)
    rng = np.random.default_rng(9)
    sample = rng.standard_normal(5)
    sample[0] *= math.sqrt(2.5)
    t = x @ sample
    new = x + 2 * h * t * (sample - t * x)
    np.testing.assert_allclose(path.snapshots.x[-1], new / np.linalg.norm(new), atol=1e-14)


def test_start_has_the_law_of_a_uniform_point() -> None:
    """Both start functions, and Poincaré's limit (MDL Section 11.3.2)."""
    problem = OnlinePCA(30, signal=1.0)
    rng = np.random.default_rng(5)
    fast = [float(problem.draw_initial_statistics(rng=rng).m) for _ in range(3000)]
    slow = [problem.initial(rng=rng).x[0] for _ in range(3000)]
    assert stats.ks_2samp(fast, slow).pvalue > LEVEL
    assert stats.kstest(np.sqrt(30) * np.array(fast), stats.halfnorm.cdf).pvalue > LEVEL
    assert stats.kstest(np.sqrt(60) * np.array(fast), stats.halfnorm.cdf).pvalue < LEVEL


def test_passages_agree_with_stopped_paths() -> None:
    """Times of the first passage, from the loop of the sgd room."""
    problem, delta = OnlinePCA(400, signal=2.0), 0.3
    h = delta / 400
    found = passages(problem, [0.2, 0.5], c_delta=delta, most=20_000, replicas=300, rng=6)
    path = reduced.run_replicas(
        problem, [20_000 * h], step_size=h, replicas=300, rng=7, stop=lambda u: u.m > 0.5
    )
    assert path.stopped is not None
    times = np.minimum(found.steps[:, 1] * h, 99)
    assert stats.ks_2samp(times, np.minimum(path.stopped, 99)).pvalue > LEVEL
    assert np.all(found.steps[:, 0] <= found.steps[:, 1])
    short = passages(problem, [], c_delta=delta, most=10, replicas=3, rng=6, stay=True)
    assert short.steps.shape == (3, 0)
    assert np.all(short.highest >= np.abs(short.last))


def test_passages_do_not_depend_on_workers() -> None:
    """One stream per replica."""
    one, two = (
        passages(MODELS[0], [0.9], c_delta=1.0, most=50, replicas=8, rng=3, workers=w)
        for w in (1, 2)
    )
    np.testing.assert_array_equal(one.last, two.last)


def test_large_dimension_follows_the_effective_dynamics() -> None:
    """With corrector it fits, without it does not."""
    problem, delta, times = OnlinePCA(10**5, signal=2.0), 0.5, [0.5, 1.0]
    start = Statistics(np.asarray(0.3))
    path = reduced.run_replicas(
        problem, times, step_size=delta / 10**5, replicas=6, rng=8, start=start
    )
    mean, error = path.statistics.m.mean(axis=0), path.statistics.m.std(axis=0, ddof=1)
    right = ode.solve(problem, start, times, c_delta=delta).statistics.m
    bare = ode.solve(problem, start, times, c_delta=0.0).statistics.m
    assert np.all(np.abs(mean - right) < 5 * error)
    assert np.all(np.abs(mean - bare) > 10 * error)


def test_decomposition_adds_up() -> None:
    """Drift and martingale explain the path up to the normalisation, of second order."""
    problem, delta = TeacherStudent(2000, TANH), 0.1
    parts = decompose(problem, 4000, c_delta=delta, replicas=20, rng=9, start=0.1)
    left = parts.overlap - parts.overlap[:, :1] + parts.gradient
    push = 0.5 * delta * np.cumsum(
        problem.moments(parts.overlap[0, :-1]).power * parts.overlap[0, :-1]
    ) * delta / 2000  # fmt: skip
    np.testing.assert_allclose(left[0, 1:], -push, atol=0.05 * push[-1])
    z = parts.martingale[:, -1]
    assert abs(z.mean()) < 5 * z.std(ddof=1) / math.sqrt(20)


def test_errors_of_the_gradient() -> None:
    """Moments of the samples against quadrature, and the bound of MDL Remark 11.6."""
    problem = TeacherStudent(50, TANH, label_noise=0.3)
    found, at = gradient_errors(problem, 0.4, 40_000, rng=1), problem.moments(0.4)
    squares = found.along**2
    assert abs(squares.mean() - at.noise) < 5 * squares.std() / 200
    assert abs(found.along.mean()) < 5 * found.along.std() / 200
    size = float(at.power) * 50
    assert abs(np.mean(found.norm**2) / size - 1) < 0.1
    n = np.array([1, 10, 1000])
    assert np.all(norm_moment(n, 5.0) <= norm_moment_bound(n, 5.0) * (1 + 1e-12))


def test_refusals() -> None:
    """What is out of range is named."""
    with pytest.raises(ValueError, match="dimension"):
        OnlinePCA(2, signal=1.0)
    with pytest.raises(ValueError, match="signal"):
        OnlinePCA(5, signal=-1.0)
    with pytest.raises(ValueError, match="label_noise"):
        TeacherStudent(5, TANH, label_noise=-1.0)
    with pytest.raises(ValueError, match="factor"):
        TANH.scaled(0.0)
    with pytest.raises(ValueError, match="length one"):
        MODELS[0].statistics(Point(np.ones(N)))
    with pytest.raises(ValueError, match="levels"):
        passages(MODELS[0], [1.5], c_delta=1.0, most=5, replicas=1, rng=0)
    with pytest.raises(ValueError, match="m must lie"):
        passages(MODELS[0], [0.5], c_delta=1.0, most=5, replicas=1, rng=0, start=2.0)
    with pytest.raises(ValueError, match="m must lie"):
        gradient_errors(MODELS[0], 1.0, 5, rng=0)
