"""Calibration and power of the statistical checks.

Calibration: each check runs at a false-alarm level of 1 % on many data sets for which
its claim is true. The number of failures must be what the level says (exact null laws)
or less; the tests below fail by chance with probability 1e-6 each and side.
"""

import numpy as np
import pytest
from scipy import stats

from claimbook import (
    Control,
    binomial,
    covariance_equals,
    equal_laws,
    follows_law,
    mean_equals,
    median_equals,
    rate,
    statistic_below,
)

LEVEL = 0.01
TRIALS = 800
SIZES = np.array([100.0, 200, 400, 800, 1600])
SIGMA = np.array([[2.0, 0.7, 0.0], [0.7, 1.0, -0.3], [0.0, -0.3, 0.5]])
ROOT = np.linalg.cholesky(SIGMA)


def t_test(rng, shift=0.0, level=LEVEL):
    """Single mean, few samples."""
    samples = rng.normal(size=6)
    return mean_equals(
        "mean",
        samples=samples + shift,
        expected=0,
        false_alarm=level,
        control=Control("1", expected=9),
    )


def bonferroni_t_test(rng, shift=0.0, level=LEVEL):
    """Twenty independent means at once."""
    samples = rng.normal(size=(12, 4, 5))
    samples[:, 2, 3] += shift
    return mean_equals(
        "means",
        samples=samples,
        expected=np.zeros((4, 5)),
        false_alarm=level,
        control=Control("1", expected=9),
    )


def z_test(rng, shift=0.0, level=LEVEL):
    """Known standard deviation."""
    return mean_equals(
        "mean",
        samples=3 * rng.normal(size=5) + shift,
        expected=0,
        standard_deviation=3,
        false_alarm=level,
        control=Control("9", expected=99),
    )


def sign_test(rng, shift=0.0, level=LEVEL):
    """Skewed samples, two columns; `shift` is a probability moved across the median."""
    samples = np.log(2) - rng.exponential(size=(40, 2))
    samples[rng.random(40) < 2 * shift, 1] = 9.0
    return median_equals(
        "median",
        samples=samples,
        expected=0,
        false_alarm=level,
        control=Control("9", expected=99),
    )


def two_laws(rng, shift=0.0, level=LEVEL):
    """Unequal sample sizes; `shift` is a distance between the laws."""
    reference = rng.uniform(size=90)
    reference[rng.random(90) < shift] = 2.0
    return equal_laws(
        "law",
        samples=rng.uniform(size=140),
        reference=reference,
        false_alarm=level,
        control=Control("shifted", reference=reference + 1),
    )


def one_law(rng, shift=0.0, level=LEVEL):
    """`shift` is the distance between the laws."""
    samples = rng.uniform(size=50)
    samples[rng.random(50) < shift] = 1.0
    return follows_law(
        "law",
        samples=samples,
        cdf=lambda x: np.clip(x, 0, 1),
        false_alarm=level,
        control=Control("squared", samples=samples**9),
    )


def counts(rng, shift=0.0, level=LEVEL):
    """Successes."""
    return binomial(
        "count",
        successes=rng.binomial(400, 0.3 + shift),
        trials=400,
        expected=0.3,
        false_alarm=level,
        control=Control("half", expected=0.9),
    )


def covariance(rng, shift=0.0, level=LEVEL):
    """`shift` is a variance added to the first coordinate."""
    samples = rng.normal(size=(25, 3)) @ ROOT.T
    samples[:, 0] += np.sqrt(shift) * rng.normal(size=25)
    return covariance_equals(
        "covariance",
        samples=samples,
        expected=SIGMA,
        false_alarm=level,
        control=Control("identity", expected=9 * np.eye(3)),
    )


def replicated_rate(rng, shift=0.0, level=LEVEL):
    """Log-normal values whose noise is shared by all sizes: slopes stay independent."""
    noise = 0.05 * rng.normal(size=(12, 1)) + 0.05 * rng.normal(size=(12, 5))
    return rate(
        "rate",
        sizes=SIZES,
        values=SIZES ** (-0.5 + shift) * np.exp(noise),
        exponent=-0.5,
        false_alarm=level,
        control=Control("1", exponent=-2),
    )


