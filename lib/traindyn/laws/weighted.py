r"""Eigenvalues of a weighted sample covariance whose weights depend on a few directions.

The matrix is

.. math:: A = \frac1M \sum_{i \le M} g_i x_i x_i^T \in \mathbb{R}^{d \times d},

where each :math:`x_i` has a component :math:`u_i` on a fixed span of r directions, i.i.d.
:math:`N(0, \sigma^2)` components orthogonal to it, and a weight :math:`g_i` of any sign
that may depend on :math:`u_i` but on nothing else. Every Hessian and G-matrix block of the
problems here is of this form with :math:`\sigma^2 = 1/\lambda` (BGHJ (3.2) and (3.3)
conditioned on the projections). With :math:`c = d / M` and d, M growing together:

*Bulk.* The Stieltjes transform s solves (leave-one-out expansion of the resolvent)

.. math:: \frac1s = -z + \sigma^2 E\Big[\frac{g}{1 + c \sigma^2 g s}\Big].

Put :math:`b = -1/s` and :math:`y = c \sigma^2 g`. Then

.. math:: z(b) = b + \frac1c E\Big[\frac{y\, b}{b - y}\Big], \qquad
          z'(b) = 1 - h(b), \quad h(b) = \frac1c E\Big[\frac{y^2}{(b - y)^2}\Big],

and everything is geometry of h, which is convex between its poles. Real b with h(b) < 1
are mapped by z, increasingly, onto the complement of the support, so the edges are z at
the solutions of h = 1. Over the other real u there is exactly one v > 0 with
:math:`E[y^2 / ((u - y)^2 + v^2)] = c`; then z(u + iv) is real, it increases with u, and the
density there is :math:`v / (\pi |u + iv|^2)`. (This is the parametrisation of a free
convolution with a semicircle: z is b plus a constant plus a Stieltjes transform.)

*Outliers.* On the span the resolvent is the inverse of (Schur complement)

.. math:: S(z) = E\Big[\frac{g\, u u^T}{1 + c \sigma^2 g s(z)}\Big] - z I
               = b\, E\Big[\frac{g\, u u^T}{b - y}\Big] - z I ,

whose eigenvalues decrease in z outside the support: outliers are its zeros, counted by a
change of inertia across each gap. For a null vector q the eigenvector's squared component
on the span, along q, is

.. math:: \frac{1}{-q^T S'(z) q}
          = \Big(1 + \frac{c \sigma^2}{1 - h(b)} E\Big[\frac{g^2 (q \cdot u)^2}{(b - y)^2}\Big]
            \Big)^{-1}.

*Negligible masses.* A weight of probability p puts a pole of reach
:math:`|y| \sqrt{p / c}` into h, which rounding hides for small p. Weights with
:math:`p < 10^{-20} \max(1, c)` are left out, as if they were zero. That changes a share p of the
samples and so, by the rank inequality, the distribution function of the law by at most the sum of
their :math:`p / c`. A matrix of M samples contains one of them with a probability of at most M
times the sum of their p.

*Units.* Poles far from one are divided by a power of two, which changes no digit of them, and the
results are multiplied by it.

At b = 0 (z = 0) S vanishes identically: that is the kernel of A, an atom of the law and no
outlier; a gap containing it has no others, because S keeps its sign on either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array

Complex = NDArray[np.complex128]

TRACY_WIDOM_MEAN = -1.2065335745820
"""Mean of the Tracy-Widom law of real symmetric matrices (beta = 1)."""

_MAX_STEPS = 100
_ROOT_TOLERANCE = 1e-13
"""Relative accuracy of roots in the variable b."""
_SETTLED = 1e-6
"""Relative change of a root that is believed after so many steps."""
_CURVE_POINTS = 801
"""Points per support interval of the tabulated density; odd."""
_SMALL_MASS, _FEWEST_POINTS = 1e-5, 33
"""Intervals of less mass get fewer points, of the same absolute error, but this many (odd)."""
_BINS = 4096
"""Weights beyond this number are binned, for the density only."""
_BATCH_ENTRIES = 2**21
"""Entries of one temporary (points times weights)."""
_CELL_WIDTH, _CELL_NODES = 1 / 256, 3
"""Width of a cell of poles, relative to its distance to a gap, and interpolation nodes in it.

