"""The leading eigenvectors of a tangent kernel, and the batch size below which steps spike."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from traindyn import _validate
from traindyn._types import Array

__all__ = [
    "batch_threshold",
    "leading_eigenpairs",
]


def leading_eigenpairs(kernel: ArrayLike, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of a symmetric matrix, descending, and their vectors.

    Parameters
    ----------
    kernel : array_like, shape (n, n)
        Symmetric; only its lower triangle is read.
    count : int
        How many, from 1 to n.

    Returns
    -------
    values : ndarray, shape (count,)
    vectors : ndarray, shape (n, count)
        Orthonormal columns, in the order of the values.

    Raises
    ------
    ValueError
        If there are not so many, or an entry is not finite.

    Examples
    --------
    >>> from traindyn.catapults import leading_eigenpairs
    >>> leading_eigenpairs([[1.0, 0.0], [0.0, 5.0]], 1)[0].tolist()
    [5.0]
    """
    matrix = _validate.finite("kernel", kernel, shape=(None, None))
    n = len(matrix)
    if matrix.shape != (n, n):
        raise ValueError(f"kernel must be square, got shape {matrix.shape}")
    most = _validate.integer("count", count, least=1, most=n)
    values, vectors = eigh(matrix, subset_by_index=[n - most, n - 1], check_finite=False)
    return values[::-1], vectors[:, ::-1]


def batch_threshold(step_size: float, *, diagonal: float, off_diagonal: float) -> float:
    r"""Return the batch size below which typical batches are super-critical.

    The kernel of b nearly orthogonal inputs of one length has the largest eigenvalue
    :math:`D + (b - 1) o`, so the critical step size of the batch,
    :math:`b / (D + (b - 1) o)`, reaches the step size at

    .. math:: b_* = \frac{\eta (D - o)}{1 - \eta o} .

    Parameters
    ----------
    step_size : float
        Of the mean squared residual.
    diagonal, off_diagonal : float
        Entries D and o of the kernel.

    Returns
    -------
    float
        Infinite if all batches are super-critical, also that of all examples.

    Raises
    ------
    ValueError
        If an argument is not positive or the diagonal is not the larger entry.

    Examples
    --------
    A two-layer network at half the critical step size of all examples:

    >>> import numpy as np
    >>> from traindyn.catapults import batch_threshold
    >>> round(batch_threshold(np.pi, diagonal=1.0, off_diagonal=1 / (2 * np.pi)), 4)
    5.2832
    """
    eta = _validate.positive("step_size", step_size)
    d = _validate.positive("diagonal", diagonal)
    o = _validate.positive("off_diagonal", off_diagonal)
    if d <= o:
        raise ValueError(f"diagonal must exceed off_diagonal, got {d:g} and {o:g}")
    return float(np.inf) if eta * o >= 1 else eta * (d - o) / (1 - eta * o)
