"""Training by what JAX derives: gradients, many steps at once, tangent kernels.

A model is a :class:`Differentiated`. What its compiled code depends on is its :class:`Code`, so
that equal ones share it; arrays that differ between them, such as the point of an expansion, are
handed to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.deep.architectures import Weights

__all__ = ["Batch", "Code", "Differentiated"]

SOONER: Any = {"xla_backend_optimization_level": 1}
"""Options that take a third off the time to compile, which most networks of a book are trained for
less long than. Convolutions, attention and products of matrices are as fast as without."""


def native(tree: Any) -> Any:
    """Return arrays in the byte order of this machine, which JAX takes them to be in."""
    return jax.tree_util.tree_map(_native, tree)


def _native(leaf: Any) -> Any:
    if isinstance(leaf, (np.ndarray, np.generic)) and not leaf.dtype.isnative:
        return leaf.astype(leaf.dtype.newbyteorder("="))
    return leaf


class Batch(NamedTuple):
    """Inputs of a model.

    Attributes
    ----------
    inputs : ndarray, shape (n, d)
    """

    inputs: Array


class Code(ABC):
    """Outputs as a function that JAX differentiates; hashable."""

    @abstractmethod
    def evaluate(self, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
        """Return the outputs, shape (n,) or (n, k); `fixed` is what training leaves alone."""

    def gram(self, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
        """Return the tangent kernel, from the gradient of every output."""

        def value(now: Weights, point: jax.Array) -> jax.Array:
            return jnp.atleast_1d(self.evaluate(fixed, now, point[None])[0])

        rows = jax.vmap(jax.jacrev(value), in_axes=(None, 0))(weights, inputs)
        flat = [g.reshape(g.shape[0] * g.shape[1], -1) for g in rows]
        return sum((g @ g.T for g in flat), start=jnp.zeros((len(flat[0]), len(flat[0]))))


class Differentiated(ABC):
    """What :func:`~traindyn.catapults.training.train` asks of a model, derived by JAX.

    A subclass has its code and checks what it is given. With one output, outputs have shape (n,),
    otherwise (n, k).
    """

    @abstractmethod
    def prepare(self, inputs: ArrayLike) -> Batch:
        """Check inputs, shape (n, d)."""

    @property
    @abstractmethod
    def _code(self) -> tuple[Code, Weights]:
        """What compiled code depends on, and the arrays that it leaves alone."""

    @abstractmethod
    def _check(self, weights: Weights, batch: Batch, labels: Array | None = None) -> None:
        """Refuse other shapes than those of the model; entries are the caller's matter."""

    def _run(self, compiled: Callable[..., Any], weights: Weights, batch: Batch, *more: Any) -> Any:
        # JAX drops masks without a word, and does not say what is no array to it.
        labels = tuple(_validate.real("labels", each) for each in more[:1])
        self._check(weights, batch, *labels)
        _validate.unmasked("batch.inputs", batch.inputs)
        code, fixed = self._code
        return compiled(code, *native((fixed, tuple(weights), batch.inputs, *labels, *more[1:])))

    def outputs(self, weights: Weights, batch: Batch) -> Array:
        """Return the outputs, shape (n,), or (n, k) if there are several.

        Parameters
        ----------
        weights : tuple of array
            Of the shapes of the model.
        batch : Batch
            From :meth:`prepare`.

        Returns
        -------
        ndarray, shape (n,) or (n, k)

        Raises
        ------
        ValueError
            If a shape is not that of the model.
        """
        return np.asarray(self._run(_outputs, weights, batch))

    def gradient(self, weights: Weights, batch: Batch, labels: Array) -> tuple[Array, Weights]:
        r"""Return residuals, and the gradient of :math:`\frac12 \sum e^2`.

        Parameters
        ----------
        weights : tuple of array
            Where the gradient is taken.
        batch : Batch
            Inputs, from :meth:`prepare`.
        labels : ndarray, shape of the outputs
            Targets; residuals are outputs less labels.

        Returns
        -------
        residuals : ndarray, shape of the outputs
        gradient : tuple of array

        Raises
        ------
        ValueError
            If a shape is not that of the model.
        """
        residuals, gradient = self._run(_gradient, weights, batch, labels)
        return np.asarray(residuals), gradient

    def descend(self, weights: Weights, gradient: Weights, size: float) -> Weights:
        """Return new weights, `size` times the gradient lower, in the memory of the gradient.

        Parameters
        ----------
        weights, gradient : tuple of array
            The gradient, if of JAX, must not be used afterwards.
        size : float
            By what the gradient is multiplied.

        Returns
        -------
        tuple of array
        """
        lower: Weights = descended(*native((tuple(weights), tuple(gradient))), size)
        return lower

    def descend_many(
        self,
        weights: Weights,
        batch: Batch,
        labels: Array,
        sizes: Array,
        *,
        rows: NDArray[np.int64] | None = None,
        bound: float = np.inf,
        track: bool = False,
    ) -> tuple[Weights, int, Array]:
        """Make a step of each size, as a :class:`~traindyn.catapults.training.Stretch`."""
        compiled = partial(_descended_many, track)
        now, made, critical = self._run(compiled, weights, batch, labels, sizes, rows, bound)
        return now, int(made), np.asarray(critical)[: int(made)]

    def tangent_kernel(self, weights: Weights, batch: Batch) -> Array:
        """Return the tangent kernel, shape (n k, n k), outputs of one input side by side.

        That of a perceptron is put together layer by layer; other models form the gradient of
        every output, n k times as many numbers as weights.
        """
        return np.asarray(self._run(_kernel, weights, batch))

    def input_gradients(self, weights: Weights, batch: Batch) -> Array:
        """Return the gradients of the outputs in the inputs, shape (n, d) or (n, k, d)."""
        found: Array = np.asarray(self._run(_input_gradients, weights, batch))
        return found[:, 0] if found.shape[1] == 1 else found


