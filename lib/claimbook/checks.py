"""Deterministic checks: identities, inequalities, orderings, bands.

All take the description first and everything else by keyword, and return frozen
:class:`~claimbook.evidence.Evidence`. Arrays are compared elementwise and the
worst element is reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from claimbook import _validate
from claimbook._validate import Array
from claimbook.evidence import (
    Control,
    Evidence,
    Outcome,
    Sampling,
    common_shape,
    real_array,
    real_number,
    weigh,
)


def _parts(name: str, value: ArrayLike, *, split: bool) -> Array:
    """Real and imaginary parts along a new first axis when `split`, else the array."""
    if not split:
        return real_array(name, value)
    array = np.asarray(value)
    both = [real_array(name, array.real), real_array(name, array.imag)]
    return np.stack(both) if array.ndim else np.array(both)


def identity(
    check: str,
    *,
    observed: ArrayLike,
    expected: ArrayLike,
    tolerance: float,
    relative: bool = False,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that two numbers or arrays agree within a tolerance, elementwise.

    Parameters
    ----------
    check : str
        What is compared.
    observed, expected : array_like
        Equal shapes, or one of them a scalar. Complex values are compared by real and
        imaginary parts.
    tolerance : float
        Largest allowed ``|observed - expected|``.
    relative : bool
        Multiply the tolerance by ``max |expected|`` (of the claim, also for the control).
    reason : str
        Where the tolerance comes from (precision, quadrature order).
    control : Control
        May replace `observed` or `expected`.

    Returns
    -------
    Evidence
        `error` is the absolute tolerance, `n` the number of elements.

    Examples
    --------
    >>> from claimbook import Control, identity
    >>> import math
    >>> evidence = identity(
    ...     "Euler's reflection formula at 1/4",
    ...     observed=math.gamma(0.25) * math.gamma(0.75),
    ...     expected=math.pi * math.sqrt(2),
    ...     tolerance=1e-12,
    ...     control=Control("without the root", expected=2 * math.pi),
    ... )
    >>> evidence.passed, evidence.control.rejected
    (True, True)
    """
    bound = real_number("tolerance", tolerance, least=0.0)
    if relative:
        bound *= float(np.abs(_validate.finite_complex("expected", expected)).max(initial=0.0))

    def judge(observed: ArrayLike, expected: ArrayLike) -> Outcome:
        split = np.iscomplexobj(observed) or np.iscomplexobj(expected)
        if split and np.ndim(observed) != np.ndim(expected):
            observed, expected = np.broadcast_arrays(observed, expected)
        got, want = common_shape(
            observed=_parts("observed", observed, split=split),
            expected=_parts("expected", expected, split=split),
        )
        deviation = np.abs(got - want)
        worst = np.unravel_index(int(np.argmax(deviation)), deviation.shape)
        return Outcome(
            observed=float(got[worst]),
            expected=float(want[worst]),
            error=bound,
            n=int(got.size),
            passed=bool(deviation[worst] <= bound),
            method="largest deviation against the tolerance",
            # Beyond this, no position of the deviation within the tolerance saves the claim.
            resolution=bound + float(deviation[worst]),
            scale=float(np.abs(want).max()),
        )

    return weigh(
        check, "identity", judge, control, reason=reason, observed=observed, expected=expected
    )


def _risks(false_alarm: float, false_pass: float, how: str) -> dict[str, Any]:
    """Check the stated probabilities of both errors; return the fields of the outcome."""
    risks: dict[str, Any] = {}
    for name, value in (("false_alarm", false_alarm), ("false_pass", false_pass)):
        risk = real_number(name, value, least=0.0)
        if risk >= 1:
            raise ValueError(f"{name} must be below 1, got {risk:g}")
        if not isinstance(how, str) or (risk > 0 and not how.strip()):
            raise ValueError(f"how must say where {name} = {risk:g} comes from, got {how!r}")
        risks[name] = risk
    sampling: Sampling = "every draw" if how.strip() else "none"
    return {**risks, "sampling": "random" if any(risks.values()) else sampling}


def _inequality(
    check: str,
    sign: int,
    observed: ArrayLike,
    bound: ArrayLike,
    margin: float,
    false_alarm: float,
    false_pass: float,
    how: str,
    reason: str,
    control: Control,
) -> Evidence:
    slack = real_number("margin", margin, least=0.0)
    risks = _risks(false_alarm, false_pass, how)
    words = "exceed" if sign > 0 else "stay below"

    def judge(observed: ArrayLike, bound: ArrayLike) -> Outcome:
        got, limit = common_shape(
            observed=real_array("observed", observed), bound=real_array("bound", bound)
        )
        gap = sign * (got - limit)
        worst = np.unravel_index(int(np.argmin(gap)), gap.shape)
        return Outcome(
            observed=float(got[worst]),
            expected=float(limit[worst]),
            error=slack,
            n=int(got.size),
            passed=bool(gap[worst] > slack),
            method=how or f"must {words} the bound by more than the margin",
            **risks,
            resolution=max(float(gap[worst]) - slack, 0.0),
            departure="margin",
        )

    return weigh(check, "inequality", judge, control, reason=reason, observed=observed, bound=bound)


