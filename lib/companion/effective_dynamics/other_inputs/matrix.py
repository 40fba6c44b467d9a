r"""Matrix PCA whose noise has independent entries of any law.

As in the chapter on PCA, :math:`Y = \lambda v v^\top + W` and :math:`L(x, Y) = \|Y - x x^\top\|^2`,
but the entries of W have another law with mean zero and variance one, and the unit vector v is
given, since the law of a matrix with such entries is not invariant under rotations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.direction import Marked, unit
from traindyn.problems.clouds.laws import Law, draw

__all__ = ["SpikedMatrix"]


@dataclass(frozen=True, eq=False)
class SpikedMatrix(Marked):
    r"""Spiked matrices with any noise, all entries drawn at each step.

    Its gradient is linear in the noise, so that mean and covariance of a step are those of
    :class:`~traindyn.problems.spiked.tensor.SpikedTensor` of order two, and with them the limits of
    the same statistics :math:`m = \langle x, v \rangle` and :math:`r_\perp^2 = \|x\|^2 - m^2`.

    Attributes
    ----------
    spike : ndarray, shape (n,)
        Unit vector v.
    signal : float
        Strength :math:`\lambda`.
    law : Law, optional
        Of the entries of the noise.

    Raises
    ------
    ValueError
        If a field is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.problems.clouds.laws import Law
    >>> from companion.effective_dynamics.other_inputs.matrix import SpikedMatrix
    >>> from traindyn.problems.spiked import Statistics
    >>> from traindyn.sgd import direct
    >>> problem = SpikedMatrix(np.eye(30)[0], signal=2.0, law=Law("signs"))
    >>> start = problem.place(Statistics(np.array(1.0), np.array(1.0)), rng=0)
    >>> path = direct.run(problem, start, [0.5], step_size=1 / 30, rng=1)
    >>> bool(abs(path.statistics.m[0] - 1) < 0.8)
    True
    """

    spike: Array
    signal: float
    law: Law = Law()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "spike", unit("spike", self.spike))
        object.__setattr__(self, "signal", _validate.positive("signal", self.signal))
        _validate.instance("law", self.law, Law)

    @property
    def direction(self) -> Array:
        """The spike."""
        return self.spike

    def direct_kernel(self) -> Kernel:
        """One step on a fresh matrix; the state is ``tuple(point)``."""
        return Kernel(_step, (self.spike, self.signal, *self.law.code))


@njit(nogil=True, error_model="numpy")
def _step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Take the step x <- x - step_size (4 R^2 x - 2 (Y + Y^T) x)."""
    (x,) = state
    spike, signal, kind, parameter = constants
    pull = np.zeros(x.size)
    square = 0.0
    along = 0.0
    for i in range(x.size):
        square += x[i] * x[i]
        along += spike[i] * x[i]
        row = 0.0
        for j in range(x.size):
            noise = draw(kind, parameter, rng)
            row += noise * x[j]
            pull[j] += noise * x[i]
        pull[i] += row
    for i in range(x.size):
        pull[i] += 2.0 * signal * along * spike[i]
        x[i] += step_size * (2.0 * pull[i] - 4.0 * square * x[i])
