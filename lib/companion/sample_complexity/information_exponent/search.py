r"""Law of the search phase: when a random start leaves the equator.

*Order two*, fixed step size. While the overlap is small, :math:`\sqrt N m = e^{\kappa t} G`
with the growth rate :math:`\kappa` of the equator and a normal G, of variance one from the start
plus :math:`\delta V / 2\kappa` from the noise. The effective dynamics takes over from there: the
time to reach a level is

.. math:: t_\eta = \frac{\frac12 \log N - \log |G|}{\kappa} + C_\eta .

*Order k from three on*, step size :math:`\delta = c N^{-(k-2)/2}`. In the time
:math:`\tau = c \cdot \mathrm{steps} / N^{k-1}` the rescaled overlap :math:`y = \sqrt N m` has a
limit in which start, signal, noise and corrector are of one size,

.. math:: dy = \big(a\, y^{k-1} - \tfrac c2 v(0)\, y\big)\, d\tau + \sqrt{c V}\, dB,
          \qquad a = -\frac{\phi^{(k)}(0)}{(k-1)!},

and the search ends when it explodes. The law of that time is the recovery curve of SGD in units
of :math:`\alpha_c(N, k) = N^{k-2}`, between MDL Theorem 11.11 at small times and MDL Theorem 11.10
at large ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.linalg import lapack
from scipy.special import exprel

from companion.sample_complexity.information_exponent.model import SingleIndex
from companion.sample_complexity.information_exponent.population import (
    equator,
    information_exponent,
    travel_time,
)
from traindyn import _validate
from traindyn._types import Array

__all__ = ["EscapeLaw", "Explosion", "escape_law", "explosion"]

_REACH = 40.0
"""Where the rest of an explosion is left to the differential equation."""
_CELLS = 500
_SMALL = 1e-3
_STEP = 0.01
"""Longest step in time, in units of one over the pull."""

# The method of Radau of order five has the Padé approximation P/Q of the exponential as its
# stability function; in partial fractions a step is one real and one complex tridiagonal solve.
_P, _Q = np.array([1 / 20, 2 / 5, 1.0]), np.array([-1 / 60, 3 / 20, -3 / 5, 1.0])
_POLES = np.roots(_Q)[np.argsort(np.abs(np.roots(_Q).imag))[[0, 1]]]
_WEIGHTS = np.polyval(_P, _POLES) / np.polyval(np.polyder(_Q), _POLES)


@dataclass(frozen=True)
class EscapeLaw:
    """Law of the time at which a level is reached, information exponent two.

    Attributes
    ----------
    rate : float
        Growth rate of the equator.
    spread : float
        Variance of G.
    delay : float
        Deterministic part of the time, the logarithm of N included.
    """

    rate: float
    spread: float
    delay: float

    def __post_init__(self) -> None:
        _validate.positive("rate", self.rate)
        _validate.positive("spread", self.spread)
        _validate.number("delay", self.delay)

    def cdf(self, times: ArrayLike) -> Array:
        """Probability that the level is reached by given times ``steps * c_delta / N``."""
        grid = _validate.finite("times", times)
        return np.asarray(
            stats.chi2(1).sf(np.exp(2 * self.rate * (self.delay - grid)) / self.spread)
        )

    def quantile(self, probability: ArrayLike) -> Array:
        """Inverse of :meth:`cdf`."""
        share = _validate.finite("probability", probability)
        if np.any((share <= 0) | (share >= 1)):
            raise ValueError(f"probability must lie in (0, 1), got {share.min()} to {share.max()}")
        square = self.spread * stats.chi2(1).isf(share)
        return np.asarray(self.delay - 0.5 * np.log(square) / self.rate)


def escape_law(problem: SingleIndex, level: float, *, c_delta: float) -> EscapeLaw:
    """Law of the time at which the modulus of the overlap reaches a level, order two.

    It is the length of the search in MDL Theorem 11.12.

    Parameters
    ----------
    problem : SingleIndex
        Of information exponent two, with an equator that is left.
    level : float
        In (0.001, 1), below the stable fixed point.
    c_delta : float
        Below :func:`~companion.sample_complexity.information_exponent.population.critical_step`.

    Raises
    ------
    ValueError
        If the information exponent is not two, the equator is stable or the level out of reach.

    Examples
    --------
    >>> from companion.sample_complexity.information_exponent.search import escape_law
    >>> from companion.sample_complexity.information_exponent.models import OnlinePCA
    >>> law = escape_law(OnlinePCA(10_000, signal=1.0), 0.5, c_delta=0.1)
    >>> law.quantile([0.1, 0.5, 0.9]).round(2).tolist()
    [1.94, 2.44, 3.37]
    """
    level = _validate.number("level", level)
    if not _SMALL < level < 1:
        raise ValueError(f"level must lie in ({_SMALL:g}, 1), got {level!r}")
    order = information_exponent(problem).order
    if order != 2:
        raise ValueError(f"problem must have information exponent 2, got {order}")
    limit = equator(problem, c_delta=c_delta)
    rate, noise = float(limit.matrix[0, 0]), float(limit.noise[0, 0])
    if rate <= 0:
        raise ValueError(
            f"c_delta must be below the critical step, got a growth rate of {rate:.3g}"
        )
    rest = travel_time(problem, _SMALL, level, c_delta=c_delta)
    if not math.isfinite(rest):
        raise ValueError(f"level must be below the fixed point, got {level!r}")
    delay = (0.5 * math.log(problem.dimension) + math.log(_SMALL)) / rate + rest
    return EscapeLaw(rate, 1 + noise / (2 * rate), delay)


@dataclass(frozen=True)
class Explosion:
    r"""Limit of the search phase for an information exponent from three on.

    Attributes
    ----------
    order : int
    pull : float
        a.
    restoring : float
        :math:`\frac c2 v(0)`.
    noise : float
        :math:`c V`, the variance of the noise per unit of time.
    """

    order: int
    pull: float
    restoring: float
    noise: float

    def __post_init__(self) -> None:
        _validate.integer("order", self.order, least=3)
        _validate.positive("pull", self.pull)
        _validate.non_negative("restoring", self.restoring)
        _validate.positive("noise", self.noise)

    def drift(self, y: Array) -> Array:
        """Drift of the limiting equation."""
        y = _validate.finite("y", y)
        return np.asarray(self.pull * y ** (self.order - 1) - self.restoring * y)

    def cdf(
        self, times: ArrayLike, *, reach: float = math.inf, start: float | None = None
    ) -> Array:
        r"""Probability that a start has reached a height by given times :math:`\tau`.

        Even orders: the modulus of y, which both explosions count for. The diffusion is
        replaced by a birth-and-death chain on a grid fine near the origin (exponential fitting,
        error of second order in the cells), which is followed in time by the implicit method of
        Radau of order five; its error is below 1e-5, and far below at most times.

        Parameters
        ----------
        times : array_like, shape (T,)
            Strictly increasing, equally spaced, from 0 on.
        reach : float, optional
            Height y, from 1.5 on; a level :math:`\eta` of the overlap is at :math:`\eta\sqrt N`.
            Default: infinity, the time of the explosion.
        start : float, optional
            Height of the start, in (0, 1.5); default: the modulus of a standard normal.

        Returns
        -------
        ndarray, shape (T,)
        """
        grid = _validate.increasing("times", times)
        steps = np.diff(grid)
        if grid[0] != 0 or grid.size < 2 or np.ptp(steps) > 1e-9 * steps[0]:
            raise ValueError("times must be equally spaced from 0 on")
        top = _validate.positive_or_infinite("reach", reach)
        if top < 1.5:
            raise ValueError(f"reach must be at least 1.5, got {reach!r}")
        y, generator = self._chain(min(top, _REACH))
        row = np.zeros(y.size)
        if start is None:
            row[:-1] = (np.where(y >= 0, np.exp(-y * y / 2), 0.0) * np.gradient(y))[:-1]
            row /= row.sum()
        else:
            height = _validate.positive("start", start)
            if height >= 1.5:
                raise ValueError(f"start must be below 1.5, got {start!r}")
            after = int(np.searchsorted(y, height))
            share = (height - y[after - 1]) / (y[after] - y[after - 1])
            row[after - 1 : after + 1] = 1 - share, share
        absorbed = self._absorbed(generator, row, float(steps[0]), steps.size)
        # From the last cell on, noise no longer matters.
        power = self.order - 2
        rest = (y[-1] ** -power - max(top, y[-1]) ** -power) / (power * self.pull)
        return np.asarray(np.interp(grid - rest, grid, absorbed, left=0.0))

    def _absorbed(self, generator: Array, row: Array, step: float, count: int) -> Array:
        """Mass of the last place at multiples of a step."""
        inner = max(1, math.ceil(step * self.pull / _STEP))
        lower, middle, upper = (step / inner * np.diag(generator, k) for k in (-1, 0, 1))
        # Mass moves by the transposed generator.
        real = lapack.dgttrf(upper, middle - _POLES[0].real, lower)[:-1]
        mixed = lapack.zgttrf(upper.astype(complex), middle - _POLES[1], lower.astype(complex))[:-1]
        found = [0.0]
        for _ in range(count):
            for _ in range(inner):
                first = lapack.dgttrs(*real, row)[0]
                second = lapack.zgttrs(*mixed, row.astype(complex))[0]
                row = _WEIGHTS[0].real * first + 2 * (_WEIGHTS[1] * second).real
            found.append(row[-1])
        return np.maximum.accumulate(np.clip(found, 0.0, 1.0))

    def _chain(self, height: float) -> tuple[Array, Array]:
        """Places and generator, the last place absorbing."""
        top = math.asinh(height)
        if self.order % 2:
            y = np.sinh(np.linspace(-math.asinh(_REACH / 2), top, 3 * _CELLS // 2))
        else:
            y = np.sinh(np.linspace(0.0, top, _CELLS))
        gaps, middles = np.diff(y), 0.5 * (y[1:] + y[:-1])
        widths = np.gradient(y) if self.order % 2 else np.r_[gaps[0] / 2, np.gradient(y)[1:]]
        peclet = 2 * self.drift(middles) * gaps / self.noise
        up = 0.5 * self.noise / gaps / exprel(-peclet)
        down = 0.5 * self.noise / gaps / exprel(peclet)
        generator = np.zeros((y.size, y.size))
        index = np.arange(y.size - 1)
        generator[index, index + 1] = up / widths[:-1]
        generator[index[1:], index[:-1]] = down[:-1] / widths[1:-1]
        generator[np.diag_indices(y.size)] = -generator.sum(axis=1)
        return y, generator


def explosion(problem: SingleIndex, *, scale: float) -> Explosion:
    r"""Limit of the search phase at step size :math:`c N^{-(k-2)/2}` (MDL Theorem 11.12).

    Parameters
    ----------
    problem : SingleIndex
        Its dimension plays no role.
    scale : float
        c.

    Raises
    ------
    ValueError
        If the information exponent is below three.
    """
    c = _validate.positive("scale", scale)
    found = information_exponent(problem)
    if found.order < 3:
        raise ValueError(f"problem must have an information exponent from 3 on, got {found.order}")
    at = problem.moments(0.0)
    return Explosion(found.order, found.pull, 0.5 * c * float(at.power), c * float(at.noise))
