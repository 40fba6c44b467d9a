"""Formulas of BGJ Sections 3 and 7 and of the course notes, Section 12.4, as printed.

Nothing here describes training. These are the wrong variants against which the correct
formulas of :mod:`traindyn.problems.spiked` are tested: a check that confirms ours must
reject these. Where a misprint admits several readings, the best one is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.diffusion import Diffusion
from traindyn.gaussian import Rule
from traindyn.problems.spiked.equilibria import informative
from traindyn.problems.spiked.tensor import Point, SpikedTensor, Statistics

__all__ = [
    "as_printed",
    "printed_diverging_equator",
    "printed_double",
    "printed_drift",
    "printed_hessian",
    "printed_informative",
    "printed_ridge_equator",
    "printed_volatility",
]


def as_printed(problem: SpikedTensor) -> SpikedTensor:
    """Problem whose effective dynamics is the one printed, to be integrated like ours.

    Returns
    -------
    SpikedTensor
        With ``drift`` replaced by :func:`printed_drift`; everything else is unchanged.
    """
    return _PrintedTensor(**{each.name: getattr(problem, each.name) for each in fields(problem)})


def printed_drift(problem: SpikedTensor, statistics: Statistics, *, c_delta: float) -> Statistics:
    r"""Drift with ridge of BGJ Section 7.1 as printed.

    .. math:: \dot m = 2 m (\lambda k m^{k-2} - k R^{2k-2} - \alpha)

    against :math:`\alpha / 2`; the second line is right. Without ridge there is no
    difference.
    """
    correct = SpikedTensor.drift(problem, statistics, c_delta=c_delta)
    return Statistics(correct.m - problem.ridge * np.asarray(statistics.m), correct.r2)


def printed_volatility(problem: SpikedTensor, statistics: Statistics) -> Array:
    r"""Matrix :math:`J V J^T` of BGJ (7.3) as printed, shape (2, 2).

    .. math:: (J V J^T)_{12} = 4 k (k-1)\, m\, r_\perp^2 R^{2k-4}, \qquad
              (J V J^T)_{22} = 4 k (k-1)\, r_\perp^4 R^{2k-4}

    lack the factors of two in the gradient of r2 and the identity part of V. The printed
    :math:`R^2 - m` is read as :math:`R^2 - m^2`.
    """
    m, r2, k = float(statistics.m), float(statistics.r2), problem.order
    extra = 4.0 * k * (k - 1) * (m * m + r2) ** (k - 2)
    return np.array(
        [
            [problem.volatility(statistics)[0, 0], extra * m * r2],
            [extra * m * r2, extra * r2 * r2],
        ]
    )


def printed_hessian(problem: SpikedTensor, point: Point) -> Array:
    r"""Hessian of the population loss in BGJ Section 7.2 as printed, shape (n, n).

    Twice the display: with :math:`\nabla r_\perp^2 = 2 (x - m v)`,

    .. math:: 2 \big[ (k R^{2k-2} - \lambda k (k-1) m^{k-2})\, v v^T
      + k (k-1) R^{2k-4} \big( (2 m v + \nabla r_\perp^2) v^T
      + (2 m v + \nabla r_\perp^2) (\nabla r_\perp^2)^T \big) \big]
      + (2 k R^{2k-2} + \alpha) (I - v v^T),

    which is not symmetric; the correct one is
    :meth:`~traindyn.problems.spiked.tensor.SpikedTensor.population_hessian`.
    """
    x, k = _validate.finite("point.x", point.x, shape=(problem.dimension,)), problem.order
    m, square = x[0], x @ x
    v = np.eye(problem.dimension)[0]
    outward = 2.0 * (x - m * v)
    power = k * square ** (k - 1)
    extra = k * (k - 1) * square ** (k - 2)
    half = (power - problem.signal * k * (k - 1) * m ** (k - 2)) * np.outer(v, v)
    half += extra * np.outer(2.0 * m * v + outward, v + outward)
    bulk = 2.0 * power + problem.ridge
    return np.asarray(2.0 * half + bulk * (np.eye(problem.dimension) - np.outer(v, v)))


def printed_informative(problem: SpikedTensor, *, c_delta: float) -> tuple[Statistics, ...]:
    r"""Return the fixed points with nonzero m of BGJ Proposition 3.2 and (7.5), as printed.

    Without ridge. Of both signs whatever the order, although :math:`m^{k-1}` forbids a
    negative one for odd k; and only where :math:`R^2 \ge 1`, although the condition is
    :math:`R^2 \ge c_\delta` (the two agree at :math:`c_\delta = 1`).

    Raises
    ------
    ValueError
        If the signal is below the threshold, or there is a ridge.
    """
    if problem.ridge != 0:
        raise ValueError(f"problem.ridge must be 0, got {problem.ridge}")
    places = [each.statistics for each in informative(problem, c_delta=c_delta)]
    if problem.order > 2:
        places = [u for u in places if u.m**2 + u.r2 >= 1.0]
    return tuple(Statistics(np.asarray(sign * u.m), u.r2) for u in places for sign in (1.0, -1.0))


def printed_ridge_equator(*, c_delta: float, ridge: float) -> Statistics:
    r"""Return the fixed point on the equator with ridge for order two (BGJ Section 7.1).

    Printed :math:`r_\perp^2 = c_\delta - \alpha / 2` against :math:`c_\delta - \alpha / 4`.
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    ridge = _validate.non_negative("ridge", ridge)
    return Statistics(np.zeros(()), np.asarray(c_delta - 0.5 * ridge))


