"""What this room asks of an activation, and the error function as one.

Any object with these members serves, those of :mod:`traindyn.problems.multi_index` among them. A
closed form of the Gaussian moments is taken where the `kind` has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erf

__all__ = ["ERF", "Activation", "largest_curvature", "slope"]

Elementwise: TypeAlias = Callable[[Any], Any]

_TWO_OVER_ROOT_PI = 1.1283791670955126
_PROBE = np.linspace(-12.0, 12.0, 4801)
_EDGE = np.abs(_PROBE) > 11.5


class Activation(Protocol):
    """A scalar function with the derivatives it has."""

    @property
    def name(self) -> str:
        """Shown in messages."""

    @property
    def kind(self) -> str:
        """``"relu"``, ``"erf"`` and ``"identity"`` have closed Gaussian moments."""

    @property
    def value(self) -> Elementwise:
        """The function, element by element."""

    @property
    def slope(self) -> Elementwise | None:
        """Its derivative almost everywhere; None if it has none that training could use."""

    def second(self, purpose: str) -> Elementwise:
        """Return the second derivative, or raise a ValueError that names the purpose."""


@dataclass(frozen=True)
class _Erf:
    name: str = "erf"
    kind: str = "erf"

    @property
    def value(self) -> Elementwise:
        return _erf

    @property
    def slope(self) -> Elementwise:
        return _erf_slope

    def second(self, purpose: str) -> Elementwise:
        return _erf_curvature


def _erf(v: Any) -> Any:
    return erf(v)


def _erf_slope(v: Any) -> Any:
    return _TWO_OVER_ROOT_PI * np.exp(-v * v)


def _erf_curvature(v: Any) -> Any:
    return -2 * _TWO_OVER_ROOT_PI * v * np.exp(-v * v)


ERF = _Erf()
"""Error function: smooth, bounded, and with all Gaussian moments elementary."""


def slope(activation: Activation, purpose: str) -> Elementwise:
    """Return the derivative of an activation.

    Raises
    ------
    ValueError
        If there is none; the message names the `purpose`.
    """
    found = activation.slope
    if found is None:
        raise ValueError(f"activation must have a derivative for {purpose}, got {activation.name}")
    return found


def largest_curvature(activation: Activation) -> tuple[float, float]:
    r"""Where :math:`|\sigma''|` is largest, and its value there.

    Searched on [-12, 12]: on a grid of step 0.005, then by Brent's method.

    Parameters
    ----------
    activation : Activation

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