def pooled_rate(rng, shift=0.0, level=LEVEL):
    """Few replicas with a common spread."""
    return rate(
        "rate",
        sizes=SIZES,
        values=SIZES ** (-0.5 + shift) * np.exp(0.1 * rng.normal(size=(4, 5))),
        exponent=-0.5,
        pooled=True,
        false_alarm=level,
        control=Control("1", exponent=-2),
    )


EXACT = [t_test, z_test, replicated_rate, pooled_rate]
CONSERVATIVE = [bonferroni_t_test, covariance, counts, sign_test, two_laws, one_law]


@pytest.mark.nightly
@pytest.mark.parametrize("check", EXACT + CONSERVATIVE)
def test_false_alarms_are_as_stated(check):
    """A wrong null law shows in 800 true claims: a rate of 5 % is seen with power 0.99."""
    rng = np.random.default_rng(11)
    failures = sum(not check(rng).passed for _ in range(TRIALS))
    assert failures <= stats.binom.isf(1e-6, TRIALS, LEVEL)
    if check in EXACT:
        assert failures >= stats.binom.ppf(1e-6, TRIALS, LEVEL)


def test_calibration_notices_a_wrong_null_law():
    """Negative control: a normal instead of Student's t law for six samples."""
    rng = np.random.default_rng(11)
    failures = 0
    for _ in range(TRIALS):
        x = rng.normal(size=6)
        failures += abs(x.mean()) > stats.norm.isf(LEVEL / 2) * x.std(ddof=1) / np.sqrt(6)
    assert failures > stats.binom.isf(1e-6, TRIALS, LEVEL)


@pytest.mark.nightly
@pytest.mark.parametrize("check", EXACT + CONSERVATIVE)
def test_detectable_discrepancies_are_detected(check):
    """`resolution` promises a power of 0.99: at most 13 misses in 400 (false alarm 2e-4)."""
    rng = np.random.default_rng(12)
    promised = np.median([check(rng).resolution for _ in range(200)])
    if check in (t_test, bonferroni_t_test, replicated_rate, pooled_rate):
        promised *= 1.15  # the promise is for the true spread, estimated here from below
    missed = sum(check(rng, shift=promised).passed for _ in range(400))
    assert missed <= 13


@pytest.mark.nightly
@pytest.mark.parametrize("check", EXACT + CONSERVATIVE)
def test_detectable_is_not_far_too_pessimistic(check):
    """A third of the promised discrepancy is missed at least sometimes, or it says nothing."""
    rng = np.random.default_rng(13)
    promised = np.median([check(rng).resolution for _ in range(200)])
    assert any(check(rng, shift=promised / 3).passed for _ in range(100))


def test_p_value_decides():
    """The stored p-value and the nominal level must reproduce the verdict."""
    rng = np.random.default_rng(14)
    for check in EXACT + CONSERVATIVE:
        for shift in (0.0, 0.2):
            evidence = check(rng, shift=shift)
            assert evidence.passed == (evidence.p_value > LEVEL)
            assert evidence.false_alarm >= LEVEL * (1 - 1e-9)


def test_tolerance_widens_the_mean_test():
    """A finite-size allowance must be added to, not replace, the noise."""
    samples = np.random.default_rng(15).normal(0.05, 1, size=100_000)
    wrong = Control("doubled", expected=0.2)
    assert not mean_equals("mean", samples=samples, expected=0, control=wrong).passed
    evidence = mean_equals("mean", samples=samples, expected=0, tolerance=0.06, control=wrong)
    assert evidence.passed and evidence.control.rejected and evidence.resolution > 0.06


