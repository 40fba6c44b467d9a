"""The one result type shared by simulation and theory.

Simulated paths, replicas of them and solutions of effective dynamics are all a
:class:`Trajectory` on the time axis ``t = steps * step_size``, so that they can be
drawn over and subtracted from each other without conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Trajectory", "first_passage", "stack", "whole_steps"]

Recorded = TypeVar("Recorded", bound=tuple[Any, ...])


@dataclass(frozen=True)
class Trajectory(Generic[Recorded]):
    """Summary statistics as functions of time, of one path or of several replicas.

    Attributes
    ----------
    times : ndarray, shape (T,)
        Strictly increasing, ``steps * step_size`` for a simulation. A read-only copy.
    statistics : NamedTuple of ndarray
        Each field has leading axes (T, ...), or (replicas, T, ...) when `replicas` is set.
    step_size : float, optional
        Of the simulation; None for a solution of an ordinary differential equation.
    snapshots : NamedTuple of ndarray, optional
        Points in parameter space at the same times, with the same leading axes.
    errors : NamedTuple of ndarray, optional
        Standard error or tolerance of `statistics`, field by field of the same shape.
    replicas : int, optional
        Number of independent paths in the leading axis; None for a single path.
    stopped : ndarray, shape () or (replicas,), optional
        Time each path was stopped at, infinite if it never was: from then on it repeats the
        statistics it had. None if nothing could stop it.

    Raises
    ------
    ValueError
        If times do not increase, or a field has a wrong leading axis or a NaN.

    Examples
    --------
    >>> from traindyn.trajectory import Trajectory
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> class Overlap(NamedTuple):
    ...     m: np.ndarray
    >>> path = Trajectory(np.array([0.0, 1.0, 3.0]), Overlap(np.array([0.0, 2.0, 6.0])))
    >>> path.at([0.5, 2.0]).m
    array([1., 4.])
    """

    times: Array
    statistics: Recorded
    step_size: float | None = None
    snapshots: Any = None
    errors: Recorded | None = None
    replicas: int | None = None
    stopped: Array | None = None

    def __post_init__(self) -> None:
        """Convert and check every field."""
        set_field = object.__setattr__
        # A trajectory may be made of another one's arrays, or of those of its caller.
        set_field(self, "times", _validate.frozen(_validate.increasing("times", self.times)))
        if self.step_size is not None:
            set_field(self, "step_size", _validate.positive("step_size", self.step_size))
        if self.replicas is not None:
            set_field(self, "replicas", _validate.integer("replicas", self.replicas, least=1))
        set_field(self, "statistics", self._checked("statistics", self.statistics))
        if self.snapshots is not None:
            set_field(self, "snapshots", self._checked("snapshots", self.snapshots))
        if self.errors is not None:
            errors = self._checked("errors", self.errors)
            for field, given, wanted in zip(
                _fields("errors", errors), errors, self.statistics, strict=True
            ):
                if given.shape != wanted.shape:
                    raise ValueError(
                        f"errors.{field} must have the shape {wanted.shape} of the statistics, "
                        f"got {given.shape}"
                    )
            set_field(self, "errors", errors)
        if self.stopped is not None:
            stopped = _validate.numeric("stopped", self.stopped)
            if stopped.shape != self._lead[:-1] or np.isnan(stopped).any():
                raise ValueError(
                    f"stopped must be times of shape {self._lead[:-1]}, got {self.stopped!r}"
                )
            set_field(self, "stopped", _validate.frozen(stopped))

    def __repr__(self) -> str:
        """Return one line."""
        lead = len(self._lead)
        shapes = ", ".join(
            f"{field} {value.shape[lead:]}"
            for field, value in zip(_fields("statistics", self.statistics), self.statistics)
        )
        parts = [f"{self.times.size} times from {self.times[0]:g} to {self.times[-1]:g}", shapes]
        parts += [] if self.replicas is None else [f"{self.replicas} replicas"]
        parts += [] if self.step_size is None else [f"step_size={self.step_size:g}"]
        parts += [
            name for name in ("snapshots", "errors", "stopped") if getattr(self, name) is not None
        ]
        return f"Trajectory({', '.join(parts)})"

    def _checked(self, name: str, record: Recorded) -> Recorded:
        lead = self._lead
        values = []
        for field, value in zip(_fields(name, record), record, strict=True):
            array = _validate.finite(f"{name}.{field}", value)
            if array.shape[: len(lead)] != lead:
                axes = "(replicas, times, ...)" if self.replicas is not None else "(times, ...)"
                raise ValueError(
                    f"{name}.{field} must have leading axes {axes} = {lead}, got {array.shape}"
                )
            values.append(_validate.frozen(array))
        return _like(record, values)

    @property
    def _lead(self) -> tuple[int, ...]:
        count = () if self.replicas is None else (self.replicas,)
        return (*count, self.times.size)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Number of steps taken at each time, shape (T,); needs a `step_size`."""
        if self.step_size is None:
            raise ValueError("step_size must be set to count steps, got None")
        return np.rint(self.times / self.step_size).astype(np.int64)

    def at(self, t: ArrayLike) -> Recorded:
        """Return the statistics at given times, interpolated linearly.

        Parameters
        ----------
        t : array_like
            Times within ``[times[0], times[-1]]``, of any shape.

        Returns
        -------
        NamedTuple of ndarray
            The shape of `t` takes the place of the time axis.

        Raises
        ------
        ValueError
            If a time lies outside the trajectory.
        """
        wanted = _validate.finite("t", t)
        first, last = self.times[0], self.times[-1]
        slack = 1e-12 * max(abs(first), abs(last))
        if wanted.size and (wanted.min() < first - slack or wanted.max() > last + slack):
            raise ValueError(
                f"t must lie in [{first:g}, {last:g}], "
                f"got times from {wanted.min():g} to {wanted.max():g}"
            )
        right = np.clip(np.searchsorted(self.times, wanted), 1, max(self.times.size - 1, 1))
        left = right - 1
        right = np.minimum(right, self.times.size - 1)
        gap = self.times[right] - self.times[left]
        share = np.where(gap > 0, (wanted - self.times[left]) / np.where(gap > 0, gap, 1.0), 0.0)
        share = np.clip(share, 0.0, 1.0)
        axis = len(self._lead) - 1

        def interpolate(value: Array) -> Array:
            trailing = value.ndim - axis - 1
            weight = share.reshape(share.shape + (1,) * trailing)
            low, high = np.take(value, left, axis=axis), np.take(value, right, axis=axis)
            return low * (1.0 - weight) + high * weight

        return _map(interpolate, self.statistics)

    def replica(self, index: int) -> Trajectory[Recorded]:
        """Return one of the replicas as a trajectory of its own."""
        count = self._need_replicas("replica", 1)
        index = _validate.integer("index", index, least=0, most=count - 1)

        def pick(value: Array) -> Array:
            return np.asarray(value[index])

        return replace(
            self,
            statistics=_map(pick, self.statistics),
            snapshots=None if self.snapshots is None else _map(pick, self.snapshots),
            errors=None if self.errors is None else _map(pick, self.errors),
            replicas=None,
            stopped=None if self.stopped is None else pick(self.stopped),
        )

    def select(self, indices: ArrayLike) -> Trajectory[Recorded]:
        """Return the trajectory at some of its times.

        Parameters
        ----------
        indices : array_like of int
            Increasing positions in `times`.

        Raises
        ------
        ValueError
            If an index does not exist or the indices do not increase.
        """
        _validate.unmasked("indices", indices)
        chosen = np.asarray(indices)
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise ValueError(f"indices must be a list of integers, got {indices!r}")
        if chosen.min() < 0 or chosen.max() >= self.times.size or np.any(np.diff(chosen) <= 0):
            raise ValueError(
                f"indices must increase within [0, {self.times.size - 1}], got {chosen.tolist()}"
            )
        axis = len(self._lead) - 1

        def pick(value: Array) -> Array:
            return np.take(value, chosen, axis=axis)

        return replace(
            self,
            times=self.times[chosen],
            statistics=_map(pick, self.statistics),
            snapshots=None if self.snapshots is None else _map(pick, self.snapshots),
            errors=None if self.errors is None else _map(pick, self.errors),
        )

    def mean(self) -> Trajectory[Recorded]:
        """Return the mean over replicas, with its standard error as `errors`.

        Stopped paths count with the statistics they were stopped at.
        """
        count = self._need_replicas("mean", 1)
        return Trajectory(
            self.times,
            _map(lambda value: np.asarray(value.mean(axis=0)), self.statistics),
            step_size=self.step_size,
            errors=self.standard_error() if count > 1 else None,
        )

    def standard_error(self) -> Recorded:
        """Return the standard error of the mean over replicas (at least two)."""
        count = self._need_replicas("standard_error", 2)
        return _map(
            lambda value: np.asarray(value.std(axis=0, ddof=1) / np.sqrt(count)), self.statistics
        )

    def _need_replicas(self, method: str, least: int) -> int:
        if self.replicas is None or self.replicas < least:
            raise ValueError(
                f"replicas must be at least {least} to take {method}(), got {self.replicas}"
            )
        return self.replicas

    def sup_distance(self, other: Trajectory[Recorded]) -> Recorded:
        r"""Return :math:`\sup_{t, \text{entries}} |u(t) - v(t)|`, field by field.

        Between SGD and its effective dynamics it vanishes as the dimension grows, if the limit
        has no noise (BGHJ Lemma 5.6).

        Parameters
        ----------
        other : Trajectory
            Compared at the times of `self`; interpolated linearly where its own times
            differ, so it must cover them.

        Returns
        -------
        NamedTuple
            Each field a scalar array, or of shape (replicas,) when either has replicas.

        Raises
        ------
        ValueError
            If the two hold different statistics, numbers of replicas or times.
        """
        if _fields("statistics", self.statistics) != _fields("other", other.statistics):
            raise ValueError(
                f"other must hold the statistics {type(self.statistics).__name__}, "
                f"got {type(other.statistics).__name__}"
            )
        if None not in (self.replicas, other.replicas) and self.replicas != other.replicas:
            raise ValueError(
                f"other must have {self.replicas} replicas or none, got {other.replicas}"
            )
        same = self.times.shape == other.times.shape and np.allclose(
            self.times, other.times, rtol=1e-12, atol=0.0
        )
        theirs = other.statistics if same else other.at(self.times)
        paired = self.replicas is not None or other.replicas is not None
        distances = []
        for field, mine, their in zip(
            _fields("statistics", self.statistics), self.statistics, theirs, strict=True
        ):
            # A single path is compared with each replica of the other.
            mine = mine if self.replicas is not None or not paired else mine[None]
            their = their if other.replicas is not None or not paired else their[None]
            if mine.shape[1 if paired else 0 :] != their.shape[1 if paired else 0 :]:
                raise ValueError(
                    f"other.{field} must have the shape {mine.shape}, got {their.shape}"
                )
            gap = np.abs(mine - their)
            axes = tuple(range(1 if paired else 0, gap.ndim))
            distances.append(gap.max(axis=axes))
        return _like(self.statistics, distances)


