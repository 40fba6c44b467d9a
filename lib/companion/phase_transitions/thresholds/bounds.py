r"""The ratio of a threshold to the algorithmic one, as a product of factors.

Let v be a unit vector of the hard subspace and :math:`e = E[(v \cdot s)^2 - 1 \mid y, V]` what
labels and preactivations tell about its coordinate, :math:`I_v = E[e^2]`. The weights of the
Hessian, hence :math:`T` of :class:`~traindyn.laws.hard_subspace.HardSubspace`, are functions of
(y, V), so that

.. math:: v^T P v = \delta\, E[T (1 - (v \cdot s)^2)] = -\delta\, E[T e]
          \le \sqrt{\delta E[T^2]} \sqrt{\delta I_v} \le \sqrt{\delta I_v} ,

because :math:`\delta E[T^2] \le 1` left of the edge. An outlier therefore needs
:math:`\delta \ge 1 / I_v` (derived here; MW, Properties of the threshold). If all
directions are hard, V depends on them through the label only: e is a function of y and
:math:`1 / I_v \ge \delta_{alg}`, with equality for a single direction. The bound becomes the
equation

.. math:: (v^T P v)^2 = \delta\, I_v\; \delta E[T^2]\;
          \frac{E[\bar T^2]}{E[T^2]}\; \frac{E[\bar T e]^2}{E[\bar T^2]\, E[e^2]} ,
          \qquad \bar T = E[T \mid y] ,

whose last three factors, all at most one, are the *stability*, the share of T that is a function
of the label, and the alignment of that function with the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.laws import HardSubspace

__all__ = ["Price", "price"]


class Price(NamedTuple):
    """Factors of the squared criterion, ``ratio * information * stability * share * alignment``.

    Attributes
    ----------
    statistic : float
        The criterion itself, :math:`v^T P v` at the end parameter.
    information : float
        :math:`I_v`; one over it bounds every threshold from below.
    stability : float
        ``sample_ratio E[T^2]``: one unless the edge of the spectrum is positive.
    share : float
        Of the second moment of T, what the label alone determines.
    alignment : float
        Squared cosine between ``E[T | y]`` and e.
    """

    statistic: float
    information: float
    stability: float
    share: float
    alignment: float

    @property
    def factor(self) -> float:
        """Product of the last three: one for the optimal weights, else less."""
        return self.stability * self.share * self.alignment


def price(
    weights: ArrayLike,
    coordinate: ArrayLike,
    labels: ArrayLike,
    sample_ratio: float,
    *,
    probabilities: ArrayLike | None = None,
    cells: int | None = None,
) -> Price:
    """Split the criterion of one hard direction into its factors, all directions being hard.

    Parameters
    ----------
    weights : array_like, shape (N,)
        Draws or quadrature nodes of the Hessian's weights.
    coordinate : array_like, shape (N,)
        The hard coordinate of the same draws.
    labels : array_like, shape (N,)
        The labels y of the same draws.
    sample_ratio : float
        Samples per dimension.
    probabilities : array_like, shape (N,), optional
        Of the draws; uniform unless given.
    cells : int, optional
        Conditional means given the label are taken over this many cells of neighbouring labels.
        Default: over equal labels, which is exact on a grid of coordinates.

    Raises
    ------
    ValueError
        If shapes disagree or an argument is out of range.

    Examples
    --------
    For the optimal weights of phase retrieval all factors are one:

    >>> import numpy as np
    >>> from companion.phase_transitions.thresholds.bounds import price
    >>> from traindyn.gaussian import gauss_hermite
    >>> rule, sample_ratio = gauss_hermite(1, 64), 2.0
    >>> s = rule.nodes[:, 0]
    >>> best = -(s**2 - 1) / (s**2 - 1 + np.sqrt(2 * sample_ratio))
    >>> found = price(best, s, s**2, sample_ratio, probabilities=rule.weights)
    >>> print(round(found.information, 9), round(found.factor, 9))
    2.0 1.0
    """
    s = _validate.finite("coordinate", coordinate, shape=(None,))
    g = _validate.finite("weights", weights, shape=(s.size,))
    y = _validate.finite("labels", labels, shape=(s.size,))
    side = HardSubspace(g, s, sample_ratio, probabilities=probabilities)
    mass = np.full(s.size, 1 / s.size) if probabilities is None else np.asarray(probabilities)
    end = side.end_parameter
    # An infinite parameter belongs to an edge at zero: T is then an indicator.
    t = (g > 0).astype(float) if np.isinf(end) else end * g / (side.sample_ratio + end * g)
    excess = s * s - 1
    cell = _cells(y, mass * (1 + excess**2), cells)
    share = np.bincount(cell, weights=mass)
    t_mean, e_mean = (np.bincount(cell, weights=mass * x) / share for x in (t, excess))
    second = float(mass @ t**2)
    known, information = float(share @ t_mean**2), float(share @ e_mean**2)
    product = float(share @ (t_mean * e_mean))
    return Price(
        statistic=side.statistic,
        information=information,
        stability=side.sample_ratio * second,
        share=known / second,
        alignment=product**2 / (known * information),
    )


def _cells(labels: Array, importance: Array, count: int | None) -> NDArray[np.int64]:
    """Cell of each label: equal labels, or cells of neighbours of equal importance."""
    order = np.argsort(labels, kind="stable")
    scale = max(float(np.abs(labels).max()), 1e-300)
    new = np.concatenate([[0], np.diff(labels[order]) > 1e-12 * scale])
    group = np.cumsum(new)
    if count is not None:
        wanted = _validate.integer("cells", count, least=1)
        # Equal labels must not be torn apart.
        total = np.bincount(group, weights=importance[order])
        before = np.concatenate([[0.0], np.cumsum(total)[:-1]])
        group = np.floor(before / total.sum() * wanted).astype(np.int64)[group]
        group = np.unique(group, return_inverse=True)[1]
    cell = np.empty(labels.size, dtype=np.int64)
    cell[order] = group
    return cell
