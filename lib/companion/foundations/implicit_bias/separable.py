r"""Linear classification of separable data: losses, gradient flow and gradient descent.

The risk of w is :math:`L(w) = \frac1n \sum_i \ell(\langle w, z_i \rangle)` with
:math:`z_i = y_i x_i`. It has no minimiser: w grows like :math:`\hat w \log t`, so that nothing is
seen on a linear axis of time. The flow is integrated in :math:`s = \log(1 + t)`,

.. math:: \frac{dw}{ds} = \frac1n \sum_i e^{s + \log(-\ell'(\langle w, z_i \rangle))} z_i ,

where the right side stays of order one for ever: LSODA with the exact Jacobian reaches
:math:`t = e^{600}`. Descent is run step by step at first; afterwards a step changes w by
:math:`O(1/t)` and descent follows the flow of its own loss, from where it is, at the time
:math:`\eta t`. The two differ by :math:`O(1/\text{exact})` for ever after, where `exact` is the
number of true steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import integrate, special

from companion.foundations.implicit_bias.margin import signed
from traindyn import _validate
from traindyn._types import Array
from traindyn.trajectory import Trajectory

__all__ = [
    "EXPONENTIAL",
    "LOGISTIC",
    "Classifier",
    "GrowthStatistics",
    "MarginLoss",
]

_LATEST = 1e260  # time: its logarithm is below 600, and exp(600) is a double


@dataclass(frozen=True)
class MarginLoss:
    r"""A decreasing convex loss :math:`\ell` of the margin.

    Attributes
    ----------
    name : str
    value : callable
        :math:`\ell(m)`, elementwise.
    log_slope : callable
        :math:`\log(-\ell'(m))`, elementwise.
    decay : callable
        :math:`-\frac{d}{dm}\log(-\ell'(m))`, elementwise: one in the tail.
    smoothness : float
        Largest :math:`\ell''`; infinite if there is none.
    """

    name: str
    value: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]
    decay: Callable[[Array], Array]
    smoothness: float


EXPONENTIAL = MarginLoss("exponential", lambda m: np.exp(-m), np.negative, np.ones_like, np.inf)
r""":math:`\ell(m) = e^{-m}`."""

LOGISTIC = MarginLoss(
    "logistic",
    lambda m: np.logaddexp(0.0, -m),
    lambda m: -np.logaddexp(0.0, m),
    special.expit,
    0.25,
)
r""":math:`\ell(m) = \log(1 + e^{-m})`."""


class GrowthStatistics(NamedTuple):
    r"""What training of a linear classifier shows.

    Attributes
    ----------
    weights : ndarray, shape (T, d)
    loss : ndarray, shape (T,)
        Mean over the data.
    margin : ndarray, shape (T,)
        Least signed distance of a point, :math:`\min_i y_i \langle w, x_i\rangle / |w|`;
        zero where w is zero.
    """

    weights: Array
    loss: Array
    margin: Array


class Classifier:
    r"""Linear classification without intercept.

    Parameters
    ----------
    x : array_like, shape (n, d)
    y : array_like, shape (n,)
        Labels 1 or -1.
    loss : MarginLoss, default EXPONENTIAL

    Raises
    ------
    ValueError
        If the shapes disagree or a label is not 1 or -1.

    Examples
    --------
    One point at 1: the flow is :math:`w = \log(1 + t)`, descent with step one is close to it.

    >>> from companion.foundations.implicit_bias.separable import Classifier
    >>> one = Classifier([[1.0]], [1])
    >>> one.flow([0, 1e12]).statistics.weights[:, 0].round(4).tolist()
    [0.0, 27.631]
    >>> one.descend([0, 10, 1e12], step_size=1.0).statistics.weights[:, 0].round(4).tolist()
    [0.0, 2.529, 27.631]
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, *, loss: MarginLoss = EXPONENTIAL) -> None:
        self.points = signed(x, y)
        self.loss_function = loss

    def loss(self, w: ArrayLike) -> Array:
        """Risk at points of shape (..., d)."""
        w = _validate.ending("w", w, (self.points.shape[1],))
        return np.asarray(self.loss_function.value(w @ self.points.T).mean(axis=-1))

    def gradient(self, w: ArrayLike) -> Array:
        """Gradient of the risk at points of shape (..., d)."""
        w = _validate.ending("w", w, (self.points.shape[1],))
        pull = np.exp(self.loss_function.log_slope(w @ self.points.T))
        return np.asarray(-pull @ self.points / len(self.points))

    @property
    def curvature(self) -> float:
        r"""Largest eigenvalue of :math:`\frac1n\sum_i x_i x_i^\top`."""
        return float(np.linalg.norm(self.points, 2) ** 2 / len(self.points))

    def safe_step_size(self, start: ArrayLike | None = None) -> float:
        r"""Step size below which descent from a start lowers the risk at every step.

        With a smooth loss :math:`2/(\beta_\ell \lambda_{\max})` from any start (MDL Theorem 4.7,
        with the right power), :math:`\lambda_{\max}` from `curvature`. The exponential loss has
        no :math:`\beta_\ell`. Its Hessian is at most :math:`\max_i|x_i|^2 L(w)`, and the line to
        the next point stays where the risk is at most :math:`L(w_0)`, so that the step may be
        :math:`2 / (\max_i |x_i|^2 L(w_0))`: it depends on the start.
        """
        if np.isfinite(self.loss_function.smoothness):
            return float(2 / (self.loss_function.smoothness * self.curvature))
        largest = float((self.points**2).sum(axis=1).max())
        return float(2 / (largest * self.loss(self._start(start))))

    def flow(
        self, times: ArrayLike, *, start: ArrayLike | None = None, rtol: float = 1e-10
    ) -> Trajectory[GrowthStatistics]:
        r"""Gradient flow :math:`\dot w = -\nabla L(w)`.

        Parameters
        ----------
        times : array_like, shape (T,)
            Strictly increasing, non-negative, at most 1e260.
        start : array_like, shape (d,), optional
            Zero unless given.
        rtol : float, default 1e-10
            Relative tolerance of the integration.

        Returns
        -------
        Trajectory
            With :class:`GrowthStatistics`.
        """
        rtol = _validate.positive("rtol", rtol)
        when = self._times("times", times)
        return Trajectory(when, self._statistics(self._follow(when, 0.0, self._start(start), rtol)))

    def descend(
        self,
        steps: ArrayLike,
        *,
        step_size: float,
        start: ArrayLike | None = None,
        exact: int = 100_000,
    ) -> Trajectory[GrowthStatistics]:
        """Gradient descent after given numbers of steps, up to 1e260.

        Parameters
        ----------
        steps : array_like of int, shape (T,)
            Strictly increasing.
        step_size : float
            Constant and positive; for safe ones see :meth:`safe_step_size`.
        start : array_like, shape (d,), optional
            Zero unless given.
        exact : int, default 100000
            Steps taken one by one; beyond them the flow continues, see the module.

        Returns
        -------
        Trajectory
            At ``times = steps * step_size``, with :class:`GrowthStatistics`.

        Raises
        ------
        FloatingPointError
            If descent leaves the floating-point range: the step is too large for this start.
        """
        count = self._times("steps", steps)
        if np.any(count != np.round(count)):
            raise ValueError(f"steps must be whole numbers, got {count}")
        step = _validate.positive("step_size", step_size)
        first = _validate.integer("exact", exact, least=1)
        early = count[count <= first]
        late = count[count > first]
        stops = np.append(early, first) if late.size else early
        logistic = self.loss_function is LOGISTIC
        if not logistic and self.loss_function is not EXPONENTIAL:
            raise ValueError(f"loss must be EXPONENTIAL or LOGISTIC, got {self.loss_function.name}")
        path = _steps(self.points, self._start(start), step, stops.astype(np.int64), logistic)
        if not np.isfinite(path).all():
            raise FloatingPointError(
                f"descent with step_size = {step:g} diverges; a safe one is below "
                f"{self.safe_step_size(start):g}"
            )
        if late.size:
            rest = self._follow(late * step, first * step, path[-1], 1e-10)
            path = np.vstack([path[:-1], rest])
        return Trajectory(count * step, self._statistics(path), step_size=step)

    def _start(self, start: ArrayLike | None) -> Array:
        d = self.points.shape[1]
        return np.zeros(d) if start is None else _validate.finite("start", start, shape=(d,))

    @staticmethod
    def _times(name: str, values: ArrayLike) -> Array:
        array = _validate.increasing(name, values)
        if array[-1] > _LATEST:
            raise ValueError(f"{name} must be at most {_LATEST:g}, got {array[-1]:g}")
        return array

    def _statistics(self, weights: Array) -> GrowthStatistics:
        norm = np.linalg.norm(weights, axis=1)
        least = (weights @ self.points.T).min(axis=1)
        margin = np.divide(least, norm, out=np.zeros_like(norm), where=norm > 0)
        return GrowthStatistics(weights, self.loss(weights), margin)

    def _follow(self, times: Array, since: float, start: Array, rtol: float) -> Array:
        """Flow from `start` at time `since`, at later times, shape (T, d)."""
        z, loss = self.points, self.loss_function

        def pull(s: float, w: Array) -> Array:
            return np.asarray(np.exp(s + loss.log_slope(z @ w))) / len(z)

        def field(s: float, w: Array) -> Array:
            return pull(s, w) @ z

        def jacobian(s: float, w: Array) -> Array:
            return np.asarray(-(z.T * (pull(s, w) * loss.decay(z @ w))) @ z)

        grid, begin = np.log1p(times), np.log1p(since)
        if grid[-1] == begin:
            return np.tile(start, (grid.size, 1))
        solution = integrate.solve_ivp(
            field,
            (begin, grid[-1]),
            start,
            method="LSODA",
            t_eval=grid,
            jac=jacobian,
            rtol=rtol,
            atol=1e-2 * rtol,
        )
        if not solution.success:
            raise FloatingPointError(f"the flow of the risk failed: {solution.message}")
        return np.asarray(solution.y.T)


@njit(cache=True, nogil=True, error_model="numpy")
def _steps(z, start, step, stops, logistic):  # type: ignore[no-untyped-def]
    """Descent, step by step: w <- w + step / n sum_i exp(log_slope(z_i w)) z_i."""
    n, d = z.shape
    w = start.copy()
    change = np.empty(d)
    path = np.empty((stops.size, d))
    done = 0
    for row in range(stops.size):
        for _ in range(done, stops[row]):
            change[:] = 0.0
            for i in range(n):
                m = 0.0
                for j in range(d):
                    m += z[i, j] * w[j]
                pull = 1.0 / (1.0 + np.exp(m)) if logistic else np.exp(-m)
                for j in range(d):
                    change[j] += pull * z[i, j]
            for j in range(d):
                w[j] += step / n * change[j]
        done = stops[row]
        path[row] = w
    return path
