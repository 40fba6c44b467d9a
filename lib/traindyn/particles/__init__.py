"""Self-attention as interacting particles on the sphere.

:mod:`~traindyn.particles.attention` has the dynamics, with any matrices, heads and feed-forward
layer; :mod:`~traindyn.particles.laws` what is exact about it: the equiangular curve, times to
cluster, growth rates around the uniform measure; :mod:`~traindyn.particles.clusters` what is
measured on tokens.
"""

from traindyn.particles.attention import (
    Attention,
    FeedForward,
    Flow,
    Head,
    energy,
    random_tokens,
)
from traindyn.particles.clusters import cluster_count, clustered_share
from traindyn.particles.laws import cluster_time, equiangular, growth_rate

__all__ = [
    "Attention",
    "FeedForward",
    "Flow",
    "Head",
    "cluster_count",
    "cluster_time",
    "clustered_share",
    "energy",
    "equiangular",
    "growth_rate",
    "random_tokens",
]
