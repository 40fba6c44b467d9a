"""Nearest neighbours, singular kernels and the exact risk at a point."""

import numpy as np
import pytest
from scipy import integrate, stats

from companion.foundations.interpolation.pointwise import (
    LocalDesign,
    hoeffding_bound,
    leading_variance,
    local_risk,
    lower_tail_bound,
)
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


@pytest.mark.parametrize(
    ("dim", "a", "beta", "n"), [(2, 0.8, 1.0, 500), (3, 1.4, 0.5, 400), (2, 1.5, 1.0, 300)]
)
def test_exact_risk_by_simulation(dim: int, a: float, beta: float, n: int) -> None:
    """Bias, variance and empty balls (MDL Theorem 5.3) against draws; the box kernel differs."""
    rng = np.random.default_rng(4)
    design, kernel, h = (
        LocalDesign.uniform(dim),
        PowerKernel(a),
        float(best_bandwidth(n, beta, dim)),
    )
    draws = np.zeros((8000, 3))
    for row in draws:
        r = design.sample(n, h, rng=rng)
        if r.size:
            k = kernel(r)
            row[:2] = (h**beta * (r**beta @ k) / k.sum()) ** 2, k @ k / k.sum() ** 2
        else:
            row[2] = 1.0
    options = {"design": design, "smoothness": beta, "value": 1.0}
    exact = np.array(local_risk(n, h, kernel=kernel, **options))
    error = draws.std(axis=0) / np.sqrt(len(draws)) + 1e-6
    assert np.all(np.abs(draws.mean(axis=0) - exact) < 5 * error)
    box = np.array(local_risk(n, h, kernel=PowerKernel(0), **options))
    assert np.abs((draws.mean(axis=0) - box)[1] / error[1]) > 10


def test_box_kernel_is_the_mean_of_a_reciprocal() -> None:
    """For equal weights the variance is E[1/N; N > 0], N binomial."""
    n, h = 50, 0.3
    design = LocalDesign.uniform(1)
    counts = np.arange(1, n + 1)
    expected = (stats.binom.pmf(counts, n, design.mass(h)) / counts).sum()
    got = local_risk(n, h, design=design, kernel=PowerKernel(0), smoothness=1.0).variance
    assert got == pytest.approx(expected, rel=1e-12)


def test_uniform_mass_by_counting() -> None:
    """A ball in the cube, and the sharper designs."""
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, (200_000, 3))
    share = np.mean(np.linalg.norm(points, axis=1) < 0.7)
    assert LocalDesign.uniform(3).mass(0.7) == pytest.approx(share, abs=0.005)
    assert LocalDesign.cusp(1.0).mass(0.1) == pytest.approx(0.01)
    assert LocalDesign.vanishing(2, 3.0).mass(0.1) == pytest.approx(1e-5)
    with pytest.raises(ValueError, match="bandwidth must be positive"):
        LocalDesign.uniform(1).mass(0.0)
    with pytest.raises(ValueError, match="balls of probability <= 1"):
        LocalDesign.uniform(1).mass(1.5)


@pytest.mark.parametrize("a", [0.3, 1.4])
def test_leading_variance(a: float) -> None:
    """On both sides of d/2, at a large number of points; the other law is far off."""
    design, kernel = LocalDesign.uniform(2), PowerKernel(a)
    h = 0.5
    n = 1e14
    exact = local_risk(n, h, design=design, kernel=kernel, smoothness=1.0).variance
    expected = leading_variance(n * design.mass(h), design=design, kernel=kernel)
    assert exact == pytest.approx(expected, rel=2e-3, abs=0)
    other = PowerKernel(0.8)
    assert exact != pytest.approx(
        leading_variance(n * design.mass(h), design=design, kernel=other), rel=0.3, abs=0
    )


def test_leading_variance_refuses() -> None:
    """Half the dimension, too singular a kernel, too few points."""
    for a in (1.0, 2.0):
        with pytest.raises(ValueError, match="kernel must have an exponent below"):
            leading_variance(10.0, design=LocalDesign.uniform(2), kernel=PowerKernel(a))
    with pytest.raises(ValueError, match="kernel must have an exponent below the local"):
        local_risk(9, 0.5, design=LocalDesign.uniform(1), kernel=PowerKernel(1.0), smoothness=1.0)
    with pytest.raises(ValueError, match="n must be at least 2"):
        local_risk(1, 0.5, design=LocalDesign.uniform(1), kernel=PowerKernel(0.1), smoothness=1.0)


def test_rate_exponents() -> None:
    """The exponent and the bandwidth of MDL Theorem 5.3, by hand."""
    assert smoothing_exponent(1.0, 2) == 0.5
    assert best_bandwidth(256, 1.0, 2) == pytest.approx(0.25)


def test_tail_bounds_hold_and_are_not_idle() -> None:
    """Exact binomial tails, MDL Theorem 5.4 and Chernoff; with twice the exponent both fail."""
    n, p, off = 100, 0.5, np.linspace(0.05, 0.3, 6)
    tail = 2 * stats.binom.sf(np.floor(n * (p + off) + 1e-9), n, p)
    bound = hoeffding_bound(n, off)
    assert np.all(tail <= bound)
    assert np.any(tail > 2 * (bound / 2) ** 2)
    np.testing.assert_allclose(hoeffding_bound(n, 3 * off, low=-1, high=2), bound)
    few = stats.binom.cdf(np.arange(1, 6), 100 * np.arange(1, 6), 0.02)
    bound = lower_tail_bound(100 * np.arange(1, 6), 0.02)
    assert np.all(few <= bound) and np.any(few > bound**4)
