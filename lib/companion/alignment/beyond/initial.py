r"""Spectra of the k-Gaussian mixture's blocks at the origin, orthonormal means, in closed form.

At x = 0 all softmax probabilities are 1/k, so the weight of a sample is a constant in a
Hessian block and takes two values in a G block. A Hessian block is then a multiple of a
sample covariance with k equal spikes, governed by the Baik–Ben Arous–Péché threshold; the
G block has one large weight, whose samples blur the bulk over the small outliers.
"""

from __future__ import annotations

from scipy.optimize import brentq

from traindyn import _validate
from traindyn.laws import MarchenkoPastur

__all__ = ["g_threshold", "hessian_law", "hessian_spike", "hessian_threshold"]


def hessian_law(k: int, precision: float, sample_ratio: float) -> MarchenkoPastur:
    r"""Law of the bulk of a diagonal Hessian block at the origin.

    Parameters
    ----------
    k : int
        Number of classes, equally likely.
    precision : float
        Inverse noise variance (lambda).
    sample_ratio : float
        Samples per dimension.

    Returns
    -------
    MarchenkoPastur
        With ratio :math:`1/\alpha` and variance :math:`\frac1k(1-\frac1k)/\lambda`; its
        ``outlier`` and ``overlap`` at :func:`hessian_spike` are those of the k outliers.
    """
    k = _validate.integer("k", k, least=2)
    weight = (1 - 1 / k) / k
    return MarchenkoPastur(
        1 / _validate.positive("sample_ratio", sample_ratio),
        weight / _validate.positive("precision", precision),
    )


def hessian_spike(k: int, precision: float) -> float:
    r"""Size :math:`\ell = \lambda / k` of the k equal spikes, relative to the noise."""
    k = _validate.integer("k", k, least=2)
    return _validate.positive("precision", precision) / k


def hessian_threshold(k: int, precision: float) -> float:
    r"""Return the sample ratio above which a Hessian block has outliers, :math:`(k/\lambda)^2`."""
    return hessian_spike(k, precision) ** -2


def g_threshold(k: int, precision: float) -> float:
    r"""Return the sample ratio above which a G block has its k - 1 small outliers.

    With :math:`c = 1/\alpha`, own weight :math:`w_1 = (1-1/k)^2`, other weight
    :math:`w_2 = 1/k^2`, and s the Stieltjes transform, the bulk map is
    :math:`z(s) = -1/s + \frac1\lambda \sum_l \frac1k w_l / (1 + \frac c\lambda w_l s)` and an
    outlier of the other means sits at :math:`s_2 = -1/(w_2(\frac1k + \frac c\lambda))`. It
    exists if :math:`s_2` lies beyond the pole of the own weight and :math:`z'(s_2) > 0`.

    Parameters
    ----------
    k : int
        Number of classes, equally likely, at least 3 (for two the weights are equal).
    precision : float
        Inverse noise variance (lambda).

    Examples
    --------
    >>> from companion.alignment.beyond.initial import g_threshold
    >>> round(g_threshold(10, 10.0)), round(g_threshold(3, 10.0), 2)
    (809, 1.86)
    """
    k = _validate.integer("k", k, least=3)
    precision = _validate.positive("precision", precision)
    own, other = (1 - 1 / k) ** 2, 1 / k**2

    def slope(c: float) -> float:
        s = -1 / (other * (1 / k + c / precision))
        spread = sum(
            mass * weight**2 / (1 + c / precision * weight * s) ** 2
            for mass, weight in ((1 / k, own), (1 - 1 / k, other))
        )
        return 1 / s**2 - c / precision**2 * spread

    # beyond this ratio the own weight's pole lies past the outlier
    last = precision / k / (own / other - 1)
    return 1 / float(brentq(slope, 1e-12 * last, last * (1 - 1e-12), xtol=1e-300, rtol=1e-13))
