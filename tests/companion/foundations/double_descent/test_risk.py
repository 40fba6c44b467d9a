"""Risk of least squares: closed forms, linear algebra and simulation against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import ks_2samp

from companion.foundations.double_descent.risk import (
    LinearModel,
    best_ratio,
    draw_gaussian_risk,
    isotropic_risk,
    minimum_norm,
    optimal_ridge,
    optimal_ridge_risk,
    ridge_solution,
    scaled_variance,
)
from traindyn.laws import MarchenkoPastur
from traindyn.problems.ridgeless import gaussian_risk


def covariance(p: int) -> np.ndarray:
    """Toeplitz: neither diagonal nor isotropic."""
    return 0.6 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


MODELS = {
    "isotropic": LinearModel(np.linspace(-1, 1, 12), 0.3),
    "diagonal": LinearModel(np.linspace(-1, 1, 12), 0.3, np.linspace(0.1, 2, 12)),
    "full": LinearModel(np.linspace(-1, 1, 12), 0.3, covariance(12)),
}


def matrix(model: LinearModel) -> np.ndarray:
    """Covariance as a matrix."""
    sigma = np.ones(model.dimension) if model.covariance is None else model.covariance
    return np.diag(sigma) if sigma.ndim == 1 else sigma


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [7, 12, 30])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_conditional_risk_is_that_of_the_estimator(name: str, n: int, ridge: float) -> None:
    """The estimator is linear in the targets: MDL Lemma 7.3 from the estimator's matrix."""
    model = MODELS[name]
    x, _ = model.sample(n, rng=1)
    identity = np.eye(n)
    operator = minimum_norm(x, identity) if ridge == 0 else ridge_solution(x, identity, ridge)
    found = model.conditional_risk(x, ridge)
    assert found.bias == pytest.approx(model.risk(operator @ x @ model.signal), abs=1e-9)
    spread = model.noise * np.trace(operator.T @ matrix(model) @ operator)
    assert found.variance == pytest.approx(spread, rel=1e-6)
    assert found.total == found.bias + found.variance
    # Wrong variant: risk in the Euclidean norm.
    if name != "isotropic":
        assert abs(np.sum(operator**2) * model.noise / found.variance - 1) > 1e-3


def test_many_ridges_at_once() -> None:
    """The same as one by one, and increasing bias, decreasing variance."""
    model, ridges = MODELS["full"], np.array([0.0, 1e-3, 0.1, 3.0])
    x, _ = model.sample(8, rng=2)
    found = model.conditional_risk(x, ridges)
    single = [model.conditional_risk(x, z) for z in ridges]
    np.testing.assert_allclose(found.bias, [risk.bias for risk in single])
    np.testing.assert_allclose(found.variance, [risk.variance for risk in single])
    assert np.all(np.diff(found.variance) < 0) and found.bias.shape == (4,)


def test_minimum_norm_is_the_limit_and_the_shortest() -> None:
    """Among the interpolating solutions (MDL Example 7.1); any other is longer."""
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((5, 11)), rng.standard_normal(5)
    found = minimum_norm(x, y)
    np.testing.assert_allclose(x @ found, y, atol=1e-12)
    np.testing.assert_allclose(ridge_solution(x, y, 1e-10), found, atol=1e-7)
    other = found + np.linalg.svd(x)[2][-1]
    np.testing.assert_allclose(x @ other, y, atol=1e-12)
    assert np.linalg.norm(other) > np.linalg.norm(found) + 0.1


@pytest.mark.parametrize(("n", "p"), [(40, 16), (40, 90), (40, 42)])
def test_mean_over_gaussian_inputs(n: int, p: int) -> None:
    """Closed form of the mean against sampled matrices; the limit is the wrong variant."""
    if p == 42:  # the variance has no second moment here: compare laws, below
        assert gaussian_risk(n, p, signal=1, noise=1).variance == 40
        return
    model = LinearModel(np.full(p, p**-0.5), 0.5)
    rng = np.random.default_rng(4)
    risks = [model.conditional_risk(rng.standard_normal((n, p))) for _ in range(2000)]
    exact = gaussian_risk(n, p, signal=1.0, noise=0.5)
    variances = np.array([risk.variance for risk in risks])
    error = variances.std() / np.sqrt(2000)
    assert abs(variances.mean() - exact.variance) < 5 * error
    limit = isotropic_risk(p / n, signal=1.0, noise=0.5)
    assert abs(variances.mean() - limit.variance) > 5 * error
    assert np.mean([risk.bias for risk in risks]) == pytest.approx(exact.bias, abs=0.01)


