r"""Fully connected networks of finite width in the NTK parametrisation, without autodiff.

With widths :math:`n_0, \dots, n_L` and standard normal parameters (MDL chapter 8),

.. math:: \alpha^{(0)} = x, \qquad
          \tilde\alpha^{(k+1)} = W^{(k)} \alpha^{(k)} / \sqrt{n_k} + \beta b^{(k)}, \qquad
          \alpha^{(k)} = \sigma(\tilde\alpha^{(k)}), \qquad f = \tilde\alpha^{(L)} .

The backward signals :math:`g^{(L)} = e_a`,
:math:`g^{(k)} = \sigma'(\tilde\alpha^{(k)}) \circ W^{(k)T} g^{(k+1)} / \sqrt{n_k}` of output a
give the empirical tangent kernel without the Jacobian, whose rows would have one entry per
parameter:

.. math:: K(x, x')_{ab} = \sum_{k=0}^{L-1} g_a^{(k+1)}(x) \cdot g_b^{(k+1)}(x')\,
          \big( \alpha^{(k)}(x) \cdot \alpha^{(k)}(x') / n_k + \beta^2 \big) .

This is :math:`Df(x) Df(x')^T`. The factor :math:`1 / \sqrt p` of MDL Definition 8.5 is a misprint:
with it the kernel tends to zero
(:func:`companion.lazy_training.tangent_kernel.printed.printed_tangent_kernel`).

Parameters are one vector. The outputs of n inputs are one vector too, of length :math:`n n_L`,
input by input, so that the limit of the tangent kernel is :math:`K_\infty \otimes I_{n_L}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import Activation
from traindyn.kernels.training import Pullback

__all__ = ["Layer", "Network"]


class Layer(NamedTuple):
    r"""Parameters of one layer, views into the vector of all.

    Attributes
    ----------
    weights : ndarray, shape (n_{k+1}, n_k)
    biases : ndarray, shape (n_{k+1},)
    """

    weights: Array
    biases: Array


class _Pass(NamedTuple):
    """What a forward pass leaves for the way back."""

    activations: list[Array]
    slopes: list[Array]
    outputs: Array


@dataclass(frozen=True)
class Network:
    r"""A fully connected network.

    Attributes
    ----------
    widths : tuple of int
        :math:`n_0, \dots, n_L`, at least two of them, each at least 1.
    activation : Activation
        With a derivative.
    bias : float, default 0
        :math:`\beta`; with zero the biases are there but do nothing.

    Raises
    ------
    ValueError
        If there are fewer than two widths, one of them is zero or the activation has no
        derivative.

    Examples
    --------
    One layer is linear, and its tangent kernel constant:

    >>> from companion.lazy_training.tangent_kernel.network import Network
    >>> from traindyn.activations import ERF
    >>> linear = Network((2, 1), ERF, bias=1.0)
    >>> theta = linear.initial(rng=0)
    >>> linear.tangent_kernel(theta, [[1.0, 1.0], [1.0, -1.0]]).round(12).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """

    widths: tuple[int, ...]
    activation: Activation
    bias: float = 0.0

    def __post_init__(self) -> None:
        """Check the sizes."""
        if len(_validate.listed("widths", self.widths)) < 2:
            raise ValueError(f"widths must hold at least two numbers, got {self.widths!r}")
        for k, width in enumerate(self.widths):
            _validate.integer(f"widths[{k}]", width, least=1)
        object.__setattr__(self, "widths", tuple(int(width) for width in self.widths))
        _validate.number("bias", self.bias)
        self.activation.first("training")

    @property
    def depth(self) -> int:
        """Layers of weights, L."""
        return len(self.widths) - 1

    @property
    def size(self) -> int:
        r"""Number of parameters, :math:`p = \sum_l n_{l+1} (n_l + 1)`."""
        return sum(out * (into + 1) for into, out in zip(self.widths[:-1], self.widths[1:]))

    def initial(self, *, rng: RNG) -> Array:
        """Draw independent standard normal parameters, shape (p,)."""
        return _validate.generator("rng", rng).standard_normal(self.size)

    def layers(self, parameters: ArrayLike) -> list[Layer]:
        """Return the layers as views into the vector of parameters.

        Parameters
        ----------
        parameters : ndarray, shape (p,)
            Layer by layer, in each the weights before the biases.

        Returns
        -------
        list of Layer
        """
        theta = _validate.finite("parameters", parameters, shape=(self.size,))
        return [
            Layer(theta[weights].reshape(-1, into), theta[biases])
            for into, (weights, biases) in zip(self.widths[:-1], self._slices)
        ]

    def outputs(self, parameters: ArrayLike, x: ArrayLike) -> Array:
        """Return the outputs at the inputs, shape (n n_L,).

        Parameters
        ----------
        parameters : array_like, shape (p,)
            As for :meth:`layers`.
        x : array_like, shape (n, n_0)
            Inputs, one in each row.
        """
        return self._forward(self.layers(parameters), self._inputs("x", x)).outputs.ravel()

    def vjp(self, parameters: ArrayLike, x: ArrayLike) -> tuple[Array, Pullback]:
        """Return outputs, and the map from weights of them to the gradient of the weighted sum.

        Parameters
        ----------
        parameters : array_like, shape (p,)
            As for :meth:`layers`. The pullback keeps them by reference.
        x : array_like, shape (n, n_0)
            Inputs, one in each row. Kept likewise.

        Returns
        -------
        outputs : ndarray, shape (n n_L,)
        pullback : callable
            ``Df^T`` as a function of a vector, (n n_L,) to (p,).
        """
        layers, inputs = self.layers(parameters), self._inputs("x", x)
        forward = self._forward(layers, inputs)

        def pullback(cotangent: Array) -> Array:
            signal = np.asarray(cotangent).reshape(forward.outputs.shape)
            gradient = np.empty(self.size)
            # Filled in place: the layers of the gradient are views into it.
            for k in range(self.depth - 1, -1, -1):
                into = forward.activations[k]
                root = np.sqrt(self.widths[k])
                weights, biases = self._slices[k]
                np.matmul(signal.T / root, into, out=gradient[weights].reshape(-1, into.shape[1]))
                gradient[biases] = self.bias * signal.sum(axis=0)
                if k:
                    signal = (signal @ layers[k].weights) * (forward.slopes[k - 1] / root)
            return gradient

        return forward.outputs.ravel(), pullback

    def tangent_kernel(
        self, parameters: ArrayLike, x: ArrayLike, other: ArrayLike | None = None
    ) -> Array:
        r"""Empirical neural tangent kernel, ``Df(x) Df(other)^T`` (MDL Definition 8.5, corrected).

        Parameters
        ----------
        parameters : array_like, shape (p,)
            As for :meth:`layers`.
        x : array_like, shape (n, n_0)
            Inputs, one in each row.
        other : array_like, shape (q, n_0), optional
            `x` itself unless given.

        Returns
        -------
        ndarray, shape (n n_L, q n_L)
        """
        layers = self.layers(parameters)
        left = self._signals(layers, self._inputs("x", x))
        right = left if other is None else self._signals(layers, self._inputs("other", other))
        outputs = self.widths[-1]
        n, q = left[0][0].shape[0], right[0][0].shape[0]
        kernel = np.zeros((n, outputs, q, outputs))
        for k, ((into, back), (into_other, back_other)) in enumerate(zip(left, right)):
            features = into @ into_other.T / self.widths[k] + self.bias**2
            kernel += (back @ back_other.T).reshape(kernel.shape) * features[:, None, :, None]
        return kernel.reshape(n * outputs, q * outputs)

    @property
    def _slices(self) -> list[tuple[slice, slice]]:
        found, at = [], 0
        for into, out in zip(self.widths[:-1], self.widths[1:]):
            found.append(
                (slice(at, at + out * into), slice(at + out * into, at + out * (into + 1)))
            )
            at += out * (into + 1)
        return found

    def _inputs(self, name: str, x: ArrayLike) -> Array:
        return _validate.finite(name, x, shape=(None, self.widths[0]))

    def _forward(self, layers: list[Layer], x: Array) -> _Pass:
        derivative = self.activation.first("training")
        into, slopes, signal = [x], [], x
        for k, layer in enumerate(layers):
            before = signal @ layer.weights.T
            before /= np.sqrt(self.widths[k])
            before += self.bias * layer.biases
            if k + 1 < self.depth:
                signal = self.activation.value(before)
                into.append(signal)
                slopes.append(derivative(before))
        return _Pass(into, slopes, before)

    def _signals(self, layers: list[Layer], x: Array) -> list[tuple[Array, Array]]:
        """Per layer: activations (n, n_k), and backward signals of all outputs (n n_L, n_{k+1})."""
        forward = self._forward(layers, x)
        n, outputs = forward.outputs.shape
        signal = np.tile(np.eye(outputs), (n, 1))
        found = [(forward.activations[-1], signal)]
        for k in range(self.depth - 1, 0, -1):
            slopes = np.repeat(forward.slopes[k - 1], outputs, axis=0)
            signal = (signal @ layers[k].weights) * (slopes / np.sqrt(self.widths[k]))
            found.append((forward.activations[k - 1], signal))
        return found[::-1]
