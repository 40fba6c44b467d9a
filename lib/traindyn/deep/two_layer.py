"""Exact law of the Hessian norm of two layers, for any width.

Sampling shows norms up to widths of some thousands, where a power of the logarithm cannot be told
from a slightly different exponent. The law has no such limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import Elementwise
from traindyn.deep.activations import derivatives, resolve

__all__ = ["TwoLayerNorm"]


@dataclass(frozen=True)
class TwoLayerNorm:
    r"""Exact law of the Hessian norm of two layers with Gaussian weights.

    By the closed form of :func:`~traindyn.deep.hessian.two_layer_eigenvalues` the norm is at most
    :math:`t / \sqrt m` if and only if :math:`t \ge \sqrt s |\sigma'(z_i)|` and
    :math:`|v_i| \le (t^2 - s \sigma'(z_i)^2) / (t s |\sigma''(z_i)|)` for every neuron, where
    :math:`s = |x|^2 / d`. The neurons are independent, so

    .. math::

       P(\sqrt m |H| \le t) = \Big( 1 - E\, \mathrm{erfc}\Big(
       \frac{(t^2 - s \sigma'(z)^2)_+}{\sqrt 2\, t s |\sigma''(z)|} \Big) \Big)^m , \qquad
       z \sim N(0, s) .

    For large m one neuron decides, :math:`|H| \sim s \sup|\sigma''| \sqrt{2 \log m / m}`: the
    logarithm in the bound of ZHU Theorem 2.3.6 cannot be dropped. Conditionally on the layer
    before, this is also the law of the part of the Hessian of a deeper fully connected network
    that belongs to the weights of its last two layers, a lower bound of its norm.

    Attributes
    ----------
    activation : str or callable
        See :func:`~traindyn.deep.activations.resolve`.
    width : float
        The number m of neurons; any size up to 1e300.
    square : float
        The mean square s of the inputs, at most 100.

    Raises
    ------
    ValueError
        If the activation has no derivative or a number is out of range.

    Examples
    --------
    >>> from traindyn.deep import TwoLayerNorm
    >>> law = TwoLayerNorm("tanh", 64)
    >>> median = law.quantile(0.5)
    >>> round(float(law.cdf(median)), 6), round(8 * median, 3)
    (0.5, 1.882)
    """

    activation: str | Elementwise
    width: float
    square: float = 1.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        resolve(self.activation)
        if not 1 <= _validate.number("width", self.width) <= 1e300:
            raise ValueError(f"width must be in [1, 1e300], got {self.width}")
        if not 0 < _validate.number("square", self.square) <= 100:
            raise ValueError(f"square must be in (0, 100], got {self.square}")

    @cached_property
    def _rule(self) -> tuple[Array, Array, Array]:
        """Weights of the trapezoidal rule in z, and the two derivatives at its nodes."""
        activation = resolve(self.activation)
        nodes = np.linspace(-12, 12, 8193)
        weights = np.exp(-(nodes**2) / 2)
        slope, curvature = derivatives(activation, np.sqrt(self.square) * nodes)
        return weights / weights.sum(), slope, curvature

    def _neuron(self, t: float) -> float:
        """Probability that a single neuron exceeds t, times the root of m."""
        weights, slope, curvature = self._rule
        room = t * t - self.square * slope**2
        allowed = np.full_like(room, np.inf)
        with np.errstate(over="ignore"):
            np.divide(room, t * self.square * np.abs(curvature), out=allowed, where=curvature != 0)
        allowed[room < 0] = 0.0
        return float(weights @ special.erfc(allowed / np.sqrt(2)))

    def exceedance(self, norms: ArrayLike) -> Array:
        """Probability that the norm exceeds each of the given ones, precise where it is small.

        Parameters
        ----------
        norms : array_like
            Positive.

        Returns
        -------
        ndarray, of the shape of `norms`

        Raises
        ------
        ValueError
            If one is not positive.
        """
        return any_neuron(self._neuron, self.width, norms)

    def cdf(self, norms: ArrayLike) -> Array:
        """Distribution function, of the shape of `norms`."""
        found: Array = 1 - self.exceedance(norms)
        return found

    def quantile(self, probability: float) -> float:
        """Norm that is not exceeded with a probability in (0, 1)."""
        probability = _validate.positive("probability", probability)
        if probability >= 1:
            raise ValueError(f"probability must be below 1, got {probability}")

        def lacking(t: float) -> float:
            return float(self.exceedance(t / np.sqrt(self.width))) - (1 - probability)

        top = 1.0
        while lacking(top) > 0:
            top *= 2
        return float(optimize.bisect(lacking, 1e-9, top, rtol=1e-12)) / float(np.sqrt(self.width))


def any_neuron(neuron: Callable[[float], float], width: float, norms: ArrayLike) -> Array:
    """Return the probability that one of independent neurons exceeds each norm.

    `neuron` gives that of a single one for a norm times the root of the width.
    """
    given = _validate.positives("norms", norms)
    single = [min(neuron(float(t)), 1.0) for t in given.ravel() * np.sqrt(width)]
    none = np.array([width * np.log1p(-p) if p < 1 else -np.inf for p in single])
    return np.asarray(-np.expm1(none).reshape(given.shape))
