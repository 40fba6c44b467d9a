"""The threshold at initialisation against reference values, and the algorithmic bound."""

import numpy as np
import pytest

from traindyn.activations import QUADRATIC
from traindyn.dmft import initial_threshold, solve
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index import (
    SQUARED,
    MultiIndex,
    delta_alg,
    half_spaces,
    log_cosh,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (MultiIndex(), 1.693),
        (MultiIndex(second_layer=[4.0]), 2.788),
        (MultiIndex(activation=QUADRATIC), 0.923),
        (MultiIndex(loss=log_cosh()), 1.828),
        # The left edge is empty for the other sign of the second layer.
        (MultiIndex(second_layer=[-1.0]), np.inf),
    ],
)
def test_thresholds_at_initialisation(problem, expected):
    """Reference values to 0.1 %, never below the algorithmic threshold.

    MW, Main result; MW, Properties of the threshold.
    """
    found = initial_threshold(problem)
    assert found == pytest.approx(expected, rel=1e-3)
    assert found > delta_alg(problem.target).threshold


def test_initial_threshold_takes_noise_and_rules():
    """Noise raises it; a coarser rule changes little."""
    plain, noisy = (initial_threshold(MultiIndex(phase_retrieval(noise=x))) for x in (0.0, 1.0))
    assert noisy > 1.05 * plain
    coarse = initial_threshold(MultiIndex(), rule=gauss_hermite(2, 61))
    assert coarse == pytest.approx(plain, rel=0.02)
    with pytest.raises(ValueError, match="rule must have dimension 2, got 1"):
        initial_threshold(MultiIndex(), rule=gauss_hermite(1, 5))


def test_two_hard_directions_respect_the_bound():
    """z_1 z_2: the criterion is a 2 x 2 matrix, and stays below the algorithmic optimum."""
    problem = MultiIndex(polynomial({(1, 1): 1.0}), second_layer=[2.0])
    found = solve(problem, 2, sample_ratio=6.0, step_size=0.5, rng=0, paths=2**13)
    side = found.hard_subspace(2)
    assert side.rank == 2
    optimum = np.sqrt(6.0 / delta_alg(problem.target).threshold)
    assert side.statistic < optimum


def test_requests_that_make_no_sense_are_refused():
    """Unbounded weights with the reason; a basis that is none."""
    for call, message in (
        (lambda: initial_threshold(MultiIndex(loss=SQUARED)), "no left edge.*traindyn.dmft.stable"),
        (
            lambda: initial_threshold(MultiIndex(two_layer_teacher()), hard=[[1.0], [1.0]]),
            "hard must have orthonormal columns",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert initial_threshold(MultiIndex(half_spaces(2))) > 0
