r"""The determinant whose zeros are the outliers of the Hessian of a trained neuron.

Let the columns of B be the p directions that training has used, :math:`\Theta_*` and
:math:`\theta(0), \dots, \theta(t)`. A real z that is no eigenvalue of H on their orthogonal
complement is an eigenvalue of H if and only if it is a zero of :math:`\det M(z)`, where M(z) is the
Schur complement of :math:`H - z` on the span of B, in the coordinates of B. With the rows r of
:math:`X B` and the q forces F of a sample, given the trajectory and as :math:`d \to \infty`,

.. math:: M(z) \to -z\, C + E\Big[\frac{\delta G}{\delta + \alpha G}\, r r^T\Big]
          + E[T r F^T] \Big(E\Big[\frac{\alpha}{\delta + \alpha G}\, F F^T\Big]\Big)^{-1}
          E[T F r^T], \qquad T = \frac{\alpha G}{\delta + \alpha G},

with the products :math:`C = B^T B` and the Stieltjes transform :math:`\alpha(z)` of the bulk. The
last term is there because :math:`X^T F` lies in the span of B, so that the inputs off this span are
orthogonal to the forces (MW, Finite-rank perturbation, where the matrix is not written out; derived
here). The limit holds beyond the ends of the bulk; in a gap of it, off the span, there may be
eigenvalues of their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.optimize import brentq

from traindyn import _validate
from traindyn._types import Array
from traindyn.laws import WeightedMarchenkoPastur

__all__ = ["ReducedLimit", "reduced"]

_BESIDE = 1e-9
"""Distance to the edge, relative to the width of the spectrum, at which zeros begin."""


def reduced(hessian: ArrayLike, directions: ArrayLike, z: float) -> Array:
    """Return M(z), the Schur complement of ``hessian - z`` on the span of a few directions.

    Parameters
    ----------
    hessian : array_like, shape (d, d)
        Symmetric.
    directions : array_like, shape (d, p)
        Columns of B, linearly independent.
    z : float
        No eigenvalue.

    Returns
    -------
    ndarray, shape (p, p)
        ``C (B^T (hessian - z)^-1 B)^-1 C`` with ``C = B^T B``.

    Raises
    ------
    ValueError
        If shapes do not fit, z is an eigenvalue, or the directions are dependent.

    Examples
    --------
    On all coordinates it is the matrix itself, less z.

    >>> import numpy as np
    >>> from companion.phase_transitions.hessian.determinant import reduced
    >>> reduced(np.diag([1.0, 2.0]), np.eye(2), 3.0).round(12)
    array([[-2.,  0.],
           [ 0., -1.]])
    """
    basis = _validate.finite("directions", directions, shape=(None, None))
    d = len(basis)
    matrix = _validate.finite("hessian", hessian, shape=(d, d))
    level = _validate.number("z", z)
    gram = basis.T @ basis
    try:
        inside = basis.T @ np.linalg.solve(matrix - level * np.eye(d), basis)
        result = gram @ np.linalg.solve(inside, gram)
    except np.linalg.LinAlgError:
        raise ValueError(
            "z must be no eigenvalue and directions linearly independent, got a singular matrix "
            f"at z = {level:g} with {basis.shape[1]} directions of rank "
            f"{np.linalg.matrix_rank(basis)}"
        ) from None
    return np.asarray((result + result.T) / 2)


class ReducedLimit:
    r"""The limit of M(z) beyond the ends of the bulk, and its outermost zeros.

    Parameters
    ----------
    weights : array_like, shape (N,)
        Draws of G; those of one actual network give the limit given its trajectory.
    products : array_like, shape (N, p)
        Of the same samples, the rows r of X B: coordinates of the target and preactivations.
    forces : array_like, shape (N, q)
        Forces of the steps before, any multiples, linearly independent; q may be 0.
    gram : array_like, shape (p, p)
        C, the products of the directions; positive definite.
    sample_ratio : float
        Samples per dimension; for accuracy at finite size, ``n / (d - p)``.

    Raises
    ------
    ValueError
        If shapes do not fit or an argument is out of range.

    Examples
    --------
    Weights that depend on one coordinate, as yet without training. The zero is the outlier of
    :class:`~traindyn.laws.hard_subspace.HardSubspace`.

    >>> import numpy as np
    >>> from companion.phase_transitions.hessian.determinant import ReducedLimit
    >>> from traindyn.laws import HardSubspace
    >>> s = np.random.default_rng(0).standard_normal(4000)
    >>> limit = ReducedLimit(-np.tanh(s**2 - 1), s[:, None], np.empty((4000, 0)), [[1.0]], 8.0)
    >>> value = HardSubspace(-np.tanh(s**2 - 1), s, 8.0).outliers.values[0]
    >>> bool(np.isclose(limit.outermost("left"), value))
    True
    """

    def __init__(
        self,
        weights: ArrayLike,
        products: ArrayLike,
        forces: ArrayLike,
        gram: ArrayLike,
        sample_ratio: float,
    ) -> None:
        self._delta = _validate.positive("sample_ratio", sample_ratio)
        self.law = WeightedMarchenkoPastur(weights, 1 / self._delta)
        self._g = _validate.frozen(_validate.finite("weights", weights, shape=(None,)))
        count = self._g.size
        self._products = _validate.frozen(
            _validate.finite("products", products, shape=(count, None))
        )
        self._forces = _validate.frozen(_validate.finite("forces", forces, shape=(count, None)))
        p, q = self._products.shape[1], self._forces.shape[1]
        self._gram = _validate.frozen(_validate.finite("gram", gram, shape=(p, p)))
        least = float(np.linalg.eigvalsh(self._gram)[0])
        if not least > 0:
            raise ValueError(f"gram must be positive definite, got least eigenvalue {least:.3g}")
        if np.linalg.matrix_rank(self._forces) < q:
            raise ValueError(f"forces must be linearly independent, got {q} of a smaller rank")

    def __call__(self, z: float) -> Array:
        """Return the limit of M(z), shape (p, p), at a real z beyond the ends of the bulk."""
        level = _validate.number("z", z)
        alpha = float(self.law.stieltjes(level))
        share = 1 / (self._delta + alpha * self._g) / self._g.size
        r, f = self._products, self._forces
        fresh = self._delta * (r.T * (share * self._g)) @ r - level * self._gram
        crossed = alpha * (f.T * (share * self._g)) @ r
        return np.asarray(fresh + crossed.T @ np.linalg.solve(alpha * (f.T * share) @ f, crossed))

    def eigenvalues(self, z: float, block: slice = slice(None)) -> Array:
        """Return those of M(z), or of a block of it, relative to C, increasing.

        They are the eigenvalues of the Schur complement in an orthonormal basis of the span.

        Parameters
        ----------
        z : float
            Beyond the ends of the bulk.
        block : slice, default all
            Which of the directions.
        """
        return np.asarray(eigh(self(z)[block, block], self._gram[block, block], eigvals_only=True))

    def outermost(self, side: str) -> float:
        """Return the zero of the determinant farthest from the bulk, or its edge without one.

        Parameters
        ----------
        side : {"left", "right"}
            Of the bulk. M decreases with z, so that the eigenvalue which vanishes farthest out is
            the least one on the left and the largest one on the right.
        """
        sign = 1 if _validate.choice("side", side, ("left", "right")) == "right" else -1
        edges = self.law.edges
        edge, width = edges[-1 if sign == 1 else 0], edges[-1] - edges[0]

        def last(distance: float) -> float:
            values = sign * self.eigenvalues(edge + sign * distance)
            return float(values.max())

        near = far = _BESIDE * width
        if last(near) <= 0:
            return float(edge)
        while last(far) > 0:
            near, far = far, far + width
        return float(edge + sign * brentq(last, near, far, xtol=1e-12))
