"""The Marchenko–Pastur law and its spiked extension, in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from traindyn import _validate
from traindyn._types import Array

_SMALL = 1 / 256
"""Ratio from which on the distribution function is a closed form, below it a series."""
_TERMS = 16
"""Terms of the series: powers of the root of the ratio, which is at most 1/16."""
_EXTREME = 300
"""Powers of two beyond which a variance is taken for the unit of the calculation."""
_TINY = np.finfo(np.float64).tiny
"""Derivatives below it have lost digits."""


class MarchenkoPastur:
    r"""Eigenvalue law of :math:`\frac1M \sum_i x_i x_i^T`, :math:`x_i \sim N(0, \sigma^2 I_d)`.

    The limit of the spectral measures whatever the law of the entries (MDL Theorem 6.6, whose
    ratio is one over this one).

    Parameters
    ----------
    ratio : float
        Dimensions per sample, ``c = d / M > 0``.
    variance : float
        :math:`\sigma^2 > 0`.

    Notes
    -----
    Spikes are measured relative to the noise: a direction in which the population
    covariance is :math:`\sigma^2 (1 + \ell)` instead of :math:`\sigma^2` has spike
    :math:`\ell > -1`.

    Examples
    --------
    >>> from traindyn.laws import MarchenkoPastur
    >>> law = MarchenkoPastur(0.25)
    >>> law.edges
    (0.25, 2.25)
    >>> law.is_supercritical(1.0), law.outlier(1.0), law.overlap(1.0)
    (True, 2.5, 0.6)
    """

    def __init__(self, ratio: float, variance: float = 1.0) -> None:
        self.ratio = _validate.positive("ratio", ratio)
        self.variance = _validate.positive("variance", variance)
        exponent = int(np.frexp(self.variance)[1])
        # A power of two changes no digit; without it products of extreme numbers would vanish.
        self._unit = 2.0 ** min(max(exponent, -1000), 1000) if abs(exponent) > _EXTREME else 1.0

    def __repr__(self) -> str:
        return f"MarchenkoPastur(ratio={self.ratio!r}, variance={self.variance!r})"

    @property
    def edges(self) -> tuple[float, float]:
        r"""Ends of the continuous part, :math:`\sigma^2 (1 \mp \sqrt c)^2`.

        The lower one is the limit of the smallest non-zero eigenvalue (MDL Theorem 7.5).
        """
        root = np.sqrt(self.ratio)
        return (
            float(self.variance * (1 - root) ** 2),
            float(self.variance * (1 + root) ** 2),
        )

    @property
    def atom(self) -> float:
        """Mass at zero, ``max(0, 1 - 1/c)``."""
        return max(0.0, 1 - 1 / self.ratio)

    @property
    def norm_error(self) -> float:
        r"""Limit of the operator norm of the sample covariance minus :math:`\sigma^2 I`.

        :math:`\sigma^2 (c + 2 \sqrt c)` (Bai and Yin): the upper edge is farther from
        :math:`\sigma^2` than the lower one, and than the atom.
        """
        return float(self.variance * (self.ratio + 2 * np.sqrt(self.ratio)))

    def density(self, x: ArrayLike) -> Array:
        """Density of the continuous part, of total mass ``1 - atom``.

        Parameters
        ----------
        x : array_like
            Any real numbers; the density is zero outside the edges.

        Returns
        -------
        ndarray
            Of the shape of `x`; infinite at 0 when ``c = 1``.
        """
        points = _validate.finite("x", x)
        low, high = (edge / self._unit for edge in self.edges)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            points = points / self._unit
            inside = np.maximum((points - low) * (high - points), 0.0)
            scale = 2 * np.pi * self.ratio * (self.variance / self._unit)
            values = np.sqrt(inside) / (scale * points) / self._unit
        if low == 0.0:
            return np.where(points == 0, np.inf, values)
        return np.where(inside > 0, values, 0.0)

    def cdf(self, x: ArrayLike) -> Array:
        """Cumulative distribution, atom included.

        Parameters
        ----------
        x : array_like
            Any real numbers.

        Returns
        -------
        ndarray
            Of the shape of `x`.
        """
        points = _validate.finite("x", x)
        low, high = self.edges
        c, s2 = self.ratio, self.variance
        inner = np.clip(points, low, high)
        # With x = s2 (1 + c + 2 sqrt(c) cos t) the density integrates to elementary functions.
        cosine = np.clip((inner / s2 - 1 - c) / (2 * np.sqrt(c)), -1.0, 1.0)
        continuous = (1 - self.atom) - self._tail(np.arccos(cosine))
        below = np.where(points >= 0, self.atom, 0.0)
        return np.where(points < low, below, np.clip(self.atom + continuous, 0.0, 1.0))

    @property
    def _narrow(self) -> bool:
        """Whether the bulk is so narrow, next to where it is, that closed forms cancel."""
        return not _SMALL <= self.ratio <= 1 / _SMALL

    def _tail(self, t: Array) -> Array:
        r"""Mass above :math:`\sigma^2 (1 + c + 2 \sqrt c \cos t)`.

        With r the smaller of :math:`\sqrt c` and its inverse, and z = r exp(it), it is
        :math:`\min(1, 1/c) (t - \psi + (\psi - r \sin t) / r^2) / \pi`, where
        :math:`\psi = \arg(1 + z)` has the series of the logarithm.
        """
        c = self.ratio
        root = np.sqrt(c)
        if self._narrow:
            r = min(root, 1 / root)
            k = np.arange(2, _TERMS + 1)
            terms = np.sin(np.multiply.outer(t, k)) * ((-1.0) ** (k + 1) / k)
            rest = (terms * r ** (k - 2.0)).sum(axis=-1)
            psi = r * np.sin(t) + r**2 * rest
            return np.asarray(min(1.0, 1 / c) * (t - psi + rest) / np.pi)
        # The last term is |1 - c| times an angle that grows from 0 to pi.
        twisted = 2 * np.arctan2(abs(1 - root) * np.sin(t / 2), (1 + root) * np.cos(t / 2))
        tail = ((1 + c) * t - 2 * root * np.sin(t) - abs(1 - c) * twisted) / (2 * np.pi * c)
        return np.asarray(tail)

    def quantile(self, share: ArrayLike) -> Array:
        """Smallest x at which the cumulative distribution reaches a share.

        Parameters
        ----------
        share : array_like
            In [0, 1].

        Returns
        -------
        ndarray
            Of the shape of `share`; zero up to the atom.

        Examples
        --------
        >>> from traindyn.laws import MarchenkoPastur
        >>> law = MarchenkoPastur(2.0)
        >>> law.quantile([0.5, 1.0]).round(4), law.cdf(law.quantile(0.8)).round(12)
        (array([0.    , 5.8284]), np.float64(0.8))
        """
        wanted = _validate.finite("share", share)
        if np.any((wanted < 0) | (wanted > 1)):
            raise ValueError(f"share must be in [0, 1], got {wanted.min():g} to {wanted.max():g}")
        return np.array([self._quantile(float(q)) for q in wanted.ravel()]).reshape(wanted.shape)

    def _quantile(self, share: float) -> float:
        low, high = self.edges
        if share <= self.atom and self.atom > 0:
            return 0.0
        if share <= 0 or share >= 1:
            return low if share <= 0 else high
        middle, half = (low + high) / 2, (high - low) / 2
        # in t, with x = middle - half cos t, the distribution function has no vertical tangent

        def excess(t: float) -> float:
            if self._narrow:  # the points themselves may not tell apart what t does
                return (1 - share) - float(self._tail(np.asarray(np.pi - t)))
            return float(self.cdf(middle - half * np.cos(t))) - share

        t = brentq(excess, 0, np.pi, xtol=1e-14)
        return float(middle - half * np.cos(t))

    def stieltjes(self, z: ArrayLike) -> Any:
        r"""Stieltjes transform :math:`s(z) = \int (x - z)^{-1} d\mu(x)` (MDL Section 7.2).

        At variance one it solves :math:`1 + z s = s / (1 + c s)` (MDL Section 6.3.1).

        Parameters
        ----------
        z : array_like
            Complex, or real outside the support (atom included).

        Returns
        -------
        complex or float ndarray
            Real for real input.

        Raises
        ------
        ValueError
            If a real point lies in the support, or the transform there is no finite number
            that can be computed: next to a pole, in units far from those of the variance.
        """
        points = _validate.finite_complex("z", z)
        result = self._stieltjes(points, self._units(points))
        return self._computed(result.real if np.isrealobj(points) else result, points)

    def _units(self, points: NDArray[Any]) -> Array:
        """Return the unit of each point: one, a power of two where that could overflow."""
        size = np.maximum(np.abs(points.real), np.abs(points.imag))
        exponent = np.frexp(np.maximum(size, self.variance))[1]
        powers = np.ldexp(1.0, np.clip(exponent, -1000, 1000))
        return np.where(np.abs(exponent) > _EXTREME, powers, 1.0)

    def _computed(self, result: NDArray[Any], points: NDArray[Any]) -> Any:
        """Return what was found at some points if it is finite."""
        bad = points[~np.isfinite(result)]
        if bad.size:
            raise ValueError(
                f"z must be where the transform can be computed, got {bad.flat[0]:.6g} "
                f"at variance {self.variance:.6g}"
            )
        return result[()]

    def _stieltjes(self, points: NDArray[Any], unit: Array) -> NDArray[Any]:
        """Return the complex transform at points outside the support."""
        low, high = self.edges
        real = points.imag == 0
        where = points.real[real]
        if np.any((where >= low) & (where <= high)) or (self.atom > 0 and np.any(where == 0)):
            raise ValueError(f"z must be complex or outside the support [{low:g}, {high:g}]")
        c, s2 = self.ratio, self.variance / unit
        w = points.astype(np.complex128) / unit
        with np.errstate(all="ignore"):
            # This product of roots has the branch cut on the support and grows like z.
            root = np.sqrt(w - low / unit) * np.sqrt(w - high / unit)
            # Two forms of the quadratic's solution. The first cancels nothing, except next to the
            # atom: there the second has the pole.
            first, second = s2 * (1 - c) - w - root, s2 * (1 - c) - w + root
            swap = (np.abs(first) < 0.5 * np.abs(second)) & (self.atom > 0)
            result = 2 / np.where(swap, 1.0, first)
            poles = second / np.where(swap, 2 * c * s2 * w, 1.0)
            return np.asarray(np.where(swap, poles, result) / unit)

    def stieltjes_derivative(self, z: ArrayLike) -> Any:
        r"""Differentiate the Stieltjes transform, :math:`s'(z) = \int (x - z)^{-2} d\mu(x)`.

        From the quadratic :math:`c \sigma^2 z s^2 + (z + \sigma^2 (c - 1)) s + 1 = 0`.

        Parameters
        ----------
        z : array_like
            As in :meth:`stieltjes`.

        Returns
        -------
        complex or float ndarray
            Real for real input.

        Raises
        ------
        ValueError
            As :meth:`stieltjes`; far from the bulk the derivative may be too small a number.

        Examples
        --------
        >>> from traindyn.laws import MarchenkoPastur
        >>> MarchenkoPastur(0.5).stieltjes_derivative(0.0).round(12)  # 1 / (1 - c)^3
        np.float64(8.0)
        """
        points = _validate.finite_complex("z", z)
        unit = self._units(points)
        c, s2, w = self.ratio, self.variance / unit, points / unit
        with np.errstate(all="ignore"):
            s = self.stieltjes(z) * unit
            found = -s * (1 + c * s2 * s) / (2 * c * s2 * w * s + w + s2 * (c - 1))
            result = np.asarray(found / unit / unit)
            # It is nowhere zero: so small a number has lost its digits, or all of itself.
            return self._computed(np.where(np.abs(result) < _TINY, np.nan, result), points)

    def is_supercritical(self, spike: float) -> bool:
        r"""Whether a spike leaves the bulk: :math:`\ell > \sqrt c`, or :math:`\ell < -\sqrt c`.

        Parameters
        ----------
        spike : float
            At least -1.
        """
        spike = self._spike(spike)
        return bool(abs(spike) > np.sqrt(self.ratio))

    def outlier(self, spike: float) -> float:
        r"""Eigenvalue a spike produces, :math:`\sigma^2 (1 + \ell)(1 + c / \ell)`.

        Parameters
        ----------
        spike : float
            At least -1.

        Returns
        -------
        float
            The edge it sticks to when the spike is not supercritical.
        """
        spike = self._spike(spike)
        if not self.is_supercritical(spike):
            return self.edges[1 if spike >= 0 else 0]
        return float(self.variance * (1 + spike) * (1 + self.ratio / spike))

    def overlap(self, spike: float) -> float:
        r"""Squared overlap of the outlier's eigenvector with the spike's direction.

        :math:`(1 - c / \ell^2) / (1 + c / \ell)`, zero when not supercritical.

        Parameters
        ----------
        spike : float
            At least -1.
        """
        spike = self._spike(spike)
        if not self.is_supercritical(spike):
            return 0.0
        # The square of a number may be none.
        lost = self.ratio / spike**2 if abs(spike) < 1e150 else self.ratio / spike / spike
        return float((1 - lost) / (1 + self.ratio / spike))

    @staticmethod
    def _spike(spike: float) -> float:
        value = _validate.number("spike", spike)
        if value < -1:
            raise ValueError(f"spike must be at least -1, got {spike!r}")
        return value
