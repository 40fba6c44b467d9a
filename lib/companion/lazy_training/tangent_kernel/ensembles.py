"""Outputs of infinitely wide networks in training, and the drift of the kernel of wide ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array
from traindyn.activations import Activation
from traindyn.kernels.flow import KernelFlow
from traindyn.kernels.recursion import infinite_width

__all__ = ["Ensemble", "rectifier_drift", "wide_ensemble"]


class Ensemble(NamedTuple):
    r"""Outputs of infinitely wide networks in training: a Gaussian process at each time.

    Attributes
    ----------
    mean : ndarray, shape (T, q)
    covariance : ndarray, shape (T, q, q)
    response : ndarray, shape (T, q, n)
        :math:`A_t`: a network that starts from the outputs :math:`f_0` has
        :math:`f_t(x) = f_0(x) + A_t(x) (y - f_0(X))`.
    """

    mean: Array
    covariance: Array
    response: Array


def wide_ensemble(
    x: ArrayLike,
    y: ArrayLike,
    fresh: ArrayLike,
    times: ArrayLike,
    *,
    depth: int,
    activation: Activation,
    bias: float = 0.0,
    step_size: float | None = None,
    last_layer: bool = False,
) -> Ensemble:
    r"""Mean and covariance over initialisations of infinitely wide networks in training.

    The kernel stays :math:`K = K_\infty^{(L)}` (MDL Theorem 8.7) and the start is Gaussian of
    covariance :math:`\Sigma = \Sigma^{(L)}`, so with
    :math:`A_t = K(x, X) K^{-1} (1 - e^{-t K / n})`

    .. math:: E f_t(x) = A_t y, \qquad
              \mathrm{Cov} f_t = \Sigma - A_t \Sigma(X, x) - \Sigma(x, X) A_t^T
              + A_t \Sigma(X, X) A_t^T .

    Parameters
    ----------
    x : array_like, shape (n, n_0)
        Training inputs.
    y : array_like, shape (n,)
        Targets.
    fresh : array_like, shape (q, n_0)
        Inputs at which the outputs are wanted.
    times : array_like, shape (T,)
        Increasing and non-negative; the last may be infinite.
    depth, activation, bias
        Of the networks, as for :func:`~traindyn.kernels.recursion.infinite_width`.
    step_size : float, optional
        Of gradient descent; gradient flow unless given.
    last_layer : bool, default False
        Train the last layer alone, with kernel :math:`\Sigma`: at infinite time that is the
        posterior of the Gaussian process, without noise.

    Raises
    ------
    ValueError
        If the shapes disagree or an argument is out of range.

    Examples
    --------
    At a training input nothing is left of the start:

    >>> import numpy as np
    >>> from companion.lazy_training.tangent_kernel.ensembles import wide_ensemble
    >>> from traindyn.activations import ERF
    >>> found = wide_ensemble([[1.0], [2.0]], [1.0, 0.0], [[2.0]], [0.0, np.inf], depth=2,
    ...     activation=ERF, bias=1.0)
    >>> abs(found.mean.ravel().round(9)).tolist()
    [0.0, 0.0]
    >>> abs(found.covariance.ravel().round(3)).tolist()
    [1.726, 0.0]
    """
    inputs = _validate.finite("x", x, shape=(None, None))
    targets = _validate.finite("y", y, shape=(inputs.shape[0],))
    others = _validate.finite("fresh", fresh, shape=(None, inputs.shape[1]))
    n = inputs.shape[0]
    limit = infinite_width(
        np.concatenate([inputs, others]), depth=depth, activation=activation, bias=bias
    )
    start = limit.nngp
    kernel = start if last_layer else limit.ntk
    # Linear in the residual at the start: one column of the response for each unit residual.
    response = np.stack(
        [
            KernelFlow(kernel[:n, :n], unit, step_size=step_size).elsewhere(times, kernel[n:, :n])
            for unit in np.eye(n)
        ],
        axis=-1,
    )
    mixed = response @ start[:n, n:]
    covariance = (
        start[n:, n:]
        - mixed
        - np.swapaxes(mixed, 1, 2)
        + response @ start[:n, :n] @ np.swapaxes(response, 1, 2)
    )
    return Ensemble(response @ targets, covariance, response)


def rectifier_drift(own: float, cross: float, coefficient: float) -> tuple[float, float]:
    r"""Change of the tangent kernel of a wide ReLU network in training, times root of the width.

    One hidden layer, trained from zero output on two inputs with opposite targets. Put
    :math:`\kappa = x \cdot x' / n_0 + \beta^2`, with :math:`\kappa_0` on the diagonal, and let a be
    the dual coefficient of the first input, :math:`-a` that of the other. Take a neuron of output
    weight v that answers the second input. Where its pre-activation at the first is just below
    zero it moves at the speed :math:`-v \kappa \dot a / \sqrt n`, just above zero at
    :math:`v (\kappa_0 - \kappa) \dot a / \sqrt n`. For :math:`v > 0` both lead away from zero, and
    no neuron is switched. For :math:`v < 0` both lead to zero, where the neuron stays, on for a
    share :math:`\kappa / \kappa_0` of the time. One that does not answer the second input can only
    be switched off. With the Gaussian density at zero,

    .. math:: \sqrt n\, E\,\Delta K(x, x') \to \frac{\kappa\, a\, (2 \kappa - \kappa_0)}
              {\pi \sqrt{\kappa_0}}, \qquad
              \sqrt n\, E\,\Delta K(x, x) \to -\frac{a \sqrt{\kappa_0}\, (\kappa_0 - \kappa)}{\pi} .

    Parameters
    ----------
    own, cross : float
        :math:`\kappa_0` and :math:`\kappa`, with :math:`0 \le \kappa < \kappa_0`.
    coefficient : float
        a, as :meth:`~traindyn.kernels.flow.KernelFlow.coefficients` gives it with the limiting
        kernel.

    Returns
    -------
    diagonal, off_diagonal : float

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.lazy_training.tangent_kernel.ensembles import rectifier_drift
    >>> diagonal, off_diagonal = rectifier_drift(1.0, 0.5, 2.0)
    >>> round(diagonal * np.pi, 9), off_diagonal
    (-1.0, 0.0)
    """
    own = _validate.positive("own", own)
    cross = _validate.number("cross", cross)
    if not 0 <= cross < own:
        raise ValueError(f"cross must be in [0, {own:g}), got {cross:g}")
    a = _validate.number("coefficient", coefficient)
    root = np.sqrt(own)
    return (
        float(-a * root * (own - cross) / np.pi),
        float(cross * a * (2 * cross - own) / (np.pi * root)),
    )
