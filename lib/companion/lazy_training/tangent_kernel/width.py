"""Corrections of the kernel recursion at finite width: fluctuation and mean of the covariances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln
from scipy.stats import binom

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import Activation
from traindyn.gaussian import gauss_hermite
from traindyn.kernels.recursion import rows

__all__ = ["WidthCorrections", "antipodal_mean", "random_covariances", "width_corrections"]

_MOST_NORMALS = 2**22
"""Drawn at once, of those that random covariances need."""


class WidthCorrections(NamedTuple):
    r"""First order in 1/n of the law of the outputs, n the width of all hidden layers.

    Attributes
    ----------
    nngp : ndarray, shape (N,)
        :math:`\Sigma^{(L)}(x, x)` at each input.
    shift : ndarray, shape (N,)
        :math:`m_L`: the variance of an output is ``nngp + shift / n``.
    spread : ndarray, shape (N,)
        :math:`v_L`: its variance given all layers but the last varies by ``spread / n``.
    """

    nngp: Array
    shift: Array
    spread: Array

    @property
    def excess(self) -> Array:
        """Excess kurtosis of an output, times n."""
        return 3 * self.spread / self.nngp**2


def width_corrections(
    x: ArrayLike, *, depth: int, activation: Activation, bias: float = 0.0, order: int = 120
) -> WidthCorrections:
    r"""How far outputs at initialisation are from Gaussian, to first order in 1/width.

    Parameters
    ----------
    x : array_like, shape (N, n_0)
        Inputs, each taken alone; none may be zero without a bias.
    depth : int
        Layers of weights, :math:`L \ge 1`.
    activation : Activation
        :math:`\sigma`, of which only the values are used.
    bias : float, default 0
        :math:`\beta`.
    order : int, default 120
        Nodes of the Gauss-Hermite rule.

    Raises
    ------
    ValueError
        If an argument is out of range, or a pre-activation is always zero.

    Examples
    --------
    A bias-free ReLU has exactly ``E S^2 / (E S)^2 = (1 + 5 / n)^{L - 1}``, hence 15 (L - 1):

    >>> from companion.lazy_training.tangent_kernel.width import width_corrections
    >>> from traindyn.activations import RELU
    >>> found = width_corrections([[1.0, 1.0]], depth=4, activation=RELU)
    >>> found.excess.round(9).tolist(), abs(found.shift).round(9).tolist()
    ([45.0], [0.0])
    """
    inputs = rows("x", x)
    depth = _validate.integer("depth", depth, least=1)
    shift = _validate.number("bias", bias) ** 2
    rule = gauss_hermite(1, _validate.integer("order", order, least=8, most=180))
    square = rule.nodes**2
    nngp = np.square(inputs).sum(axis=1) / inputs.shape[1] + shift
    if np.any(nngp <= 0):
        raise ValueError("x must not be zero where there is no bias")
    mean, spread = np.zeros_like(nngp), np.zeros_like(nngp)
    for _ in range(depth - 1):
        values = np.square(activation.value(np.sqrt(nngp) * rule.nodes))
        value = rule.expect(values)
        # Derivatives in the variance, by parts: they need none of the activation.
        first = rule.expect(values * (square - 1)) / (2 * nngp)
        second = rule.expect(values * (square**2 - 6 * square + 3)) / (4 * nngp**2)
        mean = first * mean + second * spread / 2
        spread = rule.expect(values**2) - value**2 + first**2 * spread
        nngp = value + shift
    return WidthCorrections(nngp, mean, spread)


def antipodal_mean(width: int) -> float:
    r"""Mean tangent kernel between x and -x at finite width, as a share of its limit.

    Of a bias-free ReLU network with two hidden layers of n neurons. The first hidden layer answers
    x and -x with different neurons, N of them with x, so only the last layer contributes; given
    these the second one is Gaussian without correlation, and

    .. math:: \frac{E\,K(x, -x)}{K_\infty(x, -x)} = \frac2n\, E\, \mu(N) \mu(n - N)
              = 1 - \frac{3}{2n} + O(n^{-2}), \qquad
              \mu(k) = E \chi_k = \frac{\sqrt2\, \Gamma((k + 1) / 2)}{\Gamma(k / 2)} ,

    with N binomial of parameters n and 1/2.

    Parameters
    ----------
    width : int
        n.

    Examples
    --------
    >>> from companion.lazy_training.tangent_kernel.width import antipodal_mean
    >>> antipodal_mean(1)  # one neuron cannot answer both
    0.0
    >>> round((1 - antipodal_mean(10_000)) * 10_000, 3)
    1.5
    """
    n = _validate.integer("width", width, least=1)
    counts = np.arange(n + 1)
    means = np.zeros(n + 1)
    positive = counts[1:]
    means[1:] = np.sqrt(2) * np.exp(gammaln((positive + 1) / 2) - gammaln(positive / 2))
    return float(2 / n * (binom.pmf(counts, n, 0.5) * means * means[::-1]).sum())


def random_covariances(
    x: ArrayLike,
    widths: Sequence[int],
    *,
    activation: Activation,
    bias: float = 0.0,
    replicas: int,
    rng: RNG,
) -> Array:
    r"""Covariances of the outputs of random networks, given all layers but the last.

    Drawn by the Markov chain above: exact in law, and a network costs as many normals as it has
    neurons, not weights.

    Parameters
    ----------
    x : array_like, shape (N, n_0)
        Inputs.
    widths : sequence of int
        Of the hidden layers, :math:`n_1, \dots, n_{L-1}`.
    activation : Activation
        :math:`\sigma`, of which only the values are used.
    bias : float, default 0
        :math:`\beta`.
    replicas : int
        Number of independent networks.
    rng : int, SeedSequence or Generator
        Of the preactivations of the neurons.

    Returns
    -------
    ndarray, shape (replicas, N, N)
        :math:`S^{(L)}` of each network.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from companion.lazy_training.tangent_kernel.width import random_covariances
    >>> from traindyn.activations import RELU
    >>> found = random_covariances([[1.0, 1.0]], (50, 50), activation=RELU, replicas=4000, rng=0)
    >>> round(float(found.mean()), 2)  # 1/4, as for infinitely many neurons
    0.25
    """
    inputs = rows("x", x)
    listed = _validate.listed("widths", widths)
    hidden = [_validate.integer(f"widths[{k}]", n, least=1) for k, n in enumerate(listed)]
    shift = _validate.number("bias", bias) ** 2
    replicas = _validate.integer("replicas", replicas, least=1)
    generator = _validate.generator("rng", rng)
    first = inputs @ inputs.T / inputs.shape[1] + shift
    count = max(1, _MOST_NORMALS // (inputs.shape[0] * max(hidden, default=1)))
    parts = []
    for begin in range(0, replicas, count):
        covariance = np.repeat(first[None], min(count, replicas - begin), axis=0)
        for width in hidden:
            values, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            normals = generator.standard_normal((len(root), width, root.shape[1]))
            signal = np.asarray(activation.value(normals @ np.swapaxes(root, 1, 2)))
            covariance = np.swapaxes(signal, 1, 2) @ signal / width + shift
        parts.append(covariance)
    return np.concatenate(parts)
