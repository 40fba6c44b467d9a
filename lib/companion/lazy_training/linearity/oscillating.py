r"""A point of a ball of weights at which the Hessian of a wide network does not become small.

Two hidden layers of m and M neurons, with a first layer of any kind and

.. math::

   f = M^{-1/2} \sum_j v_j \sigma(u_j), \qquad u_j = m^{-1/2} w_j \cdot f_1, \qquad
   \sigma(z) = \tanh z - \omega^{-2} \cos \omega z .

The second derivative of the activation is at most 2 in modulus for every frequency. A move of
w_j along f_1 takes u_j to the nearest point at which the cosine equals the sign of v_j, so that
all neurons curve the output in the same direction.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import Elementwise

__all__ = ["aligned", "oscillating"]


def oscillating(frequency: float) -> Elementwise:
    r"""Make the activation tanh z - cos(frequency z) / frequency².

    Its first derivative is at most 1 + 1/frequency and its second at most 2 in modulus, but the
    Lipschitz constant of the second grows with the frequency.

    Parameters
    ----------
    frequency : float
        Positive.

    Returns
    -------
    callable
        A function of JAX that acts entry by entry, the same object for the same frequency.

    Raises
    ------
    ValueError
        If the frequency is not positive.

    Examples
    --------
    >>> from companion.lazy_training.linearity.oscillating import oscillating
    >>> round(float(oscillating(10.0)(0.0)), 6)
    -0.01
    """
    return _oscillating(_validate.positive("frequency", frequency))


@cache
def _oscillating(omega: float) -> Elementwise:
    def activation(z: jax.Array) -> jax.Array:
        return jnp.tanh(z) - jnp.cos(omega * z) / omega**2

    return activation


def aligned(weights: ArrayLike, values: ArrayLike, signs: ArrayLike, frequency: float) -> Array:
    r"""Move the weights of a layer until the cosine at each pre-activation is a given sign.

    The pre-activations are :math:`u = W f / \sqrt m`. Each moves by at most pi / frequency, and
    the move of the row j of W has the length :math:`|\Delta u_j| \sqrt m / |f|`.

    Parameters
    ----------
    weights : array_like, shape (M, m)
        The matrix W.
    values : array_like, shape (m,)
        What the layer reads, f, not zero.
    signs : array_like, shape (M,)
        Numbers of which the signs count.
    frequency : float
        Of the cosine; positive.

    Returns
    -------
    ndarray, shape (M, m)
        The nearest matrix for which cos(frequency u_j) is the sign of number j.

    Raises
    ------
    ValueError
        If the shapes do not agree, the values are all zero or the frequency is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.lazy_training.linearity.oscillating import aligned
    >>> moved = aligned([[0.3, 1.0], [2.0, 0.1]], [1.0, -1.0], [0.5, -2.0], 7.0)
    >>> np.cos(7.0 * moved @ [1.0, -1.0] / np.sqrt(2)).round(12)
    array([ 1., -1.])
    """
    matrix = _validate.finite("weights", weights, shape=(None, None))
    read = _validate.finite("values", values, shape=(matrix.shape[1],))
    wanted = _validate.finite("signs", signs, shape=(matrix.shape[0],))
    omega = _validate.positive("frequency", frequency)
    square = read @ read
    if square == 0:
        raise ValueError("values must not all be zero")
    phase = np.where(wanted < 0, np.pi, 0.0)
    sums = matrix @ read / np.sqrt(read.size)
    target = (2 * np.pi * np.round((omega * sums - phase) / (2 * np.pi)) + phase) / omega
    moved: Array = matrix + np.outer(target - sums, read) * np.sqrt(read.size) / square
    return moved