def stack(paths: Sequence[Trajectory[Recorded]]) -> Trajectory[Recorded]:
    """Join single paths on the same times as the replicas of one trajectory.

    Parameters
    ----------
    paths : sequence of Trajectory
        None of them with replicas; snapshots and stopping times are kept if all have them.

    Raises
    ------
    ValueError
        If there is no path, one has replicas already, or the times differ.
    """
    if not paths:
        raise ValueError("paths must hold at least one trajectory, got none")
    first = paths[0]
    for path in paths:
        if path.replicas is not None:
            raise ValueError(f"paths must be single trajectories, got one of {path.replicas}")
        if not np.array_equal(path.times, first.times):
            raise ValueError("paths must share their times, got different ones")

    def join(records: list[Any]) -> Any:
        columns = zip(*records, strict=True)
        return _like(records[0], [np.stack(column) for column in columns])

    snapshots = [path.snapshots for path in paths]
    stopped = [path.stopped for path in paths]
    return Trajectory(
        first.times,
        join([path.statistics for path in paths]),
        step_size=first.step_size,
        snapshots=None if any(each is None for each in snapshots) else join(snapshots),
        replicas=len(paths),
        stopped=None if any(each is None for each in stopped) else np.array(stopped),
    )


def whole_steps(times: ArrayLike, step_size: float) -> NDArray[np.int64]:
    """Round times to whole numbers of steps.

    Parameters
    ----------
    times : array_like, shape (T,)
        Strictly increasing, not negative.
    step_size : float
        Time that one step takes.

    Returns
    -------
    ndarray of int, shape (T,)
        Strictly increasing; times that round to the same step are an error.

    Raises
    ------
    ValueError
        If the step size is not positive, or two times fall on the same step.

    Examples
    --------
    >>> from traindyn.trajectory import whole_steps
    >>> whole_steps([0.0, 0.1, 1.0], 0.04)
    array([ 0,  2, 25])
    """
    size = _validate.positive("step_size", step_size)
    wanted = _validate.increasing("times", times)
    if wanted[-1] / size >= 2.0**53:
        raise ValueError(f"times must be below 2**53 steps of step_size, got {wanted[-1]:g}")
    steps = np.rint(wanted / size).astype(np.int64)
    if np.any(np.diff(steps) == 0):
        closest = np.diff(wanted).min()
        raise ValueError(
            f"step_size must not be larger than the gaps of times, which are at least one step "
            f"apart; got step_size = {size:g} and a gap of {closest:.3g}"
        )
    return steps


