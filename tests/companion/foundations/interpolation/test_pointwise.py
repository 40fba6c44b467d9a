"""The exact risk at a point, and tails of the number of neighbours."""

import numpy as np
import pytest
from scipy import stats

from companion.foundations.interpolation.pointwise import (
    LocalDesign,
    hoeffding_bound,
    leading_variance,
    local_risk,
    lower_tail_bound,
)
from companion.foundations.interpolation.smoothing import PowerKernel, best_bandwidth


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
