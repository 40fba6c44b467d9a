r"""Full-batch gradient descent, and how much the tangent kernel moves on the way.

The loss is :math:`L = \frac12 \sum_i (f(x_i) - y_i)^2`, not a mean: descent is stable up to
about :math:`\eta = 2 / \lambda_{max}(K)`. Along the gradient flow
:math:`|\nabla L|^2 = e^T K e \ge 2 \lambda_{min}(K) L`, e the errors (ZHU (2.16)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.deep.hessian import flatten
from traindyn.deep.network import Network, forward, read
from traindyn.deep.tangent import tangent_kernel

__all__ = ["Descent", "descend"]


@dataclass(frozen=True)
class Descent:
    """A run of gradient descent.

    Attributes
    ----------
    weights : ndarray, shape (P,)
        Where it ended.
    losses : ndarray, shape (T + 1,)
        Of every step, the start included.
    steps : ndarray of int, shape (r,)
        When the kernel was looked at: at the start, at regular times, at the end.
    kernels : ndarray, shape (r, n, n)
        Tangent kernels at these steps.
    converged : bool
        Whether the loss came down as far as it was to.
    """

    weights: Array
    losses: Array
    steps: NDArray[np.int64]
    kernels: Array
    converged: bool

    @property
    def kernel_changes(self) -> Array:
        """Spectral norms of the changes, relative to the kernel at the start, shape (r,)."""
        norms: Array = np.linalg.norm(self.kernels - self.kernels[0], ord=2, axis=(1, 2))
        return norms / np.linalg.norm(self.kernels[0], ord=2)


def descend(
    network: Network,
    start: ArrayLike,
    points: ArrayLike,
    labels: ArrayLike,
    *,
    step_size: float,
    steps: int,
    stop: float = 0.0,
    every: int = 10,
    output: int = 0,
) -> Descent:
    """Train an output by gradient descent on all points at once.

    Parameters
    ----------
    network : Network
        Whose weights are trained, in all layers.
    start : array_like, shape (P,)
        Weights where the run begins.
    points : array_like, shape (n, d)
        The inputs, one in each row.
    labels : array_like, shape (n,)
        Targets of the output.
    step_size : float
        Of half the sum of squared errors, positive.
    steps : int
        At most so many.
    stop : float
        Stop where the loss is at most this part of its start; looked at with the kernel.
    every : int
        Steps between two looks at the kernel.
    output : int
        Number of the output, from 0; others play no part.

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or an argument is out of range.
    FloatingPointError
        If the loss diverges; the message has the step.
    """
    x, k = network.check_points(points), network.check_output(output)
    y = _validate.finite("labels", labels, shape=(len(x),))
    step_size = _validate.positive("step_size", step_size)
    steps = _validate.integer("steps", steps, least=1)
    every = _validate.integer("every", every, least=1)
    stop = _validate.non_negative("stop", stop)
    flat = _validate.finite("start", start, shape=(network.parameters,))
    arrays: Any = jax.device_put(network.unpack(flat))
    losses = [float(_loss(network, arrays, x, y, k))]
    looks = [0]
    kernels = [tangent_kernel(network, flat, x, output=k)]
    while looks[-1] < steps and losses[-1] > stop * losses[0]:
        count = min(every, steps - looks[-1])
        arrays, found = _run(network, arrays, x, y, k, step_size, count)
        losses.extend(np.asarray(found).tolist())
        looks.append(looks[-1] + count)
        if not np.isfinite(losses[-1]):
            first = int(np.argmin(np.isfinite(losses)))
            raise FloatingPointError(
                f"the loss must stay finite, got {losses[first]} after {first} steps of "
                f"size {step_size:g}"
            )
        flat = flatten(network, arrays)
        kernels.append(tangent_kernel(network, flat, x, output=k))
    return Descent(
        weights=np.array(flat),
        losses=np.array(losses),
        steps=np.array(looks),
        kernels=np.stack(kernels),
        converged=losses[-1] <= stop * losses[0],
    )


@jax.jit
def _loss(network: Network, arrays: Any, points: jax.Array, labels: jax.Array, k: Any) -> jax.Array:
    def value(point: jax.Array) -> jax.Array:
        return read(network, forward(network, arrays, point)[0])[k]

    return jnp.sum((jax.vmap(value)(points) - labels) ** 2) / 2


@partial(jax.jit, static_argnames="count")
def _run(
    network: Network,
    arrays: Any,
    points: jax.Array,
    labels: jax.Array,
    k: Any,
    step_size: Any,
    count: int,
) -> tuple[Any, jax.Array]:
    def step(now: Any, _: None) -> tuple[Any, jax.Array]:
        gradient = jax.grad(lambda w: _loss(network, w, points, labels, k))(now)
        following = tuple(
            w - step_size * layer.connection.restrict(g)
            for layer, w, g in zip(network.layers, now, gradient)
        )
        return following, _loss(network, following, points, labels, k)

    end, losses = jax.lax.scan(step, tuple(arrays), length=count)
    return end, losses
