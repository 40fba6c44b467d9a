"""The loop shared by SGD in full dimension and on summary statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from traindyn.parallel import Progress, reporter
from traindyn.problems.base import Array, Kernel

__all__ = ["advance", "diverged"]

# Between two checks for divergence: entries of the state touched, and steps (about 10 ms of
# work, also for states of two or three numbers).
_ENTRIES_PER_CHECK = 2**25
_STEPS_PER_CHECK = 2**17


@njit(nogil=True)
def _loop(
    step: Any, state: Any, constants: Any, rng: np.random.Generator, step_size: float, count: int
) -> None:
    """Repeat ``step(state, constants, rng, step_size)``.

    Compiled anew for each step function, which is thereby inlined. Not cached on disk:
    numba's cache never finds a loop again whose argument is a function, and grows.
    """
    for _ in range(count):
        step(state, constants, rng, step_size)


def advance(
    kernel: Kernel,
    state: tuple[Array, ...],
    steps: NDArray[np.int64],
    *,
    step_size: float,
    ridge: float,
    rng: np.random.Generator,
    progress: Progress,
) -> Iterator[None]:
    """Run a kernel, pausing after each of the given numbers of steps.

    Parameters
    ----------
    kernel : Kernel
    state : tuple of ndarray
        Updated in place.
    steps : ndarray of int, shape (T,)
        Strictly increasing.
    step_size, ridge : float
        The ridge is only quoted in the error.
    rng : Generator
    progress : bool, str or callable
        As in :func:`traindyn.parallel.map_ordered`, over steps.

    Raises
    ------
    FloatingPointError
        As soon as the state is found not finite.
    """
    total = int(steps[-1])
    report = reporter(progress)
    size = sum(array.size for array in state)
    chunk = max(1, min(_STEPS_PER_CHECK, _ENTRIES_PER_CHECK // size))
    done = 0
    for goal in steps:
        while done < goal:
            count = min(chunk, int(goal) - done)
            _loop(kernel.step, state, kernel.constants, rng, step_size, count)
            if not all(np.isfinite(array).all() for array in state):
                raise diverged(step_size, ridge, done, done + count)
            done += count
            report(done, total)
        yield


def diverged(step_size: float, ridge: float, before: int, after: int) -> FloatingPointError:
    """Error that names the step size and the time at which it left the finite numbers."""
    stable = f" (the ridge alone allows step_size < 2 / ridge = {2 / ridge:g})" if ridge else ""
    return FloatingPointError(
        f"step_size = {step_size:g} makes the iterates diverge: they left the finite numbers "
        f"between t = {before * step_size:g} and t = {after * step_size:g}; take a smaller "
        f"step_size{stable}"
    )
