r"""Gradients of a kernel machine, from a number of samples proportional to the dimension.

The machine is ridge regression with the kernel :math:`k(x, x') = e^{x \cdot x' / d}`,
:math:`f(x) = \sum_i \alpha_i k(x, x_i)`, with :math:`\alpha = (K + \lambda I)^{-1} (y - \bar y)`.
For a fresh standard Gaussian x its gradient has the mean and second moment

.. math:: \mu = \frac1d \sum_i \alpha_i e^{|x_i|^2 / 2 d^2} x_i , \qquad
          A = \frac1{d^2} \sum_{ij} \alpha_i \alpha_j e^{|x_i + x_j|^2 / 2 d^2} x_i x_j^T ,

exactly. As :math:`x_i \cdot x_j / d^2` is small, the covariance is
:math:`A - \mu \mu^T \approx d^{-4} S^2` with :math:`S = \sum_i \alpha_i x_i x_i^T`: a weighted
covariance, whose weights are the coefficients.

With n of order d the kernel matrix is, up to rank one and what vanishes,
:math:`X X^T / d + (e - 2) I`. So :math:`\alpha` solves linear ridge regression with
:math:`\lambda' = \lambda + e - 2`, and leaving out a sample gives
:math:`\alpha_i \propto y_i - \bar y - \sqrt q Z_i`, Z standard normal and independent of the
sample, with (derived here)

.. math:: q = \mathrm{var}(y)\,(g + \lambda' g') , \qquad
          \lambda' g^2 + (\lambda' + \delta - 1) g - 1 = 0 ,

where g is the mean of :math:`1 / (w + \lambda')` over the eigenvalues w of :math:`X^T X / d`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Gradients", "field_variance", "kernel_gradients"]


class Gradients(NamedTuple):
    """Moments of the gradient of a kernel machine at a fresh Gaussian input.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    second : ndarray, shape (d, d)
        The average outer product of the gradient.
    coefficients : ndarray, shape (n,)
    """

    mean: Array
    second: Array
    coefficients: Array

    @property
    def covariance(self) -> Array:
        """Second moment without that of the mean."""
        return np.asarray(self.second - np.outer(self.mean, self.mean))


def kernel_gradients(inputs: ArrayLike, labels: ArrayLike, *, ridge: float) -> Gradients:
    r"""Fit ridge regression with the kernel :math:`e^{x \cdot x' / d}`, and average its gradient.

    Parameters
    ----------
    inputs : array_like, shape (n, d)
        Of unit variance.
    labels : array_like, shape (n,)
        Their mean is taken off.
    ridge : float
        Added to the kernel matrix, not negative.

    Raises
    ------
    ValueError
        If shapes disagree or the ridge is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.phase_transitions.generality.kernel import kernel_gradients
    >>> x = np.random.default_rng(0).standard_normal((60, 20))
    >>> found = kernel_gradients(x, x[:, 0], ridge=1.0)
    >>> bool(abs(found.mean[0]) > 0.9 * np.linalg.norm(found.mean))
    True
    """
    x = _validate.finite("inputs", inputs, shape=(None, None))
    y = _validate.finite("labels", labels, shape=(len(x),))
    n, d = x.shape
    products = x @ x.T
    matrix = np.exp(products / d) + _validate.non_negative("ridge", ridge) * np.eye(n)
    alpha = solve(matrix, y - y.mean(), assume_a="pos")
    half = np.exp(products.diagonal() / (2 * d * d))
    weighted = (alpha * half)[:, None] * x / d
    second = weighted.T @ np.exp(products / (d * d)) @ weighted
    return Gradients(weighted.sum(axis=0), second, alpha)


def field_variance(sample_ratio: float, ridge: float) -> float:
    """Variance q of the field in the coefficients, over that of the labels.

    Parameters
    ----------
    sample_ratio : float
        Samples per dimension.
    ridge : float
        Of :func:`kernel_gradients`.

    Examples
    --------
    >>> from companion.phase_transitions.generality.kernel import field_variance
    >>> print(f"{field_variance(2.0, 1.0):.3f}")
    0.125
    """
    delta = _validate.positive("sample_ratio", sample_ratio)
    shift = _validate.non_negative("ridge", ridge) + math.e - 2
    middle = shift + delta - 1
    g = (np.sqrt(middle**2 + 4 * shift) - middle) / (2 * shift)
    slope = -(g * g + g) / (2 * shift * g + middle)
    return float(g + shift * slope)
