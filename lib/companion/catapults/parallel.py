r"""Taylor models in the weights: linear and quadratic, of any model that JAX differentiates.

With :math:`\delta = w - w_0`, and J and H the first and second derivatives of the outputs at the
point of expansion :math:`w_0`,

.. math::

    f_{lin}(w) = f(w_0) + J\, \delta, \qquad
    f_{quad}(w) = f(w_0) + J\, \delta + \tfrac12\, \delta^\top H\, \delta

(ZHU (3.2)). Both are forward derivatives in the direction :math:`\delta`, and their gradients
reverse ones through them: neither J nor H is formed, and a step costs a few of the model's own.

For activations that are piecewise linear the second derivative is the one almost everywhere.
Then f is, as long as no gate changes, a product of its layers: in two layers the quadratic model
is the network with its gates frozen, in three it is that less the term with all three changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.deep.architectures import Weights
from traindyn.deep.models import SOONER, Batch, descended, descended_many

__all__ = ["Differentiable", "TaylorModel", "TaylorOrder"]

TaylorOrder: TypeAlias = Literal["linear", "quadratic"]


class Differentiable(Protocol):
    """What can be expanded, such as the models of :mod:`traindyn.deep.models`; hashable."""

    def prepare(self, inputs: ArrayLike) -> Batch:
        """Return inputs with what does not change during training."""
        ...

    def apply(self, weights: Weights, inputs: jax.Array) -> jax.Array:
        """Return the outputs, shape (n,) or (n, k), as a function that JAX differentiates."""
        ...


@dataclass(frozen=True, eq=False)
class TaylorModel:
    """The linear or the quadratic Taylor model, trained like the model itself.

    ZHU Section 3.4 compares both with the model, from which they differ little below the critical
    step size.

    Compiled code depends on the model and the kind, not on the point of expansion.

    Parameters
    ----------
    model : Differentiable
    expansion : tuple of array
        Weights of the model, usually at initialisation.
    kind : {"quadratic", "linear"}

    Raises
    ------
    ValueError
        If the kind is unknown, an entry of the expansion is not finite, or it has shapes that
        the model cannot take.

    Examples
    --------
    Both agree with the model at the point of expansion:

    >>> import numpy as np
    >>> from companion.catapults.parallel import TaylorModel
    >>> from traindyn.deep import perceptron
    >>> model = perceptron([2, 16, 16, 1])
    >>> start = model.initial(rng=0)
    >>> batch = model.prepare(np.eye(2))
    >>> quadratic = TaylorModel(model, start)
    >>> bool(np.allclose(quadratic.outputs(start, batch), model.outputs(start, batch)))
    True
    """

    model: Differentiable
    expansion: Weights
    kind: TaylorOrder = "quadratic"

    def __post_init__(self) -> None:
        _validate.choice("kind", self.kind, ("quadratic", "linear"))
        for number, array in enumerate(self.expansion):
            _validate.finite(f"expansion[{number}]", np.asarray(array))

    def prepare(self, inputs: ArrayLike) -> Batch:
        """Check inputs, as the model does."""
        return self.model.prepare(inputs)

    def outputs(self, weights: Weights, batch: Batch) -> Array:
        """Return the outputs, of the shape that those of the model have.

        Parameters
        ----------
        weights : tuple of array
            Of the shapes of the expansion.
        batch : Batch
            From :meth:`prepare`.

        Returns
        -------
        ndarray, shape (n,) or (n, k)

        Raises
        ------
        ValueError
            If a shape differs from that of the expansion.
        """
        now = self._check(weights)
        with _fitting("batch"):
            found = _outputs(self.model, self.kind, self.expansion, now, batch.inputs)
        return np.asarray(found)

    def gradient(self, weights: Weights, batch: Batch, labels: Array) -> tuple[Array, Weights]:
        r"""Return residuals, and the gradient of :math:`\frac12 \sum e^2`.

        Parameters
        ----------
        weights : tuple of array
            Where to differentiate; of the shapes of the expansion.
        batch : Batch
            From :meth:`prepare`.
        labels : ndarray, shape of the outputs
            Targets, to be subtracted from the outputs.

        Returns
        -------
        residuals : ndarray, shape of the outputs
        gradient : tuple of array

        Raises
        ------
        ValueError
            If a shape differs from that of the expansion.
        """
        now = self._check(weights)
        with _fitting("batch and labels"):
            residuals, gradient = _gradient(
                self.model, self.kind, self.expansion, now, batch.inputs, labels
            )
        return np.asarray(residuals), gradient

    def descend(self, weights: Weights, gradient: Weights, size: float) -> Weights:
        """Return new weights, `size` times the gradient lower, as the models do."""
        lower: Weights = descended(tuple(weights), tuple(gradient), size)
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
        """Make a step of each size without a return to Python, as the models do."""
        now = self._check(weights)
        with _fitting("batch and labels"):
            steps = (now, batch.inputs, labels, sizes, rows, bound)
            end, made, critical = _descended_many(
                self.model, self.kind, track, self.expansion, *steps
            )
        return end, int(made), np.asarray(critical)[: int(made)]

    def tangent_kernel(self, weights: Weights, batch: Batch) -> Array:
        """Return the tangent kernel, shape (n k, n k), outputs of one input side by side.

        The gradient of every output is formed, n k times as many numbers as weights.
        """
        now = self._check(weights)
        with _fitting("batch"):
            found = _kernel(self.model, self.kind, self.expansion, now, batch.inputs)
        return np.asarray(found)

    def input_gradients(self, weights: Weights, batch: Batch) -> Array:
        """Return the gradients of the outputs in the inputs, shape (n, d) or (n, k, d)."""
        now = self._check(weights)
        with _fitting("batch"):
            found = _input_gradients(self.model, self.kind, self.expansion, now, batch.inputs)
        return np.asarray(found)

    def _check(self, weights: Weights) -> Weights:
        found, expected = ([np.shape(w) for w in each] for each in (weights, self.expansion))
        if found != expected:
            raise ValueError(f"weights must have the shapes {expected}, got {found}")
        return tuple(weights)


@contextmanager
def _fitting(names: str) -> Iterator[None]:
    """Say by name what JAX could not put through the model."""
    try:
        yield
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{names} must have shapes that fit the model: {error}") from error


def _expand(
    model: Differentiable, kind: TaylorOrder, origin: Weights, weights: Weights, inputs: jax.Array
) -> jax.Array:
    """Return the outputs of the Taylor model."""
    change = tuple(w - w0 for w, w0 in zip(weights, origin))

    def along(at: Weights) -> Any:
        return jax.jvp(lambda now: model.apply(now, inputs), (at,), (change,))

    if kind == "linear":
        value, slope = along(origin)
        return jnp.asarray(value + slope)
    (value, slope), (_, curvature) = jax.jvp(along, (origin,), (change,))
    return jnp.asarray(value + slope + curvature / 2)


def _point(
    model: Differentiable, kind: TaylorOrder, origin: Weights
) -> Callable[[Weights, jax.Array], jax.Array]:
    """Return the outputs at one input, shape (k,), as a function of weights and input."""

    def value(weights: Weights, point: jax.Array) -> jax.Array:
        return jnp.atleast_1d(_expand(model, kind, origin, weights, point[None])[0])

    return value


@partial(jax.jit, static_argnums=(0, 1), compiler_options=SOONER)
def _outputs(
    model: Differentiable, kind: TaylorOrder, origin: Weights, weights: Weights, inputs: jax.Array
) -> jax.Array:
    return _expand(model, kind, origin, weights, inputs)


def _slope(
    model: Differentiable,
    kind: TaylorOrder,
    origin: Weights,
    weights: Weights,
    inputs: jax.Array,
    labels: jax.Array,
) -> Any:
    outputs, back = jax.vjp(lambda now: _expand(model, kind, origin, now, inputs), weights)
    residuals = outputs - labels
    return residuals, back(residuals)[0]


_gradient = partial(jax.jit, static_argnums=(0, 1), compiler_options=SOONER)(_slope)


@partial(jax.jit, static_argnums=(0, 1, 2), compiler_options=SOONER)
def _descended_many(
    model: Differentiable, kind: TaylorOrder, track: bool, origin: Weights, *steps: Any
) -> Any:
    kernel = partial(_gram, model, kind, origin) if track else None
    return descended_many(partial(_slope, model, kind, origin), kernel, *steps)


def _gram(
    model: Differentiable, kind: TaylorOrder, origin: Weights, weights: Weights, inputs: jax.Array
) -> jax.Array:
    one = jax.jacrev(_point(model, kind, origin))
    rows = jax.vmap(one, in_axes=(None, 0))(weights, inputs)
    flat = [row.reshape(row.shape[0] * row.shape[1], -1) for row in rows]
    return sum((g @ g.T for g in flat), start=jnp.zeros((len(flat[0]), len(flat[0]))))


_kernel = partial(jax.jit, static_argnums=(0, 1), compiler_options=SOONER)(_gram)


@partial(jax.jit, static_argnums=(0, 1), compiler_options=SOONER)
def _input_gradients(
    model: Differentiable, kind: TaylorOrder, origin: Weights, weights: Weights, inputs: jax.Array
) -> jax.Array:
    one = jax.jacrev(_point(model, kind, origin), argnums=1)
    found: jax.Array = jax.vmap(one, in_axes=(None, 0))(weights, inputs)
    return found[:, 0] if found.shape[1] == 1 else found
