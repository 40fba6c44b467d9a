"""The same stochastic gradient descent, run on its summary statistics alone.

Inputs are isotropic Gaussian outside finitely many directions, so the summary statistics
of SGD form a Markov chain: its law is that of :mod:`traindyn.sgd.direct` exactly, in any
dimension, at a cost per step that does not depend on the dimension.
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
    statistics: Any,
    times: ArrayLike,
    *,
    step_size: float,
    rng: RNG,
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run the statistics of SGD from given statistics.

    Parameters
    ----------
    problem : Problem
    statistics : NamedTuple of ndarray
        Start, left unchanged.
    times, step_size, rng, progress
        As in :func:`traindyn.sgd.direct.run`.

    Returns
    -------
    Trajectory
        Equal in law, at each time and jointly, to that of :func:`traindyn.sgd.direct.run`
        from any point with these statistics.

    Raises
    ------
    ValueError
        If the statistics, the times, the step size or the dimension are out of range.
    FloatingPointError
        If the iterates diverge; the message names the step size and the time.

    Examples
    --------
    Ten million dimensions:

    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(3, 10**7, precision=10.0, ridge=0.05)
    >>> path = run(problem, problem.initial_statistics(), [0, 1e-4], step_size=1e-7, rng=1)
    >>> path.statistics.R_perp.shape
    (2, 3, 3)
    """
    step_size = _validate.positive("step_size", step_size)
    steps = whole_steps(times, step_size)
    kernel = problem.reduced_kernel()
    state = problem.reduced_state(statistics)
    seen = []
    pauses = advance(
        kernel,
        state,
        steps,
        step_size=step_size,
        ridge=problem.ridge,
        rng=np.random.default_rng(rng),
        progress=progress,
    )
    for step, _ in zip(steps, pauses, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            found = problem.reduced_statistics(state)
        if not all(np.isfinite(value).all() for value in found):
            raise diverged(step_size, problem.ridge, 0, int(step))
        seen.append(found)
    record = type(seen[0])
    return Trajectory(
        np.asarray(steps * step_size, dtype=np.float64),
        record(*(np.stack(values) for values in zip(*seen, strict=True))),
        step_size=step_size,
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
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run independent replicas of the statistics of SGD in threads.

    Parameters
    ----------
    problem, times, step_size
        As in :func:`run`.
    replicas, rng, workers, progress
        As in :func:`traindyn.sgd.direct.run_replicas`.
    start : statistics or callable, optional
        Statistics that every replica starts from, or ``start(generator)`` that draws
        them. Default: a draw from the law of the statistics of ``problem.initial`` per
        replica, so that the result is equal in law to that of
        :func:`traindyn.sgd.direct.run_replicas`.

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
            statistics = problem.draw_initial_statistics(rng=generator)
        else:
            statistics = start(generator) if callable(start) else start
        return run(problem, statistics, times, step_size=step_size, rng=generator)

    return stack(map_replicas(one, replicas, rng=rng, workers=workers, progress=progress))
