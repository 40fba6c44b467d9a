"""Step sizes that change on the way: lists, cycles, and the rule that makes catapults repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traindyn import _validate

__all__ = ["RepeatedCatapults", "StepSize", "TrainingState", "step_sizes", "triangular"]

Array: TypeAlias = NDArray[np.float64]


class TrainingState(NamedTuple):
    """What a rule may look at before it names the next step size.

    Attributes
    ----------
    step : int
        Steps taken.
    losses : sequence of float
        Training losses recorded so far, the last of them the newest.
    step_sizes : sequence of float
        Of the steps taken.
    critical_step : float or None
        n over the largest eigenvalue of the kernel of all examples when the last loss was
        recorded; None if the kernel is not followed.
    """

    step: int
    losses: Sequence[float]
    step_sizes: Sequence[float]
    critical_step: float | None


StepSize: TypeAlias = float | Sequence[tuple[int, float]] | Array | Callable[[TrainingState], float]


def step_sizes(step_size: StepSize, steps: int) -> Callable[[TrainingState], float]:
    """Turn any description of step sizes into a rule.

    Parameters
    ----------
    step_size : float, sequence of (step, step size), ndarray of shape (steps,), or callable
        Constant; the step size from each of these steps on, the first of them step 0; that of
        every step; or a rule.
    steps : int

    Returns
    -------
    callable
        From :class:`TrainingState` to a step size.

    Raises
    ------
    ValueError
        If a schedule does not begin at step 0 or is not increasing, an array has another length,
        or a step size is not positive.

    Examples
    --------
    >>> rule = step_sizes([(0, 0.5), (10, 1.0)], 20)
    >>> [rule(TrainingState(t, [], [], None)) for t in (0, 9, 10, 19)]
    [0.5, 0.5, 1.0, 1.0]
    """
    steps = _validate.integer("steps", steps, least=0)
    if callable(step_size):
        given = step_size
        return lambda state: _validate.positive("step_size", given(state))
    if isinstance(step_size, np.ndarray) and step_size.ndim:
        rates = _validate.finite("step_size", step_size)
        if rates.shape != (steps,):
            raise ValueError(
                f"step_size must have shape ({steps}) for so many steps, got {rates.shape}"
            )
        if np.any(rates <= 0):
            raise ValueError(f"step_size must be positive, got {rates.min():g}")
    elif isinstance(step_size, Sequence):
        if any(np.shape(each) != (2,) for each in step_size):
            raise ValueError(
                f"step_size must be a number, an array or pairs of a step and a number, "
                f"got {step_size!r}"
            )
        starts = [_validate.integer("step_size steps", start, least=0) for start, _ in step_size]
        if not starts or starts[0] != 0 or any(b <= a for a, b in pairwise(starts)):
            raise ValueError(
                f"step_size must begin at step 0 and go on in order, got steps {starts}"
            )
        rates = np.empty(steps)
        for start, (_, rate) in zip(starts, step_size):
            rates[start:] = _validate.positive("step_size", rate)
    else:
        rates = np.full(steps, _validate.positive("step_size", step_size))
    return lambda state: float(rates[state.step])


def triangular(low: float, high: float, *, period: int, steps: int) -> Array:
    """Return step sizes that rise and fall linearly, again and again (ZHU Figure C.12).

    Parameters
    ----------
    low, high : float
        The first step size, and that half a period later.
    period : int
        In steps, at least two.
    steps : int

    Returns
    -------
    ndarray, shape (steps,)

    Raises
    ------
    ValueError
        If `low` is not positive, or `high` is below it.

    Examples
    --------
    >>> triangular(1.0, 3.0, period=4, steps=6).tolist()
    [1.0, 2.0, 3.0, 2.0, 1.0, 2.0]
    """
    least, most = _validate.positive("low", low), _validate.positive("high", high)
    if most < least:
        raise ValueError(f"high must be at least low = {least:g}, got {most:g}")
    length = _validate.integer("period", period, least=2)
    phase = np.arange(_validate.integer("steps", steps, least=0)) % length / length
    return np.asarray(least + (most - least) * (1 - np.abs(1 - 2 * phase)))


@dataclass(frozen=True)
class RepeatedCatapults:
    """Raise the step size above the critical one whenever a catapult is over (ZHU Figure 4.4).

    The run begins at `ratio` times the critical step size. A catapult is over when the loss has
    risen by more than `factor` since the step size last changed, has come back below where it
    was then, and stayed there for `wait` steps. Then the step size becomes `ratio` times the
    critical one of that moment, at most `most_increase` times the last one; after the last
    catapult it becomes `end` times the critical one, or stays.

    Parameters
    ----------
    catapults : int
    ratio : float, default 1.5
        Above one. Two-layer networks diverge from about two on.
    wait : int, default 30
    factor : float, default 2.0
    most_increase : float, default 2.0
        The critical step size overshoots after a catapult of a deep network, and falls back.
    end : float, optional

    Raises
    ------
    ValueError
        If an argument is out of range; when called, if the loss is not recorded at every step
        or the kernel is not followed.

    Examples
    --------
    >>> rule = RepeatedCatapults(2, ratio=1.5, wait=1)
    >>> rule(TrainingState(0, [1.0], [], 4.0))
    6.0
    >>> rule(TrainingState(3, [1.0, 5.0, 0.9, 0.8], [6.0] * 3, 7.0))
    10.5
    """

    catapults: int
    ratio: float = 1.5
    wait: int = 30
    factor: float = 2.0
    most_increase: float = 2.0
    end: float | None = None

    def __post_init__(self) -> None:
        _validate.integer("catapults", self.catapults, least=1)
        _validate.integer("wait", self.wait, least=0)
        for name in ("ratio", "factor", "most_increase"):
            if _validate.number(name, getattr(self, name)) <= 1:
                raise ValueError(f"{name} must be above 1, got {getattr(self, name)!r}")
        if self.end is not None:
            _validate.positive("end", self.end)

    def __call__(self, state: TrainingState) -> float:
        """Name the next step size."""
        if state.critical_step is None or len(state.losses) != state.step + 1:
            raise ValueError(
                "RepeatedCatapults needs the kernel and the loss of every step: "
                "train with leading given and every=1"
            )
        rates = state.step_sizes
        if not rates:
            return self.ratio * state.critical_step
        changes = [t for t in range(1, len(rates)) if rates[t] != rates[t - 1]]
        stage = len(changes) + 1
        since = state.losses[changes[-1] if changes else 0 :]
        back = len(since) - self.wait - 1
        if stage > self.catapults or back < 1:
            return rates[-1]
        risen = max(since[:back]) > self.factor * since[0]
        if not risen or max(since[back:]) >= since[0]:
            return rates[-1]
        if stage == self.catapults:
            return rates[-1] if self.end is None else self.end * state.critical_step
        return min(self.ratio * state.critical_step, self.most_increase * rates[-1])
