"""Many steps of a two-layer rectified network, or of its quadratic model, in one compiled call.

A step on a few examples takes less time than the dozen NumPy calls it is made of. Here products
of matrices are those of NumPy, and everything between them is one loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from traindyn._compiled import FAST

__all__ = ["descend"]


def descend(
    first: Any,
    second: Any,
    inputs: Any,
    gates: Any,
    labels: Any,
    sizes: Any,
    rows: Any,
    bound: float,
    track: bool,
) -> tuple[int, Any]:
    """Make steps down the gradient of half the sum of squares, in place.

    Parameters
    ----------
    first, second : ndarray, shapes (m, d) and (m,)
        Weights of the two layers, changed in place.
    inputs : ndarray, shape (n, d)
        All examples, divided by the root of d.
    gates : ndarray, shape (n, m), or None
        Those of the quadratic model; None: the network's own.
    labels : ndarray, shape (n,)
        Targets of the outputs, one per example.
    sizes : ndarray, shape (steps,)
        By what the gradient of each step is multiplied.
    rows : ndarray of int, shape (steps, b), or None
        The examples of each step; None: all.
    bound : float
        No step is made from where the mean square of its residuals is not below.
    track : bool
        Work out the critical step size of each step.

    Returns
    -------
    count : int
        Steps made.
    critical : ndarray, shape (count,)
        Empty unless tracked.
    """
    critical = np.empty(len(sizes) if track else 0)
    own = np.empty((0, 0)) if gates is None else np.ascontiguousarray(gates, dtype=np.float64)
    every = np.empty((len(sizes), 0), dtype=np.int64) if rows is None else rows
    count = _steps(
        first,
        second,
        np.ascontiguousarray(inputs),
        own,
        np.ascontiguousarray(labels, dtype=np.float64),
        np.asarray(sizes, dtype=np.float64),
        every,
        bound,
        critical,
    )
    return count, critical[:count]


@njit(cache=True, nogil=True, fastmath=FAST)
def _steps(
    first: Any,
    second: Any,
    inputs: Any,
    gates: Any,
    labels: Any,
    sizes: Any,
    rows: Any,
    bound: float,
    critical: Any,
) -> int:
    m, d = first.shape
    whole = rows.shape[1] == 0
    b = len(inputs) if whole else rows.shape[1]
    frozen = len(gates) > 0
    root = np.sqrt(m)
    x, y, scaled = np.empty((b, d)), np.empty(b), np.empty(b)
    z, slopes, weighted = np.empty((b, m)), np.empty((b, m)), np.empty((b, d))
    by_first, by_second = np.empty((m, d)), np.empty(m)
    for step in range(len(sizes)):
        for i in range(b):
            row = i if whole else rows[step, i]
            if not 0 <= row < len(inputs):
                raise ValueError("rows must be those of the examples, got one that is not")
            y[i] = labels[row]
            # Entry by entry: numba takes seconds to compile the assignment of a row.
            for c in range(d):
                x[i, c] = inputs[row, c]
            if frozen:
                for k in range(m):
                    slopes[i, k] = gates[row, k]
        np.dot(x, first.T, z)
        square = 0.0
        for i in range(b):
            output = 0.0
            for k in range(m):
                if not frozen:
                    slopes[i, k] = 1.0 if z[i, k] > 0 else 0.0
                z[i, k] *= slopes[i, k]
                output += z[i, k] * second[k]
            residual = output / root - y[i]
            square += residual * residual
            scaled[i] = residual / root
        if not square / b < bound:
            return step
        if critical.size > 0:
            top = np.linalg.eigvalsh(_kernel(x, z, slopes, second))[-1]
            critical[step] = b / top if top > 0 else np.inf
        by_second[:] = 0.0
        for i in range(b):
            for k in range(m):
                by_second[k] += scaled[i] * z[i, k]
            for c in range(d):
                weighted[i, c] = scaled[i] * x[i, c]
        np.dot(slopes.T, weighted, by_first)
        for k in range(m):
            factor = sizes[step] * second[k]
            for c in range(d):
                first[k, c] -= factor * by_first[k, c]
        for k in range(m):
            second[k] -= sizes[step] * by_second[k]
    return len(sizes)


@njit(cache=True, nogil=True, fastmath=FAST)
def _kernel(x: Any, hidden: Any, slopes: Any, second: Any) -> Any:
    """Tangent kernel of a batch."""
    kernel = np.dot(slopes * second, (slopes * second).T) * np.dot(x, x.T)
    return (kernel + np.dot(hidden, hidden.T)) / second.size
