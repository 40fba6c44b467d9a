r"""Full-batch gradient descent on the first layer of a two-layer network.

Each step is :math:`\Theta \leftarrow \Theta - \frac{\eta}{n} X^T F(X \Theta, y)` with the
force F of :class:`~traindyn.problems.multi_index.model.MultiIndex` (MW, training). The cost is that
of reading the inputs from memory, so they are read once per step: rows are multiplied by the
neurons and, while they are still in the cache, by the force. Blocks of rows are added in a fixed
order and in double precision, so that the result does not depend on the number of workers, and
single precision of the inputs costs no accuracy in the sums.

The loss of a fresh sample needs no test set: it is a Gaussian integral in a few dimensions.

*Null branch.* With a basis of the hard subspace given, the hard components of the neurons are
removed after every step. In high dimension they would stay negligible for any bounded number of
steps; removed, the dynamics stays on that branch for ever, at finite size.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from threadpoolctl import ThreadpoolController

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule
from traindyn.parallel import Progress, map_replicas, reporter
from traindyn.problems.multi_index import Data, MultiIndex, Statistics, orthonormal
from traindyn.sgd import _fused
from traindyn.trajectory import Trajectory, stack, whole_steps

__all__ = ["Criterion", "Run", "learnt", "run", "run_replicas"]

_Block: TypeAlias = Callable[[slice], tuple[float, Any]]
Criterion: TypeAlias = Callable[[Array, Array], bool]
"""``stop(overlap, gram)``, of shapes (m, k) and (m, m), looked at after every step."""

_BLOCK_BYTES = 2**21
"""Inputs of one block; small enough to stay in the cache between two matrix products."""
_CHECK_EVERY = 64
"""Steps between looks for divergence where nothing is recorded."""


@dataclass(frozen=True)
class _Learnt:
    """The criterion of :func:`learnt`, which the compiled loop takes as its level."""

    level: float

    def __call__(self, overlap: Array, gram: Array) -> bool:
        return bool(np.any((overlap**2).sum(axis=1) > self.level**2 * gram.diagonal()))


class Run(NamedTuple):
    """A path, and where it ended.

    Attributes
    ----------
    trajectory : Trajectory
        Of :class:`~traindyn.problems.multi_index.model.Statistics`, with the neurons as snapshots
        if they were asked for.
    neurons : ndarray, shape (d, m)
        At the end: give them to :func:`run` to go on.
    step : int
        Steps made, those of an earlier run included.
    """

    trajectory: Trajectory[Statistics]
    neurons: Array
    step: int


def learnt(level: float = 0.5) -> Criterion:
    """Stop once some neuron's cosine with the target's directions exceeds a level.

    Parameters
    ----------
    level : float, default 0.5
        In (0, 1).
    """
    bound = _validate.positive("level", level)
    if bound >= 1:
        raise ValueError(f"level must be below 1, got {level!r}")
    return _Learnt(bound)


def run(
    problem: MultiIndex,
    data: Data,
    start: ArrayLike,
    times: ArrayLike,
    *,
    step_size: float,
    null: ArrayLike | None = None,
    stop: Criterion | None = None,
    first_step: int = 0,
    rule: Rule | None = None,
    snapshots: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 500,
    workers: int = 1,
    progress: Progress = False,
) -> Run:
    """Run gradient descent from a start.

    Parameters
    ----------
    problem : MultiIndex
        The network that is trained, and the law of a fresh sample.
    data : Data
        float64 or float32, as from :meth:`~traindyn.problems.multi_index.model.MultiIndex.sample`.
    start : array_like, shape (d, m)
        Neurons where the run begins, left unchanged; kept in double precision.
    times : array_like, shape (T,)
        Increasing, rounded to whole steps, not before the first step.
    step_size : float
        Learning rate of the risk (for wide networks, of order m).
    null : array_like, shape (k, r), optional
        Orthonormal basis of a subspace of the target's directions: stay on the null branch.
    stop : callable, optional
        As :func:`learnt`. The trajectory repeats what it had then.
    first_step : int, default 0
        Step of the start, when an earlier run goes on.
    rule : Rule, optional
        For the loss of a fresh sample, as in
        :meth:`~traindyn.problems.multi_index.model.MultiIndex.population_loss`.
    snapshots : bool
        Keep the neurons at each time.
    checkpoint : path, optional
        File for the state, written whole and renamed every `checkpoint_every` steps. If it
        exists and belongs to the same run, the run goes on from it and gives the same numbers;
        it is left in place at the end.
    checkpoint_every : int, default 500
        In steps, at least 1.
    workers : int, default 1
        Threads.
    progress : bool, str or callable
        As in :func:`traindyn.parallel.map_ordered`, over steps.

    Raises
    ------
    ValueError
        If an argument is out of range or the checkpoint belongs to another run.
    FloatingPointError
        If the iterates diverge; the message names the step size and the step.

    Examples
    --------
    >>> from traindyn.problems.multi_index import MultiIndex
    >>> from traindyn.sgd.full_batch import run
    >>> problem = MultiIndex()
    >>> data = problem.sample(400, 40, rng=0)
    >>> found = run(problem, data, problem.initial(40, rng=1), [0, 10, 40], step_size=0.5)
    >>> losses = found.trajectory.statistics.train_loss
    >>> bool(losses[0] > losses[1] > losses[2])
    True
    """
    threads = _validate.integer("workers", workers, least=1)
    pool = ThreadPoolExecutor(threads) if threads > 1 else nullcontext()
    with _controller(len(sys.modules)).limit(limits=1), pool as executor:
        return _descend(
            problem,
            data,
            start,
            times,
            step_size=step_size,
            null=null,
            stop=stop,
            first_step=first_step,
            rule=rule,
            snapshots=snapshots,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            executor=executor,
            progress=progress,
        )


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Find the libraries with threads: milliseconds, so only when other modules came in."""
    return ThreadpoolController()


