r"""Spiked matrix PCA (order two): closed solution, escape from a random start.

For k = 2 the effective dynamics is linear in projective coordinates. With
:math:`p = m^2 = \hat p / z` and :math:`q = r_\perp^2 = \hat q / z`,

.. math:: \frac{d}{dt} \begin{pmatrix} \hat p \\ \hat q \\ z \end{pmatrix} =
          \begin{pmatrix} 8\lambda - 2\alpha & 0 & 0 \\ 8 c_\delta & 8 c_\delta - 2\alpha & 0 \\
          8 & 8 & 0 \end{pmatrix}
          \begin{pmatrix} \hat p \\ \hat q \\ z \end{pmatrix}

(derived here; BGJ (3.1) is nonlinear and not solved there), for every step size and ridge.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from traindyn import _validate
from traindyn.problems.spiked.tensor import SpikedTensor, Statistics
from traindyn.trajectory import Trajectory

__all__ = ["solution"]


def solution(
    problem: SpikedTensor, start: Statistics, times: ArrayLike, *, c_delta: float
) -> Trajectory[Statistics]:
    """Solve the effective dynamics of order two in closed form.

    Parameters
    ----------
    problem : SpikedTensor
        Of order two.
    start : Statistics
        At time 0.
    times : array_like, shape (T,)
        Increasing, not negative.
    c_delta : float
        Limit of ``step_size * dimension``.

    Returns
    -------
    Trajectory
        ``step_size`` None.

    Raises
    ------
    ValueError
        If the order is not two or an argument is out of range.

    Examples
    --------
    >>> from traindyn.problems import SpikedTensor
    >>> from traindyn.problems.spiked.matrix import solution
    >>> from traindyn.problems.spiked.tensor import Statistics
    >>> problem = SpikedTensor(2, 100, signal=1.5)
    >>> path = solution(problem, Statistics(0.3, 1.3), [0.0, 1.0], c_delta=1.0)
    >>> print(path.statistics.m.round(8), path.statistics.r2.round(8))
    [0.3        0.66996394] [1.3        1.00000919]
    """
    need_order_two(problem)
    c = _validate.non_negative("c_delta", c_delta)
    grid = _validate.increasing("times", times)
    m = _validate.number("m", start.m)
    r2 = _validate.non_negative("r2", start.r2)
    grow, turn = 8.0 * problem.signal - 2.0 * problem.ridge, 8.0 * c - 2.0 * problem.ridge
    matrix = np.array([[grow, 0.0, 0.0], [8.0 * c, turn, 0.0], [8.0, 8.0, 0.0]])
    # The common factor drops out of the ratios; without it nothing overflows.
    matrix -= max(grow, turn, 0.0) * np.eye(3)
    p, q, z = (expm(grid[:, None, None] * matrix) @ [m * m, r2, 1.0]).T
    return Trajectory(grid, Statistics(np.copysign(np.sqrt(p / z), m), q / z))


def need_order_two(problem: SpikedTensor) -> None:
    """Refuse spiked tensors that are no matrices."""
    if problem.order != 2:
        raise ValueError(f"problem.order must be 2 for matrix PCA, got {problem.order}")