def test_sign_test_keeps_its_level_where_a_t_test_does_not():
    """Long tails to one side: the t-test of the mean says that its level is no longer nominal."""
    samples = np.exp(3 * np.random.default_rng(15).normal(size=60))
    wrong = Control("far", expected=1e6)
    evidence = median_equals("median", samples=samples, expected=1, control=wrong)
    assert (
        evidence.passed
        and evidence.control.rejected
        and evidence.false_alarm == pytest.approx(1e-6)
    )
    mean = mean_equals("mean", samples=samples, expected=np.exp(4.5), control=wrong)
    assert mean.false_alarm > 1e-2


def test_tolerance_of_the_median_counts_only_what_is_beyond_it():
    """Samples within the tolerance are on neither side; ties with its ends are not beyond."""
    samples = np.repeat([0.1, -0.2], [50, 5])
    wrong = Control("far", expected=1.0)
    assert not median_equals("m", samples=samples, expected=-0.2, control=wrong).passed
    assert median_equals("m", samples=samples, expected=0, tolerance=0.1, control=wrong).passed
    with pytest.raises(ValueError, match="too few for any outcome to fail"):
        median_equals("m", samples=samples[:20], expected=0, control=wrong)


def test_elements_without_noise_must_agree_exactly():
    """A structurally zero entry has no standard error to hide behind."""
    samples = np.random.default_rng(16).normal(size=(50, 2))
    samples[:, 1] = 0
    wrong = Control("1", expected=[5, 5])
    evidence = mean_equals("zero", samples=samples, expected=[0, 0], control=wrong)
    assert evidence.passed
    evidence = mean_equals("zero", samples=samples, expected=[0, 1e-3], control=wrong)
    assert not evidence.passed and evidence.p_value == 0 and not evidence.non_finite()


def test_control_of_each_replaceable_input_is_rejected():
    """Shuffled or wrong inputs must be seen through every replaceable name."""
    rng = np.random.default_rng(17)
    x, y = rng.normal(size=2000), rng.normal(size=3000)
    d = np.array([10.0, 20, 40, 80])
    values = d**-1 * np.exp(0.05 * rng.normal(size=(20, 4)))
    for evidence in (
        equal_laws("law", samples=x, reference=y, control=Control("wide", samples=2 * x)),
        equal_laws("law", samples=x, reference=y, control=Control("wide", reference=2 * y)),
        follows_law("law", samples=x, cdf=stats.norm.cdf, control=Control("t", cdf=stats.t(2).cdf)),
        binomial("n", successes=500, trials=1000, expected=0.5, control=Control("n", trials=2000)),
        rate("rate", sizes=d, values=values, exponent=-1, control=Control("root", sizes=d**2)),
        rate("rate", sizes=d, values=values, exponent=-1, control=Control("sq", values=values**2)),
        statistic_below(
            "max",
            statistic=1.0,
            threshold=6.0,
            false_alarm=1e-6,
            how="largest of 100 normals",
            n=100,
            control=Control("off", statistic=7.0),
        ),
    ):
        assert evidence.passed and evidence.control.rejected, evidence


def test_rate_without_replicas_compares_the_slope():
    """A deterministic remainder of the wrong order must be refused."""
    values = 2 / SIZES + 5 / SIZES**2
    evidence = rate(
        "remainder",
        sizes=SIZES,
        values=values,
        exponent=-1,
        tolerance=0.05,
        control=Control("root", exponent=-0.5),
    )
    assert evidence.passed and evidence.control.rejected
    assert evidence.false_alarm == 0 and evidence.p_value is None
    with pytest.raises(ValueError, match="tolerance must be given"):
        rate("r", sizes=SIZES, values=values, exponent=-1, control=Control("root", exponent=-0.5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [1, 2, 4]}, "at least 4 distinct"),
        ({"sizes": [1, 2, 4, 4]}, "at least 4 distinct"),
        ({"values": np.ones((5, 3))}, r"shape \(4,\) or \(r, 4\), got \(5, 3\)"),
        ({"values": -np.ones(4)}, "values must be positive, got -1"),
        ({"values": np.ones((2, 4))}, "at least 3 replicas, got 2"),
        ({"tolerance": 0.4, "values": np.ones(4)}, "inconclusive.*resolution = 0.25"),
    ],
)
def test_rate_refuses_what_cannot_show_a_rate(change, message):
    """Too few sizes or a useless interval must not become a verdict."""
    good = {"sizes": [1, 2, 4, 8], "values": np.ones(4), "exponent": 0, "tolerance": 0.1}
    with pytest.raises(ValueError, match=message):
        rate("rate", control=Control("one", exponent=1), **{**good, **change})