The relative interpolation error is about 2 rho^-3 = 2e-9, with rho = t + sqrt(t^2 - 1) and
t = 1 + 2 * 256 the distance of the gap from the middle of the cell in half-widths."""
_NEGLIGIBLE = 1e-60
"""Weights this small, relative to the largest, are zero."""
_NEGLIGIBLE_MASS = 1e-20
"""Probability, and probability per dimension per sample, of weights that are left out."""
_ORDINARY = 2.0**60
"""Weights up to this size, and down to its inverse, are computed with as they are."""
_MAX_DOUBLINGS = 2100
"""More than lead from the smallest number to the largest."""
_DEGENERATE = 1e-9
"""Outliers this close, relative to their size, are treated as one eigenspace."""


@dataclass(frozen=True)
class Outliers:
    """Eigenvalues outside the support.

    Attributes
    ----------
    values : ndarray, shape (m,)
        Decreasing; a degenerate outlier is repeated.
    vectors : ndarray, shape (r, m)
        Direction, in the coordinates of the features, of each eigenvector's component on
        the span (unit columns; orthonormal within a degenerate outlier).
    overlaps : ndarray, shape (m,)
        Squared norm of that component.
    sides : ndarray of int, shape (m,)
        1 above the whole support, -1 below it, 0 in a gap between support intervals.
    """

    values: Array
    vectors: Array
    overlaps: Array
    sides: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Make the arrays read-only: laws keep the outliers that they have found."""
        for name, value in vars(self).copy().items():
            object.__setattr__(self, name, _validate.frozen(value))


