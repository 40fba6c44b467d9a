"""The chance that a wrong variant is let pass, against repetitions."""

import numpy as np
import pytest
from scipy import stats

from claimbook import (
    Control,
    binomial,
    covariance_equals,
    equal_laws,
    exceeds,
    follows_law,
    mean_equals,
    mean_exceeds,
    median_equals,
    rate,
    share_exceeds,
)
from claimbook.sequential import SequentialTest

LEVEL, TRIALS = 0.01, 400
SIZES = np.array([1.0, 2.0, 4.0, 8.0])


def gauss(n, shift=0.0):
    """Return n numbers with the quantiles, mean and variance of a normal law."""
    x = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return shift + (x - x.mean()) / x.std(ddof=1)


def mean(wrong, right):
    """A t-test of one mean."""
    wrong = Control("w", samples=wrong)
    return mean_equals("c", samples=right, expected=0, false_alarm=LEVEL, control=wrong)


def known(wrong, right):
    """A test of one mean with known variance."""
    wrong = Control("w", samples=wrong)
    return mean_equals(
        "c", samples=right, expected=0, standard_deviation=1, false_alarm=LEVEL, control=wrong
    )


def above(wrong, right):
    """A one-sided t-test, of which 2 is shown."""
    wrong = Control("w", samples=wrong)
    return mean_exceeds("c", samples=right + 2, bound=0, control=wrong)


def slope(wrong, right):
    """An exponent from replicas."""
    powers = SIZES[None, :] ** (0.1 * wrong[:, None])
    replicas = SIZES[None, :] ** (0.1 * right[:, None])
    return rate(
        "c", sizes=SIZES, values=replicas, exponent=0, false_alarm=LEVEL,
        control=Control("w", values=powers),
    )  # fmt: skip


def median(wrong, right):
    """A sign test."""
    wrong = Control("w", samples=wrong)
    return median_equals("c", samples=right, expected=0, false_alarm=LEVEL, control=wrong)


def counts(wrong, right):
    """An exact binomial test."""
    return binomial(
        "c", successes=np.sum(right > 0), trials=right.size, expected=0.5, false_alarm=LEVEL,
        control=Control("w", successes=np.sum(wrong > 0)),
    )  # fmt: skip


def share(wrong, right):
    """A one-sided binomial test."""
    return share_exceeds(
        "c", successes=np.sum(right > -2), trials=right.size, bound=0.5,
        control=Control("w", successes=np.sum(wrong > 0)),
    )  # fmt: skip


def variance(wrong, right):
    """Bartlett's test of one variance."""
    wrong = Control("w", samples=(1 + wrong.mean()) * wrong[:, None])
    return covariance_equals(
        "c", samples=right[:, None], expected=np.eye(1), false_alarm=LEVEL, control=wrong
    )


def law(wrong, right):
    """A one-sample Kolmogorov-Smirnov test."""
    wrong = Control("w", samples=wrong)
    return follows_law("c", samples=right, cdf=stats.norm.cdf, false_alarm=LEVEL, control=wrong)


def laws(wrong, right):
    """A two-sample Kolmogorov-Smirnov test, against samples that are spread evenly."""
    wrong = Control("w", samples=wrong)
    return equal_laws("c", samples=right, reference=gauss(600), false_alarm=LEVEL, control=wrong)


NEAR = [(check, shift) for check in (mean, known, slope, counts, median) for shift in (0.3, 0.6)]
# One-sided tests at a small level, of controls that are beyond the bound, but not far enough.
BEYOND = [(check, shift) for check in (above, share) for shift in (0.8, 0.9)]


@pytest.mark.parametrize(("check", "shift"), NEAR + BEYOND)
def test_a_control_is_let_pass_as_often_as_stated(check, shift):
    """Samples with the very moments of their law tell the chance for fresh ones."""
    n, rng = 40, np.random.default_rng(31)
    right = gauss(n)
    stated = check(gauss(n, shift), right)
    spared = sum(
        not check(rng.normal(shift, size=n), right).control.rejected for _ in range(TRIALS)
    )
    # The share of the samples beyond zero is rounded to a count.
    slack = 0.05 if check in (counts, share, median) else 0.0
    low, high = stats.beta.ppf(
        [1e-6, 1 - 1e-6], [spared, spared + 1], [TRIALS - spared + 1, TRIALS - spared]
    )
    assert np.nan_to_num(low) - slack <= stated.control.spared <= high + slack
    assert stated.false_alarm >= stated.control.spared


