"""One compiled pass over the inputs: preactivations, forces, gradient.

The time of a full-batch step is that of reading the inputs. Here each row is read from memory
once: eight rows at a time are multiplied by the neurons, their forces computed, and added to the
gradient while they are still in the first-level cache. The library's own activations and losses
are known to the loop by a number, so that it is compiled once and kept on disk; others take the
route through NumPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from traindyn._compiled import FAST
from traindyn.problems.multi_index import MultiIndex

__all__ = ["Codes", "codes", "descend", "gradient", "split"]

Codes = tuple[int, float, int, float]
"""Activation and its parameter, loss and its parameter."""

_ACTIVATIONS = {"gelu": 0, "quadratic": 1, "tanh": 2, "identity": 3, "relu": 4, "softplus": 5}
_LOSSES = {"squared": 0, "pseudo_huber": 1, "log_cosh": 2, "cauchy": 3, "logistic": 4}
_MOST_NEURONS = 8
"""Beyond, a matrix product makes better use of the processor than rows do."""
_FLUSH = 256
"""Rows summed in the precision of the inputs before they are added in double."""


def codes(problem: MultiIndex) -> Codes | None:
    """Return the numbers of the problem's functions; None if the loop does not have them."""
    activation = _ACTIVATIONS.get(problem.activation.kind)
    loss = _LOSSES.get(problem.loss.kind)
    if activation is None or loss is None or problem.width > _MOST_NEURONS:
        return None
    return activation, problem.activation.parameter, loss, problem.loss.parameter


@njit(cache=True, inline="always")
def _activation(code: int, parameter: float, v: float) -> tuple[float, float]:
    """Value and slope."""
    if code == 0:
        share = 0.5 * math.erfc(-v * 0.7071067811865476)
        return v * share, share + v * math.exp(-0.5 * v * v) * 0.3989422804014327
    if code == 1:
        return v * v, 2 * v
    if code == 2:
        value = math.tanh(v)
        return value, 1 - value * value
    if code == 3:
        return v, 1.0
    if code == 4:
        return (v, 1.0) if v > 0 else (0.0, 0.0)
    t = parameter * v
    small = math.exp(-abs(t))
    slope = 1 / (1 + small) if t > 0 else small / (1 + small)
    return (max(t, 0.0) + math.log1p(small)) / parameter, slope


@njit(cache=True, inline="always")
def _loss(code: int, parameter: float, y: float, f: float) -> tuple[float, float]:
    """Value and slope in the prediction."""
    r = f - y
    if code == 0:
        return 0.5 * r * r, r
    if code == 1:
        scaled = r / parameter
        root = math.sqrt(1 + scaled * scaled)
        return r * r / (1 + root), r / root
    if code == 2:
        size = abs(r)
        return size + math.log1p(math.exp(-2 * size)) - 0.6931471805599453, math.tanh(r)
    if code == 3:
        return 0.5 * math.log1p(r * r), r / (1 + r * r)
    small = math.exp(-abs(f))
    share = 1 / (1 + small) if f > 0 else small / (1 + small)
    return max(f, 0.0) + math.log1p(small) - y * f, share - y


@njit(cache=True, nogil=True, fastmath=FAST)
def _pass(
    x: Any, y: Any, theta: Any, biases: Any, scaled: Any, known: Codes, out: Any, descend: bool
) -> float:
    """Add n times the gradient to `out` (m, d) and return the summed loss.

    The rows of x are a multiple of eight, zeros where there is no label.
    """
    n, d = x.shape
    m = theta.shape[0]
    partial = np.zeros_like(theta)
    force = np.zeros((8, m), theta.dtype)
    slopes = np.empty(m)
    total = 0.0
    # A zero of the type of the inputs: sums in double would be half as fast.
    zero = partial[0, 0]
    for i in range(0, n, 8):
        # Constant offsets from one row tell the compiler that rows and sums do not overlap.
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        x4, x5, x6, x7 = x[i + 4], x[i + 5], x[i + 6], x[i + 7]
        for j in range(m):
            # force = x theta^T, row by row.
            row = theta[j]
            u0, u1, u2, u3 = zero, zero, zero, zero
            u4, u5, u6, u7 = zero, zero, zero, zero
            for c in range(d):
                t = row[c]
                u0 += x0[c] * t
                u1 += x1[c] * t
                u2 += x2[c] * t
                u3 += x3[c] * t
                u4 += x4[c] * t
                u5 += x5[c] * t
                u6 += x6[c] * t
                u7 += x7[c] * t
            force[0, j], force[1, j], force[2, j], force[3, j] = u0, u1, u2, u3
            force[4, j], force[5, j], force[6, j], force[7, j] = u4, u5, u6, u7
        for k in range(min(8, y.size - i)):
            prediction = 0.0
            for j in range(m):
                value, slope = _activation(known[0], known[1], float(force[k, j]) + biases[j])
                prediction += scaled[j] * value
                slopes[j] = scaled[j] * slope
            value, slope = _loss(known[2], known[3], float(y[i + k]), prediction)
            total += value
            for j in range(m):
                force[k, j] = slope * slopes[j]
        if not descend:
            continue
        for j in range(m):
            # partial += force^T x.
            f0, f1, f2, f3 = force[0, j], force[1, j], force[2, j], force[3, j]
            f4, f5, f6, f7 = force[4, j], force[5, j], force[6, j], force[7, j]
            row = partial[j]
            for c in range(d):
                low = f0 * x0[c] + f1 * x1[c] + f2 * x2[c] + f3 * x3[c]
                row[c] += low + f4 * x4[c] + f5 * x5[c] + f6 * x6[c] + f7 * x7[c]
        if (i + 8) % _FLUSH == 0 or i + 8 >= n:
            for j in range(m):
                for c in range(d):
                    out[j, c] += partial[j, c]
                    partial[j, c] = zero
    return total


