r"""Hessian and G-matrix of a two-layer network on one sample, from one forward pass.

With outputs :math:`o = v \cdot g(z)`, preactivations :math:`z = W X`, errors
:math:`e = \sigma(o) - y`, active neurons :math:`1_i = 1\{z_i > 0\}` and unit vectors
:math:`\mathbf e_j`, the loss of one draw has the second derivatives (BGHJ (4.4), (6.16))

.. math::

    \nabla^2_{W_i W_j} L &= \sigma'(o)\, v_i v_j 1_i 1_j\, X X^T, \qquad
    \nabla^2_{v v} L = \sigma'(o)\, g(z) g(z)^T, \\
    \nabla^2_{v W_j} L &= 1_j \{ e\, \mathbf e_j + v_j \sigma'(o)\, g(z) \} X^T

almost everywhere, and the products of its gradients are

.. math::

    \nabla_{W_i} L\, \nabla_{W_j} L^T = e^2 v_i v_j 1_i 1_j\, X X^T, \quad
    \nabla_v L\, \nabla_v L^T = e^2 g(z) g(z)^T, \quad
    \nabla_v L\, \nabla_{W_j} L^T = e^2 v_j 1_j\, g(z) X^T .

BGHJ (6.16) and (6.21) print the opposite sign of the error in the mixed block. The kink of g adds
:math:`v_i E[e\, \delta(z_i) X X^T]` to a diagonal block of the *population* Hessian; it
appears in the Hessian of no sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindyn import _validate
from traindyn._types import Array
from traindyn.problems.base import MATRICES, Block, Factors, Matrix

__all__ = ["Forward"]


@dataclass(frozen=True, eq=False)
class Forward:
    """What every block at one point and on one sample is made of.

    Attributes
    ----------
    v : ndarray, shape (K,)
        Second layer.
    inputs : ndarray, shape (n, N)
    hidden : ndarray, shape (n, K)
        Features ``g(W X)``; a neuron is active where its feature is positive.
    errors : ndarray, shape (n,)
        Predicted probability minus label.
    slopes : ndarray, shape (n,)
        Derivative of the predicted probability by the output.
    """

    v: Array
    inputs: Array
    hidden: Array
    errors: Array
    slopes: Array

    def factors(self, matrix: Matrix, block: Block) -> Factors:
        """Weights and features of one block, without the ridge.

        Parameters
        ----------
        matrix : {"hessian", "g_matrix"}
            The Hessian weights inputs by the slope of the sigmoid, the G-matrix by squared errors.
        block : tuple of int
            (i, j) of two neurons counted from zero, (K, K) of the second layer, or (K, j) and
            (j, K) of both layers.

        Returns
        -------
        Factors
            Features are the inputs for a neuron and the hidden layer for the second layer,
            except that in the Hessian's block (K, j) they are, with weights 0 and 1, the first
            factor of the mixed derivative. Weights are exactly zero where a neuron of the block
            is inactive.

        Raises
        ------
        ValueError
            If the matrix or the block does not exist.
        """
        width = self.v.size
        i, j = _validate.pair("block", block, most=width)
        hessian = _validate.choice("matrix", matrix, MATRICES) == "hessian"
        curvature = self.slopes if hessian else self.errors**2
        if i == j == width:
            return Factors(curvature, self.hidden, self.hidden)
        if i < width and j < width:
            weights = curvature * (self.v[i] * self.v[j]) * (self._active(i) & self._active(j))
            return Factors(weights, self.inputs, self.inputs)
        neuron = min(i, j)
        if hessian:
            weights = self._active(neuron).astype(np.float64)
            felt = (self.v[neuron] * curvature)[:, None] * self.hidden
            felt[:, neuron] += self.errors
        else:
            weights = curvature * self.v[neuron] * self._active(neuron)
            felt = self.hidden
        if i == width:
            return Factors(weights, felt, self.inputs)
        return Factors(weights, self.inputs, felt)

    def _active(self, i: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        active: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.hidden[:, i] > 0
        return active
