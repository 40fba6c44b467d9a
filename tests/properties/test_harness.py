"""The harness itself: a function that checks its argument passes, those that do not fail."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import Case, Public

from traindyn import _validate


def _sound(x: float) -> float:
    return _validate.number("x", x) + 1.0


def _misnamed(x: float) -> float:
    return _validate.number("y", x) + 1.0


def _silent(x: float) -> float:
    return float(x) * 2.0 if isinstance(x, float) else _sound(x)


def _outside(x: float) -> float:
    return math.sqrt(_validate.number("x", x))


def _native(x: Any) -> float:
    """Read the bytes of an array as if they were those of this machine, as compiled code does."""
    x = np.asarray(x)
    return float(_validate.finite("x", x, shape=(2,)) @ x.view(x.dtype.newbyteorder("=")))


def _unmasking(x: Any) -> float:
    return float(_validate.finite("x", np.asarray(x), shape=(2,)).sum())


@pytest.mark.parametrize(
    ("function", "message"),
    [(_native, "byte order): another result"), (_unmasking, "masked entries pass")],
)
def test_arrays_that_are_read_wrongly_are_found(function: Callable[..., Any], message: str) -> None:
    """Controls: what NumPy knows of an array, and compiled code or a conversion forgets."""
    entry = Public(function.__name__, sys.modules[__name__], None, function)
    found = Case(entry, lambda: {"x": np.array([0.5, 2.0])}).defects()
    assert any(message in defect for defect in found), found


def _case(function: Callable[..., Any], **lenient: Any) -> Case:
    entry = Public(function.__name__, sys.modules[__name__], None, function)
    return Case(entry, lambda: {"x": 0.5}, lenient)


def test_a_function_that_checks_has_no_defects() -> None:
    """Every bad value is refused by name, or gives a number."""
    assert _case(_sound).defects() == []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_misnamed, "does not name `x`"),
        (_silent, "NaN passes"),
        (_silent, "an infinite value passes and spreads"),
        (_outside, "raised outside the library"),
        (lambda x: x + 1.0, "TypeError"),
    ],
)
def test_every_kind_of_defect_is_found(function: Callable[..., Any], message: str) -> None:
    """Controls: a wrong name, NaN and infinity that pass, an error of another's, no check."""
    assert any(message in defect for defect in _case(function).defects())


def test_a_documented_value_may_pass() -> None:
    """Only the value that is named, for the argument that is named."""
    found = _case(_silent, x=("nan",)).defects()
    assert found and not any("NaN" in defect for defect in found)
