"""One-sided checks: level at the bound, power at `resolution`, exactness, refusals.

Level: the quantity is put exactly on the bound, where the claim is just false, and the checks
run at 1 %. The number that pass must be what the level says (exact laws) or less; each test
below fails by chance with probability 1e-6 and side.
"""

import numpy as np
import pytest
from scipy import stats

from claimbook import (
    Control,
    Evidence,
    estimate_below,
    estimate_exceeds,
    mean_below,
    mean_exceeds,
    share_below,
    share_exceeds,
)
from claimbook.student import below

LEVEL = 0.01
TRIALS = 800
MOST = stats.binom.isf(1e-6, TRIALS, LEVEL)
FEWEST = stats.binom.ppf(1e-6, TRIALS, LEVEL)


def mean_up(rng, shift=0.0, level=LEVEL):
    """Few samples."""
    wrong = Control("far below", bound=99)
    samples = 3 + shift + rng.normal(size=6)
    return mean_exceeds("m", samples=samples, bound=3, false_alarm=level, control=wrong)


def mean_down(rng, shift=0.0, level=LEVEL):
    """The other side."""
    wrong = Control("far above", bound=-99)
    samples = 3 - shift + rng.normal(size=6)
    return mean_below("m", samples=samples, bound=3, false_alarm=level, control=wrong)


def one_of_many_means(rng, shift=0.0, level=LEVEL):
    """Twenty columns, correlated; all but one far beyond their bounds."""
    samples = 50.0 + rng.normal(size=(12, 1)) + rng.normal(size=(12, 20))
    samples[:, 7] += shift - 50
    bound = np.zeros(20)
    wrong = Control("one bound wrong", bound=np.where(np.arange(20) == 3, 99.0, bound))
    return mean_exceeds("m", samples=samples, bound=bound, false_alarm=level, control=wrong)


def normal_estimate(rng, shift=0.0, level=LEVEL):
    """Known standard error."""
    return estimate_exceeds(
        "e",
        estimate=1 + shift + 0.2 * rng.normal(),
        error=0.2,
        bound=1,
        false_alarm=level,
        control=Control("0", estimate=0.0),
    )


def student_estimate(rng, shift=0.0, level=LEVEL):
    """Standard error known to 7 degrees of freedom."""
    return estimate_below(
        "e",
        estimate=1 - shift + 0.2 * rng.normal(),
        error=0.2 * np.sqrt(rng.chisquare(7) / 7),
        bound=1,
        freedom=7,
        false_alarm=level,
        control=Control("2", estimate=2.0),
    )


def share_up(rng, shift=0.0, level=LEVEL):
    """Binomial count."""
    hits = rng.binomial(80, 0.6 + shift)
    wrong = Control("none", successes=0)
    return share_exceeds(
        "s", successes=hits, trials=80, bound=0.6, false_alarm=level, control=wrong
    )


def share_down(rng, shift=0.0, level=LEVEL):
    """Two counts, the second certain."""
    hits = [rng.binomial(150, 0.7 - shift), 0]
    wrong = Control("all", successes=150)
    return share_below("s", successes=hits, trials=150, bound=0.7, false_alarm=level, control=wrong)


EXACT = [mean_up, mean_down, normal_estimate, student_estimate]
CONSERVATIVE = [one_of_many_means, share_up, share_down]


@pytest.mark.nightly
@pytest.mark.parametrize("check", EXACT + CONSERVATIVE)
def test_a_false_claim_passes_as_rarely_as_stated(check):
    """At the bound itself, the worst case of the false claims."""
    rng = np.random.default_rng(21)
    passed = sum(check(rng).passed for _ in range(TRIALS))
    assert passed <= MOST
    if check in EXACT:
        assert passed >= FEWEST


def test_level_notices_a_wrong_quantile():
    """Negative control: the normal quantile with six samples."""
    rng = np.random.default_rng(21)
    passed = 0
    for _ in range(TRIALS):
        x = rng.normal(size=6)
        passed += x.mean() > stats.norm.isf(LEVEL) * x.std(ddof=1) / np.sqrt(6)
    assert passed > MOST


@pytest.mark.nightly
@pytest.mark.parametrize("check", EXACT + CONSERVATIVE)
def test_true_claims_pass_at_the_detectable_distance(check):
    """`resolution` promises a power of 0.99: at most 13 misses in 400 (false alarm 2e-4)."""
    rng = np.random.default_rng(22)
    promised = np.median([check(rng).resolution for _ in range(200)])
    if check not in (normal_estimate, share_up, share_down):
        promised *= 1.2  # the promise is for the true spread, estimated here from below
    missed = sum(not check(rng, shift=promised).passed for _ in range(400))
    assert missed <= 13
    assert not all(check(rng, shift=promised / 3).passed for _ in range(100))