@partial(jax.jit, static_argnums=0, compiler_options=SOONER)
def _outputs(code: Code, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
    return code.evaluate(fixed, weights, inputs)


def _slope(
    code: Code, fixed: Weights, weights: Weights, inputs: jax.Array, labels: jax.Array
) -> Any:
    def half(now: Weights) -> tuple[jax.Array, jax.Array]:
        residuals = code.evaluate(fixed, now, inputs) - labels
        return jnp.sum(residuals**2) / 2, residuals

    gradient, residuals = jax.grad(half, has_aux=True)(weights)
    return residuals, gradient


_gradient = partial(jax.jit, static_argnums=0, compiler_options=SOONER)(_slope)


@partial(jax.jit, donate_argnums=1)
def descended(weights: Weights, gradient: Weights, size: jax.Array | float) -> Weights:
    """Step down the gradient, whose memory the new weights take: one pass, no allocation."""
    return tuple(w - size * g for w, g in zip(weights, gradient))


@partial(jax.jit, static_argnums=(0, 1), compiler_options=SOONER)
def _descended_many(
    track: bool,
    code: Code,
    fixed: Weights,
    weights: Weights,
    inputs: jax.Array,
    labels: jax.Array,
    sizes: jax.Array,
    rows: jax.Array | None,
    bound: jax.Array | float,
) -> Any:
    """Step down while mean squares stay below a bound: weights, steps, critical step sizes."""

    def going(state: Any) -> Any:
        return state[2] & (state[1] < len(sizes))

    def step(state: Any) -> Any:
        now, made, _, critical = state
        chosen = slice(None) if rows is None else rows[made]
        residuals, lower = _slope(code, fixed, now, inputs[chosen], labels[chosen])
        inside = jnp.mean(residuals**2) < bound
        if track:
            top = jnp.linalg.eigvalsh(code.gram(fixed, now, inputs[chosen]))[-1]
            critical = critical.at[made].set(jnp.where(top > 0, residuals.size / top, jnp.inf))
        # Where the gradient is not finite, zero times it would not be zero.
        following = tuple(w - jnp.where(inside, sizes[made] * g, 0.0) for w, g in zip(now, lower))
        return following, made + inside, inside, critical

    start = (weights, jnp.asarray(0), jnp.asarray(True), jnp.zeros(len(sizes) if track else 0))
    end, made, _, critical = jax.lax.while_loop(going, step, start)
    return end, made, critical


@partial(jax.jit, static_argnums=0, compiler_options=SOONER)
def _kernel(code: Code, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
    return code.gram(fixed, weights, inputs)


@partial(jax.jit, static_argnums=0, compiler_options=SOONER)
def _input_gradients(code: Code, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
    def value(point: jax.Array) -> jax.Array:
        return jnp.atleast_1d(code.evaluate(fixed, weights, point[None])[0])

    gradients: jax.Array = jax.vmap(jax.jacrev(value))(inputs)
    return gradients