class _Kernel(NamedTuple):
    """The functions z and z' of complex b, as sums over poles."""

    poles: Array
    slopes: Array
    squares: Array
    shift: float

    def z(self, b: Complex) -> tuple[Complex, Complex]:
        """z(b) and z'(b), in batches of bounded memory."""
        value, slope = np.empty_like(b), np.empty_like(b)
        batch = max(1, _BATCH_ENTRIES // self.poles.size)
        for first in range(0, b.size, batch):
            part = slice(first, first + batch)
            inverse = 1 / (b[part, None] - self.poles)
            value[part] = b[part] * (1 + inverse @ self.slopes) + self.shift
            np.multiply(inverse, inverse, out=inverse)
            slope[part] = 1 - inverse @ self.squares
        return value, slope


class _Gap(NamedTuple):
    """An open interval of b mapped onto one component of the complement of the support."""

    low: float
    high: float
    side: int


class WeightedMarchenkoPastur:
    r"""Law of :math:`\frac1M \sum_i g_i x_i x_i^T` for random weights of any sign.

    Parameters
    ----------
    weights : array_like, shape (n,)
        Values of g: draws of it, or the nodes of a quadrature or of a discrete law. The
        weights of one actual matrix give the law of that matrix.
    ratio : float
        Dimensions per sample, ``c = d / M > 0`` (use ``(d - r) / M`` for accuracy at
        finite size).
    variance : float
        :math:`\sigma^2 = 1/\lambda > 0`, of each component off the span.
    probabilities : array_like, shape (n,), optional
        Of the weights; uniform unless given. Weights of a probability below
        ``1e-20 * max(1, ratio)`` are left out, which changes the distribution function by at
        most :attr:`left_out`.

    Raises
    ------
    ValueError
        If an argument is out of range or all weights are zero, or if the weights left out are
        not a negligible part of the non-zero ones.

    Examples
    --------
    Equal weights give the classical law.

    >>> import numpy as np
    >>> from traindyn.laws import WeightedMarchenkoPastur
    >>> law = WeightedMarchenkoPastur([2.0], ratio=0.25)
    >>> law.edges.round(12)
    array([0.5, 4.5])

    A direction with second moment 2 instead of 1, spike 1 > sqrt(c):

    >>> outliers = law.outliers([[np.sqrt(2.0)]])
    >>> outliers.values.round(12), outliers.overlaps.round(12)
    (array([5.]), array([0.6]))
    """

    def __init__(
        self,
        weights: ArrayLike,
        ratio: float,
        variance: float = 1.0,
        *,
        probabilities: ArrayLike | None = None,
    ) -> None:
        given = _validate.finite("weights", weights, shape=(None,))
        if not np.any(given):
            raise ValueError("weights must not be all zero, got only zeros")
        self.ratio = _validate.positive("ratio", ratio)
        self.variance = _validate.positive("variance", variance)
        if probabilities is None:
            masses = np.full(given.size, 1 / given.size)
        else:
            masses = _validate.probability_vector("probabilities", probabilities)
            if masses.size != given.size:
                raise ValueError(
                    f"probabilities must have the {given.size} entries of weights, "
                    f"got {masses.size}"
                )
        # Powers of weights so far below the largest would underflow or overflow.
        given = np.where(np.abs(given) > _NEGLIGIBLE * np.abs(given).max(), given, 0.0)
        # The reach of such a pole is lost in rounding.
        small = (masses < _NEGLIGIBLE_MASS * max(1.0, self.ratio)) & (given != 0)
        lost, total = float(masses[small].sum()), float(masses[given != 0].sum())
        if lost > np.sqrt(_NEGLIGIBLE_MASS) * total:
            raise ValueError(
                f"ratio and probabilities must leave weights that are not negligible, got "
                f"non-zero weights of total probability {total:.3g}, of which {lost:.3g} is that "
                f"of weights below {_NEGLIGIBLE_MASS:g} * max(1, ratio), at ratio {self.ratio:g}"
            )
        given = np.where(small, 0.0, given)
        self._left_out = lost / self.ratio
        self._unit = self._power_of_two(float(np.abs(given).max()))
        self._given, self._given_masses = given, _validate.frozen(masses)
        # Zero weights contribute nothing below; equal ones are merged.
        scaled = self._in_units(given)
        self._poles, inverse = np.unique(scaled[given != 0], return_inverse=True)
        self._masses = np.bincount(inverse, weights=masses[given != 0])
        # h(b) = sum_i squares_i / (b - poles_i)^2.
        self._squares = self._masses * self._poles**2 / self.ratio
        # z(b) = b + b sum_i slopes_i / (b - poles_i), accurate near b = 0 too.
        self._slopes = self._masses * self._poles / self.ratio

    def _power_of_two(self, largest: float) -> float:
        """Return the unit of the poles: one, or a power of two where the largest is far from it."""
        with np.errstate(over="ignore", under="ignore"):
            if 1 / _ORDINARY <= np.float64(self.ratio) * self.variance * largest <= _ORDINARY:
                return 1.0
        exponent = sum(int(np.frexp(part)[1]) for part in (self.ratio, self.variance, largest))
        if abs(exponent) > 1000:
            raise ValueError(
                f"weights must have a product with ratio and variance between 1e-300 and 1e300, "
                f"got {largest:.3g} * {self.ratio:.3g} * {self.variance:.3g}"
            )
        return float(np.ldexp(1.0, exponent))

    def _in_units(self, given: Array) -> Array:
        """Poles of weights, in their unit."""
        if self._unit == 1:
            return np.asarray(self.ratio * self.variance * given)
        (ratio, first), (variance, second) = np.frexp(self.ratio), np.frexp(self.variance)
        rest = int(np.frexp(self._unit)[1]) - 1 - int(first) - int(second)
        return np.asarray(ratio * variance * np.ldexp(given, -rest))

    def __repr__(self) -> str:
        return (
            f"WeightedMarchenkoPastur(<{self._given.size} weights>, ratio={self.ratio!r}, "
            f"variance={self.variance!r})"
        )

    @property
    def left_out(self) -> float:
        """Largest error of the distribution function due to negligible masses."""
        return self._left_out

    @property
    def atom(self) -> float:
        """Mass at zero, ``max(0, 1 - P(g != 0) / c)``."""
        return max(0.0, 1 - float(self._masses.sum()) / self.ratio)

    @cached_property
    def intervals(self) -> Array:
        """Intervals of the continuous support, shape (n, 2), increasing."""
        inner = [self._z(b) for gap in self._gaps for b in (gap.low, gap.high) if np.isfinite(b)]
        return _validate.frozen(self._unit * np.array(inner).reshape(-1, 2))

    @property
    def edges(self) -> Array:
        """All ends of support intervals, increasing, shape (2 n,); the atom is no edge."""
        return self.intervals.ravel()

    def edge_scales(self, n: int) -> Array:
        r"""Width of the fluctuations of the extreme eigenvalue at each edge, shape (2 n,).

        An edge b of a support interval has density
        :math:`\sqrt{2|E - x| / |z''(b)|} / (\pi b^2)`; matching the integrated density of n
        eigenvalues to that of the Airy process gives the scale
        :math:`w = (b^2 \sqrt{|z''(b)|/2} / n)^{2/3}` such that the extreme eigenvalue is
        :math:`E \pm w\,TW_1` in the limit (mean :data:`TRACY_WIDOM_MEAN` outwards).

        Parameters
        ----------
        n : int
            Number of eigenvalues of the matrix.

        Returns
        -------
        ndarray
            In the order of :attr:`edges`.
        """
        count = _validate.integer("n", n, least=1)
        ends = [b for gap in self._gaps for b in (gap.low, gap.high) if np.isfinite(b)]
        curvature = np.array([abs(self._h(b)[1]) for b in ends])
        scales: Array = (np.square(ends) * np.sqrt(curvature / 2) / count) ** (2 / 3)
        return self._unit * scales

    def stieltjes(self, z: ArrayLike) -> Any:
        r"""Stieltjes transform :math:`s(z) = \int (x - z)^{-1} d\mu(x)`.

        Parameters
        ----------
        z : array_like
            Complex with non-zero imaginary part, or real outside the support.

        Returns
        -------
        ndarray
            Complex, or real for real input; of the shape of `z`.

        Raises
        ------
        ValueError
            If a real point lies in the support.
        FloatingPointError
            If the equation could not be solved.
        """
        given = _validate.finite_complex("z", z)
        with np.errstate(over="ignore"):
            points = given / self._unit
        if not np.isfinite(points).all():
            raise ValueError(
                f"z must be below 1e308 in units of the weights, {self._unit:.3g}, got "
                f"{np.abs(given).max():.3g}"
            )
        if np.isrealobj(points):
            flat = [self._real_b(float(point)) for point in points.ravel()]
            return -1 / np.array(flat, dtype=np.float64).reshape(points.shape) / self._unit
        if np.any(points.imag == 0):
            raise ValueError("z must be real, or have non-zero imaginary parts throughout")
        upper = np.where(points.imag > 0, points, points.conj()).ravel()
        values = (-1 / self._complex_b(upper)).reshape(points.shape) / self._unit
        return np.where(points.imag > 0, values, values.conj())

    def density(self, x: ArrayLike) -> Array:
        """Density of the continuous part, of total mass ``1 - atom``.

        Parameters
        ----------
        x : array_like
            Any real numbers; the density is zero outside the intervals.

        Returns
        -------
        ndarray
            Of the shape of `x`.

        Raises
        ------
        FloatingPointError
            If the equation could not be solved.
        """
        points = _validate.finite("x", x)
        with np.errstate(over="ignore"):
            flat = points.ravel() / self._unit
        values = np.zeros(flat.size)
        for (low, high), curve in zip(self.intervals / self._unit, self._curves):
            inside = (flat > low) & (flat < high)
            if not np.any(inside):
                continue
            wanted = flat[inside]
            # (Im b)^2 is smooth up to the edges, Im b is not.
            height = np.sqrt(np.interp(wanted, curve.x, curve.b.imag**2))
            guess = np.interp(wanted, curve.x, curve.b.real) + 1j * height
            b = self._newton(wanted.astype(np.complex128), guess, self._binned)
            values[inside] = _density(b) / self._unit
        return values.reshape(points.shape)

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution, atom included (absolute accuracy about 1e-5).

        Parameters
        ----------
        x : array_like
            Any real numbers.

        Returns
        -------
        ndarray
            Of the shape of `x`.
        """
        with np.errstate(over="ignore"):
            points = _validate.finite("x", x) / self._unit
        values = np.where(points >= 0, self.atom, 0.0)
        for curve in self._curves:
            values = values + np.interp(points, curve.x[::2], curve.mass)
        return np.clip(values, 0.0, 1.0)

    def outliers(self, features: ArrayLike) -> Outliers:
        r"""Eigenvalues outside the support caused by the dependence on a few directions.

        Parameters
        ----------
        features : array_like, shape (n, r)
            The projections u of each draw on an *orthonormal* basis of the span, row by row
            with the weights given to the law; :math:`u u^T` enters in full, noise included.

        Raises
        ------
        ValueError
            If `features` does not have one row per weight, or its squares overflow.
        FloatingPointError
            If the outliers could not be bracketed.
        """
        rows = _validate.finite("features", features, shape=(self._given.size, None))
        if rows.shape[1] == 0:
            raise ValueError(f"features must have at least one column, got shape {rows.shape}")
        span = _Span(self, rows)
        found = [pair for gap in self._gaps for pair in span.zeros(gap)]
        # Decreasing values; the sort is stable, so degenerate ones stay together.
        found.sort(key=lambda pair: -pair.value)
        return Outliers(
            values=self._unit * np.array([pair.value for pair in found]),
            vectors=np.array([pair.vector for pair in found]).reshape(-1, rows.shape[1]).T,
            overlaps=np.array([pair.overlap for pair in found]),
            sides=np.array([pair.side for pair in found], dtype=np.int64),
        )

    def _z(self, b: float) -> float:
        """z(b) for one real b; infinite at the far ends."""
        if np.isinf(b):
            return b
        return b * (1 + float(np.dot(self._slopes, 1 / (b - self._poles))))

    def _h(self, b: float) -> tuple[float, float]:
        """h(b) and its derivative for one real b."""
        inverse = 1 / (b - self._poles)
        terms = self._squares * inverse**2
        return float(terms.sum()), -2 * float(np.dot(terms, inverse))

    @cached_property
    def _gaps(self) -> list[_Gap]:
        """Components of {h < 1}, increasing."""
        poles = self._poles
        # |y_j| sqrt(p_j / c): where a pole's own term of h equals one.
        reach = np.sqrt(self._squares)
        # Two neighbouring poles alone keep h >= 1 in a gap of width below this bound, the
        # minimum over b of reach_1^2/(b-y_1)^2 + reach_2^2/(y_2-b)^2. It leaves only the
        # few gaps, far in the tails of the sample, that need looking at.
        cubed = np.cbrt(reach**2)
        wide = np.flatnonzero(np.diff(poles) ** 2 > (cubed[:-1] + cubed[1:]) ** 3)
        lowest, highest = float(poles[0] - reach[0]), float(poles[-1] + reach[-1])
        gaps = [_Gap(-np.inf, self._root(lowest, -1.0, -np.inf), -1)]
        for j in wide:
            low = self._root(poles[j] + reach[j], 1.0, poles[j + 1] - reach[j + 1])
            if np.isnan(low):
                continue
            high = self._root(poles[j + 1] - reach[j + 1], -1.0, poles[j] + reach[j])
            if low < high:
                gaps.append(_Gap(low, high, 0))
        gaps.append(_Gap(self._root(highest, 1.0, np.inf), np.inf, 1))
        return gaps

    def _root(self, start: float, direction: float, limit: float) -> float:
        """First root of h = 1 from `start` (where h >= 1) in `direction`; NaN if none.

        Newton on ``h^(-1/2) - 1``: a power mean of distances to the poles, h^(-1/2) is
        concave between them, so the steps approach the root without overshoot.
        """
        b = float(start)
        for _ in range(_MAX_STEPS):
            value, slope = self._h(b)
            slope *= direction
            if value <= 1:
                break
            if slope >= 0:
                return float("nan")
            step = 2 * (value - value**1.5) / slope
            b += direction * step
            if direction * (b - limit) >= 0:
                return float("nan")
            if step <= _ROOT_TOLERANCE * abs(b):
                break
        return b

    def _real_b(self, z: float) -> float:
        """Solve z(b) = z for real z outside the support."""
        if z == 0 and self.atom > 0:
            raise ValueError("z must not be 0, which carries an atom of the law")
        for gap in self._gaps:
            bottom, top = self._z(gap.low), self._z(gap.high)
            if bottom < z < top:
                break
        else:
            raise ValueError(
                f"z must be complex or outside the support {self.intervals}, got {self._unit * z}"
            )
        # z' <= 1, so this start lies between a finite end and the solution.
        b = gap.low + (z - bottom) if np.isfinite(bottom) else gap.high - (top - z)
        bracket = _Bracket(gap.low, gap.high)
        for step in range(1, _MAX_DOUBLINGS):
            misfit = z - self._z(b)
            bracket.update(b, misfit)
            new = bracket.inside(b + misfit / (1 - self._h(b)[0]))
            if abs(new - b) <= _ROOT_TOLERANCE * abs(b):
                return new
            # Next to an edge rounding keeps it moving; next to zero it takes halvings first.
            settled = step == _MAX_STEPS and abs(new - b) <= _SETTLED * abs(b)
            b = new
            if settled:
                break
        return b

    @cached_property
    def _exact(self) -> _Kernel:
        return _Kernel(self._poles, self._slopes, self._squares, 0.0)

    @cached_property
    def _binned(self) -> _Kernel:
        """Few poles, for the density: total and centre of `squares` kept in each bin."""
        poles, squares = self._poles, self._squares
        if poles.size <= _BINS:
            return self._exact
        # Bins of equal count resolve the bulk of the weights, bins of equal width their
        # tails; no bin straddles zero.
        count = np.arange(0, poles.size, 2 * poles.size / _BINS).astype(np.int64)
        width = np.searchsorted(poles, np.linspace(poles[0], poles[-1], _BINS // 2))
        sign = np.searchsorted(poles, [0.0])
        starts = np.unique(np.concatenate([count, width, sign]))
        starts = starts[starts < poles.size]
        total = np.add.reduceat(squares, starts)
        centre = np.add.reduceat(squares * poles, starts) / total
        slopes = total / centre
        return _Kernel(centre, slopes, total, float(self._slopes.sum() - slopes.sum()))

    def _complex_b(self, z: Complex) -> Complex:
        """Solve z(b) = z in the upper half-plane."""
        # The averaged iteration b <- (b + z - H(b)) / 2, with z(b) = b + H(b), maps the
        # half-plane into itself and is a contraction there (H has negative imaginary part);
        # it brings Newton within reach from anywhere.
        b = z + 1j * np.sqrt(self._squares.sum())
        for _ in range(20):
            b = b + (z - self._exact.z(b)[0]) / 2
        return self._newton(z, b, self._exact)

    def _newton(self, z: Complex, b: Complex, kernel: _Kernel) -> Complex:
        """Newton iteration in the upper half-plane, with the averaged step as a fallback."""
        b = b.copy()
        active = np.arange(b.size)
        for _ in range(10 * _MAX_STEPS):
            value, slope = kernel.z(b[active])
            misfit = z[active] - value
            with np.errstate(divide="ignore", invalid="ignore"):
                step = misfit / slope
            # Near an edge Newton may leave the half-plane or jump far; average instead.
            unsafe = ~np.isfinite(step) | (np.abs(step) > 0.5 * b[active].imag)
            step = np.where(unsafe, misfit / 2, step)
            b[active] += step
            # At an edge z is stationary, so that a tiny misfit is all one can ask for.
            scale = np.abs(b[active])
            done = (np.abs(step) <= 1e-12 * scale) | (np.abs(misfit) <= 1e-14 * scale)
            active = active[~done]
            if active.size == 0:
                return b
        raise FloatingPointError(
            f"z must be solvable for, got no convergence at {self._unit * z[active[0]]} and "
            f"{active.size - 1} other points"
        )

    @cached_property
    def _curves(self) -> list[_Curve]:
        """The density over each support interval, parametrised by Re b."""
        bounds = [b for gap in self._gaps for b in (gap.low, gap.high) if np.isfinite(b)]
        below = np.concatenate([[0.0], np.cumsum(self._masses)])
        curves = []
        for low, high in zip(bounds[::2], bounds[1::2]):
            first, last = np.searchsorted(self._poles, [low, high])
            mass = (below[last] - below[first]) / self.ratio
            count = _CURVE_POINTS * np.sqrt(min(1.0, mass / _SMALL_MASS))
            # Points crowd towards both ends, where the density has a square-root edge.
            angle = np.linspace(0, np.pi, max(_FEWEST_POINTS, 2 * int(count / 2) + 1))
            u = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
            b = u + 1j * self._heights(u)
            b[[0, -1]] = low, high
            x = self._binned.z(b)[0].real
            x[[0, -1]] = self._z(low), self._z(high)
            # The midpoint rule, as the density may be infinite at an end (a hard edge at 0).
            steps = np.diff(x[::2]) * _density(b[1::2])
            curves.append(_Curve(x, b, np.concatenate([[0.0], np.cumsum(steps)])))
        return curves

    def _heights(self, u: Array) -> Array:
        """Find the v > 0 with ``f = sum squares / ((u - y)^2 + v^2) = 1`` for each u.

        Zero where there is none. Newton on ``1 - 1/f`` in ``w = v^2``: as 1/f is a harmonic
        mean of functions linear in w, it is concave and increasing, so the steps from below
        never overshoot.
        """
        poles, squares = self._binned.poles, self._binned.squares
        w = np.zeros(u.size)
        batch = max(1, _BATCH_ENTRIES // poles.size)
        for first in range(0, u.size, batch):
            part = slice(first, first + batch)
            distance = (u[part, None] - poles) ** 2
            # A single pole already forces w >= squares - distance.
            current = np.maximum((squares - distance).max(axis=1), np.finfo(float).tiny)
            for _ in range(_MAX_STEPS):
                inverse = 1 / (distance + current[:, None])
                value = inverse @ squares
                slope = (inverse * inverse) @ squares
                step = np.where(value > 1, value * (value - 1) / slope, 0.0)
                current = current + step
                if np.all(step <= 1e-13 * current):
                    break
            w[part] = current
        return np.sqrt(w)


class _Curve(NamedTuple):
    """Points (x, b) over one support interval, and the mass below every second one."""

    x: Array
    b: Complex
    mass: Array


class _Zero(NamedTuple):
    """One outlier."""

    value: float
    vector: Array
    overlap: float
    side: int


class _Span:
    """The resolvent on the span of the features, as a function of b.

    Sums over draws of ``f(y) g u u^T``, with ``f(y) = b / (b - y)`` smooth as long as b is in
    a gap, are replaced by sums over a few hundred nodes: draws are grouped by their poles
    into cells that are small compared with the distance to the nearest gap, and f is
    interpolated in each cell. That costs a few passes over the draws, however many
    outliers there are and however close to each other.
    """

    def __init__(self, law: WeightedMarchenkoPastur, features: Array) -> None:
        self.law, self.rank = law, features.shape[1]
        used = np.flatnonzero(law._given)
        poles = law._in_units(law._given[used])
        order = np.argsort(poles)
        used, poles = used[order], poles[order]
        weights = law._given[used] / law._unit * law._given_masses[used]
        nodes, moments = [], []
        for first, last in self._cells(poles):
            rows = features[used[first:last]]
            centres, shares = _interpolation(poles[first:last])
            shares *= weights[first:last, None]
            spread = (shares[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
            nodes.append(centres)
            with np.errstate(over="ignore", invalid="ignore"):
                product = spread.T @ rows
            moments.append(product.reshape(centres.size, self.rank, self.rank))
        self.nodes = np.concatenate(nodes)
        joined = np.concatenate(moments)
        if not np.isfinite(joined).all():
            raise ValueError(
                "features must have products with each other and the weights below 1e308, got "
                f"features up to {np.abs(features[used]).max():.3g}"
            )
        self.moments = ((joined + joined.transpose(0, 2, 1)) / 2).reshape(self.nodes.size, -1)

    def _cells(self, poles: Array) -> list[tuple[int, int]]:
        """Ranges of sorted poles, narrow compared with their distance to every gap."""
        ends = np.array([b for gap in self.law._gaps for b in (gap.low, gap.high)])
        cells, first = [], 0
        while first < poles.size:
            distance = float(np.abs(ends - poles[first]).min())
            # The distance shrinks by at most the width of the cell on the way across it.
            width = distance * _CELL_WIDTH / (1 + _CELL_WIDTH)
            last = int(np.searchsorted(poles, poles[first] + width, side="right"))
            cells.append((first, last))
            first = last
        return cells

    def matrix(self, b: float) -> Array:
        """S(z(b)), shape (r, r)."""
        result = ((b / (b - self.nodes)) @ self.moments).reshape(self.rank, self.rank)
        return result - self.law._z(b) * np.eye(self.rank)

    def descent(self, b: float, vectors: Array) -> Array:
        """``-V^T (dS/db) V``, shape (m, m), for the columns V of `vectors`; positive definite."""
        slope = ((self.nodes / (b - self.nodes) ** 2) @ self.moments).reshape(self.rank, self.rank)
        unit = (1 - self.law._h(b)[0]) * np.eye(vectors.shape[1])
        result: Array = vectors.T @ slope @ vectors + unit
        return result

    def norm(self, b: float, vectors: Array) -> Array:
        """``-V^T (dS/dz) V``, shape (m, m), for the columns V of `vectors`."""
        return self.descent(b, vectors) / (1 - self.law._h(b)[0])

    def zeros(self, gap: _Gap) -> list[_Zero]:
        """Outliers in one gap."""
        if gap.low < 0 < gap.high:
            return []
        table = _Branches(self, gap)
        roots = [(table.root(j), j) for j in table.crossing]
        found: list[_Zero] = []
        while roots:
            b, first = roots[0]
            group = [j for root, j in roots if abs(root - b) <= _DEGENERATE * abs(b)]
            roots = roots[len(group) :]
            vectors = np.linalg.eigh(self.matrix(b))[1][:, ::-1][:, first : first + len(group)]
            # Within a degenerate outlier the metric picks the eigenvectors' directions.
            norms, rotation = np.linalg.eigh(self.norm(b, vectors))
            value = self.law._z(b)
            found += [
                _Zero(value, vectors @ column, float(1 / norm), gap.side)
                for norm, column in zip(norms, rotation.T)
            ]
        return found


class _Branches:
    """Eigenvalues of S(z(b)) in one gap: each one, in decreasing order, decreases with b.

    Every evaluation narrows the brackets of all branches.
    """

    def __init__(self, span: _Span, gap: _Gap) -> None:
        self.span = span
        self.brackets = [_Bracket(gap.low, gap.high) for _ in range(span.rank)]
        self.known: dict[float, tuple[Array, Array]] = {}
        positive = [span.rank, 0]
        for side, end in enumerate((gap.low, gap.high)):
            if np.isfinite(end):
                positive[side] = int(np.count_nonzero(self._evaluate(end)[0] > 0))
        # Branches positive at the low end and not at the high end.
        self.crossing = range(positive[1], positive[0])
        if self.crossing and not np.isfinite(gap.high - gap.low):
            self._reach(gap)

    def _evaluate(self, b: float) -> tuple[Array, Array]:
        """Eigenvalues (decreasing) and eigenvectors at b."""
        if b not in self.known:
            values, vectors = np.linalg.eigh(self.span.matrix(b))
            self.known[b] = values[::-1], vectors[:, ::-1]
            for value, bracket in zip(values[::-1], self.brackets):
                bracket.update(b, value)
        return self.known[b]

    def _reach(self, gap: _Gap) -> None:
        """Bracket every crossing of an unbounded gap."""
        finite, direction = (gap.high, -1.0) if np.isinf(gap.low) else (gap.low, 1.0)
        width = max(float(np.abs(self._evaluate(finite)[0]).max()), abs(finite))
        for _ in range(_MAX_DOUBLINGS):
            if not np.isfinite(width):
                break
            values = self._evaluate(finite + direction * width)[0][list(self.crossing)]
            if np.all(direction * values < 0):
                return
            width *= 2
        raise FloatingPointError(
            f"weights and features must have outliers below 1e308, found none up to {width:g}"
        )

    def root(self, j: int) -> float:
        """Zero of branch j by Newton's method, kept inside its bracket."""
        bracket = self.brackets[j]
        # The nearest known points start it; both are finite here.
        b = min((bracket.low, bracket.high), key=lambda end: abs(self._evaluate(end)[0][j]))
        for _ in range(_MAX_STEPS):
            values, vectors = self._evaluate(b)
            scale = max(float(np.abs(values).max()), abs(self.span.law._z(b)))
            if abs(values[j]) <= 1e-15 * scale:
                return b
            slope = float(self.span.descent(b, vectors[:, [j]])[0, 0])
            # An infinite step ends in the middle of the bracket.
            with np.errstate(over="ignore"):
                step = values[j] / max(slope, np.finfo(float).tiny)
            new = bracket.inside(b + float(step))
            # Convergence is quadratic: the step after this one would be invisible.
            if abs(new - b) <= np.sqrt(_ROOT_TOLERANCE) * abs(b):
                return new
            b = new
        return b


class _Bracket:
    """An interval in which a decreasing function changes sign."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def update(self, b: float, value: float) -> None:
        """Narrow the interval with the function's value at b."""
        if value > 0:
            self.low = max(self.low, b)
        else:
            self.high = min(self.high, b)

    def inside(self, b: float) -> float:
        """Return b if it is inside, else a point that is."""
        if self.low < b < self.high:
            return b
        if np.isinf(self.low):
            return self.high - max(abs(self.high), 1.0)
        if np.isinf(self.high):
            return self.low + max(abs(self.low), 1.0)
        return (self.low + self.high) / 2


def _interpolation(poles: Array) -> tuple[Array, Array]:
    """Nodes (m,) and shares (n, m): ``f(poles) = shares @ f(nodes)`` for smooth f."""
    if poles.size <= _CELL_NODES:
        return poles, np.eye(poles.size)
    middle, half = (poles[0] + poles[-1]) / 2, (poles[-1] - poles[0]) / 2
    if half == 0:
        return poles[:1], np.ones((poles.size, 1))
    points = np.cos(np.pi * (np.arange(_CELL_NODES) + 0.5) / _CELL_NODES)
    # Lagrange polynomials of Chebyshev points, through their discrete orthogonality.
    coefficients = 2 / _CELL_NODES * chebvander(points, _CELL_NODES - 1).T
    coefficients[0] /= 2
    shares = chebvander((poles - middle) / half, _CELL_NODES - 1) @ coefficients
    return middle + half * points, shares


def _density(b: Complex) -> Array:
    """``Im s / pi`` with ``s = -1/b``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = b.imag / (np.pi * np.abs(b) ** 2)
    return np.where(b == 0, np.inf, values)
