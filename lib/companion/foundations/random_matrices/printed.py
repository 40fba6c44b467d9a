"""Formulas of MDL chapter 6 as printed, where they differ from the correct ones.

Nothing here is true. These are the wrong variants against which :mod:`traindyn.laws` is tested:
a check that confirms ours must reject these. Where only the aspect ratio is inverted, the printed
law is ``MarchenkoPastur(1 / ratio)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from companion.foundations.random_matrices.resolvent import imaginary_height
from traindyn import _validate
from traindyn._types import Array

__all__ = [
    "printed_azuma_tail",
    "printed_leave_one_out_bound",
    "printed_off_diagonal_variance",
    "printed_rank_one_solution",
]


def printed_rank_one_solution(matrix: ArrayLike, vector: ArrayLike, step: float) -> Any:
    r"""Vector :math:`(A + t v v^T)^{-1} v` of MDL Theorem 6.15, with A for its inverse.

    .. math:: \frac{A^{-1} v}{1 + t \langle v, A v \rangle}
    """
    v = _validate.finite_complex("vector", vector, shape=(None,))
    a = _validate.finite_complex("matrix", matrix, shape=(v.size, v.size))
    t = _validate.number("step", step)
    try:
        solved = np.linalg.solve(a, v)
    except np.linalg.LinAlgError as error:
        raise ValueError("matrix must be invertible, got a singular one") from error
    return solved / (1 + t * (v @ a @ v))


def printed_azuma_tail(deviation: ArrayLike, increments: ArrayLike) -> Array:
    r"""Tail bound :math:`2 \exp(-2 t^2 / 2 \sum_k c_k^2)` of MDL Theorem 6.20, one 2 too many."""
    bounds = _validate.finite("increments", increments, shape=(None,))
    if bounds.size == 0 or np.any(bounds <= 0):
        raise ValueError("increments must be positive, and there must be at least one")
    t = _validate.finite("deviation", deviation)
    bound: Array = np.minimum(1.0, 2 * np.exp(-2 * t**2 / (2 * np.sum(bounds**2))))
    return bound


def printed_leave_one_out_bound(z: complex, samples: int) -> float:
    r"""Bound :math:`1 / (v M)` of the proof of MDL Lemma 6.16: samples for dimensions."""
    return 1 / (_validate.integer("samples", samples, least=1) * imaginary_height(z))


def printed_off_diagonal_variance(matrix: ArrayLike) -> float:
    r"""Second moment :math:`\sum_{i \ne j} A_{ij}^2` of the proof of MDL Lemma 6.18.

    Right for matrices with :math:`A_{ij} A_{ji} = 0` off the diagonal, half of it for symmetric
    ones.
    """
    a = _validate.finite("matrix", matrix, shape=(None, None))
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"matrix must be square, got shape {a.shape}")
    return float(np.sum(a**2) - np.sum(np.diag(a) ** 2))
