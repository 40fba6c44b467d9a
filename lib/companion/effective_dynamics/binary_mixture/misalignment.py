r"""How far two neurons of one class stay apart at finite precision (beyond the source).

Let :math:`r_i = W_i / v_i` for two neurons of one class, and :math:`D = |r_1 - r_2|`. Exactly
aligned neurons stay so. Otherwise an input near the boundary :math:`r \cdot X = 0` is answered by
one of the two only, with a probability proportional to D; it moves their difference by
:math:`\delta e X`, of squared length :math:`\delta^2 e^2 N / \lambda` with an error e of 1/2. At
critical step size these kicks add up to a drift,

.. math::

    \frac{d}{dt} D^2 = -2 \alpha D^2 + \frac{c_\delta}{4 \lambda}
        \sqrt{\frac{2}{\pi \lambda}}\, f(0)\, D, \qquad
    f(0) = \sqrt{\frac{\lambda}{2 \pi}} \frac{v}{|w|}
        \exp \Big( \! -\frac{\lambda m^2}{2 |w|^2} \Big),

where f is the density of :math:`r \cdot X` and (v, w) the merged neuron, w of overlap m. The
aligned ring of fixed points is thus unstable at every finite precision, and what attracts is a
misalignment exponentially small in :math:`\lambda`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from companion.effective_dynamics.binary_mixture.ring import ring
from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.two_layer.mixture import Statistics, TwoLayerMixture, consistent

__all__ = ["misalignment", "sustained"]


def misalignment(statistics: Statistics) -> Array:
    r"""Distance :math:`D = |W_1 / v_1 - W_2 / v_2|` of the first two neurons, shape (...).

    Parameters
    ----------
    statistics : Statistics
        Of nonzero v; leading axes allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.binary_mixture.misalignment import misalignment
    >>> from traindyn.problems.two_layer.mixture import Statistics
    >>> aligned = Statistics(np.array([1.0, 2.0]), np.array([[0.5], [1.0]]), np.zeros((2, 2)))
    >>> float(misalignment(aligned))
    0.0
    """
    statistics = consistent(statistics)
    v, m = np.asarray(statistics.v)[..., :2], np.asarray(statistics.m)[..., :2, :]
    gram = m @ np.swapaxes(m, -1, -2) + np.asarray(statistics.R_perp)[..., :2, :2]
    scaled = gram / (v[..., :, None] * v[..., None, :])
    square = scaled[..., 0, 0] + scaled[..., 1, 1] - 2.0 * scaled[..., 0, 1]
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def sustained(problem: TwoLayerMixture, *, c_delta: float) -> float:
    r"""Misalignment at which kicks and decay balance, for the first class of the binary mixture.

    .. math:: D_* = \frac{c_\delta}{8 \pi \alpha \lambda} \frac{v}{|w|}
              \exp \Big( \! -\frac{\lambda m^2}{2 |w|^2} \Big),

    to leading order in D, for neurons of any sizes.

    Parameters
    ----------
    problem : TwoLayerMixture
        Binary, of finite precision.
    c_delta : float
        Step size times dimension.

    Raises
    ------
    ValueError
        If an argument is out of range, or there is no fixed point at this ridge.

    Examples
    --------
    >>> from companion.effective_dynamics.binary_mixture.misalignment import sustained
    >>> from traindyn.problems import TwoLayerMixture
    >>> problem = TwoLayerMixture.binary(2, 500, precision=5.0, ridge=0.1)
    >>> round(sustained(problem, c_delta=1.0), 5)
    0.00688
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    precision = _validate.positive("problem.precision", problem.precision)
    merged = ring(replace(problem, width=1), c_delta=c_delta).statistics
    overlap, square = float(merged.m[0, 0]) ** 2, float(merged.m[0, 0] ** 2 + merged.R_perp[0, 0])
    tail = math.exp(-0.5 * precision * overlap / square) * abs(float(merged.v[0]))
    return c_delta * tail / (8.0 * math.pi * problem.ridge * precision * math.sqrt(square))
