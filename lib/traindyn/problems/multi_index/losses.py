r"""Losses of a prediction f against a label y, with derivatives in the prediction.

Dynamical mean field theory and the Hessian need :math:`\ell' = \partial_f \ell` and
:math:`\ell'' = \partial_f^2 \ell`. Whether :math:`\ell'` is bounded decides whether the
Hessian has a left edge at all when labels are unbounded (MW, Square loss).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from traindyn import _validate

__all__ = ["SQUARED", "Loss", "cauchy", "log_cosh", "logistic", "pseudo_huber"]

Pairwise: TypeAlias = Callable[[Any, Any], Any]
"""Maps labels and predictions, element by element."""


@dataclass(frozen=True)
class Loss:
    """A scalar function of a label and a prediction, convex or not in the prediction.

    Attributes
    ----------
    name : str
    value, slope, curvature : callable
        ``value(y, f)`` and its first and second derivatives in f.
    bounded_slope : bool
        Whether the slope is bounded.
    low, high : float
        Labels allowed.
    kind : str
        Family whose formula compiled loops have; empty for any other function.
    parameter : float
        Of the family.

    Examples
    --------
    >>> from traindyn.problems.multi_index.losses import pseudo_huber
    >>> import numpy as np
    >>> pseudo_huber().slope(np.array([0.0]), np.array([1e9]))
    array([1.])
    """

    name: str
    value: Pairwise
    slope: Pairwise
    curvature: Pairwise
    bounded_slope: bool
    low: float = -np.inf
    high: float = np.inf
    kind: str = ""
    parameter: float = 0.0

    def __post_init__(self) -> None:
        """Check the range of the labels and the parameter."""
        if not _validate.not_nan("low", self.low) <= _validate.not_nan("high", self.high):
            raise ValueError(f"low must not exceed high, got {self.low} and {self.high}")
        _validate.number("parameter", self.parameter)

    def __repr__(self) -> str:
        return f"Loss({self.name})"


SQUARED = Loss(
    "squared",
    lambda y, f: (f - y) ** 2 / 2,
    lambda y, f: f - y,
    lambda y, f: np.ones_like(f),
    bounded_slope=False,
    kind="squared",
)
"""Half the squared error."""


def pseudo_huber(width: float = 1.0) -> Loss:
    """``width^2 (sqrt(1 + ((f - y) / width)^2) - 1)``: convex, slope bounded by the width.

    Parameters
    ----------
    width : float, default 1.0
        Positive; the squared error is the limit of large width.
    """
    w = _validate.positive("width", width)

    def value(y: Any, f: Any) -> Any:
        r = (f - y) / w
        # The same as w^2 (sqrt(1 + r^2) - 1), without cancellation.
        return w * w * r * r / (1 + np.sqrt(1 + r * r))

    def slope(y: Any, f: Any) -> Any:
        r = f - y
        return r / np.sqrt(1 + r * r / (w * w))

    def curvature(y: Any, f: Any) -> Any:
        r = (f - y) / w
        inverse = 1 / (1 + r * r)
        return inverse * np.sqrt(inverse)

    return Loss(
        f"pseudo_huber({w:g})",
        value,
        slope,
        curvature,
        bounded_slope=True,
        kind="pseudo_huber",
        parameter=w,
    )


def log_cosh() -> Loss:
    """``log cosh(f - y)``: convex, with a bounded slope."""

    def value(y: Any, f: Any) -> Any:
        r = np.abs(f - y)
        return r + np.log1p(np.exp(-2 * r)) - float(np.log(2.0))

    return Loss(
        "log_cosh",
        value,
        lambda y, f: np.tanh(f - y),
        lambda y, f: 1 - np.tanh(f - y) ** 2,
        bounded_slope=True,
        kind="log_cosh",
    )


def cauchy() -> Loss:
    """``log(1 + (f - y)^2) / 2``: not convex, with a slope that tends to zero."""

    def slope(y: Any, f: Any) -> Any:
        r = f - y
        return r / (1 + r * r)

    def curvature(y: Any, f: Any) -> Any:
        square = (f - y) ** 2
        return (1 - square) / (1 + square) ** 2

    return Loss(
        "cauchy",
        lambda y, f: np.log1p((f - y) ** 2) / 2,
        slope,
        curvature,
        bounded_slope=True,
        kind="cauchy",
    )


def logistic() -> Loss:
    """``log(1 + exp(f)) - y f``, the cross-entropy of a label in [0, 1]: convex."""

    def curvature(y: Any, f: Any) -> Any:
        share = expit(f)
        return share * (1 - share)

    return Loss(
        "logistic",
        lambda y, f: np.maximum(f, 0) + np.log1p(np.exp(-np.abs(f))) - y * f,
        lambda y, f: expit(f) - y,
        curvature,
        bounded_slope=True,
        low=0.0,
        high=1.0,
        kind="logistic",
    )
