"""Kernels of wide networks, and training while the kernel stays where it was."""

from traindyn.kernels.dual import DualMoments, dual_moments, hermite_coefficients, own_moments
from traindyn.kernels.flow import KernelFlow
from traindyn.kernels.recursion import (
    InfiniteWidth,
    infinite_width,
)
from traindyn.kernels.training import (
    Comparison,
    compare,
)
from traindyn.kernels.two_layer import Lipschitz, TwoLayer

__all__ = [
    "Comparison",
    "DualMoments",
    "InfiniteWidth",
    "KernelFlow",
    "Lipschitz",
    "TwoLayer",
    "compare",
    "dual_moments",
    "hermite_coefficients",
    "infinite_width",
    "own_moments",
]
