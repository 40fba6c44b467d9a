"""One-pass stochastic gradient descent in full dimension.

One fresh sample per step and a ridge,
``x <- x - step_size * (gradient of the loss at the sample + ridge * x)``
(BGHJ 2.1, where the printed ridge lacks the step size). The path is not stored: only its
summary statistics, and on request the points themselves, at the requested times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn.parallel import Progress, map_replicas
from traindyn.problems.base import RNG, Problem
from traindyn.sgd._loop import advance, diverged
from traindyn.trajectory import Trajectory, stack, whole_steps

__all__ = ["run", "run_replicas"]


def run(
    problem: Problem,
    point: Any,
    times: ArrayLike,
    *,
    step_size: float,
    rng: RNG,
    snapshots: bool = False,
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run SGD from a point.

    Parameters
    ----------
    problem : Problem
    point : NamedTuple of ndarray
        Start, left unchanged.
    times : array_like, shape (T,)
        Increasing, rounded to whole steps; the trajectory reports ``steps * step_size``.
    step_size : float
        Learning rate, of order 1 / dimension in the sources.
    rng : int, SeedSequence or Generator
        Stream of the samples.
    snapshots : bool
        Also keep the point at each time: T times the size of a point in memory.
    progress : bool, str or callable
        As in :func:`traindyn.parallel.map_ordered`, over steps.

    Returns
    -------
    Trajectory

    Raises
    ------
    ValueError
        If the point, the times or the step size are out of range.
    FloatingPointError
        If the iterates diverge; the message names the step size and the time.

    Examples
    --------
    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(3, 50, precision=10.0, ridge=0.05)
    >>> path = run(problem, problem.initial(rng=0), [0, 10, 40], step_size=0.02, rng=1)
    >>> bool(path.statistics.m[-1].trace() > path.statistics.m[0].trace())
    True
    """
    step_size = _validate.positive("step_size", step_size)
    steps = whole_steps(times, step_size)
    problem.statistics(point)  # refuses a wrong shape or a NaN before any work
    state = tuple(np.array(array, dtype=np.float64, order="C") for array in point)
    statistics, kept = [], []
    pauses = advance(
        problem.direct_kernel(),
        state,
        steps,
        step_size=step_size,
        ridge=problem.ridge,
        rng=np.random.default_rng(rng),
        progress=progress,
    )
    for step, _ in zip(steps, pauses, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            seen = problem.statistics(type(point)(*state))
        if not all(np.isfinite(value).all() for value in seen):
            raise diverged(step_size, problem.ridge, 0, int(step))
        statistics.append(seen)
        if snapshots:
            kept.append([array.copy() for array in state])
    record = type(statistics[0])
    return Trajectory(
        np.asarray(steps * step_size, dtype=np.float64),
        record(*(np.stack(values) for values in zip(*statistics, strict=True))),
        step_size=step_size,
        snapshots=(
            type(point)(*(np.stack(arrays) for arrays in zip(*kept, strict=True)))
            if snapshots
            else None
        ),
    )


def run_replicas(
    problem: Problem,
    times: ArrayLike,
    *,
    step_size: float,
    replicas: int,
    rng: RNG,
    start: Any | Callable[[np.random.Generator], Any] = None,
    workers: int | None = None,
    snapshots: bool = False,
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run independent replicas of SGD in threads.

    Parameters
    ----------
    problem, times, step_size, snapshots
        As in :func:`run`.
    replicas : int
    rng : int, SeedSequence or Generator
        Root of the streams; each replica has a child of its own, so the result does not
        depend on the number of workers.
    start : point or callable, optional
        Point that every replica starts from, or ``start(generator)`` that draws one.
        Default: a draw of ``problem.initial`` per replica.
    workers, progress
        As in :func:`traindyn.parallel.map_ordered`, over replicas.

    Returns
    -------
    Trajectory
        With a leading axis over replicas.

    Raises
    ------
    ValueError, FloatingPointError
        As in :func:`run`.
    """

    def one(generator: np.random.Generator) -> Trajectory[Any]:
        if start is None:
            point = problem.initial(rng=generator)
        else:
            point = start(generator) if callable(start) else start
        return run(problem, point, times, step_size=step_size, rng=generator, snapshots=snapshots)

    return stack(map_replicas(one, replicas, rng=rng, workers=workers, progress=progress))
