r"""Second derivative of a network along a direction in its weights, as a sum over the neurons.

With the pre-activations :math:`u_v=n_v^{-1/2}\sum_uw_{uv}f_u` and values :math:`f_v` of the
neurons, the derivatives :math:`p_v` of the output in the values, and a dot for a derivative along
the direction,

.. math::

   \dot w^T H_f\,\dot w = \sum_v p_v\,\sigma''(u_v)\,\dot u_v^2
   + 2\sum_v \frac{p_v\,\sigma'(u_v)}{\sqrt{n_v}} \sum_u \dot w_{uv}\,\dot f_u .

Proofs bound these two sums. Only the activations are differentiated automatically here, so that the
sums are a check of :func:`~traindyn.deep.hessian.hessian_product`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn.deep.activations import derivatives
from traindyn.deep.network import Network

__all__ = ["second_derivative"]


def second_derivative(
    network: Network, weights: ArrayLike, point: ArrayLike, direction: ArrayLike
) -> tuple[float, float]:
    r"""Both sums of the second derivative of the first output (ZHU Section 2.3).

    Parameters
    ----------
    network : Network
        With dense layers, skip connections included, and one activation per layer.
    weights : array_like, shape (P,)
        Where the derivatives are taken.
    point : array_like, shape (d,)
        The input.
    direction : array_like, shape (P,)
        Along which the weights move.

    Returns
    -------
    curved : float
        :math:`\sum_v p_v\sigma''(u_v)\dot u_v^2`.
    mixed : float
        :math:`\sum_v p_v\sigma'(u_v)n_v^{-1/2}\sum_u\dot w_{uv}\dot f_u`, which counts twice.

    Raises
    ------
    ValueError
        If a shape is wrong, an entry is not finite, or a layer shares weights or has several
        activations.

    Examples
    --------
    >>> import numpy as np
    >>> from companion.lazy_training.linearity.second import second_derivative
    >>> from traindyn import deep
    >>> network = deep.densenet([3, 4, 4, 1])
    >>> w, x = network.initial(rng=0), np.ones(3)
    >>> arrow = np.linspace(-1, 1, w.size)
    >>> curved, mixed = second_derivative(network, w, x, arrow)
    >>> product = arrow @ deep.hessian_product(network, w, x, arrow)
    >>> bool(np.isclose(curved + 2 * mixed, product))
    True
    """
    directions = network.unpack(
        _validate.finite("direction", direction, shape=(network.parameters,))
    )
    values = [network.check_point(point)]
    dots, passed = [np.zeros_like(values[0])], []
    for layer, W, dW in zip(network.layers, network.unpack(weights), directions):
        if layer.which is not None or np.shape(W) != np.shape(layer.scale) + np.shape(W)[1:]:
            raise ValueError(
                "network must have dense layers with one activation each, got a layer of "
                f"{type(layer.connection).__name__} with {len(layer.activations)} activations"
            )
        read, read_dot = (
            np.concatenate([of[source] for source in layer.sources]) for of in (values, dots)
        )
        scale = np.asarray(layer.scale)
        u, u_dot = scale * (W @ read), scale * (dW @ read + W @ read_dot)
        slope, curvature = derivatives(layer.activations[0], u)
        passed.append((W * scale[:, None], u_dot, slope, curvature, scale * (dW @ read_dot)))
        value, dot = np.array(layer.activations[0](u)), slope * u_dot
        if layer.skips is not None:
            heads, tails = layer.skips
            value[heads] += read[tails]
            dot[heads] += read_dot[tails]
        values.append(value)
        dots.append(dot)
    p = [np.zeros_like(value) for value in values]
    p[-1][0] = 1.0
    curved = mixed = 0.0
    for layer, own, (matrix, u_dot, slope, curvature, cross) in zip(
        network.layers[::-1], p[:0:-1], passed[::-1]
    ):
        curved += own @ (curvature * u_dot**2)
        mixed += own @ (slope * cross)
        back = matrix.T @ (own * slope)
        if layer.skips is not None:
            heads, tails = layer.skips
            np.add.at(back, tails, own[heads])
        ends = np.cumsum([values[source].size for source in layer.sources])[:-1]
        for source, part in zip(layer.sources, np.split(back, ends)):
            p[source] += part
    return float(curved), float(mixed)
