r"""The law of all Hessian eigenvalues of two layers, neuron by neuron.

For :math:`f = m^{-1/2} \sum_i v_i \sigma(u_i \cdot x / \sqrt d)` the Hessian has one block per
neuron (:func:`~traindyn.deep.hessian.two_layer_eigenvalues`). With :math:`s = |x|^2 / d` and
:math:`z \sim N(0, s)` the eigenvalues of a block, times :math:`\sqrt m`, are

.. math:: \lambda_\pm = \frac{a \pm \sqrt{a^2 + 4 b^2}}{2}, \qquad
          a = v \sigma''(z) s, \quad b = \sigma'(z) \sqrt s ,

independently for the neurons. As :math:`\lambda_+ \le t` if and only if
:math:`a \le t - b^2 / t`,

.. math:: P(\lambda_+ \le t) = E_z\, P\Big( v |\sigma''(z)| \le
          \frac{t^2 - s \sigma'(z)^2}{t s} \Big) ,

and :math:`-\lambda_-` has the same law. Output weights v are standard normal, or :math:`\pm 1`:
then all eigenvalues are bounded, by the largest :math:`\lambda_+` over z with
:math:`v \sigma'' = |\sigma''|`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import Elementwise
from traindyn.deep.activations import derivatives, resolve

__all__ = ["TwoLayerSpectrum"]

_REACH = 10.0
"""Standard deviations of z that are integrated over."""
_NODES = 8001


class TwoLayerSpectrum:
    r"""Law of :math:`\sqrt m` times a positive Hessian eigenvalue of two layers.

    Parameters
    ----------
    activation : str or callable
        As for :func:`~traindyn.deep.activations.resolve`.
    square : float, default 1
        The mean square s of the inputs.
    signs : bool, default False
        Output weights :math:`\pm 1` instead of standard normal ones.

    Raises
    ------
    ValueError
        If the activation is refused or `square` is not positive.

    Examples
    --------
    A linear network has eigenvalues of size :math:`\sqrt{s / m}` only:

    >>> from companion.lazy_training.beyond.spectrum import TwoLayerSpectrum
    >>> TwoLayerSpectrum("identity", 4.0).cdf([1.99, 2.01]).round(12).tolist()
    [0.0, 1.0]
    """

    def __init__(
        self, activation: str | Elementwise, square: float = 1.0, *, signs: bool = False
    ) -> None:
        self._activation = resolve(activation)
        self.square = _validate.positive("square", square)
        self.signs = signs
        unit = np.linspace(-_REACH, _REACH, _NODES)
        density = np.exp(-(unit**2) / 2)
        self._weights = density / density.sum()
        self._nodes = np.sqrt(self.square) * unit
        self._slopes, self._curvatures = self._sizes(self._nodes)

    def _sizes(self, z: Array) -> tuple[Array, Array]:
        """Absolute values of b, and of a over v."""
        slope, curvature = map(np.abs, derivatives(self._activation, z))
        return slope * np.sqrt(self.square), curvature * self.square

    @property
    def bound(self) -> float:
        r"""Largest eigenvalue of a block, times :math:`\sqrt m`; infinite for normal weights.

        Unless there is no curvature.
        """
        if not self.signs and self._curvatures.any():
            return float(np.inf)
        values = _top(self._slopes, self._curvatures)
        best = int(np.argmax(values))
        ends = self._nodes[max(best - 1, 0)], self._nodes[min(best + 1, _NODES - 1)]
        found = minimize_scalar(
            lambda z: -_top(*self._sizes(np.array([z])))[0], bounds=ends, method="bounded"
        )
        return float(max(values[best], -found.fun))

    def cdf(self, values: ArrayLike) -> Array:
        r"""Probability that :math:`\lambda_+` is at most a number.

        Parameters
        ----------
        values : array_like, shape (k,)
            The numbers t. At zero it is an atom: neurons without slope, as of rectified units.

        Returns
        -------
        ndarray, shape (k,)
        """
        t = _validate.finite("values", values, shape=(None,))
        found = np.zeros(t.shape)
        for index, level in enumerate(t):
            if level >= 0:
                found[index] = self._passed(float(level)) @ self._weights
        return np.minimum(found, 1.0)

    def _passed(self, level: float) -> Array:
        """Probability over v at each node."""
        if level > 0:
            room = level - self._slopes**2 / level
        else:
            room = np.where(self._slopes > 0, -np.inf, 0.0)
        if self.signs:
            shares = [room >= sign * self._curvatures for sign in (-1, 1)]
            return np.asarray(sum(share.astype(float) for share in shares) / 2)
        ratio = np.where(room >= 0, np.inf, -np.inf)
        np.divide(room, self._curvatures, out=ratio, where=self._curvatures > 0)
        return np.asarray(ndtr(ratio))


def _top(slopes: Array, curvatures: Array) -> Array:
    return np.asarray(curvatures + np.sqrt(curvatures**2 + 4 * slopes**2)) / 2
