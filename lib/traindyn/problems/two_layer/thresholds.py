r"""Stability of the origin at finite precision: when training starts at all.

Where the second layer vanishes the errors are :math:`\tfrac12 - y`, and with
:math:`\hat w = W_i / |W_i|` the response is an elementary integral,

.. math:: A_i = \sum_c p_c (\tfrac12 - y_c) \Big[ \Phi(\sqrt\lambda\, \hat w \cdot s_c)\, s_c
          + \frac{\varphi(\sqrt\lambda\, \hat w \cdot s_c)}{\sqrt\lambda}\, \hat w \Big].

The dynamics near the origin is homogeneous in (v, W), and a ray that keeps its shape grows at
the rate :math:`\Gamma - \alpha`: the origin is unstable for ridges below :math:`\Gamma`.

In the binary mixture :math:`A_i = -\mu / 4` whatever W and the precision, so that the threshold
is 1/4 at every precision. In the XOR mixture it grows with the precision from 0 to 1/8, and at a
given ridge nothing is learned below a critical precision. The source mentions such a transition
and gives no value.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from traindyn import _validate

__all__ = ["BINARY_RIDGE", "XOR_RIDGE", "xor_critical_precision", "xor_critical_ridge"]

#: Ridge at which the origin of the binary mixture changes stability, at every precision.
BINARY_RIDGE = 0.25

#: Limit of :func:`xor_critical_ridge` at infinite precision.
XOR_RIDGE = 0.125

# The cosine of a tilted ray is looked for down to these tenths: its powers stay above zero.
_MAX_TENTHS = 50
_MAX_ITERATIONS = 500
# The logarithm of the precision is doubled so often: the precision stays a number.
_MAX_DOUBLINGS = 9


def xor_critical_ridge(precision: float, *, c_delta: float = 0.0) -> float:
    r"""Ridge below which the origin of the XOR mixture is unstable.

    For ``c_delta = 0`` the fastest ray is a neuron along a centroid, which gives

    .. math:: \alpha_c(\lambda) = \tfrac18 \Big[ 2 \Phi(\sqrt\lambda) - 1
              + \frac{2 \varphi(\sqrt\lambda) - \sqrt{2 / \pi}}{\sqrt\lambda} \Big].

    Otherwise the noise of the gradient feeds :math:`R^\perp` at the rate
    :math:`c_\delta v^2 / (8 \lambda)` and tilts the ray away from the centroid, which lowers
    the threshold.

    Parameters
    ----------
    precision : float
        Positive; infinity gives 1/8.
    c_delta : float, default 0
        Step size times dimension.

    Raises
    ------
    ValueError
        If an argument is out of range.
    FloatingPointError
        If `c_delta` is so large, next to the precision, that the ray cannot be computed.

    Examples
    --------
    >>> from traindyn.problems.two_layer.thresholds import xor_critical_ridge
    >>> round(xor_critical_ridge(10.0), 4), round(xor_critical_ridge(1.0, c_delta=1.0), 4)
    (0.0935, 0.0423)
    """
    c_delta = _validate.non_negative("c_delta", c_delta)
    if precision == math.inf:
        return XOR_RIDGE
    precision = _validate.positive("precision", precision)
    if c_delta == 0:
        return _alignment(1.0, precision)

    def excess(cosine: float) -> float:
        # Stationary shape of a ray with v = 1, first-layer length n and growth n * aligned:
        # what the noise feeds into the part off the centroid, minus what growth needs.
        aligned = _alignment(cosine, precision)
        square = _pull(cosine, precision) / (cosine * aligned)
        off = square * (1.0 - cosine**2)
        decay = aligned - _side(cosine, precision) / square
        return float(c_delta / (16.0 * precision) - math.sqrt(square) * decay * off)

    least = 0.5
    for _ in range(_MAX_TENTHS):
        if excess(least) <= 0:
            break
        least *= 0.1
    else:
        raise FloatingPointError(
            f"c_delta must leave a ray whose cosine is above {least:.3g}, got {c_delta:g} at "
            f"precision = {precision:g}"
        )
    cosine = float(brentq(excess, least, 1.0, xtol=1e-15 * least, maxiter=_MAX_ITERATIONS))
    aligned = _alignment(cosine, precision)
    return aligned * math.sqrt(_pull(cosine, precision) / (cosine * aligned))


def xor_critical_precision(ridge: float, *, c_delta: float = 0.0) -> float:
    """Precision above which the origin of the XOR mixture is unstable at this ridge.

    Parameters
    ----------
    ridge : float
        In (0, 1/8).
    c_delta : float, default 0
        Limit of ``step_size * dimension``; a larger one needs a higher precision.

    Raises
    ------
    ValueError
        If the ridge is not in that interval: from 1/8 on, no precision is enough.
    FloatingPointError
        If the precision is no number that can be computed.

    Examples
    --------
    >>> from traindyn.problems.two_layer.thresholds import xor_critical_precision
    >>> round(xor_critical_precision(0.1), 1)
    15.9
    """
    ridge = _validate.positive("ridge", ridge)
    if ridge >= XOR_RIDGE:
        raise ValueError(
            f"ridge must be below {XOR_RIDGE:g}, the threshold at infinite precision, got {ridge:g}"
        )

    def excess(logarithm: float) -> float:
        try:
            return xor_critical_ridge(math.exp(logarithm), c_delta=c_delta) - ridge
        except FloatingPointError as error:
            raise FloatingPointError(
                f"ridge must have a critical precision that can be computed, got {ridge:g}: {error}"
            ) from None

    low, high = -1.0, 1.0
    for _ in range(_MAX_DOUBLINGS):
        if excess(low) <= 0:
            break
        low *= 2.0
    for _ in range(_MAX_DOUBLINGS):
        if excess(high) >= 0:
            break
        high *= 2.0
    if excess(low) > 0 or excess(high) < 0:
        raise FloatingPointError(
            f"ridge must have a critical precision between {math.exp(low):.3g} and "
            f"{math.exp(high):.3g}, got {ridge:g} at c_delta = {c_delta:g}"
        )
    return math.exp(float(brentq(excess, low, high, xtol=1e-14)))


def _side(cosine: float, precision: float) -> float:
    """Pull along the unit weights from the noise around the two centroids of a label."""
    # The difference of two normal densities, without cancellation at small cosines.
    fall = math.expm1(-0.5 * precision * cosine**2) / math.sqrt(2.0 * math.pi)
    return 0.25 * fall / math.sqrt(precision)


def _pull(cosine: float, precision: float) -> float:
    """Pull on the overlap with the centroid of a neuron with this cosine to it."""
    sure = 0.125 * math.erf(math.sqrt(0.5 * precision) * cosine)
    return sure + cosine * _side(cosine, precision)


def _alignment(cosine: float, precision: float) -> float:
    """Pull along the unit weights, which drives the second layer."""
    sure = 0.125 * math.erf(math.sqrt(0.5 * precision) * cosine)
    return cosine * sure + _side(cosine, precision)
