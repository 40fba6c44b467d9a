"""One-pass stochastic gradient descent in full dimension.

One fresh sample per step and a ridge,
``x <- x - step_size * (gradient of the loss at the sample + ridge * x)``
(BGHJ (2.1), where the printed ridge lacks the step size). The path is not stored: only its
summary statistics, and on request the points themselves, at the requested times.
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
    snapshots: bool = False,
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run SGD from a start.

    Parameters
    ----------
    problem : Dynamics
        Its direct kernel makes the steps.
    start : NamedTuple of ndarray
        Point where the run begins, left unchanged.
    times : array_like, shape (T,)
        Increasing, rounded to whole steps; the trajectory reports ``steps * step_size``.
    step_size : float
        Learning rate, of order 1 / dimension in the sources.
    rng : int, SeedSequence or Generator
        Stream of the samples.
    stop : callable, optional
        ``stop(statistics)``, of statistics with a leading axis over times, returns a bool for
        each. The path ends at the first step where it is true, looked at after every step
        (here at the cost of as many evaluations of the statistics), and
        ``Trajectory.stopped`` tells when.
    snapshots : bool
        Also keep the point at each time: T times the size of a point in memory.
    progress : bool, str or callable
        As in :func:`traindyn.parallel.map_ordered`, over steps.

    Raises
    ------
    ValueError
        If the start, the times or the step size are out of range.
    FloatingPointError
        If the iterates diverge; the message names the step size and the time.

    Examples
    --------
    >>> from traindyn.sgd.direct import run
    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(3, 50, precision=10.0, ridge=0.05)
    >>> path = run(problem, problem.initial(rng=0), [0, 10, 40], step_size=0.02, rng=1)
    >>> bool(path.statistics.m[-1].trace() > path.statistics.m[0].trace())
    True
    """
    return _loop.run(
        chain.direct(problem, start),
        times,
        step_size=step_size,
        rng=rng,
        stop=stop,
        snapshots=snapshots,
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
    snapshots: bool = False,
    progress: Progress = False,
) -> Trajectory[Any]:
    """Run independent replicas of SGD in threads.

    Parameters
    ----------
    problem, times, step_size, stop, snapshots
        As in :func:`run`.
    replicas : int
        How many, at least 1.
    rng : int, SeedSequence or Generator
        Root of the streams; each replica has a child of its own, so the result does not
        depend on the number of workers. That of replica i alone is
        ``np.random.default_rng(rng).spawn(replicas)[i]``.
    start : point or callable, optional
        Point that every replica starts from, or ``start(generator)`` that draws one.
        Default: a draw of ``problem.initial`` per replica.
    on_divergence : {"raise", "stop"}
        What to do with a replica that leaves the finite numbers: raise an error that names
        it, or let it repeat its last finite record (the start, if there is none); then
        ``Trajectory.stopped`` is the first time at which it was seen to be gone.
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
    if start is None:
        require(problem, "sgd.direct.run_replicas without a start", "initial")

    def draw(generator: np.random.Generator) -> chain.Chain:
        return chain.direct(problem, _loop.drawn(start, problem.initial, generator))

    return _loop.run_replicas(
        draw,
        times,
        step_size=step_size,
        replicas=replicas,
        rng=rng,
        stop=stop,
        on_divergence=on_divergence,
        workers=workers,
        snapshots=snapshots,
        progress=progress,
    )
