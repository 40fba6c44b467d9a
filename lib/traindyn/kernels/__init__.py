"""Kernels of wide networks, and training while the kernel stays where it was."""

from traindyn.kernels.dual import DualMoments, dual_moments, hermite_coefficients, own_moments
from traindyn.kernels.flow import KernelFlow
from traindyn.kernels.lazy import (
    Bounds,
    LazyConstants,
    QuadraticMap,
    Scales,
    linearisation_gap,
    measure,
    scales,
    sharp_bounds,
    theorem_bounds,
)
from traindyn.kernels.network import Layer, Network
from traindyn.kernels.recursion import (
    InfiniteWidth,
    WidthCorrections,
    antipodal_mean,
    infinite_width,
    random_covariances,
    width_corrections,
)
from traindyn.kernels.training import (
    Comparison,
    Ensemble,
    compare,
    rectifier_drift,
    wide_ensemble,
)
from traindyn.kernels.two_layer import Lipschitz, TwoLayer

__all__ = [
    "Bounds",
    "Comparison",
    "DualMoments",
    "Ensemble",
    "InfiniteWidth",
    "KernelFlow",
    "Layer",
    "LazyConstants",
    "Lipschitz",
    "Network",
    "QuadraticMap",
    "Scales",
    "TwoLayer",
    "WidthCorrections",
    "antipodal_mean",
    "compare",
    "dual_moments",
    "hermite_coefficients",
    "infinite_width",
    "linearisation_gap",
    "measure",
    "own_moments",
    "random_covariances",
    "rectifier_drift",
    "scales",
    "sharp_bounds",
    "theorem_bounds",
    "wide_ensemble",
    "width_corrections",
]
