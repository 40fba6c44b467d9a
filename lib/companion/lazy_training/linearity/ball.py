"""Largest spectral norm of the Hessian of an output in a ball of weights.

For any network norms are computed at points of the ball, the largest of which is a lower bound of
the supremum. For two layers the supremum itself and its law are known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.activations import Elementwise
from traindyn.deep.activations import derivatives, resolve
from traindyn.deep.hessian import HessianNorms, hessian_norms, two_layer_eigenvalues
from traindyn.deep.network import Network
from traindyn.deep.two_layer import any_neuron

__all__ = ["BallNorms", "hessian_ball", "two_layer_exceedance", "two_layer_supremum"]


@dataclass(frozen=True)
class BallNorms:
    """Spectral norms at points of a ball around some weights.

    Attributes
    ----------
    radius : float
    distances : ndarray, shape (q,)
        Of the points from the centre.
    norms : ndarray, shape (q, k)
        Per point and output.
    residuals : ndarray, shape (q, k)
    converged : ndarray of bool, shape (q, k)
    centre : HessianNorms
        At the centre itself.
    """

    radius: float
    distances: Array
    norms: Array
    residuals: Array
    converged: NDArray[np.bool_]
    centre: HessianNorms

    @property
    def maximum(self) -> Array:
        """Largest norm seen, the centre included, shape (k,): a lower bound of the supremum."""
        largest: Array = np.maximum(self.norms.max(axis=0), self.centre.norms)
        return largest


def hessian_ball(
    network: Network,
    weights: ArrayLike,
    point: ArrayLike,
    radius: float,
    *,
    points: int = 8,
    along: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    tolerance: float = 1e-6,
    rng: RNG,
) -> BallNorms:
    """Spectral norms at points of the ball of a radius around some weights.

    Parameters
    ----------
    network, weights, point, outputs, tolerance
        As in :func:`~traindyn.deep.hessian.hessian_norms`; the weights are the centre.
    radius : float
        Of the ball, in the Euclidean norm of all weights; non-negative.
    points : int
        Uniformly distributed points. In many dimensions all lie close to the sphere.
    along : array_like, shape (P, b), optional
        Directions, for instance the gradient, in which to go to the sphere, both ways.
    rng : int, SeedSequence or Generator
        Of the uniform points, and of the first vectors of the iterations.

    Returns
    -------
    BallNorms
        The uniform points first.

    Raises
    ------
    ValueError
        As :func:`~traindyn.deep.hessian.hessian_norms`, and if there is no point or a direction is
        zero.
    """
    centre = _validate.finite("weights", weights, shape=(network.parameters,))
    radius = _validate.non_negative("radius", radius)
    points = _validate.integer("points", points, least=0)
    generator = _validate.generator("rng", rng)
    arms = np.zeros((network.parameters, 0))
    if along is not None:
        arms = _validate.finite("along", along, shape=(network.parameters, None))
        lengths = np.linalg.norm(arms, axis=0)
        if np.any(lengths == 0):
            raise ValueError("along must have non-zero columns, got a zero column")
        arms = arms / lengths
    if points + arms.shape[1] == 0:
        raise ValueError("points must be positive where no directions are given, got 0")

    def norms(at: Array) -> HessianNorms:
        return hessian_norms(
            network, at, point, outputs=outputs, tolerance=tolerance, rng=generator
        )

    found, distances = [], []
    for _ in range(points):
        step = generator.standard_normal(network.parameters)
        distances.append(radius * generator.random() ** (1 / network.parameters))
        found.append(norms(centre + distances[-1] / np.linalg.norm(step) * step))
    for arm in arms.T:
        for signed in (radius, -radius):
            distances.append(radius)
            found.append(norms(centre + signed * arm))
    return BallNorms(
        radius=radius,
        distances=np.array(distances),
        norms=np.stack([one.norms for one in found]),
        residuals=np.stack([one.residuals for one in found]),
        converged=np.stack([one.converged for one in found]),
        centre=norms(centre),
    )


def two_layer_supremum(
    network: Network, weights: ArrayLike, point: ArrayLike, radius: float
) -> tuple[float, Array]:
    r"""Supremum of the Hessian norm of two layers over a ball of weights, and where it is attained.

    By the closed form of :func:`~traindyn.deep.hessian.two_layer_eigenvalues` the norm is the
    largest over the neurons of a function of :math:`z_i = u_i \cdot x/\sqrt d` and :math:`v_i` that
    increases in :math:`|v_i|`. The best shift therefore moves one neuron only, by
    :math:`\delta` along :math:`x/|x|` and by :math:`\sqrt{R^2-\delta^2}` in :math:`|v_i|`, so that
    one variable is left. It is searched on a grid of spacing R/400, with an error of a few
    :math:`10^{-5}` relative to the supremum at radii of order one.

    Parameters
    ----------
    network, weights, point
        As in :func:`~traindyn.deep.hessian.two_layer_eigenvalues`; the weights are the centre.
    radius : float
        R, in the Euclidean norm of all weights; non-negative.

    Returns
    -------
    supremum : float
    where : ndarray, shape (m d + m,)
        Weights of the ball at which the norm has this value.

    Raises
    ------
    ValueError
        As :func:`~traindyn.deep.hessian.two_layer_eigenvalues`, and if the radius is negative.

    Examples
    --------
    The supremum is the norm at the weights returned, which lie in the ball.

    >>> import numpy as np
    >>> from companion.lazy_training.linearity.ball import two_layer_supremum
    >>> from traindyn import deep
    >>> network = deep.fully_connected([3, 5, 1])
    >>> w, x = network.initial(rng=0), np.ones(3)
    >>> top, where = two_layer_supremum(network, w, x, 2.0)
    >>> norm = np.abs(deep.two_layer_eigenvalues(network, where, x)).max()
    >>> bool(abs(norm - top) < 1e-12), bool(np.linalg.norm(where - w) < 2 + 1e-12)
    (True, True)
    """
    x = network.check_point(point)
    at_centre = np.abs(two_layer_eigenvalues(network, weights, x))  # also checks the network
    radius = _validate.non_negative("radius", radius)
    inner, outer = network.unpack(weights)
    d, m = network.inputs, outer.size
    square = float(x @ x) / d
    shifts = radius * np.linspace(-1, 1, 801)
    raised = np.sqrt(np.maximum(radius**2 - shifts**2, 0.0))
    z = (inner @ x / np.sqrt(d))[:, None] + np.sqrt(square) * shifts
    activation = network.layers[0].activations[0]
    slope, curvature = (one.reshape(z.shape) for one in derivatives(activation, z.ravel()))
    a = square * (np.abs(outer[0])[:, None] + raised) * np.abs(curvature)
    norms = (a + np.sqrt(a**2 + 4 * square * slope**2)) / 2 / np.sqrt(m)
    neuron, step = np.unravel_index(np.argmax(norms), norms.shape)
    if norms[neuron, step] <= at_centre.max():  # a radius of zero, or an input of zero
        return float(at_centre.max()), np.array(weights, dtype=np.float64)
    inner, outer = inner.copy(), outer.copy()
    inner[neuron] += shifts[step] * x / np.linalg.norm(x)
    outer[0, neuron] += np.copysign(raised[step], outer[0, neuron])
    return float(norms[neuron, step]), np.concatenate([inner.ravel(), outer.ravel()])


def two_layer_exceedance(
    activation: str | Elementwise, width: float, radius: float, norms: ArrayLike
) -> Array:
    r"""Probability that the supremum of the Hessian norm over a ball exceeds given norms.

    For two layers with Gaussian weights and an input with :math:`|x|^2=d`. At :math:`R=0` a neuron
    exceeds :math:`t/\sqrt m` if and only if :math:`|v|>V(z)` with
    :math:`V(z)=(t^2-\sigma'(z)^2)_+/(t|\sigma''(z)|)`, see
    :class:`~traindyn.deep.two_layer.TwoLayerNorm`. In the ball it does so at some weights if and
    only if :math:`|v|>V_R(z)` with
    :math:`V_R(z)=\inf_{|\delta|\le R}(V(z+\delta)-\sqrt{R^2-\delta^2})`, and the neurons are
    independent because the best shift moves one of them only:

    .. math::

       P\big(\sup\sqrt m\,\|H\|>t\big)=1-\big(1-E\,\mathrm{erfc}((V_R(z))_+/\sqrt2)\big)^m .

    Parameters
    ----------
    activation : str or callable
        See :func:`~traindyn.deep.activations.resolve`.
    width : float
        The number m of neurons, at least 1.
    radius : float
        R, in the Euclidean norm of all weights; non-negative.
    norms : array_like
        Positive.

    Returns
    -------
    ndarray, of the shape of `norms`

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    A ball of radius zero has the law of the norm at the start.

    >>> import numpy as np
    >>> from companion.lazy_training.linearity.ball import two_layer_exceedance
    >>> from traindyn import deep
    >>> law = deep.TwoLayerNorm("tanh", 64)
    >>> gap = two_layer_exceedance("tanh", 64, 0.0, [0.2, 0.3]) - law.exceedance([0.2, 0.3])
    >>> bool(np.abs(gap).max() < 1e-9)
    True
    """
    radius = _validate.non_negative("radius", radius)
    width = _validate.number("width", width)
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    spacing = 24 / 8192
    if radius:  # coarser, with R a multiple of it: shifts go from node to node
        spacing = radius / np.ceil(radius / (2 * spacing))
    half = int(np.ceil(12 / spacing))
    reach = round(radius / spacing)
    nodes = spacing * np.arange(-half - reach, half + reach + 1)
    slope, curvature = derivatives(resolve(activation), nodes)
    raised = np.sqrt(np.maximum(radius**2 - (spacing * np.arange(-reach, reach + 1)) ** 2, 0.0))
    masses = np.exp(-(nodes[reach : reach + 2 * half + 1] ** 2) / 2)
    masses /= masses.sum()

    def single(t: float) -> float:
        """Probability that one neuron exceeds t somewhere in the ball, times the root of m."""
        room = t * t - slope**2
        needed = np.full_like(room, np.inf)
        with np.errstate(over="ignore"):
            np.divide(room, t * np.abs(curvature), out=needed, where=curvature != 0)
        needed[room < 0] = 0.0
        lowest = np.full(2 * half + 1, np.inf)
        for k, less in enumerate(raised):
            np.minimum(lowest, needed[k : k + 2 * half + 1] - less, out=lowest)
        return float(masses @ special.erfc(np.maximum(lowest, 0.0) / np.sqrt(2)))

    return any_neuron(single, width, norms)
