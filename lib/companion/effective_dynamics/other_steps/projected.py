r"""SGD whose steps are projected on the leading eigenvector of the Hessian, or off it.

At the weights w the Hessian of the expected loss, :math:`\mathbb E f''(s) x x^\top` with inputs x
times their labels and the margin s, is a multiple of the identity on all directions that are
orthogonal to the mean of the inputs and to w. What stands out lies in the plane of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit

from companion.effective_dynamics.other_steps.margin import margins, normal_rule
from companion.effective_dynamics.other_steps.steps import Steps
from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.mixture import Mixture, draw_input, response
from traindyn.problems.spiked import Statistics

__all__ = ["ProjectedSteps"]

Part = Literal["leading", "rest"]
#: How far below zero the squared length may be at a trial point of a solver.
_BELOW = 1e-6


@dataclass(frozen=True, eq=False)
class ProjectedSteps(Steps):
    r"""SGD on one sample per step, along the leading eigenvector of the Hessian or off it.

    In the basis of the mean :math:`\mu` and the unit vector e of :math:`w_\perp` the Hessian is,
    with :math:`h = -f'(s)`, its derivatives, and :math:`\tau = 1 / \lambda`,

    .. math:: \tau\, \mathbb E h\, I + \mathbb E h\, \mu \mu^\top
        + \tau\, \mathbb E h' (\mu w^\top + w \mu^\top) + \tau^2\, \mathbb E h'' w w^\top .

    With its leading eigenvector u and the gradient G of the expected loss, the effective dynamics
    along it is that of :math:`\dot w = -\langle G, u \rangle u`, without a corrector; off it w
    follows the rest of -G, with the corrector of SGD.

    Attributes
    ----------
    inputs : Mixture
        Data and loss, with a spread mean.
    part : {"leading", "rest"}
        What is kept of a step: its part along u, or the part orthogonal to it.

    Raises
    ------
    ValueError
        If `part` is unknown or the mean is not spread.

    Examples
    --------
    Where nothing is learnt yet, u is the mean, and off it nothing is ever learnt:

    >>> import numpy as np
    >>> from companion.effective_dynamics.other_steps.projected import ProjectedSteps
    >>> from traindyn.problems.clouds.mixture import Mixture
    >>> from traindyn.problems.spiked import Statistics
    >>> begin = Statistics(np.array(0.0), np.array(1.0))
    >>> for part in ("leading", "rest"):
    ...     steps = ProjectedSteps(Mixture(np.full(400, 0.05)), part)
    ...     print(abs(steps.drift(begin, c_delta=1.0).m.round(3)))
    0.5
    0.0
    """

    part: Part

    def __post_init__(self) -> None:
        """Check the fields."""
        _validate.instance("inputs", self.inputs, Mixture)
        _validate.choice("part", self.part, ("leading", "rest"))
        self._need_spread()

    def leading(self, statistics: Statistics) -> tuple[Array, float, float]:
        r"""Leading eigenvector of the Hessian of the expected loss, and the eigenvalues around it.

        Parameters
        ----------
        statistics : Statistics
            Of one point.

        Returns
        -------
        vector : ndarray, shape (2,)
            On the mean of the inputs and on the rest of w, of length one.
        eigenvalue : float
        bulk : float
            That of all directions orthogonal to both.
        """
        m, r, means = self._means(statistics)
        tau = 1.0 / self.inputs.precision
        angle, top = _plane(means, m, r, tau)
        bulk = tau * means[2]
        return np.array([math.cos(angle), math.sin(angle)]), bulk + top, bulk

    def _drift(self, statistics: Statistics, c: float) -> Statistics:
        u = self.leading(statistics)[0]
        m, r, (f, square, h, _, _) = self._means(statistics)
        tau = 1.0 / self.inputs.precision
        descent = np.array([f - tau * m * h, -tau * r * h])
        along = (descent @ u) * u
        kept = along if self.part == "leading" else descent - along
        kicks = 0.0 if self.part == "leading" else c * tau * square
        return Statistics(np.asarray(kept[0]), np.asarray(2.0 * r * kept[1] + kicks))

    def direct_kernel(self) -> Kernel:
        """One step on a fresh sample; the state is ``tuple(point)``."""
        tau, leading = 1.0 / self.inputs.precision, self.part == "leading"
        return Kernel(_step, (*self.inputs.constants, tau, leading))

    def _means(self, statistics: Statistics) -> tuple[float, float, tuple[float, ...]]:
        """Overlap, length of the rest, and means over the margin."""
        kept = _validate.instance("statistics", statistics, Statistics)
        r2 = _validate.number("r2", kept.r2)
        # A solver of the equation along u, where r2 tends to zero, may try a point below.
        kept = Statistics(kept.m, np.asarray(max(r2, 0.0) if r2 > -_BELOW else r2))
        m, off, weights = margins(kept, precision=self.inputs.precision)
        f = self.inputs.response(m + off)
        return m, math.sqrt(kept.r2), _averaged(f, weights, self.inputs.loss == "logistic")


@njit(nogil=True, error_model="numpy")
def _averaged(f: Array, weights: Array, logistic: bool) -> tuple[float, ...]:
    """Means of f, f^2, and the second to fourth derivative of the loss."""
    f1, f2 = np.sum(weights * f), np.sum(weights * f * f)
    if not logistic:
        return f1, f2, 1.0, 0.0, 0.0
    h = f * (1.0 - f)
    bend, twist = h * (2.0 * f - 1.0), h * (1.0 - 6.0 * h)
    return f1, f2, np.sum(weights * h), np.sum(weights * bend), np.sum(weights * twist)


@njit(nogil=True, error_model="numpy")
def _plane(means: tuple[float, ...], m: float, r: float, tau: float) -> tuple[float, float]:
    """Angle of the leading eigenvector to the mean, and its eigenvalue above the bulk."""
    h0, h1, h2 = means[2], tau * means[3], tau * tau * means[4]
    mean = h0 + 2.0 * m * h1 + m * m * h2
    mixed = r * (h1 + m * h2)
    rest = r * r * h2
    angle = 0.5 * math.atan2(2.0 * mixed, mean - rest)
    return angle, 0.5 * (mean + rest + math.hypot(mean - rest, 2.0 * mixed))


@njit(nogil=True, error_model="numpy")
def _step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take one part of a step of SGD."""
    (w,) = state
    mean, law, mixing, logistic, tau, leading = constants
    x = np.empty(w.size)
    draw_input(x, mean, law, mixing, rng)
    m, square, margin, overlap = 0.0, 0.0, 0.0, 0.0
    for i in range(w.size):
        m += w[i] * mean[i]
        square += w[i] * w[i]
        margin += w[i] * x[i]
        overlap += x[i] * mean[i]
    r = math.sqrt(max(square - m * m, 0.0))
    spread = math.sqrt(tau * square)
    nodes, weights = normal_rule(spread)
    f = np.array([response(m + spread * node, logistic) for node in nodes])
    angle, _ = _plane(_averaged(f, weights, logistic), m, r, tau)
    on_mean, on_rest = math.cos(angle), (math.sin(angle) / r if r > 0.0 else 0.0)
    along = on_mean * overlap + on_rest * (margin - m * overlap)
    pull = step_size * response(margin, logistic)
    for i in range(w.size):
        u = on_mean * mean[i] + on_rest * (w[i] - m * mean[i])
        w[i] += pull * (along * u if leading else x[i] - along * u)
