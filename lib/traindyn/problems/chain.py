"""SGD as a Markov chain, at its two levels: in full dimension and on the statistics.

The arrays of a state all look into one vector, so that a state is copied, restored and
recorded by one assignment, whatever the number and shapes of its arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindyn._types import Array
from traindyn.problems.base import Dynamics, Kernel, require

__all__ = ["Chain", "direct", "reduced"]


@dataclass(frozen=True)
class Chain:
    """What is stepped from where, and what is seen of it.

    Attributes
    ----------
    kernel : Kernel
    ridge : float
        To be quoted in errors.
    start : tuple of ndarray
        What the kernel updates copies of.
    observe : callable
        Statistics of such arrays, with a leading axis over states.
    point : callable, optional
        Point of such arrays; None on the statistics alone.
    fault : callable, optional
        Says what of the problem is not finite near given statistics, or nothing.
    """

    kernel: Kernel
    ridge: float
    start: tuple[Array, ...]
    observe: Callable[[tuple[Array, ...]], Any]
    point: Callable[..., Any] | None = None
    fault: Callable[[Any], str] | None = None

    def state(self) -> tuple[Array, tuple[Array, ...]]:
        """Return a copy of the start, as one vector and as the arrays that look into it."""
        copies = [np.asarray(array, dtype=np.float64).ravel() for array in self.start]
        vector = np.concatenate(copies)
        return vector, self.arrays(vector)

    def arrays(self, vectors: Array) -> tuple[Array, ...]:
        """Return the arrays of one or many states, shape (..., size of a state)."""
        found = []
        begin = 0
        for array in self.start:
            end = begin + math.prod(np.shape(array))
            found.append(vectors[..., begin:end].reshape(*vectors.shape[:-1], *np.shape(array)))
            begin = end
        return tuple(found)


def direct(problem: Dynamics, point: Any) -> Chain:
    """SGD in full dimension from a point, which is kept by reference.

    Raises
    ------
    ValueError
        If the point is misshaped or not finite.
    """
    require(problem, "SGD in full dimension", "statistics", "direct_kernel", "ridge")
    if not hasattr(point, "_fields"):
        given = f"shape {np.shape(point)}" if isinstance(point, np.ndarray) else f"{point!r:.60}"
        raise ValueError(
            "start must be a point, a named tuple like those of problem.initial, got "
            f"{type(point).__name__} of {given}"
        )
    problem.statistics(point)
    kind = type(point)

    def observe(arrays: tuple[Array, ...]) -> Any:
        seen = [problem.statistics(kind(*each)) for each in zip(*arrays, strict=True)]
        return type(seen[0])(*(np.stack(values) for values in zip(*seen, strict=True)))

    fault = getattr(problem, "fault", None)
    return Chain(problem.direct_kernel(), problem.ridge, tuple(point), observe, kind, fault)


def reduced(problem: Dynamics, statistics: Any) -> Chain:
    """SGD on the statistics alone from given ones.

    Raises
    ------
    ValueError
        If the statistics or the dimension are out of range.
    """
    names = ("reduced_kernel", "reduced_state", "reduced_statistics", "ridge")
    require(problem, "SGD on the statistics", *names)
    kernel = problem.reduced_kernel()
    state = problem.reduced_state(statistics)
    fault = getattr(problem, "fault", None)
    return Chain(kernel, problem.ridge, state, problem.reduced_statistics, fault=fault)