def exceeds(
    check: str,
    *,
    observed: ArrayLike,
    bound: ArrayLike,
    margin: float = 0.0,
    false_alarm: float = 0.0,
    false_pass: float = 0.0,
    how: str = "",
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that every element exceeds its bound, ``observed > bound + margin``.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    observed, bound : array_like
        Equal shapes, or one of them a scalar.
    margin : float
        Non-negative.
    false_alarm : float
        If `observed` is random: a bound on the probability that a true claim fails.
    false_pass : float
        If the bound is the critical value of a one-sided test: its level, a bound on the
        probability that the check passes although the claim is false.
    how : str
        Where these probabilities come from; required if one is positive. Without them,
        why a true claim passes whatever was drawn: required of every observation that moves
        with the seed, which the tally of seeds (:mod:`claimbook.seeds`) finds.
    reason : str
        Where the margin comes from.
    control : Control
        May replace `observed` or `bound`.

    Returns
    -------
    Evidence
        `expected` is the bound, `error` the margin, `resolution` how much further the value
        could move before the check fails.
    """
    return _inequality(
        check, 1, observed, bound, margin, false_alarm, false_pass, how, reason, control
    )


def below(
    check: str,
    *,
    observed: ArrayLike,
    bound: ArrayLike,
    margin: float = 0.0,
    false_alarm: float = 0.0,
    false_pass: float = 0.0,
    how: str = "",
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that every element stays below its bound, ``observed < bound - margin``.

    Parameters and result as in :func:`exceeds`.

    Examples
    --------
    >>> from claimbook import Control, below
    >>> below("sine", observed=[0.1, 0.9], bound=1, control=Control("doubled", bound=0.5)).observed
    0.9
    """
    return _inequality(
        check, -1, observed, bound, margin, false_alarm, false_pass, how, reason, control
    )


def ordering(
    check: str,
    *,
    values: ArrayLike,
    increasing: bool = True,
    margin: float = 0.0,
    false_alarm: float = 0.0,
    how: str = "",
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that values increase (or decrease) along the last axis by more than a margin.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    values : array_like, shape (..., s)
        At least two along the last axis.
    increasing : bool
        Whether each value must lie above the one before it; below it otherwise.
    margin, false_alarm, how, reason
        As in :func:`exceeds`.
    control : Control
        May replace `values`.

    Returns
    -------
    Evidence
        `observed` and `expected` are the two neighbours with the smallest step: observed
        must come after expected. `error` is the margin.
    """
    slack = real_number("margin", margin, least=0.0)
    risks = _risks(false_alarm, 0.0, how)

    def judge(values: ArrayLike) -> Outcome:
        array = real_array("values", values)
        if array.ndim < 1 or array.shape[-1] < 2:
            raise ValueError(f"values must have at least two entries, got shape {array.shape}")
        step = np.diff(array, axis=-1) * (1 if increasing else -1)
        worst = np.unravel_index(int(np.argmin(step)), step.shape)
        after = (*worst[:-1], worst[-1] + 1)
        return Outcome(
            observed=float(array[after]),
            expected=float(array[worst]),
            error=slack,
            n=int(array.size),
            passed=bool(step[worst] > slack),
            method=how or f"smallest step, {'increasing' if increasing else 'decreasing'}",
            **risks,
            resolution=max(float(step[worst]) - slack, 0.0),
            departure="margin",
        )

    return weigh(check, "inequality", judge, control, reason=reason, values=values)


def within(
    check: str,
    *,
    observed: ArrayLike,
    low: float,
    high: float,
    error: ArrayLike = 0.0,
    false_alarm: float = 0.0,
    how: str = "",
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that every ``observed ± error`` lies inside the band ``[low, high]``.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    observed : array_like
        Of the shape of `error`, or one of them a scalar.
    low, high : float
        Ends of the band.
    error : array_like
        Non-negative error of each element (a scalar for all).
    false_alarm, how
        As in :func:`exceeds`.
    reason : str
        Where the band comes from.
    control : Control
        May replace `observed`, `low` or `high`.

    Returns
    -------
    Evidence
        `expected` is the pair ``(low, high)``.
    """
    risks = _risks(false_alarm, 0.0, how)

    def judge(observed: ArrayLike, low: Any, high: Any) -> Outcome:
        got, spread = common_shape(
            observed=real_array("observed", observed), error=real_array("error", error)
        )
        if np.any(spread < 0):
            raise ValueError(f"error must be non-negative, got {spread.min():g}")
        bottom, top = real_number("low", low), real_number("high", high)
        if bottom >= top:
            raise ValueError(f"low must be below high, got {bottom:g} and {top:g}")
        room = np.minimum(got - spread - bottom, top - got - spread)
        worst = np.unravel_index(int(np.argmin(room)), room.shape)
        return Outcome(
            observed=float(got[worst]),
            expected=(bottom, top),
            error=float(spread[worst]),
            n=int(got.size),
            passed=bool(room[worst] >= 0),
            method=how or "value and its error inside the band",
            **risks,
            resolution=max(float(room[worst]), 0.0),
            departure="margin",
        )

    return weigh(
        check,
        "inequality",
        judge,
        control,
        reason=reason,
        observed=observed,
        low=low,
        high=high,
    )
