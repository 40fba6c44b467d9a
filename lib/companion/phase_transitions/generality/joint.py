r"""The lowest outlier of the whole Hessian of a network with several neurons.

For m neurons the Hessian of m times the risk is :math:`H = \frac1n \sum_i G_i \otimes x_i x_i^T`,
with a symmetric m x m matrix of weights for each sample
(:meth:`~traindyn.problems.multi_index.model.MultiIndex.hessian_weights`). Leaving one sample out,
and then one coordinate, gives the m x m matrix :math:`\alpha(z)`, the limit of the traces over d of
the blocks of :math:`(H - z)^{-1}`, and the resolvent on the r hard coordinates (derived here):

.. math:: z I + \alpha^{-1} = \delta\, E[B], \quad B = G (\delta I + \alpha G)^{-1}, \qquad
          \big[(H - z)^{-1}\big]_{hard} \to M(z)^{-1}, \quad
          M(z) = -z I + \delta\, E[B \otimes s s^T] .

Below the spectrum :math:`\alpha` is positive definite and increases with z, and M decreases. So
outliers below z are the negative eigenvalues of M(z), or those above one of

.. math:: P = I - (\alpha^{1/2} \otimes I)\, M\, (\alpha^{1/2} \otimes I) ,

which for m = 1 is P of :class:`~traindyn.laws.hard_subspace.HardSubspace`, with
:math:`\alpha = a`. Along the curve of solutions the trace of :math:`\alpha` is the parameter: z
rises up to the left edge, where the derivative of z in the trace vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import symmetric_sqrt

__all__ = ["JointOutlier", "joint_outlier"]

_NEWTON_STEPS, _TOLERANCE = 60, 1e-11
_GROWTH, _LEAST_GROWTH, _LARGEST = 2.0, 1 + 1e-6, 1e12
"""Ratio of neighbouring traces on the way to the edge, where the way ends, and how far it goes."""


class JointOutlier(NamedTuple):
    """Lowest outlier of the Hessian of several neurons.

    Attributes
    ----------
    edge : float
        Left edge of the bulk.
    statistic : float
        Largest eigenvalue of P at the lesser of zero and the edge: informative eigenvalues below
        both exist where it exceeds one.
    value, overlap : float or None
        Lowest outlier left of the edge and its eigenvector's squared part on the hard directions;
        None if there is none.
    """

    edge: float
    statistic: float
    value: float | None
    overlap: float | None


def joint_outlier(weights: ArrayLike, features: ArrayLike, sample_ratio: float) -> JointOutlier:
    """Find the left edge and the lowest outlier of the Hessian of several neurons.

    Parameters
    ----------
    weights : array_like, shape (N, m, m)
        Draws of G, symmetric.
    features : array_like, shape (N,) or (N, r)
        Hard coordinates s of the same draws, on an orthonormal basis.
    sample_ratio : float
        Samples per dimension.

    Raises
    ------
    ValueError
        If an argument is out of range or the weights are not symmetric.
    FloatingPointError
        If the curve of solutions cannot be followed to the edge.

    Examples
    --------
    Two neurons that do not interact have the outlier of the lower one:

    >>> import numpy as np
    >>> from companion.phase_transitions.generality.joint import joint_outlier
    >>> from traindyn.laws import HardSubspace
    >>> s = np.random.default_rng(0).standard_normal(4000)
    >>> low, high = np.cos(s), 2 + np.cos(s)
    >>> pair = np.stack([low, 0 * s, 0 * s, high], axis=1).reshape(-1, 2, 2)
    >>> both, one = joint_outlier(pair, s, 6.0), HardSubspace(low, s, 6.0)
    >>> print(np.round([both.edge - one.edge, both.statistic - one.statistic], 6) + 0.0)
    [0. 0.]
    """
    return _Curve(weights, features, sample_ratio).lowest()


class _Point(NamedTuple):
    """A solution: alpha, z, and the slope of z in the trace."""

    trace: float
    alpha: Array
    z: float
    slope: float


class _Curve:
    """Solutions of the equation for alpha, by their trace."""

    def __init__(self, weights: ArrayLike, features: ArrayLike, sample_ratio: float) -> None:
        given = _validate.finite("weights", weights)
        if given.ndim != 3 or given.shape[1] != given.shape[2] or given.size == 0:
            raise ValueError(f"weights must have shape (N, m, m), got {given.shape}")
        if not np.allclose(given, given.transpose(0, 2, 1), rtol=1e-10, atol=1e-12):
            raise ValueError("weights must be symmetric matrices, got others")
        rows = _validate.finite("features", features)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) != len(given) or rows.shape[1] == 0:
            raise ValueError(
                f"features must have shape ({len(given)},) or ({len(given)}, r >= 1), "
                f"got {np.shape(features)}"
            )
        self.weights, self.features = given, rows
        self.delta = _validate.positive("sample_ratio", sample_ratio)
        self.m = given.shape[1]
        # A trace for which -z is far above all weights.
        self.first = self.m / (1e3 * (np.abs(given).max() * self.m * (1 + 1 / self.delta) + 1e-30))

    def lowest(self) -> JointOutlier:
        """Follow the curve to its edge, and read everything there."""
        known = [_Point(self.first, *self.solve(self.first, np.eye(self.m), -self.m / self.first))]
        if known[0].slope <= 0:
            raise FloatingPointError("the curve of solutions begins beyond its edge")
        growth = _GROWTH
        while known[-1].slope > 0:
            last = known[-1]
            try:
                after = _Point(last.trace * growth, *self.solve(last.trace * growth, *last[1:3]))
                # The trace of the resolvent is convex in z, hence z concave in the trace.
                chord = (after.z - last.z) / (after.trace - last.trace)
                if not after.slope < chord < last.slope:
                    raise FloatingPointError("the step led to another curve")
            except FloatingPointError:
                growth = np.sqrt(growth)
                if growth < _LEAST_GROWTH:
                    raise
                continue
            known.append(after)
            if last.trace > _LARGEST * self.first:
                raise FloatingPointError("the curve of solutions has no edge below a huge trace")
        edge = self.root(known, lambda point: -point.slope)
        known[-1] = end = edge
        if edge.z > 0:
            end = self.root(known, lambda point: point.z)
        if self.top(edge) <= 1:
            return JointOutlier(edge.z, self.top(end), None, None)
        outlier = self.root(known, lambda point: self.top(point) - 1)
        return JointOutlier(edge.z, self.top(end), outlier.z, self.overlap(outlier))

    def root(self, known: list[_Point], level: Callable[[_Point], float]) -> _Point:
        """First point of the curve at which a level that rises passes zero."""
        i = next(i for i, point in enumerate(known) if level(point) > 0)
        near = known[i - 1]

        def at(trace: float) -> _Point:
            return _Point(trace, *self.solve(trace, near.alpha, near.z))

        return at(brentq(lambda trace: level(at(trace)), near.trace, known[i].trace, rtol=1e-9))

    def shrunk(self, alpha: Array) -> Array:
        """B for every draw, shape (N, m, m)."""
        inner = self.delta * np.eye(self.m) + alpha @ self.weights
        # Continuation starts at small alpha, where all eigenvalues are near delta.
        if np.linalg.det(inner).min() <= 0:
            raise FloatingPointError("alpha left the domain of the equation")
        return np.asarray(np.linalg.solve(inner.transpose(0, 2, 1), self.weights))

    def solve(self, trace: float, alpha: Array, z: float) -> tuple[Array, float, float]:
        """Alpha, z and the slope of z at a trace, by Newton from a nearby solution."""
        m = self.m
        alpha = alpha * (trace / np.trace(alpha))
        eye, along = np.eye(m), np.append(np.eye(m).ravel(), 0.0)
        for _ in range(_NEWTON_STEPS):
            b = self.shrunk(alpha)
            inverse = np.linalg.inv(alpha)
            residual = z * eye + inverse - self.delta * b.mean(axis=0)
            # Of zI + alpha^-1 - delta E[B]: dz I - alpha^-1 da alpha^-1 + delta E[B da B].
            moved = self.delta * _crossed(b)
            system = np.zeros((m * m + 1, m * m + 1))
            system[:-1, :-1] = moved - np.kron(inverse, inverse)
            system[:-1, -1] = eye.ravel()
            system[-1] = along
            step = np.linalg.solve(system, np.append(-residual.ravel(), trace - np.trace(alpha)))
            change = step[:-1].reshape(m, m)
            alpha, z = alpha + (change + change.T) / 2, z + step[-1]
            if np.linalg.eigvalsh(alpha)[0] <= 0:
                raise FloatingPointError("alpha must stay positive definite")
            if np.abs(change).max() <= _TOLERANCE * trace:
                tangent = np.linalg.solve(system, np.append(np.zeros(m * m), 1.0))
                return alpha, float(z), float(tangent[-1])
        raise FloatingPointError(f"Newton must converge within {_NEWTON_STEPS} steps, did not")

    def hard(self, b: Array, z: float) -> Array:
        """M for given B, shape (m r, m r)."""
        size = self.m * self.features.shape[1]
        r = self.features.shape[1]
        pairs = (self.features[:, :, None] * self.features[:, None, :]).reshape(len(b), r * r)
        moments = (b.reshape(len(b), -1).T @ pairs / len(b)).reshape(self.m, self.m, r, r)
        return np.asarray(
            -z * np.eye(size) + self.delta * moments.transpose(0, 2, 1, 3).reshape(size, size)
        )

    def top(self, point: _Point) -> float:
        """Largest eigenvalue of P."""
        root = np.kron(symmetric_sqrt(point.alpha, scale=1.0), np.eye(self.features.shape[1]))
        matrix = root @ self.hard(self.shrunk(point.alpha), point.z) @ root
        return float(1 - np.linalg.eigvalsh(matrix)[0])

    def overlap(self, point: _Point) -> float:
        """Squared part of the outlier's eigenvector on the hard directions: -1 / v^T M' v."""
        m, r = self.m, self.features.shape[1]
        alpha, b = point.alpha, self.shrunk(point.alpha)
        # alpha' solves alpha' - delta E[alpha B alpha' B alpha] = alpha^2.
        through = np.einsum("ab,nbc->nac", alpha, b)
        moved = self.delta * _crossed(through)
        slope = np.linalg.solve(np.eye(m * m) - moved, (alpha @ alpha).ravel()).reshape(m, m)
        vector = np.linalg.eigh(self.hard(b, point.z))[1][:, 0].reshape(m, r)
        seen = np.einsum("nij,jr,nr->ni", b, vector, self.features)
        return float(1 / (1 + self.delta * np.einsum("ni,ij,nj->n", seen, slope, seen).mean()))


def _crossed(matrices: Array) -> Array:
    """Mean of the map X -> A X A^T, as a matrix on row-major entries."""
    n, m, _ = matrices.shape
    flat = matrices.reshape(n, m * m)
    products = (flat.T @ flat / n).reshape(m, m, m, m)
    return np.asarray(products.transpose(0, 2, 1, 3).reshape(m * m, m * m))
