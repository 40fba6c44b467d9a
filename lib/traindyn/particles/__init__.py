"""Self-attention as interacting particles on the sphere.

:mod:`~traindyn.particles.attention` has the dynamics, with any matrices, heads and feed-forward
layer; :mod:`~traindyn.particles.ensembles` random matrices for it;
:mod:`~traindyn.particles.laws` what is exact: the equiangular curve, times to cluster, growth rates
around the uniform measure; :mod:`~traindyn.particles.landscape` the energy at infinite temperature
and what is conserved; :mod:`~traindyn.particles.clusters` what is measured on tokens, and the limit
of large inverse temperatures; :mod:`~traindyn.particles.mean_field` densities on the circle;
:mod:`~traindyn.particles.residual` residual networks and their differential equation.
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
from traindyn.particles.clusters import cluster_count, clustered_share, linkage
from traindyn.particles.ensembles import random_head
from traindyn.particles.landscape import consensus_hessian, cross_ratios
from traindyn.particles.laws import (
    cluster_time,
    equiangular,
    growth_rate,
    opposite_share,
    pair_time,
)
from traindyn.particles.mean_field import circle_flow, poisson_order
from traindyn.particles.residual import euler_error, neural_ode, residual_network

__all__ = [
    "Attention",
    "FeedForward",
    "Flow",
    "Head",
    "circle_flow",
    "cluster_count",
    "cluster_time",
    "clustered_share",
    "consensus_hessian",
    "cross_ratios",
    "energy",
    "energy_growth",
    "equiangular",
    "euler_error",
    "growth_rate",
    "linkage",
    "neural_ode",
    "opposite_share",
    "pair_time",
    "poisson_order",
    "random_head",
    "random_tokens",
    "residual_network",
]