def _descend(
    problem: MultiIndex,
    data: Data,
    start: ArrayLike,
    times: ArrayLike,
    *,
    step_size: float,
    null: ArrayLike | None,
    stop: Criterion | None,
    first_step: int = 0,
    rule: Rule | None = None,
    snapshots: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 500,
    executor: Any = None,
    progress: Progress = False,
) -> Run:
    """:func:`run`, where the threads of the linear algebra have been limited already."""
    eta = _validate.positive("step_size", step_size)
    inputs, labels = _checked(problem, data)
    theta = _validate.finite("start", start, shape=(inputs.shape[1], problem.width)).copy()
    basis = None if null is None else orthonormal("null", null, rows=problem.k)
    steps = whole_steps(times, eta)
    first = _validate.integer("first_step", first_step, least=0)
    every = _validate.integer("checkpoint_every", checkpoint_every, least=1)
    if steps[0] < first:
        raise ValueError(f"times must not be before step {first}, got step {steps[0]}")
    _project(theta, basis)
    state = _State(theta, first, [], np.inf)
    store = None
    if checkpoint is not None:
        store = _Store(
            Path(checkpoint), _fingerprint(problem, inputs, labels, theta, steps, eta, basis, first)
        )
        state = store.load(state)
    total = int(steps[-1])
    report = reporter(progress)
    passes = _Passes(problem, inputs, labels, executor)
    # Between two looks at the state many steps are made in one call, if no other state is needed.
    fast = passes.compiled and not progress and (stop is None or isinstance(stop, _Learnt))
    while True:
        wanted = len(state.records) < steps.size and steps[len(state.records)] == state.step
        last = state.step >= total
        if stop is not None and stop(*_products(state.theta, problem.k)):
            state.stopped, last = state.step * eta, True
            wanted = True
        if fast and not wanted and not last:
            ahead = [total, int(steps[len(state.records)]), state.step + _CHECK_EVERY]
            if store is not None:
                ahead.append(state.step + every - (state.step - first) % every)
            ahead[2] -= ahead[2] % _CHECK_EVERY
            level = stop.level if isinstance(stop, _Learnt) else np.inf
            state.step += passes.descend(
                state.theta, eta / len(labels), min(ahead) - state.step, basis, level
            )
            _finish(state, eta, store, first, every)
            continue
        loss, gradient = passes(state.theta, with_loss=wanted, with_gradient=not last)
        if wanted:
            if not np.isfinite(loss):
                raise _diverged(eta, state.step)
            record = _record(problem, state.theta, loss, rule)
            kept = state.theta.copy() if snapshots else None
            missing = steps.size - len(state.records) if last else 1
            state.records += [(record, kept)] * missing
        if last:
            break
        state.theta -= eta / len(labels) * gradient
        _project(state.theta, basis)
        state.step += 1
        _finish(state, eta, store, first, every)
        report(state.step, total)
    if store is not None:
        store.save(state)
    return Run(_trajectory(state, steps, eta, snapshots), state.theta, state.step)


def _finish(state: _State, eta: float, store: _Store | None, first: int, every: int) -> None:
    """After a step: look for divergence, and keep the state, where it is time to."""
    if state.step % _CHECK_EVERY == 0 and not np.all(np.isfinite(state.theta)):
        raise _diverged(eta, state.step)
    if store is not None and (state.step - first) % every == 0:
        store.save(state)