@pytest.mark.parametrize(("n", "p"), [(9, 5), (8, 8), (5, 9)])
def test_reduced_draws_have_the_law_of_direct_ones(n: int, p: int) -> None:
    """Bias and variance, with power against one sample more."""
    model = LinearModel(np.eye(p)[0], 0.5)
    rng = np.random.default_rng(5)
    direct = [model.conditional_risk(rng.standard_normal((n, p))) for _ in range(4000)]
    reduced = draw_gaussian_risk(n, p, 4000, signal=1.0, noise=0.5, rng=6)
    wrong = draw_gaussian_risk(n + 1, p, 4000, signal=1.0, noise=0.5, rng=6)
    variance = [risk.variance for risk in direct]
    assert ks_2samp(variance, reduced.variance).pvalue > 1e-5
    assert ks_2samp(variance, wrong.variance).pvalue < 1e-5
    if p > n:
        assert ks_2samp([risk.bias for risk in direct], reduced.bias).pvalue > 1e-5
    else:
        assert max(risk.bias for risk in direct) < 1e-12 and not reduced.bias.any()


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_isotropic_limit_is_the_general_one(ratio: float) -> None:
    """Two routes: the classical transform, and the effective ridge."""
    n = 40
    model = LinearModel(np.ones(round(ratio * n)) / 3, 0.4)
    r2 = float(model.signal @ model.signal)
    for ridge in (0.0, 0.05, 2.0):
        general = model.limit_risk(n, ridge)
        special = isotropic_risk(ratio, signal=r2, noise=0.4, ridge=ridge)
        assert special.bias == pytest.approx(general.bias, rel=1e-9, abs=1e-12)
        assert special.variance == pytest.approx(general.variance, rel=1e-9)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_limits_from_the_stieltjes_transform(ratio: float) -> None:
    """The route to MDL Theorem 7.4, and the limit of no ridge."""
    law, z = MarchenkoPastur(ratio), 0.07
    risk = isotropic_risk(ratio, signal=1.7, noise=0.4, ridge=z)
    s, slope = law.stieltjes(-z), law.stieltjes_derivative(-z)
    assert risk.bias == pytest.approx(1.7 * z**2 * slope, rel=1e-12)
    assert risk.variance == pytest.approx(0.4 * ratio * (s - z * slope), rel=1e-12)
    if ratio != 1:
        tiny = isotropic_risk(ratio, signal=1.7, noise=0.4, ridge=1e-12)
        none = isotropic_risk(ratio, signal=1.7, noise=0.4)
        assert tiny.total == pytest.approx(none.total, rel=1e-9)


def test_general_limit_against_large_matrices() -> None:
    """An anisotropic covariance and signal, on both sides and with ridge."""
    p = 400
    signal = np.random.default_rng(9).standard_normal(p) / np.sqrt(p)
    model = LinearModel(signal, 0.5, covariance(p))
    rng = np.random.default_rng(7)
    limit_bias = model.limit_risk(200).bias
    for n in (200, 800):
        for ridge in (0.0, 0.3):
            risks = [model.conditional_risk(model.sample(n, rng=rng)[0], ridge) for _ in range(5)]
            limit = model.limit_risk(n, ridge)
            assert risks[0].variance == pytest.approx(limit.variance, rel=0.08)
            bias = [risk.bias for risk in risks]
            assert np.mean(bias) == pytest.approx(limit.bias, rel=0.15, abs=1e-9)
    # Wrong variant: isotropic inputs.
    assert abs(LinearModel(model.signal, 0.5).limit_risk(200).bias / limit_bias - 1) > 0.3


