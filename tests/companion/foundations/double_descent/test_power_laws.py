"""Power laws: sums over modes, closed forms and simulation against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import zeta

from companion.foundations.double_descent.power_laws import PowerLaw, draw_risks
from companion.foundations.double_descent.risk import LinearModel

N = np.geomspace(1e2, 1e6, 5)


def model(law: PowerLaw, noise: float = 0.0) -> LinearModel:
    """The same regression with finitely many modes, without use of the power law."""
    places = np.arange(1.0, (law.modes or 0) + 1)
    return LinearModel(places ** ((law.decay - law.source) / 2), noise, places**-law.decay)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_limits_of_finitely_many_modes_are_those_of_the_covariance(ridge: float) -> None:
    """Two implementations of the deterministic equivalent."""
    law = PowerLaw(1.5, 2.0, modes=400)
    found, wanted = law.limit_risk(50, ridge, noise=0.3), model(law, 0.3).limit_risk(50, ridge)
    assert found.bias == pytest.approx(wanted.bias, rel=1e-9)
    assert found.variance == pytest.approx(wanted.variance, rel=1e-9)


def test_infinitely_many_modes_are_the_limit_of_many() -> None:
    """The remainder of a sum with the exponent three falls like the square of their number."""
    few, more, all_ = (
        PowerLaw(3.0, 3.5, modes).limit_risk(20.5).bias for modes in (2000, 8000, None)
    )
    assert abs(more / all_ - 1) < 1e-5
    assert abs(few / all_ - 1) > 8 * abs(more / all_ - 1)


@pytest.mark.parametrize("a", [1.2, 1.5, 2.0, 3.0])
def test_the_variance_without_ridge_tends_to_the_decay_less_one(a: float) -> None:
    """With its next order; the constant alone is wrong by a per cent at a hundred samples."""
    for n in N:
        found = PowerLaw(a, 2.0).limit_risk(n, noise=1.0).variance
        assert found == pytest.approx(a - 1 - a / (2 * n + 1), abs=3 * n ** (-a - 1) + 1e-6)
    assert abs(PowerLaw(a, 2.0).limit_risk(100, noise=1.0).variance - (a - 1)) > 0.004


@pytest.mark.parametrize(("a", "b"), [(1.5, 2.0), (1.5, 5.0), (2.0, 3.3), (2.0, 6.5), (1.3, 1.2)])
def test_both_terms_together_are_the_risk(a: float, b: float) -> None:
    """On both sides of the saturation, for regression and for projections."""
    law = PowerLaw(a, b)
    kappa = np.array([law.effective_ridge(n) for n in N])
    bias = np.array([law.limit_risk(n).bias for n in N])
    rest = np.array([law.projection_risk(n) for n in N])
    for found, series in ((bias, law.ridgeless_series(N)), (rest, law.projection_series(N))):
        assert np.all(np.abs(found / series.sum(axis=0) - 1) < 3 * kappa + 1e-6)
        assert np.all(np.abs(found / series - 1).min(axis=0) > 1e-12)


@pytest.mark.parametrize(("b", "exponent"), [(2.0, 1 / 2), (3.0, 2 / 3), (6.5, 3 / 4)])
def test_the_best_ridge_has_its_exponent(b: float, exponent: float) -> None:
    """With noise, saturated for the last."""
    law, n = PowerLaw(1.5, b), np.geomspace(1e5, 1e8, 4)
    assert law.exponents.best_ridge == pytest.approx(exponent)
    ridges = [law.best_ridge(k, noise=0.5) for k in n]
    risk = np.array([law.limit_risk(k, z, noise=0.5).total for k, z in zip(n, ridges, strict=True)])
    for factor in (0.9, 1.1):
        assert law.limit_risk(n[0], factor * ridges[0], noise=0.5).total > risk[0]
    lead, rest = law.best_ridge_series(n, noise=0.5)
    assert np.log(lead[-1] / lead[0]) == pytest.approx(-exponent * np.log(1e3), rel=1e-9)
    assert np.all(np.abs(risk / (lead + rest) - 1) < 0.3 * np.abs(risk / lead - 1))


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.5), (2.0, 6.0), (1.5, 2.0), (3.0, 3.5)])
def test_sgd_follows_its_renewal_equation(a: float, b: float) -> None:
    """The series of the Laplace transform against the recursion, late."""
    law, t = PowerLaw(a, b), np.array([1e4, 1e5])
    series = law.sgd_series(0.25, t)
    errors = np.abs(law.sgd_risk(0.25, t) / series.sum(axis=0) - 1)
    assert np.all(errors < 30 / t)
    assert np.argmax(series[:2, -1]) == (0 if (b - 1) / a < 2 - 1 / a else 1)


def test_recursion_of_sgd_is_that_of_second_moments() -> None:
    """Against the fourth moments of a Gaussian vector, summed by hand."""
    law, eta, s2 = PowerLaw(1.5, 2.0, modes=3), 0.3, 0.2
    values = np.arange(1.0, 4) ** -1.5
    second = np.diag(np.arange(1.0, 4) ** -0.5)  # of w - beta; its diagonal is what counts
    sigma = np.diag(values)
    for _ in range(4):
        fourth = 2 * sigma @ second @ sigma + sigma * np.trace(sigma @ second)
        second = second - eta * (sigma @ second + second @ sigma) + eta**2 * (fourth + s2 * sigma)
    found = law.sgd_risk(eta, [0, 4], noise=s2)
    np.testing.assert_allclose(found, [np.sum(np.arange(1.0, 4) ** -2), np.trace(sigma @ second)])


def test_draws_are_the_risks_of_regression() -> None:
    """The linear algebra against the estimator's, on the same inputs; projections by a residual."""
    law = PowerLaw(1.5, 2.0, modes=60)
    inputs = np.random.default_rng(3).standard_normal((12, 60)) * np.arange(1.0, 61) ** -0.75
    for ridge in (0.0, 0.05):
        draw = draw_risks(1.5, [2.0], 12, 60, ridge=ridge, rng=3)
        wanted = model(law, 1.0).conditional_risk(inputs, ridge)
        assert draw.bias[0] == pytest.approx(wanted.bias, rel=1e-9)
        assert draw.variance == pytest.approx(wanted.variance, rel=1e-9)
    share = 1 / np.arange(1.0, 61)
    residual = np.linalg.lstsq(inputs.T, share, rcond=None)[1][0]
    assert draw_risks(1.5, [2.0], 12, 60, rng=3).residual[0] == pytest.approx(residual, rel=1e-9)


