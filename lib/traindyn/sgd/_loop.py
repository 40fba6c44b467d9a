"""The loop shared by SGD in full dimension and on summary statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG, Array, IntArray
from traindyn.parallel import Progress, map_ordered, reporter
from traindyn.problems.chain import Chain
from traindyn.problems.loops import loop_of
from traindyn.trajectory import Trajectory, whole_steps

__all__ = ["Diverged", "OnDivergence", "Stop", "drawn", "run", "run_replicas"]

Stop: TypeAlias = Callable[[Any], ArrayLike]
OnDivergence: TypeAlias = Literal["raise", "stop"]

# Between two checks for divergence: entries of the state touched, and steps (about 10 ms of
# work, also for states of two or three numbers).
_ENTRIES_PER_CHECK = 2**25
_STEPS_PER_CHECK = 2**17

# Entries of recorded states held at a time: two megabytes. Where every step is looked at,
# the first batch has this many steps at most.
_ENTRIES_PER_RECORD = 2**18
_FEWEST_STEPS = 2**10


class Diverged(FloatingPointError):
    """The iterates left the finite numbers."""


class _Path(NamedTuple):
    """Statistics and snapshots at the recorded times, and the step the path was stopped at."""

    statistics: Any
    snapshots: Any
    stopped: float


def run(
    chain: Chain,
    times: ArrayLike,
    *,
    step_size: float,
    rng: RNG,
    stop: Stop | None,
    progress: Progress,
    snapshots: bool = False,
) -> Trajectory[Any]:
    """Run a chain from its start; as :func:`traindyn.sgd.direct.run`."""
    # Compiled code takes a number of another byte order for another number.
    step_size = _validate.positive("step_size", step_size)
    steps = whole_steps(times, step_size)
    generator = _validate.generator("rng", rng)
    path = _follow(
        chain, steps, step_size, generator, stop=stop, snapshots=snapshots, progress=progress
    )
    return Trajectory(
        np.asarray(steps * step_size, dtype=np.float64),
        path.statistics,
        step_size=step_size,
        snapshots=path.snapshots,
        stopped=None if stop is None else np.asarray(path.stopped * step_size),
    )


def run_replicas(
    draw: Callable[[np.random.Generator], Chain],
    times: ArrayLike,
    *,
    step_size: float,
    replicas: int,
    rng: RNG,
    stop: Stop | None,
    on_divergence: OnDivergence,
    workers: int | None,
    progress: Progress,
    snapshots: bool = False,
) -> Trajectory[Any]:
    """Run a chain for each replica; as :func:`traindyn.sgd.direct.run_replicas`."""
    # Compiled code takes a number of another byte order for another number.
    step_size = _validate.positive("step_size", step_size)
    steps = whole_steps(times, step_size)
    replicas = _validate.integer("replicas", replicas, least=1)
    lenient = _validate.choice("on_divergence", on_divergence, ("raise", "stop")) == "stop"

    def one(item: tuple[int, np.random.Generator]) -> _Path:
        index, generator = item
        try:
            return _follow(
                draw(generator),
                steps,
                step_size,
                generator,
                stop=stop,
                snapshots=snapshots,
                lenient=lenient,
            )
        except FloatingPointError as error:
            raise type(error)(f"replica {index} of {replicas}: {error}") from None

    children = enumerate(_validate.generator("rng", rng).spawn(replicas))
    paths = map_ordered(one, list(children), workers=workers, progress=progress)
    statistics, points, stopped = zip(*paths, strict=True)
    return Trajectory(
        np.asarray(steps * step_size, dtype=np.float64),
        _stacked(statistics),
        step_size=step_size,
        snapshots=_stacked(points) if snapshots else None,
        replicas=replicas,
        stopped=np.array(stopped) * step_size if stop or lenient else None,
    )


def drawn(start: Any, default: Callable[..., Any], generator: np.random.Generator) -> Any:
    """Return the start of one replica: given, drawn by `start`, or by default."""
    if start is None:
        return default(rng=generator)
    return start(generator) if callable(start) else start


def _stacked(records: Sequence[Any]) -> Any:
    return type(records[0])(*(np.stack(values) for values in zip(*records, strict=True)))


def _follow(
    chain: Chain,
    steps: IntArray,
    step_size: float,
    rng: np.random.Generator,
    *,
    stop: Stop | None,
    snapshots: bool,
    lenient: bool = False,
    progress: Progress = False,
) -> _Path:
    """Run a chain and record it after the given numbers of steps.

    It ends early where `stop` holds, which is looked at after every step, or, with `lenient`,
    where it leaves the finite numbers; the last finite record stands for all that is missing.
    """
    total, report = int(steps[-1]), reporter(progress)
    kept: list[tuple[Array, ...]] = []
    taken, done, stopped, latest = 0, 0, np.inf, None
    for marks, records in _stretches(chain, steps, step_size, rng, every_step=stop is not None):
        good = first = _finite_rows((records,))
        if good:
            arrays = chain.arrays(records[:good])
            with np.errstate(over="ignore", invalid="ignore"):
                seen = chain.observe(arrays)
                first = _first(stop, seen, good)
            good = _finite_rows(tuple(seen))
        if first < good:
            good, stopped = first + 1, float(marks[first])
        elif good < marks.size:
            before, after = (done, *marks)[good : good + 2]
            if not lenient or after == 0:
                near = _nearest(seen, good) if good else latest
                fault = chain.fault(near) if chain.fault and near is not None else ""
                raise _diverged(step_size, chain.ridge, before, after, fault)
            stopped = float(after)
        if good:
            latest = _nearest(seen, good)
            columns = (*seen, *(arrays if snapshots else ()))
            last = tuple(column[good - 1 : good] for column in columns)
            upto = int(np.searchsorted(steps, marks[good - 1], side="right"))
            places = np.searchsorted(marks, steps[taken:upto])
            kept.append(tuple(column[places] for column in columns))
            taken = upto
        if stopped < np.inf:
            kept.append(tuple(np.repeat(row, steps.size - taken, axis=0) for row in last))
            break
        done = int(marks[-1])
        report(done, total)
    if stopped < np.inf:
        report(total, total)
    joined = [np.concatenate(pieces) for pieces in zip(*kept, strict=True)]
    statistics, rest = joined[: len(seen)], joined[len(seen) :]
    points = chain.point(*rest) if snapshots and chain.point else None
    return _Path(type(seen)(*statistics), points, stopped)


def _stretches(
    chain: Chain,
    steps: IntArray,
    step_size: float,
    rng: np.random.Generator,
    *,
    every_step: bool,
) -> Iterator[tuple[IntArray, Array]]:
    """Advance the state, the start alone first: marks (the end one of them) and records."""
    vector, state = chain.state()
    loop, constants = loop_of(chain.kernel.step), chain.kernel.constants
    longest = max(1, min(_STEPS_PER_CHECK, _ENTRIES_PER_CHECK // vector.size))
    most = max(1, _ENTRIES_PER_RECORD // vector.size)
    yield np.zeros(1, dtype=np.int64), vector[None].copy()
    done, total = 0, int(steps[-1])
    while done < total:
        end = min(done + longest, total)
        if every_step:
            # A path that stops has wasted no more steps than it took.
            longer = min(most, max(_FEWEST_STEPS, done))
            marks = np.arange(done + 1, min(end, done + longer) + 1)
        else:
            within = steps[slice(*np.searchsorted(steps, [done, end], side="right"))]
            marks = np.union1d(within, end)[:most]
        records = np.empty((marks.size, vector.size))
        loop((state, constants), rng, step_size, (marks - done, vector, records))
        yield marks, records
        done = int(marks[-1])


def _nearest(statistics: Any, good: int) -> Any:
    """Return the last of some leading statistics."""
    return type(statistics)(*(column[good - 1] for column in statistics))


def _first(stop: Stop | None, statistics: Any, count: int) -> int:
    """Return the first of `count` places where a path is to be stopped, else `count`."""
    if stop is None:
        return count
    held = _validate.mask("stop(statistics)", stop(statistics), size=count)
    return int(np.argmax(np.r_[held, True]))


def _finite_rows(columns: tuple[Array, ...]) -> int:
    """Count the leading rows in which everything is finite."""
    finite = [np.isfinite(column.reshape(len(column), -1)).all(axis=1) for column in columns]
    return int(np.argmin(np.r_[np.logical_and.reduce(finite), False]))


def _diverged(step_size: float, ridge: float, before: int, after: int, fault: str = "") -> Diverged:
    """Error that names what made a run leave the finite numbers, and when: the step size or more.

    A fault of the problem near the last finite statistics is the likelier cause.
    """
    if fault:
        return Diverged(
            f"{fault}; the iterates left the finite numbers between t = {before * step_size:g} "
            f"and t = {after * step_size:g}"
        )
    stable = f" (the ridge alone allows step_size < 2 / ridge = {2 / ridge:g})" if ridge else ""
    return Diverged(
        f"step_size = {step_size:g} makes the iterates diverge: they left the finite numbers "
        f"between t = {before * step_size:g} and t = {after * step_size:g}; take a smaller "
        f"step_size{stable}"
    )
