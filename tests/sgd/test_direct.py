"""SGD in full dimension."""

import numpy as np
import pytest

from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.k_gmm.printed import literal_ridge
from traindyn.sgd import direct

GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
TIMES = np.array([0.0, 0.5, 2.0])


@pytest.fixture
def problem():
    """Non-orthonormal means on scattered coordinates, unequal weights."""
    weights = np.array([0.2, 0.3, 0.5])
    return KGaussianMixture(GRAM, weights, 1.5, 0.1, 40, support=np.array([33, 2, 17]))


def plain_loop(problem, x, steps, step_size, seed):
    """Textbook NumPy SGD on the stream that the problem says the kernel sees."""
    sample = problem.stream(steps, rng=seed)
    for y, label in zip(sample.inputs, sample.labels, strict=True):
        logits = x @ y
        pi = np.exp(logits - logits.max())
        pi /= pi.sum()
        pi[label] -= 1
        x = x - step_size * np.outer(pi, y) - step_size * problem.ridge * x
    return x


def test_kernel_follows_a_plain_numpy_loop(problem):
    """The training data give the path of the kernel; the printed ridge (no step size) another."""
    start = problem.initial(rng=0)
    path = direct.run(problem, start, TIMES, step_size=0.025, rng=7, snapshots=True)
    expected = plain_loop(problem, start.x, 80, 0.025, 7)
    np.testing.assert_allclose(path.snapshots.x[-1], expected, atol=1e-12)
    literal = plain_loop(literal_ridge(problem, 0.025), start.x, 80, 0.025, 7)
    assert np.abs(path.snapshots.x[-1] - literal).max() > 0.1


def test_snapshots_belong_to_their_times(problem):
    """Each snapshot is a copy taken at its own time, and the start is left alone."""
    start = problem.initial(rng=0)
    before = start.x.copy()
    path = direct.run(problem, start, TIMES, step_size=0.025, rng=7, snapshots=True)
    np.testing.assert_array_equal(start.x, before)
    np.testing.assert_array_equal(path.snapshots.x[0], before)
    np.testing.assert_allclose(
        path.snapshots.x[1], plain_loop(problem, before, 20, 0.025, 7), atol=1e-12
    )
    for i in range(3):
        found = problem.statistics(Point(path.snapshots.x[i]))
        np.testing.assert_array_equal(path.statistics.m[i], found.m)
        np.testing.assert_array_equal(path.statistics.R_perp[i], found.R_perp)


def test_times_are_whole_steps(problem):
    """The reported times are those reached, not those asked for."""
    path = direct.run(problem, problem.initial(rng=0), [0.1, 1.0], step_size=0.03, rng=0)
    np.testing.assert_allclose(path.times, [0.09, 0.99])
    assert path.steps.tolist() == [3, 33]
    assert path.step_size == 0.03


def test_asking_more_times_does_not_change_the_path(problem):
    """Pauses must not touch the random stream."""
    start = problem.initial(rng=0)
    few = direct.run(problem, start, [2.0], step_size=0.025, rng=7)
    many = direct.run(problem, start, np.linspace(0.05, 2.0, 40), step_size=0.025, rng=7)
    np.testing.assert_array_equal(few.statistics.m[-1], many.statistics.m[-1])


def test_replicas_do_not_depend_on_the_workers(problem):
    """One and two workers: the same numbers, different between replicas."""
    options = {"step_size": 0.025, "replicas": 6, "rng": 11}
    one = direct.run_replicas(problem, TIMES, workers=1, **options)
    two = direct.run_replicas(problem, TIMES, workers=2, **options)
    for a, b in zip(one.statistics, two.statistics, strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.statistics.m.shape == (6, 3, 3, 3)
    assert np.unique(one.statistics.m[:, -1, 0, 0]).size == 6


def test_replicas_from_a_given_start(problem):
    """A start is shared by all replicas; a drawing function is called once for each."""
    start = problem.initial(rng=5)
    options = {"step_size": 0.025, "replicas": 3, "rng": 11, "snapshots": True}
    fixed = direct.run_replicas(problem, TIMES, start=start, **options)
    assert fixed.snapshots.x.shape == (3, 3, 3, 40)
    assert np.all(fixed.snapshots.x[:, 0] == start.x)
    drawn = direct.run_replicas(
        problem, TIMES, start=lambda rng: Point(rng.random((3, 40))), **options
    )
    assert drawn.snapshots.x[:, 0].min() >= 0
    assert np.ptp(drawn.snapshots.x[:, 0, 0, 0]) > 0


def test_divergence_names_the_step_size_and_the_time(problem):
    """Beyond 2 / ridge the ridge alone doubles the iterates, until they overflow."""
    with pytest.raises(FloatingPointError, match=r"step_size = 60 .* t = .*2 / ridge = 20"):
        direct.run(problem, problem.initial(rng=0), [60.0 * 2000], step_size=60.0, rng=0)


def test_statistics_that_overflow_count_as_divergence(problem):
    """Squares overflow before the iterates do."""
    with pytest.raises(FloatingPointError, match="step_size = 60"):
        direct.run(problem, problem.initial(rng=0), [60.0 * 400], step_size=60.0, rng=0)


def test_bad_arguments_are_named(problem):
    """Refused before any step is taken."""
    start = problem.initial(rng=0)
    with pytest.raises(ValueError, match="step_size must be positive"):
        direct.run(problem, start, TIMES, step_size=0.0, rng=0)
    with pytest.raises(ValueError, match="times must be strictly increasing"):
        direct.run(problem, start, [1.0, 0.5], step_size=0.1, rng=0)
    with pytest.raises(ValueError, match=r"point.x must have shape \(3, 40\)"):
        direct.run(problem, Point(start.x[:, 1:]), TIMES, step_size=0.1, rng=0)


def test_progress_reaches_the_end(problem):
    """The last report says that all steps are done."""
    seen = []
    direct.run(
        problem,
        problem.initial(rng=0),
        TIMES,
        step_size=0.025,
        rng=0,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (80, 80)


@pytest.mark.parametrize("kind", [">f8", "<f8", "f4"])
def test_any_number_is_a_step_size(problem, kind):
    """Compiled code read a number in another byte order as another one, and diverged or did not."""
    start = problem.initial(rng=0)
    plain = direct.run(problem, start, [0, 1], step_size=0.25, rng=1)
    found = direct.run(problem, start, [0, 1], step_size=np.array(0.25, kind), rng=1)
    assert np.array_equal(found.statistics.m, plain.statistics.m)