@pytest.mark.parametrize("check", [law, laws, variance])
def test_the_chance_of_other_controls_is_bounded(check):
    """One point where laws differ, and one entry of many, decide at least as rarely as all."""
    n, rng = 60, np.random.default_rng(32)
    right = gauss(n)
    stated = check(gauss(n, 0.9), right).control.spared
    spared = sum(not check(rng.normal(0.9, size=n), right).control.rejected for _ in range(TRIALS))
    assert stats.binom.sf(spared - 1, TRIALS, stated) > 1e-6
    assert stated < 0.9


def test_the_chance_of_a_wrong_correlation_counts_the_noise_that_it_adds():
    """Below the diagonal the factor of a wrong covariance varies more than that of a right one."""
    n, rng = 33, np.random.default_rng(34)
    root = np.array([[1.0, 0.0], [1.5, 1.0]])
    right = np.stack([gauss(n), rng.permutation(gauss(n))], axis=1)
    right = right @ np.linalg.inv(np.linalg.cholesky(np.cov(right.T))).T

    def judged(wrong):
        return covariance_equals(
            "c", samples=right, expected=np.eye(2), control=Control("w", samples=wrong)
        ).control

    stated = judged(right @ root.T).spared
    spared = sum(not judged(rng.normal(size=(n, 2)) @ root.T).rejected for _ in range(2 * TRIALS))
    assert stats.binom.sf(spared - 1, 2 * TRIALS, stated) > 1e-3
    assert stats.binom.cdf(spared, 2 * TRIALS, stated) > 1e-3


def test_the_chance_of_a_median_does_not_trust_that_samples_are_gaussian():
    """Four fifths are far beyond the claimed median: their mean is further than their median."""
    n, rng = 40, np.random.default_rng(35)
    right, low = gauss(n), int(0.2 * n)
    stated = median(np.where(np.arange(n) < low, -1.0, 10.0), right).control.spared
    spared = sum(
        not median(np.where(rng.random(n) < 0.2, -1.0, 10.0), right).control.rejected
        for _ in range(TRIALS)
    )
    assert 1e-3 < stats.binom.cdf(spared, TRIALS, stated) < 1 - 1e-3


def test_the_chance_of_a_skewed_control_is_the_level_that_its_test_has():
    """A control a little beyond the bound, whose samples have a long tail below."""
    skewed = 0.3 - gauss(40) ** 2
    wrong = skewed - skewed.mean() + 0.45 * skewed.std(ddof=1)
    stated = above(wrong, gauss(40)).control
    own = mean_exceeds("c", samples=wrong, bound=0, control=Control("w", bound=10)).false_pass
    assert stated.rejected and 1e-5 < stated.spared <= own


def test_a_sequential_control_is_let_pass_as_often_as_stated():
    """By the law of the whole procedure, for a wrong share just above the bound."""
    test, rng = SequentialTest(bound=0.5, most=60, false_alarm=1e-4), np.random.default_rng(33)
    right = [True] * 60
    wrong = [True, False, True, True] * 15
    stated = test.exceeds("c", right, control=Control("w", outcomes=wrong)).control.spared
    spared = 0
    for _ in range(TRIALS):
        fresh = Control("w", outcomes=[*(rng.random(60) < 45.5 / 61)])
        spared += not test.exceeds("c", right, control=fresh).control.rejected
    assert (
        min(stats.binom.cdf(spared, TRIALS, stated), stats.binom.sf(spared - 1, TRIALS, stated))
        > 1e-6
    )


@pytest.mark.parametrize("check", [above, share])
def test_a_control_at_the_bound_is_let_pass_at_the_level(check):
    """Noise that takes it a little beyond the bound is not taken for the truth."""
    stated = check(gauss(40, 0.3), gauss(40))
    assert stated.control.rejected and stated.control.spared == pytest.approx(1e-6)


def test_every_element_must_pass():
    """A control of two elements is let pass as rarely as the one that is further away."""
    right = np.stack([gauss(40), gauss(40)], axis=1)
    one = mean(right + np.array([0.9, 0.0]), right)
    both = mean(right + np.array([0.9, 0.3]), right)
    assert one.control.spared == both.control.spared


def test_a_control_without_noise_is_always_rejected_again():
    """The record names no chance where there is none."""
    wrong = Control("w", observed=0.0)
    evidence = exceeds("c", observed=1.0, bound=0.5, control=wrong)
    assert evidence.control.spared == 0 and "spared" not in evidence.to_json()["control"]
    assert type(evidence).from_json(evidence.to_json()) == evidence
