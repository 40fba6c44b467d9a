r"""Random features: a kernel as an average over random neurons.

With standard normal :math:`w_\ell, b_\ell` and features
:math:`\phi_\ell(x) = \sigma(w_\ell \cdot x / \sqrt{n_0} + \beta b_\ell)`, the kernel
:math:`K_m(x, x') = \frac1m \sum_\ell \phi_\ell(x) \phi_\ell(x')` is an average of m independent
terms (MDL chapter 8, random feature regression). Its limit is the
second moment of one layer, ``infinite_width(depth=2).nngp`` less :math:`\beta^2`, and its error
is known entry by entry from the spread of the terms.

**What finite m does to regression.** Let :math:`r(x) = \phi(x) - K(x, X) K^{-1} \phi(X)`, the part
of a feature that its values on the training set do not tell, and
:math:`q = y^T K^{-1} \phi(X)`. The minimum-norm fit by m features is, to first order, that of the
kernel plus :math:`\frac1m \sum_\ell r_\ell(x)\, q_\ell`, of mean zero and variance

.. math:: \frac{v(x)}{m}, \qquad v(x) = E[r(x)^2 q^2].

Were the features jointly Gaussian, then r would be independent of the values on the training set,
and by the law of the inverse Wishart matrix the deviation would be, at every :math:`m \ge n`,
:math:`b\, T / \sqrt{m - n + 1}` with Student's T of :math:`m - n + 1` degrees of freedom and
:math:`b^2 = E[r^2]\, E[q^2] = (K(x, x) - K(x, X) K^{-1} K(X, x))\; y^T K^{-1} y`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import Activation
from traindyn.kernels.dual import dual_moments, own_moments

__all__ = [
    "circle_coefficients",
    "gaussian_feature_scale",
    "printed_kernel_flow",
    "random_features",
    "ridgeless_variance",
    "term_variance",
]

_ROUNDING = 1e-10


def random_features(
    x: ArrayLike, count: int, *, activation: Activation, bias: float = 0.0, rng: RNG
) -> Array:
    r"""Features :math:`\phi_\ell(x_i) / \sqrt m` of freshly drawn neurons (MDL Section 8.3.1).

    The linear model on them has this kernel: ``phi @ phi.T``. Inputs to be compared must go
    through one call.

    Parameters
    ----------
    x : array_like, shape (n, n_0)
        Inputs, one in each row.
    count : int
        Number m of features.
    activation : Activation
        :math:`\sigma`, of which only the values are used.
    bias : float, default 0
        :math:`\beta`.
    rng : int, SeedSequence or Generator
        Of the neurons, weights before biases.

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
    generator = _validate.generator("rng", rng)
    weights = generator.standard_normal((inputs.shape[1], count))
    before = inputs @ weights / np.sqrt(inputs.shape[1]) + beta * generator.standard_normal(count)
    return np.asarray(activation.value(before)) / math.sqrt(count)


def term_variance(x: ArrayLike, *, activation: Activation, bias: float = 0.0) -> Array:
    r"""Variance of a product of two features, exactly, shape (n, n).

    Divided by m it is the variance of an entry of the kernel of m features; summed over the
    entries, :math:`m E \|K_m - K\|_F^2`, at every m. For the ReLU the fourth moment is the
    arc-cosine kernel of degree two,

    .. math:: E[\sigma(u)^2 \sigma(v)^2] = \frac{ab}{2\pi}
              \big(3 \sin\varphi \cos\varphi + (\pi - \varphi)(1 + 2 \cos^2\varphi)\big);

    of any other activation it is the second moment of the square.

    Parameters
    ----------
    x : array_like, shape (n, n_0)
        Inputs, one in each row.
    activation : Activation
        :math:`\sigma`, with a derivative.
    bias : float, default 0
        :math:`\beta`.

    Returns
    -------
    ndarray, shape (n, n)

    Raises
    ------
    ValueError
        If `x` is not a matrix or the activation has no derivative.

    Examples
    --------
    For u of variance one, ``E[relu(u)^4] - E[relu(u)^2]^2 = 3/2 - 1/4``:

    >>> from companion.lazy_training.kernels import term_variance
    >>> from traindyn.activations import RELU
    >>> term_variance([[1.0]], activation=RELU).tolist()
    [[1.25]]
    """
    inputs = _validate.finite("x", x, shape=(None, None))
    shift = _validate.number("bias", bias) ** 2
    covariance = inputs @ inputs.T / inputs.shape[1] + shift
    variance = covariance.diagonal()
    mean = dual_moments(activation, covariance, variance).value
    if activation.kind == "relu":
        scale = np.sqrt(np.outer(variance, variance))
        cosine = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
        np.fill_diagonal(cosine, 1.0)
        angle = np.arccos(np.clip(cosine, -1.0, 1.0))
        shape = 3 * np.sin(angle) * cosine + (np.pi - angle) * (1 + 2 * cosine**2)
        fourth = scale**2 * shape / (2 * np.pi)
    else:
        square = _squared(activation)
        fourth = dual_moments(square, covariance, variance).value
        np.fill_diagonal(fourth, own_moments(square, variance).value)
    return np.asarray(fourth - np.square(mean))


