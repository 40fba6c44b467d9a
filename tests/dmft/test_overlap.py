"""The law of hard overlaps at order 1/sqrt(d)."""

import numpy as np
import pytest

from traindyn.dmft import overlap_law, solve
from traindyn.gaussian import symmetric_sqrt
from traindyn.problems.multi_index import MultiIndex, polynomial, two_layer_teacher
from traindyn.sgd import full_batch


@pytest.fixture(scope="module")
def single():
    """A GELU neuron on phase retrieval at delta = 8."""
    return solve(MultiIndex(), 20, sample_ratio=8.0, step_size=0.5, rng=0, moments=True)


def test_reference_values(single):
    """d E[overlap^2] at t = 2, 5, 10, 20: independent values, to 6 %."""
    law = overlap_law(single)
    np.testing.assert_allclose(
        law.second_moment[[2, 5, 10, 20]], [1.52, 3.14, 9.50, 40.6], rtol=0.06
    )
    np.testing.assert_allclose(law.second_moment[0], 1.0)
    # Part of the variance is the amplified start, part the noise of the data.
    amplified = law.amplification[:, 0, 0] ** 2
    assert np.all(amplified[1:] < law.second_moment[1:])


@pytest.mark.parametrize("width", [1, 2])
def test_against_gradient_descent(width):
    """Mean squared overlap of z_1 z_2, of order 1/d (MW, Hard directions): 200 runs at d = 150.

    The ratio to the prediction is a scaled chi-square: within 6 / sqrt(200) of one, and an
    allowance of 0.15 for 1/d. The control: without the noise of the data, amplification alone.
    """
    d, delta, steps, replicas = 150, 3.0, 4, 200
    problem = MultiIndex(polynomial({(1, 1): 1.0}), second_layer=[2.0] * width)
    kept = np.array([1, steps])
    times = 0.5 * width * kept
    options = {"step_size": 0.5 * width, "rng": 3}
    runs = full_batch.run_replicas(
        problem, times, dimension=d, samples=int(d * delta), replicas=replicas, **options
    )
    law = overlap_law(solve(problem, steps, sample_ratio=delta, moments=True, **options))
    simulated = d * (runs.statistics.overlap**2).sum(axis=(2, 3)).mean(axis=0)
    ratio = simulated / law.second_moment[kept]
    assert np.abs(ratio - 1).max() < 6 / np.sqrt(replicas * width) + 0.15
    amplified = (law.amplification**2).sum(axis=(1, 2))
    wrong = simulated / amplified[kept]
    assert np.abs(wrong - 1).max() > 6 / np.sqrt(replicas * width) + 0.15


def test_two_times_against_a_direct_simulation(single):
    """Paths by the recursion itself, driven by drawn noise: covariances to 6 standard errors.

    The control: independent times.
    """
    law, eta, count = overlap_law(single), 0.5, 20_000
    response = single.moments.force_response[:, :, 0, 0, 0, 0]
    noise = single.moments.force_correlation[:, :, 0, 0, 0, 0] / single.sample_ratio
    generator = np.random.default_rng(5)
    q = generator.standard_normal((count, len(noise))) @ symmetric_sqrt(noise)
    x = np.zeros((count, len(noise)))
    x[:, 0] = generator.standard_normal(count)
    for t in range(single.steps):
        past = x[:, : t + 1] @ response[t, : t + 1]
        x[:, t + 1] = x[:, t] + eta * (q[:, t] - past)
    joint = law.joint[:, :, 0, 0]

    def far(expected):
        return np.abs(x.T @ x / count - expected).max()

    error = 6 * np.sqrt(2 / count) * joint.max()
    assert far(joint) < error < far(np.diag(np.diag(joint)))
    drawn = law.sample(count, rng=6)
    assert drawn.shape == (count, single.steps + 1, 1)
    assert np.abs(drawn[:, :, 0].T @ drawn[:, :, 0] / count - joint).max() < error


def test_requests_that_make_no_sense_are_refused(single):
    """No moments, easy directions."""
    plain = solve(MultiIndex(), 1, sample_ratio=4.0, step_size=0.5, rng=0, paths=512)
    with pytest.raises(ValueError, match="moments=True"):
        overlap_law(plain)
    easy = MultiIndex(two_layer_teacher((1.0, 1.0)))
    solved = solve(easy, 1, sample_ratio=4.0, step_size=0.5, rng=0, paths=512, moments=True)
    with pytest.raises(ValueError, match="hard directions only, got gelu teacher with 1 easy"):
        overlap_law(solved)
