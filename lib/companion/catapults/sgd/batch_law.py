r"""How many batches of Gaussian inputs are super-critical at the start of a wide network.

The tangent kernel of an infinitely wide two-layer network without biases is
:math:`K_{ij} = r_i r_j \kappa(\rho_{ij})` with lengths :math:`r = |x| / \sqrt d`, cosines
:math:`\rho` and

.. math:: \kappa(\rho) = \frac{\sqrt{1 - \rho^2} + 2 \rho\, (\pi - \arccos\rho)}{2 \pi}
          = \frac1{2\pi} + \frac\rho2 + \frac{3 \rho^2}{4 \pi} + \dots, \qquad \kappa(1) = 1 .

For standard normal inputs in dimension d lengths and cosines fluctuate by :math:`d^{-1/2}` about
one and zero, independently, and the largest eigenvalue of a batch is known from perturbation
about the constant vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from traindyn import _validate

__all__ = ["EigenvalueLaw", "eigenvalue_law", "supercritical_share"]

_OFF = 1 / (2 * np.pi)  # the kernel of orthogonal inputs


class EigenvalueLaw(NamedTuple):
    """Mean and standard deviation of the largest eigenvalue of a batch.

    Attributes
    ----------
    mean, deviation : float
    """

    mean: float
    deviation: float


def eigenvalue_law(batch: int, dimension: int) -> EigenvalueLaw:
    r"""Return mean and standard deviation of the largest eigenvalue, to order 1/d.

    With :math:`o = 1 / 2\pi` the mean of all entries, times b, is
    :math:`1 + (b-1)(1 - \frac1{2d})(o + \frac3{4\pi d})`; its variance is
    :math:`\frac2{bd}(1 + (b-1) o)^2 + \frac{b-1}{2bd}`. What the rows differ by adds, in second
    order,

    .. math:: \frac1{b\,o} \Big[ \frac{(b-1) (2 + (b-2) o)^2}{2 b d} + \frac{(b-1)(b-2)}{4 b d}
              \Big] .

    Parameters
    ----------
    batch, dimension : int
        Numbers b of examples in a batch and d of coordinates of an input, at least 1.

    Examples
    --------
    >>> from companion.catapults.sgd.batch_law import eigenvalue_law
    >>> law = eigenvalue_law(5, 10**9)
    >>> round(law.mean, 4), law.deviation < 1e-4
    (1.6366, True)
    """
    b = _validate.integer("batch", batch, least=1)
    d = _validate.integer("dimension", dimension, least=1)
    along = 1 + (b - 1) * (1 - 1 / (2 * d)) * (_OFF + 3 / (4 * np.pi * d))
    rows = (b - 1) * (2 + (b - 2) * _OFF) ** 2 / (2 * b * d) + (b - 1) * (b - 2) / (4 * b * d)
    variance = 2 / (b * d) * (1 + (b - 1) * _OFF) ** 2 + (b - 1) / (2 * b * d)
    return EigenvalueLaw(float(along + rows / (b * _OFF)), float(np.sqrt(variance)))


def supercritical_share(step_size: float, *, batch: int, dimension: int) -> float:
    r"""Return the share of batches whose critical step size is below the step size.

    By the normal law of :func:`eigenvalue_law`, :math:`\Phi((\mu - b / \eta) / \sigma)`. As d
    grows it becomes a step at the threshold of :func:`~traindyn.catapults.spikes.batch_threshold`.

    Parameters
    ----------
    step_size : float
        Of the mean squared residual.
    batch, dimension : int
        As in :func:`eigenvalue_law`.

    Examples
    --------
    At half the critical step size of infinitely many inputs:

    >>> import numpy as np
    >>> from companion.catapults.sgd.batch_law import supercritical_share
    >>> [round(supercritical_share(np.pi, batch=b, dimension=10**6), 3) for b in (5, 6)]
    [1.0, 0.0]
    """
    eta = _validate.positive("step_size", step_size)
    law = eigenvalue_law(batch, dimension)
    return float(norm.cdf((law.mean - batch / eta) / law.deviation))
