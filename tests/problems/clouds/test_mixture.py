"""Classifiers of clouds: their equations against means over drawn inputs, and each other."""

import numpy as np
import pytest
from steps import moved

from traindyn.effective import find
from traindyn.problems.clouds.laws import Law
from traindyn.problems.clouds.mixture import Mixture, Statistics

HERE = Statistics(np.array(0.8), np.array(0.6))


def axis(n):
    """Mean on the first coordinate."""
    return np.eye(n)[0]


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("law", [Law("signs"), Law("sparse", 0.2), Law("bernoulli", 0.2)])
def test_drift_and_noise_of_one_step(law, loss):
    """Mean and covariance of a step on drawn inputs are drift and volatility."""
    n, c = 400, 1.5
    problem = Mixture(axis(n), law=law, precision=1.5, loss=loss)
    point = problem.place(HERE, rng=0)
    step = c / n
    moves = (moved(problem, point, step, 40_000, 1) - np.array(HERE)) / step
    error = moves.std(axis=0) / np.sqrt(len(moves))
    drift = np.array(problem.drift(HERE, c_delta=c))
    assert np.all(np.abs(moves.mean(axis=0) - drift) <= 5 * error + 20 / n)
    found = np.cov(moves.T)
    expected = problem.volatility(HERE, c_delta=c, finite=True)
    np.testing.assert_allclose(found, expected, rtol=0.08, atol=0.06)
    # Signs have one squared length.
    more = expected[1, 1] - problem.volatility(HERE, c_delta=c)[1, 1]
    assert more == 0.0 if law.kind == "signs" else more > 0.0


def test_square_loss_forgets_the_law_in_its_drift():
    """The equation is the same for all laws and means, the noise is not."""
    plain = Mixture(axis(9), loss="square")
    for law in (Law("signs"), Law("sparse", 0.1)):
        other = Mixture(axis(9), law=law, loss="square")
        np.testing.assert_allclose(
            other.drift(HERE, c_delta=1.0), plain.drift(HERE, c_delta=1.0), rtol=1e-12
        )
        gap = other.volatility(HERE, c_delta=1.0) - plain.volatility(HERE, c_delta=1.0)
        # The overlap moves by f (1 + noise), whose square has m^2 times the fourth moment.
        np.testing.assert_allclose(gap[0, 0], 0.64 * law.excess, rtol=1e-10)
    half = Mixture(np.repeat([0.5, 0.0], [4, 4]), law=Law("signs"), loss="square")
    np.testing.assert_allclose(half.excess, -0.5)


def test_fixed_point_of_the_square_loss():
    """In closed form at every precision."""
    for precision, c in ((1.0, 1.0), (2.0, 3.0)):
        tau = 1 / precision
        rest = find(Mixture(axis(5), precision=precision, loss="square"), HERE, c_delta=c)
        np.testing.assert_allclose(rest.statistics.m, 1 / (1 + tau))
        np.testing.assert_allclose(rest.statistics.r2, c * tau / (1 + tau) / (2 - c * tau))


def test_logistic_loss_depends_on_the_law_on_one_coordinate_only():
    """A mean that is spread has the drift of normal noise; one in between is refused."""
    spread, signs = np.full(100, 0.1), Law("signs")
    normal = Mixture(axis(9)).drift(HERE, c_delta=1.0)
    np.testing.assert_allclose(Mixture(spread, law=signs).drift(HERE, c_delta=1.0), normal)
    assert abs(Mixture(axis(9), law=signs).drift(HERE, c_delta=1.0).m - normal.m) > 0.003
    with pytest.raises(ValueError, match="mean must be on one coordinate"):
        Mixture(np.array([0.6, 0.8]), law=signs).drift(HERE, c_delta=1.0)


def test_placed_points_have_their_statistics():
    """And random starts have length one."""
    problem = Mixture(np.full(64, 0.125))
    np.testing.assert_allclose(problem.statistics(problem.place(HERE, rng=2)), HERE)
    length = np.sum(problem.initial(rng=0).w ** 2)
    assert 0.4 < length < 1.8


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"mean": np.ones(4)}, "mean must be a unit vector"),
        ({"mean": [1.0]}, "at least 2"),
        ({"mean": axis(4), "precision": 0.0}, "precision"),
        ({"mean": axis(4), "loss": "hinge"}, "loss"),
    ],
)
def test_refuses_bad_clouds(fields, match):
    """The field is named."""
    with pytest.raises(ValueError, match=match):
        Mixture(**fields)
