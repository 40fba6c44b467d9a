"""Self-attention as interacting particles on the sphere.

:mod:`~traindyn.particles.attention` has the dynamics, with any matrices, heads and feed-forward
layer; :mod:`~traindyn.particles.mean_field` densities on the circle.
"""

from traindyn.particles.attention import (
    Attention,
    FeedForward,
    Flow,
    Head,
    energy,
    energy_growth,
    random_tokens,
)
from traindyn.particles.mean_field import circle_flow, poisson_order

__all__ = [
    "Attention",
    "FeedForward",
    "Flow",
    "Head",
    "circle_flow",
    "energy",
    "energy_growth",
    "poisson_order",
    "random_tokens",
]