@pytest.mark.parametrize("check", EXACT + CONSERVATIVE)
def test_evidence_is_complete(check):
    """Its method names the bound, and the control is rejected."""
    evidence = check(np.random.default_rng(23), shift=0.2, level=1e-3)
    assert evidence.kind == "statistical" and evidence.false_pass >= 1e-3
    assert evidence.sampling == "random" and evidence.departure == "side"
    assert evidence.p_value is None and evidence.error > 0 and evidence.control.rejected
    assert evidence.n >= 1 and not evidence.non_finite()
    assert " bound " in evidence.method and " needed" in evidence.method
    assert 0 < evidence.false_alarm < 1
    assert Evidence.from_json(evidence.to_json()) == evidence


def test_mean_agrees_with_scipy():
    """The verdict must be that of scipy's one-sided t-test, column by column."""
    rng = np.random.default_rng(24)
    wrong = Control("1e9", bound=1e9)
    for shift in np.linspace(0, 4, 9):
        x = rng.normal(size=(9, 3)) + shift
        p = stats.ttest_1samp(x, 0.5, alternative="greater").pvalue
        evidence = mean_exceeds("m", samples=x, bound=0.5, false_alarm=0.01, control=wrong)
        assert evidence.passed == (p.max() < 0.01 / 3)
        worst = np.argmax(p)
        assert evidence.observed == pytest.approx(x[:, worst].mean())
        assert evidence.error == pytest.approx(stats.sem(x[:, worst]))


@pytest.mark.parametrize("trials", [30, 71])
def test_share_agrees_with_scipy(trials):
    """Every count: passes exactly where scipy's exact interval is beyond the bound."""
    wrong_up, wrong_down = Control("0", successes=0), Control("all", successes=trials)
    for hits in range(trials + 1):
        up = share_exceeds(
            "s", successes=hits, trials=trials, bound=0.3, false_alarm=1e-3, control=wrong_up
        )
        down = share_below(
            "s", successes=hits, trials=trials, bound=0.3, false_alarm=1e-3, control=wrong_down
        )
        low = stats.binomtest(hits, trials, alternative="greater").proportion_ci(1 - 1e-3).low
        high = stats.binomtest(hits, trials, alternative="less").proportion_ci(1 - 1e-3).high
        assert up.passed == (low > 0.3) and down.passed == (high < 0.3)
        assert f"lower bound {low:.3g};" in up.method
        assert f"upper bound {high:.3g};" in down.method


def test_needed_count_is_the_least_that_passes():
    """The number named by `method` decides."""
    wrong = Control("0", successes=0)
    at, short = (
        share_exceeds("s", successes=k, trials=100, bound=0.5, control=wrong) for k in (74, 73)
    )
    assert at.passed and not short.passed and "; 74 of 100 needed" in short.method
    wrong = Control("all", successes=100)
    at, over = (
        share_below("s", successes=k, trials=100, bound=0.5, control=wrong) for k in (26, 27)
    )
    assert at.passed and not over.passed and "; 26 of 100 needed" in over.method


def test_every_column_must_be_on_its_side():
    """Bonferroni: a column that passes alone may fail among many, and one bad column decides."""
    estimate, error = np.array([1.0, 5.0, 5.0]), 0.2
    wrong = Control("0", estimate=0.0)
    alone = estimate_exceeds("e", estimate=1.0, error=error, bound=0, control=wrong)
    many = estimate_exceeds(
        "e", estimate=np.r_[1.0, [5.0] * 9], error=error, bound=0, control=wrong
    )
    assert alone.passed and not many.passed and "worst of 10, Bonferroni" in many.method
    assert many.n == 10 and many.observed == 1.0
    bounds = np.array([0.0, 4.9, 0.0])
    evidence = estimate_exceeds("e", estimate=estimate, error=error, bound=bounds, control=wrong)
    assert not evidence.passed and evidence.observed == 5.0 and evidence.expected == 4.9


def test_degrees_of_freedom_may_differ():
    """The element that lacks most is reported, not the one with the smallest margin."""
    wrong = Control("0", estimate=0.0)
    arguments = dict(estimate=[1.0, 2.0], error=0.1, bound=0.0, false_alarm=0.01, control=wrong)
    evidence = estimate_exceeds("e", freedom=[300, 1], **arguments)
    assert evidence.observed == 2.0 and not evidence.passed
    assert estimate_exceeds("e", freedom=[300, 30], **arguments).passed


def test_a_column_without_noise_is_on_its_side_or_not():
    """It has no standard error to hide behind and none to be lost in."""
    x = np.c_[np.random.default_rng(25).normal(size=50) + 9, np.ones(50)]
    wrong = Control("99", bound=99)
    assert mean_exceeds("m", samples=x, bound=[0, 0.99], control=wrong).passed
    evidence = mean_exceeds("m", samples=x, bound=[0, 1], control=wrong)
    assert not evidence.passed and evidence.observed == 1 and not evidence.non_finite()


def test_a_value_at_the_bound_fails():
    """Strictly on the claimed side."""
    wrong = Control("-1", estimate=-1.0)
    quantile = stats.norm.isf(1e-6)
    for shift, passed in ((1 + 1e-12, True), (1 - 1e-12, False)):
        evidence = estimate_exceeds(
            "e", estimate=quantile * shift, error=1.0, bound=0, control=wrong
        )
        assert evidence.passed is passed


