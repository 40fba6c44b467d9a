r"""Matrix PCA whose noise has independent entries of any law.

As in the chapter on PCA, :math:`Y = \lambda v v^\top + W` and :math:`L(x, Y) = \|Y - x x^\top\|^2`,
but the entries of W have another law with mean zero and variance one, and the unit vector v is
given, since the law of a matrix with such entries is not invariant under rotations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from companion.effective_dynamics.other_inputs.laws import Law, draw
from companion.effective_dynamics.other_inputs.mixture import Weights
from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.problems.base import Kernel
from traindyn.problems.spiked import Statistics

__all__ = ["SpikedMatrix"]


@dataclass(frozen=True, eq=False)
class SpikedMatrix:
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
    >>> from companion.effective_dynamics.other_inputs.laws import Law
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
        spike = _validate.finite("spike", self.spike, shape=(None,))
        if abs(spike @ spike - 1.0) > 1e-8:
            raise ValueError(f"spike must be a unit vector, got length {np.sqrt(spike @ spike):g}")
        object.__setattr__(self, "spike", _validate.frozen(spike))
        object.__setattr__(self, "signal", _validate.positive("signal", self.signal))
        _validate.instance("law", self.law, Law)

    @property
    def dimension(self) -> int:
        """Dimension n of the spike."""
        return int(self.spike.size)

    @property
    def ridge(self) -> float:
        """Return zero: the loss has no ridge."""
        return 0.0

    def initial(self, *, rng: RNG) -> Weights:
        """Draw a start from N(0, I / n)."""
        generator = _validate.generator("rng", rng)
        return Weights(generator.standard_normal(self.dimension) / math.sqrt(self.dimension))

    def place(self, statistics: Statistics, *, rng: RNG) -> Weights:
        """Draw a point with these statistics, in a uniform direction orthogonal to the spike."""
        kept = _validate.instance("statistics", statistics, Statistics)
        m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
        other = _validate.generator("rng", rng).standard_normal(self.dimension)
        other -= (other @ self.spike) * self.spike
        return Weights(m * self.spike + math.sqrt(r2) * other / np.linalg.norm(other))

    def statistics(self, point: Weights) -> Statistics:
        """Overlap with the spike, and squared length of the rest."""
        x = _validate.finite("point.w", point.w, shape=(self.dimension,))
        m = x @ self.spike
        return Statistics(np.asarray(m), np.asarray(x @ x - m**2))

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
