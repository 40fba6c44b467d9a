"""Kernels of wide networks, and training while the kernel stays where it was."""

from traindyn.kernels.dual import DualMoments, dual_moments, hermite_coefficients, own_moments
from traindyn.kernels.features import FeatureKernel, feature_kernel, random_features
from traindyn.kernels.flow import KernelFlow
from traindyn.kernels.lazy import (
    Bounds,
    LazyConstants,
    Scales,
    linearisation_gap,
    measure,
    scales,
    sharp_bounds,
    theorem_bounds,
)
from traindyn.kernels.network import Layer, Network
from traindyn.kernels.recursion import InfiniteWidth, infinite_width
from traindyn.kernels.training import Comparison, compare
from traindyn.kernels.two_layer import Lipschitz, TwoLayer

__all__ = [
    "Bounds",
    "Comparison",
    "DualMoments",
    "FeatureKernel",
    "InfiniteWidth",
    "KernelFlow",
    "Layer",
    "LazyConstants",
    "Lipschitz",
    "Network",
    "Scales",
    "TwoLayer",
    "compare",
    "dual_moments",
    "feature_kernel",
    "hermite_coefficients",
    "infinite_width",
    "linearisation_gap",
    "measure",
    "own_moments",
    "random_features",
    "scales",
    "sharp_bounds",
    "theorem_bounds",
]
