r"""Kernel regression in closed form, as a predictor that replaces an unknown target.

For images there is no :math:`f^*`, and the expected gradient outer product is estimated by that
of a predictor which is nearly always right (ZHU Appendix C.6 takes large networks). Regression
with the Laplace kernel :math:`e^{-|x - z| / \ell}` is one, and its gradients are a formula.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from traindyn import _validate
from traindyn._types import Array

__all__ = ["KernelRegression", "kernel_regression"]


@dataclass(frozen=True)
class KernelRegression:
    r"""A predictor :math:`f(x) = \sum_i \alpha_i e^{-|x - x_i| / \ell}`.

    Attributes
    ----------
    centres : ndarray, shape (n, d)
    coefficients : ndarray, shape (n,)
    bandwidth : float
        The length :math:`\ell`.
    """

    centres: Array
    coefficients: Array
    bandwidth: float

    def __post_init__(self) -> None:
        """Check shapes and ranges."""
        centres = _validate.finite("centres", self.centres, shape=(None, None))
        given = _validate.finite("coefficients", self.coefficients, shape=(len(centres),))
        _validate.positive("bandwidth", self.bandwidth)
        object.__setattr__(self, "centres", _validate.frozen(centres))
        object.__setattr__(self, "coefficients", _validate.frozen(given))

    def outputs(self, inputs: ArrayLike) -> Array:
        """Return the predictions.

        Parameters
        ----------
        inputs : array_like, shape (n', d)
            Where to predict; of the dimension of the centres.

        Returns
        -------
        ndarray, shape (n',)
        """
        return np.asarray(self._kernel(self._distances(inputs)) @ self.coefficients)

    def input_gradients(self, inputs: ArrayLike) -> Array:
        r"""Return the gradients in the input.

        .. math:: \nabla f(x) = -\frac1\ell \sum_{x_i \ne x} \alpha_i e^{-|x - x_i| / \ell}\,
            \frac{x - x_i}{|x - x_i|} .

        At a centre the kernel has a tip; its own term, which has no gradient there, counts as
        zero, the mean of the one-sided slopes.

        Parameters
        ----------
        inputs : array_like, shape (n', d)
            Of the dimension of the centres, which may be among them.

        Returns
        -------
        ndarray, shape (n', d)
        """
        x = _validate.finite("inputs", inputs, shape=(None, self.centres.shape[1]))
        distances = self._distances(x)
        away = distances > 0
        slopes = np.divide(
            self._kernel(distances), distances, out=np.zeros_like(distances), where=away
        )
        slopes *= -self.coefficients / self.bandwidth
        return np.asarray(slopes.sum(axis=1)[:, None] * x - slopes @ self.centres)

    def _distances(self, inputs: ArrayLike) -> Array:
        x = _validate.finite("inputs", inputs, shape=(None, self.centres.shape[1]))
        return np.asarray(cdist(x, self.centres))

    def _kernel(self, distances: Array) -> Array:
        return np.asarray(np.exp(-distances / self.bandwidth))


def kernel_regression(
    inputs: ArrayLike, labels: ArrayLike, *, bandwidth: float, ridge: float = 0.0
) -> KernelRegression:
    r"""Fit labels with the Laplace kernel.

    Parameters
    ----------
    inputs : array_like, shape (n, d)
        All different, unless `ridge` is positive.
    labels : array_like, shape (n,)
        The predictions at the inputs, where there is no ridge.
    bandwidth : float
        Positive.
    ridge : float, default 0.0
        Added to the diagonal of the kernel matrix.

    Returns
    -------
    KernelRegression
        With coefficients :math:`(K + \rho I)^{-1} y`.

    Raises
    ------
    ValueError
        If shapes do not match, the bandwidth is not positive, the ridge negative, or two inputs
        are equal and the ridge is zero.

    Examples
    --------
    >>> from companion.catapults.optimisers.references import kernel_regression
    >>> found = kernel_regression([[0.0], [1.0]], [1.0, -1.0], bandwidth=2.0)
    >>> found.outputs([[0.0], [0.5], [1.0]]).round(12).tolist()
    [1.0, 0.0, -1.0]
    """
    x = _validate.finite("inputs", inputs, shape=(None, None))
    y = _validate.finite("labels", labels, shape=(len(x),))
    length = _validate.positive("bandwidth", bandwidth)
    added = _validate.non_negative("ridge", ridge)
    if added == 0 and len(np.unique(x, axis=0)) < len(x):
        raise ValueError("inputs must be all different without a ridge, got equal rows")
    matrix = np.exp(-cdist(x, x) / length)
    matrix[np.diag_indices_from(matrix)] += added
    return KernelRegression(x, np.linalg.solve(matrix, y), length)
