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

from traindyn._types import RNG
from traindyn.parallel import Progress
from traindyn.problems import chain
from traindyn.problems.base import Dynamics, require
from traindyn.sgd import _loop
from traindyn.sgd._loop import OnDivergence, Stop
from traindyn.trajectory import Trajectory

__all__ = ["run", "run_replicas"]


def run(
    problem: Dynamics,
    start: Any,
    times: ArrayLike,
    *,
    step_size: float,
    rng: RNG,
    stop: Stop | None = None,
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run the statistics of SGD from given statistics.

    Parameters
    ----------
    problem : Dynamics
        Its reduced kernel makes the steps.
    start : NamedTuple of ndarray
        Statistics where the run begins, left unchanged.
    times, step_size, rng, stop, progress
        As in :func:`traindyn.sgd.direct.run`.

    Returns
    -------
    Trajectory
        Equal in law, at each time and jointly, to that of :func:`traindyn.sgd.direct.run`
        from any point with these statistics.

    Raises
    ------
    ValueError
        If the start, the times, the step size or the dimension are out of range.
    FloatingPointError
        If the iterates diverge; the message names the step size and the time.

    Examples
    --------
    Ten million dimensions:

    >>> from traindyn.sgd.reduced import run
    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(3, 10**7, precision=10.0, ridge=0.05)
    >>> path = run(problem, problem.initial_statistics(), [0, 1e-4], step_size=1e-7, rng=1)
    >>> path.statistics.R_perp.shape
    (2, 3, 3)
    """
    return _loop.run(
        chain.reduced(problem, start),
        times,
        step_size=step_size,
        rng=rng,
        stop=stop,
        progress=progress,
    )


def run_replicas(
    problem: Dynamics,
    times: ArrayLike,
    *,
    step_size: float,
    replicas: int,
    rng: RNG,
    start: Any | Callable[[np.random.Generator], Any] = None,
    stop: Stop | None = None,
    on_divergence: OnDivergence = "raise",
    workers: int | None = None,
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run independent replicas of the statistics of SGD in threads.

    Parameters
    ----------
    problem, times, step_size, stop
        As in :func:`run`.
    replicas, rng, on_divergence, workers, progress
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
    if start is None:
        require(problem, "sgd.reduced.run_replicas without a start", "draw_initial_statistics")

    def draw(generator: np.random.Generator) -> chain.Chain:
        statistics = _loop.drawn(start, problem.draw_initial_statistics, generator)
        return chain.reduced(problem, statistics)

    return _loop.run_replicas(
        draw,
        times,
        step_size=step_size,
        replicas=replicas,
        rng=rng,
        stop=stop,
        on_divergence=on_divergence,
        workers=workers,
        progress=progress,
    )
