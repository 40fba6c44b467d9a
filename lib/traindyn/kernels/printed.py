"""Formulas of MDL chapters 8 and 9 as printed, where they differ from the correct ones.

Nothing here describes training. These are the wrong variants against which the correct formulas
of :mod:`traindyn.kernels` are tested: a check that confirms ours must reject these.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from traindyn import _validate
from traindyn.kernels.dual import Array
from traindyn.kernels.lazy import LazyConstants
from traindyn.kernels.network import Network

__all__ = [
    "printed_deviation_scale",
    "printed_kernel_flow",
    "printed_linearisation_gap",
    "printed_tangent_kernel",
    "printed_weight_movement",
]


def printed_tangent_kernel(network: Network, parameters: ArrayLike, x: ArrayLike) -> Array:
    r"""Empirical tangent kernel of MDL Definition 8.5 as printed, with a factor :math:`1/\sqrt p`.

    The parametrisation is normalised already: this one tends to zero with the width.
    """
    return network.tangent_kernel(parameters, x) / math.sqrt(network.size)


def printed_weight_movement(network: Network, before: ArrayLike, after: ArrayLike) -> list[float]:
    r"""Norms :math:`\|W(t)/\sqrt{n_\ell} - W(0)\|` of MDL Lemma 8.8 as printed, inner layers.

    The factor belongs to the difference; as it stands the norm grows like the root of the width
    even without training.
    """
    first = _validate.finite("before", before, shape=(network.size,))
    last = _validate.finite("after", after, shape=(network.size,))
    pairs = zip(network.layers(first)[1:], network.layers(last)[1:], network.widths[1:])
    return [
        float(np.linalg.norm(new.weights / np.sqrt(width) - old.weights, 2))
        for old, new, width in pairs
    ]


def printed_kernel_flow(kernel: ArrayLike, targets: ArrayLike, times: ArrayLike) -> Array:
    r"""Return outputs of kernel gradient flow as in MDL Example 8.3, from zero, shape (T, n).

    .. math:: \dot f = -\tfrac12 K (y - f)

    against :math:`+\frac1n`: it leaves the targets instead of approaching them.
    """
    matrix = _validate.symmetric("kernel", kernel)
    y = _validate.finite("targets", targets, shape=(len(matrix),))
    grid = _validate.increasing("times", times)
    return np.stack([y - expm(t / 2 * matrix) @ y for t in grid])


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
    :func:`~traindyn.kernels.scales`, of order :math:`n / \sqrt{m d}` for n up to d.
    """
    n = _validate.integer("samples", samples, least=1)
    d = _validate.integer("dimension", dimension, least=1)
    m = _validate.integer("width", width, least=1)
    return float(min(np.sqrt(n / d) + np.sqrt(n / (m * d)), n / d**1.5))
