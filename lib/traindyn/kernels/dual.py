r"""Second moments of an activation and of its derivative under a Gaussian pair.

For :math:`(u, v)` centred Gaussian with variances :math:`a, b` and covariance :math:`c`, put
:math:`\varphi = \arccos(c / \sqrt{ab})`. Then (the step of MDL Theorems 8.4 and 8.6)

* ReLU, the arc-cosine kernels of degree one and zero:
  :math:`E[\sigma \sigma] = \sqrt{ab}\,(\sin\varphi + (\pi - \varphi)\cos\varphi) / 2\pi` and
  :math:`E[\sigma' \sigma'] = (\pi - \varphi) / 2\pi`;
* erf: :math:`E[\sigma \sigma] = \frac2\pi \arcsin\frac{2c}{\sqrt{(1 + 2a)(1 + 2b)}}` and
  :math:`E[\sigma' \sigma'] = \frac4\pi \big((1 + 2a)(1 + 2b) - 4c^2\big)^{-1/2}`;
* any other: with the coefficients :math:`s_k(a) = E[\sigma(\sqrt a z) h_k(z)]` on the
  orthonormal Hermite polynomials, :math:`E[\sigma \sigma] = \sum_k s_k(a) s_k(b)
  (c / \sqrt{ab})^k` (Mehler). Coefficients come from a Gauss-Hermite rule, and as many are taken
  as it has nodes: for equal arguments the sum then *is* the rule applied to the square.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import Activation, Elementwise
from traindyn.gaussian import gauss_hermite
from traindyn.kernels.arc_cosine import fill, mirror

__all__ = ["DualMoments", "dual_moments", "hermite_coefficients", "own_moments"]

_ORDER = 120
_MOST_ORDER = 180
"""The weights of a longer rule underflow."""
_ROUNDING = 1e-10


class DualMoments(NamedTuple):
    """Second moments under Gaussian pairs.

    Attributes
    ----------
    value : ndarray, shape (n, q) or (n,)
        ``E[sigma(u_i) sigma(v_j)]``, or ``E[sigma(u_i)^2]``.
    slope : ndarray, shape (n, q) or (n,)
        ``E[sigma'(u_i) sigma'(v_j)]``, or ``E[sigma'(u_i)^2]``.
    """

    value: Array
    slope: Array


def dual_moments(
    activation: Activation,
    covariance: ArrayLike,
    variance: ArrayLike,
    other_variance: ArrayLike | None = None,
    *,
    order: int = _ORDER,
) -> DualMoments:
    r"""Gaussian second moments of an activation and of its derivative.

    Parameters
    ----------
    activation : Activation
        :math:`\sigma`, with a derivative.
    covariance : array_like, shape (n, q)
        Of u_i and v_j.
    variance : array_like, shape (n,)
        Of the variables u.
    other_variance : array_like, shape (q,), optional
        Of the variables v. Unless given they are the u; then only the lower triangle of the
        covariance is read, and the diagonal comes from :func:`own_moments`.
    order : int, default 120
        Nodes of the Gauss-Hermite rule where there is no closed form, at most 180. For tanh the
        120 nodes give the slope to 1e-10 at variance one and to 3e-5 at variance four, and the
        value ten times better. A kink in the activation needs a closed form.

    Raises
    ------
    ValueError
        If the shapes disagree, a variance is negative, a correlation exceeds one or the
        activation has no derivative.

    Examples
    --------
    The ReLU at correlation one, zero and minus one:

    >>> from traindyn.kernels import dual_moments
    >>> from traindyn.activations import RELU
    >>> found = dual_moments(RELU, [[2.0, 0.0, -2.0]], [4.0], [1.0, 1.0, 1.0])
    >>> found.value.round(6).tolist(), found.slope.round(6).tolist()
    ([[1.0, 0.31831, 0.0]], [[0.5, 0.25, 0.0]])
    """
    same = other_variance is None
    a = _variances("variance", variance)
    b = a if other_variance is None else _variances("other_variance", other_variance)
    c = _validate.finite("covariance", covariance, shape=(a.size, b.size))
    order = _validate.integer("order", order, least=2, most=_MOST_ORDER)
    derivative = activation.first("its Gaussian moments")
    root_a, root_b = np.sqrt(a), np.sqrt(b)
    value, slope = np.empty_like(c), np.empty_like(c)
    worst = 0.0
    if activation.kind == "identity":
        value[:], slope[:] = c, 1.0
        if same:
            mirror(value)
    elif activation.kind == "relu":
        fill(same, root_a, root_b, c, value, slope)
        worst = _largest_correlation(c, root_a, root_b)
    elif activation.kind == "erf":
        worst = _erf(same, a, b, c, value, slope)
    else:
        nodes, table = _hermite(order)
        for function, out in ((activation.value, value), (derivative, slope)):
            left = _coefficients(function, root_a, nodes, table)
            right = left if same else _coefficients(function, root_b, nodes, table)
            worst = _mehler(same, root_a, root_b, c, left, np.ascontiguousarray(right.T), out)
    if worst > 1 + _ROUNDING:
        raise ValueError(
            f"covariance must be positive semi-definite, got a correlation of size {worst:.6g}"
        )
    if same:
        own = own_moments(activation, a, order=order)
        np.fill_diagonal(value, own.value)
        np.fill_diagonal(slope, own.slope)
    return DualMoments(value, slope)


def own_moments(activation: Activation, variance: ArrayLike, *, order: int = _ORDER) -> DualMoments:
    r"""Gaussian moments :math:`E[\sigma(u)^2]` and :math:`E[\sigma'(u)^2]`.

    The diagonal of :func:`dual_moments`, without the rounding of a correlation.

    Parameters
    ----------
    activation : Activation
        :math:`\sigma`, with a derivative.
    variance : array_like, shape (n,)
        Of each variable u; not negative.
    order : int, default 120
        As for :func:`dual_moments`.

    Returns
    -------
    DualMoments
        Of shape (n,).

    Raises
    ------
    ValueError
        If a variance is negative or the activation has no derivative.

    Examples
    --------
    >>> from traindyn.kernels import own_moments
    >>> from traindyn.activations import ERF
    >>> own_moments(ERF, [0.5]).value.round(12).tolist()  # (2 / pi) arcsin(1 / 2)
    [0.333333333333]
    """
    a = _variances("variance", variance)
    order = _validate.integer("order", order, least=2, most=_MOST_ORDER)
    derivative = activation.first("its Gaussian moments")
    if activation.kind == "identity":
        return DualMoments(a.copy(), np.ones_like(a))
    if activation.kind == "relu":
        return DualMoments(a / 2, np.full_like(a, 0.5))
    if activation.kind == "erf":
        value = np.arcsin(2 * a / (1 + 2 * a)) * (2 / np.pi)
        return DualMoments(value, 4 / np.pi / np.sqrt(1 + 4 * a))
    rule = gauss_hermite(1, order)
    points = np.sqrt(a) * rule.nodes
    return DualMoments(
        rule.expect(np.square(activation.value(points))), rule.expect(np.square(derivative(points)))
    )


def hermite_coefficients(
    activation: Activation, count: int, *, variance: float = 1.0, order: int = _ORDER
) -> Array:
    r"""Coefficients :math:`E[\sigma(\sqrt a z) h_k(z)]`, orthonormal :math:`h_k`, k below `count`.

    The assumption on activations in MDL chapter 9 asks for those up to some :math:`k_0` to be
    non-zero. Of an odd activation every second one vanishes; so it does, above the first, of a
    rectifier and its smoothings.

    Parameters
    ----------
    activation : Activation
        :math:`\sigma`; only its values enter.
    count : int
        At most half of `order`.
    variance : float, default 1
        a.
    order : int, default 120
        Nodes of the Gauss-Hermite rule.

    Returns
    -------
    ndarray, shape (count,)

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from traindyn.kernels import hermite_coefficients
    >>> from traindyn.activations import QUADRATIC
    >>> hermite_coefficients(QUADRATIC, 3).round(12).tolist()  # z^2 = 1 + sqrt(2) h_2
    [1.0, 0.0, 1.414213562373]
    """
    order = _validate.integer("order", order, least=2, most=_MOST_ORDER)
    count = _validate.integer("count", count, least=1, most=order // 2)
    root = np.sqrt(_variances("variance", [_validate.number("variance", variance)]))
    return _coefficients(activation.value, root, *_hermite(order))[0, :count]


def _variances(name: str, value: ArrayLike) -> Array:
    found = _validate.finite(name, value, shape=(None,))
    if np.any(found < 0):
        raise ValueError(f"{name} must be non-negative, got smallest entry {found.min():.6g}")
    return found


@cache
def _hermite(order: int) -> tuple[Array, Array]:
    """Nodes, and weights times the orthonormal polynomials of degree below `order`."""
    rule = gauss_hermite(1, order)
    z = rule.nodes[:, 0]
    table = np.empty((order, order))
    table[0] = rule.weights
    table[1] = z * rule.weights
    for k in range(1, order - 1):
        table[k + 1] = (z * table[k] - math.sqrt(k) * table[k - 1]) / math.sqrt(k + 1)
    return _validate.frozen(z), _validate.frozen(table.T)


def _coefficients(function: Elementwise, root: Array, z: Array, table: Array) -> Array:
    """Hermite coefficients of ``z -> function(root * z)``, shape (n, order)."""
    values = np.asarray(function(root[:, None] * z))
    return np.asarray(values @ table)


@njit(cache=True, nogil=True, error_model="numpy")
def _correlation(covariance: float, scale: float) -> float:
    return covariance / scale if scale > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _largest_correlation(c: Array, root_a: Array, root_b: Array) -> float:
    worst = 0.0
    for i in range(root_a.size):
        for j in range(root_b.size):
            worst = max(worst, abs(_correlation(c[i, j], root_a[i] * root_b[j])))
    return worst


@njit(cache=True, nogil=True, error_model="numpy")
def _erf(same: bool, a: Array, b: Array, c: Array, value: Array, slope: Array) -> float:
    """Fill the moments of the error function; return the largest correlation."""
    worst = 0.0
    for i in range(a.size):
        for j in range(i + 1 if same else b.size):
            worst = max(worst, abs(_correlation(c[i, j], math.sqrt(a[i] * b[j]))))
            square = (1.0 + 2.0 * a[i]) * (1.0 + 2.0 * b[j])
            # A correlation above one, which is refused later, must not leave the domain.
            left = max(square - 4.0 * c[i, j] * c[i, j], 1e-300)
            ratio = min(1.0, max(-1.0, 2.0 * c[i, j] / math.sqrt(square)))
            value[i, j] = 2.0 / math.pi * math.asin(ratio)
            slope[i, j] = 4.0 / math.pi / math.sqrt(left)
    if same:
        mirror(value)
        mirror(slope)
    return worst


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
def _mehler(
    same: bool, root_a: Array, root_b: Array, c: Array, left: Array, right: Array, out: Array
) -> float:
    """Fill ``sum_k left[i, k] right[k, j] r_ij ** k`` by Horner's rule, a row at a time."""
    worst = 0.0
    order, q = right.shape
    r, total = np.empty(q), np.empty(q)
    for i in range(root_a.size):
        stop = i + 1 if same else q
        for j in range(stop):
            r[j] = _correlation(c[i, j], root_a[i] * root_b[j])
            worst = max(worst, abs(r[j]))
            r[j] = min(1.0, max(-1.0, r[j]))
            total[j] = 0.0
        for k in range(order - 1, -1, -1):
            weight = left[i, k]
            for j in range(stop):
                total[j] = total[j] * r[j] + weight * right[k, j]
        out[i, :stop] = total[:stop]
    if same:
        mirror(out)
    return worst
