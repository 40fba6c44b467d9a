"""Runs, looked at where the validation loss is least, and the features that they have there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from companion.catapults.features.spikes import spikes
from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.catapults import Target, Trainable, Training, agop, target, train
from traindyn.catapults.schedules import StepSize

__all__ = ["Fit", "Pairs", "Problem", "fit", "problem"]

#: Standard deviation of the noise of the labels (ZHU Appendix C.6).
_NOISE = 0.1
_STOP = 1e-3
_RISE = 1.5


class Pairs(NamedTuple):
    """Inputs of shape (n, d) and labels of shape (n,)."""

    inputs: Array
    labels: Array


class Problem(NamedTuple):
    """A target, and independent examples of it.

    Attributes
    ----------
    goal : Target
    inside, held, unseen : Pairs
        To train on, to validate with, to test on.
    """

    goal: Target
    inside: Pairs
    held: Pairs
    unseen: Pairs


class Fit(NamedTuple):
    """A network where its validation loss is least.

    Attributes
    ----------
    loss : float
        Test loss.
    agop : ndarray, shape (d, d)
        Average gradient outer product on the training inputs.
    over : int
        Steps until then whose step size was above the critical one of their batch; zero unless
        the run was tracked.
    spikes : int
        Rises of the training loss by more than half, from one record to the next, until then.
    run : Training
    """

    loss: float
    agop: Array
    over: int
    spikes: int
    run: Training


def problem(name: str, dimension: int, sizes: tuple[int, int, int], *, rng: RNG) -> Problem:
    """Draw examples with standard normal inputs and noise of variance 0.01 (ZHU Appendix C.6).

    Parameters
    ----------
    name : str
        Of a :func:`~traindyn.catapults.agop.target`.
    dimension : int
        Of the inputs.
    sizes : tuple of int
        Numbers of examples to train on, to validate with and to test on.
    rng : int, SeedSequence or Generator
        For inputs and noise.

    Raises
    ------
    ValueError
        If there is no such target in this dimension, or a size is not positive.

    Examples
    --------
    >>> from companion.catapults.features.runs import problem
    >>> problem("rank-2", 10, (20, 5, 5), rng=0).inside.inputs.shape
    (20, 10)
    """
    goal, generator = target(name, dimension), _validate.generator("rng", rng)
    counts = _validate.integers("sizes", sizes, least=1, shape=(3,))
    inputs = [generator.standard_normal((count, dimension)) for count in counts]
    labels = [goal.value(x) + _NOISE * generator.standard_normal(len(x)) for x in inputs]
    return Problem(goal, *map(Pairs, inputs, labels))


def fit(
    model: Trainable[Any, Any],
    start: Any,
    given: Problem,
    step_size: StepSize,
    *,
    batch_size: int | None = None,
    every: int = 5,
    steps: int = 8000,
    track: bool = True,
    rng: RNG | None = None,
) -> Fit:
    """Train until the training loss is below 0.001, and look where the validation loss is least.

    A run also ends after `steps`, and where its loss diverges.

    Parameters
    ----------
    model : Trainable
        With one output and ``input_gradients``.
    start : tuple of arrays
        Weights where the run begins.
    given : Problem
        What to train on, to validate with and to test on.
    step_size : float, sequence of (step, step size), ndarray of shape (steps,), or callable
        See :func:`~traindyn.catapults.schedules.step_sizes`.
    batch_size : int, optional
        Without it, or with all examples, gradient descent.
    every : int, default 5
        Steps between records of the losses.
    steps : int, default 8000
        At most.
    track : bool, default True
        Count super-critical batches, which takes as long as the steps; never counted for all
        examples.
    rng : int, SeedSequence or Generator, optional
        Required with `batch_size`.

    Raises
    ------
    ValueError
        As :func:`~traindyn.catapults.training.train`.

    Examples
    --------
    >>> from companion.catapults.features.runs import fit, problem
    >>> from traindyn.catapults import TwoLayerModel
    >>> given = problem("rank-2", 5, (40, 20, 20), rng=0)
    >>> start = TwoLayerModel.initial(64, 5, rng=1)
    >>> found = fit(TwoLayerModel(start), start, given, 1.0)
    >>> found.agop.shape, found.over
    ((5, 5), 0)
    """
    _validate.providing("model", model, "input_gradients")
    x, y = given.inside
    part = None if batch_size == len(y) else batch_size
    run = train(
        model, start, x, y, step_size=step_size, steps=steps, batch_size=part,
        validation=given.held, every=every, stop=_STOP, track=track and part is not None, rng=rng,
    )  # fmt: skip
    unseen = model.prepare(given.unseen.inputs)
    residuals = model.outputs(run.best, unseen) - given.unseen.labels
    until = min(run.best_step, len(run.critical_steps))
    seen: NDArray[np.float64] = run.losses[run.steps <= run.best_step]
    return Fit(
        float(np.mean(residuals**2)),
        agop(model.input_gradients(run.best, model.prepare(x))),  # type: ignore[attr-defined]
        int(np.sum(run.step_sizes[:until] > run.critical_steps[:until])),
        len(spikes(seen, factor=_RISE)),
        run,
    )
