"""Laws of one coordinate: moments of draws and of quadratures."""

import numpy as np
import pytest
from numba import njit

from traindyn.problems.clouds.laws import Law, draw

LAWS = [
    Law("normal"),
    Law("signs"),
    Law("sparse", 0.2),
    Law("bernoulli", 0.3),
    Law("student", 12),
]


@njit
def _many(kind, parameter, rng, count):
    found = np.empty(count)
    for i in range(count):
        found[i] = draw(kind, parameter, rng)
    return found


@pytest.mark.parametrize("law", LAWS)
def test_moments_of_draws_and_nodes(law):
    """Mean zero, variance one, and the fourth moment of the excess."""
    seen = _many(*law.code, np.random.default_rng(3), 400_000)
    points, weights = law.nodes()
    for power, expected in ((1, 0.0), (2, 1.0), (4, 3.0 + law.excess)):
        error = np.std(seen**power) / np.sqrt(seen.size)
        assert abs(np.mean(seen**power) - expected) <= 5 * error + 1e-12
        np.testing.assert_allclose(weights @ points**power, expected, atol=2e-3)


def test_nodes_have_the_values_of_the_draws():
    """A law of finitely many values is integrated exactly, also where it is skewed."""
    for law in (Law("signs"), Law("sparse", 0.2), Law("bernoulli", 0.3)):
        seen = np.unique(_many(*law.code, np.random.default_rng(0), 1000))
        np.testing.assert_allclose(np.sort(law.nodes()[0]), seen)
    points, weights = Law("bernoulli", 0.3).nodes()
    np.testing.assert_allclose(weights @ points**3, 0.4 / np.sqrt(0.21))


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [("cauchy", 0.0), ("sparse", 0.0), ("bernoulli", 1.0), ("student", 4.0), ("normal", np.nan)],
)
def test_refuses_other_laws(kind, parameter):
    """The kind, or the parameter, is named."""
    with pytest.raises(ValueError, match=r"kind|parameter"):
        Law(kind, parameter)


@pytest.mark.parametrize("law", LAWS)
def test_mean_sign_of_a_shifted_coordinate(law):
    """That of draws."""
    draws = _many(*law.code, np.random.default_rng(0), 200_000)
    shifts = np.array([-0.7, 0.0, 0.4])
    expected = np.sign(draws[:, None] + shifts).mean(axis=0)
    np.testing.assert_allclose(law.sign_mean(shifts), expected, atol=5 / np.sqrt(200_000))
