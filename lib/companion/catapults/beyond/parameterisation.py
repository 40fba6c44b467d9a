r"""Closed forms of the tangent kernel at the start, in three parameterisations.

For inputs of squared length d that are orthogonal to each other, the kernel of a wide ReLU network
with L layers of weights is :math:`(D - o) I + o 1 1^\top`. With q and c the mean products of the
values of a layer at one input and at two, and the slope moments s of its activations,

.. math:: \Theta \leftarrow g\,(q, c) + b + \sigma^2 s\, \Theta ,

where a step through a layer has :math:`g = \sigma^2 = 1` in the NTK parameterisation, and
:math:`g = fan,\ \sigma^2 = \frac13` in that of PyTorch; b is one with trainable biases. All else
follows: the critical step size :math:`n / (D + (n - 1) o)` of the mean squared residual, and the
batch size :math:`D / o - 1` below which batches are super-critical at half of it.

A trainable output bias adds one to every entry, whatever the weights are: then
:math:`\lambda_1 \ge n` for ever, and no catapult leads to convergence at a step size above one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import RELU
from traindyn.catapults.two_layer import Weights
from traindyn.kernels.dual import dual_moments, own_moments

__all__ = ["Convention", "KernelEntries", "kernel_entries", "pytorch_start"]

Convention: TypeAlias = Literal["ntk", "ntk, zero biases", "ntk, normal biases", "pytorch"]


class KernelEntries(NamedTuple):
    """Entries of the kernel of nearly orthogonal inputs.

    Attributes
    ----------
    diagonal, off_diagonal : float
    """

    diagonal: float
    off_diagonal: float

    def critical_step(self, examples: int) -> float:
        """Return the critical step size of the mean squared residual of so many examples."""
        n = _validate.integer("examples", examples, least=1)
        return n / (self.diagonal + (n - 1) * self.off_diagonal)


def kernel_entries(
    depth: int,
    parameterisation: Convention = "ntk",
    *,
    width: int | None = None,
    dimension: int | None = None,
) -> KernelEntries:
    """Return the mean entries of the tangent kernel at the start, for large widths.

    Parameters
    ----------
    depth : int
        Layers of weights, at least two.
    parameterisation : {"ntk", "ntk, zero biases", "ntk, normal biases", "pytorch"}
        Without biases, or with trainable ones that start at zero, as standard Gaussians, or
        uniform as PyTorch's do.
    width, dimension : int, optional
        Of the hidden layers and the inputs; PyTorch's kernel depends on them.

    Raises
    ------
    ValueError
        If an argument is out of range or missing.

    Examples
    --------
    Half the critical step size of many examples is super-critical for batches below 2 pi - 1, and
    with biases for none:

    >>> from companion.catapults.beyond.parameterisation import kernel_entries
    >>> for name in ("ntk", "ntk, zero biases"):
    ...     found = kernel_entries(2, name)
    ...     print(round(found.critical_step(10**9), 3), round(found.diagonal / found[1] - 1, 3))
    6.283 5.283
    0.71 0.774
    """
    layers = _validate.integer("depth", depth, least=2)
    names = ("ntk", "ntk, zero biases", "ntk, normal biases", "pytorch")
    name = _validate.choice("parameterisation", parameterisation, names)
    pytorch = name == "pytorch"
    if pytorch and (width is None or dimension is None):
        raise ValueError("width and dimension must be given for PyTorch's parameterisation")
    fans = [1] * layers
    if pytorch:
        fans = [
            _validate.integer("dimension", dimension, least=1),
            *[_validate.integer("width", width, least=1)] * (layers - 1),
        ]
    variance = 1 / 3 if pytorch else 1.0
    bias = 0.0 if name == "ntk" else 1.0
    products, kernel, slopes = np.array([1.0, 0.0]), np.zeros(2), np.zeros(2)
    for layer, fan in enumerate(fans):
        kernel = fan * products + bias + variance * slopes * kernel
        products = variance * products
        if pytorch:
            products += variance / fan
        elif name == "ntk, normal biases":
            products += 1.0
        if layer < layers - 1:
            products, slopes = _rectified(products)
    return KernelEntries(float(kernel[0]), float(kernel[1]))


def pytorch_start(
    width: int, dimension: int, *, rng: int | np.random.SeedSequence | np.random.Generator
) -> Weights:
    r"""Draw PyTorch's start of a two-layer ReLU network without biases, as an NTK network.

    :math:`\sum_k v_k \sigma(w_k \cdot x)`, all weights multiplied by :math:`(m d)^{1/4}`, is the
    network of :class:`~traindyn.catapults.two_layer.TwoLayerModel` at each step of gradient
    descent, with the step size multiplied by :math:`\sqrt{m d}`: PyTorch's default is the NTK
    parameterisation from an unbalanced start, with layers of variance
    :math:`\frac13 (m/d)^{\pm 1/2}`.

    Parameters
    ----------
    width, dimension : int
        Number m of neurons and dimension d of the inputs.
    rng : int, SeedSequence or Generator
        Of the uniform entries.

    Returns
    -------
    Weights
        First layer, shape (m, d), and second layer, shape (m,).

    Examples
    --------
    >>> from companion.catapults.beyond.parameterisation import pytorch_start
    >>> first, second = pytorch_start(10_000, 4, rng=0)
    >>> round(float(first.var() * second.var()), 2)  # 1 / 9
    0.11
    """
    m = _validate.integer("width", width, least=1)
    d = _validate.integer("dimension", dimension, least=1)
    generator = _validate.generator("rng", rng)
    scale = (m / d) ** 0.25
    return Weights(
        scale * generator.uniform(-1, 1, size=(m, d)), generator.uniform(-1, 1, size=m) / scale
    )


def _rectified(products: Array) -> tuple[Array, Array]:
    """Return moments of values and slopes at one input and at two, after a layer of ReLUs."""
    q, c = products
    own, pair = own_moments(RELU, [q]), dual_moments(RELU, [[c]], [q], [q])
    return np.array([own.value[0], pair.value[0, 0]]), np.array([own.slope[0], pair.slope[0, 0]])
