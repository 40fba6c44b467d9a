r"""Alignment of the layers with signal, features and outliers, from the statistics alone.

BGHJ Theorems 2.6 and 2.7 compare a layer with eigenspaces of its own block. Where the sample does
not matter these are functions of the summary statistics: a neuron with the signal space, the second
layer with the features :math:`g(W s_c)` of the centroids and with the leading eigenvectors of its
population block.
"""

from __future__ import annotations

import numpy as np

from traindyn import linalg
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Matrix
from traindyn.problems.two_layer import curvature
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked, consistent

__all__ = ["feature_space", "outlier_alignment", "span_alignment"]

# Features below this share of the largest are rounding noise.
_DEPENDENT = 1e-10


def span_alignment(statistics: Statistics) -> Array:
    r"""Alignment of each neuron with the signal space, :math:`|m_i| / |W_i|`, shape (..., K).

    MDL Theorem 13.7 has a bound for it.

    Parameters
    ----------
    statistics : Statistics
        Leading axes allowed; neurons that vanish give NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems.two_layer.alignment import span_alignment
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> found = Statistics(np.ones(1), np.array([[0.6, 0.0]]), np.array([[0.64]]))
    >>> span_alignment(found).round(12).tolist()
    [0.6]
    """
    statistics = consistent(statistics)
    own = np.square(statistics.m).sum(axis=-1)
    rest = np.diagonal(statistics.R_perp, axis1=-2, axis2=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(own / (own + rest)))


def feature_space(problem: TwoLayerMixture, statistics: Statistics) -> Array:
    r"""Orthonormal basis of the span of the features :math:`g(W s_c)` (BGHJ Theorem 2.7).

    Parameters
    ----------
    problem : TwoLayerMixture
        Its centroids enter.
    statistics : Statistics
        Of one point; only m enters.

    Returns
    -------
    ndarray, shape (K, r)
        r at most the number of centroids; fewer where classes are not learned.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.alignment import feature_space
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.xor(3, 10, precision=10.0, ridge=0.1)
    >>> m = np.array([[0.3, 0.0], [0.4, 0.0], [0.0, 0.5]])
    >>> feature_space(problem, Statistics(np.ones(3), m, np.zeros((3, 3)))).shape
    (3, 2)
    """
    m = checked(problem, statistics, single=True).m
    left, sizes, _ = np.linalg.svd(np.maximum(m @ problem.centroids.T, 0.0), full_matrices=False)
    return np.asarray(left[:, sizes > _DEPENDENT * sizes[0]])


def outlier_alignment(
    problem: TwoLayerMixture, statistics: Statistics, matrix: Matrix, *, rule: Rule | None = None
) -> float:
    """Alignment of v with the leading eigenvectors of its population block (MDL Theorem 13.6).

    Parameters
    ----------
    problem : TwoLayerMixture
        Its dimension does not matter.
    statistics : Statistics
        Of one point, without leading axes.
    matrix : {"hessian", "g_matrix"}
        Whose block (K, K) is meant.
    rule : Rule, optional
        As for :func:`traindyn.problems.two_layer.curvature.population_block`.

    Returns
    -------
    float
        One where the width is at most the number of centroids: then the leading eigenvectors
        span everything.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.alignment import outlier_alignment
    >>> problem = TwoLayerMixture.xor(4, 10, precision=10.0, ridge=0.1)
    >>> round(outlier_alignment(problem, problem.initial_statistics(v=np.ones(4)), "hessian"), 9)
    1.0
    """
    small, point = problem.embed(statistics)
    second = (problem.width, problem.width)
    block = curvature.population_block(small, matrix, point, second, rule=rule)
    vectors = np.linalg.eigh(block.dense())[1][:, -problem.outlier_count(second) :]
    return float(linalg.alignment(point.v, vectors))
