"""What one check leaves behind: evidence, and the wrong variant it rejected.

A check that cannot fail is worth nothing, so every check carries a *control*: the same
check run with some of its inputs replaced by those of a wrong variant of the claim (the
printed misprint, a wrong constant, shuffled labels). The control must be rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from claimbook import _validate
from claimbook._validate import Array

Value: TypeAlias = float | tuple[float, ...]
Kind = Literal["identity", "statistical", "rate", "inequality"]
#: How the observation depends on the seed: not at all; in a way that a true claim survives
#: whatever was drawn; or with the two probabilities of error that the evidence states.
Sampling = Literal["none", "every draw", "random"]
#: What the resolution of a check is a departure of.
Departure = Literal["value", "exponent", "law", "share", "variance", "margin", "side"]


@dataclass(frozen=True, init=False)
class Control:
    """A wrong variant of a claim that the check must reject.

    Parameters
    ----------
    variant : str
        What is wrong with it, in a few words.
    printed : bool
        Whether this is the source as printed. A claim found ``corrected`` or ``false``
        needs at least one such control.
    far : str
        Why no nearer variant is at hand, of a control more than ten resolutions away.
    **replacements
        Inputs of the check to replace (``observed=``, ``expected=``, ``samples=``, ...).
        Data only: tolerances and levels stay those of the check.

    Examples
    --------
    >>> from claimbook import Control
    >>> Control("sign as printed", printed=True, observed=-1.0).replacements
    {'observed': -1.0}
    """

    variant: str
    printed: bool
    far: str
    replacements: dict[str, Any]

    def __init__(
        self, variant: str, *, printed: bool = False, far: str = "", **replacements: Any
    ) -> None:
        if not isinstance(variant, str) or not variant.strip():
            raise ValueError(f"variant must say what is wrong with the control, got {variant!r}")
        if not replacements:
            raise ValueError(f"control {variant!r} must replace at least one input of its check")
        object.__setattr__(self, "variant", variant)
        object.__setattr__(self, "printed", printed)
        object.__setattr__(self, "far", far)
        object.__setattr__(self, "replacements", replacements)


@dataclass(frozen=True)
class ControlResult:
    """What the check said of its wrong variant."""

    variant: str
    observed: Value
    expected: Value
    rejected: bool
    printed: bool = False
    far: str = ""
    #: Estimated probability that it is not rejected in a repetition with another seed, where the
    #: check knows a law for it. Checks of a statistic that the caller has computed do not.
    spared: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """Result of one check.

    Attributes
    ----------
    check : str
        What was compared, in a few words.
    kind : {"identity", "statistical", "rate", "inequality"}
    observed, expected : float or tuple of float
        The decisive numbers. For arrays: those of the worst element.
    error : float
        Tolerance, standard error, critical distance or margin; see the check.
    sampling : {"none", "every draw", "random"}
        Whether the observation depends on the seed, and how.
    false_alarm : float
        Probability that a repetition with another seed fails although the claim is true:
        the level of a two-sided test, an estimate for a one-sided one, and in both the
        estimated probability that the control is not rejected.
    false_pass : float
        Probability that the check passes although the claim is false, however near it is to
        the truth: the level of a one-sided test. Zero for two-sided ones, which let pass what
        is nearer than their resolution.
    n : int
        Number of elements compared, or of independent samples used.
    control : ControlResult
    passed : bool
    method : str
        How it was decided.
    p_value : float, optional
        Corrected for the number of simultaneous comparisons; the check fails at or below its
        nominal level.
    resolution : float, optional
        The smallest departure that the check rejects with probability at least 0.99, in the
        units of what is compared; of an inequality the distance to its bound.
    departure : {"value", "exponent", "law", "share", "variance", "margin", "side"}
        What `resolution` is a departure of.
    scale : float, optional
        Size of what is compared, where that is not the size of `expected`: of arrays the largest
        expected value.
    reason : str
        Where the tolerance comes from.
    """

    check: str
    kind: Kind
    observed: Value
    expected: Value
    error: float
    sampling: Sampling
    false_alarm: float
    false_pass: float
    n: int
    control: ControlResult
    passed: bool
    departure: Departure = "value"
    method: str = ""
    p_value: float | None = None
    resolution: float | None = None
    scale: float | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain Python data; optional fields without a value are left out."""
        data = asdict(self)
        for part in (data, data["control"]):
            for name in ("observed", "expected"):
                if isinstance(part[name], tuple):
                    part[name] = list(part[name])
        for name in ("far", "spared"):
            if not data["control"][name]:
                del data["control"][name]
        return {
            name: value
            for name, value in data.items()
            if not (name in _OPTIONAL and (value is None or value == ""))
        }

    def control_distance(self) -> float | None:
        """How far the control is from what it is compared with, in resolutions of the check.

        None where the resolution is not that of a number, or so fine (relative 1e-6) that
        every other formula is far away.
        """
        if self.resolution is None or self.departure not in ("value", "exponent", "share"):
            return None
        distance = float(np.max(np.abs(np.subtract(self.control.observed, self.control.expected))))
        scale = float(np.max(np.abs(self.expected)))
        if self.resolution <= 1e-6 * max(scale, distance):
            return None
        return distance / self.resolution

    def relative_resolution(self) -> float | None:
        """Return the resolution over the size of what is compared; None if that is zero or a pair.

        Examples
        --------
        >>> from claimbook import Control
        >>> from claimbook import identity
        >>> identity("two", observed=[1.0, 4.0], expected=[1.0, 4.0], tolerance=0.01,
        ...          control=Control("one less", observed=[0.0, 3.0])).relative_resolution()
        0.0025
        """
        if self.resolution is None or isinstance(self.expected, tuple):
            return None
        size = abs(self.expected) if self.scale is None else self.scale
        return self.resolution / size if size else None

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Evidence:
        """Rebuild evidence from :meth:`to_json`."""

        def freeze(value: Any) -> Any:
            return tuple(value) if isinstance(value, list) else value

        control = ControlResult(**{k: freeze(v) for k, v in data["control"].items()})
        rest = {k: freeze(v) for k, v in data.items() if k != "control"}
        return cls(control=control, **rest)

    def non_finite(self) -> tuple[str, ...]:
        """Names of the fields that hold a NaN or an infinity."""
        return tuple(
            name
            for name, value in _numbers(self.to_json())
            if not np.all(np.isfinite(np.asarray(value, dtype=float)))
        )

    def __str__(self) -> str:
        """One line with the decisive numbers."""
        word = "passed" if self.passed else "FAILED"
        line = (
            f"{word}: {self.check}: observed {show(self.observed)}, "
            f"expected {show(self.expected)}, error {show(self.error)}"
        )
        if self.p_value is not None:
            line += f", p = {self.p_value:.2g}"
        if self.sampling == "random":
            line += f", fails if true {self.false_alarm:.2g}, passes if false {self.false_pass:.2g}"
        fate = "rejected" if self.control.rejected else "NOT REJECTED"
        return (
            f"{line}; control {self.control.variant!r}: observed {show(self.control.observed)}, "
            f"expected {show(self.control.expected)}, {fate}"
        )


