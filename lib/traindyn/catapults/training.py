r"""Full-batch gradient descent and SGD, with what catapults are seen by.

The loss is the mean of squared residuals, :math:`L = \frac1n \sum_i e_i^2` (ZHU (4.1)), so a step
on a batch of b is :math:`-\frac{2\eta}b J^\top e` and the critical step size of a batch is
:math:`b / \lambda_{\max}(K)`, with the kernel K of that batch. With k outputs there are n k
residuals.

One loop serves two-layer models in NumPy and the deep ones of :mod:`traindyn.deep.models`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.catapults.batches import batch_order
from traindyn.catapults.schedules import StepSize, TrainingState, step_sizes
from traindyn.catapults.spikes import leading_eigenpairs

__all__ = [
    "Observer",
    "Optimiser",
    "Stretch",
    "Trainable",
    "Training",
    "critical_step",
    "train",
]

W = TypeVar("W", bound=tuple[Any, ...])
B = TypeVar("B", bound=tuple[Any, ...])

_LOST = 1e8


class Trainable(Protocol[W, B]):
    """What can be trained: a function of weights, which are a tuple of arrays, and inputs.

    A batch is a named tuple of arrays with one row per input, or None.
    """

    def prepare(self, inputs: ArrayLike) -> B:
        """Return inputs with what does not change during training."""
        ...

    def outputs(self, weights: W, batch: B) -> Array:
        """Return the outputs, shape (n,) or (n, k)."""
        ...

    def gradient(self, weights: W, batch: B, labels: Array) -> tuple[Array, W]:
        """Return residuals, and the gradient of half the sum of their squares."""
        ...

    def descend(self, weights: W, gradient: W, size: float) -> W:
        """Return new weights, `size` times the gradient lower; the gradient may be used up."""
        ...

    def tangent_kernel(self, weights: W, batch: B) -> Array:
        """Return the tangent kernel, shape (n k, n k)."""
        ...


class Stretch(Protocol):
    """Many steps in one call: what a model may have as its attribute ``descend_many``.

    :func:`train` makes single steps where a model has no such attribute, or None. A subclass that
    changes ``gradient`` or ``descend`` has to change it too, or set it to None.
    """

    def __call__(
        self,
        weights: Any,
        batch: Any,
        labels: Array,
        sizes: Array,
        *,
        rows: NDArray[np.int64] | None = None,
        bound: float = np.inf,
        track: bool = False,
    ) -> tuple[Any, int, Array]:
        """Make a step of each size down the gradient of half the sum of squares.

        Parameters
        ----------
        weights : tuple of arrays
            Where the first step starts.
        batch : tuple of arrays
            All examples.
        labels : ndarray, shape of the outputs
            Targets of all examples.
        sizes : ndarray, shape (steps,)
            By what each gradient is multiplied.
        rows : ndarray of int, shape (steps, b), optional
            The examples of each step; all of them, unless given.
        bound : float, optional
            No step is made from where the mean square of its residuals is not below.
        track : bool, default False
            Work out the critical step size of each batch.

        Returns
        -------
        weights : tuple of arrays
        steps : int
            Those made.
        critical_steps : ndarray, shape (steps,)
            Empty unless tracked.
        """
        ...


class Optimiser(Protocol):
    """A rule for the direction of a step, such as those of Optax."""

    def init(self, weights: Any) -> Any:
        """Return the state before the first step."""
        ...

    def update(self, gradient: Any, state: Any, weights: Any) -> tuple[Any, Any]:
        """Return the change of the weights at step size one, and the next state."""
        ...


@dataclass(frozen=True)
class Observer:
    """What a run observes of the residuals, computed where the run has them already.

    Parameters
    ----------
    model : Trainable
    batch : tuple of arrays
        From ``model.prepare``.
    labels : ndarray, of the shape of the outputs
    see : callable
        From weights and residuals to an array.
    """

    model: Trainable[Any, Any]
    batch: Any
    labels: Array
    see: Callable[[Any, Array], Array]

    def __call__(self, weights: Any) -> Array:
        """Work out the residuals and look at them."""
        return self.see(weights, self.model.outputs(weights, self.batch) - self.labels)

    def same(self, model: Trainable[Any, Any], batch: Any, labels: Array) -> bool:
        """Whether the residuals are those of this model, batch and labels."""
        return (
            self.model is model
            and np.array_equal(self.batch[0], batch[0])
            and np.array_equal(self.labels, labels)
        )


class Training(NamedTuple):
    """A training run.

    Attributes
    ----------
    steps : ndarray of int, shape (T,)
        Steps after which losses were recorded, the first of them zero.
    losses : ndarray, shape (T,)
        Training loss on all examples.
    validation_losses : ndarray, shape (T,)
        NaN without validation data.
    leading_losses, kernel_norms : ndarray, shape (T,)
        Mean square of the residuals within the leading eigenvectors of the kernel of all
        examples, and the kernel's largest eigenvalue; empty if not asked for.
    observed : ndarray, shape (T, ...)
        What was observed; empty if nothing.
    critical_steps : ndarray
        Of the batch of each step taken; empty if not asked for.
    step_sizes : ndarray
        Of each step taken.
    batches : ndarray of int, shape (steps taken, b)
        The examples of each step; empty for gradient descent.
    weights : tuple of arrays
        At the end.
    best : tuple of arrays
        Where the validation loss was least (the training loss, without validation data).
    best_step : int
    diverged : int or None
        The step at which the loss left all bounds.
    """

    steps: NDArray[np.int64]
    losses: Array
    validation_losses: Array
    leading_losses: Array
    kernel_norms: Array
    observed: Array
    critical_steps: Array
    step_sizes: Array
    batches: NDArray[np.int64]
    weights: Any
    best: Any
    best_step: int
    diverged: int | None


def critical_step(model: Trainable[W, B], weights: W, batch: B) -> float:
    """Return the largest step size at which the linearised loss does not grow.

    Parameters
    ----------
    model : Trainable
        Whose tangent kernel decides.
    weights : tuple of arrays
        Where the kernel is taken.
    batch : tuple of arrays
        From ``model.prepare``.

    Returns
    -------
    float
        The number of residuals over the largest eigenvalue of the kernel; infinite where the
        kernel is zero, as in a network whose gates are all closed.
    """
    _validate.providing("model", model, "tangent_kernel")
    kernel = _validate.finite("kernel", model.tangent_kernel(weights, batch), shape=(None, None))
    return _critical(len(kernel), float(np.linalg.eigvalsh(kernel)[-1]))


def train(
    model: Trainable[W, B],
    start: W,
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    step_size: StepSize,
    steps: int,
    batch_size: int | None = None,
    optimiser: Optimiser | None = None,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    every: int = 1,
    leading: int | None = None,
    observe: Callable[[W], ArrayLike] | None = None,
    stop: float = 0.0,
    track: bool = False,
    rng: int | np.random.SeedSequence | np.random.Generator | None = None,
) -> Training:
    """Train a model on the mean squared residual.

    Parameters
    ----------
    model : Trainable
        :class:`TwoLayerModel`, or one of :mod:`traindyn.deep.models`.
    start : tuple of arrays
        Weights where the run begins, left unchanged.
    inputs : array_like, shape (n, d)
        All examples; ``model.prepare`` is called on them once.
    labels : array_like, shape (n,) or (n, k)
        Of the shape of the outputs.
    step_size : float, sequence of (step, step size), ndarray of shape (steps,), or callable
        See :func:`~traindyn.catapults.schedules.step_sizes`.
    steps : int
        At most.
    batch_size : int, optional
        Without it, gradient descent on all examples. With it, epochs in random order, an
        incomplete last batch dropped.
    optimiser : Optimiser, optional
        Its steps, of size one, are multiplied by the step size. Without it, steps go down the
        gradient.
    validation : pair of array_like, optional
        Inputs and labels.
    every : int, default 1
        Steps between records of the losses.
    leading : int, optional
        Decompose the kernel of all examples at every record: so many leading eigenvectors.
    observe : callable, optional
        From the weights to a number or an array of one shape, called at every record. An
        :class:`Observer` of the same model and data is given the residuals of the run.
    stop : float, default 0.0
        Training loss at which to stop.
    track : bool, default False
        Record the critical step size of the batch before every step.
    rng : int, SeedSequence or Generator, optional
        Required with `batch_size`.

    Returns
    -------
    Training
        A run whose loss grows by 1e8 ends there, and says so.

    Raises
    ------
    ValueError
        If shapes do not match, the batch is empty or larger than n, the step sizes are no
        schedule, or `rng` is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.catapults import train
    >>> from traindyn.catapults import TwoLayerModel
    >>> start = TwoLayerModel.initial(64, 2, rng=0)
    >>> run = train(TwoLayerModel(start), start, np.eye(2), [1.0, -1.0], step_size=0.5, steps=100)
    >>> bool(run.losses[-1] < 1e-3 * run.losses[0]), run.diverged
    (True, None)
    """
    _validate.providing("model", model, "prepare", "outputs", "gradient", "descend")
    for name, array in zip(getattr(start, "_fields", range(len(start))), start):
        _validate.finite(f"start.{name}", array)
    target_loss = _validate.number("stop", stop)
    whole = model.prepare(inputs)
    n = len(whole[0])
    if n == 0:
        raise ValueError("inputs must have at least one row, got none")
    y = _labels("labels", labels, model.outputs(start, whole))
    total = _validate.integer("steps", steps, least=0)
    rate = step_sizes(step_size, total)
    size = n if batch_size is None else _validate.integer("batch_size", batch_size, least=1, most=n)
    if batch_size is not None and rng is None:
        raise ValueError("rng must be given with batch_size, got None")
    gap = _validate.integer("every", every, least=1)
    if leading is not None:
        _validate.integer("leading", leading, least=1, most=y.size)
    unseen = None
    if validation is not None:
        unseen = model.prepare(validation[0])
        targets = _labels("validation labels", validation[1], model.outputs(start, unseen))

    now = _copy(start)
    best, best_step, least = now, 0, np.inf
    records: list[tuple[int, float, float]] = []
    losses: list[float] = []
    spectra: list[tuple[float, float]] = []
    seen: list[Array] = []
    critical: list[float] = []
    rates: list[float] = []
    batches = np.empty((0, size), dtype=np.int64)
    if size < n:
        batches = batch_order(n, size, total, rng=_validate.generator("rng", rng))
    given = observe if isinstance(observe, Observer) and observe.same(model, whole, y) else None
    state = None if optimiser is None else optimiser.init(start)
    diverged = None
    # With neither a rule nor an optimiser no state between two records is needed.
    unwatched = gap > 1 and optimiser is None and not callable(step_size)
    stretch: Stretch | None = getattr(model, "descend_many", None) if unwatched else None
    scale = 2 / (size * y[0].size)  # times this the gradient of half a sum is that of the loss
    t = 0
    while True:
        if t < total and stretch is None:
            part, target = whole, y
            if size < n:
                part, target = _rows(whole, batches[t]), y[batches[t]]
            residuals, gradient = model.gradient(now, part, target)
        bound = _LOST * max(1.0, losses[0] if losses else 1.0)
        if t % gap == 0 or t == total:
            known = t < total and size == n and stretch is None
            e = np.asarray(residuals if known else model.outputs(now, whole) - y)
            loss = _mean_square(e)
            if not loss < bound:
                diverged = t
                break
            other = np.nan
            if unseen is not None:
                other = _mean_square(model.outputs(now, unseen) - targets)
            records.append((t, loss, other))
            losses.append(loss)
            if leading is not None:
                kernel = model.tangent_kernel(now, whole)
                values, vectors = leading_eigenpairs(kernel, leading)
                along = float(np.sum((vectors.T @ e.ravel()) ** 2)) / e.size
                spectra.append((along, float(values[0])))
            if observe is not None:
                found = observe(now) if given is None else given.see(now, e)
                seen.append(np.asarray(found, dtype=np.float64))
            if (loss if unseen is None else other) < least:
                least = loss if unseen is None else other
                best, best_step = now, t
            if loss <= target_loss:
                break
        if t == total:
            break
        if stretch is not None:
            until = min(t + gap, total)
            ahead = [rate(TrainingState(k, losses, rates, None)) for k in range(t, until)]
            rows = batches[t:until] if size < n else None
            now, made, tracked = stretch(
                now, whole, y, scale * np.array(ahead), rows=rows, bound=bound, track=track
            )
            rates += ahead[:made]
            critical += tracked.tolist()
            if made < len(ahead):
                diverged = t + made
                break
            t = until
            continue
        if not _mean_square(residuals) < bound:
            diverged = t
            break
        if track:
            critical.append(critical_step(model, now, part))
        above = None if leading is None else _critical(y.size, spectra[-1][1])
        rates.append(rate(TrainingState(t, losses, rates, above)))
        if optimiser is None:
            now = model.descend(now, gradient, rates[-1] * scale)
        else:
            now, state = _moved(now, gradient, scale, rates[-1], optimiser, state)
        t += 1
    return Training(
        np.array([t for t, _, _ in records]),
        np.array(losses),
        np.array([other for _, _, other in records]),
        np.array([along for along, _ in spectra]),
        np.array([top for _, top in spectra]),
        np.array(seen),
        np.array(critical),
        np.array(rates),
        batches[: len(rates)],
        now,
        best,
        best_step,
        diverged,
    )


def _mean_square(residuals: Array) -> float:
    flat = np.ravel(residuals)
    return float(flat @ flat) / flat.size


def _critical(size: int, top: float) -> float:
    return size / top if top > 0 else float(np.inf)


def _labels(name: str, labels: ArrayLike, outputs: Array) -> Array:
    y = _validate.finite(name, labels)
    if y.shape != outputs.shape:
        raise ValueError(
            f"{name} must have the shape {outputs.shape} of the outputs, got {y.shape}"
        )
    return y


def _copy(weights: W) -> W:
    return _like(weights, [np.array(w) if isinstance(w, np.ndarray) else w for w in weights])


def _like(weights: W, arrays: list[Any]) -> W:
    """Return arrays as a tuple of the type of the weights."""
    fill: Any = type(weights)
    same: W = fill(*arrays) if hasattr(weights, "_fields") else fill(arrays)
    return same


def _rows(batch: B, chosen: NDArray[np.int64]) -> B:
    return _like(batch, [None if field is None else field[chosen] for field in batch])


def _moved(
    weights: W, gradient: W, scale: float, rate: float, optimiser: Optimiser, state: Any
) -> tuple[W, Any]:
    """Take a step of an optimiser."""
    scaled = _like(weights, [scale * g for g in gradient])
    changes, state = optimiser.update(scaled, state, weights)
    arrays = [
        w + rate * (np.asarray(c) if isinstance(w, np.ndarray) else c)
        for w, c in zip(weights, changes)
    ]
    return _like(weights, arrays), state
