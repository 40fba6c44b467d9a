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

from traindyn import _validate, gaussian
from traindyn._types import Array
from traindyn.gaussian import Rule
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.direction import Marked
from traindyn.problems.clouds.mixture import SPREAD, Mixture, draw_input, response
from traindyn.problems.spiked import Statistics

__all__ = ["ProjectedSteps"]

Part = Literal["leading", "rest"]
#: Points of the quadrature by which a step finds its eigenvector.
_ORDER = 40


@dataclass(frozen=True, eq=False)
class ProjectedSteps(Marked):
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

    inputs: Mixture
    part: Part

    def __post_init__(self) -> None:
        """Check the fields."""
        inputs = _validate.instance("inputs", self.inputs, Mixture)
        _validate.choice("part", self.part, ("leading", "rest"))
        if inputs.concentration > SPREAD:
            raise ValueError(
                f"inputs.mean must have fourth powers with a sum of at most {SPREAD:g}, got "
                f"{inputs.concentration:.3g}"
            )

    @property
    def direction(self) -> Array:
        """The mean of the inputs."""
        return self.inputs.mean

    @property
    def drift_dimension(self) -> int:
        """Return zero: the quadrature is the problem's own."""
        return 0

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
        m, r, f, weights = self._margins(statistics)
        wave, top = _plane(f, weights, m, r, 1.0 / self.inputs.precision, self._logistic)
        bulk = weights @ _curvature(f, self._logistic)[0] / self.inputs.precision
        return np.array([math.cos(wave), math.sin(wave)]), float(bulk + top), float(bulk)

    def drift(
        self, statistics: Statistics, *, rule: Rule | None = None, c_delta: float
    ) -> Statistics:
        """Drift of the effective dynamics at one point, corrector included.

        Parameters
        ----------
        statistics : Statistics
            Of one point.
        rule : None
            The quadrature is the problem's own.
        c_delta : float
            Step size times dimension.
        """
        c = _validate.non_negative("c_delta", c_delta)
        u = self.leading(statistics)[0]
        m, r, f, weights = self._margins(statistics)
        tau, flat = 1.0 / self.inputs.precision, weights @ _curvature(f, self._logistic)[0]
        descent = np.array([weights @ f - tau * m * flat, -tau * r * flat])
        along = (descent @ u) * u
        kept = along if self.part == "leading" else descent - along
        kicks = 0.0 if self.part == "leading" else c * tau * float(weights @ f**2)
        return Statistics(np.asarray(kept[0]), np.asarray(2.0 * r * kept[1] + kicks))

    def direct_kernel(self) -> Kernel:
        """One step on a fresh sample; the state is ``tuple(point)``."""
        rule = gaussian.gauss_hermite(1, _ORDER)
        nodes, tau = np.ascontiguousarray(rule.nodes[:, 0]), 1.0 / self.inputs.precision
        leading = self.part == "leading"
        return Kernel(_step, (*self.inputs.constants, nodes, rule.weights, tau, leading))

    @property
    def _logistic(self) -> bool:
        return self.inputs.loss == "logistic"

    def _margins(self, statistics: Statistics) -> tuple[float, float, Array, Array]:
        """Overlap, length of the rest, and f at the nodes of a quadrature with its weights."""
        kept = _validate.instance("statistics", statistics, Statistics)
        m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
        normal = gaussian.gauss_hermite(1, 60)
        spread = math.sqrt((m**2 + r2) / self.inputs.precision)
        f = self.inputs.response(m + spread * normal.nodes[:, 0])
        return m, math.sqrt(r2), f, normal.weights


@njit(nogil=True, error_model="numpy")
def _curvature(f: Array, logistic: bool) -> tuple[Array, Array, Array]:
    """Second, third and fourth derivative of the loss, from minus the first."""
    if not logistic:
        return np.ones_like(f), np.zeros_like(f), np.zeros_like(f)
    h = f * (1.0 - f)
    return h, h * (2.0 * f - 1.0), h * (1.0 - 6.0 * h)


@njit(nogil=True, error_model="numpy")
def _plane(
    f: Array, weights: Array, m: float, r: float, tau: float, logistic: bool
) -> tuple[float, float]:
    """Angle of the leading eigenvector to the mean, and its eigenvalue above the bulk."""
    h, bend, twist = _curvature(f, logistic)
    h0 = np.sum(weights * h)
    h1 = tau * np.sum(weights * bend)
    h2 = tau * tau * np.sum(weights * twist)
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
    mean, law, mixing, logistic, nodes, weights, tau, leading = constants
    x, f = np.empty(w.size), np.empty(nodes.size)
    draw_input(x, mean, law, mixing, rng)
    m, square, margin, overlap = 0.0, 0.0, 0.0, 0.0
    for i in range(w.size):
        m += w[i] * mean[i]
        square += w[i] * w[i]
        margin += w[i] * x[i]
        overlap += x[i] * mean[i]
    r = math.sqrt(max(square - m * m, 0.0))
    for k in range(nodes.size):
        f[k] = response(m + math.sqrt(tau * square) * nodes[k], logistic)
    angle, _ = _plane(f, weights, m, r, tau, logistic)
    on_mean, on_rest = math.cos(angle), (math.sin(angle) / r if r > 0.0 else 0.0)
    along = on_mean * overlap + on_rest * (margin - m * overlap)
    pull = step_size * response(margin, logistic)
    for i in range(w.size):
        u = on_mean * mean[i] + on_rest * (w[i] - m * mean[i])
        w[i] += pull * (along * u if leading else x[i] - along * u)
