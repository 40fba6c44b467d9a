r"""Many steps of an optimiser in one compiled call.

:func:`~traindyn.catapults.training.train` takes one step of an optimiser at a time, which for a
small network takes longer to ask for than to work out. The state of an optimiser can travel with
the weights instead: then a step is a map of a tuple of arrays to itself, as it is for gradient
descent, and ``train`` makes all steps between two records at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import ArrayLike, NDArray

from companion.catapults.optimisers.rules import OPTIMISERS, optimiser
from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.catapults import Training, train
from traindyn.catapults.schedules import StepSize
from traindyn.deep import Model
from traindyn.deep.differentiated import Batch

__all__ = ["train_with"]


def train_with(
    rule: str,
    model: Model,
    start: tuple[Any, ...],
    inputs: ArrayLike,
    labels: ArrayLike,
    *,
    step_size: StepSize,
    steps: int,
    batch_size: int | None = None,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    every: int = 20,
    stop: float = 0.0,
    rng: RNG | None = None,
) -> Training:
    r"""Train a network with an optimiser, in compiled stretches between two records.

    The result is, but for rounding, that of :func:`~traindyn.catapults.training.train` with the
    optimiser of the rule. The rules of ZHU Table C.1 are given the gradient of the mean square,
    which is :math:`\frac2b` times that of half the sum over b residuals; most of them are not
    linear in it.

    Parameters
    ----------
    rule : {"gd", "momentum", "rmsprop", "adagrad", "adadelta", "adam"}
        As in :func:`~companion.catapults.optimisers.rules.optimiser`.
    model : Model
        With one output.
    start : tuple of array
        Weights where the run begins, left unchanged.
    inputs : array_like, shape (n, d)
        All examples.
    labels : array_like, shape (n,)
        Their targets.
    step_size : float, sequence of (step, step size) or ndarray of shape (steps,)
        What multiplies the steps of the rule.
    steps : int
        At most.
    batch_size : int, optional
        Without it, all examples in every step.
    validation : pair of array_like, optional
        Inputs and labels.
    every : int, default 20
        Steps between records, and in one stretch; at least two.
    stop : float, default 0.0
        Training loss at which to stop.
    rng : int, SeedSequence or Generator, optional
        Required with `batch_size`.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        If the rule is unknown, `every` is below two, the step size is a function of the run, the
        model has several outputs, or for what ``train`` refuses.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.catapults.optimisers.rules import optimiser
    >>> from companion.catapults.optimisers.stretches import train_with
    >>> from traindyn.catapults import train
    >>> from traindyn.deep import perceptron
    >>> model, inputs, labels = perceptron([2, 16, 1]), np.eye(2), [1.0, -1.0]
    >>> start, how = model.initial(rng=0), dict(step_size=0.05, steps=40, every=20)
    >>> run = train_with("adam", model, start, inputs, labels, **how)
    >>> single = train(model, start, inputs, labels, optimiser=optimiser("adam"), **how)
    >>> np.allclose(run.losses, single.losses)
    True
    """
    made = optimiser(_validate.choice("rule", rule, tuple(OPTIMISERS)))
    gap = _validate.integer("every", every, least=2)
    _validate.providing("model", model, "prepare", "apply", "architecture")
    if callable(step_size):
        raise ValueError("step_size must be given before the run, got a function")
    if model.architecture.outputs != 1:
        raise ValueError(f"model must have one output, got {model.architecture.outputs}")
    whole = model.prepare(inputs)
    count = len(whole.inputs)
    if batch_size is not None:
        count = _validate.integer("batch_size", batch_size, least=1, most=count)
    model.outputs(start, whole)
    first = (*start, *jax.tree_util.tree_leaves(made.init(tuple(start))))
    run = train(
        _Optimised(model, rule, count), first, inputs, labels, step_size=step_size, steps=steps,
        batch_size=batch_size, validation=validation, every=gap, stop=stop, rng=rng,
    )  # fmt: skip
    return run._replace(weights=run.weights[: len(start)], best=run.best[: len(start)])


@dataclass(frozen=True)
class _Optimised:
    """A network whose weights are followed by the state of an optimiser."""

    model: Model
    rule: str
    residuals: int

    def prepare(self, inputs: ArrayLike) -> Batch:
        return self.model.prepare(inputs)

    def outputs(self, weights: tuple[Any, ...], batch: Batch) -> Array:
        return self.model.outputs(self._own(weights), batch)

    def gradient(
        self, weights: tuple[Any, ...], batch: Batch, labels: Array
    ) -> tuple[Array, tuple[Any, ...]]:
        return self.model.gradient(self._own(weights), batch, labels)

    def descend(
        self, weights: tuple[Any, ...], gradient: tuple[Any, ...], size: float
    ) -> tuple[Any, ...]:
        return _step(self.rule, weights, gradient, 2 / self.residuals, size * self.residuals / 2)

    def tangent_kernel(self, weights: tuple[Any, ...], batch: Batch) -> Array:
        return self.model.tangent_kernel(self._own(weights), batch)

    def descend_many(
        self,
        weights: tuple[Any, ...],
        batch: Batch,
        labels: Array,
        sizes: Array,
        *,
        rows: NDArray[np.int64] | None = None,
        bound: float = np.inf,
        track: bool = False,
    ) -> tuple[tuple[Any, ...], int, Array]:
        """Make steps of the rule, as a :class:`~traindyn.catapults.training.Stretch`."""
        scale = 2 / self.residuals
        now, made = _steps(
            self.model, self.rule, weights, batch.inputs, labels, rows, scale, sizes / scale, bound
        )
        return now, int(made), np.empty(0)

    def _own(self, weights: tuple[Any, ...]) -> tuple[Any, ...]:
        return weights[: len(self.model.architecture.parameters())]


def _step(
    rule: str, weights: tuple[Any, ...], gradient: Any, scale: float, rate: Any
) -> tuple[Any, ...]:
    """Take a step of an optimiser with a state that stands behind the weights."""
    made, count = OPTIMISERS[rule](), len(gradient)
    now, leaves = weights[:count], weights[count:]
    shape = jax.tree_util.tree_structure(made.init(now))
    state: optax.OptState = jax.tree_util.tree_unflatten(shape, leaves)
    changes, state = made.update(tuple(scale * g for g in gradient), state, now)
    moved = (w + rate * c for w, c in zip(now, changes))
    return (*moved, *jax.tree_util.tree_leaves(state))


@partial(jax.jit, static_argnums=(0, 1))
def _steps(
    model: Model,
    rule: str,
    weights: tuple[Any, ...],
    inputs: jax.Array,
    labels: jax.Array,
    rows: jax.Array | None,
    scale: float,
    rates: jax.Array,
    bound: float,
) -> tuple[tuple[Any, ...], jax.Array]:
    """Step while mean squares stay below a bound: weights with the state, and steps made."""
    count = len(model.architecture.parameters())

    def half(now: Any, chosen: Any) -> Any:
        residuals = model.apply(now, inputs[chosen]) - labels[chosen]
        return jnp.sum(residuals**2) / 2, residuals

    def going(state: Any) -> Any:
        return state[2] & (state[1] < len(rates))

    def step(state: Any) -> Any:
        whole, made, _ = state
        chosen = slice(None) if rows is None else rows[made]
        gradient, residuals = jax.grad(half, has_aux=True)(whole[:count], chosen)
        inside = jnp.mean(residuals**2) < bound
        after = _step(rule, whole, gradient, scale, rates[made])
        kept = tuple(jnp.where(inside, new, old) for new, old in zip(after, whole))
        return kept, made + inside, inside

    end, made, _ = jax.lax.while_loop(going, step, (weights, jnp.asarray(0), jnp.asarray(True)))
    return end, made
