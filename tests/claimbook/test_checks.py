"""Identities and inequalities, and the controls every check carries."""

import numpy as np
import pytest

from claimbook import (
    Control,
    Evidence,
    below,
    exceeds,
    identity,
    ordering,
    within,
)


def test_identity_reports_the_worst_element():
    """An average would hide one wrong entry among many."""
    observed = np.zeros((3, 4))
    observed[1, 2] = 1e-3
    evidence = identity(
        "zeros", observed=observed, expected=0, tolerance=1e-2, control=Control("one", expected=1)
    )
    assert (evidence.observed, evidence.expected, evidence.n) == (1e-3, 0, 12)
    assert evidence.passed and evidence.control.rejected and evidence.false_alarm == 0
    assert not identity(
        "zeros", observed=observed, expected=0, tolerance=1e-4, control=Control("one", expected=1)
    ).passed


def test_identity_compares_both_parts_of_complex_numbers():
    """Dropping the imaginary part would accept a wrong branch of a square root."""
    z = np.array([1 + 2j, 3 - 1j])
    evidence = identity(
        "root", observed=z, expected=z, tolerance=0, control=Control("conjugate", expected=z.conj())
    )
    assert evidence.passed and evidence.control.rejected and evidence.n == 4
    assert identity(
        "real", observed=1 + 0j, expected=1, tolerance=0, control=Control("i", observed=1j)
    ).passed


def test_relative_tolerance_is_fixed_by_the_claim():
    """A control must not widen its own tolerance by being large."""
    evidence = identity(
        "scaled",
        observed=1e6 + 1,
        expected=1e6,
        tolerance=1e-5,
        relative=True,
        control=Control("a million times", expected=1e12, observed=1.000001e12 + 1e8),
    )
    assert evidence.error == 10 and evidence.control.rejected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observed": [1.0, np.nan]}, "observed must be finite, got 1 NaN"),
        ({"expected": np.inf}, "expected must be finite"),
        ({"observed": [1.0, 2.0], "expected": [1.0, 2.0, 3.0]}, r"same shape.*\(2,\).*\(3,\)"),
        ({"tolerance": -1e-3}, "tolerance must be at least 0, got -0.001"),
        ({"observed": []}, "observed must not be empty"),
        ({"control": Control("nothing such", samples=1)}, "cannot replace samples; .* observed"),
        ({"control": Control("cheating", tolerance=0)}, "cannot replace tolerance"),
        ({"control": Control("bad", observed=np.nan)}, "control 'bad': observed must be finite"),
        ({"control": None}, "must be a Control"),
    ],
)
def test_bad_input_is_named(change, message):
    """Errors name the argument, the value and what is allowed."""
    good = {"observed": 1, "expected": 1, "tolerance": 0, "control": Control("two", expected=2)}
    with pytest.raises(ValueError, match=message):
        identity("sum", **{**good, **change})


def test_control_must_change_something():
    """A control without replacement is the check itself."""
    with pytest.raises(ValueError, match="replace at least one"):
        Control("nothing")
    with pytest.raises(ValueError, match="variant"):
        Control(" ", observed=1)


def test_passing_control_is_reported_not_hidden():
    """The chapter decides; the evidence must tell."""
    evidence = identity(
        "loose", observed=1, expected=1, tolerance=5, control=Control("two", expected=2)
    )
    assert evidence.passed and not evidence.control.rejected


def test_inequalities_are_strict_and_elementwise():
    """Equality, or one element on the wrong side, must fail."""
    wrong = Control("higher bound", bound=10)
    assert exceeds("gap", observed=[2, 3], bound=1.5, margin=0.4, control=wrong).passed
    assert not exceeds("gap", observed=[2, 3], bound=1.5, margin=0.5, control=wrong).passed
    assert not exceeds("gap", observed=[1, 3], bound=[1, 1], control=wrong).passed
    evidence = below("gap", observed=[2, 3], bound=4, margin=0.5, control=Control("2", bound=2))
    assert evidence.passed and (evidence.observed, evidence.expected) == (3, 4)
    assert evidence.control.rejected and evidence.error == 0.5


def test_random_inequality_must_say_where_its_level_comes_from():
    """A false-alarm probability without a reason is a guess."""
    wrong = Control("higher", bound=3)
    with pytest.raises(ValueError, match="how must say"):
        exceeds("gap", observed=2, bound=1, false_alarm=1e-6, control=wrong)
    evidence = exceeds("gap", observed=2, bound=1, false_alarm=1e-6, how="Hoeffding", control=wrong)
    assert evidence.false_alarm == 1e-6 and evidence.method == "Hoeffding"


def test_bound_that_is_a_critical_value_has_the_level_of_its_test():
    """A false claim that passes by chance was counted only by the one-sided tests."""
    wrong = Control("higher", bound=3)
    with pytest.raises(ValueError, match=r"how must say where false_pass = 0\.001"):
        exceeds("gap", observed=2, bound=1, false_pass=1e-3, control=wrong)
    with pytest.raises(ValueError, match="false_pass must be below 1, got 2"):
        below("gap", observed=1, bound=2, false_pass=2, how="Kendall", control=wrong)
    evidence = exceeds("gap", observed=2, bound=1, false_pass=1e-3, how="Kendall", control=wrong)
    assert (evidence.sampling, evidence.false_alarm, evidence.false_pass) == ("random", 0, 1e-3)


def test_ordering_finds_the_smallest_step():
    """Ties and reversals anywhere along the last axis must fail."""
    values = [[1, 2, 4], [0, 0.5, 3]]
    shuffled = Control("shuffled", values=[[2, 1, 4], [0, 0.5, 3]])
    evidence = ordering("growth", values=values, margin=0.4, control=shuffled)
    assert evidence.passed and (evidence.observed, evidence.expected) == (0.5, 0)
    assert evidence.control.rejected
    assert not ordering("growth", values=values, margin=0.5, control=shuffled).passed
    assert ordering("decay", values=[3, 2, 1], increasing=False, control=shuffled).passed
    with pytest.raises(ValueError, match="at least two entries"):
        ordering("one", values=[1], control=shuffled)


def test_within_needs_room_for_the_error():
    """A value inside the band whose error reaches out of it is not inside."""
    wrong = Control("far", observed=2)
    evidence = within("read off", observed=0.5, low=0.4, high=0.6, error=0.05, control=wrong)
    assert evidence.passed and evidence.expected == (0.4, 0.6) and evidence.control.rejected
    assert not within("read off", observed=0.5, low=0.4, high=0.6, error=0.2, control=wrong).passed
    with pytest.raises(ValueError, match="low must be below high"):
        within("read off", observed=0.5, low=0.6, high=0.4, control=wrong)


def test_evidence_survives_json():
    """The ledger recomputes verdicts from what the notebooks stored."""
    import json

    evidence = within(
        "band",
        observed=np.float64(0.5),
        low=0,
        high=1,
        reason="digits",
        control=Control("2", high=0.2),
    )
    assert Evidence.from_json(json.loads(json.dumps(evidence.to_json()))) == evidence
    assert not evidence.non_finite()
    assert "band" in str(evidence) and "[0, 1]" in str(evidence)
