"""Ridgeless least squares on Gaussian inputs: mean of bias and variance at finite size.

Other inputs, the limit and the best ridge are in :mod:`companion.foundations.double_descent.risk`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traindyn import _validate

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
    >>> from traindyn.problems.ridgeless import gaussian_risk
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
