r"""Laws of one coordinate, with mean zero and variance one.

They differ in the *excess* :math:`\kappa = \mathbb E \xi^4 - 3`, which is zero for the normal law:

===============  ==========================================  ==================================
`kind`           `parameter`                                 excess
===============  ==========================================  ==================================
``"normal"``     not used                                    0
``"signs"``      not used                                    -2, the smallest there is
``"sparse"``     probability p of a coordinate not zero      1 / p - 3
``"bernoulli"``  probability p of a one, before it is        1 / (p (1 - p)) - 6
                 centred and scaled
``"student"``    degrees of freedom, more than 4             6 / (degrees - 4)
===============  ==========================================  ==================================

All are symmetric but for that of Bernoulli coordinates with p other than one half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import erf, roots_jacobi

from traindyn import _validate, gaussian
from traindyn._types import Array

__all__ = ["Law"]

_KINDS = ("normal", "signs", "sparse", "bernoulli", "student")


@dataclass(frozen=True)
class Law:
    """Law of a coordinate with mean zero and variance one.

    Attributes
    ----------
    kind : {"normal", "signs", "sparse", "bernoulli", "student"}
    parameter : float, optional
        Probability of a coordinate that is not zero, or that is one, or degrees of freedom.

    Raises
    ------
    ValueError
        If the kind is unknown, or the parameter out of range.

    Examples
    --------
    >>> from traindyn.problems.clouds.laws import Law
    >>> [Law("signs").excess, Law("sparse", 0.125).excess, Law("student", 10).excess]
    [-2.0, 5.0, 1.0]
    """

    kind: Literal["normal", "signs", "sparse", "bernoulli", "student"] = "normal"
    parameter: float = 0.0

    def __post_init__(self) -> None:
        """Check the kind and its parameter."""
        if self.kind not in _KINDS:
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, got {self.kind!r}")
        parameter = _validate.number("parameter", self.parameter)
        if self.kind == "sparse" and not 0.0 < parameter <= 1.0:
            raise ValueError(f"parameter must be in (0, 1] for sparse, got {parameter:g}")
        if self.kind == "bernoulli" and not 0.0 < parameter < 1.0:
            raise ValueError(f"parameter must be in (0, 1) for bernoulli, got {parameter:g}")
        if self.kind == "student" and parameter <= 4.0:
            raise ValueError(f"parameter must be more than 4 for student, got {parameter:g}")
        object.__setattr__(self, "parameter", parameter)

    @property
    def code(self) -> tuple[int, float]:
        """Number of the kind, and parameter, for the compiled ``draw``."""
        return _KINDS.index(self.kind), self.parameter

    @property
    def excess(self) -> float:
        """Fourth moment less 3."""
        if self.kind == "sparse":
            return 1.0 / self.parameter - 3.0
        if self.kind == "bernoulli":
            return 1.0 / (self.parameter * (1.0 - self.parameter)) - 6.0
        if self.kind == "student":
            return 6.0 / (self.parameter - 4.0)
        return -2.0 if self.kind == "signs" else 0.0

    def nodes(self, order: int = 80) -> tuple[Array, Array]:
        r"""Points and weights of a quadrature of the law.

        Exact for coordinates with finitely many values. Student's law is that of
        :math:`\sqrt{\nu - 2}\, u / \sqrt{1 - u^2}` with the density
        :math:`(1 - u^2)^{(\nu - 2) / 2}` up to a factor, which a Gauss-Jacobi rule integrates.

        Parameters
        ----------
        order : int, optional
            Number of points for the other laws, at least 1.

        Returns
        -------
        points, weights : ndarray
            The weights are positive and sum to 1.

        Examples
        --------
        >>> from traindyn.problems.clouds.laws import Law
        >>> points, weights = Law("student", 10).nodes()
        >>> print((weights @ points**4).round(3))
        4.0
        """
        order = _validate.integer("order", order, least=1)
        if self.kind == "signs":
            return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
        if self.kind == "sparse":
            far, rare = self.parameter**-0.5, self.parameter / 2
            return np.array([-far, 0.0, far]), np.array([rare, 1.0 - 2.0 * rare, rare])
        if self.kind == "bernoulli":
            p = self.parameter
            odds = math.sqrt(p / (1.0 - p))
            return np.array([-odds, 1.0 / odds]), np.array([1.0 - p, p])
        if self.kind == "student":
            power = (self.parameter - 2.0) / 2
            u, weights = roots_jacobi(order, power, power)
            return math.sqrt(self.parameter - 2.0) * u / np.sqrt(1.0 - u**2), weights / sum(weights)
        rule = gaussian.gauss_hermite(1, order)
        return rule.nodes[:, 0], rule.weights

    def sign_mean(self, shift: ArrayLike) -> Array:
        """Mean of the sign of a coordinate plus a shift.

        Parameters
        ----------
        shift : array_like
            In units of the standard deviation of the coordinate.

        Returns
        -------
        ndarray, shape of `shift`
            From -1 to 1.

        Examples
        --------
        >>> from traindyn.problems.clouds.laws import Law
        >>> [Law(kind, 0.25).sign_mean(0.5).round(3).item() for kind in ("normal", "sparse")]
        [0.383, 0.75]
        """
        at = _validate.finite("shift", shift)
        if self.kind == "normal":
            return np.asarray(erf(at / math.sqrt(2.0)))
        if self.kind == "student":
            law = stats.t(self.parameter)
            return np.asarray(1.0 - 2.0 * law.cdf(-at / math.sqrt(1.0 - 2.0 / self.parameter)))
        points, weights = self.nodes()
        return np.asarray(np.sign(at[..., None] + points) @ weights)


@njit(nogil=True, inline="always")
def draw(kind: int, parameter: float, rng: np.random.Generator) -> float:
    """Draw a coordinate; compiled, for the kernels of SGD.

    Parameters
    ----------
    kind, parameter
        Those of :attr:`Law.code`.
    rng : Generator
        Source of the draw.
    """
    if kind == 0:
        return rng.standard_normal()
    if kind == 1:
        return 1.0 if rng.random() < 0.5 else -1.0
    if kind == 2:
        uniform = rng.random()
        if uniform >= parameter:
            return 0.0
        return (1.0 if uniform < 0.5 * parameter else -1.0) / math.sqrt(parameter)
    if kind == 3:
        odds = math.sqrt(parameter / (1.0 - parameter))
        return 1.0 / odds if rng.random() < parameter else -odds
    return rng.standard_normal() * math.sqrt((parameter - 2.0) / rng.chisquare(parameter))
