"""Sequential tests: level and power by enumeration, draws, refusals."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from claimbook import Control, Evidence, SequentialTest, share_exceeds


def a_test(bound=0.5, most=64, false_alarm=1e-4):
    """The test that most chapters use."""
    return SequentialTest(bound=bound, most=most, false_alarm=false_alarm)


def probability(test, share):
    """Probability that a share is confirmed, over all sequences of outcomes."""
    found = 0.0
    for outcomes in product((False, True), repeat=test.most):
        hits = sum(outcomes)
        if test.decision(outcomes) == "confirmed":
            found += share**hits * (1 - share) ** (test.most - hits)
    return found


@pytest.mark.parametrize("bound", [0.3, 0.5])
def test_a_share_up_to_the_bound_is_rarely_confirmed_and_the_reach_mostly(bound):
    """By enumeration of all sequences of twelve outcomes."""
    test = a_test(bound, most=12, false_alarm=0.05)
    evidence = test.exceeds("s", [True] * 12, control=Control("no", outcomes=[False] * 12))
    for share in (bound / 2, bound):
        assert 0 < probability(test, share) <= 0.05
    assert probability(test, bound + evidence.resolution) == pytest.approx(0.99, abs=1e-9)


def test_the_level_holds_at_the_size_that_chapters_use():
    """A walk that stays on the bound for 4000 times 64 draws, at a level of one twentieth."""
    test, rng = a_test(false_alarm=0.05), np.random.default_rng(1)
    found = [test.decision(rng.random(64) < 0.5) for _ in range(4000)]
    assert stats.binom.sf(found.count("confirmed") - 1, 4000, 0.05) > 1e-6
    assert found.count("confirmed") > 40  # nor is the level wasted


def test_decisions_are_taken_as_soon_as_the_ratio_reaches_them():
    """Seventeen successes: 2^18 (1 - 2^-18) / 18 is the first of its kind above ten thousand."""
    test = a_test()
    n = np.arange(1, 20)
    ratios = 2.0 ** (n + 1) * (1 - 0.5 ** (n + 1)) / (n + 1)
    first = int(n[ratios >= 1e4][0])
    assert first == 17
    assert test.decision([True] * (first - 1)) == "open"
    assert test.decision([True] * first) == "confirmed"
    assert test.decision([True] * first + [False] * 40) == "confirmed"
    assert test.decision([False] * 40 + [True] * 20) == "turned down"


def test_nothing_is_drawn_beyond_the_decision():
    """Nor less than a test of a fixed number asks for."""
    rng, drawn = np.random.default_rng(3), []

    def some():
        drawn.append(rng.random(4))
        return drawn[-1]

    test = a_test()
    items = test.draw(some, lambda x: x < 0.97, lambda x: x < 0.1)
    assert len(items) == 4 * len(drawn) < 40
    without_last = items[: -len(drawn[-1])]
    assert "open" in [test.decision(np.less(without_last, share)) for share in (0.97, 0.1)]
    assert len(test.draw(lambda: [True], lambda x: x, least=30)) == 30
    assert len(test.draw(lambda: [True] * 10, lambda x: None)) == test.most


def test_what_other_tests_have_drawn_comes_first():
    """Nothing is drawn if it decides, and none of it is lost, though only `most` are looked at."""
    rng, test = np.random.default_rng(5), a_test()
    kept = test.draw(lambda: [rng.random()], lambda x: x < 0.9)
    longer = test.draw(lambda: [rng.random()], lambda x: x < 0.8, kept=kept)
    assert longer[: len(kept)] == kept and len(kept) < len(longer) <= test.most
    shorter = a_test(most=20)
    assert shorter.draw(list, lambda x: x < 0.9, kept=longer) == longer
    control = Control("never", outcomes=[False] * 70)
    assert shorter.exceeds("s", [True] * 18 + [False] * 50, control=control).n == 20


def test_draws_that_do_not_count_are_left_out():
    """And so is their share of the draws that are left."""
    outcomes = [True, None] * 17
    control = Control("never", outcomes=[False, None] * 17)
    evidence = a_test().exceeds("s", outcomes, control=control)
    assert evidence.passed and evidence.n == 17 and evidence.control.rejected
    everyone = a_test().exceeds("s", [True] * 17, control=control)
    assert evidence.false_alarm > everyone.false_alarm  # as 32 draws are left where 64 were


def test_a_control_is_rejected_only_by_a_decision():
    """One that is still open says nothing, unless there are no draws left."""

    def rejected(outcomes):
        control = Control("other", outcomes=outcomes)
        return a_test().exceeds("s", [True] * 20, control=control).control.rejected

    undecided = [True, True, False] * 10
    assert not rejected(undecided) and not rejected([True] * 17)
    assert rejected([False] * 5)
    assert rejected([True, False] * 32)


def test_the_evidence_is_that_of_a_test_of_a_share():
    """It reaches nearly as far as a test of as many draws as this one may take."""
    control = Control("no", outcomes=[False] * 8)
    evidence = a_test().exceeds("s", [True] * 19 + [False], control=control, reason="why")
    assert Evidence.from_json(evidence.to_json()) == evidence
    fixed = share_exceeds(
        "s", successes=60, trials=64, bound=0.5, false_alarm=1e-4, control=Control("n", successes=0)
    )
    for name in ("kind", "sampling", "departure", "expected", "false_pass"):
        assert getattr(evidence, name) == getattr(fixed, name)
    assert fixed.resolution < evidence.resolution < fixed.resolution + 0.03
    assert evidence.observed == 0.95 and evidence.reason == "why"
    failed = a_test().exceeds("s", [False] * 8, control=Control("yes", outcomes=[True] * 20))
    assert not failed.passed and not failed.control.rejected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": 1.0}, r"bound must be in \(0, 1\), got 1"),
        ({"most": 16}, "most is too small .* 0.0001, got 16"),
        ({"most": 0}, "most must be an integer >= 1, got 0"),
        ({"false_alarm": 0.0}, r"false_alarm must be in \(0, 0.5\], got 0"),
    ],
)
def test_refusals(options, message):
    """What the test itself cannot be."""
    with pytest.raises(ValueError, match=message):
        a_test(**options)


@pytest.mark.parametrize("outcomes", [[0.5], [[True]]])
def test_outcomes_are_truth_values(outcomes):
    """As many as there are draws, or fewer."""
    control = Control("no", outcomes=[False] * 8)
    with pytest.raises(ValueError, match="s: outcomes must be at most 64 truth values"):
        a_test().exceeds("s", outcomes, control=control)


def test_nothing_to_look_at():
    """No outcomes, or no draws."""
    with pytest.raises(ValueError, match="s: outcomes must have a draw that counts"):
        a_test().exceeds("s", [None], control=Control("no", outcomes=[False]))
    with pytest.raises(ValueError, match="some must return draws, got none"):
        a_test().draw(list, bool)
    with pytest.raises(ValueError, match=r"least must be an integer in \[0, 64\], got 65"):
        a_test().draw(lambda: [True], bool, least=65)