def test_bad_exponents_and_steps_are_refused() -> None:
    """The message names what is wrong."""
    for arguments, name in (
        ((1.0, 2.0), "decay"),
        ((2.0, 1.0), "source"),
        ((2.0, 2.0, 0), "modes"),
    ):
        with pytest.raises(ValueError, match=name):
            PowerLaw(*arguments)  # type: ignore[arg-type]
    law = PowerLaw(2.0, 5.0)
    with pytest.raises(ValueError, match="logarithm"):
        law.ridgeless_series([100.0])
    with pytest.raises(ValueError, match="step_size must leave"):
        law.sgd_risk(0.9, [1.0])
    with pytest.raises(ValueError, match="times"):
        law.sgd_risk(0.1, [0.5])
    with pytest.raises(ValueError, match="below modes"):
        PowerLaw(2.0, 2.0, modes=10).limit_risk(10)
    with pytest.raises(ValueError, match="n must be"):
        draw_risks(2.0, [2.0], 10, 10, rng=1)


def test_saturation_has_the_constant_of_the_first_modes() -> None:
    """Where the target is smooth, the risk is that of the ridge on the first modes alone."""
    law, n = PowerLaw(1.5, 8.0), 1e5
    kappa = law.effective_ridge(n)
    assert law.limit_risk(n).bias == pytest.approx(1.5 * zeta(5.0) * kappa**2, rel=1e-3)
