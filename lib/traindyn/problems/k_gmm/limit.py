r"""The k-Gaussian mixture at infinite precision, for orthonormal means (BGHJ Sections 5.2.2, 5.3).

Started from m = 0, column b of m stays of the form :math:`m_{bb}` on the diagonal and
:math:`-m_{bb} / (k - 1)` elsewhere: one number for each class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["own_probability"]


def own_probability(diagonal: ArrayLike, k: int) -> Array:
    r"""Probability the network gives to the right class on a noiseless mean.

    Parameters
    ----------
    diagonal : array_like
        Values of :math:`m_{bb}`.
    k : int
        Number of classes, at least two.

    Returns
    -------
    ndarray
        :math:`q(m) = 1 / (1 + (k - 1) e^{-m k / (k - 1)})`.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems.k_gmm.limit import own_probability
    >>> bool(np.isclose(own_probability(0.0, 10), 0.1))
    True
    """
    k = _validate.integer("k", k, least=2)
    m = _validate.finite("diagonal", diagonal)
    # Through log-odds, to stay accurate at both ends.
    odds = m * k / (k - 1) - np.log(k - 1)
    return np.asarray(np.exp(-np.logaddexp(0.0, -odds)))
