"""Many steps of a two-layer rectified network, or of its quadratic model, in one compiled call.

A step on a few examples takes less time than the dozen NumPy calls it is made of. Here products
of matrices are those of NumPy, and everything between them is one loop.

Gradients of the first layer are combinations of the inputs. With few examples for the entries of an
input (all of them in each step: fewer than about twice as many) many steps are cheaper in these
combinations: the preactivations of all examples are followed by the inner products of the inputs,
and the first layer is put together at the end.
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
    x = np.ascontiguousarray(inputs)
    n, d = x.shape
    b = every.shape[1] or n
    # For each neuron: products with n rows before and after, and in each step one of n by b and two
    # passes over n entries; or two products of b by d and two passes over d.
    few = 2 * n * d + len(sizes) * n * (b + 2) < 2 * len(sizes) * d * (b + 1)
    count = _steps(
        first,
        second,
        x,
        x @ x.T if few else np.empty((0, 0)),
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
    gram: Any,
    gates: Any,
    labels: Any,
    sizes: Any,
    rows: Any,
    bound: float,
    critical: Any,
) -> int:
    (m, d), n = first.shape, len(inputs)
    whole = rows.shape[1] == 0
    b = n if whole else rows.shape[1]
    frozen, few = len(gates) > 0, len(gram) > 0
    root = np.sqrt(m)
    y, scaled, chosen = np.empty(b), np.empty(b), np.empty(b, dtype=np.int64)
    z, slopes, by_second = np.empty((b, m)), np.empty((b, m)), np.empty(m)
    if few:
        # The first layer is what it was at the start, less combinations of the inputs.
        combined, all_z, change = np.zeros((n, m)), np.dot(inputs, first.T), np.empty((n, m))
        columns = np.empty((n, b))
    else:
        x, weighted, by_first = np.empty((b, d)), np.empty((b, d)), np.empty((m, d))
    count = len(sizes)
    for step in range(len(sizes)):
        for i in range(b):
            row = i if whole else rows[step, i]
            if not 0 <= row < n:
                raise ValueError("rows must be those of the examples, got one that is not")
            chosen[i] = row
            y[i] = labels[row]
            # Entry by entry: numba takes seconds to compile the assignment of a row.
            if few:
                for k in range(m):
                    z[i, k] = all_z[row, k]
                for j in range(n):
                    columns[j, i] = gram[j, row]
            else:
                for c in range(d):
                    x[i, c] = inputs[row, c]
            if frozen:
                for k in range(m):
                    slopes[i, k] = gates[row, k]
        if not few:
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
            count = step
            break
        if critical.size > 0:
            inner = columns[chosen] if few else np.dot(x, x.T)
            top = np.linalg.eigvalsh(_kernel(inner, z, slopes, second))[-1]
            critical[step] = b / top if top > 0 else np.inf
        by_second[:] = 0.0
        for i in range(b):
            for k in range(m):
                by_second[k] += scaled[i] * z[i, k]
        if few:
            for i in range(b):
                for k in range(m):
                    slopes[i, k] *= sizes[step] * scaled[i] * second[k]
                    combined[chosen[i], k] += slopes[i, k]
            np.dot(columns, slopes, change)
            for j in range(n):
                for k in range(m):
                    all_z[j, k] -= change[j, k]
        else:
            for i in range(b):
                for c in range(d):
                    weighted[i, c] = scaled[i] * x[i, c]
            np.dot(slopes.T, weighted, by_first)
            for k in range(m):
                factor = sizes[step] * second[k]
                for c in range(d):
                    first[k, c] -= factor * by_first[k, c]
        for k in range(m):
            second[k] -= sizes[step] * by_second[k]
    if few:
        by_first = np.dot(combined.T, inputs)
        for k in range(m):
            for c in range(d):
                first[k, c] -= by_first[k, c]
    return count


@njit(cache=True, nogil=True, fastmath=FAST)
def _kernel(inner: Any, hidden: Any, slopes: Any, second: Any) -> Any:
    """Tangent kernel of a batch with these inner products of inputs."""
    kernel = np.dot(slopes * second, (slopes * second).T) * inner
    return (kernel + np.dot(hidden, hidden.T)) / second.size