def printed_diverging_equator(problem: SpikedTensor, scaled_signal: float) -> Diffusion:
    r"""Limit for :math:`\lambda_n = \Lambda n^{(k-2)/2}` as printed in BGJ (3.3).

    .. math:: d\tilde m = 2 \tilde m (k \Lambda - k r_\perp^{2(k-1)})\, dt
              + 2 \sqrt k\, r_\perp^{k-1} dB,

    linear in :math:`\tilde m`, with a transition at :math:`\Lambda = 1`. At c_delta = 1,
    without ridge.
    """
    scaled_signal, k = _validate.positive("scaled_signal", scaled_signal), problem.order

    def drift(u: Array) -> Array:
        m, r2 = np.moveaxis(np.asarray(u, dtype=np.float64), -1, 0)
        return _equator_drift(k, 2.0 * k * scaled_signal * m, m, r2)

    def factor(u: Array) -> Array:
        r2 = np.asarray(u, dtype=np.float64)[..., 1]
        return _first_noise(4.0 * k * np.abs(r2) ** (k - 1))

    return Diffusion(("sqrt(n) m", "r2"), drift, factor)


def printed_double(problem: SpikedTensor) -> Diffusion:
    r"""Limit of :math:`\sqrt n (m, r_\perp^2 - 1)` as printed in BGJ (3.5) and (7.8).

    .. math:: d\tilde m = 2 k (\lambda 1_{k=2} \tilde m^{k-1} - 1)\, dt + 2 \sqrt k\, dB^{(1)},
              \qquad d\tilde r = -4 k^2 \tilde r\, dt + 2 \sqrt{k (k-1)}\, dB^{(2)}.

    The minus one lacks its :math:`\tilde m`; the rate of the radius is :math:`4 k` and its
    noise :math:`4 k`. At c_delta = 1, without ridge.
    """
    k = problem.order
    signal = problem.signal if k == 2 else 0.0
    root = np.diag([2.0 * math.sqrt(k), 2.0 * math.sqrt(k * (k - 1))])

    def drift(u: Array) -> Array:
        m, r = np.moveaxis(np.asarray(u, dtype=np.float64), -1, 0)
        return np.stack([2.0 * k * (signal * m ** (k - 1) - 1.0), -4.0 * k**2 * r], axis=-1)

    def factor(u: Array) -> Array:
        return np.broadcast_to(root, (*np.shape(u)[:-1], 2, 2))

    return Diffusion(("sqrt(n) m", "sqrt(n) (r2 - 1)"), drift, factor)


def _equator_drift(k: int, pull: Array, m: Array, r2: Array) -> Array:
    """Drift at the equator with a given pull towards the spike, c_delta = 1."""
    decay = 2.0 * k * r2 ** (k - 1)
    return np.stack([pull - decay * m, -2.0 * decay * (r2 - 1.0)], axis=-1)


def _first_noise(variance: Array) -> Array:
    """Factor of shape (..., 2, 1) with this variance on the first coordinate."""
    columns = np.zeros((*np.shape(variance), 2, 1))
    columns[..., 0, 0] = np.sqrt(variance)
    return columns


@dataclass(frozen=True)
class _PrintedTensor(SpikedTensor):
    """The problem with the printed effective dynamics, see :func:`as_printed`."""

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        """Drift as printed."""
        return printed_drift(self, statistics, c_delta=c_delta)
