"""The initial threshold for small norms of the start."""

import pytest

from companion.phase_transitions.generality.start import small_start
from traindyn.activations import QUADRATIC
from traindyn.dmft import initial_threshold
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index import MultiIndex, phase_retrieval, polynomial

RULE = gauss_hermite(2, 201)


@pytest.mark.parametrize(
    "problem",
    [MultiIndex(), MultiIndex(second_layer=[3.0]), MultiIndex(activation=QUADRATIC),
     MultiIndex(phase_retrieval(modulus=True))],
)  # fmt: skip
def test_against_thresholds(problem):
    """Value and slope, by quadrature at two small norms."""
    base = initial_threshold(problem, radius=1e-6, rule=RULE)
    first, second = (
        (initial_threshold(problem, radius=r, rule=RULE) - base) / r**2 for r in (0.01, 0.02)
    )
    found = small_start(problem)
    assert found.value == pytest.approx(base, rel=1e-7)
    assert found.slope == pytest.approx((4 * first - second) / 3, rel=2e-3)


def test_terms_of_the_square():
    """They vanish for an even activation and not for GeLU."""
    assert small_start(MultiIndex(activation=QUADRATIC)).without_squares == pytest.approx(
        small_start(MultiIndex(activation=QUADRATIC)).slope
    )
    assert small_start(MultiIndex()).without_squares < 0 < small_start(MultiIndex()).slope


@pytest.mark.parametrize(
    "problem",
    [MultiIndex(second_layer=(1.0, 1.0)), MultiIndex(polynomial({(1, 1): 1.0})),
     MultiIndex(phase_retrieval(noise=0.1))],
)  # fmt: skip
def test_refusals(problem):
    """One neuron, one direction, no noise."""
    with pytest.raises(ValueError, match="problem must have one neuron"):
        small_start(problem)
