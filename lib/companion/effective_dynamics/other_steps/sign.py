r"""Sign descent on a linear classifier of two clouds.

With the gradient g of a batch of b fresh samples, one step is

.. math:: w \leftarrow w - \delta\, \mathrm{sign}(g), \qquad
    -g = \frac1b \sum_{j=1}^b f(s_j) (\mu + y_j \zeta_j) .

Given the margins, the coordinates of -g are nearly normal with small means, and the mean of the
sign of such a number is :math:`\sqrt{2/\pi}` times its mean over its standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from companion.effective_dynamics.other_steps.margin import SCALES, SPACING, margins
from companion.effective_dynamics.other_steps.steps import Steps, descent
from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import Kernel
from traindyn.problems.clouds.mixture import SPREAD, Mixture
from traindyn.problems.spiked import Statistics

__all__ = ["SignSteps"]


@dataclass(frozen=True, eq=False)
class SignSteps(Steps):
    r"""Sign descent with batches of fresh samples.

    With margins :math:`s_j \sim N(m, (m^2 + r_\perp^2) / \lambda)`, :math:`f_j = f(s_j)` and

    .. math:: A = \mathbb E \frac{\sum_j f_j}{\sqrt{\sum_j f_j^2}}, \qquad
        B = \frac{1}{m^2 + r_\perp^2}
            \mathbb E \frac{\sum_j f_j (s_j - m)}{\sqrt{\sum_j f_j^2}}, \qquad
        q = \sqrt{2 \lambda / \pi},

    the effective dynamics is

    .. math:: \dot m = q (A + B m), \qquad \tfrac{d}{dt} r_\perp^2 = 2 q B r_\perp^2 + c_\delta .

    For one sample and the logistic loss the step does not depend on w: A = 1, B = 0, and q is
    :math:`\sqrt K\, \mathbb E\, \mathrm{sign}(K^{-1/2} + \zeta_1)` for any symmetric law of a
    coordinate and a mean with K entries of one size, where :math:`\zeta_1` is a coordinate of the
    noise. The corrector is then :math:`c_\delta` times the share of the coordinates that move,
    less :math:`q^2 / n`: these differ from one and from zero for laws with atoms.

    Attributes
    ----------
    inputs : Mixture
        Data and loss. Its noise is normal and its mean spread, unless the batch is one and the loss
        logistic; then the noise is symmetric, and all entries of the mean that are not zero have
        one size.
    batch : int, optional
        Samples per step, b.

    Raises
    ------
    ValueError
        If the batch is out of range, or the inputs have no effective dynamics with it.

    Examples
    --------
    Coordinates that are signs are larger than those of a spread mean, and hide it:

    >>> import numpy as np
    >>> from companion.effective_dynamics.other_steps.sign import SignSteps
    >>> from traindyn.problems.clouds.laws import Law
    >>> from traindyn.problems.clouds.mixture import Mixture
    >>> from traindyn.problems.spiked import Statistics
    >>> begin = Statistics(np.array(0.0), np.array(1.0))
    >>> for kind in ("normal", "signs"):
    ...     steps = SignSteps(Mixture(np.full(400, 0.05), law=Law(kind)))
    ...     print(steps.drift(begin, c_delta=1.0).m.round(3))
    0.798
    0.0
    """

    batch: int = 1

    def __post_init__(self) -> None:
        """Check the fields, and that there is a limit."""
        inputs = _validate.instance("inputs", self.inputs, Mixture)
        object.__setattr__(self, "batch", _validate.integer("batch", self.batch, least=1))
        if inputs.law.kind == "bernoulli" and inputs.law.parameter != 0.5:
            raise ValueError(
                "inputs.law must be symmetric, or the signs of one step have a common part and w "
                f"does not average, got bernoulli of {inputs.law.parameter:g}"
            )
        if self._blind:
            sizes = np.abs(inputs.mean[inputs.mean != 0])
            if sizes.max() - sizes.min() > 1e-8:
                raise ValueError(
                    "inputs.mean must have entries of one size, besides zeros, for batches of one "
                    f"sample, got sizes from {sizes.min():.3g} to {sizes.max():.3g}"
                )
        elif inputs.law.kind != "normal" or inputs.concentration > SPREAD:
            raise ValueError(
                "inputs must have normal noise and a mean whose fourth powers sum up to at most "
                f"{SPREAD:g}, but for single samples and the logistic loss, got "
                f"{inputs.law.kind} noise and {inputs.concentration:.3g}"
            )

    @property
    def _blind(self) -> bool:
        """Whether the step does not depend on w: one sample, and a loss that decreases."""
        return self.batch == 1 and self.inputs.loss == "logistic"

    def _drift(self, statistics: Statistics, c: float) -> Statistics:
        kept = _validate.instance("statistics", statistics, Statistics)
        m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
        if self._blind:
            pull, kicks = self._sightless()
            return Statistics(np.asarray(pull), np.asarray(c * kicks))
        pull, back = self.averages(statistics)
        q = math.sqrt(2.0 * self.inputs.precision / math.pi)
        return Statistics(np.asarray(q * (pull + back * m)), np.asarray(2.0 * q * back * r2 + c))

    def averages(self, statistics: Statistics) -> tuple[float, float]:
        r"""Averages A and B over the margins of a batch.

        The root in their denominators is written as an integral over scales u of products over the
        batch, :math:`S^{-1/2} = (2 / \sqrt\pi) \int_0^\infty e^{-u^2 S} du`.

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
        one, first, along = self._scaled(kept)
        others = one ** (self.batch - 1)
        total = 2.0 / math.sqrt(math.pi) * self.batch * SPACING
        return (
            total * float(np.sum(SCALES * first * others)),
            total * float(np.sum(SCALES * along * others)) / length,
        )

    def direct_kernel(self) -> Kernel:
        """One step on fresh samples; the state is ``tuple(point)``."""
        return Kernel(_step, (self.inputs.constants, self.batch))

    def _sightless(self) -> tuple[float, float]:
        """Drift of the overlap, and share of the coordinates that move, for single samples."""
        count = np.count_nonzero(self.direction)
        law, size = self.inputs.law, math.sqrt(self.inputs.precision / count)
        # With the label, a coordinate has the law of the noise and that of its negative.
        mean = float(law.sign_mean(size) - law.sign_mean(-size)) / 2
        still = 1.0 - law.parameter if law.kind == "sparse" else 0.0
        moving = self.dimension - (self.dimension - count) * still
        return math.sqrt(count) * mean, (moving - count * mean**2) / self.dimension

    def _scaled(self, statistics: Statistics) -> tuple[Array, Array, Array]:
        """Means of 1, f and f (s - m) times exp(-u^2 f^2) over a margin, at all scales u."""
        m, off, weights = margins(statistics, precision=self.inputs.precision)
        if self.inputs.loss == "square":
            # Here f = 1 - s is normal.
            variance = float(m**2 + statistics.r2) / self.inputs.precision
            away, narrowed = 1.0 - m, 1.0 + 2.0 * SCALES**2 * variance
            one = np.exp(-(SCALES**2) * away**2 / narrowed) / np.sqrt(narrowed)
            first = one * away / narrowed
            square = one * (variance / narrowed + (away / narrowed) ** 2)
            return one, first, away * first - square
        f = self.inputs.response(m + off)
        kept = np.exp(-((SCALES[:, None] * f) ** 2)) * weights
        return kept.sum(axis=1), kept @ f, kept @ (f * off)


@njit(nogil=True, error_model="numpy")
def _step(
    state: tuple[Array], constants: tuple[Any, ...], rng: np.random.Generator, step_size: float
) -> None:
    """Move every coordinate by the step size against its gradient."""
    (w,) = state
    inputs, batch = constants
    pull = descent(w, inputs, batch, rng)
    for i in range(w.size):
        w[i] += step_size * np.sign(pull[i])
