r"""Kernels of infinitely wide networks: the NNGP covariance and the neural tangent kernel.

For the network of :mod:`traindyn.kernels.network` with L layers of weights, as all hidden widths
grow (MDL Theorems 8.4 and 8.6),

.. math:: \Sigma^{(1)} &= x \cdot x' / n_0 + \beta^2, &\qquad
          \Sigma^{(k+1)} &= E_{f \sim N(0, \Sigma^{(k)})}[\sigma(f(x)) \sigma(f(x'))] + \beta^2, \\
          K^{(1)} &= \Sigma^{(1)}, &\qquad
          K^{(k+1)} &= K^{(k)}\, E_{f \sim N(0, \Sigma^{(k)})}[\sigma'(f(x)) \sigma'(f(x'))]
          + \Sigma^{(k+1)} .

*At finite width* the pre-activations of layer k + 1 are independent Gaussian once the n
pre-activations u of layer k are known, of covariance
:math:`S^{(k+1)} = \frac1n \sum_i \sigma(u_i) \sigma(u_i') + \beta^2`, and the law of these needs
:math:`S^{(k)}` only: the random covariances are a Markov chain, the outputs a mixture of
Gaussians. With :math:`g(s) = E\,\sigma(\sqrt s z)^2` one has, at one input and to first order,
:math:`E S^{(k)} = \Sigma^{(k)} + m_k / n` and :math:`\mathrm{Var}\, S^{(k)} = v_k / n`,

.. math:: v_{k+1} = \mathrm{Var}\, \sigma(f)^2 + g'(\Sigma^{(k)})^2 v_k, \qquad
          m_{k+1} = g'(\Sigma^{(k)})\, m_k + \tfrac12 g''(\Sigma^{(k)})\, v_k ,

so the excess kurtosis of an output is :math:`3 v_L / n (\Sigma^{(L)})^2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln
from scipy.stats import binom

from traindyn import _validate
from traindyn.activations import Activation
from traindyn.gaussian import gauss_hermite
from traindyn.kernels.arc_cosine import recur
from traindyn.kernels.dual import Array, dual_moments, own_moments

__all__ = [
    "InfiniteWidth",
    "WidthCorrections",
    "antipodal_mean",
    "infinite_width",
    "random_covariances",
    "width_corrections",
]

RNG: TypeAlias = int | np.random.SeedSequence | np.random.Generator

_MOST_NORMALS = 2**22
"""Drawn at once, of those that random covariances need."""


class InfiniteWidth(NamedTuple):
    r"""Kernels of the infinitely wide network.

    Attributes
    ----------
    nngp : ndarray, shape (n, q)
        :math:`\Sigma^{(L)}`, covariance of each output at initialisation.
    ntk : ndarray, shape (n, q)
        :math:`K^{(L)}_\infty`, the neural tangent kernel.
    """

    nngp: Array
    ntk: Array


def infinite_width(
    x: ArrayLike,
    other: ArrayLike | None = None,
    *,
    depth: int,
    activation: Activation,
    bias: float = 0.0,
    order: int = 120,
) -> InfiniteWidth:
    r"""NNGP covariance and neural tangent kernel of fully connected networks.

    Parameters
    ----------
    x : array_like, shape (n, n_0)
        Inputs.
    other : array_like, shape (q, n_0), optional
        A second set of inputs; `x` itself unless given.
    depth : int
        Layers of weights, :math:`L \ge 1`; one is the linear network.
    activation : Activation
    bias : float, default 0
        :math:`\beta`.
    order : int, default 120
        See :func:`~traindyn.kernels.dual_moments`.

    Returns
    -------
    InfiniteWidth
        Symmetric if `other` is not given.

    Raises
    ------
    ValueError
        If the shapes disagree, an argument is out of range or the activation has no derivative.

    Examples
    --------
    A bias-free ReLU halves the variance in each layer, and a unit vector has
    :math:`K^{(L)} = L 2^{1-L} |x|^2 / n_0`:

    >>> from traindyn.activations import RELU
    >>> found = infinite_width([[1.0, 1.0]], depth=3, activation=RELU)
    >>> found.nngp.round(12).tolist(), found.ntk.round(12).tolist()
    ([[0.25]], [[0.75]])
    """
    left = _inputs("x", x)
    right = left if other is None else _inputs("other", other, left.shape[1])
    depth = _validate.integer("depth", depth, least=1)
    shift = _validate.number("bias", bias) ** 2
    size = left.shape[1]
    nngp = left @ right.T / size + shift
    sets = (left,) if other is None else (left, right)
    variances = [np.square(each).sum(axis=1) / size + shift for each in sets]
    ntk = nngp.copy()
    if activation.kind == "relu":
        _through_rectifiers(variances, depth - 1, shift, nngp, ntk)
        return InfiniteWidth(nngp, ntk)
    for _ in range(depth - 1):
        moments = dual_moments(activation, nngp, *variances, order=order)
        own = [own_moments(activation, each, order=order).value for each in variances]
        nngp = moments.value
        nngp += shift
        ntk *= moments.slope
        ntk += nngp
        variances = [each + shift for each in own]
    return InfiniteWidth(nngp, ntk)


def _through_rectifiers(
    variances: list[Array], layers: int, shift: float, nngp: Array, ntk: Array
) -> None:
    """Take the kernels through layers of rectified linear units, in place."""
    # A rectifier halves the variance of its input.
    passed = [variances]
    for _ in range(layers):
        passed.append([each / 2 + shift for each in passed[-1]])
    roots = [np.sqrt(np.array(each)).reshape(layers + 1, -1) for each in zip(*passed)]
    same = len(variances) == 1
    recur(same, roots[0][:-1], roots[-1][:-1], shift, nngp, ntk)
    if same:
        own = variances[0].copy()
        for (after,) in passed[1:]:
            own = own / 2 + after
        np.fill_diagonal(nngp, passed[-1][0])
        np.fill_diagonal(ntk, own)


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
    bias : float, default 0
        :math:`\beta`.
    order : int, default 120
        Nodes of the Gauss-Hermite rule.

    Returns
    -------
    WidthCorrections

    Raises
    ------
    ValueError
        If an argument is out of range, or a pre-activation is always zero.

    Examples
    --------
    A bias-free ReLU has exactly ``E S^2 / (E S)^2 = (1 + 5 / n)^{L - 1}``, hence 15 (L - 1):

    >>> from traindyn.activations import RELU
    >>> found = width_corrections([[1.0, 1.0]], depth=4, activation=RELU)
    >>> found.excess.round(9).tolist(), abs(found.shift).round(9).tolist()
    ([45.0], [0.0])
    """
    inputs = _inputs("x", x)
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

    Returns
    -------
    float

    Examples
    --------
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
    bias : float, default 0
        :math:`\beta`.
    replicas : int
    rng : int, SeedSequence or Generator

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
    >>> from traindyn.activations import RELU
    >>> found = random_covariances([[1.0, 1.0]], (50, 50), activation=RELU, replicas=4000, rng=0)
    >>> round(float(found.mean()), 2)  # 1/4, as for infinitely many neurons
    0.25
    """
    inputs = _inputs("x", x)
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


def _inputs(name: str, value: ArrayLike, size: int | None = None) -> Array:
    inputs = _validate.finite(name, value, shape=(None, size))
    if inputs.shape[1] == 0:
        raise ValueError(f"{name} must have at least one coordinate, got shape {inputs.shape}")
    return inputs
