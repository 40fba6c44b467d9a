r"""Number of outliers of a spectrum, as an estimate of the number of learned classes.

Once a network has learned r classes, the spectrum of a block splits into r outliers and the
rest (BGHJ Figures 2.3, 2.5 and 2.6); the source suggests to count them as a stopping rule. Three
references tell an outlier from the rest:

* a predicted bulk: :func:`outside` counts what lies beyond its edges, those of
  :mod:`traindyn.spectra.predict` for blocks that grow with the dimension;
* the components of the data: a block of fixed size has no bulk law, but if the component of each
  draw is known, its weighted Gram matrix is a sum of one rank-one term for each component and
  the spread *within* the components. The norm of the latter, :func:`within_edge`, bounds the
  eigenvalues that no component explains: at most as many exceed it as there are components;
* nothing but the spectrum: :func:`before_gap` looks for the largest ratio between neighbours. It
  needs a rest: four neurons with a class each leave none.

The bound is safe rather than sharp, as it sets the smallest outlier against the spread along the
largest: at precision 10 the fourth outlier of a trained second layer exceeds it in the Hessian
but not in the G-matrix, where the gap is still wide.

The first and the last work on whole films: leading axes are kept and NaN (of blocks with fewer
eigenpairs) ignored. Before training outliers are not classes: the features of a ReLU layer are
positive, so that their block starts with one outlier
(:func:`companion.alignment.xor_alignment.start.initial_second_layer`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import Factors

__all__ = ["before_gap", "outside", "within_edge"]

_ROUNDING = 1e-13
"""Eigenvalues below this share of the largest are rounding errors of zero."""


def outside(
    eigenvalues: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, margin: float = 0.0
) -> NDArray[np.int64]:
    """Count eigenvalues outside a bulk.

    Parameters
    ----------
    eigenvalues : array_like, shape (..., r)
        In any order; NaN entries do not count.
    lower, upper : array_like, shape (...)
        Edges of the bulk, for example those of a
        :class:`~traindyn.spectra.predict.PredictedFilm`; infinite to look on the other side
        only, NaN where there is none and nothing is outside.
    margin : float, default 0
        Share by which each edge is moved outwards, for the fluctuations of a finite matrix:
        of order ``d**(-2/3)``.

    Returns
    -------
    ndarray of int, shape (...)

    Raises
    ------
    ValueError
        If a lower edge exceeds the upper one, an argument has a wrong shape or the margin is
        negative.

    Examples
    --------
    >>> from companion.alignment.xor_rank.counting import outside
    >>> int(outside([5.0, 2.1, 1.9, -1.0], 0.0, 2.0))
    3
    >>> int(outside([5.0, 2.1, 1.9, -1.0], 0.0, 2.0, margin=0.1))
    2
    """
    values = _spectra(eigenvalues)
    margin = _validate.non_negative("margin", margin)
    low, high = _validate.numeric("lower", lower), _validate.numeric("upper", upper)
    if np.any(low > high):
        raise ValueError("lower must not exceed upper, got edges in the wrong order")
    # An infinite edge stays where it is.
    low, high = (
        edge + side * margin * np.where(np.isfinite(edge), np.abs(edge), 0.0)
        for side, edge in ((-1, low), (1, high))
    )
    try:
        beyond = (values < low[..., None]) | (values > high[..., None])
    except ValueError:
        raise ValueError(
            f"lower and upper must have the leading shape {values.shape[:-1]} of eigenvalues, "
            f"got {low.shape} and {high.shape}"
        ) from None
    return np.asarray(np.count_nonzero(beyond, axis=-1), dtype=np.int64)


def within_edge(factors: Factors, labels: ArrayLike) -> float:
    r"""Largest eigenvalue of the spread within the components of the data.

    With weights w, features f and the weighted mean :math:`\bar f_c` of each component,

    .. math:: \frac1n \sum_i w_i f_i f_i^T
              = \sum_c \frac{w_c}{n} \bar f_c \bar f_c^T
              + \frac1n \sum_i w_i (f_i - \bar f_{c_i}) (f_i - \bar f_{c_i})^T,
              \qquad w_c = \sum_{i \in c} w_i .

    The first part has at most one positive eigenvalue for each component, so that at most as
    many eigenvalues of the block exceed the largest one of the second (Weyl's inequality).

    Parameters
    ----------
    factors : Factors
        Of a block with the same features on both sides and no negative weight; the spread is
        formed, so that the features should be few, as those of a second layer.
    labels : array_like of int, shape (n,)
        Component of each draw.

    Raises
    ------
    ValueError
        If the features differ, a weight is negative or the labels do not fit.

    Examples
    --------
    Two components without spread, and one with:

    >>> import numpy as np
    >>> from companion.alignment.xor_rank.counting import within_edge
    >>> from traindyn.problems import Factors
    >>> features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0], [0.0, 1.0]])
    >>> within_edge(Factors(np.ones(4), features, features), [0, 0, 1, 1])
    0.5
    """
    weights, left, right = _validate.record("factors", factors, (("n",), ("n", "d"), ("n", "d")))
    if left is not right and not np.array_equal(left, right):
        raise ValueError("factors must have the same features on both sides, got different ones")
    if np.any(weights < 0):
        raise ValueError(f"factors must have no negative weights, got {float(np.min(weights)):.3g}")
    components = np.asarray(labels)
    if components.shape != weights.shape or components.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be {weights.size} integers, got shape {components.shape} of "
            f"{components.dtype}"
        )
    spread = np.zeros((left.shape[1], left.shape[1]))
    for component in np.unique(components):
        mine = (components == component) & (weights > 0)
        if not mine.any():
            continue
        mass, features = weights[mine], left[mine]
        centred = features - mass @ features / mass.sum()
        spread += (centred.T * mass) @ centred
    return float(np.linalg.eigvalsh(spread / weights.size)[-1])


def before_gap(
    eigenvalues: ArrayLike, *, most: int | None = None, ratio: float = 3.0
) -> NDArray[np.int64]:
    r"""Count eigenvalues before the largest gap of a spectrum, on a logarithmic scale.

    With :math:`|\theta_1| \ge |\theta_2| \ge \dots` the estimate is the m that maximises
    :math:`|\theta_m| / |\theta_{m+1}|`, or zero if no ratio is as large as `ratio`.

    Parameters
    ----------
    eigenvalues : array_like, shape (..., r)
        In any order; NaN entries are left out.
    most : int, optional
        Largest count considered; one less than the eigenvalues at hand unless given, and always
        at most that. The eigenvalues of a bulk may themselves spread over many orders of
        magnitude (those of starving neurons do), so that a bound on the number of classes helps.
    ratio : float, default 3
        Least ratio of a gap; more than one.

    Returns
    -------
    ndarray of int, shape (...)
        Zero where fewer than two eigenvalues are left.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from companion.alignment.xor_rank.counting import before_gap
    >>> int(before_gap([0.12, 0.08, 0.04, 0.002, 0.0015]))
    3
    >>> int(before_gap([1.2, 1.1, 1.0, 0.9]))
    0
    """
    values = _spectra(eigenvalues)
    count = values.shape[-1] - 1
    if most is not None:
        count = min(count, _validate.integer("most", most, least=1))
    if _validate.number("ratio", ratio) <= 1:
        raise ValueError(f"ratio must be greater than one, got {ratio!r}")
    if count < 1:
        return np.zeros(values.shape[:-1], dtype=np.int64)
    # NaN sorts last.
    sizes = -np.sort(-np.abs(values), axis=-1)
    floor = np.maximum(_ROUNDING * sizes[..., :1], np.finfo(float).tiny)
    sizes = np.where(np.isnan(sizes), np.nan, np.maximum(sizes, floor))
    ratios = np.nan_to_num(sizes[..., :count] / sizes[..., 1 : count + 1], nan=0.0)
    found = np.argmax(ratios, axis=-1) + 1
    return np.asarray(np.where(ratios.max(axis=-1) >= ratio, found, 0), dtype=np.int64)


def _spectra(eigenvalues: ArrayLike) -> Array:
    values = _validate.numeric("eigenvalues", eigenvalues)
    if values.ndim == 0 or np.isinf(values).any():
        raise ValueError(
            f"eigenvalues must be an array without infinite entries, got shape {values.shape}"
        )
    return values
