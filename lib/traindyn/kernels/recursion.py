r"""Kernels of infinitely wide networks: the NNGP covariance and the neural tangent kernel.

For a fully connected network in the NTK parametrisation with L layers of weights, as all hidden
widths grow (MDL Theorems 8.4 and 8.6),

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

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import Activation
from traindyn.kernels.arc_cosine import recur
from traindyn.kernels.dual import dual_moments, own_moments

__all__ = ["InfiniteWidth", "infinite_width"]


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
        :math:`\sigma` of the hidden layers, with a derivative; the output is linear.
    bias : float, default 0
        :math:`\beta`.
    order : int, default 120
        See :func:`~traindyn.kernels.dual.dual_moments`.

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

    >>> from traindyn.kernels import infinite_width
    >>> from traindyn.activations import RELU
    >>> found = infinite_width([[1.0, 1.0]], depth=3, activation=RELU)
    >>> found.nngp.round(12).tolist(), found.ntk.round(12).tolist()
    ([[0.25]], [[0.75]])
    """
    left = rows("x", x)
    right = left if other is None else rows("other", other, left.shape[1])
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


def rows(name: str, value: ArrayLike, size: int | None = None) -> Array:
    """Check inputs, one in each row; `size` coordinates if given."""
    inputs = _validate.finite(name, value, shape=(None, size))
    if inputs.shape[1] == 0:
        raise ValueError(f"{name} must have at least one coordinate, got shape {inputs.shape}")
    return inputs
