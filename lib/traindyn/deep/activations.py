"""Activations by name, and what is asked of any other.

Any function of JAX that acts entry by entry serves, once it has shown that it has a derivative:
a network whose activation is differentiated to zero where it is not constant would otherwise
have a Hessian of zeros, and look linear.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from numpy.typing import ArrayLike

from traindyn._types import Array
from traindyn.activations import Elementwise

__all__ = ["ACTIVATIONS", "resolve"]


def identity(z: jax.Array) -> jax.Array:
    """Return z itself."""
    return z


ACTIVATIONS: dict[str, Elementwise] = {
    "erf": erf,
    "identity": identity,
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "swish": jax.nn.swish,
    "tanh": jnp.tanh,
}
"""Activations that have a name. The Hessian of ReLU networks is the one almost everywhere."""

# Generic points: no kink of a usual activation lies within a difference step of one.
_PROBE = np.array([-3.17, -1.93, -1.21, -0.83, -0.37, -0.11, 0.13, 0.41, 0.79, 1.37, 1.83, 2.71])
_STEP = 1e-5


def resolve(activation: str | Elementwise, *, name: str = "activation") -> Elementwise:
    """Return an activation as a function of JAX that has a derivative.

    Parameters
    ----------
    activation : str or callable
        A key of :data:`ACTIVATIONS`, or a function of JAX acting entry by entry.
    name : str, default "activation"
        What messages call it.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        If the name is unknown, or the function cannot be differentiated by JAX, does not act
        entry by entry, has a derivative that is not finite, is not that of the function, or
        vanishes everywhere.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from traindyn.deep import resolve
    >>> resolve("tanh") is jnp.tanh
    True
    >>> resolve(jnp.sign)
    Traceback (most recent call last):
    ...
    ValueError: activation must have a derivative, got sign, whose derivative is zero everywhere
    """
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            known = ", ".join(repr(each) for each in ACTIVATIONS)
            raise ValueError(f"{name} must be one of {known} or callable, got {activation!r}")
        return ACTIVATIONS[activation]
    if not callable(activation):
        raise ValueError(f"{name} must be a name or callable, got {activation!r}")
    given = getattr(activation, "__name__", repr(activation))
    probe = jnp.asarray(_PROBE)
    try:
        value = activation(probe)
        derivative = jax.vmap(jax.grad(activation))(probe)
        jax.vmap(jax.grad(jax.grad(activation)))(probe)
    except Exception as error:  # whatever a foreign function raises when it is traced
        raise ValueError(
            f"{name} must have a derivative, got {given}, which JAX cannot differentiate"
        ) from error
    apart = jnp.stack([activation(z) for z in probe])
    if value.shape != probe.shape or not np.allclose(
        value, apart, rtol=1e-12, atol=1e-12, equal_nan=True
    ):
        raise ValueError(f"{name} must act entry by entry, got {given}")
    if not np.all(np.isfinite(derivative)):
        raise ValueError(f"{name} must have a derivative, got {given}, where it is not finite")
    slope = (activation(probe + _STEP) - activation(probe - _STEP)) / (2 * _STEP)
    # A central difference is off by the square of the step, times a third derivative.
    if not np.allclose(derivative, slope, rtol=1e-5, atol=1e-7):
        worst = int(np.argmax(np.abs(derivative - slope)))
        raise ValueError(
            f"{name} must have the derivative of its values, got {given}, with "
            f"{float(derivative[worst]):.6g} for {float(slope[worst]):.6g} at {_PROBE[worst]}"
        )
    if not np.any(derivative):
        raise ValueError(
            f"{name} must have a derivative, got {given}, whose derivative is zero everywhere"
        )
    return activation


def derivatives(activation: Elementwise, z: ArrayLike) -> tuple[Array, Array]:
    """First and second derivative, entry by entry."""
    slope, curvature = _derivatives(activation, z)
    return np.asarray(slope), np.asarray(curvature)


@partial(jax.jit, static_argnums=0)
def _derivatives(activation: Elementwise, z: jax.Array) -> Any:
    slope = jax.grad(activation)
    return jax.vmap(slope)(z), jax.vmap(jax.grad(slope))(z)
