"""Stochastic Lanczos quadrature against exact spectra and the law of Marchenko and Pastur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator
from scipy.stats import kstest

from traindyn.laws import MarchenkoPastur
from traindyn.linalg import LambdaOperator
from traindyn.spectra import density


def rotated(values: np.ndarray, seed: int = 1) -> np.ndarray:
    """A dense symmetric matrix with given eigenvalues."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((values.size, values.size)))[0]
    return (basis * values) @ basis.T


VALUES = np.concatenate([np.random.default_rng(0).beta(2, 5, 297), [3.0, -1.0, 2.5]])
MATRIX = (lambda m: (m + m.T) / 2)(rotated(VALUES))


def test_errors_over_probes_have_the_right_size() -> None:
    """Too small error bars are worse than none: their scores are those of a t distribution."""
    functions = (np.sin, np.square, lambda x: np.exp(-x))
    scores = []
    for seed in range(60):
        found = density.estimate(MATRIX, probes=20, steps=30, rng=seed)
        for function in functions:
            seen = found.mean(function)
            assert seen.truncation < 1e-9
            scores.append((float(seen.value) - function(VALUES).mean()) / float(seen.error))
    assert kstest(scores[::3], "t", args=(19,)).pvalue > 1e-3
    assert 0.6 < np.std(scores) < 1.6
    # Control: errors of a single probe, as if the mean were no better.
    assert kstest(np.array(scores[::3]) / np.sqrt(20), "t", args=(19,)).pvalue < 1e-4


def test_smoothed_density_of_an_exact_spectrum() -> None:
    """It is the mean of normal densities around the eigenvalues, outliers of mass 1/n included."""
    x = np.linspace(-1.5, 3.5, 101)
    width = 0.05
    expected = np.exp(-(((x - VALUES[:, None]) / width) ** 2) / 2).mean(axis=0)
    expected /= np.sqrt(2 * np.pi) * width
    found = density.estimate(MATRIX, probes=30, steps=150, rng=2).smoothed(x, width)
    assert found.truncation.max() < 1e-3
    gap = np.abs(found.value - expected)
    assert np.all(gap <= 6 * found.error + found.truncation)
    assert found.error.max() < 0.15 and found.value.max() > 1.5
    # Few steps cannot resolve the width, and say so.
    coarse = density.estimate(MATRIX, probes=30, steps=8, rng=2).smoothed(x, width)
    assert coarse.truncation.max() > 0.5


def test_distribution_function_within_its_bounds() -> None:
    """The bound of Chebyshev, Markov and Stieltjes holds at every number of steps."""
    x = np.linspace(-1.5, 3.5, 200)
    exact = (VALUES[:, None] <= x).mean(axis=0)
    for steps in (1, 2, 5, 20, 100, 300):
        found = density.estimate(MATRIX, probes=30, steps=steps, rng=3).cdf(x)
        assert np.all(np.abs(found.value - exact) <= found.truncation + 6 * found.error + 1e-12)
        assert np.all((found.value >= 0) & (found.value <= 1))
    assert found.truncation.max() < 0.02


def test_marchenko_pastur() -> None:
    """A sample covariance that is never formed; the law of a twice as large ratio is rejected."""
    d, n = 1000, 2000
    data = np.random.default_rng(4).standard_normal((n, d))
    operator = LinearOperator(
        (d, d), matvec=lambda v: data.T @ (data @ v) / n, matmat=lambda v: data.T @ (data @ v) / n
    )
    found = density.estimate(operator, probes=20, steps=60, rng=5)
    law = MarchenkoPastur(d / n)
    x = np.linspace(*law.edges, 60)
    share = found.cdf(x)
    allowed = share.truncation + 6 * share.error + 3 / d
    assert np.all(np.abs(share.value - law.cdf(x)) <= allowed)
    assert np.any(np.abs(share.value - MarchenkoPastur(1.0).cdf(x)) > 2 * allowed)
    assert found.products == 20 * 60 and found.size == d
    inner = x[10:-10]
    seen = found.smoothed(inner, 0.1)
    fine = np.linspace(*law.edges, 4001)
    kernel = np.exp(-(((inner - fine[:, None]) / 0.1) ** 2) / 2) / (np.sqrt(2 * np.pi) * 0.1)
    smooth = np.trapezoid(law.density(fine)[:, None] * kernel, fine, axis=0)
    allowed = 6 * seen.error + seen.truncation + 3 / d
    assert np.all(np.abs(seen.value - smooth) <= allowed) and allowed.max() < 0.1


