"""Nearest neighbours and singular kernels."""

import numpy as np
import pytest
from scipy import integrate

from companion.foundations.interpolation.smoothing import (
    PowerKernel,
    ball_volume,
    best_bandwidth,
    nadaraya_watson,
    nearest_neighbours,
    neighbour_test_risk,
    neighbour_training_risk,
    smoothing_exponent,
)


def naive(
    x: np.ndarray, y: np.ndarray, query: np.ndarray, h: float, kernel: PowerKernel
) -> np.ndarray:
    """The formula, all pairs."""
    weights = kernel(np.linalg.norm(query[:, None] - x, axis=2) / h)
    total = weights.sum(axis=1)
    return np.divide(weights @ y, total, out=np.zeros(len(query)), where=total > 0)


@pytest.mark.parametrize(("dim", "a"), [(1, 0.4), (2, 0.8), (3, 1.4), (2, 0.0)])
def test_smoother_is_the_formula(dim: int, a: float) -> None:
    """Against all pairs; another bandwidth differs; far away it is zero."""
    rng = np.random.default_rng(1)
    x, y, query = rng.random((80, dim)), rng.standard_normal(80), 1.5 * rng.random((50, dim))
    kernel = PowerKernel(a)
    got = nadaraya_watson(x, y, query, bandwidth=0.2, kernel=kernel)
    np.testing.assert_allclose(got, naive(x, y, query, 0.2, kernel), atol=1e-12)
    assert np.abs(got - naive(x, y, query, 0.3, kernel)).max() > 0.1
    far = nadaraya_watson(x, y, query + 9, bandwidth=0.2, kernel=kernel)
    assert not far.any()


def test_singular_kernel_interpolates_continuously() -> None:
    """At the data exactly, near them nearly; the box kernel does neither."""
    rng = np.random.default_rng(2)
    x, y = rng.random((40, 2)), rng.standard_normal(40)
    spiky, box = PowerKernel(0.9), PowerKernel(0)
    np.testing.assert_array_equal(nadaraya_watson(x, y, x, bandwidth=0.5, kernel=spiky), y)
    near = nadaraya_watson(x, y, x + 1e-12, bandwidth=0.5, kernel=spiky)
    np.testing.assert_allclose(near, y, atol=1e-7)
    assert np.abs(nadaraya_watson(x, y, x, bandwidth=0.5, kernel=box) - y).max() > 0.5


def test_coinciding_points_are_averaged() -> None:
    """Two infinite weights share."""
    got = nadaraya_watson(
        [[0.0], [0.0], [1.0]], [1.0, 3.0, 9.0], [[0.0]], bandwidth=2.0, kernel=PowerKernel(0.4)
    )
    assert got[0] == 2.0


def test_smoothing_refuses() -> None:
    """Errors name the argument."""
    with pytest.raises(ValueError, match="bandwidth must be positive, got 0"):
        nadaraya_watson([[0.0]], [1.0], [[0.0]], bandwidth=0.0, kernel=PowerKernel(0.4))
    with pytest.raises(ValueError, match="query must have shape"):
        nadaraya_watson([[0.0]], [1.0], [0.0], bandwidth=1.0, kernel=PowerKernel(0.4))
    with pytest.raises(ValueError, match="exponent must be non-negative"):
        PowerKernel(-1.0)
    with pytest.raises(ValueError, match="power times exponent must be below dimension = 2"):
        PowerKernel(1.0).integral(2, 2)
    with pytest.raises(ValueError, match=r"k must be an integer in \[1, 2\]"):
        nearest_neighbours([[0.0], [1.0]], [1.0, 2.0], [[0.0]], k=3)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_kernel_integrals(dim: int) -> None:
    """Radial quadrature."""
    kernel = PowerKernel(0.3)
    for power in (1, 2):
        radial = integrate.quad(lambda r: 1.0, 0, 1, weight="alg", wvar=(dim - 1 - 0.3 * power, 0))
        assert kernel.integral(power, dim) == pytest.approx(dim * ball_volume(dim) * radial[0])
    assert ball_volume(3) == pytest.approx(4 * np.pi / 3)


def test_neighbour_risks_by_simulation() -> None:
    """Test and training error of fixed designs (MDL Example 5.1); k = 1 trains to zero."""
    rng = np.random.default_rng(3)
    x, k, noise = rng.random((30, 1)), 4, 0.7
    f = np.sin(5 * x[:, 0])
    at = x[:1] + 0.01
    labels = f + noise * rng.standard_normal((20000, 30))
    index = np.argsort(np.abs(x[:, 0] - at[0, 0]))[:k]
    bias = f[index].mean() - np.sin(5 * at[0, 0])
    fresh = np.sin(5 * at[0, 0]) + noise * rng.standard_normal(20000)
    errors = (fresh - labels[:, index].mean(axis=1)) ** 2
    expected = neighbour_test_risk(bias, k, noise)
    z = (errors.mean() - expected) / (errors.std() / np.sqrt(errors.size))
    assert abs(z) < 4.5
    own = np.argsort(np.abs(x[:, 0] - x[0, 0]))[:k]
    seen = (labels[:, 0] - labels[:, own].mean(axis=1)) ** 2
    expected = neighbour_training_risk(f[own].mean() - f[0], k, noise)
    assert abs(seen.mean() - expected) < 4.5 * seen.std() / np.sqrt(seen.size)
    assert neighbour_training_risk(0.0, 1, noise) == 0
    assert nearest_neighbours(x, f, at, k=k)[0] == pytest.approx(f[index].mean())


def test_rate_exponents() -> None:
    """The exponent and the bandwidth of MDL Theorem 5.3, by hand."""
    assert smoothing_exponent(1.0, 2) == 0.5
    assert best_bandwidth(256, 1.0, 2) == pytest.approx(0.25)
