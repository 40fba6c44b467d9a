r"""The hard-subspace criterion: which outliers of a weighted covariance are informative.

The matrix is :math:`H = \frac1n \sum_i G_i x_i x_i^T` with :math:`x_i \sim N(0, I_d)`,
:math:`n / d \to \delta`, and weights that depend on finitely many projections of
:math:`x_i`, among them the r *hard* coordinates :math:`s_i`. It is the matrix of
:mod:`traindyn.laws.weighted` with ``ratio = 1 / sample_ratio``, seen from one side of its bulk. In
the variable :math:`a = -1/b > 0` of that module, and with :math:`T_a = a G / (\delta + a G)`,

.. math:: z = \psi(a) = \frac{\delta E[T_a] - 1}{a}, \qquad
          a^2 \psi'(a) = 1 - \delta E[T_a^2],

so that the left edge is :math:`c = \psi(a_c)` with :math:`\delta E[T_{a_c}^2] = 1` (each
:math:`|T_a|` increases with a). On the hard coordinates the resolvent is the inverse of
:math:`(I - P(a)) / a`,

.. math:: P(a) = \delta\, E[T_a (I_r - s s^T)] ,

decreasing in z: the outliers left of the edge are the a in :math:`(0, a_c)` where P has the
eigenvalue one, and as many lie below :math:`\psi(a)` as P(a) has eigenvalues above one.
Hence informative eigenvalues :math:`z < \min(0, c)` exist if and only if the largest
eigenvalue of :math:`P(a_{end})` exceeds one, with :math:`a_{end} = a_c` if
:math:`c \le 0` and otherwise the root of :math:`\psi = 0`. For the unit null vector v of
:math:`I - P` the eigenvector's squared component on the hard subspace is

.. math:: \frac{1 - \delta E[T^2]}{1 - \delta E[T^2] + \delta E[T^2 (v \cdot s)^2]} .

(MW, Main theorem: its edge, outlier and overlap equations, in a form free of z.)

Weights far from one are divided by a power of two, which changes no digit of them; the parameter a
is multiplied by it, and P stays what it is.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from traindyn import _validate
from traindyn._types import Array
from traindyn.laws.weighted import _NEGLIGIBLE, Outliers, WeightedMarchenkoPastur

_MAX_STEPS = 100
_TOLERANCE = 1e-12
_DEGENERATE = 1e-9
"""Roots this close, relative to their size, are one eigenspace."""
_ORDINARY = 60
"""Powers of two up to which weights are computed with as they are."""
_LARGEST = 1000
"""Powers of two up to which weights and their eigenvalues are numbers."""
_RATIOS = 1e-100, 1e12
"""Sample ratios between which powers of the parameters are numbers, and T is told from zero."""


class HardSubspace:
    r"""One side of the spectrum of :math:`\frac1n \sum_i G_i x_i x_i^T`.

    Parameters
    ----------
    weights : array_like, shape (N,)
        Draws or quadrature nodes of G, bounded in law (no sample can tell: see
        :meth:`~traindyn.problems.multi_index.model.MultiIndex.require_bounded_curvature`).
    features : array_like, shape (N,) or (N, r)
        The hard coordinates s of the same draws, on an orthonormal basis.
    sample_ratio : float
        Samples per dimension, ``n / d``, in [1e-100, 1e12].
    probabilities : array_like, shape (N,), optional
        Of the draws; uniform unless given.
    side : {"left", "right"}
        Which end of the bulk. The right one is the left one of -G, mirrored.

    Raises
    ------
    ValueError
        If an argument is out of range, or the largest weight is zero or next to the end of the
        floating-point numbers.

    Examples
    --------
    The optimal weights of phase retrieval have their threshold at sample ratio = 1/2:

    >>> import numpy as np
    >>> from traindyn.laws import HardSubspace
    >>> from traindyn.gaussian import gauss_hermite
    >>> rule, sample_ratio = gauss_hermite(1, 64), 2.0
    >>> s = rule.nodes[:, 0]
    >>> weights = -(s**2 - 1) / (s**2 - 1 + np.sqrt(2 * sample_ratio))
    >>> side = HardSubspace(weights, s, sample_ratio, probabilities=rule.weights)
    >>> print(round(side.edge_parameter, 9), round(side.statistic, 9))
    2.0 2.0
    """

    def __init__(
        self,
        weights: ArrayLike,
        features: ArrayLike,
        sample_ratio: float,
        *,
        probabilities: ArrayLike | None = None,
        side: str = "left",
    ) -> None:
        given = _validate.finite("weights", weights, shape=(None,))
        if not np.any(given):
            raise ValueError("weights must not be all zero, got only zeros")
        largest = float(np.abs(given).max())
        exponent = int(np.frexp(largest)[1])
        if abs(exponent) > _LARGEST:
            raise ValueError(
                f"weights must have a largest size between 1e-300 and 1e300, got {largest:.3g}"
            )
        rows = _validate.finite("features", features)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or rows.shape[0] != given.size or rows.shape[1] == 0:
            raise ValueError(
                f"features must have shape ({given.size},) or ({given.size}, r >= 1), "
                f"got {np.shape(features)}"
            )
        self.sample_ratio = _validate.positive("sample_ratio", sample_ratio)
        if not _RATIOS[0] <= self.sample_ratio <= _RATIOS[1]:
            raise ValueError(
                f"sample_ratio must be between {_RATIOS[0]:g} and {_RATIOS[1]:g}, "
                f"got {self.sample_ratio:.3g}"
            )
        self.side = str(_validate.choice("side", side, ("left", "right")))
        if probabilities is None:
            masses = None
        else:
            masses = _validate.probability_vector("probabilities", probabilities)
            if masses.size != given.size:
                raise ValueError(
                    f"probabilities must have the {given.size} entries of weights, "
                    f"got {masses.size}"
                )
        self._given = _validate.frozen(given)
        self._masses = None if masses is None else _validate.frozen(masses)
        self._sign = 1.0 if self.side == "left" else -1.0
        self._unit = float(np.ldexp(1.0, exponent)) if abs(exponent) > _ORDINARY else 1.0
        # Powers of weights so far below the largest would underflow or overflow.
        kept = np.where(np.abs(given) > _NEGLIGIBLE * largest, given, 0.0)
        self._weights = self._sign * kept / self._unit
        self.rank = int(rows.shape[1])
        first, second = np.triu_indices(self.rank)
        self._pairs = first, second
        # Distinct entries of I - s s^T, one row per entry: a sum over draws is one product.
        products = np.ascontiguousarray(
            (first == second)[:, None] - (rows[:, first] * rows[:, second]).T
        )
        share = np.full(given.size, 1 / given.size) if masses is None else masses
        self._share = self.sample_ratio * share
        self._defects = products * self._share

    def __repr__(self) -> str:
        return (
            f"HardSubspace(<{self._given.size} draws of {self.rank} hard coordinates>, "
            f"sample_ratio={self.sample_ratio!r}, side={self.side!r})"
        )

    @cached_property
    def law(self) -> WeightedMarchenkoPastur:
        """Limit law of all eigenvalues (MW, Law of the bulk): density, cdf, every edge."""
        return WeightedMarchenkoPastur(
            self._given, 1 / self.sample_ratio, probabilities=self._masses
        )

    @property
    def edge_parameter(self) -> float:
        """The parameter a_c of the edge; infinite if the edge is a hard one, at zero."""
        return self._edge / self._unit

    @cached_property
    def _edge(self) -> float:
        """The parameter of the edge, in units of one over that of the weights."""
        lowest = float(self._weights.min())
        if lowest < 0:
            high = self.sample_ratio / -lowest * (1 - _TOLERANCE)
            if self._second(high)[0] <= 1:
                return high
        else:
            positive = self._weights > 0
            if self._share[positive].sum() <= 1:
                return float("inf")
            high = self.sample_ratio / float(self._weights.max())
            # From here on every T is one up to rounding, and so is what their squares add up to.
            last = self.sample_ratio / float(self._weights[positive].min()) / _TOLERANCE
            while self._second(high)[0] <= 1:
                high *= 2
                if high > last:
                    return float("inf")
        low = high / 2
        while self._second(low)[0] >= 1:
            low /= 2
        # In b = -1/a, Newton on (ratio E[T^2])^(-1/2) - 1: a power mean of distances to poles,
        # so concave; kept inside the bracket.
        low, high = -1 / low, -1 / high
        b = new = low
        for _ in range(_MAX_STEPS):
            value, slope = self._second(-1 / b)
            low, high = (b, high) if value < 1 else (low, b)
            new = b + 2 * (value - value**1.5) / slope
            if abs(new - b) <= _TOLERANCE * abs(b):
                break
            if not low < new < high:
                new = (low + high) / 2
            b = new
        return float(-1 / new)

    @cached_property
    def edge(self) -> float:
        """The edge of the bulk on this side; 0 for a hard one."""
        return self._unit * (self._sign * self._level(self._edge))

    @property
    def end_parameter(self) -> float:
        """The parameter a_end of ``min(0, c)``, up to which an outlier is informative."""
        return self._end / self._unit

    @cached_property
    def _end(self) -> float:
        """The parameter of the end, in units of one over that of the weights."""
        end = self._edge
        if self._level(end) <= 0:
            return end
        return float(brentq(self._level, _small(end), end, xtol=_TOLERANCE * end, rtol=_TOLERANCE))

    def matrix(self, a: float) -> Array:
        """P(a), shape (r, r), at a parameter in ``(0, edge_parameter]``."""
        # The parameter of a hard edge is infinite.
        return self._matrix(a if a == np.inf else _validate.positive("a", a) * self._unit)

    def _matrix(self, a: float) -> Array:
        """P at a parameter in units of one over that of the weights."""
        result = np.empty((self.rank, self.rank))
        result[self._pairs] = self._defects @ self._t(a)
        result.T[self._pairs] = result[self._pairs]
        return result

    @cached_property
    def statistic(self) -> float:
        """Largest eigenvalue of ``P(end_parameter)``: informative outliers exist above one."""
        return float(np.linalg.eigvalsh(self._matrix(self._end))[-1])

    @cached_property
    def edge_statistic(self) -> float:
        """Largest eigenvalue of ``P(edge_parameter)``: above one, an outlier leaves the bulk.

        The outlier need not be negative (if the edge is positive), so this can exceed one
        where :attr:`statistic` does not.
        """
        return float(np.linalg.eigvalsh(self._matrix(self._edge))[-1])

    @cached_property
    def stability(self) -> float:
        """``sample_ratio E[T^2]`` at `end_parameter`: 1 at a negative edge, less at a positive."""
        return float(self._share @ self._t(self._end) ** 2)

    @cached_property
    def outliers(self) -> Outliers:
        """All outliers beyond the edge with a component on the hard subspace.

        Ordered from the outermost; ``sides`` is -1 (left) or 1 (right).
        """
        end = self._edge
        count = int(np.count_nonzero(np.linalg.eigvalsh(self._matrix(end)) > 1))
        # Branch j, the j-th largest eigenvalue of P, passes one exactly once.
        roots = [self._root(j, end) for j in range(count)]
        values, vectors, overlaps = [], [], []
        first = 0
        while first < count:
            a = roots[first]
            last = first + 1
            while last < count and abs(roots[last] - a) <= _DEGENERATE * a:
                last += 1
            basis = np.linalg.eigh(self._matrix(a))[1][:, ::-1][:, first:last]
            squares = self._t(a) ** 2
            free = 1 - float(self._share @ squares)
            # E[T^2 s s^T] = E[T^2] I - E[T^2 (I - s s^T)], times the ratio.
            captured = np.empty((self.rank, self.rank))
            captured[self._pairs] = -(self._defects @ squares)
            captured.T[self._pairs] = captured[self._pairs]
            captured += (1 - free) * np.eye(self.rank)
            # Within a degenerate outlier the metric picks the eigenvectors' directions.
            norms, rotation = np.linalg.eigh(basis.T @ captured @ basis)
            values += [self._unit * (self._sign * self._level(a))] * (last - first)
            vectors += list((basis @ rotation).T)
            overlaps += list(free / (free + norms))
            first = last
        return Outliers(
            values=np.array(values),
            vectors=np.array(vectors).reshape(-1, self.rank).T,
            overlaps=np.array(overlaps),
            sides=np.full(count, -int(self._sign), dtype=np.int64),
        )

    @cached_property
    def informative(self) -> Outliers:
        """The outliers of the criterion: those below zero (above, on the right side) as well."""
        found = self.outliers
        inside = self._sign * found.values < 0
        return Outliers(
            found.values[inside],
            found.vectors[:, inside],
            found.overlaps[inside],
            found.sides[inside],
        )

    def _t(self, a: float) -> Array:
        """T_a of every draw."""
        if np.isinf(a):
            return np.asarray(self._weights > 0, dtype=np.float64)
        return np.asarray(1 - self.sample_ratio / (self.sample_ratio + a * self._weights))

    def _second(self, a: float) -> tuple[float, float]:
        """``sample_ratio E[T^2]`` and its derivative in b = -1/a."""
        ratio = self._weights / (self.sample_ratio + a * self._weights)
        terms = self._share * ratio * ratio
        return a * a * float(terms.sum()), 2 * a**3 * self.sample_ratio * float(
            np.dot(terms, 1 / (self.sample_ratio + a * self._weights))
        )

    def _level(self, a: float) -> float:
        """psi(a)."""
        if np.isinf(a):
            return 0.0
        return (
            float(self._share @ (self._weights / (self.sample_ratio + a * self._weights))) - 1 / a
        )

    def _root(self, j: int, end: float) -> float:
        """Find the parameter at which the j-th largest eigenvalue of P is one."""

        def gap(a: float) -> float:
            return float(np.linalg.eigvalsh(self._matrix(a))[self.rank - 1 - j]) - 1

        return float(brentq(gap, _small(end), end, xtol=_TOLERANCE * end, rtol=_TOLERANCE))


def _small(end: float) -> float:
    """Return a parameter so far left of the spectrum that nothing is beyond it."""
    return 1e-9 * end