def _fields(name: str, record: Any) -> tuple[str, ...]:
    fields = getattr(record, "_fields", None)
    if not isinstance(record, tuple) or fields is None:
        raise ValueError(f"{name} must be a NamedTuple of arrays, got {type(record).__name__}")
    return cast("tuple[str, ...]", fields)


def _like(record: Recorded, values: list[Any]) -> Recorded:
    # A NamedTuple takes its fields as separate arguments, unlike a plain tuple.
    return cast("Callable[..., Recorded]", type(record))(*values)


def _map(function: Callable[[Array], Array], record: Recorded) -> Recorded:
    return _like(record, [function(value) for value in record])


def first_passage(times: ArrayLike, values: ArrayLike, level: float) -> Array:
    """Time at which positive paths first reach a level, between grid points geometrically.

    Parameters
    ----------
    times : array_like, shape (T,)
        Increasing.
    values : array_like, shape (..., T)
        Positive paths on this grid.
    level : float
        Positive.

    Returns
    -------
    ndarray, shape (...)
        Infinite where the level is not reached.

    Examples
    --------
    >>> from traindyn.trajectory import first_passage
    >>> first_passage([0.0, 1.0, 2.0], [[0.1, 1.0, 4.0], [0.1, 0.1, 0.1]], 2.0).tolist()
    [1.5, inf]
    """
    grid, level = _validate.increasing("times", times), _validate.positive("level", level)
    paths = _validate.ending("values", values, (grid.size,))
    if paths.min(initial=level) <= 0:
        raise ValueError(f"values must be positive, got {paths.min():.3g}")
    reached = paths >= level
    last = np.maximum(np.argmax(reached, axis=-1), 1)
    before = np.take_along_axis(paths, last[..., None] - 1, axis=-1)[..., 0]
    after = np.take_along_axis(paths, last[..., None], axis=-1)[..., 0]
    share = np.log(level / before) / np.log(np.where(after == before, np.inf, after) / before)
    found = grid[last - 1] + np.clip(share, 0.0, 1.0) * (grid[last] - grid[last - 1])
    return np.where(reached.any(axis=-1), found, np.inf)
