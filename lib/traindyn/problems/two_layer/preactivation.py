r"""Covariance of the preactivations :math:`W_i \cdot X` of one class (BGJ Section 8).

An input of a class with centroid s is :math:`s + Z / \sqrt\lambda`. The coordinates of Z in the
signal space are common to all neurons, so that the preactivations are jointly Gaussian with
means :math:`m_i \cdot s` and covariance :math:`(m_i \cdot m_j + R^\perp_{ij}) / \lambda`; the
source prints independent signal noise for each neuron.
"""

from __future__ import annotations

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer.mixture import Statistics, consistent

__all__ = ["covariance"]


def covariance(statistics: Statistics, *, precision: float) -> Array:
    r"""Covariance :math:`(m m^T + R^\perp) / \lambda` within a class, shape (K, K).

    BGJ Lemmas 8.1 and 9.1 print another one, see the top of this module.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> from traindyn.problems.two_layer.preactivation import covariance
    >>> here = Statistics(np.ones(2), np.array([[0.5], [0.25]]), np.eye(2))
    >>> covariance(here, precision=2.0).tolist()
    [[0.625, 0.0625], [0.0625, 0.53125]]
    """
    statistics = consistent(statistics)
    precision = _validate.positive("precision", precision)
    m = np.asarray(statistics.m)
    return np.asarray((m @ m.T + np.asarray(statistics.R_perp)) / precision)
