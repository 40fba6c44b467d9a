"""First order in 1/delta: against the whole equations, difference quotients, simulation."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from companion.phase_transitions.grokking import many_samples
from traindyn.dmft import overlap_law, solve
from traindyn.problems.multi_index import (
    MultiIndex,
    phase_retrieval,
    polynomial,
    pseudo_huber,
    two_layer_teacher,
)

ETA, STEPS = 0.5, 12
GELU = MultiIndex()


@pytest.fixture(scope="module")
def limit():
    """A few steps of the default problem."""
    return many_samples(GELU, STEPS, step_size=ETA)


def test_gap_is_the_limit_of_the_whole_equations(limit):
    """The gap at large delta (MW, Grokking): delta times it has this limit, not a tenth more."""
    errors = []
    for delta in (100.0, 400.0, 1600.0):
        found = solve(
            GELU, STEPS, sample_ratio=delta, step_size=ETA, rng=0, paths=2**15, replicas=2
        ).kernels
        gap = delta * (found.test_loss - found.train_loss)
        errors.append(np.abs(gap - limit.gap).max())
    assert errors[1] < 0.4 * errors[0]
    assert errors[2] < 0.1 * limit.gap.max()
    assert np.abs(1.1 * limit.gap - limit.gap).max() > errors[2]


def test_length_descends_the_loss_without_overlap():
    """q ends at the minimum of the loss of a fresh sample over lengths, where all is flat."""
    found = many_samples(GELU, 160, step_size=ETA)
    least = minimize_scalar(
        lambda q: GELU.population_loss([[q]], [[0.0]]), bounds=(0.3, 2.0), method="bounded"
    )
    assert abs(found.radius[-1] - least.x) < 1e-3
    assert abs(found.radius[0] - least.x) > 0.05
    slope = np.diff(found.gap)[-1]
    assert abs(slope - ETA * found.push[-1]) < 1e-3 * slope


def test_growth_is_the_curvature_of_the_loss_in_the_overlap():
    """-E[g s s^T] against second differences of the loss of a fresh sample."""
    found = many_samples(GELU, 80, step_size=ETA)
    q, h = found.radius[-1], 0.02

    def loss(m):
        # The overlap is added to a neuron of squared norm q.
        return GELU.population_loss([[q + m * m]], [[m]])

    curvature = (loss(h) - 2 * loss(0.0) + loss(-h)) / h**2
    assert abs(found.growth[-1, 0, 0] + curvature) < 2e-3
    assert found.growth[-1, 0, 0] > 0.1
    assert found.rate() == pytest.approx(np.log1p(ETA * found.growth[-1, 0, 0]) / ETA)


def test_growth_is_that_of_the_overlap_law(limit):
    """At delta = 10^5 the amplification of the start is the product of the factors."""
    found = solve(
        GELU, STEPS, sample_ratio=1e5, step_size=ETA, rng=0, paths=2**14, replicas=1, moments=True
    )
    factors = 1 + ETA * limit.growth[:-1, 0, 0]
    assert np.allclose(overlap_law(found).amplification[1:, 0, 0], np.cumprod(factors), rtol=5e-3)


def test_two_directions_and_noise():
    """Rotations that the target allows leave the growth as it is; noise lowers it."""
    found = many_samples(MultiIndex(polynomial({(1, 1): 1.0})), 5, step_size=ETA)
    assert found.growth.shape == (6, 2, 2)
    assert np.allclose(found.growth[:, 0, 0], found.growth[:, 1, 1], atol=1e-10)
    clean, noisy = (
        many_samples(MultiIndex(phase_retrieval(noise=each)), 5, step_size=ETA).growth[0, 0, 0]
        for each in (0.0, 2.0)
    )
    assert noisy < 0.9 * clean


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (MultiIndex(second_layer=(1.0, -1.0)), "one neuron"),
        (MultiIndex(two_layer_teacher((1.0,)), loss=pseudo_huber()), "hard directions only"),
    ],
)
def test_what_it_does_not_cover_is_refused(problem, message):
    """With the reason."""
    with pytest.raises(ValueError, match=message):
        many_samples(problem, 3, step_size=ETA)