def test_the_control_must_fail_to_show_the_claim():
    """A control on the claimed side is reported as such."""
    x = np.random.default_rng(26).normal(size=100)
    assert not mean_below(
        "m", samples=x, bound=1, control=Control("1", samples=x - 1)
    ).control.rejected
    assert mean_below("m", samples=x, bound=1, control=Control("1", samples=x + 1)).control.rejected


@pytest.mark.parametrize(("needed", "freedom", "margin"), [(4.8, 5, 9.0), (3, 40, 4), (2, 11, 1.5)])
def test_chance_that_a_repetition_fails(needed, freedom, margin):
    """Against scipy's noncentral t."""
    expected = stats.nct.cdf(needed, freedom, margin)
    assert below(needed, freedom, margin) == pytest.approx(expected, rel=1e-6)
    assert below(needed, np.inf, margin) == stats.norm.cdf(needed - margin)


def test_chance_that_a_repetition_fails_is_right_in_law():
    """Fresh samples with the mean and spread seen fail as often as stated."""
    rng = np.random.default_rng(27)
    chance = below(float(stats.t.isf(0.01, 7)), 7, 4.0)
    fails = 0
    for _ in range(TRIALS):
        x = rng.normal(size=8) + 4 / np.sqrt(8)
        fails += x.mean() <= stats.t.isf(0.01, 7) * stats.sem(x)
    assert stats.binom.cdf(fails, TRIALS, chance) > 1e-6
    assert stats.binom.sf(fails - 1, TRIALS, chance) > 1e-6


ONE = Control("one", bound=0.9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_exceeds("m", samples=[1.0], bound=0, control=ONE), "at least two replicas"),
        (lambda: mean_below("m", samples=3.0, bound=0, control=ONE), "at least two replicas"),
        (lambda: mean_below("m", samples=[1.0, 1], bound=0, control=ONE), "do not vary"),
        (lambda: mean_exceeds("m", samples=[1.0, np.nan], bound=0, control=ONE), "finite, got 1"),
        (
            lambda: mean_exceeds("m", samples=np.eye(3), bound=[0, 1], control=ONE),
            r"bound must have shape \(3,\) or be a number, got \(2,\)",
        ),
        (
            lambda: mean_exceeds("m", samples=[1.0, 2], bound=0, false_alarm=0.7, control=ONE),
            r"false_alarm must be in \(0, 0.5\], got 0.7",
        ),
        (
            lambda: share_exceeds("s", successes=9, trials=8, bound=0.1, control=ONE),
            "at most trials",
        ),
        (lambda: share_below("s", successes=0, trials=0, bound=0.1, control=ONE), "at least 1"),
        (
            lambda: share_below("s", successes=0.5, trials=9, bound=0.1, control=ONE),
            "successes must be counts, got 0.5 to 0.5",
        ),
        (
            lambda: share_below("s", successes=-1, trials=9, bound=0.1, control=ONE),
            "successes must be counts, got -1 to -1",
        ),
        (
            lambda: share_below("s", successes=1, trials=99, bound=1.0, control=ONE),
            r"bound must be in \(0, 1\), got 1 to 1",
        ),
        (
            lambda: share_exceeds("s", successes=9, trials=9, bound=0.5, control=ONE),
            "too few for any outcome to pass at 1e-06",
        ),
        (
            lambda: share_exceeds("s", successes=[1, 2], trials=[9, 9, 9], bound=0.1, control=ONE),
            "must have the same shape",
        ),
        (
            lambda: estimate_exceeds("e", estimate=1, error=0.0, bound=0, control=ONE),
            "error must be positive, got 0",
        ),
        (
            lambda: estimate_below("e", estimate=1, error=[1, -2], bound=2, control=ONE),
            "error must be positive, got -2",
        ),
        (
            lambda: estimate_below("e", estimate=1, error=1, bound=2, freedom=0.5, control=ONE),
            "freedom must be at least 1, got 0.5",
        ),
        (
            lambda: estimate_below("e", estimate=[1, 2], error=1, bound=[2, 2, 2], control=ONE),
            "must have the same shape",
        ),
        (
            lambda: estimate_below("e", estimate=[], error=1, bound=2, control=ONE),
            "must not be empty",
        ),
        (
            lambda: estimate_below("e", estimate=1, error=1, bound=9, control=Control("x", n=3)),
            "cannot replace n",
        ),
    ],
)
def test_bad_inputs_are_named(call, message):
    """Data from which no verdict can follow raise instead of passing."""
    with pytest.raises(ValueError, match=message):
        call()


def test_estimate_counts_its_units_and_not_its_elements():
    """Three estimates from one set of ten replicas were reported as n = 3."""
    wrong = Control("less", estimate=0.0)
    told = {"estimate": [2.0, 2.0, 2.0], "error": 0.1, "bound": 0.5, "control": wrong}
    assert estimate_exceeds("e", **told).n == 3
    assert estimate_exceeds("e", freedom=9, false_alarm=1e-3, **told).n == 10
    assert estimate_exceeds("e", n=40, **told).n == 40
    with pytest.raises(ValueError, match="n must be an integer >= 1, got 0"):
        estimate_exceeds("e", n=0, **told)
