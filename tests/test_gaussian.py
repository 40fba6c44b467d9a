"""Gaussian rules against exact moments and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from traindyn import gaussian


def _double_factorial(n: int) -> float:
    return float(np.prod(np.arange(n, 0, -2))) if n > 0 else 1.0


@pytest.mark.parametrize("order", [1, 2, 5, 20, 64])
def test_gauss_hermite_is_exact_up_to_degree_2n_minus_1(order: int) -> None:
    """Nodes for the wrong weight function (e^{-x^2}) or wrong masses miss the moments."""
    rule = gaussian.gauss_hermite(1, order)
    z = rule.nodes[:, 0]
    for degree in range(0, min(2 * order, 20), 2):
        exact = _double_factorial(degree - 1)
        assert rule.expect(z**degree) == pytest.approx(exact, rel=1e-12)
    if order <= 5:
        # control: one degree further the rule is wrong
        beyond = _double_factorial(2 * order - 1)
        assert abs(rule.expect(z ** (2 * order)) - beyond) > 1e-3 * beyond


def test_gauss_hermite_tensor_pairs_weights_with_nodes() -> None:
    """Weights raveled in another order than the nodes break mixed moments."""
    rule = gaussian.gauss_hermite(3, 4)
    z = rule.nodes
    assert rule.size == 64 and rule.dim == 3
    mixed = rule.expect(z[:, 0] ** 2 * z[:, 1] ** 4 * z[:, 2] ** 6)
    assert mixed == pytest.approx(45.0, rel=1e-12)
    shuffled = gaussian.Rule(z, np.roll(rule.weights, 1))
    wrong = shuffled.expect(z[:, 0] ** 2 * z[:, 1] ** 4 * z[:, 2] ** 6)
    assert abs(wrong - 45.0) > 1.0


def test_sobol_pairs_are_antithetic_and_reproducible() -> None:
    """Odd moments must vanish to rounding, and the stream must depend on the seed alone."""
    rule = gaussian.sobol(5, 1024, rng=3)
    assert rule.size == 1024
    z = rule.nodes
    assert (
        np.abs(rule.expect(z[:, :, None, None] * z[:, None, :, None] * z[:, None, None])).max()
        < 1e-13
    )
    assert np.array_equal(z, gaussian.sobol(5, 1024, rng=3).nodes)
    assert not np.array_equal(z, gaussian.sobol(5, 1024, rng=4).nodes)
    assert np.all(np.isfinite(z)) and np.abs(z).max() > 3


def test_sobol_is_unbiased_over_scramblings() -> None:
    """A biased map to the Gaussian (wrong variance, clipped tails) shifts the mean.

    The mean over 64 scramblings of E exp(a.z) is compared with exp(|a|^2 / 2) by a t test
    at level 1e-6. Power: a noise level wrong by one per cent shifts the value by about
    |a|^2 / 100 = 6e-3, seventeen standard errors, and is rejected.
    """
    a = np.array([0.5, -0.3, 0.4])
    exact = np.exp(a @ a / 2)
    threshold = stats.t.isf(5e-7, df=63)
    rules = [gaussian.sobol(3, 1024, rng=g) for g in np.random.default_rng(11).spawn(64)]
    found = np.array([rule.expect(np.exp(rule.nodes @ a)) for rule in rules])
    assert abs(found.mean() - exact) < threshold * stats.sem(found)
    wrong = np.array([rule.expect(np.exp(1.01 * rule.nodes @ a)) for rule in rules])
    assert abs(wrong.mean() - exact) > 2 * threshold * stats.sem(wrong)


def test_sobol_converges_faster_than_monte_carlo() -> None:
    """Unscrambled pairing errors would leave the n^{-1/2} rate; the slope must be below -0.8."""
    a = np.full(4, 0.4)
    sizes = 2 ** np.arange(7, 13)
    streams = np.random.default_rng(5).spawn(32)
    rules = [[gaussian.sobol(4, int(n), rng=rng) for rng in streams] for n in sizes]
    errors = [np.std([r.expect(np.cos(r.nodes @ a)) for r in each]) for each in rules]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope < -0.8
    rng = np.random.default_rng(0)
    plain = [np.cos(rng.standard_normal((32, n, 4)) @ a).mean(axis=1).std() for n in sizes]
    assert np.polyfit(np.log(sizes), np.log(plain), 1)[0] > -0.7  # control


@pytest.mark.parametrize(
    ("dim", "kind"), [(1, "tensor"), (3, "tensor"), (4, "sobol"), (10, "sobol")]
)
def test_rule_picks_the_family_by_dimension_and_agrees_with_exact(dim: int, kind: str) -> None:
    """Both families integrate the same smooth function, Gauss-Hermite far more exactly."""
    rule = gaussian.rule(dim)
    assert rule.size <= 2**13
    a = np.full(dim, 0.6 / np.sqrt(dim))
    error = abs(rule.expect(np.cos(rule.nodes @ a)) - np.exp(-a @ a / 2))
    assert error < (1e-13 if kind == "tensor" else 1e-4)
    assert np.ptp(rule.weights) > 0 if kind == "tensor" else np.ptp(rule.weights) == 0


def test_expect_averages_arrays_along_the_first_axis() -> None:
    """A transposed contraction would mix value axes with nodes."""
    rule = gaussian.gauss_hermite(2, 3)
    z = rule.nodes
    second = rule.expect(z[:, :, None] * z[:, None, :])
    np.testing.assert_allclose(second, np.eye(2), atol=1e-14)
    with pytest.raises(ValueError, match="values must have length 9"):
        rule.expect(np.ones((2, 9)))


def test_symmetric_sqrt_squares_back_also_when_singular() -> None:
    """A Cholesky factor would fail on singular covariances, or not be symmetric."""
    rng = np.random.default_rng(0)
    half = rng.standard_normal((5, 3))
    cov = half @ half.T
    root = gaussian.symmetric_sqrt(cov)
    np.testing.assert_allclose(root @ root, cov, atol=1e-12)
    np.testing.assert_allclose(root, root.T, atol=1e-14)
    assert np.linalg.eigvalsh(root)[0] > -1e-12
    np.testing.assert_array_equal(gaussian.symmetric_sqrt(np.zeros((2, 2))), np.zeros((2, 2)))
    nearly = np.diag([1.0, -1e-9])
    np.testing.assert_allclose(gaussian.symmetric_sqrt(nearly), np.diag([1.0, 0.0]))


def test_symmetric_sqrt_knows_no_units() -> None:
    """A negative covariance was taken for zero where it was small, unless it is a difference."""
    for scale in (1e-200, 1e-11, 1.0):
        with pytest.raises(ValueError, match="positive semi-definite"):
            gaussian.symmetric_sqrt(-scale * np.eye(2))
        with pytest.raises(ValueError, match="cov must be symmetric"):
            gaussian.symmetric_sqrt(scale * np.array([[1.0, 0.5], [0.0, 1.0]]))
        root = gaussian.symmetric_sqrt(scale * np.eye(2))
        np.testing.assert_allclose(root, np.sqrt(scale) * np.eye(2), rtol=1e-14)
    left = gaussian.symmetric_sqrt(-1e-11 * np.eye(2), scale=1.0)
    np.testing.assert_array_equal(left, np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian.gauss_hermite(0, 3), r"dim must be an integer >= 1, got 0"),
        (lambda: gaussian.gauss_hermite(2, 0), r"order must be an integer >= 1, got 0"),
        (lambda: gaussian.gauss_hermite(10, 20), r"order \*\* dim must be at most"),
        (lambda: gaussian.gauss_hermite(2**63, 3), r"order \*\* dim must be at most"),
        (lambda: gaussian.gauss_hermite(2, 4097), r"order \*\* dim must be at most"),
        (lambda: gaussian.gauss_hermite(2**63, 1), r"dim must be an integer in \[1, 64\]"),
        (lambda: gaussian.sobol(2, 100, rng=0), r"n must be a power of two, got 100"),
        (lambda: gaussian.rule(3, size=4), r"size must be an integer >= 16, got 4"),
        (
            lambda: gaussian.Rule(np.zeros((2, 1)), np.ones(2)),
            r"weights must sum to one, got sum 2",
        ),
        (lambda: gaussian.Rule(np.zeros((2, 1)), np.ones(3) / 3), r"weights must have shape \(2\)"),
        (lambda: gaussian.Rule(np.full((1, 1), np.nan), np.ones(1)), r"nodes must be finite"),
        (lambda: gaussian.symmetric_sqrt([[1.0, 2.0], [2.0, 1.0]]), r"smallest eigenvalue -1"),
        (lambda: gaussian.symmetric_sqrt([[1.0, 2.0], [0.0, 1.0]]), r"cov must be symmetric"),
    ],
)
def test_bad_input_names_argument_value_and_range(call: object, message: str) -> None:
    """A vague or missing error would let a wrong rule run silently."""
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
