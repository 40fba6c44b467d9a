"""Bad input for the checks that claims are put to."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Case, collect, without_example

from claimbook import Control

GOOD, WRONG = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
SAMPLES = np.random.default_rng(1).normal(size=(60, 2))
MANY = SAMPLES.ravel()
RISK = {"false_alarm": 0.01, "how": "a bound", "reason": "precision"}


def _cdf(x: np.ndarray) -> np.ndarray:
    return np.clip((x + 4) / 8, 0, 1)


EXAMPLES = {
    "claimbook.checks.below": lambda: {
        "check": "c", "observed": GOOD, "bound": [5.0, 6.0, 7.0], "margin": 0.5, **RISK,
        "control": Control("wrong", bound=0.0),
    },
    "claimbook.checks.exceeds": lambda: {
        "check": "c", "observed": GOOD, "bound": [0.0, 1.0, 2.0], "margin": 0.5, **RISK,
        "control": Control("wrong", bound=9.0),
    },
    "claimbook.checks.identity": lambda: {
        "check": "c", "observed": GOOD, "expected": GOOD, "tolerance": 0.1, "relative": True,
        "reason": "precision", "control": Control("wrong", observed=WRONG),
    },
    "claimbook.checks.ordering": lambda: {
        "check": "c", "values": GOOD, "increasing": True, "margin": 0.5, **RISK,
        "control": Control("wrong", values=GOOD[::-1]),
    },
    "claimbook.checks.within": lambda: {
        "check": "c", "observed": GOOD, "low": 0.0, "high": 5.0, "error": [0.1, 0.1, 0.1], **RISK,
        "control": Control("wrong", high=2.5),
    },
    "claimbook.one_sided.estimate_below": lambda: {
        "check": "c", "estimate": GOOD, "error": [0.1, 0.1, 0.1], "bound": [9.0, 9.0, 9.0],
        "freedom": [50, 50, 50], "false_alarm": 0.01, "reason": "fit",
        "control": Control("wrong", bound=0.0),
    },
    "claimbook.one_sided.estimate_exceeds": lambda: {
        "check": "c", "estimate": GOOD, "error": [0.1, 0.1, 0.1], "bound": [0.0, 0.0, 0.0],
        "freedom": [50, 50, 50], "false_alarm": 0.01, "reason": "fit",
        "control": Control("wrong", bound=9.0),
    },
    "claimbook.one_sided.mean_below": lambda: {
        "check": "c", "samples": SAMPLES, "bound": [2.0, 2.0], "false_alarm": 0.01,
        "reason": "limit", "control": Control("wrong", bound=-2.0),
    },
    "claimbook.one_sided.mean_exceeds": lambda: {
        "check": "c", "samples": SAMPLES, "bound": [-2.0, -2.0], "false_alarm": 0.01,
        "reason": "limit", "control": Control("wrong", bound=2.0),
    },
    "claimbook.one_sided.share_below": lambda: {
        "check": "c", "successes": [10, 20], "trials": [100, 100], "bound": [0.5, 0.5],
        "false_alarm": 0.01, "reason": "limit", "control": Control("wrong", successes=90),
    },
    "claimbook.one_sided.share_exceeds": lambda: {
        "check": "c", "successes": [90, 80], "trials": [100, 100], "bound": [0.5, 0.5],
        "false_alarm": 0.01, "reason": "limit", "control": Control("wrong", successes=10),
    },
    "claimbook.statistical.binomial": lambda: {
        "check": "c", "successes": [50, 52], "trials": [100, 100], "expected": [0.5, 0.5],
        "false_alarm": 0.01, "control": Control("wrong", expected=0.9),
    },
    "claimbook.statistical.covariance_equals": lambda: {
        "check": "c", "samples": SAMPLES, "expected": np.eye(2), "false_alarm": 0.01,
        "control": Control("wrong", expected=9 * np.eye(2)),
    },
    "claimbook.statistical.equal_laws": lambda: {
        "check": "c", "samples": MANY, "reference": MANY + 0.01, "false_alarm": 0.01,
        "control": Control("wrong", reference=MANY + 9),
    },
    "claimbook.statistical.follows_law": lambda: {
        "check": "c", "samples": MANY, "cdf": _cdf, "false_alarm": 1e-6,
        "control": Control("wrong", samples=MANY + 3),
    },
    "claimbook.statistical.mean_equals": lambda: {
        "check": "c", "samples": SAMPLES, "expected": [0.0, 0.0], "tolerance": 0.1,
        "standard_deviation": 1.0, "false_alarm": 0.01, "reason": "size",
        "control": Control("wrong", expected=[9.0, 9.0]),
    },
    "claimbook.statistical.median_equals": lambda: {
        "check": "c", "samples": MANY[:, None] + [0.0, 0.1], "expected": [0.0, 0.1],
        "tolerance": 0.9, "false_alarm": 0.01, "reason": "size",
        "control": Control("wrong", expected=[9.0, 9.0]),
    },
    "claimbook.statistical.rate": lambda: {
        "check": "c", "sizes": [10, 20, 40, 80], "values": [1.0, 0.5, 0.26, 0.125],
        "exponent": -1.0, "tolerance": 0.1, "pooled": False, "resolution": 0.25,
        "false_alarm": 0.01, "reason": "size", "control": Control("wrong", exponent=-2.0),
    },
    "claimbook.statistical.statistic_below": lambda: {
        "check": "c", "statistic": 1.0, "threshold": 2.0, "false_alarm": 0.01, "how": "chi2",
        "n": 5, "reason": "limit", "control": Control("wrong", statistic=9.0),
    },
}  # fmt: skip
REASONS = dict.fromkeys(
    (f"claimbook.smirnov.{name}" for name in ("critical", "distance", "shares", "tail")),
    "counts paths for what the checks have checked",
)
CASES = collect(
    ["claimbook.checks", "claimbook.statistical", "claimbook.one_sided", "claimbook.smirnov"],
    EXAMPLES,
    REASONS,
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_by_name(case: Case) -> None:
    """One argument spoilt: an error that names it, or a result without NaN."""
    assert case.defects() == []


def test_every_public_callable_has_an_example_or_a_reason() -> None:
    """Nothing public is left out without a word."""
    assert without_example(CASES) == []
