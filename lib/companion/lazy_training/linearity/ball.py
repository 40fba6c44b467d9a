"""Largest spectral norm of the Hessian of an output in a ball of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindyn import _validate
from traindyn.deep.hessian import HessianNorms, hessian_norms
from traindyn.deep.network import RNG, Network

__all__ = ["BallNorms", "hessian_ball"]

Array: TypeAlias = NDArray[np.float64]


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
