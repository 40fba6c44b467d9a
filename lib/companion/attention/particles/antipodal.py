r"""Two antipodal clusters under one head with any matrices: equilibria, and when they are stable.

Let u be a unit eigenvector of V for a real eigenvalue :math:`\lambda`, and let :math:`n_\pm` tokens
sit at :math:`\pm u`. Then nothing moves. With :math:`q = \langle Q u, K u \rangle` a token at
:math:`\pm u` pays the attention :math:`p_\pm = n_\pm e^{\beta q} / (n_\pm e^{\beta q} + n_\mp
e^{-\beta q})` to its own cluster. To first order changes of attention move nothing, since they act
along u, so that small displacements :math:`\delta_i \perp u` obey

.. math:: \dot\delta_i = P_u V \sum_j A_{ij} \delta_j - \lambda (2 p_i - 1) \delta_i .

Differences inside a cluster decay at the rates :math:`\lambda (2 p_\pm - 1)`, and for each other
eigenvalue :math:`\mu` of V the means of the clusters grow at the eigenvalues of

.. math:: \mu \begin{pmatrix} p_+ & 1 - p_+ \\ 1 - p_- & p_- \end{pmatrix}
          - \lambda \begin{pmatrix} 2 p_+ - 1 & \\ & 2 p_- - 1 \end{pmatrix} .

For clusters of one size and :math:`\lambda > 0` all rates are negative if and only if
:math:`\operatorname{Re} \mu < \lambda \tanh \beta q` for all :math:`\mu`, and :math:`q > 0`. Then
the clusters attract all starts near them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from companion.attention.particles.attention import Attention, Head
from traindyn import _validate
from traindyn._types import Array

__all__ = ["antipodal_rate", "leading_direction"]

_REAL = 1e-12
"""Imaginary parts below this, relative to the modulus, are rounding."""


def leading_direction(value: ArrayLike) -> Array | None:
    """Return the unit eigenvector of the eigenvalue with the largest real part.

    Parameters
    ----------
    value : array_like, shape (d, d)
        V.

    Returns
    -------
    ndarray, shape (d,), or None
        None if this eigenvalue is not real and positive.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.attention.particles.antipodal import leading_direction
    >>> abs(leading_direction(np.diag([1.0, 2.0])))
    array([0., 1.])
    >>> leading_direction([[0.0, 1.0], [-1.0, 0.0]]) is None
    True
    """
    matrix = _square(value)
    values, vectors = np.linalg.eig(matrix)
    first = int(np.argmax(values.real))
    if abs(values[first].imag) > _REAL * abs(values[first]) or values[first].real <= 0:
        return None
    return np.asarray(vectors[:, first].real / np.linalg.norm(vectors[:, first].real))


def antipodal_rate(
    head: Head, direction: ArrayLike, sizes: tuple[int, int], *, inverse_temperature: float
) -> float:
    """Return the greatest rate at which small displacements of two antipodal clusters grow.

    Parameters
    ----------
    head : Head
        With matrices of its own.
    direction : array_like, shape (d,)
        Unit eigenvector u of its value matrix.
    sizes : tuple of two int
        Tokens at u and at -u, at least one each.
    inverse_temperature : float
        Non-negative.

    Returns
    -------
    float
        If it is negative, all starts near the clusters end in two antipodal clusters.

    Raises
    ------
    ValueError
        If an argument is out of range or `direction` is no unit eigenvector.

    Examples
    --------
    The eigenvalues are 2 and 1, and half of the tokens sit at each end of the first axis.

    >>> import numpy as np
    >>> from companion.attention.particles.antipodal import antipodal_rate
    >>> from companion.attention.particles.attention import Head
    >>> head = Head(np.eye(2), np.eye(2), np.diag([2.0, 1.0]))
    >>> rate = antipodal_rate(head, [1.0, 0.0], (3, 3), inverse_temperature=1.0)
    >>> bool(np.isclose(rate, 1 - 2 * np.tanh(1.0)))
    True
    """
    beta = Attention(inverse_temperature, [head]).inverse_temperature
    matrix = _square(head.value)
    d = len(matrix)
    u = _validate.finite("direction", direction, shape=(d,))
    eigenvalue = float(u @ matrix @ u)
    off = float(np.linalg.norm(matrix @ u - eigenvalue * u))
    if abs(u @ u - 1) > 1e-8 or off > 1e-8 * np.linalg.norm(matrix):
        raise ValueError(
            f"direction must be a unit eigenvector of head.value, got one of norm "
            f"{np.linalg.norm(u):.6g} that the matrix moves by {off:.3g}"
        )
    counts = _validate.integers("sizes", sizes, least=1)
    if counts.shape != (2,):
        raise ValueError(f"sizes must be two numbers of tokens, got {sizes!r}")
    query, key = (np.eye(d) if each is None else np.asarray(each) for each in head[:2])
    score = 2 * beta * float((query @ u) @ (key @ u))
    own = expit(score + np.log(counts / counts[::-1]))
    balance = np.diag(eigenvalue * (2 * own - 1))
    mixing = np.array([[own[0], 1 - own[0]], [1 - own[1], own[1]]])
    # P_u V on the complement of u, in orthonormal coordinates.
    basis = np.linalg.qr(u[:, None], mode="complete").Q[:, 1:]
    others = np.linalg.eigvals(basis.T @ matrix @ basis)
    rates = [np.linalg.eigvals(mu * mixing - balance).real.max() for mu in others]
    inside = [-balance[k, k] for k in (0, 1) if counts[k] > 1]
    return float(max(rates + inside))


def _square(value: ArrayLike | None) -> Array:
    if value is None:
        raise ValueError("head.value must be a matrix, got None")
    matrix = _validate.finite("value", value, shape=(None, None))
    if matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"value must have shape (d, d) with d at least 2, got {matrix.shape}")
    return matrix
