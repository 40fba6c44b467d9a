r"""Full-batch gradient descent and SGD on two-layer models, with what catapults are seen by.

The loss is the mean of squared residuals, :math:`L = \frac1n \sum_i e_i^2` (ZHU (4.1)), so a step
on a batch of b is :math:`-\frac{2\eta}b J^\top e` and the critical step size of a batch is
:math:`b / \lambda_{\max}(K)`, with the kernel K of that batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn.catapults.two_layer import Batch, TwoLayerModel, Weights

__all__ = ["Schedule", "Training", "critical_step", "train"]

Array = NDArray[np.float64]
Schedule = Sequence[tuple[int, float]]

_LOST = 1e8


class Training(NamedTuple):
    """A training run.

    Attributes
    ----------
    steps : ndarray of int, shape (T,)
        Steps after which losses were recorded, the first of them zero.
    losses : ndarray, shape (T,)
        Training loss on all examples.
    test_losses : ndarray, shape (T,)
        NaN without test data.
    critical_steps : ndarray
        Of the batch of each step taken; empty if not asked for.
    step_sizes : ndarray
        Of each step taken.
    weights : Weights
        At the end.
    best : Weights
        Where the test loss was least (the training loss, without test data).
    diverged : int or None
        The step at which the loss left all bounds.
    """

    steps: NDArray[np.int64]
    losses: Array
    test_losses: Array
    critical_steps: Array
    step_sizes: Array
    weights: Weights
    best: Weights
    diverged: int | None


def critical_step(model: TwoLayerModel, weights: Weights, batch: Batch) -> float:
    """Return the largest step size at which the linearised loss does not grow.

    Parameters
    ----------
    model : TwoLayerModel
    weights : Weights
    batch : Batch
        From ``model.prepare``.

    Returns
    -------
    float
        ``n / lambda_max(K)``.
    """
    kernel = model.tangent_kernel(weights, batch)
    return float(len(kernel) / np.linalg.eigvalsh(kernel)[-1])


def train(
    model: TwoLayerModel,
    weights: Weights,
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    step_size: float | Schedule,
    steps: int,
    batch_size: int | None = None,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    every: int = 1,
    stop: float = 0.0,
    track: bool = False,
    rng: int | np.random.SeedSequence | np.random.Generator | None = None,
) -> Training:
    """Train a two-layer model.

    Parameters
    ----------
    model : TwoLayerModel
    weights : Weights
        At the start.
    inputs : array_like, shape (n, d)
    labels : array_like, shape (n,)
    step_size : float or sequence of (step, step size)
        Constant, or the step size from each of these steps on; the first is step 0.
    steps : int
        At most.
    batch_size : int, optional
        Without it, gradient descent on all examples. With it, epochs in random order, an
        incomplete last batch dropped.
    test : pair of array_like, optional
        Inputs and labels.
    every : int, default 1
        Steps between records of the losses.
    stop : float, default 0.0
        Training loss at which to stop.
    track : bool, default False
        Record the critical step size of the batch before every step.
    rng : int, SeedSequence or Generator, optional
        Required with `batch_size`.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        If shapes do not match, the batch is empty or larger than n, the schedule does not begin
        at step 0 or is not increasing, or `rng` is missing.

    Examples
    --------
    >>> start = TwoLayerModel.initialise(64, 2, rng=0)
    >>> run = train(TwoLayerModel(start), start, np.eye(2), [1.0, -1.0], step_size=0.5, steps=100)
    >>> bool(run.losses[-1] < 1e-3 * run.losses[0]), run.diverged
    (True, None)
    """
    y = _validate.finite("labels", labels, shape=(None,))
    whole = model.prepare(inputs)
    n = len(whole.inputs)
    if y.size != n:
        raise ValueError(f"labels must have one entry for each of {n} inputs, got {y.size}")
    total = _validate.integer("steps", steps, least=0)
    rates = _rates(step_size, total)
    size = n if batch_size is None else _validate.integer("batch_size", batch_size, least=1, most=n)
    if batch_size is not None and rng is None:
        raise ValueError("rng must be given with batch_size, got None")
    generator = np.random.default_rng(rng)
    gap = _validate.integer("every", every, least=1)
    unseen = None if test is None else (model.prepare(test[0]), np.asarray(test[1], np.float64))

    now = Weights(weights.first.copy(), weights.second.copy())
    best, least = now, np.inf
    times: list[int] = []
    losses: list[float] = []
    others: list[float] = []
    critical: list[float] = []
    order = np.empty(0, dtype=np.int64)
    diverged = None
    for t in range(total + 1):
        full = t % gap == 0 or t == total
        if full:
            loss = float(np.mean((model.outputs(now, whole) - y) ** 2))
            if not loss < _LOST * max(1.0, losses[0] if losses else 1.0):
                diverged = t
                break
            other = np.nan
            if unseen is not None:
                other = float(np.mean((model.outputs(now, unseen[0]) - unseen[1]) ** 2))
            times.append(t)
            losses.append(loss)
            others.append(other)
            if (loss if unseen is None else other) < least:
                least = loss if unseen is None else other
                best = Weights(now.first.copy(), now.second.copy())
            if loss <= stop:
                break
        if t == total:
            break
        part, target = whole, y
        if size < n:
            if order.size < size:
                order = generator.permutation(n)
            chosen, order = order[:size], order[size:]
            part, target = _rows(whole, chosen), y[chosen]
        if track:
            critical.append(critical_step(model, now, part))
        _, gradient = model.gradient(now, part, target)
        rate = 2 * rates[t] / size
        now = Weights(now.first - rate * gradient.first, now.second - rate * gradient.second)
    return Training(
        np.array(times),
        np.array(losses),
        np.array(others),
        np.array(critical),
        rates[: times[-1] if diverged is None else diverged],
        now,
        best,
        diverged,
    )


def _rows(batch: Batch, chosen: NDArray[np.int64]) -> Batch:
    fields = (None if field is None else field[chosen] for field in batch[1:])
    return Batch(batch.inputs[chosen], *fields)


def _rates(step_size: float | Schedule, steps: int) -> Array:
    """Return the step size of every step."""
    if not isinstance(step_size, Sequence):
        return np.full(steps, _validate.positive("step_size", step_size))
    starts = [_validate.integer("step_size steps", start, least=0) for start, _ in step_size]
    if not starts or starts[0] != 0 or any(b <= a for a, b in pairwise(starts)):
        raise ValueError(f"step_size must begin at step 0 and go on in order, got steps {starts}")
    rates = np.empty(steps)
    for start, (_, rate) in zip(starts, step_size):
        rates[start:] = _validate.positive("step_size", rate)
    return rates
