"""Kernels of wide networks, and training while the kernel stays where it was."""

from traindyn.kernels.dual import DualMoments, dual_moments, hermite_coefficients, own_moments
from traindyn.kernels.features import (
    FeatureKernel,
    circle_coefficients,
    feature_kernel,
    gaussian_feature_scale,
    random_features,
    ridgeless_variance,
    term_variance,
)
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
from traindyn.kernels.parameterisation import (
    KernelEntries,
    Parameterisation,
    kernel_entries,
    pytorch_start,
)
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
    "FeatureKernel",
    "InfiniteWidth",
    "KernelEntries",
    "KernelFlow",
    "Layer",
    "LazyConstants",
    "Lipschitz",
    "Network",
    "Parameterisation",
    "QuadraticMap",
    "Scales",
    "TwoLayer",
    "WidthCorrections",
    "antipodal_mean",
    "circle_coefficients",
    "compare",
    "dual_moments",
    "feature_kernel",
    "gaussian_feature_scale",
    "hermite_coefficients",
    "infinite_width",
    "kernel_entries",
    "linearisation_gap",
    "measure",
    "own_moments",
    "pytorch_start",
    "random_covariances",
    "random_features",
    "rectifier_drift",
    "ridgeless_variance",
    "scales",
    "sharp_bounds",
    "term_variance",
    "theorem_bounds",
    "wide_ensemble",
    "width_corrections",
]
