"""Formulas of MDL Sections 12.4.1 and 12.4.2 as printed, where they differ from ours.

Nothing here describes training: a check that confirms the correct formulas must reject these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.spiked.tensor import Statistics

__all__ = ["printed_matrix_equilibria", "printed_radius"]


def printed_matrix_equilibria() -> tuple[Statistics, ...]:
    r"""Return the fixed points of matrix PCA above its threshold in MDL Section 12.4.1.

    At c_delta = 1: (0, 0), (1, 0) and (1, 1), for (0, 0), (0, 1) and
    :math:`(\pm\sqrt{\lambda - 1}, 1)` of
    :func:`traindyn.problems.spiked.equilibria.equilibria`.
    """
    places = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0))
    return tuple(Statistics(np.asarray(m), np.asarray(r2)) for m, r2 in places)


def printed_radius(start: float, times: ArrayLike) -> Array:
    r"""Evaluate the radius at the equator of matrix PCA as printed in MDL Section 12.4.2.

    .. math:: \dot u_2 = -8 u_2 (u_2^2 - 1)

    for :math:`-8 u_2 (u_2 - 1)`. In closed form
    :math:`u_2^{-2} = 1 + (u_2(0)^{-2} - 1) e^{-16 t}`.

    Parameters
    ----------
    start : float
        :math:`u_2(0)`, positive.
    times : array_like
        Steps times step size, of any shape.

    Returns
    -------
    ndarray, shape of `times`
    """
    start, grid = _validate.positive("start", start), _validate.finite("times", times)
    return np.asarray(1.0 / np.sqrt(1.0 + (start**-2 - 1.0) * np.exp(-16.0 * grid)))
