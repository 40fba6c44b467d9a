"""One step of SGD on a two-layer network, in full dimension and on the statistics."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numba import njit

from traindyn._compiled import FAST
from traindyn._types import Array
from traindyn.problems.loops import _pick, loops, repeat

#: Cumulative weights, centroids (C, d), signs 1 - 2 y (C,), noise deviation, ridge.
DirectConstants: TypeAlias = tuple[Array, Array, Array, float, float]
#: The same and the degrees of freedom of the noise outside signal and neurons.
ReducedConstants: TypeAlias = tuple[Array, Array, Array, float, float, float]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def direct_step(
    state: tuple[Array, Array],
    constants: DirectConstants,
    rng: np.random.Generator,
    step_size: float,
) -> None:
    r"""Take the step (v, W) <- (1 - step_size ridge) (v, W) - step_size grad L (BGJ (8.3), (8.4)).

    Draws, in this order: one uniform for the centroid and, unless the deviation is zero, N
    normals for the noise.
    """
    v, W = state
    cumulative, centroids, signs, deviation, ridge = constants
    width, dimension = W.shape
    label = _pick(cumulative, rng.random())
    x = np.zeros(dimension)
    if deviation > 0.0:
        for n in range(dimension):
            x[n] = deviation * rng.standard_normal()
    for n in range(centroids.shape[1]):
        x[n] += centroids[label, n]

    z = np.empty(width)
    output = 0.0
    for i in range(width):
        projection = 0.0
        for n in range(dimension):
            projection += W[i, n] * x[n]
        z[i] = projection
        if projection > 0.0:
            output += v[i] * projection
    # sigma(output) - y, without cancellation
    error = signs[label] / (1.0 + math.exp(-signs[label] * output))

    keep = 1.0 - step_size * ridge
    for i in range(width):
        if z[i] > 0.0:
            move = step_size * v[i] * error
            v[i] = keep * v[i] - step_size * z[i] * error
            for n in range(dimension):
                W[i, n] = keep * W[i, n] - move * x[n]
        else:
            v[i] *= keep
            for n in range(dimension):
                W[i, n] *= keep


@loops(direct_step)
@njit(cache=True, nogil=True)
def direct_loop(chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    repeat(direct_step, chain, rng, step_size, out)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def reduced_step(
    state: tuple[Array, Array, Array, Array],
    constants: ReducedConstants,
    rng: np.random.Generator,
    step_size: float,
) -> None:
    r"""Take the same step on (v, m, R_perp), in O(K^2) operations.

    With C = upper^T a square root of R_perp, the noise meets the neurons only through its
    signal coordinates and, in units of its deviation, q, its coordinates along an orthonormal
    basis of their orthogonal parts, and chi, its squared length outside both. Writing
    xi = C q, s = |q|^2 + chi, b = 1 - step_size ridge, e for the error of the output and
    g_i = step_size v_i e where neuron i is active and 0 elsewhere,

        R_perp <- b^2 C (I - q q^T / s) C^T + w w^T,
        w = deviation sqrt(s) g - b xi / sqrt(s).

    The first term is downdated with q known, through the closed-form triangular factor of
    I - q q^T / s, whose pivots are ratios of positive sums: nothing cancels, however close
    to singular R_perp is. The second is a rank-one update by rotations.
    """
    v, m, upper, work = state
    cumulative, centroids, signs, deviation, ridge, freedom = constants
    width, signal = m.shape
    s, q, xi, g = work[0], work[1], work[2], work[3]
    keep = 1.0 - step_size * ridge
    label = _pick(cumulative, rng.random())
    for n in range(signal):
        s[n] = centroids[label, n]
    for i in range(width):
        xi[i] = 0.0
    tail = 0.0
    if deviation > 0.0:
        for n in range(signal):
            s[n] += deviation * rng.standard_normal()
        for i in range(width):
            q[i] = rng.standard_normal()
        tail = rng.chisquare(freedom)
        # upper <- keep * T^T upper with T T^T = I - q q^T / s; xi = C q on the way.
        for j in range(width - 1, -1, -1):
            longer = tail + q[j] * q[j]
            diagonal = keep * math.sqrt(tail / longer)
            beside = -keep * q[j] / math.sqrt(tail * longer)
            tail = longer
            for i in range(j, width):
                before = upper[j, i]
                upper[j, i] = diagonal * before + beside * xi[i]
                xi[i] += q[j] * before
    else:
        for j in range(width):
            for i in range(j, width):
                upper[j, i] *= keep

    output = 0.0
    for i in range(width):
        z = deviation * xi[i]
        for n in range(signal):
            z += m[i, n] * s[n]
        q[i] = z
        if z > 0.0:
            output += v[i] * z
    # sigma(output) - y, without cancellation
    error = signs[label] / (1.0 + math.exp(-signs[label] * output))
    for i in range(width):
        g[i] = 0.0
        if q[i] > 0.0:
            g[i] = step_size * v[i] * error
            v[i] = keep * v[i] - step_size * q[i] * error
        else:
            v[i] *= keep
        for n in range(signal):
            m[i, n] = keep * m[i, n] - g[i] * s[n]
    if deviation == 0.0:
        return

    # upper^T upper <- upper^T upper + w w^T, w kept in xi
    root = math.sqrt(tail)
    for i in range(width):
        xi[i] = deviation * root * g[i] - (keep / root) * xi[i]
    for j in range(width):
        pivot = math.sqrt(upper[j, j] * upper[j, j] + xi[j] * xi[j])
        if pivot > 0.0:
            cosine = upper[j, j] / pivot
            sine = xi[j] / pivot
            upper[j, j] = pivot
            for i in range(j + 1, width):
                before = upper[j, i]
                upper[j, i] = cosine * before + sine * xi[i]
                xi[i] = cosine * xi[i] - sine * before


@loops(reduced_step)
@njit(cache=True, nogil=True)
def reduced_loop(chain: Any, rng: np.random.Generator, step_size: float, out: Any) -> None:
    repeat(reduced_step, chain, rng, step_size, out)