@njit(cache=True, nogil=True)
def _steps(
    x: Any,
    tail: Any,
    y: Any,
    rows: int,
    theta: Any,
    basis: Any,
    step: float,
    level: float,
    count: int,
    biases: Any,
    scaled: Any,
    known: Codes,
) -> int:
    """Make up to `count` steps from theta (d, m), in place, and return how many.

    The sums are those of one call of :func:`_pass` per block, in the same order.
    """
    n, (d, m) = len(x), theta.shape
    narrow = np.empty((m, d), x.dtype)
    sums, part = np.empty((m, d)), np.empty((m, d))
    always = count > 0  # a literal would have the pass compiled a second time
    for made in range(count):
        if made > 0:
            for j in range(m):
                known_part, whole = 0.0, 0.0
                for c in range(d):
                    whole += theta[c, j] ** 2
                    if c < len(basis):
                        known_part += theta[c, j] ** 2
                if known_part > level * level * whole:
                    return made
        for j in range(m):
            for c in range(d):
                narrow[j, c] = theta[c, j]
        sums[:] = 0
        for low in range(0, y.size, rows):
            high = min(low + rows, y.size)
            part[:] = 0
            if low < n:
                end = min(high, n)
                _pass(x[low:end], y[low:end], narrow, biases, scaled, known, part, always)
            if high > n:
                _pass(tail, y[n:high], narrow, biases, scaled, known, part, always)
            for j in range(m):
                for c in range(d):
                    sums[j, c] += part[j, c]
        for j in range(m):
            for c in range(d):
                theta[c, j] -= step * sums[j, c]
        for r in range(basis.shape[1]):
            # The columns are orthonormal: one after the other is all at once.
            for j in range(m):
                inner = 0.0
                for c in range(len(basis)):
                    inner += basis[c, r] * theta[c, j]
                for c in range(len(basis)):
                    theta[c, j] -= basis[c, r] * inner
    return count


def split(x: Any) -> tuple[Any, Any]:
    """Rows in groups of eight, and the rest of them filled up with zeros."""
    whole = len(x) - len(x) % 8
    tail = np.zeros((8 if whole < len(x) else 0, x.shape[1]), x.dtype)
    tail[: len(x) - whole] = x[whole:]
    return x[:whole], tail


def descend(
    problem: MultiIndex,
    known: Codes,
    parts: tuple[Any, Any],
    y: Any,
    theta: Any,
    *,
    rows: int,
    step: float,
    count: int,
    basis: Any = None,
    level: float = np.inf,
) -> int:
    """Make gradient steps without a return to Python; how many were made.

    Parameters
    ----------
    problem : MultiIndex
        Its second layer and biases; the functions come from `known`.
    known : Codes
        From :func:`codes`.
    parts : pair of ndarray
        Inputs as :func:`split` gives them.
    y : ndarray, shape (n,)
        Labels; their number is that of the rows that count.
    theta : ndarray, shape (d, m)
        Changed in place.
    rows : int
        Of a block, a multiple of eight.
    step : float
        Factor of the summed gradient.
    count : int
        Most steps.
    basis : ndarray, shape (k, r), optional
        Orthonormal; what is removed after every step.
    level : float, optional
        Stop once a neuron's cosine with the target's directions exceeds it, but not at once.
    """
    if basis is None:
        basis = np.empty((problem.k, 0))
    scaled = problem.second_layer / problem.width
    x, tail = parts
    return int(
        _steps(
            x,
            tail,
            y,
            rows,
            theta,
            np.ascontiguousarray(basis),
            step,
            level,
            count,
            problem.biases,
            scaled,
            known,
        )
    )


def gradient(
    problem: MultiIndex, known: Codes, x: Any, y: Any, theta: Any, *, descend: bool
) -> tuple[float, Any]:
    """Compute the summed loss and n times the gradient, shape (d, m), on some rows.

    Parameters
    ----------
    problem : MultiIndex
        Its second layer and biases; the functions come from `known`.
    known : Codes
        From :func:`codes`.
    x : ndarray, shape (n, d)
        Inputs; n need not be a multiple of eight.
    y : ndarray, shape (n,)
        Labels of these rows.
    theta : ndarray, shape (m, d)
        C order, of the type of `x`: the neurons in rows.
    descend : bool
        Whether the gradient is wanted; zeros otherwise.
    """
    out = np.zeros(theta.shape)
    scaled = problem.second_layer / problem.width
    whole, tail = split(x)
    total = 0.0
    for rows, labels in ((whole, y[: len(whole)]), (tail, y[len(whole) :])):
        if not len(rows):
            continue
        total += _pass(rows, labels, theta, problem.biases, scaled, known, out, descend)
    return total, out.T