def test_infinite_risk_is_said() -> None:
    """At aspect ratio one there is no number, and no NaN."""
    risk = isotropic_risk(1.0, signal=1.0, noise=0.1)
    assert (risk.bias, risk.variance, risk.total) == (0.0, np.inf, np.inf)
    assert isotropic_risk(1.0, signal=1.0, noise=0.0).total == 0
    assert LinearModel(np.ones(5), 0.1).limit_risk(5).variance == np.inf
    assert LinearModel(np.ones(5), 0.0).limit_risk(5).variance == 0
    for p in (9, 10, 11):
        assert gaussian_risk(10, p, signal=1.0, noise=0.1).variance == np.inf
    assert np.isfinite(isotropic_risk(1.0, signal=1.0, noise=0.1, ridge=1e-6).total)


@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
def test_the_optimal_ridge_is_optimal(ratio: float) -> None:
    """Closed form against numerical minimisation."""
    kwargs = {"signal": 1.7, "noise": 0.4}
    best = minimize_scalar(
        lambda log: float(isotropic_risk(ratio, ridge=np.exp(log), **kwargs).total),
        bounds=(-8, 4),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert np.exp(best.x) == pytest.approx(optimal_ridge(ratio, **kwargs), rel=1e-3)
    assert best.fun == pytest.approx(optimal_ridge_risk(ratio, **kwargs), rel=1e-10)
    twice = 2 * optimal_ridge(ratio, **kwargs)
    assert isotropic_risk(ratio, ridge=twice, **kwargs).total > best.fun + 1e-3


def test_best_ratio_minimises_the_second_descent() -> None:
    """And is infinite where the null estimate is better than any."""
    best = best_ratio(2.0, 1.0)
    risk = isotropic_risk(best + np.array([-0.01, 0.0, 0.01]), signal=2.0, noise=1.0).total
    assert risk[1] < risk[0] and risk[1] < risk[2]
    assert risk[1] == pytest.approx(2 * np.sqrt(2.0) - 1, rel=1e-12)
    assert best_ratio(1.0, 1.0) == np.inf


@pytest.mark.parametrize("entries", ["Rademacher", "uniform"])
def test_samples_follow_the_model(entries: str) -> None:
    """Covariance of the inputs, and noise around the signal."""
    model = MODELS["full"]
    x, y = model.sample(40_000, entries=entries, rng=8)
    assert np.abs(x.T @ x / len(x) - covariance(12)).max() < 0.03
    assert np.var(y - x @ model.signal) == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("name", ["isotropic", "diagonal"])
def test_hidden_features_are_noise(name: str) -> None:
    """Error on fresh targets of a fit to the first features, simulated."""
    model, part = MODELS[name], MODELS[name].first(4)
    rng = np.random.default_rng(10)
    expected, errors = [], []
    for _ in range(300):
        x, y = model.sample(20, rng=rng)
        fresh, target = model.sample(200, rng=rng)
        fit = minimum_norm(x[:, :4], y)
        errors.append(np.mean((fresh[:, :4] @ fit - target) ** 2))
        expected.append(part.conditional_risk(x[:, :4]).total + part.noise)
    gap = np.array(errors) - expected
    assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(300)
    # Wrong variant: the noise of the targets alone.
    assert abs(gap.mean() + part.noise - model.noise) > 5 * gap.std() / np.sqrt(300)
    assert MODELS[name].first(12).noise == model.noise
    with pytest.raises(ValueError, match="covariance must be a diagonal"):
        MODELS["full"].first(3)


def test_bad_input_is_named() -> None:
    """Every refusal names the argument."""
    model = MODELS["isotropic"]
    with pytest.raises(ValueError, match="noise must be non-negative"):
        LinearModel(np.ones(3), -1.0)
    with pytest.raises(ValueError, match="covariance must have shape"):
        LinearModel(np.ones(3), 1.0, np.ones(4))
    with pytest.raises(ValueError, match="covariance must be non-negative"):
        LinearModel(np.ones(2), 1.0, [1.0, -1.0])
    with pytest.raises(ValueError, match="signal must not be empty"):
        LinearModel(np.ones(0), 1.0)
    with pytest.raises(ValueError, match="entries must be one of"):
        model.sample(3, entries="Cauchy", rng=0)
    with pytest.raises(ValueError, match="ridge must be non-negative"):
        model.conditional_risk(np.ones((3, 12)), -1.0)
    with pytest.raises(ValueError, match="ridge must be positive"):
        ridge_solution(np.ones((3, 12)), np.ones(3), 0.0)
    with pytest.raises(ValueError, match="ratio must be positive"):
        isotropic_risk(0.0, signal=1.0, noise=1.0)
    with pytest.raises(ValueError, match="targets must have shape"):
        minimum_norm(np.ones((3, 2)), np.ones(4))


@pytest.mark.parametrize("ratio", [0.01, 0.5, 0.97, 1.02, 2.0])
def test_scaled_variance_of_equal_lengths(ratio: float) -> None:
    """The limit of MDL Theorem 7.4; any other law has a larger one, on both sides."""
    plain = isotropic_risk(ratio, signal=0, noise=0.3).variance
    assert scaled_variance(ratio, [1.0], noise=0.3) == pytest.approx(plain, rel=1e-9)
    assert scaled_variance(ratio, [1, 1], [0.3, 0.7], noise=0.3) == pytest.approx(plain, rel=1e-9)
    assert scaled_variance(ratio, [0.9, 1.1], noise=0.3) > (1 + 1e-5) * plain


def test_scaled_variance_in_closed_form() -> None:
    """Two values of equal probability: the equation is quadratic."""
    for a in (0.1, 0.5, 0.8):
        u, b = np.array([a, 2 - a]), a * (2 - a)
        for ratio in (0.2, 0.5, 0.9):
            root = np.roots([b * (1 - ratio), 1 - 2 * ratio, -ratio]).max()
            assert scaled_variance(ratio, u, noise=1) == pytest.approx(root, rel=1e-9)
        assert scaled_variance(3.0, u, noise=1) == pytest.approx(1 / b / 2)
    assert scaled_variance(0.5, [0.5, 1.5], noise=1) == pytest.approx(2 / np.sqrt(3))


@pytest.mark.parametrize(("n", "p"), [(600, 300), (300, 600)])
def test_scaled_variance_of_matrices(n: int, p: int) -> None:
    """Against the estimator, with three lengths; inputs of equal length are the wrong variant."""
    squares, weights = np.array([0.25, 1.0, 2.5]), np.array([0.4, 0.4, 0.2])
    model, rng = LinearModel(np.full(p, p**-0.5), 1.0), np.random.default_rng(10)
    lengths = np.sqrt(np.repeat(squares, np.round(n * weights).astype(int)))
    found = [
        model.conditional_risk(lengths[:, None] * rng.standard_normal((n, p))).variance
        for _ in range(8)
    ]
    limit = scaled_variance(p / n, squares, weights, noise=1.0)
    assert np.mean(found) == pytest.approx(limit, rel=0.03)
    assert limit > 1.3 * isotropic_risk(p / n, signal=1, noise=1).variance


def test_scaled_variance_without_limit() -> None:
    """At ratio one, and laws that are none."""
    assert scaled_variance(1.0, [0.5, 1.5], noise=1) == float("inf")
    assert scaled_variance(1.0, [0.5, 1.5], noise=0) == 0
    for squares, weights in (([0.0, 2.0], None), ([], None), ([1.0, 1.0], [1.0, 0.0])):
        with pytest.raises(ValueError, match="must be positive"):
            scaled_variance(0.5, squares, weights, noise=1)
    with pytest.raises(ValueError, match="mean one"):
        scaled_variance(0.5, [0.5, 1.0], noise=1)
    with pytest.raises(ValueError, match="sum one"):
        scaled_variance(0.5, [1.0, 1.0], [0.5, 0.6], noise=1)
