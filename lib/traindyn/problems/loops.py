"""Compiled loops over single steps of SGD; those of the library's own steps are kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["loop_of", "loops", "repeat"]

Loop: TypeAlias = Callable[..., None]

_KEPT: dict[Any, Loop] = {}


@njit(cache=True, nogil=True)
def _pick(cumulative: NDArray[np.float64], uniform: float) -> int:
    """Index of the component that a uniform variable selects."""
    label = 0
    while label < cumulative.size - 1 and uniform >= cumulative[label]:
        label += 1
    return label


@njit(nogil=True, inline="always")
def repeat(step: Any, chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    """Repeat ``step(state, constants, rng, step_size)``, recording the state after some steps.

    Compiled anew for each step function, which is thereby inlined, and in every process: numba's
    cache never finds a function again one of whose arguments is a function.

    Parameters
    ----------
    step : callable
        Compiled by numba, as in a :class:`~traindyn.problems.base.Kernel`.
    chain : (state, constants)
        What every step gets; it changes the arrays of the state in place.
    rng : Generator
        Draws the samples of the steps.
    step_size : float
        Learning rate of every step.
    out : (marks, vector, records)
        After how many steps, shape (r,); the vector that the arrays of the state look into; where
        its copies go, shape (r, size).
    """
    state, constants = chain
    marks, vector, records = out
    done = 0
    for i in range(marks.size):
        for _ in range(marks[i] - done):
            step(state, constants, rng, step_size)
        done = marks[i]
        # Entry by entry: numba takes seconds to compile the assignment of a row.
        for j in range(vector.size):
            records[i, j] = vector[j]


def loops(step: Any) -> Callable[[Loop], Loop]:
    """Declare what is decorated, :func:`repeat` with a step that it names, as the loop over it.

    The name is what it takes for numba to find the compiled loop on disk, a second sooner.
    """

    def keep(loop: Loop) -> Loop:
        _KEPT[step] = loop
        return loop

    return keep


def loop_of(step: Any) -> Loop:
    """Return the loop over a step, without that argument."""
    return _KEPT.get(step) or partial(repeat, step)
