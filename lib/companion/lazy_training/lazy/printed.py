"""Formulas of MDL chapter 9 as printed, where they differ from the correct ones.

Nothing here describes training: a check that confirms the bounds of
:mod:`companion.lazy_training.lazy.constants` must reject these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from companion.lazy_training.lazy.constants import LazyConstants
from traindyn import _validate
from traindyn._types import Array

__all__ = ["printed_deviation_scale", "printed_linearisation_gap"]


def printed_linearisation_gap(
    constants: LazyConstants, times: ArrayLike, *, factor: float
) -> Array:
    r"""Solution of the last inequality in MDL's proof of Theorem 9.1 as printed, shape (T,).

    .. math:: \frac{d}{dt} |r| \le -\frac{\lambda_0}{2} |r| + \frac{C \sigma_{\max} L_n}{n} .

    Without the residuals in the last term it does not scale like an output: multiplying
    outputs and targets by a large number breaks it, whatever the `factor` C.
    """
    c = constants
    half = c.sigma_min**2 / (4 * c.samples)
    level = _validate.positive("factor", factor) * c.sigma_max * c.lipschitz / c.samples / half
    return np.asarray(-level * np.expm1(-half * _validate.finite("times", times)))


def printed_deviation_scale(samples: int, dimension: int, width: int) -> float:
    r"""Distance from the linearised flow in MDL Theorem 9.2 as printed.

    .. math:: \Big\{ \sqrt{n / d} + \sqrt{n / (m d)} \Big\} \wedge n / d^{3/2},

    which does not fall with the width m. Substitution into Theorem 9.1 gives
    :func:`~companion.lazy_training.lazy.constants.scales`, of order :math:`n / \sqrt{m d}` for n up
    to d.
    """
    n = _validate.integer("samples", samples, least=1)
    d = _validate.integer("dimension", dimension, least=1)
    m = _validate.integer("width", width, least=1)
    return float(min(np.sqrt(n / d) + np.sqrt(n / (m * d)), n / d**1.5))
