r"""Arc-cosine moments of rectified linear units: loops that compilers turn into vector code.

The Gaussian moments of two rectified units with correlation r need the angle of r. The library's
arc cosine is a call per entry; here it is a polynomial without branches, so that several entries
are computed at once. For :math:`s \le \frac12` the arc sine is :math:`s\, p(s^2)`, with the
Chebyshev interpolant p of degree 12 of :math:`\arcsin(\sqrt z) / \sqrt z` on [0, 1/4], in
:math:`t = 8 z - 1`, exact to rounding; for larger s it is
:math:`\frac\pi2 - 2 \arcsin \sqrt{(1 - s) / 2}`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from traindyn._types import Array

__all__ = ["fill", "mirror", "recur"]

_HALF_OVER_PI = 0.5 / math.pi
_FAST = {"contract", "nsz", "nnan", "ninf"}


@njit(inline="always")
def _arc_sine_ratio(t: float) -> float:
    """Return arcsin(s) / s at s^2 = (t + 1) / 8."""
    p = 4.639095481370581e-13
    p = p * t + 3.682454096807647e-12
    p = p * t + 2.806229837927185e-11
    p = p * t + 2.2879519988639685e-10
    p = p * t + 1.8997198592225374e-09
    p = p * t + 1.610162298899928e-08
    p = p * t + 1.4033986429553094e-07
    p = p * t + 1.2699306619707348e-06
    p = p * t + 1.2116523076359425e-05
    p = p * t + 0.0001252931333125488
    p = p * t + 0.0014859415578623767
    p = p * t + 0.023472196200223696
    p = p * t + 1.0221005752492498
    return p


@njit(inline="always")
def _moments(r: float) -> tuple[float, float]:
    """Return E[s(u) s(v)] and E[s'(u) s'(v)] of unit variances and correlation r."""
    size = min(abs(r), 1.0)
    half = 0.5 * (1.0 - size)
    z = min(half, size * size)
    # In turns, so that correlations of plus and minus one give exactly a half and zero.
    near = math.sqrt(z) * _arc_sine_ratio(8.0 * z - 1.0) * _HALF_OVER_PI
    far = 0.25 - 2.0 * near
    share = 0.25 + math.copysign(far if size > 0.5 else near, r)
    sine = math.sqrt((1.0 - size) * (1.0 + size))
    return sine * _HALF_OVER_PI + share * math.copysign(size, r), share


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _fill_row(root: float, roots: Array, c: Array, value: Array, slope: Array) -> None:
    for j in range(c.size):
        scale = root * roots[j]
        correlation = c[j] / (scale if scale > 0.0 else 1.0)
        unit, share = _moments(correlation)
        value[j] = scale * unit
        slope[j] = share


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _recur_row(
    root: float, inverse: float, roots: Array, inverses: Array, shift: float, c: Array, k: Array
) -> None:
    for j in range(c.size):
        unit, share = _moments(c[j] * inverse * inverses[j])
        c[j] = root * roots[j] * unit + shift
        k[j] = k[j] * share + c[j]


@njit(cache=True, nogil=True, error_model="numpy")
def fill(same: bool, root_a: Array, root_b: Array, c: Array, value: Array, slope: Array) -> None:
    """Fill the moments of all pairs; of one set with itself by symmetry.

    Parameters
    ----------
    same : bool
        Whether both sets are one: then only the lower triangle of `c` is read.
    root_a, root_b : ndarray, shape (n,), (q,)
        Standard deviations.
    c, value, slope : ndarray, shape (n, q)
        Covariances, and where the moments go. Correlations beyond one count as one.
    """
    for i in range(root_a.size):
        stop = i + 1 if same else root_b.size
        _fill_row(root_a[i], root_b[:stop], c[i, :stop], value[i, :stop], slope[i, :stop])
    if same:
        mirror(value)
        mirror(slope)


@njit(cache=True, nogil=True, error_model="numpy")
def recur(
    same: bool, roots_a: Array, roots_b: Array, shift: float, nngp: Array, ntk: Array
) -> None:
    """Take covariances and tangent kernels through all layers, a row at a time, in place.

    Parameters
    ----------
    same : bool
        The kernels are those of one set with itself; their diagonals are left to rounding, which
        costs half of the digits there.
    roots_a, roots_b : ndarray, shape (layers, n), (layers, q)
        Standard deviations before each layer's rectifiers.
    shift : float
        Variance of the bias.
    nngp, ntk : ndarray, shape (n, q)
        Before the first layer, then after the last.
    """
    layers, n = roots_a.shape
    inverses = 1.0 / np.where(roots_b > 0.0, roots_b, np.inf)
    for i in range(n):
        stop = i + 1 if same else roots_b.shape[1]
        for layer in range(layers):
            root = roots_a[layer, i]
            _recur_row(
                root, 1.0 / root if root > 0.0 else 0.0, roots_b[layer, :stop],
                inverses[layer, :stop], shift, nngp[i, :stop], ntk[i, :stop],
            )  # fmt: skip
    if same:
        mirror(nngp)
        mirror(ntk)


@njit(cache=True, nogil=True, error_model="numpy")
def mirror(matrix: Array) -> None:
    """Copy the lower triangle to the upper one, in tiles that fit into the cache."""
    n, tile = matrix.shape[0], 32
    for top in range(0, n, tile):
        for left in range(0, top + 1, tile):
            for i in range(top, min(n, top + tile)):
                for j in range(left, min(i, left + tile)):
                    matrix[j, i] = matrix[i, j]
