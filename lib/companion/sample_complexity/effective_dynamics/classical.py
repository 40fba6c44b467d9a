r"""The classical limit: fixed dimension, step size to zero.

One loss on which everything is known is enough to test what the classical theory says of SGD
(MDL Section 12.1.1): :math:`L(x, \xi) = \tfrac12 (x - \xi)^2` with
:math:`\xi \sim N(0, 1)`, from its minimum,

.. math:: X_\ell = (1 - \delta) X_{\ell-1} + \delta\,\xi_\ell, \qquad X_0 = 0 .

The gradient flow stays at zero, and SGD is a Gaussian chain of variance of order
:math:`\delta`. That it leaves an interval by a given time is a large deviation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from traindyn import _validate
from traindyn._types import Array
from traindyn.trajectory import whole_steps

__all__ = [
    "deviation_rate",
    "exit_probability",
    "printed_interpolation",
]

_NODES_PER_STEP = 6.0  # quadrature nodes per standard deviation of a step


def deviation_rate(level: float, horizon: float) -> float:
    r"""Rate of the deviation :math:`\sup_{t \le T} |X_t| > \epsilon` as the step size vanishes.

    The I of MDL Section 12.1.1 for this chain,

    .. math:: I(\epsilon) = \inf\Big\{ \tfrac12 \int_0^T (\dot x + x)^2 dt :
              x_0 = 0,\ \sup |x_t| \ge \epsilon \Big\} = \frac{\epsilon^2}{1 - e^{-2T}},

    attained by the path that arrives at the end.

    Examples
    --------
    >>> from companion.sample_complexity.effective_dynamics.classical import deviation_rate
    >>> round(deviation_rate(0.4, 2.0), 4)
    0.163
    """
    level, horizon = _validate.positive("level", level), _validate.positive("horizon", horizon)
    return float(level**2 / -math.expm1(-2.0 * horizon))


def exit_probability(level: float, horizon: float, step_size: float) -> float:
    r"""Probability of :math:`\max_{\ell \delta \le T} |X_\ell| > \epsilon`, without sampling.

    The density of the chain killed outside :math:`[-\epsilon, \epsilon]` is carried from step to
    step on Gauss–Legendre nodes, and the mass that leaves is added up: no difference of
    numbers close to one is taken, so that the relative accuracy does not depend on how rare the
    event is.

    Parameters
    ----------
    level : float
        :math:`\epsilon`.
    horizon : float
        T, rounded to whole steps.
    step_size : float
        :math:`\delta`, below one. The cost is of order :math:`\epsilon^2 T / \delta^3`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from companion.sample_complexity.effective_dynamics.classical import exit_probability
    >>> round(exit_probability(0.4, 2.0, 0.1), 4)
    0.3393
    """
    level, steps = _validate.positive("level", level), _steps(horizon, step_size)
    count = 24 + math.ceil(_NODES_PER_STEP * 2.0 * level / step_size)
    nodes, weights = np.polynomial.legendre.leggauss(count)
    x, w = level * nodes, level * weights
    noise = stats.norm(scale=step_size)
    centre = (1.0 - step_size) * x
    onward = noise.pdf(x[:, None] - centre) * w
    leaving = (noise.sf(level - centre) + noise.sf(level + centre)) * w
    density, lost = noise.pdf(x), 2.0 * noise.sf(level)
    for _ in range(steps - 1):
        lost += leaving @ density
        density = onward @ density
    return float(lost)


def printed_interpolation(path: ArrayLike, times: ArrayLike, *, step_size: float) -> Array:
    r"""Interpolation of iterates as printed in MDL Section 12.1.1.

    .. math:: \tilde X_t = X_{\lfloor t/\delta \rfloor}
              + (t - \lfloor t/\delta \rfloor \delta)\, X_{\lfloor t/\delta \rfloor + 1}

    adds a multiple of the next iterate where its difference to the last one, over the step
    size, belongs. :meth:`traindyn.trajectory.Trajectory.at` is right.

    Parameters
    ----------
    path : array_like, shape (L + 1,)
        Iterates.
    times : array_like
        Non-negative and below L times the step size.
    step_size : float
        :math:`\delta`, the time from one iterate to the next.

    Returns
    -------
    ndarray, shape of `times`
    """
    iterates = _validate.finite("path", path, shape=(None,))
    step_size, grid = _validate.positive("step_size", step_size), _validate.finite("times", times)
    last = np.floor(grid / step_size).astype(np.int64)
    if last.min(initial=0) < 0 or last.max(initial=0) + 1 >= iterates.size:
        raise ValueError(
            f"times must lie in [0, {(iterates.size - 1) * step_size:g}), got "
            f"{grid.min():g} to {grid.max():g}"
        )
    return np.asarray(iterates[last] + (grid - last * step_size) * iterates[last + 1])


def _steps(horizon: float, step_size: float) -> int:
    step_size = _validate.positive("step_size", step_size)
    if step_size >= 1:
        raise ValueError(f"step_size must be below 1, got {step_size:g}")
    steps = int(whole_steps([_validate.positive("horizon", horizon)], step_size)[0])
    return _validate.integer("horizon / step_size", steps, least=1)