def run_replicas(
    problem: MultiIndex,
    times: ArrayLike,
    *,
    dimension: int,
    samples: int,
    step_size: float,
    replicas: int,
    rng: RNG,
    null: ArrayLike | None = None,
    stop: Criterion | None = None,
    rule: Rule | None = None,
    dtype: DTypeLike = np.float32,
    workers: int | None = None,
    progress: Progress = False,
) -> Trajectory[Statistics]:
    """Run independent replicas, each with data and a start of its own.

    Parameters
    ----------
    problem, times, step_size, null, stop, rule
        As for :func:`run`.
    dimension, samples : int
        d and n.
    replicas : int
        How many, at least 1.
    rng : int, SeedSequence or Generator
        Root of the streams; the result does not depend on the number of workers.
    dtype : {float32, float64}
        Of the inputs.
    workers, progress
        As in :func:`traindyn.parallel.map_replicas`, over replicas.

    Returns
    -------
    Trajectory
        With a leading axis over replicas; ``stopped`` is finite where `stop` was true.

    Raises
    ------
    ValueError, FloatingPointError
        As for :func:`run`.
    """
    samples = _validate.integer("samples", samples, least=1)
    dimension = _validate.integer("dimension", dimension, least=problem.k)
    replicas = _validate.integer("replicas", replicas, least=1)
    rng = _validate.generator("rng", rng)

    def one(generator: np.random.Generator) -> Trajectory[Statistics]:
        data = problem.sample(samples, dimension, rng=generator, dtype=dtype)
        theta = problem.initial(dimension, rng=generator)
        # The limit on threads is global: it is set around all replicas, not in each.
        found = _descend(
            problem, data, theta, times, step_size=step_size, null=null, stop=stop, rule=rule
        )
        return found.trajectory

    return stack(map_replicas(one, replicas, rng=rng, workers=workers, progress=progress))


class _State:
    """What a checkpoint holds."""

    def __init__(self, theta: Array, step: int, records: list[Any], stopped: float) -> None:
        self.theta, self.step, self.records, self.stopped = theta, step, records, stopped


