r"""Resolvents and Stieltjes transforms of given matrices, and what a proof does with them.

The conventions are those of :mod:`traindyn.laws`: :math:`R_A(z) = (A - z)^{-1}` and
:math:`s(z) = \frac1d \operatorname{tr} R_A(z) = \int (x - z)^{-1} d\mu(x)`, with an imaginary
part of the sign of that of z (MDL Definitions 6.7 and 6.11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array

__all__ = [
    "azuma_tail",
    "concentration_tail",
    "empirical_stieltjes",
    "leave_one_out_bound",
    "matrix_function",
    "quadratic_form_variance",
    "rank_one_inverse",
    "smoothed_density",
]


def empirical_stieltjes(eigenvalues: ArrayLike, z: ArrayLike) -> Any:
    r"""Stieltjes transform of a spectral measure, :math:`\frac1d \sum_i (\lambda_i - z)^{-1}`.

    Parameters
    ----------
    eigenvalues : array_like, shape (..., d)
        Real; those of one matrix along the last axis.
    z : array_like, shape (k,) or scalar
        Not an eigenvalue.

    Returns
    -------
    complex or float ndarray, shape (...,) or (..., k)

    Examples
    --------
    >>> from companion.foundations.random_matrices.resolvent import empirical_stieltjes
    >>> complex(empirical_stieltjes([1.0, 3.0], 2.0 + 1.0j))
    0.5j
    """
    values, points = _validate.finite("eigenvalues", eigenvalues), _validate.finite_complex("z", z)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"eigenvalues must not be empty, got shape {values.shape}")
    if points.ndim > 1 or points.size == 0:
        raise ValueError(f"z must be a number or a list of numbers, got shape {points.shape}")
    if np.any(np.isin(points, values)):
        raise ValueError("z must not be an eigenvalue")
    if points.ndim == 0:
        return np.mean(1 / (values - points), axis=-1)
    return np.stack([np.mean(1 / (values - point), axis=-1) for point in points], axis=-1)


def smoothed_density(transform: Callable[[Any], Any], x: ArrayLike, height: float) -> Array:
    r"""Density of the law convolved with Cauchy's, from its Stieltjes transform.

    .. math:: \frac1\pi \operatorname{Im} s(x + i \epsilon) =
              \int \frac{\epsilon}{\pi ((x - y)^2 + \epsilon^2)}\, d\mu(y) ,

    which tends to the density of :math:`\mu` with :math:`\epsilon` (MDL Theorem 6.13).

    Parameters
    ----------
    transform : callable
        ``s(z)`` on arrays of complex numbers.
    x : array_like
        Points of the real axis.
    height : float
        :math:`\epsilon > 0`.

    Returns
    -------
    ndarray
        Of the shape of `x`.

    Examples
    --------
    >>> from companion.foundations.random_matrices.resolvent import smoothed_density
    >>> from traindyn.laws import MarchenkoPastur
    >>> law = MarchenkoPastur(0.25)
    >>> print(abs(smoothed_density(law.stieltjes, 1.0, 1e-9) - law.density(1.0)) < 1e-8)
    True
    """
    points, above = _validate.finite("x", x), _validate.positive("height", height)
    _validate.function("transform", transform)
    values: Array = np.asarray(transform(points + 1j * above)).imag / np.pi
    return values


def matrix_function(
    function: Callable[[Any], Any],
    matrix: ArrayLike,
    *,
    centre: complex,
    radius: float,
    nodes: int = 64,
) -> NDArray[np.complex128]:
    r"""Cauchy's formula :math:`f(A) = \frac1{2\pi i} \oint f(z) (z - A)^{-1} dz` on a circle.

    MDL Theorem 6.9 with the right sign, by the trapezoidal rule, whose error falls
    geometrically with the number of nodes.

    Parameters
    ----------
    function : callable
        Analytic on the disc, vectorised.
    matrix : array_like, shape (d, d)
        A, real or complex; no eigenvalue on the circle.
    centre, radius : complex, float
        A circle around all eigenvalues, or around some: the result is then the sum over those.
    nodes : int
        Equally spaced points of the circle, at least 2.

    Returns
    -------
    ndarray of complex, shape (d, d)

    Examples
    --------
    >>> import numpy as np
    >>> from companion.foundations.random_matrices.resolvent import matrix_function
    >>> root = matrix_function(np.sqrt, [[2.0, 1.0], [1.0, 2.0]], centre=2, radius=1.5)
    >>> np.round((root @ root).real, 8)
    array([[2., 1.],
           [1., 2.]])
    """
    given = _validate.finite_complex("matrix", matrix)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"matrix must be square, got shape {given.shape}")
    _validate.function("function", function)
    middle = _validate.finite_complex("centre", centre, shape=())
    size, count = _validate.positive("radius", radius), _validate.integer("nodes", nodes, least=2)
    unit = np.exp(2j * np.pi * (np.arange(count) + 0.5) / count)
    points, eye = middle + size * unit, np.eye(given.shape[0])
    resolvents = np.linalg.inv(points[:, None, None] * eye - given)
    result: NDArray[np.complex128] = np.tensordot(
        function(points) * size * unit / count, resolvents, axes=1
    )
    return result


def rank_one_inverse(inverse: ArrayLike, vector: ArrayLike, step: float) -> Any:
    r"""Inverse of :math:`A + t v v^T` from that of A (Sherman and Morrison; MDL Theorem 6.15).

    .. math:: (A + t v v^T)^{-1} = A^{-1} - \frac{t\, A^{-1} v v^T A^{-1}}{1 + t v^T A^{-1} v}

    Parameters
    ----------
    inverse : array_like, shape (d, d)
        :math:`A^{-1}`, real or complex.
    vector : array_like, shape (d,)
        v, real or complex; transposed without conjugation.
    step : float
        t; minus 1/M takes one of M samples out of a sample covariance.

    Returns
    -------
    ndarray, shape (d, d)

    Raises
    ------
    ValueError
        If the updated matrix is singular.
    """
    known = _validate.finite_complex("inverse", inverse)
    direction, t = _validate.finite_complex("vector", vector), _validate.number("step", step)
    if known.ndim != 2 or known.shape != (direction.size, direction.size) or direction.ndim != 1:
        raise ValueError(
            f"inverse and vector must have shapes (d, d) and (d,), got {known.shape} and "
            f"{direction.shape}"
        )
    column, row = known @ direction, direction @ known
    scale = 1 + t * (direction @ column)
    if scale == 0:
        raise ValueError("step must leave the matrix invertible, got 1 + t v^T A^-1 v = 0")
    return known - (t / scale) * np.outer(column, row)


def leave_one_out_bound(z: complex, dimension: int) -> float:
    r"""Largest change of the Stieltjes transform by a rank-one update, :math:`1/(d |Im z|)`.

    In the proof of MDL Lemma 6.16; sharp, in any dimension.

    Parameters
    ----------
    z : complex
        Not real.
    dimension : int
        d, of the matrix. The number of samples does not enter.
    """
    return 1 / (_validate.integer("dimension", dimension, least=1) * imaginary_height(z))


def azuma_tail(deviation: ArrayLike, increments: ArrayLike) -> Array:
    r"""Azuma's bound on :math:`P(|\sum_k D_k| \ge t)` for martingales (MDL Theorem 6.20).

    .. math:: 2 \exp\Big(-\frac{t^2}{2 \sum_k c_k^2}\Big), \qquad |D_k| \le c_k .

    Parameters
    ----------
    deviation : array_like
        :math:`t \ge 0`.
    increments : array_like, shape (n,)
        Bounds :math:`c_k > 0`.

    Returns
    -------
    ndarray
        Of the shape of `deviation`; at most one.
    """
    bounds = _validate.finite("increments", increments, shape=(None,))
    if bounds.size == 0 or np.any(bounds <= 0):
        raise ValueError("increments must be positive, and there must be at least one")
    t = _validate.finite("deviation", deviation)
    if np.any(t < 0):
        raise ValueError(f"deviation must be non-negative, got {t.min():g}")
    bound: Array = np.minimum(1.0, 2 * np.exp(-(t**2) / (2 * np.sum(bounds**2))))
    return bound


def concentration_tail(deviation: ArrayLike, z: complex, dimension: int, samples: int) -> Array:
    r"""Return a bound on :math:`P(|s_d(z) - E s_d(z)| \ge t)` (MDL Lemma 6.16, corrected).

    .. math:: 4 \exp\Big(-\frac{d^2 t^2 (Im z)^2}{16\, n}\Big)

    Real and imaginary part are martingales of n increments of size at most
    :math:`2/(d |Im z|)` each (:func:`leave_one_out_bound`, :func:`azuma_tail`), and one of
    them deviates by :math:`t/\sqrt2`. Any law of the samples will do, if they are independent.

    Parameters
    ----------
    deviation : array_like
        :math:`t \ge 0`.
    z : complex
        Not real.
    dimension, samples : int
        d and n.

    Returns
    -------
    ndarray
        Of the shape of `deviation`; at most one.
    """
    count = _validate.integer("samples", samples, least=1)
    increments = np.full(count, 2 * leave_one_out_bound(z, dimension))
    t = _validate.finite("deviation", deviation) / np.sqrt(2)
    return np.minimum(1.0, 2 * azuma_tail(t, increments))


def quadratic_form_variance(matrix: ArrayLike, kurtosis: float) -> float:
    r"""Variance of :math:`x^T A x` for independent entries of mean 0 and variance 1.

    .. math:: \sum_{i \ne j} (A_{ij}^2 + A_{ij} A_{ji}) + (\kappa - 1) \sum_i A_{ii}^2

    (the quantity that MDL Lemma 6.18 bounds).

    Parameters
    ----------
    matrix : array_like, shape (d, d)
        A, symmetric or not.
    kurtosis : float
        :math:`\kappa = E x_i^4 \ge 1`.

    Examples
    --------
    The norm of a Gaussian vector: chi squared.

    >>> import numpy as np
    >>> from companion.foundations.random_matrices.resolvent import quadratic_form_variance
    >>> quadratic_form_variance(np.eye(5), 3.0)
    10.0
    """
    given = _validate.finite("matrix", matrix, shape=(None, None))
    if given.shape[0] != given.shape[1]:
        raise ValueError(f"matrix must be square, got shape {given.shape}")
    fourth = _validate.number("kurtosis", kurtosis)
    if fourth < 1:
        raise ValueError(f"kurtosis must be at least 1, got {kurtosis!r}")
    diagonal = np.diag(given)
    off = given - np.diag(diagonal)
    return float(np.sum(off**2) + np.sum(off * off.T) + (fourth - 1) * np.sum(diagonal**2))


def imaginary_height(z: complex) -> float:
    """Return ``|Im z|``, which must not vanish."""
    value = abs(_validate.finite_complex("z", z, shape=()).imag)
    if value == 0:
        raise ValueError(f"z must have a non-zero imaginary part, got {z!r}")
    return float(value)
