r"""Linear least squares, over- or under-parametrised, and what gradient descent makes of it.

For n rows :math:`X` in :math:`R^{n \times d}` and targets y the risk is (MDL Example 4.1)

.. math:: R(\theta) = \tfrac1n |X\theta - y|^2, \qquad
          \nabla R = \tfrac2n X^\top (X\theta - y) .

With the singular values :math:`s_k` of X, the Hessian has the eigenvalues
:math:`2 s_k^2 / n`, so descent multiplies the error along the k-th right singular vector by
:math:`1 - 2 \eta s_k^2 / n` at each step and leaves the kernel of X alone. Its path is therefore
known in closed form, and so is its limit: the minimiser nearest to the start.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.trajectory import Trajectory

__all__ = ["DescentStatistics", "LeastSquares"]


class DescentStatistics(NamedTuple):
    """What a path of descent shows.

    Attributes
    ----------
    parameters : ndarray, shape (T, d)
    loss : ndarray, shape (T,)
    """

    parameters: Array
    loss: Array


class LeastSquares:
    r"""Least squares on a fixed design.

    Parameters
    ----------
    x : array_like, shape (n, d)
    y : array_like, shape (n,)

    Attributes
    ----------
    curvatures : ndarray, shape (rank,)
        Positive eigenvalues of :math:`X^\top X / n`, falling; half those of the Hessian.
    basis : ndarray, shape (rank, d)
        Their eigenvectors, an orthonormal basis of the row space.

    Raises
    ------
    ValueError
        If the shapes disagree, an entry is not finite or `x` is zero.

    Examples
    --------
    Two unknowns, one equation: descent from zero finds the shortest solution.

    >>> from traindyn.problems.regression.least_squares import LeastSquares
    >>> problem = LeastSquares([[3.0, 4.0]], [5.0])
    >>> problem.minimum_norm().round(12).tolist(), problem.critical_step_size
    ([0.6, 0.8], 0.04)
    >>> problem.descend([0, 2, 1000], step_size=0.01).statistics.loss.round(3).tolist()
    [25.0, 1.562, 0.0]
    """

    def __init__(self, x: ArrayLike, y: ArrayLike) -> None:
        self.x = _validate.frozen(_validate.finite("x", x, shape=(None, None)))
        self.y = _validate.frozen(_validate.finite("y", y, shape=(len(self.x),)))
        left, values, right = np.linalg.svd(self.x, full_matrices=False)
        largest = values.max(initial=0.0)
        if largest == 0:
            raise ValueError(
                f"x must not be zero, got shape {self.x.shape} without a singular value"
            )
        kept = values > largest * max(self.x.shape) * np.finfo(float).eps
        self.basis: Array = right[kept]
        self.curvatures: Array = values[kept] ** 2 / len(self.x)
        self._coordinates: Array = (left[:, kept].T @ self.y) / values[kept]

    def loss(self, theta: ArrayLike) -> Array:
        """Risk at points of shape (..., d)."""
        theta = _validate.ending("theta", theta, (self.x.shape[1],))
        residual = theta @ self.x.T - self.y
        return np.asarray(np.mean(residual**2, axis=-1))

    def gradient(self, theta: ArrayLike) -> Array:
        """Gradient of the risk at points of shape (..., d)."""
        theta = _validate.ending("theta", theta, (self.x.shape[1],))
        residual = theta @ self.x.T - self.y
        return np.asarray(2 / len(self.y) * residual @ self.x)

    def minimum_norm(self) -> Array:
        r"""Minimiser of least norm, :math:`X^+ y` (MDL Lemma 4.2), shape (d,)."""
        return self._coordinates @ self.basis

    def project(self, start: ArrayLike) -> Array:
        r"""Minimiser nearest to a point, :math:`\theta_0 + X^+ (y - X\theta_0)`.

        Parameters
        ----------
        start : array_like, shape (d,)
            :math:`\theta_0`, for example the start of a descent that converges.

        Returns
        -------
        ndarray, shape (d,)
        """
        point = _validate.finite("start", start, shape=(self.x.shape[1],))
        return np.asarray(point + (self._coordinates - self.basis @ point) @ self.basis)

    @cached_property
    def critical_step_size(self) -> float:
        r"""Step size from which on descent fails, :math:`1/\lambda_{\max}(X^\top X/n)`."""
        return float(1 / self.curvatures[0])

    def descend(
        self, steps: ArrayLike, *, step_size: float, start: ArrayLike | None = None
    ) -> Trajectory[DescentStatistics]:
        """Gradient descent after given numbers of steps, in closed form.

        Parameters
        ----------
        steps : array_like of int, shape (T,)
            Strictly increasing; their size costs nothing.
        step_size : float
            Multiplier of the gradient.
        start : array_like, shape (d,), optional
            Zero unless given.

        Returns
        -------
        Trajectory
            At ``times = steps * step_size``, with :class:`DescentStatistics`.

        Raises
        ------
        ValueError
            If an argument is out of range.
        FloatingPointError
            If descent diverges beyond the floating-point range.
        """
        count = _validate.increasing("steps", steps)
        if np.any(count != np.round(count)):
            raise ValueError(f"steps must be whole numbers, got {count}")
        step = _validate.positive("step_size", step_size)
        dim = self.x.shape[1]
        point = np.zeros(dim) if start is None else _validate.finite("start", start, shape=(dim,))
        nearest = self.project(point)
        with np.errstate(over="ignore", invalid="ignore"):
            factors = (1 - 2 * step * self.curvatures) ** count[:, None]
            path = nearest + factors * (self.basis @ (point - nearest)) @ self.basis
            finite = np.isfinite(path).all() and np.isfinite(loss := self.loss(path)).all()
        if not finite:
            raise FloatingPointError(
                f"descent with step_size = {step:g} diverges: it must be below "
                f"{self.critical_step_size:g}"
            )
        return Trajectory(count * step, DescentStatistics(path, loss), step_size=step)