class _Passes:
    """Passes over the inputs."""

    def __init__(self, problem: MultiIndex, inputs: Any, labels: Any, executor: Any) -> None:
        self.problem, self.inputs, self.labels, self.executor = problem, inputs, labels, executor
        self.codes = _fused.codes(problem)
        n, d = inputs.shape
        rows = max(32, _BLOCK_BYTES // (d * inputs.itemsize) // 8 * 8)
        # With one thread and functions that the loop has, it makes many steps in a call.
        self.compiled = self.codes is not None and executor is None
        self.parts = _fused.split(inputs) if self.compiled else None
        self.rows = rows
        self.blocks = [slice(i, min(i + rows, n)) for i in range(0, n, rows)]

    def descend(
        self, theta: Array, step: float, count: int, basis: Array | None, level: float
    ) -> int:
        """Make up to `count` steps from theta, in place, and return how many."""
        assert self.codes is not None and self.parts is not None
        return _fused.descend(
            self.problem,
            self.codes,
            self.parts,
            self.labels,
            theta,
            rows=self.rows,
            step=step,
            count=count,
            basis=basis,
            level=level,
        )

    def __call__(self, theta: Array, *, with_loss: bool, with_gradient: bool) -> tuple[float, Any]:
        """Mean loss (zero unless wanted) and n times the gradient at theta."""
        if not (with_loss or with_gradient):
            return 0.0, None
        narrow = theta.astype(self.inputs.dtype)
        if self.codes is not None:
            block = self._fused(self.codes, np.ascontiguousarray(narrow.T), with_gradient)
        else:
            block = self._products(narrow, with_loss, with_gradient)
        spread = map if self.executor is None else self.executor.map
        total, gradient = 0.0, np.zeros_like(theta)
        for loss, part in spread(block, self.blocks):
            total += loss
            if with_gradient:
                gradient += part
        return total / len(self.labels), gradient

    def _fused(self, codes: _fused.Codes, neurons: Any, descend: bool) -> _Block:
        """Return the compiled pass over a block."""

        def block(rows: slice) -> tuple[float, Any]:
            x, y = self.inputs[rows], self.labels[rows]
            return _fused.gradient(self.problem, codes, x, y, neurons, descend=descend)

        return block

    def _products(self, neurons: Any, with_loss: bool, descend: bool) -> _Block:
        """Return the pass over a block by matrix products, for any functions."""

        def block(rows: slice) -> tuple[float, Any]:
            x, y = self.inputs[rows], self.labels[rows]
            # Overflow is reported as divergence, with the step.
            with np.errstate(over="ignore", invalid="ignore"):
                predictions, force = self.problem.force(x @ neurons, y)
                loss = 0.0
                if with_loss:
                    loss = float(self.problem.loss.value(y, predictions).sum(dtype=np.float64))
                # (F^T X)^T: the inputs in their stored order.
                return loss, (force.T @ x).T if descend else None

        return block


class _Store:
    """A checkpoint file."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint

    def load(self, fresh: _State) -> _State:
        """Read the state if there is one, else the fresh one."""
        if not self.path.exists():
            return fresh
        with np.load(self.path, allow_pickle=False) as held:
            if str(held["fingerprint"]) != self.fingerprint:
                raise ValueError(
                    f"checkpoint must belong to the same problem, data, start, times and step "
                    f"size, got {self.path} of another run"
                )
            fields = [held[f"record_{name}"] for name in Statistics._fields]
            kept = held["snapshots"]
            records = [
                (Statistics(*(field[i] for field in fields)), kept[i] if kept.size else None)
                for i in range(len(fields[0]))
            ]
            return _State(held["theta"], int(held["step"]), records, float(held["stopped"]))

    def save(self, state: _State) -> None:
        """Write a file beside the old one, then rename it."""
        columns: dict[str, Any] = {
            f"record_{name}": np.array([getattr(record, name) for record, _ in state.records])
            for name in Statistics._fields
        }
        kept = np.array([theta for _, theta in state.records if theta is not None])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(
                    file,
                    fingerprint=np.array(self.fingerprint),
                    theta=state.theta,
                    step=np.array(state.step),
                    stopped=np.array(state.stopped),
                    snapshots=kept,
                    **columns,
                )
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _checked(problem: MultiIndex, data: Data) -> tuple[Any, Any]:
    _validate.unmasked("data.inputs", data.inputs)
    _validate.unmasked("data.labels", data.labels)
    inputs, labels = np.asarray(data.inputs), np.asarray(data.labels)
    if inputs.dtype not in (np.float32, np.float64) or inputs.dtype != labels.dtype:
        raise ValueError(
            f"data must be float64 or float32 throughout, got {inputs.dtype} and {labels.dtype}"
        )
    if inputs.ndim != 2 or inputs.shape[1] < problem.k or labels.shape != inputs.shape[:1]:
        raise ValueError(
            f"data must have inputs (n, d >= {problem.k}) and labels (n,), got {inputs.shape} "
            f"and {labels.shape}"
        )
    # The inputs are not scanned: a NaN in them shows as divergence at the first record.
    _validate.finite("data.labels", labels)
    return np.ascontiguousarray(inputs), labels


def _project(theta: Array, basis: Array | None) -> None:
    """Remove the null components, in place."""
    if basis is not None:
        top = theta[: len(basis)]
        top -= basis @ (basis.T @ top)


def _products(theta: Array, k: int) -> tuple[Array, Array]:
    return theta[:k].T.copy(), theta.T @ theta


def _record(problem: MultiIndex, theta: Array, loss: float, rule: Rule | None) -> Statistics:
    overlap, gram = _products(theta, problem.k)
    test = problem.population_loss(gram, overlap, rule=rule)
    return Statistics(overlap, gram, np.asarray(loss), np.asarray(test))


def _trajectory(state: _State, steps: Any, eta: float, snapshots: bool) -> Trajectory[Statistics]:
    records = [record for record, _ in state.records]
    kept = np.array([theta for _, theta in state.records]) if snapshots else None
    return Trajectory(
        steps * eta,
        Statistics(*(np.array(field) for field in zip(*records))),
        eta,
        snapshots=None if kept is None else Snapshots(kept),
        stopped=np.asarray(state.stopped),
    )


class Snapshots(NamedTuple):
    """Neurons at the recorded times.

    Attributes
    ----------
    neurons : ndarray, shape (T, d, m)
    """

    neurons: Array


def _diverged(eta: float, step: int) -> FloatingPointError:
    return FloatingPointError(
        f"step_size must be small enough for gradient descent to stay finite, got {eta:g}: "
        f"divergence by step {step}"
    )


def _fingerprint(
    problem: MultiIndex,
    inputs: Any,
    labels: Any,
    theta: Array,
    steps: Any,
    eta: float,
    basis: Array | None,
    start: int,
) -> str:
    digest = hashlib.sha256(repr((problem.target, problem.activation, problem.loss)).encode())
    digest.update(repr((inputs.shape, str(inputs.dtype), eta, start)).encode())
    arrays = [problem.second_layer, problem.biases, labels, theta, np.asarray(steps)]
    # A few rows stand for the inputs: hashing gigabytes would cost more than many steps.
    arrays += [inputs[:: max(1, len(inputs) // 16)], np.empty(0) if basis is None else basis]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
