r"""Adam on a linear classifier of two clouds, with slow second moments.

With the gradient g of a batch, powers and roots by coordinate, one step is

.. math::

    p \leftarrow \beta_1 p - (1 - \beta_1) g, \qquad
    q \leftarrow q + \frac\kappa n (g^2 - q), \qquad
    w \leftarrow w + \delta\, p / \sqrt q ,

which is Adam with :math:`\beta_2 = 1 - \kappa / n`, without the correction for its start and
without the number that keeps the root from zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from companion.effective_dynamics.other_steps.margin import margins
from companion.effective_dynamics.other_steps.steps import Steps, descent
from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.mixture import Mixture
from traindyn.problems.spiked import Statistics

__all__ = ["AdamPoint", "AdamStatistics", "AdamSteps"]


class AdamPoint(NamedTuple):
    """Weights and their moments.

    Attributes
    ----------
    w : ndarray, shape (n,)
    first, second : ndarray, shape (n,)
        Running means of the negative gradient, and of its squares.
    """

    w: Array
    first: Array
    second: Array


class AdamStatistics(NamedTuple):
    """Summary statistics of Adam.

    Attributes
    ----------
    m, r2 : ndarray
        Overlap with the mean of the inputs, and squared length of the rest.
    v : ndarray
        Mean of the second moments over the coordinates.
    """

    m: Array
    r2: Array
    v: Array


@dataclass(frozen=True, eq=False)
class AdamSteps(Steps):
    r"""Adam with batches of fresh samples.

    As the second moments forget over many steps, all of them are near their mean v, and

    .. math::

        \dot m = \frac{\mathbb E f + m\, \mathbb E f' / \lambda}{\sqrt v}, \qquad
        \tfrac{d}{dt} r_\perp^2 = \frac{2 r_\perp^2\, \mathbb E f'}{\lambda \sqrt v}
            + \frac{c_\delta\, \mathbb E f^2}{\lambda b v}, \qquad
        \dot v = \frac{\kappa}{c_\delta} \Big(\frac{\mathbb E f^2}{\lambda b} - v\Big)

    with margins :math:`s \sim N(m, (m^2 + r_\perp^2) / \lambda)`. Momentum does not enter.

    Attributes
    ----------
    inputs : Mixture
        Data and loss, with a spread mean.
    batch : int, optional
        Samples per step, b.
    momentum : float, optional
        :math:`\beta_1` in [0, 1).
    forgetting : float, optional
        :math:`\kappa = (1 - \beta_2) n`, positive and at most n.

    Raises
    ------
    ValueError
        If a field is out of range, or the mean is not spread.

    Examples
    --------
    Where the second moments have caught up, the corrector is the step size times the dimension:

    >>> import numpy as np
    >>> from companion.effective_dynamics.other_steps.adam import AdamStatistics, AdamSteps
    >>> from traindyn.problems.clouds.mixture import Mixture
    >>> steps = AdamSteps(Mixture(np.full(400, 0.05), loss="square"))
    >>> here = AdamStatistics(np.array(0.0), np.array(0.0), np.array(1.0))
    >>> [round(float(part), 6) + 0.0 for part in steps.drift(here, c_delta=0.5)]
    [1.0, 0.5, 0.0]
    """

    batch: int = 1
    momentum: float = 0.0
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        """Check the fields."""
        inputs = _validate.instance("inputs", self.inputs, Mixture)
        set_field = object.__setattr__
        set_field(self, "batch", _validate.integer("batch", self.batch, least=1))
        momentum = _validate.non_negative("momentum", self.momentum)
        if momentum >= 1.0:
            raise ValueError(f"momentum must be less than 1, got {momentum:g}")
        set_field(self, "momentum", momentum)
        forgetting = _validate.positive("forgetting", self.forgetting)
        if forgetting > inputs.dimension:
            raise ValueError(
                f"forgetting must be at most the dimension {inputs.dimension}, got {forgetting:g}"
            )
        set_field(self, "forgetting", forgetting)
        self._need_spread()

    def initial(self, *, rng: RNG) -> AdamPoint:  # type: ignore[override]
        """Draw weights from N(0, I / n), with first moments zero and second moments one."""
        return self._from_rest(super().initial(rng=rng).w, 1.0)

    def place(self, statistics: AdamStatistics, *, rng: RNG) -> AdamPoint:  # type: ignore[override]
        """Draw a point with these statistics, with first moments zero and equal second ones."""
        kept = _validate.instance("statistics", statistics, AdamStatistics)
        v = _validate.positive("v", kept.v)
        return self._from_rest(super().place(Statistics(kept.m, kept.r2), rng=rng).w, v)

    def statistics(self, point: AdamPoint) -> AdamStatistics:  # type: ignore[override]
        """Overlap, squared length of the rest, and mean second moment."""
        _validate.finite("point.first", point.first, shape=(self.dimension,))
        second = _validate.finite("point.second", point.second, shape=(self.dimension,))
        m, r2 = super().statistics(point)  # type: ignore[arg-type]
        return AdamStatistics(m, r2, np.asarray(second.mean()))

    def _drift(self, statistics: AdamStatistics, c: float) -> AdamStatistics:
        kept = _validate.instance("statistics", statistics, AdamStatistics)
        v, c = _validate.positive("v", kept.v), _validate.positive("c_delta", c)
        tau, r2 = 1.0 / self.inputs.precision, float(kept.r2)
        m, off, weights = margins(Statistics(kept.m, kept.r2), precision=self.inputs.precision)
        f, slope = self.inputs.response(m + off), self.inputs.slope(m + off)
        mean, bend, square = weights @ np.stack([f, slope, f**2], axis=1)
        power = tau * square / self.batch
        return AdamStatistics(
            (mean + tau * m * bend) / math.sqrt(v),
            2.0 * tau * r2 * bend / math.sqrt(v) + c * power / v,
            self.forgetting / c * (power - v),
        )

    def direct_kernel(self) -> Kernel:
        """One step on fresh samples; the state is ``tuple(point)``."""
        rate = self.forgetting / self.dimension
        return Kernel(_step, (self.inputs.constants, self.batch, self.momentum, rate))

    def _from_rest(self, w: Array, v: float) -> AdamPoint:
        return AdamPoint(w, np.zeros_like(w), np.full_like(w, v))


@njit(nogil=True, error_model="numpy")
def _step(
    state: tuple[Array, Array, Array],
    constants: tuple[Any, ...],
    rng: np.random.Generator,
    step_size: float,
) -> None:
    """Renew the moments with the gradient of a batch, and move by their quotient."""
    w, first, second = state
    inputs, batch, momentum, rate = constants
    pull = descent(w, inputs, batch, rng)
    for i in range(w.size):
        first[i] = momentum * first[i] + (1.0 - momentum) * pull[i]
        second[i] += rate * (pull[i] ** 2 - second[i])
        w[i] += step_size * first[i] / math.sqrt(second[i])