def circle_coefficients(frequencies: ArrayLike) -> Array:
    r"""Fourier coefficients of the kernel of ReLU features on the circle.

    For inputs :math:`\sqrt 2 (\cos\theta, \sin\theta)` and no bias the kernel is
    :math:`\kappa(\theta - \theta') = \sum_k c_k \cos k(\theta - \theta')` with

    .. math:: c_0 = \frac2{\pi^2}, \quad c_1 = \frac14, \quad
              c_k = \frac4{\pi^2 (k^2 - 1)^2} \ (k \text{ even}), \quad
              c_k = 0 \ (k \ge 3 \text{ odd}),

    since :math:`\kappa'' + \kappa = |\sin| / \pi`. The eigenvalues of the kernel as an operator
    on the circle with its uniform law are :math:`c_0`, and :math:`c_k / 2` twice.

    Parameters
    ----------
    frequencies : array_like of int, shape (...)
        Non-negative.

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    ValueError
        If a frequency is negative or no integer.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.lazy_training.kernels import circle_coefficients
    >>> (circle_coefficients([0, 2]) * np.pi**2).round(12).tolist()
    [2.0, 0.444444444444]
    """
    k = _validate.finite("frequencies", frequencies)
    if np.any(k < 0) or np.any(k != np.round(k)):
        raise ValueError(f"frequencies must be non-negative integers, got {k.tolist()}")
    even = k % 2 == 0
    found = np.where(even, 4 / np.pi**2 / np.where(even, k**2 - 1, 1.0) ** 2, 0.0)
    return np.asarray(np.where(k == 0, 2 / np.pi**2, np.where(k == 1, 0.25, found)))


def gaussian_feature_scale(
    kernel: ArrayLike, cross: ArrayLike, own: ArrayLike, targets: ArrayLike
) -> Array:
    r"""Scale b of the deviation of minimum-norm regression on Gaussian features.

    Parameters
    ----------
    kernel : array_like, shape (n, n)
        Positive definite, on the training set.
    cross : array_like, shape (q, n)
        Between the fresh inputs and the training set.
    own : array_like, shape (q,)
        Variances :math:`K(x, x)` of the fresh inputs.
    targets : array_like, shape (n,)
        y, which the features fit on the training set.

    Returns
    -------
    ndarray, shape (q,)

    Raises
    ------
    ValueError
        If the shapes disagree, the kernel is not positive definite, or a variance is below
        what the training set explains of it.
    """
    matrix, block, y = _regression(kernel, cross, targets)
    weights = np.linalg.solve(matrix, np.column_stack([block.T, y]))
    left = _validate.finite("own", own, shape=(block.shape[0],)) - np.sum(
        block.T * weights[:, :-1], axis=0
    )
    if np.any(left < -_ROUNDING * matrix.trace()):
        raise ValueError(f"own must be variances given cross, one is too small by {-left.min():g}")
    return np.asarray(np.sqrt(np.maximum(left, 0.0) * (y @ weights[:, -1])))


def ridgeless_variance(
    kernel: ArrayLike,
    cross: ArrayLike,
    targets: ArrayLike,
    train: ArrayLike,
    fresh: ArrayLike,
    weights: ArrayLike | None = None,
) -> Array:
    r"""Asymptotic variance :math:`v(x)` of minimum-norm regression on random features.

    Parameters
    ----------
    kernel, cross, targets
        As for :func:`gaussian_feature_scale`.
    train, fresh : array_like, shape (n, N) and (q, N)
        Features at the training and the fresh inputs, at the nodes of a rule for the law of
        the neurons.
    weights : array_like, shape (N,), optional
        Of the rule; equal unless given.

    Returns
    -------
    ndarray, shape (q,)

    Raises
    ------
    ValueError
        If the shapes disagree or the kernel is not positive definite.
    """
    matrix, block, y = _regression(kernel, cross, targets)
    inside = _validate.finite("train", train, shape=(y.size, None))
    nodes = inside.shape[1]
    outside = _validate.finite("fresh", fresh, shape=(block.shape[0], nodes))
    rule = np.full(nodes, 1 / nodes)
    if weights is not None:
        rule = _validate.finite("weights", weights, shape=(nodes,))
    rest = outside - np.linalg.solve(matrix, block.T).T @ inside
    pull = np.linalg.solve(matrix, y) @ inside
    return np.asarray(np.square(rest * pull) @ rule)


def _regression(kernel: ArrayLike, cross: ArrayLike, targets: ArrayLike) -> tuple[Array, ...]:
    matrix = _validate.symmetric("kernel", kernel)
    lowest = np.linalg.eigvalsh(matrix)[0]
    if lowest <= 0:
        raise ValueError(f"kernel must be positive definite, got smallest eigenvalue {lowest:.6g}")
    size = matrix.shape[0]
    block = _validate.finite("cross", cross, shape=(None, size))
    return matrix, block, _validate.finite("targets", targets, shape=(size,))


def _squared(activation: Activation) -> Activation:
    value, slope = activation.value, activation.first("the moments of its square")
    return Activation(
        f"{activation.name} squared",
        lambda v: np.square(value(v)),
        lambda v: 2 * value(v) * slope(v),
        None,
    )


def printed_kernel_flow(kernel: ArrayLike, targets: ArrayLike, times: ArrayLike) -> Array:
    r"""Return outputs of kernel gradient flow as in MDL Example 8.3, from zero, shape (T, n).

    .. math:: \dot f = -\tfrac12 K (y - f)

    against :math:`+\frac1n`: it leaves the targets instead of approaching them.
    """
    matrix = _validate.symmetric("kernel", kernel)
    y = _validate.finite("targets", targets, shape=(len(matrix),))
    grid = _validate.increasing("times", times)
    return np.stack([y - expm(t / 2 * matrix) @ y for t in grid])
