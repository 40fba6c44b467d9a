r"""Where outliers of a block meet the edge of its bulk: critical ratios, precisions and times.

A diagonal block is :math:`\frac1M\sum_i g_iY_iY_i^\top` with weights g that depend on the
projections u of the inputs on the span of means and parameters (:mod:`traindyn.laws.weighted`).
Write a point off the support of the bulk as :math:`b=\frac{c}{\lambda}\gamma` with
:math:`c=1/\alpha`, and put :math:`\omega=g/(\gamma-g)`. Then :math:`z'(b)=1-\alpha E[\omega^2]`
and :math:`S(z(b))=b\,(\alpha T(\gamma)-I)` with

.. math:: T(\gamma) = E\big[\omega\,(\lambda uu^\top - I)\big],

so that the upper edge is at :math:`\alpha E[\omega^2]=1`, or at the supremum of the weights if
:math:`\alpha E[\omega^2]<1` there, and as many outliers lie above it as eigenvalues of
:math:`\alpha T` exceed one. The ratio alpha enters through gamma alone: the critical ratios are
those at which an eigenvalue of T equals :math:`E[\omega^2]`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from traindyn import _validate, gaussian
from traindyn._types import Array
from traindyn.problems.base import MATRICES, Matrix
from traindyn.problems.k_gmm import KGaussianMixture, Statistics
from traindyn.problems.k_gmm.mixture import softmax

__all__ = ["EdgeLaw", "critical_precision", "crossing_times", "edge_law"]

_SUPREMUM = {"hessian": 0.25, "g_matrix": 1.0}
"""Least upper bound of the weights: of ``pi (1 - pi)`` and of ``(y - pi)^2``."""
_DISTANCES = np.geomspace(1e-9, 1e4, 105)
"""Grid of gamma less the supremum, relative to it, on which changes of sign are looked for."""
_SAME_PLANE = 1e-9
"""Singular values of the parameters, relative to the largest, that count as zero."""


@dataclass(frozen=True)
class EdgeLaw:
    r"""Law of the weights of a block and of what goes with them, at given statistics.

    Attributes
    ----------
    weights : ndarray, shape (n,)
        Positive values of g.
    masses : ndarray, shape (n,)
        Their probabilities.
    spikes : ndarray, shape (n, r, r)
        Means of :math:`\lambda uu^\top-I` at these weights.
    supremum : float
        Least upper bound of the weights, which nodes need not reach.

    Raises
    ------
    ValueError
        If shapes disagree, masses are no probabilities, or a weight exceeds `supremum` or is
        not positive.
    """

    weights: Array
    masses: Array
    spikes: Array
    supremum: float

    def __post_init__(self) -> None:
        """Convert and check every field."""
        weights = _validate.positives("weights", self.weights, shape=(None,))
        masses = _validate.probability_vector("masses", self.masses)
        spikes = _validate.finite("spikes", self.spikes, shape=(weights.size, None, None))
        if masses.size != weights.size or spikes.shape[1] != spikes.shape[2]:
            raise ValueError(
                f"masses and spikes must have shapes (n,) and (n, r, r) with n = {weights.size}, "
                f"got {masses.shape} and {spikes.shape}"
            )
        supremum = _validate.positive("supremum", self.supremum)
        if weights.max() > supremum * (1 + 1e-12):
            raise ValueError(
                f"supremum must not be below the largest weight {weights.max():g}, got {supremum:g}"
            )
        for name, value in (("weights", weights), ("masses", masses), ("spikes", spikes)):
            object.__setattr__(self, name, _validate.frozen(value))

    def _tilted(self, gamma: float) -> Array:
        """``omega = g / (gamma - g)`` at the nodes."""
        return np.asarray(self.weights / (gamma - self.weights))

    def spread(self, gamma: float) -> float:
        r"""Return :math:`E[\omega^2]`, which is :math:`1/\alpha` at a regular edge.

        Parameters
        ----------
        gamma : float
            At least the supremum of the weights.
        """
        return float(self.masses @ self._tilted(self._beyond(gamma)) ** 2)

    def levels(self, gamma: float) -> Array:
        r"""Eigenvalues of :math:`T(\gamma)=E[\omega(\lambda uu^\top-I)]`, decreasing, shape (r,).

        Parameters
        ----------
        gamma : float
            At least the supremum of the weights.
        """
        return np.asarray(np.linalg.eigvalsh(self._matrix(self._beyond(gamma)))[::-1])

    def _matrix(self, gamma: float) -> Array:
        rank = self.spikes.shape[1]
        flat = self.spikes.reshape(len(self.weights), -1)
        return np.asarray((self.masses * self._tilted(gamma)) @ flat).reshape(rank, rank)

    def _beyond(self, gamma: float) -> float:
        gamma = float(_validate.positive("gamma", gamma))
        if gamma < self.supremum:
            raise ValueError(
                f"gamma must be at least the supremum of the weights, {self.supremum:g}, "
                f"got {gamma:g}"
            )
        # A node at the supremum itself would divide by zero.
        return max(gamma, self.supremum * (1 + float(_DISTANCES[0])))

    @property
    def rigid_below(self) -> float:
        r"""Ratio :math:`\alpha_0=1/E[(g/(g_+-g))^2]` below which the edge is at the supremum.

        There the density has no square-root edge. It is zero, up to the resolution of the
        nodes, where the weights have a density at their supremum.
        """
        return 1 / self.spread(self.supremum)

    def edge(self, sample_ratio: float) -> float:
        r"""Return gamma at the upper edge: :math:`\alpha E[\omega^2]=1`, or the supremum.

        Parameters
        ----------
        sample_ratio : float
            Samples per dimension, alpha.
        """
        alpha = _validate.positive("sample_ratio", sample_ratio)
        if alpha <= self.rigid_below:
            return self.supremum

        def excess(gamma: float) -> float:
            return alpha * self.spread(gamma) - 1

        # E[omega^2] <= (supremum / (gamma - supremum))^2, so that the edge lies before this.
        last = self.supremum * (1 + 2 * np.sqrt(alpha))
        return float(brentq(excess, self.supremum, last, xtol=1e-15, rtol=1e-13))

    def margins(self, sample_ratio: float) -> Array:
        r"""Eigenvalues of :math:`\alpha T` at the upper edge, decreasing, shape (r,).

        As many outliers lie above the bulk as there are entries above one.

        Parameters
        ----------
        sample_ratio : float
            Samples per dimension, alpha.
        """
        return np.asarray(sample_ratio * self.levels(self.edge(sample_ratio)))

    def critical_ratios(self, rank: int) -> Array:
        """Return the ratios at which an outlier meets the edge, increasing, shape (m,).

        All changes of sign on a grid of gamma are refined, so that two within about a third of
        the distance of gamma from the supremum are missed.

        Parameters
        ----------
        rank : int
            Of the outlier, from the top; 0 for the first.
        """
        j = _validate.integer("rank", rank, least=0, most=self.spikes.shape[1] - 1)
        found = []
        level = float(self.levels(self.supremum)[j])
        if level > 0 and 1 / level < self.rigid_below:
            found.append(1 / level)

        def excess(gamma: float) -> float:
            return float(self.levels(gamma)[j]) - self.spread(gamma)

        grid = self.supremum * (1 + _DISTANCES)
        above = np.array([excess(gamma) for gamma in grid]) > 0
        for n in np.flatnonzero(above[1:] != above[:-1]):
            found.append(1 / self.spread(brentq(excess, grid[n], grid[n + 1], rtol=1e-13)))
        return np.sort(found)

    def overlap(self, sample_ratio: float, rank: int) -> float:
        r"""Squared part, on the span, of the eigenvector of an outlier; zero if there is none.

        It is :math:`(1+\alpha E[\omega^2((q\cdot s q)+1)]/(1-\alpha E[\omega^2]))^{-1}` with the
        spikes s, at the gamma at which the eigenvalue of :math:`\alpha T` with eigenvector q is
        one. At a regular edge it vanishes; at the supremum it does not.

        Parameters
        ----------
        sample_ratio : float
            Samples per dimension, alpha.
        rank : int
            Of the outlier, from the top; 0 for the first.
        """
        j = _validate.integer("rank", rank, least=0, most=self.spikes.shape[1] - 1)
        edge = self.edge(sample_ratio)

        def excess(gamma: float) -> float:
            return sample_ratio * float(self.levels(gamma)[j]) - 1

        if excess(edge) <= 0:
            return 0.0
        beyond = 2 * edge
        while excess(beyond) > 0:
            beyond *= 2
        gamma = brentq(excess, edge, beyond, rtol=1e-13)
        q = np.linalg.eigh(self._matrix(gamma))[1][:, ::-1][:, j]
        squared = self.masses * self._tilted(gamma) ** 2
        above = sample_ratio * float(squared @ (self.spikes @ q @ q + 1))
        return 1 / (1 + above / (1 - sample_ratio * float(squared.sum())))


def edge_law(
    problem: KGaussianMixture,
    statistics: Statistics,
    matrix: Matrix,
    a: int = 0,
    *,
    order: int = 16,
) -> EdgeLaw:
    r"""Return the law of the weights of a diagonal block at given summary statistics.

    Only the projections on the parameters are integrated numerically, by a tensor rule: off
    their span P the noise is independent of the weight, and the mean of
    :math:`\lambda uu^\top-I` given the projections is :math:`\lambda vv^\top-P` with v the mean
    of the class plus the noise in the span.

    Parameters
    ----------
    problem : KGaussianMixture
        Mixture of Gaussians with softmax regression.
    statistics : Statistics
        Of one point, with a non-zero parameter.
    matrix : {"hessian", "g_matrix"}
        Which of the two; neither contains the ridge.
    a : int
        Class whose block it is.
    order : int
        Nodes of the rule in each of at most k directions.

    Raises
    ------
    ValueError
        If the parameters vanish, or an argument is out of range.

    Examples
    --------
    Two classes after a training that left the overlaps ``0.5, -0.5``: the outlier along the sum
    of the means exists if and only if alpha exceeds its critical value.

    >>> import numpy as np
    >>> from companion.alignment.transitions import edge_law
    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(2, 100, precision=4.0, ridge=0.05)
    >>> at = type(problem.initial_statistics())(0.5 * (2 * np.eye(2) - 1), 0.5 * np.eye(2))
    >>> law = edge_law(problem, at, "hessian", order=40)
    >>> critical = float(law.critical_ratios(0)[0])
    >>> round(critical, 3), [int(np.sum(law.margins(f * critical) > 1)) for f in (0.99, 1.01)]
    (0.334, [0, 1])
    """
    _validate.instance("problem", problem, KGaussianMixture)
    _validate.choice("matrix", matrix, MATRICES)
    a = _validate.integer("a", a, least=0, most=problem.k - 1)
    order = _validate.integer("order", order, least=2)
    small, point = problem.embed(statistics)
    values, rows = np.linalg.svd(point.x, full_matrices=False)[1:]
    if values[0] == 0:
        raise ValueError("statistics must have a non-zero parameter, got zero parameters")
    rows = rows[values > _SAME_PLANE * values[0]]
    rule = gaussian.gauss_hermite(len(rows), order)
    v = small.means[:, None, :] + rule.nodes @ rows / np.sqrt(problem.precision)
    v = v.reshape(-1, small.dimension)
    probability = softmax(v @ point.x.T)[:, a]
    own = np.repeat(np.arange(problem.k) == a, rule.size)
    squared = (own - probability) ** 2
    weights = probability * (1 - probability) if matrix == "hessian" else squared
    masses = np.outer(problem.weights, rule.weights).ravel()
    # Weights that underflow to zero contribute nothing.
    used = (weights > 0) & (masses > 0)
    spikes = problem.precision * v[used, :, None] * v[used, None, :] - rows.T @ rows
    kept = masses[used] / masses[used].sum()
    return EdgeLaw(np.minimum(weights[used], _SUPREMUM[matrix]), kept, spikes, _SUPREMUM[matrix])


def critical_precision(
    problem: KGaussianMixture,
    statistics: Statistics,
    matrix: Matrix,
    a: int = 0,
    *,
    sample_ratio: float,
    rank: int,
    low: float,
    high: float,
    order: int = 16,
) -> float:
    """Return the precision at which an outlier meets the edge, at fixed statistics.

    Parameters
    ----------
    problem : KGaussianMixture
        Its own precision does not enter.
    statistics, matrix, a, order
        As for :func:`edge_law`.
    sample_ratio : float
        Samples per dimension, alpha.
    rank : int
        Of the outlier, from the top; 0 for the first.
    low, high : float
        Precisions between which the outlier appears or disappears.

    Raises
    ------
    ValueError
        If the outlier exists at both ends or at none.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.alignment.transitions import critical_precision
    >>> from traindyn.problems import KGaussianMixture
    >>> problem = KGaussianMixture.orthonormal(2, 100, precision=4.0, ridge=0.05)
    >>> at = type(problem.initial_statistics())(0.5 * (2 * np.eye(2) - 1), 0.5 * np.eye(2))
    >>> found = critical_precision(problem, at, "hessian", sample_ratio=0.334, rank=0, low=1,
    ...                            high=20, order=40)
    >>> round(found, 1)
    4.0
    """
    _validate.instance("problem", problem, KGaussianMixture)
    last = problem.embed(statistics)[0].dimension - 1
    j = _validate.integer("rank", rank, least=0, most=last)
    low, high = _validate.positive("low", low), _validate.positive("high", high)

    def excess(logarithm: float) -> float:
        other = replace(problem, precision=float(np.exp(logarithm)))
        law = edge_law(other, statistics, matrix, a, order=order)
        return float(law.margins(sample_ratio)[j]) - 1

    ends = [excess(float(np.log(end))) for end in (low, high)]
    if ends[0] * ends[1] >= 0:
        raise ValueError(
            f"low and high must have the outlier at one end only, got margins {ends[0]:g} and "
            f"{ends[1]:g} beyond one at {low:g} and {high:g}"
        )
    return float(np.exp(brentq(excess, np.log(low), np.log(high), xtol=1e-10)))


def crossing_times(times: ArrayLike, ratios: ArrayLike, sample_ratio: float) -> Array:
    r"""Return the times at which the critical ratio passes the given one, shape (m,).

    Parameters
    ----------
    times : array_like, shape (T,)
        Increasing.
    ratios : array_like, shape (T,)
        Critical ratios at these times; linear in between, in the logarithm.
    sample_ratio : float
        Samples per dimension, alpha.

    Returns
    -------
    ndarray
        An outlier leaves the edge for the bulk where the critical ratio rises above alpha.

    Examples
    --------
    >>> from companion.alignment.transitions import crossing_times
    >>> crossing_times([0.0, 1.0, 2.0], [4.0, 1.0, 4.0], 2.0)
    array([0.5, 1.5])
    """
    t = _validate.increasing("times", times)
    gap = np.log(_validate.positives("ratios", ratios, shape=t.shape))
    gap = gap - np.log(_validate.positive("sample_ratio", sample_ratio))
    change = np.flatnonzero((gap[1:] > 0) != (gap[:-1] > 0))
    return np.asarray(
        t[change] + (t[change + 1] - t[change]) * gap[change] / (gap[change] - gap[change + 1])
    )
