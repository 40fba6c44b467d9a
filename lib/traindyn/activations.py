"""Activations with the derivatives that training and its Hessian need.

The gradient of a network needs the slope of its activation, the Hessian and the response
functions of its mean-field dynamics the curvature too. An activation without one of them (a
jump, a kink) is refused, by name, where that is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erf, expit, ndtr

from traindyn import _validate

__all__ = [
    "ERF",
    "GELU",
    "IDENTITY",
    "QUADRATIC",
    "RELU",
    "TANH",
    "Activation",
    "Elementwise",
    "largest_curvature",
    "softplus",
]

Elementwise: TypeAlias = Callable[[Any], Any]
"""Maps an array, element by element, to one of its type."""

_ROOT_TWO_PI = 2.5066282746310002
_TWO_OVER_ROOT_PI = 1.1283791670955126
_PROBE = np.linspace(-12.0, 12.0, 4801)
_EDGE = np.abs(_PROBE) > 11.5


@dataclass(frozen=True)
class Activation:
    """A scalar function with its first two derivatives.

    Attributes
    ----------
    name : str
    value : callable
        Element by element; float32 in, float32 out.
    slope : callable or None
        Derivative almost everywhere; None if there is none that training could use.
    curvature : callable or None
        None if the slope jumps.
    low, high : float
        Bounds of the value, infinite if it has none.
    both : callable, optional
        Value and slope at once, where that is cheaper.
    kind : str
        Family for which compiled loops have the formula, or Gaussian moments a closed form;
        empty for any other function.
    parameter : float
        Of the family.

    Examples
    --------
    >>> from traindyn.activations import GELU
    >>> import numpy as np
    >>> GELU.value(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """

    name: str
    value: Elementwise
    slope: Elementwise | None
    curvature: Elementwise | None
    low: float = -np.inf
    high: float = np.inf
    both: Callable[[Any], tuple[Any, Any]] | None = None
    kind: str = ""
    parameter: float = 0.0

    def __post_init__(self) -> None:
        """Check the range and the parameter."""
        if not _validate.not_nan("low", self.low) <= _validate.not_nan("high", self.high):
            raise ValueError(f"low must not exceed high, got {self.low} and {self.high}")
        _validate.number("parameter", self.parameter)

    def __repr__(self) -> str:
        return f"Activation({self.name})"

    def value_and_slope(self, v: Any) -> tuple[Any, Any]:
        """Return value and slope, each of the shape of `v`."""
        if self.both is None:
            return self.value(v), self.first("its value and slope")(v)
        return self.both(v)

    def first(self, purpose: str) -> Elementwise:
        """Return the slope.

        Raises
        ------
        ValueError
            If there is none; the message names the `purpose`.
        """
        if self.slope is None:
            raise ValueError(f"activation must have a derivative for {purpose}, got {self.name}")
        return self.slope

    def second(self, purpose: str) -> Elementwise:
        """Return the curvature.

        Raises
        ------
        ValueError
            If there is none; the message names the `purpose`.
        """
        if self.curvature is None:
            raise ValueError(
                f"activation must have a second derivative for {purpose}, got {self.name}; "
                f"use a smooth one such as GELU or softplus(sharpness)"
            )
        return self.curvature

    @property
    def curvature_range(self) -> tuple[float, float]:
        """Least and largest curvature on [-12, 12], on a grid of step 0.005."""
        values = self.second("its range")(_PROBE)
        return float(np.min(values)), float(np.max(values))


def _gelu(v: Any) -> Any:
    return v * ndtr(v)


def _density(v: Any) -> Any:
    return np.exp(v * v * v.dtype.type(-0.5)) * v.dtype.type(1 / _ROOT_TWO_PI)


def _gelu_slope(v: Any) -> Any:
    return ndtr(v) + v * _density(v)


def _gelu_both(v: Any) -> tuple[Any, Any]:
    share = ndtr(v)
    return v * share, share + v * _density(v)


def _gelu_curvature(v: Any) -> Any:
    return (2 - v * v) * _density(v)


def _tanh_slope(v: Any) -> Any:
    return 1 - np.tanh(v) ** 2


def _tanh_curvature(v: Any) -> Any:
    value = np.tanh(v)
    return -2 * value * (1 - value**2)


def _erf(v: Any) -> Any:
    return erf(v)


def _erf_slope(v: Any) -> Any:
    return _TWO_OVER_ROOT_PI * np.exp(-v * v)


def _erf_curvature(v: Any) -> Any:
    return -2 * _TWO_OVER_ROOT_PI * v * np.exp(-v * v)


GELU = Activation(
    "gelu", _gelu, _gelu_slope, _gelu_curvature, low=-0.17, both=_gelu_both, kind="gelu"
)
"""Gaussian error linear unit, v Phi(v)."""
ERF = Activation("erf", _erf, _erf_slope, _erf_curvature, low=-1.0, high=1.0, kind="erf")
"""Error function: smooth, bounded, and with all Gaussian moments elementary."""
QUADRATIC = Activation(
    "quadratic",
    lambda v: v * v,
    lambda v: 2 * v,
    lambda v: np.full_like(v, 2),
    low=0.0,
    kind="quadratic",
)
"""The square, v^2."""
TANH = Activation("tanh", np.tanh, _tanh_slope, _tanh_curvature, low=-1.0, high=1.0, kind="tanh")
"""Hyperbolic tangent."""
IDENTITY = Activation("identity", lambda v: v, np.ones_like, np.zeros_like, kind="identity")
"""No activation: a linear network."""
RELU = Activation(
    "relu",
    lambda v: np.maximum(v, 0),
    lambda v: (v > 0).astype(v.dtype),
    None,
    low=0.0,
    kind="relu",
)
"""Rectified linear unit: it has no curvature; :func:`softplus` is its smoothing."""


def softplus(sharpness: float = 1.0) -> Activation:
    """Smoothing of the rectified linear unit, ``log(1 + exp(sharpness * v)) / sharpness``.

    Parameters
    ----------
    sharpness : float, default 1.0
        Positive; the largest curvature is ``sharpness / 4``.

    Raises
    ------
    ValueError
        If `sharpness` is not positive.

    Examples
    --------
    >>> from traindyn.activations import softplus
    >>> import numpy as np
    >>> smooth = softplus(20.0)
    >>> bool(abs(smooth.value(np.array([1.0])) - 1.0) < 1e-9)
    True
    """
    beta = _validate.positive("sharpness", sharpness)

    def value(v: Any) -> Any:
        return np.logaddexp(v * v.dtype.type(0), beta * v) / v.dtype.type(beta)

    def slope(v: Any) -> Any:
        return expit(v * v.dtype.type(beta))

    def curvature(v: Any) -> Any:
        share = slope(v)
        return v.dtype.type(beta) * share * (1 - share)

    return Activation(
        f"softplus({beta:g})", value, slope, curvature, low=0.0, kind="softplus", parameter=beta
    )


def largest_curvature(activation: Activation) -> tuple[float, float]:
    r"""Where :math:`|\sigma''|` is largest, and its value there.

    Searched on [-12, 12]: on a grid of step 0.005, then by Brent's method.

    Parameters
    ----------
    activation : Activation
        With a second derivative that is largest inside the interval searched.

    Returns
    -------
    point, value : float

    Raises
    ------
    ValueError
        If the activation has no second derivative, or it grows up to the ends.

    Examples
    --------
    At :math:`1 / \sqrt 2`, :math:`\sqrt{8 / (\pi e)}`:

    >>> import numpy as np
    >>> from traindyn.activations import ERF, largest_curvature
    >>> point, value = largest_curvature(ERF)
    >>> bool(abs(abs(point) - 0.5**0.5) < 1e-6), round(value**2 * np.pi * np.e, 10)
    (True, 8.0)
    """
    second = activation.second("the Lipschitz constant of the Jacobian")
    sizes = np.abs(second(_PROBE))
    best = int(np.argmax(sizes))
    if np.any(_EDGE & (sizes > (1 + 1e-9) * sizes[~_EDGE].max())):
        raise ValueError(
            f"activation must have a bounded second derivative, that of {activation.name} grows"
        )
    low, high = _PROBE[max(best - 1, 0)], _PROBE[min(best + 1, _PROBE.size - 1)]
    found = minimize_scalar(
        lambda v: -abs(float(second(np.array([v]))[0])), bounds=(low, high), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    if -found.fun > sizes[best]:
        return float(found.x), float(-found.fun)
    return float(_PROBE[best]), float(sizes[best])
