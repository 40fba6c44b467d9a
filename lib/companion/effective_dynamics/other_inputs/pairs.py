"""A linear classifier of two clouds whose noise is correlated within pairs of coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate, gaussian
from traindyn._types import RNG, Array
from traindyn.gaussian import Rule
from traindyn.problems.clouds.direction import Weights
from traindyn.problems.clouds.mixture import SPREAD, Clouds

__all__ = ["PairStatistics", "PairedMixture"]


class PairStatistics(NamedTuple):
    """Summary statistics on the sums and on the differences of the two coordinates of each pair.

    Attributes
    ----------
    m : ndarray, shape (2,)
        Inner products of w with the two parts of the mean.
    r2 : ndarray, shape (2,)
        Squared lengths of the two parts of w, each orthogonal to that part of the mean.
    """

    m: Array
    r2: Array


@dataclass(frozen=True, eq=False)
class PairedMixture(Clouds):
    r"""Two clouds whose noise is correlated within pairs of neighbouring coordinates.

    The coordinates 2j and 2j + 1 of the noise are mixed from two independent ones so that they have
    variance :math:`1 / \lambda` and correlation :math:`\rho`. The covariance has the eigenvalues
    :math:`\tau_\pm = (1 \pm \rho) / \lambda` on the sums and on the differences of pairs, of n / 2
    dimensions each. With the two parts :math:`\mu_\pm` of the mean, the margin of a mean that is
    spread has the law :math:`N(m_+ + m_-, v)`, :math:`v = \sum_\pm \tau_\pm (r_\pm^2 + m_\pm^2 /
    \|\mu_\pm\|^2)`, and with :math:`f' = -\mathrm{loss}''(s)`

    .. math::

        \dot m_\pm &= \|\mu_\pm\|^2\, \mathbb E f + \tau_\pm m_\pm\, \mathbb E f' , \\
        \tfrac{d}{dt} r_\pm^2 &= 2 \tau_\pm r_\pm^2\, \mathbb E f'
            + \tfrac12 c_\delta \tau_\pm\, \mathbb E f^2 .

    Attributes
    ----------
    mean, law, precision, loss
        As for :class:`~traindyn.problems.clouds.mixture.Mixture`; the mean is spread, of even
        dimension, and has both parts.
    correlation : float, optional
        :math:`\rho`, strictly between -1 and 1.

    Raises
    ------
    ValueError
        If a field is out of range.

    Examples
    --------
    Without correlation the two parts add up to the dynamics of independent coordinates:

    >>> import numpy as np
    >>> from companion.effective_dynamics.other_inputs.pairs import PairedMixture, PairStatistics
    >>> from traindyn.problems.clouds.mixture import Mixture, Statistics
    >>> mean = np.tile([1.0, 0.0], 50) / np.sqrt(50)
    >>> here = PairStatistics(np.array([0.2, 0.3]), np.array([0.4, 0.6]))
    >>> pairs = PairedMixture(mean, correlation=0.0).drift(here, c_delta=1.0)
    >>> plain = Mixture(mean).drift(Statistics(np.array(0.5), np.array(1.01)), c_delta=1.0)
    >>> print(np.allclose(pairs.m.sum(), plain.m))
    True
    """

    correlation: float = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        correlation = _validate.number("correlation", self.correlation)
        if not -1.0 < correlation < 1.0:
            raise ValueError(f"correlation must be between -1 and 1, got {correlation:g}")
        object.__setattr__(self, "correlation", correlation)
        if self.dimension % 2:
            raise ValueError(f"mean must have an even number of entries, got {self.dimension}")
        if self.concentration > SPREAD:
            raise ValueError(
                f"mean must have fourth powers with a sum of at most {SPREAD:g}, got "
                f"{self.concentration:.3g}"
            )
        if self.shares.min() < 1e-8:
            raise ValueError(f"mean must have both parts, got squared lengths {self.shares}")

    @property
    def shares(self) -> Array:
        """Squared lengths of the two parts of the mean, shape (2,)."""
        parts = self._parts(self.mean)
        return np.asarray(np.sum(parts**2, axis=1))

    @property
    def variances(self) -> Array:
        """Eigenvalues of the covariance on the two parts, shape (2,)."""
        return np.array([1.0 + self.correlation, 1.0 - self.correlation]) / self.precision

    def place(self, statistics: PairStatistics, *, rng: RNG) -> Weights:
        """Draw a point with these statistics, in uniform directions orthogonal to the means."""
        kept = _validate.instance("statistics", statistics, PairStatistics)
        m = _validate.finite("m", kept.m, shape=(2,))
        r2 = _validate.finite("r2", kept.r2, shape=(2,))
        if r2.min() < 0:
            raise ValueError(f"r2 must be non-negative, got {r2.min():g}")
        mean, shares = self._parts(self.mean), self.shares
        other = self._parts(_validate.generator("rng", rng).standard_normal(self.dimension))
        other -= (np.sum(other * mean, axis=1) / shares)[:, None] * mean
        other *= np.sqrt(r2 / np.sum(other**2, axis=1))[:, None]
        first, second = other + (m / shares)[:, None] * mean
        pairs = np.stack([first + second, first - second], axis=1) / math.sqrt(2)
        return Weights(pairs.ravel())

    def statistics(self, point: Weights) -> PairStatistics:
        """Overlaps with the two parts of the mean, and squared lengths of the rest."""
        w = self._parts(_validate.finite("point.w", point.w, shape=(self.dimension,)))
        m = np.sum(w * self._parts(self.mean), axis=1)
        return PairStatistics(m, np.sum(w**2, axis=1) - m**2 / self.shares)

    @property
    def drift_dimension(self) -> int:
        """Return zero: the quadrature is the problem's own."""
        return 0

    def drift(
        self, statistics: PairStatistics, *, rule: Rule | None = None, c_delta: float
    ) -> PairStatistics:
        """Drift of the effective dynamics at one point, corrector included.

        Parameters
        ----------
        statistics : PairStatistics
            Of one point.
        rule : None
            The quadrature is the problem's own.
        c_delta : float
            Step size times dimension.
        """
        kept = _validate.instance("statistics", statistics, PairStatistics)
        m = _validate.finite("m", kept.m, shape=(2,))
        r2 = _validate.finite("r2", kept.r2, shape=(2,))
        c_delta = _validate.non_negative("c_delta", c_delta)
        tau, shares = self.variances, self.shares
        spread = math.sqrt(max(float(tau @ (r2 + m**2 / shares)), 0.0))
        normal = gaussian.gauss_hermite(1, 60)
        margins = m.sum() + spread * normal.nodes[:, 0]
        f, slope = self.response(margins), self.slope(margins)
        mean, bend, square = normal.weights @ np.stack([f, slope, f**2], axis=1)
        return PairStatistics(
            shares * mean + tau * m * bend,
            2.0 * tau * r2 * bend + 0.5 * c_delta * tau * square,
        )

    def _mixing(self) -> tuple[float, float]:
        """Entries of the root of the covariance of a pair."""
        own = math.sqrt((1.0 + math.sqrt(1.0 - self.correlation**2)) / 2)
        scale = self.precision**-0.5
        return scale * own, scale * self.correlation / (2.0 * own)

    @staticmethod
    def _parts(vector: ArrayLike) -> NDArray[Any]:
        """Coordinates along the sums and the differences of pairs, shape (2, n / 2)."""
        first, second = np.reshape(np.asarray(vector), (-1, 2)).T
        return np.stack([first + second, first - second]) / math.sqrt(2)
