r"""RMSprop on a linear classifier of two clouds: Adam without momentum, with a fixed decay.

With the gradient g of one fresh sample, squares and roots by coordinate, one step is

.. math:: q \leftarrow \beta_2 q + (1 - \beta_2) g^2, \qquad w \leftarrow w - \delta\, g / \sqrt q .

As q remembers a fixed number of steps, it varies from coordinate to coordinate, and its law enters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from companion.effective_dynamics.other_steps.adam import AdamPoint, AdamSteps
from companion.effective_dynamics.other_steps.margin import SCALES, SPACING, margins
from companion.effective_dynamics.other_steps.steps import Steps
from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.direction import Marked, Weights
from traindyn.problems.clouds.mixture import Mixture
from traindyn.problems.spiked import Statistics

__all__ = ["RmspropSteps"]

#: Weight of a past step that is left out.
_SMALL = 1e-12


@dataclass(frozen=True, eq=False)
class RmspropSteps(Steps):
    r"""RMSprop with single samples, normal noise and a spread mean.

    With independent margins :math:`s_k \sim N(m, (m^2 + r_\perp^2) / \lambda)`, standard normal
    :math:`\xi_k`, :math:`f_k = f(s_k)` and :math:`Q = (1 - \beta_2) \sum_{k \ge 0} \beta_2^k f_k^2
    \xi_k^2`, let

    .. math:: A = \mathbb E \frac{f_0 Q_1}{Q^{3/2}}, \qquad
        B = \frac{1}{m^2 + r_\perp^2} \mathbb E \frac{f_0 (s_0 - m) Q_1}{Q^{3/2}}, \qquad
        K = \mathbb E \frac{f_0^2 \xi_0^2}{Q}

    with :math:`Q_1` the part :math:`k \ge 1` of Q. The effective dynamics is

    .. math:: \dot m = \sqrt\lambda (A + B m), \qquad
        \tfrac{d}{dt} r_\perp^2 = 2 \sqrt\lambda B r_\perp^2 + c_\delta K .

    Attributes
    ----------
    inputs : Mixture
        Data and loss, with normal noise and a spread mean.
    decay : float
        :math:`\beta_2` in (0, 1).

    Raises
    ------
    ValueError
        If the decay is out of range, the noise not normal, or the mean not spread.

    Examples
    --------
    The corrector is smaller than that of Adam with slow second moments, which is one:

    >>> import numpy as np
    >>> from companion.effective_dynamics.other_steps.rmsprop import RmspropSteps
    >>> from traindyn.problems.clouds.mixture import Mixture
    >>> from traindyn.problems.spiked import Statistics
    >>> begin = Statistics(np.array(0.0), np.array(1.0))
    >>> for decay in (0.5, 0.9, 0.999):
    ...     steps = RmspropSteps(Mixture(np.full(400, 0.05)), decay)
    ...     print(round(steps.averages(begin)[2], 3))
    0.739
    0.884
    0.998
    """

    decay: float

    def __post_init__(self) -> None:
        """Check the fields."""
        inputs = _validate.instance("inputs", self.inputs, Mixture)
        decay = _validate.positive("decay", self.decay)
        if decay >= 1.0:
            raise ValueError(f"decay must be less than 1, got {decay:g}")
        object.__setattr__(self, "decay", decay)
        self._need_spread()
        if inputs.law.kind != "normal":
            raise ValueError(f"inputs must have normal noise, got {inputs.law.kind} noise")

    def initial(self, *, rng: RNG) -> AdamPoint:  # type: ignore[override]
        """Draw weights from N(0, I / n), with second moments as at those statistics."""
        return self._settled(super().initial(rng=rng).w)

    def place(self, statistics: Statistics, *, rng: RNG) -> AdamPoint:  # type: ignore[override]
        """Draw a point with these statistics, with the second moments that belong to them."""
        return self._settled(super().place(statistics, rng=rng).w)

    def statistics(self, point: AdamPoint) -> Statistics:  # type: ignore[override]
        """Overlap with the mean of the inputs, and squared length of the rest."""
        for name in ("first", "second"):
            _validate.finite(f"point.{name}", getattr(point, name), shape=(self.dimension,))
        return super().statistics(point)  # type: ignore[arg-type]

    def _drift(self, statistics: Statistics, c: float) -> Statistics:
        pull, back, kicks = self.averages(statistics)
        root = math.sqrt(self.inputs.precision)
        return Statistics(
            np.asarray(root * (pull + back * statistics.m)),
            np.asarray(2.0 * root * back * statistics.r2 + c * kicks),
        )

    def averages(self, statistics: Statistics) -> tuple[float, float, float]:
        r"""Averages A, B and K over the margins and the noise of the past.

        Negative powers of Q are integrals over scales u of :math:`e^{-u^2 Q}`, which is a product
        over the steps; their number, and the time, grow like :math:`1 / (1 - \beta_2)`.

        Parameters
        ----------
        statistics : Statistics
            Of one point.
        """
        kept = _validate.instance("statistics", statistics, Statistics)
        m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
        length = m**2 + r2
        if length == 0:
            raise ValueError("statistics must not be those of w = 0, whose margins do not vary")
        _, off, weights = margins(statistics, precision=self.inputs.precision)
        f = self.inputs.response(m + off)
        past = np.arange(1, 1 + math.ceil(math.log(_SMALL) / math.log(self.decay)))
        doubled = 2.0 * SCALES[:, None] ** 2 * f**2
        alone, shares = np.ones_like(SCALES), np.zeros_like(SCALES)
        for share in (1.0 - self.decay) * self.decay**past:
            narrowed = 1.0 + share * doubled
            mean = narrowed**-0.5 @ weights
            alone *= mean
            shares += (share * f**2 * narrowed**-1.5) @ weights / mean
        own = 1.0 + (1.0 - self.decay) * doubled
        pull, back = ((value * own**-0.5) @ weights for value in (f, f * off))
        kicks = (f**2 * own**-1.5) @ weights
        total = 4.0 / math.sqrt(math.pi) * SPACING * SCALES**3 * alone * shares
        return (
            float(total @ pull),
            float(total @ back) / length,
            float(2.0 * SPACING * (SCALES**2 * alone) @ kicks),
        )

    def direct_kernel(self) -> Kernel:
        """One step on a fresh sample; the state is ``tuple(point)``."""
        forgetting = (1.0 - self.decay) * self.dimension
        return AdamSteps(self.inputs, forgetting=forgetting).direct_kernel()

    def _settled(self, w: Array) -> AdamPoint:
        m, off, weights = margins(
            Marked.statistics(self, Weights(w)), precision=self.inputs.precision
        )
        power = float(weights @ self.inputs.response(m + off) ** 2) / self.inputs.precision
        return AdamPoint(w, np.zeros_like(w), np.full_like(w, power))
