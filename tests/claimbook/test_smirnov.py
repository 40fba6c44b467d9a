"""The exact two-sample Kolmogorov–Smirnov law."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from claimbook import smirnov


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 2), (4, 4), (5, 3), (6, 4)])
def test_tail_counts_all_orders(n, m):
    """The recursion would differ from counting every order of the pooled sample."""
    heights = []
    for places in combinations(range(n + m), n):
        first = np.array(places, dtype=float)
        second = np.setdiff1d(np.arange(n + m), places).astype(float)
        heights.append(smirnov.distance(first, second))
    for height in range(1, n * m + 1):
        counted = np.mean(np.array(heights) >= height)
        assert smirnov.tail(height, n, m) == pytest.approx(counted, rel=1e-12)


@pytest.mark.parametrize(("n", "m"), [(200, 200), (150, 120), (97, 64)])
def test_tail_agrees_with_scipy(n, m):
    """SciPy's exact p-values are an independent route, down to small levels."""
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.3, 0.6):
        first, second = np.sort(rng.normal(size=n)), np.sort(rng.normal(size=m) + shift)
        ours = smirnov.tail(smirnov.distance(first, second), n, m)
        theirs = stats.ks_2samp(first, second, method="exact")
        height = smirnov.distance(first, second)
        assert height / (n * m) == pytest.approx(theirs.statistic, abs=1e-12)
        assert ours == pytest.approx(theirs.pvalue, rel=1e-9)


@pytest.mark.parametrize("level", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize(("n", "m"), [(60, 60), (80, 35), (300, 17)])
def test_critical_is_the_smallest_height_within_the_level(n, m, level):
    """One lattice step below the critical height must exceed the level."""
    critical = smirnov.critical(level, n, m)
    assert smirnov.tail(critical, n, m) <= level
    assert smirnov.tail(critical - np.gcd(n, m), n, m) > level


def test_no_critical_height_for_few_samples():
    """Four against four can never reject at 1e-6, and must not pretend to."""
    assert smirnov.critical(1e-6, 4, 4) == 17


def test_ties_are_conservative():
    """For a discrete law the level is an upper bound (5000 draws, false alarm 1e-6)."""
    rng = np.random.default_rng(5)
    critical = smirnov.critical(0.01, 40, 40)
    hits = sum(
        smirnov.distance(*np.sort(rng.integers(0, 3, size=(2, 40)).astype(float))) >= critical
        for _ in range(5000)
    )
    assert hits <= stats.binom.isf(1e-6, 5000, 0.01)