_SELDOM = 1e-3  # a p-value at which a control is taken to be beyond its bound
_OPTIONAL = ("method", "p_value", "resolution", "scale", "reason")


def _numbers(data: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{name}.")
        elif isinstance(value, (list, float, int)):
            yield prefix + name, value


def show(value: Value) -> str:
    """Six significant digits, or an interval.

    Examples
    --------
    >>> from claimbook.evidence import show
    >>> show(1 / 3), show((0.0, 0.5))
    ('0.333333', '[0, 0.5]')
    """
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(f"{part:.6g}" for part in value) + "]"
    return f"{value:.6g}"


@dataclass(frozen=True)
class Outcome:
    """What a judge says of one set of inputs; the fields are those of `Evidence`."""

    observed: Value
    expected: Value
    error: float
    n: int
    passed: bool
    method: str
    sampling: Sampling = "none"
    false_alarm: float = 0.0
    false_pass: float = 0.0
    p_value: float | None = None
    resolution: float | None = None
    departure: Departure = "value"
    scale: float | None = None
    #: Probability that a repetition does not reject what was observed, if that is the truth.
    spared: float = 0.0
    #: Whether the samples were too few to say anything: neither a pass nor a rejection.
    inconclusive: bool = False


def weigh(
    check: str,
    kind: Kind,
    judge: Callable[..., Outcome],
    control: Control,
    *,
    reason: str = "",
    **pieces: Any,
) -> Evidence:
    """Judge the inputs, then the same with the control's replacements.

    Parameters
    ----------
    check : str
        What is compared, in a few words; not blank.
    kind : {"identity", "statistical", "rate", "inequality"}
        For the record: it changes nothing here.
    judge : callable
        ``judge(**pieces)``; tolerances and levels are bound in it, out of a control's reach.
    control : Control
        Says which pieces to replace, and by what.
    reason : str
        Where the tolerance comes from.
    **pieces
        The replaceable inputs.

    Returns
    -------
    Evidence
        Of the inputs as given, and whether their replacements were rejected; an inconclusive
        control was not. `false_alarm` is the sum of what the judge says of the inputs and of the
        chance that a repetition does not reject the replacements.

    Raises
    ------
    ValueError
        If the control replaces something that is not an input of the check.
    """
    if not isinstance(check, str) or not check.strip():
        raise ValueError(f"check must say what is compared, got {check!r}")
    if not isinstance(control, Control):
        raise ValueError(f"control of {check!r} must be a Control, got {control!r}")
    unknown = sorted(control.replacements.keys() - pieces.keys())
    if unknown:
        raise ValueError(
            f"control {control.variant!r} of {check!r} cannot replace {', '.join(unknown)}; "
            f"this check has {', '.join(pieces)}"
        )
    try:
        outcome = judge(**pieces)
    except ValueError as error:
        raise ValueError(f"{check}: {error}") from error
    try:
        wrong = judge(**{**pieces, **control.replacements})
    except ValueError as error:
        raise ValueError(f"{check}: control {control.variant!r}: {error}") from error
    result = ControlResult(
        variant=control.variant,
        observed=wrong.observed,
        expected=wrong.expected,
        rejected=not wrong.passed and not wrong.inconclusive,
        printed=control.printed,
        far=control.far,
        spared=wrong.spared,
    )
    said = {
        field.name: getattr(outcome, field.name)
        for field in fields(outcome)
        if field.name not in ("inconclusive", "spared")
    }
    said["false_alarm"] = min(outcome.false_alarm + wrong.spared, 1 - 1e-9)
    return Evidence(check=check, kind=kind, control=result, reason=reason, **said)


def real_array(name: str, value: ArrayLike, *, ndim: int | None = None) -> Array:
    """Return `value` as a non-empty finite float array."""
    array = _validate.numeric(name, value)
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {array.shape}")
    return _validate.finite(name, array)


def common_shape(**values: Array) -> tuple[Array, ...]:
    """Broadcast scalars against arrays; arrays must have equal shapes."""
    shapes = {array.shape for array in values.values() if array.ndim}
    if len(shapes) > 1:
        got = ", ".join(f"{name} {array.shape}" for name, array in values.items())
        raise ValueError(f"{' and '.join(values)} must have the same shape, got {got}")
    return np.broadcast_arrays(*values.values())


def real_number(name: str, value: Any, *, least: float | None = None) -> float:
    """Return `value` as a finite float, at least `least`."""
    number = float(real_array(name, value, ndim=0))
    if least is not None and number < least:
        raise ValueError(f"{name} must be at least {least:g}, got {number:g}")
    return number


def level(name: str, value: Any) -> float:
    """Return `value` as a probability in (0, 1/2]."""
    number = real_number(name, value)
    if not 0 < number <= 0.5:
        raise ValueError(f"{name} must be in (0, 0.5], got {number:g}")
    return number


def spared_one_sided(p_value: float, chance: float, level: float) -> float:
    """Estimate the chance that a one-sided test lets a control pass in a repetition.

    A control is meant not to be on the claimed side of the bound, and then the chance is at most
    the level, wherever noise took what was observed. Where noise alone would seldom take a control
    at the bound so far beyond it, the control is on that side, and what was observed is the best
    guess of where. One that is beyond the bound by less is not told from one at the bound.

    Parameters
    ----------
    p_value : float
        Probability that a control at the bound is as far beyond it as what was observed.
    chance : float
        That the test passes, if what was observed is the truth.
    level : float
        Of the test: its chance to pass at the bound.

    Returns
    -------
    float

    Examples
    --------
    >>> from claimbook.evidence import spared_one_sided
    >>> spared_one_sided(0.2, 0.03, level=1e-6), spared_one_sided(1e-5, 0.2, level=1e-6)
    (1e-06, 0.2)
    """
    return chance if p_value < _SELDOM else min(chance, level)


def check_counts(successes: Array, trials: Array) -> None:
    """Refuse numbers of successes and trials that cannot be."""
    for name, counts in (("successes", successes), ("trials", trials)):
        if np.any(counts != np.round(counts)) or np.any(counts < 0):
            raise ValueError(f"{name} must be counts, got {counts.min():g} to {counts.max():g}")
    if np.any(successes > trials) or np.any(trials < 1):
        raise ValueError("successes must be at most trials, and trials at least 1")


def simultaneous(m: int) -> str:
    """Say, as part of a method, that m elements share a level."""
    return "" if m == 1 else f", worst of {m}, Bonferroni"
