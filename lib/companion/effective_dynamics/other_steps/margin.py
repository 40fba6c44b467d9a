"""A quadrature over the margins of inputs, which are normal."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.spiked import Statistics

__all__ = ["margins"]

#: Logarithmic grid of the scales u at which integrals of exp(-u^2 S) over u are summed.
SPACING = 0.2
SCALES = np.exp(np.arange(-16.0, 16.0, SPACING))
#: Largest standard deviation of a margin, where the rule has three million points.
_WIDEST = 1e5


def margins(statistics: Statistics, *, precision: float) -> tuple[float, Array, Array]:
    r"""Mean of the margin, and a rule for its deviation from the mean.

    The margin of :math:`w` has the law :math:`N(m, (m^2 + r_\perp^2) / \lambda)`.

    Parameters
    ----------
    statistics : Statistics
        Of one point.
    precision : float
        Inverse variance :math:`\lambda` of a coordinate of the noise.

    Returns
    -------
    mean : float
    deviations, weights : ndarray

    Raises
    ------
    ValueError
        If the statistics are out of range, or the margin varies by more than 100000.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.effective_dynamics.other_steps.margin import margins
    >>> from traindyn.problems.spiked import Statistics
    >>> mean, off, weights = margins(Statistics(np.array(0.5), np.array(0.75)), precision=2.0)
    >>> print(mean, (weights @ off**2).round(12))
    0.5 0.5
    """
    kept = _validate.instance("statistics", statistics, Statistics)
    m, r2 = _validate.number("m", kept.m), _validate.non_negative("r2", kept.r2)
    spread = math.sqrt((m**2 + r2) / _validate.positive("precision", precision))
    if spread > _WIDEST:
        raise ValueError(
            f"statistics must leave a standard deviation of the margin of at most {_WIDEST:g}, got "
            f"{spread:g}"
        )
    nodes, weights = normal_rule(spread)
    return m, spread * nodes, weights


@njit(nogil=True, error_model="numpy")
def normal_rule(spread: float) -> tuple[Array, Array]:
    """Trapezoidal rule of a standard normal number; compiled, for the kernels of SGD.

    Its error is exponentially small in the distance from the line at which a function of the
    margin stops to be analytic, over the spacing; for the functions here that is pi / 4 or more.

    Parameters
    ----------
    spread : float
        Standard deviation of the margin: spacings are small in its units, too.
    """
    spacing = min(0.35, 0.3 / spread) if spread > 0.0 else 0.35
    count = math.ceil(9.0 / spacing)
    nodes = spacing * np.arange(-count, count + 1).astype(np.float64)
    weights: Array = spacing / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * nodes**2)
    return nodes, weights
