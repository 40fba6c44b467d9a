"""P-values of the checks: their range, their level and their direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from claimbook import (
    Control,
    binomial,
    covariance_equals,
    equal_laws,
    estimate_exceeds,
    follows_law,
    identity,
    mean_equals,
    mean_exceeds,
    share_exceeds,
)

few = settings(max_examples=15, derandomize=True, deadline=None)
seeds = st.integers(0, 2**32)
LEVELS = np.array([0.01, 0.05, 0.2, 0.5])
ALARM = 0.05


def _hold_their_level(p_values: np.ndarray) -> None:
    """Independent p-values under the null fall below each level no more often than that."""
    assert np.all((p_values >= 0) & (p_values <= 1))
    for level in LEVELS:
        below = np.count_nonzero(p_values <= level)
        assert stats.binom.sf(below - 1, p_values.size, level) > 1e-6


@few
@given(st.integers(8, 40), st.floats(0.2, 0.8))
def test_binomial_p_values_hold_their_level_exactly(trials: int, share: float) -> None:
    """By enumeration of all outcomes; beyond the mean they fall with every success."""
    control = Control("all", successes=trials)
    found = [
        binomial("c", successes=k, trials=trials, expected=share, false_alarm=0.5, control=control)
        for k in range(trials + 1)
    ]
    p_values = np.array([each.p_value for each in found])
    law = stats.binom.pmf(np.arange(trials + 1), trials, share)
    for level in LEVELS:
        assert law[p_values <= level].sum() <= level + 1e-12
    mean = int(np.ceil(trials * share))
    assert np.all(np.diff(p_values[mean:]) <= 1e-12)
    assert [each.passed for each in found] == (p_values > 0.5).tolist()


@pytest.mark.nightly
@few
@given(st.integers(30, 80), st.floats(0.2, 0.6))
def test_a_share_at_its_bound_is_rarely_said_to_exceed_it(trials: int, bound: float) -> None:
    """By enumeration: and if an outcome passes, so does every larger one."""
    passed = [
        share_exceeds(
            "c", successes=k, trials=trials, bound=bound, false_alarm=ALARM,
            control=Control("none", successes=0),
        ).passed
        for k in range(trials + 1)
    ]  # fmt: skip
    assert passed == sorted(passed)
    assert stats.binom.pmf(np.flatnonzero(passed), trials, bound).sum() <= ALARM


@pytest.mark.nightly
def test_p_values_under_the_null_are_not_too_small() -> None:
    """Four tests on 150 simulated draws each; the wrong standard deviation is noticed."""
    rng = np.random.default_rng(5)
    options = {"check": "c", "false_alarm": ALARM}
    means, wrong, laws, pairs, matrices = [], [], [], [], []
    for _ in range(150):
        x, y = rng.standard_normal((2, 40))
        shifted = Control("shifted", samples=x + 9)
        means.append(mean_equals(samples=x, expected=0, control=shifted, **options).p_value)
        wrong.append(
            mean_equals(
                samples=x, expected=0, standard_deviation=0.5, control=shifted, **options
            ).p_value
        )
        laws.append(follows_law(samples=x, cdf=stats.norm.cdf, control=shifted, **options).p_value)
        pairs.append(equal_laws(samples=x, reference=y, control=shifted, **options).p_value)
        matrices.append(
            covariance_equals(
                samples=x.reshape(20, 2), expected=np.eye(2),
                control=Control("scaled", samples=5 * x.reshape(20, 2)), **options,
            ).p_value
        )  # fmt: skip
    for p_values in (means, laws, pairs, matrices):
        _hold_their_level(np.array(p_values))
    with pytest.raises(AssertionError):
        _hold_their_level(np.array(wrong))


@few
@given(seeds, st.floats(0.0, 2.0), st.floats(0.1, 1.0))
def test_further_away_is_less_likely(seed: int, shift: float, more: float) -> None:
    """P-values fall with the distance from the claim, and do not depend on the unit."""
    x = np.random.default_rng(seed).standard_normal(50)
    mean, control = x.mean(), Control("far", expected=1e3)

    def p_value(distance: float, unit: float = 1.0) -> float:
        found = mean_equals(
            "c", samples=unit * x, expected=unit * (mean + distance), control=control
        ).p_value
        assert found is not None
        return found

    assert 0 <= p_value(shift + more) < p_value(shift) <= 1
    assert p_value(shift, 1e4) == pytest.approx(p_value(shift), rel=1e-6)
    one, two = (
        mean_exceeds("c", samples=x, bound=bound, control=Control("below", bound=1e3)).passed
        for bound in (mean - shift - more, mean - shift)
    )
    assert one >= two


@few
@given(st.floats(-5, 5), st.floats(0.1, 3.0), st.floats(-9, 9), st.integers(1, 60))
def test_estimates_pass_where_their_confidence_bound_does(
    value: float, error: float, bound: float, freedom: int
) -> None:
    """By the quantile of Student's law, written out."""
    found = estimate_exceeds(
        "c", estimate=value, error=error, bound=bound, freedom=freedom, false_alarm=ALARM,
        control=Control("far", bound=1e4),
    )  # fmt: skip
    assert found.passed == (value - stats.t.isf(ALARM, freedom) * error > bound)


@few
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6), st.floats(0, 10), st.floats(-20, 20))
def test_an_identity_looks_at_the_worst_element(
    values: list[float], tolerance: float, offset: float
) -> None:
    """One element off decides, wherever it stands."""
    for place in range(len(values)):
        moved = np.array(values)
        moved[place] += offset
        found = identity(
            "c", observed=moved, expected=values, tolerance=tolerance,
            control=Control("far", observed=moved + 1e5),
        )  # fmt: skip
        assert found.passed == bool(np.abs(moved - values).max() <= tolerance)
        assert found.control.rejected