def test_inconclusive_rate_is_no_rejection():
    """A claim or control that is too noisy to say anything neither passes nor is rejected."""
    noisy = np.exp(3 * np.random.default_rng(18).normal(size=(4, 4)))
    sharp = np.exp(1e-3 * np.random.default_rng(1).normal(size=(4, 4)))
    wrong = Control("noise", values=noisy)
    evidence = rate("rate", sizes=[1, 2, 4, 8], values=sharp, exponent=0, control=wrong)
    assert evidence.passed and not evidence.control.rejected
    wrong = Control("one", exponent=1)
    evidence = rate("rate", sizes=[1, 2, 4, 8], values=noisy, exponent=0, control=wrong)
    assert not evidence.passed and not evidence.control.rejected
    assert evidence.method.startswith("inconclusive") and evidence.false_alarm > 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: mean_equals("m", samples=[1.0], expected=0, control=c), "at least two replicas"),
        (lambda c: mean_equals("m", samples=[1.0, 1.0], expected=0, control=c), "do not vary"),
        (
            lambda c: mean_equals("m", samples=np.eye(3), expected=[0, 0], control=c),
            "same shape",
        ),
        (
            lambda c: mean_equals("m", samples=np.eye(3), expected=0, false_alarm=0, control=c),
            r"false_alarm must be in \(0, 0.5\], got 0",
        ),
        (
            lambda c: covariance_equals("c", samples=np.eye(3), expected=np.eye(3), control=c),
            "more than 3 draws",
        ),
        (
            lambda c: covariance_equals(
                "c", samples=np.eye(9)[:, :2], expected=[[1, 2], [2, 1]], control=c
            ),
            "non-degenerate",
        ),
        (
            lambda c: equal_laws("e", samples=[1.0, 2], reference=[1.0, 2], control=c),
            "more than 2 and 2",
        ),
        (
            lambda c: follows_law("f", samples=[1.0, 2], cdf=lambda x: x, control=c),
            "one probability per sample",
        ),
        (
            lambda c: follows_law("f", samples=[0.0, 0.5], cdf=lambda x: 1 - x, control=c),
            "non-decreasing",
        ),
    ],
)
def test_bad_samples_are_named(call, message):
    """Data from which no verdict can follow raise instead of passing."""
    with pytest.raises(ValueError, match=message):
        call(Control("ones", samples=np.ones(2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 3}, "too few for any outcome to fail"),
        ({"successes": 101}, "at most trials"),
        ({"successes": 1.5}, "successes must be counts"),
        ({"expected": 1.5}, r"expected must be in \[0, 1\]"),
    ],
)
def test_bad_counts_are_named(change, message):
    """Counts that are none, or too few to fail, raise instead of passing."""
    good = {"successes": 3, "trials": 100, "expected": 0.5}
    with pytest.raises(ValueError, match=message):
        binomial("b", control=Control("one", expected=1), **{**good, **change})


def test_resolution_of_many_is_measured_on_the_largest_value():
    """A mean near zero beside large ones made a fine check look coarse."""
    samples = np.random.default_rng(3).normal([0.01, 5.0], size=(400, 2))
    evidence = mean_equals(
        "two", samples=samples, expected=[0.01, 5.0], control=Control("0", expected=0)
    )
    assert evidence.scale == 5.0
    assert evidence.relative_resolution() == evidence.resolution / 5.0
    wide = covariance_equals(
        "cov",
        samples=samples @ np.diag([1, 2]),
        expected=np.diag([1.0, 4.0]),
        control=Control("eye", expected=np.eye(2)),
    )
    assert wide.scale == 4.0
