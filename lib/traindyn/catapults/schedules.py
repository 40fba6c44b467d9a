"""Step sizes that change on the way: lists, cycles, and the rule that makes catapults repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from traindyn import _validate
from traindyn._types import Array

__all__ = ["StepSize", "TrainingState", "step_sizes"]


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
        Length of the run, which an array must have.

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
    >>> from traindyn.catapults import TrainingState, step_sizes
    >>> rule = step_sizes([(0, 0.5), (10, 1.0)], 20)
    >>> [rule(TrainingState(t, [], [], None)) for t in (0, 9, 10, 19)]
    [0.5, 0.5, 1.0, 1.0]
    """
    steps = _validate.integer("steps", steps, least=0)
    if callable(step_size):
        given = step_size
        return lambda state: _validate.positive("step_size", given(state))
    if isinstance(step_size, np.ndarray) and step_size.ndim:
        rates = _validate.frozen(_validate.finite("step_size", step_size))
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
