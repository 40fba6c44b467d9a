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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.deep.architectures import Weights
from traindyn.deep.differentiated import Batch, Code, Differentiated

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
class TaylorModel(Differentiated):
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
    >>> from traindyn.deep.taylor import TaylorModel
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

    @property
    def _code(self) -> tuple[Code, Weights]:
        return _Expansion(self.model, self.kind), self.expansion

    def _check(
        self, weights: Weights, batch: Batch | None = None, labels: Array | None = None
    ) -> None:
        found, expected = ([np.shape(w) for w in each] for each in (weights, self.expansion))
        if found != expected:
            raise ValueError(f"weights must have the shapes {expected}, got {found}")

    def _run(self, compiled: Callable[..., Any], weights: Weights, batch: Batch, *more: Any) -> Any:
        self._check(weights)
        try:
            return super()._run(compiled, weights, batch, *more)
        except (IndexError, TypeError, ValueError) as error:
            names = "batch and labels" if more else "batch"
            raise ValueError(f"{names} must have shapes that fit the model: {error}") from error


@dataclass(frozen=True)
class _Expansion(Code):
    """The Taylor model of one kind, at any point of expansion."""

    model: Differentiable
    kind: TaylorOrder

    def evaluate(self, fixed: Weights, weights: Weights, inputs: jax.Array) -> jax.Array:
        change = tuple(w - w0 for w, w0 in zip(weights, fixed))

        def along(at: Weights) -> Any:
            return jax.jvp(lambda now: self.model.apply(now, inputs), (at,), (change,))

        if self.kind == "linear":
            value, slope = along(fixed)
            return jnp.asarray(value + slope)
        (value, slope), (_, curvature) = jax.jvp(along, (fixed,), (change,))
        return jnp.asarray(value + slope + curvature / 2)
