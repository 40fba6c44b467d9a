r"""Ridgeless least squares: bias, variance and risk, given the data and in the limit.

Targets are :math:`y_i = x_i \cdot \beta + \epsilon_i` with inputs of covariance :math:`\Sigma`
in :math:`\mathbb R^p` and noise of variance :math:`\sigma^2`. Among the least-squares solutions
the one of smallest norm, :math:`\hat\beta = X^+ y`, has the excess risk
:math:`R = \|\Sigma^{1/2}(\hat\beta - \beta)\|^2` (a fresh target adds :math:`\sigma^2`). On
average over the noise, with the sample covariance :math:`S = \frac1n X^T X`,

.. math:: B_z = \|\Sigma^{1/2}\, z (S + z)^{-1} \beta\|^2, \qquad
          V_z = \frac{\sigma^2}{n} \operatorname{tr} \Sigma\, (S + z)^{-2} S ,

for ridge regression with penalty :math:`n z |\beta|^2`, and at :math:`z \to 0` for ridgeless
regression (MDL Lemma 7.3). With :math:`p / n \to \gamma` and :math:`\Sigma = I` both converge
(MDL Theorem 7.4, with the sign of the first variance corrected):

.. math:: B \to r^2 \Big(1 - \frac1\gamma\Big)_+, \qquad
          V \to \frac{\sigma^2 \gamma}{1 - \gamma}\ (\gamma < 1), \quad
          \frac{\sigma^2}{\gamma - 1}\ (\gamma > 1) .

At :math:`\gamma = 1` the limit is infinite, and reported as ``inf``.

Samples are rows here, as everywhere in this library; the notes put them in columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traindyn import _validate

Array: TypeAlias = NDArray[np.float64]

__all__ = ["Risk", "gaussian_risk"]


@dataclass(frozen=True)
class Risk:
    """Excess risk on fresh inputs, on average over the noise of the training targets.

    Attributes
    ----------
    bias, variance : float or ndarray
        Of equal shapes.
    """

    bias: Any
    variance: Any

    @property
    def total(self) -> Any:
        """Bias plus variance; the squared error on fresh targets is larger by their noise."""
        return self.bias + self.variance


def gaussian_risk(n: int, p: int, *, signal: float, noise: float) -> Risk:
    r"""Mean of bias and variance at finite size, for isotropic Gaussian inputs.

    From the mean of an inverse Wishart matrix,

    .. math:: E B = r^2 (1 - n/p)_+, \qquad
              E V = \frac{\sigma^2 \min(n, p)}{|n - p| - 1}\ (|n - p| \ge 2) ,

    and ``inf`` for :math:`|n - p| \le 1`.

    Parameters
    ----------
    n, p : int
        Samples and features.
    signal, noise : float
        :math:`|\beta|^2` and :math:`\sigma^2`.

    Examples
    --------
    >>> risk = gaussian_risk(200, 400, signal=1.0, noise=0.25)
    >>> risk.bias, round(risk.variance, 5)
    (0.5, 0.25126)
    >>> gaussian_risk(200, 201, signal=1.0, noise=0.25).variance
    inf
    """
    count = _validate.integer("n", n, least=1)
    features = _validate.integer("p", p, least=1)
    r2, s2 = _validate.non_negative("signal", signal), _validate.non_negative("noise", noise)
    gap = abs(count - features)
    spread = min(count, features) / (gap - 1) if gap >= 2 else float("inf")
    return Risk(r2 * max(0.0, 1 - count / features), s2 * spread if s2 else 0.0)
