r"""General quadratic models, and the exact motion of their residuals and tangent kernel.

.. math:: g(w; x_i) = w \cdot \phi_i + \frac\gamma2\, w \cdot \Sigma_i w

(ZHU (3.3)). With the Jacobian J, rows :math:`\phi_i + \gamma \Sigma_i w`, residuals e and
:math:`G_i = \gamma\, \Sigma_i J^\top e`, a step of gradient descent on :math:`\frac12 |e|^2` gives

.. math::

    e' &= \big(1 - \eta K + \tfrac{\eta^2}2 G J^\top\big) e, \\
    K' &= (J - \eta G)(J - \eta G)^\top = K - \eta (G J^\top + J G^\top) + \eta^2 G G^\top

(ZHU (3.15), and (3.16) corrected). For one example with :math:`\Sigma^2 = s^2` this is the map of
:mod:`traindyn.catapults.maps` with :math:`c = \gamma^2 s^2`, output and label both shifted by
:math:`\phi \cdot \Sigma \phi / 2 \gamma s^2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["OneExample", "QuadraticModel", "Run", "printed_kernel_step"]

_LOST = 1e100


class Run(NamedTuple):
    """Gradient descent, step by step.

    Attributes
    ----------
    losses : ndarray, shape (T + 1,)
        Half the sum of squared residuals, up to the last finite one.
    kernels : ndarray, shape (T + 1,)
        Largest eigenvalue of the tangent kernel.
    weights : ndarray, shape (p,)
        The last ones.
    diverged : int or None
        The step at which the loss left all bounds.
    """

    losses: Array
    kernels: Array
    weights: Array
    diverged: int | None


class OneExample(NamedTuple):
    """Arguments of :func:`traindyn.catapults.maps.iterate`."""

    residual: float
    kernel: float
    coupling: float
    label: float


@dataclass(frozen=True)
class QuadraticModel:
    r"""A model that is quadratic in its weights.

    Parameters
    ----------
    features : array_like, shape (n, p)
    curvature : array_like, shape (n, p, p), (p, p) or (p,)
        One symmetric matrix for each example, one for all, or the diagonal of one for all.
    scale : float
        :math:`\gamma`.

    Raises
    ------
    ValueError
        If shapes do not match, or a matrix is not symmetric.

    Examples
    --------
    >>> from companion.catapults.many_examples.quadratic import QuadraticModel
    >>> model = QuadraticModel([[1.0, 0.0]], [1.0, -1.0], scale=0.5)
    >>> model.outputs([2.0, 2.0]), model.tangent_kernel([2.0, 2.0])
    (array([2.]), array([[5.]]))
    """

    features: Array
    curvature: Array
    scale: float

    def __post_init__(self) -> None:
        features = _validate.finite("features", self.features, shape=(None, None))
        n, p = features.shape
        curvature = _validate.finite("curvature", self.curvature)
        allowed = ((p,), (p, p), (n, p, p))
        if curvature.shape not in allowed:
            shapes = " or ".join(str(shape) for shape in allowed)
            raise ValueError(f"curvature must have shape {shapes}, got {curvature.shape}")
        if curvature.ndim > 1 and not np.allclose(curvature, np.swapaxes(curvature, -1, -2)):
            raise ValueError("curvature must be symmetric, got a matrix that is not")
        object.__setattr__(self, "features", _validate.frozen(features))
        object.__setattr__(self, "curvature", _validate.frozen(curvature))
        object.__setattr__(self, "scale", _validate.number("scale", self.scale))

    def _bend(self, w: Array) -> Array:
        """Return the rows of scale * curvature times w, shape (n, p) or (p,)."""
        if self.curvature.ndim == 1:
            return self.scale * self.curvature * w
        return self.scale * (self.curvature @ w)

    def outputs(self, weights: ArrayLike) -> Array:
        """Return g, shape (n,), at weights of shape (p,)."""
        w = self._weights(weights)
        return np.asarray((self.features + self._bend(w) / 2) @ w)

    def jacobian(self, weights: ArrayLike) -> Array:
        """Return the derivatives of the outputs, shape (n, p)."""
        return self.features + self._bend(self._weights(weights))

    def tangent_kernel(self, weights: ArrayLike) -> Array:
        """Return the Gram matrix of the Jacobian, shape (n, n)."""
        rows = self.jacobian(weights)
        return rows @ rows.T

    def kernel_step(
        self, weights: ArrayLike, labels: ArrayLike, *, step_size: float
    ) -> tuple[Array, Array]:
        """Return residuals and kernel after one step, from those before it (ZHU (3.15), (3.16)).

        Parameters
        ----------
        weights : array_like, shape (p,)
            They enter through residuals, Jacobian and curvature only.
        labels : array_like, shape (n,)
            Targets y, with which the residuals are ``g - y``.
        step_size : float
            Of half the sum of squared residuals, positive.

        Returns
        -------
        residuals : ndarray, shape (n,)
        kernel : ndarray, shape (n, n)
        """
        rows, turned, e = self._parts(weights, labels)
        kernel, eta = rows @ rows.T, _validate.positive("step_size", step_size)
        mixed = turned @ rows.T
        residuals = e - eta * kernel @ e + eta**2 / 2 * mixed @ e
        return residuals, kernel - eta * (mixed + mixed.T) + eta**2 * turned @ turned.T

    def run(self, start: ArrayLike, labels: ArrayLike, *, step_size: float, steps: int) -> Run:
        """Run gradient descent on half the sum of squared residuals.

        Parameters
        ----------
        start : array_like, shape (p,)
            Weights where the run begins, left unchanged.
        labels : array_like, shape (n,)
            Targets, one for each example.
        step_size : float
            The same at all steps, positive.
        steps : int
            Number T of steps; a run that diverges ends before.

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        eta = _validate.positive("step_size", step_size)
        count = _validate.integer("steps", steps, least=0)
        w = self._weights(start, "start").copy()
        losses, kernels = np.empty((2, count + 1))
        for t in range(count + 1):
            rows, _, e = self._parts(w, labels)
            loss = float(e @ e) / 2
            if not loss < _LOST:
                return Run(losses[:t], kernels[:t], w, t)
            losses[t], kernels[t] = loss, np.linalg.norm(rows, 2) ** 2
            if t < count:
                w -= eta * (e @ rows)
        return Run(losses, kernels, w, None)

    def one_example(self, weights: ArrayLike, label: float) -> OneExample:
        r"""Return the one-example map that gradient descent on this model is.

        For features and label zero it is that of ZHU Proposition B.13.1, which has :math:`\gamma`
        for :math:`\gamma^2`.

        Parameters
        ----------
        weights : array_like, shape (p,)
            Where the map starts.
        label : float
            Target of the model; that of the map is shifted.

        Raises
        ------
        ValueError
            If there are several examples, or the squared curvature is no multiple of the
            identity.
        """
        if self.features.shape[0] != 1:
            raise ValueError(f"features must have one row, got {self.features.shape[0]}")
        matrix = np.diag(self.curvature) if self.curvature.ndim == 1 else self.curvature
        matrix = matrix.reshape(matrix.shape[-2:])
        square = matrix @ matrix
        size = float(np.trace(square)) / len(square)
        if size == 0 or not np.allclose(square, size * np.eye(len(square)), atol=1e-12 * size):
            raise ValueError("curvature must have a square that is a multiple of the identity")
        phi = self.features[0]
        shift = float(phi @ matrix @ phi) / (2 * self.scale * size)
        kernel = float(self.tangent_kernel(weights)[0, 0])
        y = _validate.number("label", label)
        residual = float(self.outputs(weights)[0]) - y
        return OneExample(residual, kernel, self.scale**2 * size, y + shift)

    def _weights(self, weights: ArrayLike, name: str = "weights") -> Array:
        return _validate.finite(name, weights, shape=(self.features.shape[1],))

    def _parts(self, weights: ArrayLike, labels: ArrayLike) -> tuple[Array, Array, Array]:
        y = _validate.finite("labels", labels, shape=(self.features.shape[0],))
        rows = self.jacobian(weights)
        e = self.outputs(weights) - y
        return rows, np.broadcast_to(self._bend(e @ rows), rows.shape), e


def printed_kernel_step(
    model: QuadraticModel, weights: ArrayLike, labels: ArrayLike, *, step_size: float
) -> Array:
    r"""Return the kernel after one step as ZHU (3.16) is printed, which is wrong.

    It subtracts :math:`\frac\eta4 (4 G J^\top - \eta G G^\top)`, which is not even symmetric.

    Parameters
    ----------
    model : QuadraticModel
        Gives Jacobian and curvature.
    weights : array_like, shape (p,)
        Before the step.
    labels : array_like, shape (n,)
        Targets y, with which the residuals are e = g - y.
    step_size : float
        :math:`\eta` of half the sum of squared residuals.

    Returns
    -------
    ndarray, shape (n, n)
    """
    rows, turned, _ = model._parts(weights, labels)
    eta = _validate.positive("step_size", step_size)
    lost = eta / 4 * (4 * turned @ rows.T - eta * turned @ turned.T)
    return rows @ rows.T - lost
