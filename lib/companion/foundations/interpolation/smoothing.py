r"""Local averaging: nearest neighbours and Nadaraya–Watson with singular kernels.

Both average the labels of points near x. With the kernel :math:`K(u) = |u|^{-a} 1(|u| \le 1)`,
a > 0, the weight of a data point is infinite at the point itself, so the average passes through
every label and is smooth a little further on (MDL Section 5.2, after Belkin, Rakhlin and
Tsybakov).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.spatial import KDTree

from traindyn import _validate
from traindyn._types import Array

__all__ = [
    "PowerKernel",
    "ball_volume",
    "best_bandwidth",
    "nadaraya_watson",
    "nearest_neighbours",
    "neighbour_test_risk",
    "neighbour_training_risk",
    "smoothing_exponent",
]


@dataclass(frozen=True)
class PowerKernel:
    r"""The kernel :math:`K(u) = |u|^{-a}` on the unit ball, zero outside.

    Parameters
    ----------
    exponent : float
        a >= 0; zero is the box kernel. MDL Theorem 5.3 assumes 0 < a < d/2.

    Examples
    --------
    >>> from companion.foundations.interpolation.smoothing import PowerKernel
    >>> PowerKernel(0.5)([0.25, 1.0, 1.5]).tolist()
    [2.0, 1.0, 0.0]
    """

    exponent: float

    def __post_init__(self) -> None:
        """Check the exponent."""
        _validate.non_negative("exponent", self.exponent)

    def __call__(self, distance: ArrayLike) -> Array:
        """Weights at distances in units of the bandwidth; infinite at zero if a > 0."""
        r = np.asarray(distance, dtype=float)
        with np.errstate(divide="ignore"):
            return np.where(r <= 1, r**-self.exponent, 0.0)

    def integral(self, power: int, dimension: int) -> float:
        r"""Integral of :math:`K^j` over :math:`R^d`, :math:`|S^{d-1}| / (d - ja)`.

        Parameters
        ----------
        power : int
            j >= 1.
        dimension : int
            d >= 1.

        Raises
        ------
        ValueError
            If the integral is infinite, :math:`ja \ge d`.
        """
        j = _validate.integer("power", power, least=1)
        d = _validate.integer("dimension", dimension, least=1)
        if j * self.exponent >= d:
            raise ValueError(
                f"power times exponent must be below dimension = {d}, got {j * self.exponent:g}"
            )
        return d * ball_volume(d) / (d - j * self.exponent)


def ball_volume(dimension: int) -> float:
    r"""Volume of the unit ball, :math:`\pi^{d/2}/\Gamma(d/2+1)`."""
    d = _validate.integer("dimension", dimension, least=1)
    return float(np.exp(d / 2 * np.log(np.pi) - special.gammaln(d / 2 + 1)))


def smoothing_exponent(smoothness: float, dimension: float) -> float:
    r"""Exponent of the minimax rate, :math:`2\beta/(2\beta+d)` (MDL Theorem 5.3)."""
    beta, d = (
        _validate.positive("smoothness", smoothness),
        _validate.positive("dimension", dimension),
    )
    return 2 * beta / (2 * beta + d)


def best_bandwidth(n: ArrayLike, smoothness: float, dimension: float) -> Array:
    r"""Bandwidth of MDL Theorem 5.3, :math:`h = n^{-1/(d+2\beta)}`."""
    beta, d = (
        _validate.positive("smoothness", smoothness),
        _validate.positive("dimension", dimension),
    )
    count = _validate.positives("n", n)
    return np.asarray(count ** (-1 / (d + 2 * beta)))


def _design(x: ArrayLike, y: ArrayLike, query: ArrayLike) -> tuple[Array, Array, Array]:
    points = _validate.finite("x", x, shape=(None, None))
    labels = _validate.finite("y", y, shape=(len(points),))
    if not len(points):
        raise ValueError("x must have at least one row, got none")
    return points, labels, _validate.finite("query", query, shape=(None, points.shape[1]))


def nadaraya_watson(
    x: ArrayLike, y: ArrayLike, query: ArrayLike, *, bandwidth: float, kernel: PowerKernel
) -> Array:
    r"""Average of the labels in a ball about each query, weighted by a kernel.

    .. math:: f_n(x) = \frac{\sum_i Y_i K((x - X_i)/h)}{\sum_i K((x - X_i)/h)}

    and zero if no point is within h. With a singular kernel the value at a data point is its
    label, the limit of the formula (the mean of the labels if several points coincide); with the
    box kernel it is what the formula says.

    Parameters
    ----------
    x : array_like, shape (n, d)
        The points :math:`X_i`.
    y : array_like, shape (n,)
        Their labels :math:`Y_i`.
    query : array_like, shape (m, d)
        Where to average.
    bandwidth : float
        h > 0.
    kernel : PowerKernel
        K; singular where its exponent is positive.

    Returns
    -------
    ndarray, shape (m,)

    Raises
    ------
    ValueError
        If the shapes disagree or the bandwidth is not positive.

    Examples
    --------
    >>> from companion.foundations.interpolation.smoothing import PowerKernel, nadaraya_watson
    >>> x, y = [[0.0], [1.0]], [0.0, 2.0]
    >>> query = [[0.0], [0.5], [0.8], [5.0]]
    >>> nadaraya_watson(x, y, query, bandwidth=2.0, kernel=PowerKernel(0.4)).round(3).tolist()
    [0.0, 1.0, 1.27, 0.0]
    """
    points, labels, at = _design(x, y, query)
    h = _validate.positive("bandwidth", bandwidth)
    pairs = KDTree(at).sparse_distance_matrix(KDTree(points), h, output_type="ndarray")
    rows, columns, distance = pairs["i"], pairs["j"], pairs["v"]
    if kernel.exponent == 0:
        weights = np.ones(distance.size)
    else:
        # Relative to the nearest point: no overflow, and at a data point only it counts.
        nearest = KDTree(points).query(at)[0][rows]
        ratio = np.divide(nearest, distance, out=np.ones_like(distance), where=distance > 0)
        weights = ratio**kernel.exponent
    total = np.bincount(rows, weights, minlength=len(at))
    sums = np.bincount(rows, weights * labels[columns], minlength=len(at))
    return np.divide(sums, total, out=np.zeros(len(at)), where=total > 0)


def nearest_neighbours(x: ArrayLike, y: ArrayLike, query: ArrayLike, *, k: int) -> Array:
    """Mean of the labels of the k points nearest to each query (MDL Example 5.1).

    Parameters
    ----------
    x : array_like, shape (n, d)
        The points.
    y : array_like, shape (n,)
        Their labels.
    query : array_like, shape (m, d)
        Where to average.
    k : int
        In [1, n].

    Returns
    -------
    ndarray, shape (m,)

    Examples
    --------
    >>> from companion.foundations.interpolation.smoothing import nearest_neighbours
    >>> nearest_neighbours([[0.0], [1.0], [5.0]], [1.0, 3.0, 9.0], [[0.2]], k=2).tolist()
    [2.0]
    """
    points, labels, at = _design(x, y, query)
    k = _validate.integer("k", k, least=1, most=len(points))
    index = KDTree(points).query(at, k=np.arange(1, k + 1))[1]
    return np.asarray(labels[index].mean(axis=1))


def neighbour_test_risk(bias: ArrayLike, k: ArrayLike, noise: float) -> Array:
    r"""Squared error of k nearest neighbours on a new label, given the design (MDL Example 5.1).

    .. math:: \sigma^2 + b^2 + \sigma^2/k

    Parameters
    ----------
    bias : array_like
        b, the mean of f over the neighbours minus f at the point.
    k : array_like of int
        Number of neighbours, at least 1.
    noise : float
        Standard deviation :math:`\sigma` of the labels.
    """
    sigma2 = _validate.non_negative("noise", noise) ** 2
    b, count = _bias_and_count(bias, k)
    return np.asarray(sigma2 + b**2 + sigma2 / count)


def neighbour_training_risk(bias: ArrayLike, k: ArrayLike, noise: float) -> Array:
    r"""Squared error of k nearest neighbours on the labels averaged, given the design.

    At a data point the point itself is among its neighbours, so that the noise of its label
    counts with :math:`1 - 1/k`: :math:`b^2 + \sigma^2 (1 - 1/k)`, zero at k = 1.

    Parameters
    ----------
    bias, k, noise
        As in :func:`neighbour_test_risk`.
    """
    sigma2 = _validate.non_negative("noise", noise) ** 2
    b, count = _bias_and_count(bias, k)
    return np.asarray(b**2 + sigma2 * (1 - 1 / count))


def _bias_and_count(bias: ArrayLike, k: ArrayLike) -> tuple[Array, Array]:
    count = _validate.finite("k", k)
    if count.size and count.min() < 1:
        raise ValueError(f"k must be at least 1, got {count.min():g}")
    return _validate.finite("bias", bias), count
