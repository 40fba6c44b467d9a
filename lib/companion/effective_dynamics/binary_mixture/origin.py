"""How the binary mixture responds at a vanishing second layer."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, checked

__all__ = ["origin_response"]


def origin_response(problem: TwoLayerMixture, statistics: Statistics) -> tuple[Array, Array]:
    """Response at a vanishing second layer: A, and A along the noise parts of the weights.

    Parameters
    ----------
    problem : TwoLayerMixture
        Of finite precision.
    statistics : Statistics
        Its `v` is taken for zero.

    Returns
    -------
    A : ndarray, shape (K, d)
    A_perp : ndarray, shape (K, K)
        Entry (i, j) is the inner product of A_i with the noise part of W_j.

    Raises
    ------
    ValueError
        If the precision is infinite, or the weights of a neuron vanish.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.binary_mixture.origin import origin_response
    >>> from traindyn.problems import TwoLayerMixture
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> problem = TwoLayerMixture.binary(1, 20, precision=3.0, ridge=0.1)
    >>> A, A_perp = origin_response(problem, Statistics(np.ones(1), np.ones((1, 1)), np.eye(1)))
    >>> A.round(12).tolist(), A_perp.round(12).tolist()
    ([[-0.25]], [[0.0]])
    """
    statistics = checked(problem, statistics, single=True)
    root = math.sqrt(_validate.positive("problem.precision", problem.precision))
    m, gram = np.asarray(statistics.m), np.asarray(statistics.R_perp)
    lengths = np.sqrt(np.square(m).sum(axis=-1) + np.diag(gram))
    if lengths.min() == 0:
        raise ValueError(
            f"statistics must hold weights that do not vanish, got zero for neuron "
            f"{int(np.argmin(lengths))}"
        )
    heights = root * (m @ problem.centroids.T) / lengths[:, None]
    pull = problem.weights * (0.5 - problem.labels)
    along = norm.pdf(heights) @ pull / (root * lengths)
    return (
        (pull * norm.cdf(heights)) @ problem.centroids + along[:, None] * m,
        along[:, None] * gram,
    )
