r"""Flows with a discontinuous right-hand side: crossing, sliding and repelling surfaces.

At infinite precision the drift of a two-layer network jumps where a neuron is orthogonal to a
centroid. Such a flow is piecewise smooth: its right-hand side is ``field(u, sides)``, where the
*sides* tell on which side of zero each of some coordinates (the *switches*) is. Where a switch
reaches zero, the two one-sided velocities decide, after Filippov:

* both point across: the path crosses;
* both point to zero: the path slides, the switch stays at exactly zero and the velocity is the
  mixture of both fields that keeps it there, until one of them turns away;
* both point away: the path has no unique continuation. Only a start can be such a place; there
  the caller says which way to go (in BGJ Section 9.4, :math:`0^+` or :math:`0^-` with
  probability one half each).

Between these events the flow is integrated with one smooth branch of the field, extended
beyond its side, and the events are located to the accuracy of the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from traindyn import _validate
from traindyn._evaluations import bounded
from traindyn._types import Array, IntArray
from traindyn.problems.two_layer import limit
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture
from traindyn.trajectory import Trajectory

__all__ = ["Field", "solve", "solve_limit"]

Field: TypeAlias = Callable[[Array, IntArray], Array]

_MOST_SEGMENTS = 10_000
# A switch within this multiple of `atol` from zero, and moving towards it, has reached it.
_REACHED = 10.0


def solve(
    field: Field,
    start: ArrayLike,
    times: ArrayLike,
    *,
    switches: ArrayLike,
    signs: ArrayLike | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Array:
    """Integrate a piecewise smooth flow from time 0.

    Parameters
    ----------
    field : callable
        ``field(u, sides)``, from a state of shape (n,) and sides +1 or -1 of shape (b, q) to
        velocities of shape (b, n), one for each row of sides. Each branch must be smooth and
        defined beyond its own side. The jump across the zero of one switch must not reach
        the velocities of the others.
    start : array_like, shape (n,)
        State at time 0; a switch may be zero in it.
    times : array_like, shape (T,)
        Increasing, non-negative.
    switches : array_like of int, shape (q,)
        Different coordinates across whose zeros the field jumps.
    signs : array_like, shape (q,), optional
        +1 or -1 where a switch starts at zero and both velocities point away; not used at
        other switches, where 0 may stand.
    rtol, atol : float
        Tolerances of the solver (Dormand-Prince of order 8). A sliding switch leaves zero
        when a velocity turns away by more than `atol`.

    Returns
    -------
    ndarray, shape (T, n)
        Sliding switches are exactly zero.

    Raises
    ------
    ValueError
        If an argument is out of range, a start is repelling and no sign is given, or the way to
        an event or to the last time takes more than 100000 evaluations of the field.
    FloatingPointError
        If the path leaves every bounded set, reaches a repelling place, or has more than
        ten thousand events.

    Examples
    --------
    A ball pressed against the wall u = 0 by the velocity ``-sign(u)``, then carried away:

    >>> from traindyn.effective.sliding import solve
    >>> import numpy as np
    >>> def field(u, sides):
    ...     return np.stack([u[1] - sides[:, 0], np.ones(len(sides))], axis=-1)
    >>> path = solve(field, [0.5, -0.5], [0.2, 1.0, 1.5, 2.5], switches=[0])
    >>> path[:, 0].round(9).tolist()
    [0.22, 0.0, 0.0, 0.5]
    """
    state = _validate.finite("start", start, shape=(None,)).copy()
    grid = _validate.increasing("times", times)
    flow = _Flow(
        field,
        _switches(switches, state.size),
        _validate.positive("rtol", rtol),
        _validate.positive("atol", atol),
    )
    modes = flow.first_modes(state, _signs(signs, flow.switches.size))
    path = np.empty((grid.size, state.size))
    path[:] = state
    done, now = int(grid[0] == 0), 0.0
    for _ in range(_MOST_SEGMENTS):
        if done == grid.size:
            return path
        reached, now, state, modes = flow.advance(now, state, modes, grid[done:])
        path[done : done + len(reached)] = reached
        done += len(reached)
    raise FloatingPointError(
        f"path must have at most {_MOST_SEGMENTS} events, got more by time {now:g}"
    )


def solve_limit(
    problem: TwoLayerMixture,
    start: Statistics,
    times: ArrayLike,
    *,
    signs: ArrayLike | None = None,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    drift: Callable[..., Statistics] = limit.drift,
) -> Trajectory[Statistics]:
    """Integrate the effective dynamics of a two-layer network at infinite precision.

    Parameters
    ----------
    problem : TwoLayerMixture
        Its precision is not used.
    start : Statistics
        Statistics at time 0.
    times : array_like, shape (T,)
        Increasing, non-negative.
    signs : array_like, shape (K, L), optional
        Which way each neuron leaves zero along each of the lines of the centroids
        (:func:`traindyn.problems.two_layer.limit.lines`). Needed where zero repels: in the
        XOR mixture along the line of the label that the sign of :math:`v_i` stands for.
    rtol, atol : float
        As for :func:`solve`.
    drift : callable, optional
        Takes the place of :func:`traindyn.problems.two_layer.limit.drift`.

    Returns
    -------
    Trajectory
        With exact zeros where a neuron slides; ``R_perp`` is exact.

    Raises
    ------
    ValueError
        If an argument is out of range, a sign is missing, or the lines of the centroids are
        linearly dependent.
    FloatingPointError
        As :func:`solve`.

    Examples
    --------
    >>> from traindyn.effective.sliding import solve_limit
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> import numpy as np
    >>> problem = TwoLayerMixture.binary(2, 20, precision=10.0, ridge=0.1)
    >>> start = Statistics(np.array([0.6, -0.2]), np.zeros((2, 1)), np.eye(2))
    >>> end = solve_limit(problem, start, [200.0]).statistics
    >>> end.v.round(6).tolist()
    [[1.17741, -1.17741]]
    """
    frame = _Frame(problem)
    grid = _validate.increasing("times", times)
    v = _validate.finite("start.v", start.v, shape=(frame.width,))
    m = _validate.finite("start.m", start.m, shape=(frame.width, frame.dimension))
    gram = _validate.positive_semidefinite(
        "start.R_perp", start.R_perp, size=frame.width, scale=1.0
    )
    wanted = (frame.width, frame.count)
    chosen = None if signs is None else _validate.finite("signs", signs, shape=wanted).ravel()

    def field(u: Array, sides: IntArray) -> Array:
        here = Statistics(*frame.split(u), gram)
        rate = drift(problem, here, sides=sides.reshape(-1, *wanted))
        return frame.join(rate.v, rate.m)

    path = solve(
        field,
        frame.join(v, m),
        grid,
        switches=frame.switches,
        signs=chosen,
        rtol=rtol,
        atol=atol,
    )
    decay = np.exp(-2.0 * problem.ridge * grid)[:, None, None]
    return Trajectory(grid, Statistics(*frame.split(path), decay * gram))


class _Frame:
    """Coordinates of (v, m) in which every discontinuity is a zero of a coordinate.

    The rows of `_into` are the directions of the lines, completed to a basis.
    """

    def __init__(self, problem: TwoLayerMixture) -> None:
        directions = limit.lines(problem).directions
        self.count, self.dimension = directions.shape
        self.width = problem.width
        if np.linalg.matrix_rank(directions) < self.count:
            raise ValueError(
                f"centroids must lie on linearly independent lines, got {self.count} lines in "
                f"dimension {self.dimension}"
            )
        complement = np.linalg.svd(directions)[2][self.count :]
        into = np.concatenate([directions, complement])
        # Centroids along axes leave the coordinates as they are, without rounding.
        self._into = into
        self._back = np.linalg.inv(into)
        first = self.width + self.dimension * np.arange(self.width)
        self.switches = np.ravel(first[:, None] + np.arange(self.count))

    def join(self, v: Array, m: Array) -> Array:
        """Return the state of (v, m), shape (..., K + K d)."""
        turned = m @ self._into.T
        return np.concatenate([v, turned.reshape(*turned.shape[:-2], -1)], axis=-1)

    def split(self, u: Array) -> tuple[Array, Array]:
        """Return (v, m) of a state."""
        turned = u[..., self.width :].reshape(*u.shape[:-1], self.width, self.dimension)
        return u[..., : self.width], turned @ self._back.T


@dataclass(frozen=True)
class _Flow:
    """A piecewise smooth field; the mode of a switch is its side, or 0 while it slides."""

    field: Field
    switches: IntArray
    rtol: float
    atol: float

    def first_modes(self, state: Array, signs: IntArray) -> IntArray:
        """Modes at the start."""
        modes = np.sign(state[self.switches]).astype(np.int64)
        lower, upper = self._one_sided(state, modes)
        for j in np.flatnonzero(modes == 0):
            mode = self._continuation(lower[j], upper[j])
            if mode is None and signs[j] == 0:
                raise ValueError(
                    f"signs must be +1 or -1 where zero repels, got none for coordinate "
                    f"{self.switches[j]} of the start"
                )
            modes[j] = signs[j] if mode is None else mode
        return modes

    def advance(
        self, now: float, state: Array, modes: IntArray, grid: Array
    ) -> tuple[Array, float, Array, IntArray]:
        """Integrate to the next event or the last time.

        Returns the states on the times of `grid` met on the way, and the time, state and
        modes after the event.
        """
        sided, still = np.flatnonzero(modes), np.flatnonzero(modes == 0)
        events = [self._arrival(j, int(modes[j])) for j in sided.tolist()]
        events += [self._departure(j, side, modes) for j in still.tolist() for side in (1, -1)]
        try:
            with np.errstate(over="raise", invalid="raise"):
                found = solve_ivp(
                    bounded(lambda _, u: self._velocity(u, modes), float(grid[-1])),
                    (now, grid[-1]),
                    state,
                    method="DOP853",
                    t_eval=grid,
                    events=events,
                    rtol=self.rtol,
                    atol=self.atol,
                )
            reason = "" if found.status >= 0 else found.message
        except FloatingPointError as error:
            reason = str(error)
        if reason:
            raise FloatingPointError(
                f"path must stay finite until time {grid[-1]:g}, the solver stopped after "
                f"{now:g}: {reason}"
            )
        reached = np.reshape(found.y, (state.size, -1)).T.copy()
        if found.status == 0:
            return reached, float(grid[-1]), state, modes
        which = next(k for k, when in enumerate(found.t_events) if len(when))
        time, place = float(found.t_events[which][0]), found.y_events[which][0].copy()
        after = modes.copy()
        if which < sided.size:
            self._arrive(place, after, int(sided[which]), time)
        else:
            number, direction = divmod(which - sided.size, 2)
            after[still[number]] = 1 - 2 * direction
        return reached, time, place, after

    def _arrive(self, place: Array, modes: IntArray, first: int, time: float) -> None:
        """Set to zero the switches that have reached it, and their modes."""
        heights = modes * place[self.switches]
        speeds = modes * self._velocity(place, modes)[self.switches]
        hits = (modes != 0) & (heights <= _REACHED * self.atol) & (speeds < 0)
        hits[first] = True
        place[self.switches[hits]] = 0.0
        modes[hits] = 0
        lower, upper = self._one_sided(place, modes)
        for j in np.flatnonzero(hits):
            mode = self._continuation(lower[j], upper[j])
            if mode is None:
                raise FloatingPointError(
                    f"path must not reach a repelling zero, got one in coordinate "
                    f"{self.switches[j]} at time {time:g}"
                )
            modes[j] = mode

    def _continuation(self, lower: float, upper: float) -> int | None:
        """Mode after a zero with these one-sided velocities, None where it repels."""
        rises, falls = upper > self.atol, lower < -self.atol
        if rises and falls:
            return None
        return int(rises) - int(falls)

    def _velocity(self, u: Array, modes: IntArray) -> Array:
        """Velocity of the flow, exactly zero in sliding switches."""
        return self._mixture(u, modes)[0]

    def _one_sided(self, u: Array, modes: IntArray) -> tuple[Array, Array]:
        """Velocities of the sliding switches if their side were -1 or +1, each shape (q,)."""
        _, lower, upper = self._mixture(u, modes)
        return lower, upper

    def _mixture(self, u: Array, modes: IntArray) -> tuple[Array, Array, Array]:
        """Filippov velocity, and the one-sided velocities of the sliding switches."""
        still = np.flatnonzero(modes == 0)
        sides = np.tile(np.where(modes == 0, -1, modes), (still.size + 1, 1))
        sides[np.arange(1, still.size + 1), still] = 1
        branches = self.field(u, sides)
        velocity = branches[0]
        lower, upper = np.zeros(modes.size), np.zeros(modes.size)
        if still.size:
            places = self.switches[still]
            lower[still] = velocity[places]
            upper[still] = branches[np.arange(1, still.size + 1), places]
            gap = lower[still] - upper[still]
            shares = np.divide(lower[still], gap, out=np.zeros(still.size), where=gap != 0)
            velocity = velocity + shares @ (branches[1:] - velocity)
            velocity[places] = 0.0
        return velocity, lower, upper

    def _arrival(self, j: int, side: int) -> Any:
        """Event: a switch comes to zero from its side."""
        place = self.switches[j]
        return _terminal(lambda _, u: side * u[place], -1.0)

    def _departure(self, j: int, side: int, modes: IntArray) -> Any:
        """Event: the one-sided velocity of a sliding switch turns away from zero."""

        def excess(_: float, u: Array) -> float:
            outward = self._one_sided(u, modes)[(1 + side) // 2][j]
            return float(side * outward - self.atol)

        return _terminal(excess, 1.0)


def _terminal(function: Callable[[float, Array], float], direction: float) -> Any:
    """Mark a function of (t, u) as an event that ends the integration."""
    event: Any = function
    event.terminal = True
    event.direction = direction
    return event


def _switches(switches: ArrayLike, size: int) -> IntArray:
    chosen = np.asarray(switches)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise ValueError(f"switches must be a list of integers, got {switches!r}")
    if len(set(chosen.tolist())) < chosen.size or np.any((chosen < 0) | (chosen >= size)):
        raise ValueError(
            f"switches must be different coordinates in [0, {size - 1}], got {chosen.tolist()}"
        )
    return chosen.astype(np.int64)


def _signs(signs: ArrayLike | None, count: int) -> IntArray:
    if signs is None:
        return np.zeros(count, dtype=np.int64)
    chosen = _validate.finite("signs", signs, shape=(count,))
    if np.any((chosen != 0) & (np.abs(chosen) != 1)):
        raise ValueError(f"signs must be +1, -1 or 0, got {np.unique(chosen).tolist()}")
    return chosen.astype(np.int64)
