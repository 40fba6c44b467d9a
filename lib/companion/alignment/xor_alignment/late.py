r"""A late neuron: without overlap among neurons that have learned (beyond the source).

At the fixed point of the XOR mixture with all four classes learned and small steps, the error of
an input depends on its signal coordinates alone. A further neuron (v, W) too small to matter then
obeys a homogeneous equation. While its overlaps are small, v and W shrink with the ridge, the
ratio :math:`u = |v| / |W|` stays, and the direction of W turns towards the line of its own label
and away from the other one at the rate

.. math:: \frac{d}{dt} \log \frac{|m|}{|W|} = \pm u \gamma, \qquad
    \gamma = \sqrt{\frac{\lambda}{2 \pi}}\; \frac12 E[(p^2 - q^2)\, \sigma(-s (p - q))],

with :math:`p = |1 + z|, q = |z'|` for independent :math:`z, z' \sim N(0, 1 / \lambda)` and the
class sum s. Before anything is learned the errors are 1/2 and the same rate is
:math:`\gamma_0 = \tfrac14 \sqrt{\lambda / 2 \pi}`: what others have learned slows a neuron down
by about a factor :math:`8 \alpha`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from traindyn import _validate
from traindyn.problems.two_layer.spectra import class_sum, lengths

__all__ = ["turning_rate"]


def turning_rate(ridge: float, precision: float) -> float:
    r"""Rate :math:`\gamma` at which a late neuron turns, per unit of :math:`|v| / |W|`.

    Parameters
    ----------
    ridge : float
        Positive, below the critical ridge of this precision.
    precision : float
        Positive and finite.

    Raises
    ------
    ValueError
        As :func:`traindyn.problems.two_layer.spectra.class_sum`.

    Examples
    --------
    >>> from companion.alignment.xor_alignment.late import turning_rate
    >>> round(turning_rate(0.03, 10.0), 4)
    0.0951
    """
    precision = _validate.positive("precision", precision)
    total = class_sum(ridge, precision)
    p, q, masses = lengths(precision)
    moment = 0.5 * float(np.sum(masses * (p**2 - q**2) * expit(-total * (p - q))))
    return math.sqrt(precision / (2.0 * math.pi)) * moment
