r"""The exact critical step size of a loss, and its value by the tangent kernel.

For the mean of squared residuals :math:`L = \frac1N |e|^2` over all N outputs the Hessian is

.. math::

    H = \frac2N \Big(J^\top J + \sum_i e_i \nabla^2 f_i\Big), \qquad
    \eta_{crit} = \frac{2}{\lambda_{\max}(H)}, \qquad
    \tilde\eta = \frac{N}{\lambda_{\max}(J J^\top)}

(ZHU Appendix C.1): the tangent kernel gives the first term only. The second vanishes where the
residuals do, and where the outputs are linear in the weights. Here H is given by its products
with vectors, forward over reverse, so no array larger than a few copies of the weights is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.deep.differentiated import native
from traindyn.linalg import LambdaOperator, top_eigenpairs

__all__ = ["Curvature", "LossHessian"]

Outputs: TypeAlias = Callable[[Any, Any], Any]


class Curvature(NamedTuple):
    """The largest eigenvalue of the Hessian of a loss, with its quality.

    Attributes
    ----------
    eigenvalue : float
        The largest, not the largest in absolute value.
    critical_step : float
        Two over it; infinite if it is not positive.
    vector : ndarray, shape (P,)
        A unit eigenvector, in the order of ``jax.flatten_util.ravel_pytree``.
    residual : float
        ``|H v - theta v| / |theta|`` from a final product.
    converged : bool
    products : int
        Hessian-vector products spent.
    """

    eigenvalue: float
    critical_step: float
    vector: Array
    residual: float
    converged: bool
    products: int


@dataclass(frozen=True)
class LossHessian:
    """The Hessian of the mean squared residual in the weights.

    Parameters
    ----------
    outputs : callable
        ``outputs(weights, batch)``, of shape (n,) or (n, k), written with JAX, such as the method
        ``apply`` of a :class:`~traindyn.deep.models.Model`. The weights are any tree of arrays.
        Products are compiled once per callable, and methods of two equal models are two: keep one.

    Examples
    --------
    A linear model, whose kernel tells all:

    >>> import numpy as np
    >>> from traindyn.deep import LossHessian
    >>> import jax.numpy as jnp
    >>> inputs = np.diag([1.0, 2.0])
    >>> hessian = LossHessian(lambda weights, batch: batch @ weights)
    >>> hessian.curvature(jnp.zeros(2), inputs, [1.0, 1.0]).critical_step
    0.5
    """

    outputs: Outputs

    def operator(self, weights: Any, batch: Any, labels: ArrayLike) -> LambdaOperator:
        """Return the Hessian as an operator on the flattened weights.

        Parameters
        ----------
        weights : tree of arrays
            Where the Hessian is taken; P numbers in all.
        batch : tree of arrays
            What `outputs` takes. Kept by reference.
        labels : array_like, shape (n,) or (n, k)
            Targets, of the shape of the outputs. Kept by reference.

        Returns
        -------
        LambdaOperator
            Of size P, in the order of ``jax.flatten_util.ravel_pytree``.

        Raises
        ------
        ValueError
            If the labels do not have the shape of the outputs, or are not finite.
        """
        target = _validate.finite("labels", labels)
        weights, batch = native((weights, batch))
        for name, tree in (("weights", weights), ("batch", batch)):
            for leaf in jax.tree_util.tree_leaves(tree):
                _validate.finite(name, leaf)
        try:
            shape = jax.eval_shape(self.outputs, weights, batch).shape
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(f"weights and batch must be what outputs takes: {error}") from error
        if target.shape != shape:
            raise ValueError(f"labels must have shape {shape}, got {target.shape}")
        flat, restore = ravel_pytree(weights)
        here = jax.device_put(weights)

        def product(block: Array) -> Array:
            columns = [
                ravel_pytree(_product(self.outputs, here, batch, target, restore(column)))[0]
                for column in jnp.asarray(block).T
            ]
            return np.stack([np.asarray(column) for column in columns], axis=1)

        return LambdaOperator(flat.size, product)

    def curvature(
        self,
        weights: Any,
        batch: Any,
        labels: ArrayLike,
        *,
        start: ArrayLike | None = None,
        tolerance: float = 1e-6,
        rng: RNG = 0,
    ) -> Curvature:
        """Compute the Hessian's largest eigenvalue, and the critical step size (ZHU Section 4.2).

        Parameters
        ----------
        weights, batch, labels
            As in :meth:`operator`.
        start : array_like, shape (P,), optional
            A vector near the eigenvector, for instance that of a step before.
        tolerance : float
            Bound on the residual; the error of the eigenvalue is about its square.
        rng : int, SeedSequence or Generator
            Draws the start otherwise.

        Raises
        ------
        ValueError
            As in :meth:`operator`.
        FloatingPointError
            If a product is not finite.
        """
        operator = self.operator(weights, batch, labels)
        first = None
        if start is not None:
            first = _validate.finite("start", start, shape=(operator.size,))[:, None]
        found = top_eigenpairs(
            operator, 1, start=first, width=1, tolerance=tolerance, which="algebraic", rng=rng
        )
        value = float(found.eigenvalues[0])
        return Curvature(
            value,
            2 / value if value > 0 else float("inf"),
            found.eigenvectors[:, 0],
            float(found.residuals[0]),
            bool(found.converged[0]),
            found.products,
        )


@partial(jax.jit, static_argnums=0)
def _product(outputs: Outputs, weights: Any, batch: Any, labels: Any, direction: Any) -> Any:
    def loss(at: Any) -> jax.Array:
        return jnp.mean((outputs(at, batch) - labels) ** 2)

    return jax.jvp(jax.grad(loss), (weights,), (direction,))[1]
