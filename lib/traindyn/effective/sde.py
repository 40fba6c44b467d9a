r"""Paths of stochastic differential equations, by the Euler-Maruyama scheme.

One step is :math:`u + h\, \mathrm{drift}(u) + \sqrt h\, \mathrm{factor}(u)\, z` with standard
normal z. The noise factor is used as it is, so the diffusion matrix may lose rank anywhere.
Laws are wrong by O(h), first passages by O(sqrt(h)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.diffusion import Diffusion
from traindyn.trajectory import Trajectory

__all__ = ["Coordinates", "solve"]


class Coordinates(NamedTuple):
    """Coordinates of a diffusion.

    Attributes
    ----------
    u : ndarray, shape (replicas, T, dim)
        In the order of ``Diffusion.names``.
    """

    u: Array


def solve(
    diffusion: Diffusion,
    start: ArrayLike,
    times: ArrayLike,
    *,
    step: float,
    replicas: int,
    rng: RNG,
    stop: Callable[[Array], ArrayLike] | None = None,
) -> Trajectory[Coordinates]:
    """Draw independent paths from time 0.

    Parameters
    ----------
    diffusion : Diffusion
        Of a :class:`~traindyn.diffusion.LinearDiffusion`, its ``diffusion()``.
    start : array_like, shape (dim,) or (replicas, dim)
        Common to all paths, or of each.
    times : array_like, shape (T,)
        Increasing, non-negative.
    step : float
        Longest step h: each interval between times is cut into equal ones.
    replicas : int
        Number of paths.
    rng : int, SeedSequence or Generator
        Draws the Brownian increments.
    stop : callable, optional
        From coordinates, shape (n, dim), to bools, shape (n,): a path ends where it is true,
        looked at after each step, and ``Trajectory.stopped`` tells when. Needed where paths
        explode.

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If a path leaves the finite numbers; the message names the step and the time.

    Examples
    --------
    The law of an Ornstein-Uhlenbeck process:

    >>> from traindyn.effective.sde import solve
    >>> import numpy as np
    >>> from traindyn.diffusion import LinearDiffusion
    >>> line = LinearDiffusion(("x",), np.array([[-1.0]]), np.array([[2.0]]))
    >>> path = solve(line.diffusion(), [0.0], [0.5], step=0.01, replicas=4000, rng=0)
    >>> exact = line.covariance([0.5], [[0.0]])[0, 0, 0]
    >>> bool(abs(path.statistics.u.var() / exact - 1) < 0.1)
    True
    """
    longest = _validate.positive("step", step)
    replicas = _validate.integer("replicas", replicas, least=1)
    grid = _validate.increasing("times", times)
    dim = len(diffusion.names)
    begin = _validate.finite("start", start)
    if begin.shape not in ((dim,), (replicas, dim)):
        raise ValueError(f"start must have shape {(dim,)} or {(replicas, dim)}, got {begin.shape}")
    generator = _validate.generator("rng", rng)
    u = np.broadcast_to(begin, (replicas, dim)).copy()
    stopped = np.full(replicas, np.inf)
    stopped[_held(stop, u)] = 0.0
    path = np.empty((replicas, grid.size, dim))
    now = 0.0
    for i, goal in enumerate(grid):
        count = math.ceil((goal - now) / longest)
        for j in range(1, count + 1):
            moving = np.flatnonzero(stopped == np.inf)
            if moving.size == 0:
                break
            after = now + (goal - now) * j / count
            here = _moved(diffusion, u, moving, (goal - now) / count, generator)
            if not np.isfinite(here).all():
                lost = moving[~np.isfinite(here).all(axis=1)]
                raise FloatingPointError(
                    f"step = {longest:g} or the diffusion itself makes {lost.size} of {replicas} "
                    f"paths leave the finite numbers by t = {after:g} (path {lost[0]} first); "
                    "take a smaller step, or stop paths that explode"
                )
            u[moving] = here
            stopped[moving[_held(stop, here)]] = after
        now = float(goal)
        path[:, i] = u
    return Trajectory(
        grid, Coordinates(path), replicas=replicas, stopped=None if stop is None else stopped
    )


def _moved(
    diffusion: Diffusion,
    u: Array,
    moving: NDArray[np.int64],
    width: float,
    rng: np.random.Generator,
) -> Array:
    """Coordinates of the moving paths after one step."""
    here = u[moving]
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.asarray(diffusion.factor(here))
        # Drawn for all paths, so that none depends on when the others stop.
        draws = rng.standard_normal((len(u), factor.shape[-1]))[moving]
        noise = np.einsum("nij,nj->ni", factor, draws)
        return np.asarray(here + width * diffusion.drift(here) + math.sqrt(width) * noise)


def _held(stop: Callable[[Array], ArrayLike] | None, u: Array) -> NDArray[np.bool_]:
    """Where paths are to be stopped, shape (n,)."""
    if stop is None:
        return np.zeros(len(u), dtype=np.bool_)
    return _validate.mask("stop(u)", stop(u), size=len(u))
