r"""Links of single-index models: scalar functions that NumPy and numba both understand.

A link is given by a plain function and its derivative. Applied to arrays they serve the
quadratures; compiled, they are inlined into the loops of SGD. So any function will do that is
written element by element and that numba can compile, one's own included.

Coefficients are taken with respect to the orthonormal Hermite polynomials
:math:`h_k = He_k / \sqrt{k!}` (MDL Section 11.2.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.polynomial import hermite_e
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.gaussian import Rule, gauss_hermite

__all__ = [
    "ABSOLUTE",
    "COSINE",
    "LINEAR",
    "REACH",
    "RELU",
    "SQUARE",
    "TANH",
    "Link",
    "coefficients",
    "hermite",
    "hermite_table",
    "line_rule",
    "series",
]

Scalar: TypeAlias = Callable[[Any], Any]
_ORDER = 80
"""Nodes for smooth links: exact to degree 159."""
REACH = 12.0
"""The Gaussian mass beyond it is 4e-33."""
_PANELS, _PER_PANEL = 12, 16
_MOST_DEGREE = 60


@dataclass(frozen=True)
class Link:
    """A scalar function with its derivative.

    Attributes
    ----------
    name : str
    function, derivative : callable
        Element by element, from arrays to arrays under NumPy and from floats to floats under
        numba: no array methods, no branches on the argument.
    kinks : tuple of float
        Where the derivative jumps; quadratures are split there.
    factor : float, default 1
        The link is this number times the function.

    Raises
    ------
    ValueError
        If the factor is zero or not finite.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.links import Link, coefficients
    >>> import numpy as np
    >>> cubic = Link("cubic", lambda z: z * z * z, lambda z: 3 * z * z)
    >>> coefficients(cubic, 4).round(6).tolist()  # z^3 = 3 h_1 + sqrt(6) h_3
    [0.0, 3.0, 0.0, 2.44949]
    """

    name: str
    function: Scalar
    derivative: Scalar
    kinks: tuple[float, ...] = ()
    factor: float = 1.0

    def __post_init__(self) -> None:
        """Check the factor."""
        if _validate.number("factor", self.factor) == 0:
            raise ValueError("factor must not be zero, got 0")

    def __repr__(self) -> str:
        return f"Link({self.name})" if self.factor == 1 else f"Link({self.factor:g} {self.name})"

    def scaled(self, factor: float) -> Link:
        """Return this link times a number.

        Raises
        ------
        ValueError
            If the number is zero or not finite.
        """
        return replace(self, factor=self.factor * _validate.number("factor", factor))

    def value(self, z: Array) -> Array:
        """Return the values at an array."""
        z = _validate.finite("z", z)
        return np.asarray(self.factor * self.function(z))

    def slope(self, z: Array) -> Array:
        """Return the derivatives at an array."""
        z = _validate.finite("z", z)
        return np.asarray(self.factor * self.derivative(z))

    def compiled(self) -> tuple[Scalar, Scalar]:
        """Return value and derivative compiled, made once per process."""
        return _compiled(self.function, self.factor), _compiled(self.derivative, self.factor)


@lru_cache(maxsize=256)
def _compiled(function: Scalar, factor: float) -> Scalar:
    inner = njit(nogil=True, error_model="numpy")(getattr(function, "py_func", function))

    @njit(nogil=True, error_model="numpy")
    def scaled(z: float) -> Any:
        return factor * inner(z)

    made: Scalar = scaled if factor != 1 else inner
    return made


LINEAR = Link("z", lambda z: z, lambda z: 0.0 * z + 1.0)
"""Online linear regression."""


SQUARE = Link("z²", lambda z: z * z, lambda z: 2.0 * z)
"""Phase retrieval."""


TANH = Link("tanh", lambda z: np.tanh(z), lambda z: 1.0 - np.tanh(z) ** 2)


COSINE = Link("cos", lambda z: np.cos(z), lambda z: -np.sin(z))


RELU = Link("ReLU", lambda z: np.maximum(z, 0.0), lambda z: 1.0 * (z > 0.0), kinks=(0.0,))


ABSOLUTE = Link("|z|", lambda z: np.abs(z), lambda z: np.sign(z), kinks=(0.0,))


def hermite(order: int) -> Link:
    r"""Orthonormal Hermite polynomial :math:`h_k`, with :math:`h_k' = \sqrt k\, h_{k-1}`.

    Parameters
    ----------
    order : int
        k, in [1, 12].

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.links import hermite
    >>> import numpy as np
    >>> hermite(2).value(np.array([0.0, 1.0, 2.0])).round(6).tolist()
    [-0.707107, 0.0, 2.12132]
    """
    return _hermite(_validate.integer("order", order, least=1, most=12))


@lru_cache(maxsize=32)
def _hermite(k: int) -> Link:
    return Link(f"h_{k}", _polynomial(k, 1.0), _polynomial(k - 1, math.sqrt(k)))


def _polynomial(order: int, factor: float) -> Scalar:
    powers = hermite_e.herme2poly(np.eye(order + 1)[order]) / math.sqrt(math.factorial(order))
    table = tuple(float(c) for c in factor * powers[::-1])

    def horner(z: Any) -> Any:
        total = 0.0 * z
        for c in table:
            total = total * z + c
        return total

    return horner


@lru_cache(maxsize=32)
def line_rule(kinks: tuple[float, ...] = ()) -> Rule:
    """Quadrature rule for N(0, 1): Gauss–Hermite, or panels between kinks.

    Parameters
    ----------
    kinks : tuple of float, default ()
        Within [-12, 12].

    Returns
    -------
    Rule
        Exact to rounding for polynomials of degree up to about 60, and for functions that are
        such polynomials between the kinks.
    """
    if not kinks:
        return gauss_hermite(1, _ORDER)
    corners = np.array(sorted({-REACH, *kinks, REACH}))
    if corners[0] < -REACH or corners[-1] > REACH:
        raise ValueError(f"kinks must lie in [-{REACH:g}, {REACH:g}], got {kinks}")
    edges = np.unique(np.concatenate([
        np.linspace(a, b, max(1, math.ceil(_PANELS * (b - a) / REACH)) + 1)
        for a, b in pairwise(corners)
    ]))  # fmt: skip
    nodes, weights = np.polynomial.legendre.leggauss(_PER_PANEL)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    z = (middle[:, None] + half[:, None] * nodes).ravel()
    mass = (half[:, None] * weights).ravel() * np.exp(-z * z / 2)
    return Rule(z[:, None], mass / mass.sum())


def hermite_table(z: Array, count: int) -> Array:
    """Orthonormal Hermite polynomials of degree below `count` at `z` (n,), shape (n, count)."""
    z = _validate.finite("z", z)
    count = _validate.integer("count", count, least=1)
    norms = np.sqrt(np.cumprod(np.maximum(np.arange(count), 1.0)))
    return np.asarray(hermite_e.hermevander(z, count - 1) / norms)


def coefficients(link: Link, count: int) -> Array:
    r"""Hermite coefficients :math:`u_k = E[f(z) h_k(z)]` for k below `count`.

    Parameters
    ----------
    link : Link
        f; the quadrature is split at its kinks.
    count : int
        In [1, 60].

    Returns
    -------
    ndarray, shape (count,)

    Raises
    ------
    ValueError
        If `count` is out of range.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.links import ABSOLUTE, coefficients
    >>> coefficients(ABSOLUTE, 3).round(6).tolist()  # sqrt(2/pi) (1, 0, 1/sqrt(2))
    [0.797885, 0.0, 0.56419]
    """
    count = _validate.integer("count", count, least=1, most=_MOST_DEGREE)
    rule = line_rule(link.kinks)
    z = rule.nodes[:, 0]
    found = rule.expect(hermite_table(z, count) * link.value(z)[:, None])
    return np.asarray(np.where(np.abs(found) < 1e-13 * np.abs(found).max(), 0.0, found))


def series(first: ArrayLike, second: ArrayLike, m: ArrayLike) -> Array:
    r"""Sum :math:`\sum_k u_k(f) u_k(g) m^k`, which is :math:`E f(s) g(t)` at correlation m."""
    left = _validate.finite("first", first, shape=(None,))
    product = left * _validate.finite("second", second, shape=left.shape)
    if not left.size:
        raise ValueError("first must not be empty")
    return np.asarray(np.polynomial.polynomial.polyval(_validate.finite("m", m), product))