def test_iterations_that_exhaust_their_space() -> None:
    """Few distinct eigenvalues end the iteration early; the rule is then exact."""
    values = np.array([2.0] * 50 + [-1.0] * 30 + [0.0] * 20)
    found = density.estimate(rotated(values), probes=40, steps=20, rng=6)
    assert np.count_nonzero(found.weights > 1e-12) == 3 * 40
    mean = found.mean(lambda x: x)
    assert abs(mean.value - 0.7) < 6 * mean.error
    for matrix in (np.zeros((5, 5)), np.eye(5), np.array([[3.0]])):
        exact = density.estimate(matrix, steps=4).mean(lambda x: x)
        assert float(exact.value) == pytest.approx(np.trace(matrix) / len(matrix), abs=1e-14)
        assert exact.error < 1e-14


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_scale_of_the_operator_does_not_matter(scale: float) -> None:
    """Lengths of Lanczos vectors are squares, which under- and overflow."""
    one, scaled = (density.estimate(s * MATRIX, probes=3, steps=12, rng=7) for s in (1.0, scale))
    np.testing.assert_allclose(scaled.nodes / scale, one.nodes, rtol=1e-9)
    np.testing.assert_allclose(scaled.weights, one.weights, rtol=1e-6, atol=1e-12)


def test_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes are drawn one by one, however many share a product."""
    together = density.estimate(MATRIX, probes=5, steps=12, rng=8)
    monkeypatch.setattr(density, "_BASIS_BYTES", 1)
    apart = density.estimate(MATRIX, probes=5, steps=12, rng=8)
    np.testing.assert_allclose(apart.nodes, together.nodes, rtol=1e-9)
    first = density.estimate(MATRIX, probes=2, steps=12, rng=8)
    np.testing.assert_allclose(first.nodes, together.nodes[:2], rtol=1e-9)


def single(matrix: np.ndarray) -> LambdaOperator:
    """Multiply in single precision."""
    rough = matrix.astype(np.float32)
    return LambdaOperator(len(matrix), lambda v: rough @ v.astype(np.float32))


def test_single_precision_is_no_asymmetry() -> None:
    """Operators of PyTorch would be refused for their rounding."""
    found = density.estimate(single(MATRIX), probes=4, steps=100, rng=9)
    exact = density.estimate(MATRIX, probes=4, steps=100, rng=9)
    for function in (np.sin, np.square):
        expected = exact.mean(function).value
        np.testing.assert_allclose(found.mean(function).value, expected, rtol=1e-5)


def hidden(matrix: np.ndarray) -> LambdaOperator:
    """Known by its products only."""
    return LambdaOperator(len(matrix), lambda v: matrix @ v)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: density.estimate(hidden(np.triu(np.ones((50, 50))))),
            "operator must be symmetric, got products whose asymmetry is",
        ),
        (lambda: density.estimate(hidden(MATRIX), probes=1), "probes must be an integer >= 2"),
        (lambda: density.estimate(MATRIX, steps=0), "steps must be an integer >= 1, got 0"),
        (lambda: density.estimate(np.ones((2, 3))), "operator must be square"),
        (lambda: density.estimate(np.eye(3)).smoothed([0.0], 0.0), "width must be positive"),
        (lambda: density.estimate(np.eye(3)).cdf(0.0), "points must have shape"),
        (lambda: density.estimate(np.eye(3)).mean(np.sum), "same shape"),
        (lambda: density.estimate(np.eye(3)).mean(3), "function must be callable"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    """Every refusal names the argument and the allowed range."""
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_not_finite_is_refused() -> None:
    """Products and functions."""
    with pytest.raises(FloatingPointError, match=r"operator\.matmat must be finite"):
        density.estimate(hidden(np.full((5, 5), np.nan)))
    with (
        pytest.raises(FloatingPointError, match="finite on the spectrum"),
        np.errstate(invalid="ignore"),
    ):
        density.estimate(MATRIX).mean(np.log)
