"""The level of t-tests on skewed samples, against simulation."""

import numpy as np
import pytest
from scipy import stats

from claimbook import Control, mean_equals, mean_exceeds
from claimbook.student import skewness, tail


@pytest.mark.parametrize(("n", "skew"), [(8, 1.0), (24, 2.0), (24, 2.75), (60, 0.5)])
def test_tails_are_those_of_gamma_samples(n, skew):
    """A level that is wrong by a factor would be found by drawing the samples themselves."""
    shape, critical = 4 / skew**2, float(stats.t.isf(5e-3, n - 1))
    x = np.random.default_rng(11).standard_gamma(shape, (40_000, n)) - shape
    t = x.mean(axis=1) / (x.std(axis=1, ddof=1) / np.sqrt(n))
    counts = ((t < -critical).sum(), (t > critical).sum())
    for found, hits in zip(tail(n, critical, skew), counts):
        # Simulation and the average over proportions both fluctuate, by some per cent.
        misses = 40_000 - hits
        low, high = stats.beta.ppf([1e-6, 1 - 1e-6], [hits, hits + 1], [misses + 1, misses])
        assert np.nan_to_num(low) / 1.2 <= found <= high * 1.2


def test_tails_without_skewness_are_nominal():
    """Gaussian samples have Student's law."""
    assert tail(10, 3.0, 0.0) == pytest.approx((stats.t.sf(3.0, 9),) * 2)


def test_skewness_is_pooled_and_assumed_of_few():
    """One number for all elements; samples too few to show it are not called symmetric."""
    x = np.random.default_rng(12).standard_exponential((4000, 5))
    assert 1.8 < skewness(x) < 2.4
    assert skewness(np.array([[1.0], [2.0], [3.0]])) == 1.0
    assert skewness(np.ones((20, 2))) == 1.0


def test_checks_report_the_level_they_have():
    """A nominal level of 1e-6 on few skewed samples would be a promise nobody keeps."""
    rng = np.random.default_rng(13)
    wrong = Control("4", expected=4.0)
    skewed = rng.chisquare(1, 24)
    evidence = mean_equals("m", samples=skewed, expected=1.0, control=wrong)
    assert evidence.false_alarm > 1e-4 and "nominal level 1e-06" in evidence.method
    gauss = rng.normal(size=400)
    evidence = mean_equals("m", samples=gauss, expected=0.0, control=Control("1", expected=1.0))
    assert evidence.false_alarm < 3e-6
    # The long tail points up: a mean of minus these samples seems too large too often.
    skewed, bound = rng.chisquare(1, 200), Control("2", bound=2.0)
    up = mean_exceeds("m", samples=skewed, bound=0.1, control=bound)
    down = mean_exceeds("m", samples=3 - skewed, bound=0.1, control=Control("3", bound=3.0))
    assert up.false_pass == 1e-6 < 1e-5 < down.false_pass
