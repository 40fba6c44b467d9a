r"""Random features: a kernel as an average over random neurons.

With standard normal :math:`w_\ell, b_\ell` and features
:math:`\phi_\ell(x) = \sigma(w_\ell \cdot x / \sqrt{n_0} + \beta b_\ell)`, the kernel
:math:`K_m(x, x') = \frac1m \sum_\ell \phi_\ell(x) \phi_\ell(x')` is an average of m independent
terms (MDL chapter 8, random feature regression). Its limit is the
second moment of one layer, ``infinite_width(depth=2).nngp`` less :math:`\beta^2`, and its error
is known entry by entry from the spread of the terms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn.activations import Activation
from traindyn.kernels.dual import Array
from traindyn.kernels.network import RNG

__all__ = ["FeatureKernel", "feature_kernel", "random_features"]

_BLOCK = 512


class FeatureKernel(NamedTuple):
    """Average over random features.

    Attributes
    ----------
    kernel : ndarray, shape (n, n)
        Positive semi-definite.
    error : ndarray, shape (n, n)
        Standard error of each entry, from the spread over the features.
    """

    kernel: Array
    error: Array


def random_features(
    x: ArrayLike, count: int, *, activation: Activation, bias: float = 0.0, rng: RNG
) -> Array:
    r"""Features :math:`\phi_\ell(x_i) / \sqrt m` of freshly drawn neurons, shape (n, m).

    The linear model on them has this kernel: ``phi @ phi.T``. Inputs to be compared must go
    through one call.

    Parameters
    ----------
    x : array_like, shape (n, n_0)
    count : int
        Number m of features.
    activation : Activation
    bias : float, default 0
    rng : int, SeedSequence or Generator

    Returns
    -------
    ndarray, shape (n, m)

    Raises
    ------
    ValueError
        If `x` is not a matrix or `count` is below one.
    """
    inputs = _validate.finite("x", x, shape=(None, None))
    count = _validate.integer("count", count, least=1)
    beta = _validate.number("bias", bias)
    return _draw(inputs, count, activation, beta, np.random.default_rng(rng)) / math.sqrt(count)


def feature_kernel(
    x: ArrayLike, count: int, *, activation: Activation, bias: float = 0.0, rng: RNG
) -> FeatureKernel:
    """Kernel of `count` random features, with its standard error, in memory of order n^2.

    Parameters
    ----------
    x, count, activation, bias, rng
        As for :func:`random_features`; at least two features.

    Returns
    -------
    FeatureKernel

    Raises
    ------
    ValueError
        If `x` is not a matrix or `count` is below two.

    Examples
    --------
    >>> from traindyn.activations import ERF
    >>> from traindyn.kernels import infinite_width
    >>> x = np.array([[1.0, 0.5], [-0.5, 1.0]])
    >>> found = feature_kernel(x, 4096, activation=ERF, rng=1)
    >>> limit = infinite_width(x, depth=2, activation=ERF).nngp
    >>> bool(np.all(abs(found.kernel - limit) < 5 * found.error))
    True
    """
    inputs = _validate.finite("x", x, shape=(None, None))
    count = _validate.integer("count", count, least=2)
    beta = _validate.number("bias", bias)
    generator = np.random.default_rng(rng)
    size = inputs.shape[0]
    total, squares = np.zeros((size, size)), np.zeros((size, size))
    for start in range(0, count, _BLOCK):
        phi = _draw(inputs, min(_BLOCK, count - start), activation, beta, generator)
        total += phi @ phi.T
        squares += np.square(phi) @ np.square(phi).T
    kernel = total / count
    spread = np.maximum(squares / count - np.square(kernel), 0.0)
    return FeatureKernel(kernel, np.sqrt(spread / (count - 1)))


def _draw(
    x: Array, count: int, activation: Activation, beta: float, rng: np.random.Generator
) -> Array:
    weights = rng.standard_normal((x.shape[1], count))
    before = x @ weights / np.sqrt(x.shape[1]) + beta * rng.standard_normal(count)
    return np.asarray(activation.value(before))
