"""What drives loss and kernel down along the top eigenvector (ZHU (B.13), (B.14))."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Remainders", "remainders"]


class Remainders(NamedTuple):
    """What drives loss and kernel down, along the top eigenvector (ZHU (B.13), (B.14)).

    Attributes
    ----------
    residual : ndarray, shape (T - 1,)
        Relative change of the residual along the vector, less that of the linear model.
    kernel : ndarray, shape (T - 1,)
        Decrease of the kernel's quadratic form on the vector.
    along : ndarray, shape (T,)
        Half the squared residual along the vector.
    top : ndarray, shape (T,)
        Largest eigenvalue.
    """

    residual: Array
    kernel: Array
    along: Array
    top: Array


def remainders(residuals: ArrayLike, kernels: ArrayLike, *, step_size: float) -> Remainders:
    r"""Measure the remainders of a run, each step along the top eigenvector of its own kernel.

    With the loss :math:`\frac12 |e|^2` and the top eigenpair :math:`\lambda_1, p` of K(t) they are
    :math:`p \cdot e(t+1) / p \cdot e(t) - 1 + \eta\lambda_1` and
    :math:`\lambda_1 - p \cdot K(t+1) p`.

    Parameters
    ----------
    residuals : array_like, shape (T, n)
        At successive steps.
    kernels : array_like, shape (T, n, n)
        Symmetric, at the same steps.
    step_size : float
        Of half the sum of squared residuals.

    Raises
    ------
    ValueError
        If shapes do not match.
    """
    e = _validate.finite("residuals", residuals, shape=(None, None))
    steps, n = e.shape
    matrices = _validate.finite("kernels", kernels, shape=(steps, n, n))
    eta = _validate.positive("step_size", step_size)
    values, vectors = np.linalg.eigh(matrices)
    top, p = values[:, -1], vectors[:, :, -1]
    along = np.einsum("ti,ti->t", p, e)
    if np.any(along[:-1] == 0):
        raise ValueError("residuals must not vanish along the top eigenvectors of kernels")
    ahead = np.einsum("ti,ti->t", p[:-1], e[1:])
    moved = np.einsum("ti,tij,tj->t", p[:-1], matrices[1:], p[:-1])
    return Remainders(ahead / along[:-1] - 1 + eta * top[:-1], top[:-1] - moved, along**2 / 2, top)
