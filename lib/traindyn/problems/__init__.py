"""Problems: one data law, network and loss per file, with their summary statistics.

The rooms above are written against the protocols of :mod:`traindyn.problems.base`; a new
problem is one new file, or a loss given to :class:`ProjectionModel`;
:mod:`traindyn.conformance` checks either. Each problem's own types, its points and statistics
among them, stand in its package.
"""

from traindyn.problems.base import (
    MATRICES,
    Block,
    Dynamics,
    Factors,
    Kernel,
    LimitDynamics,
    Matrix,
    NoisyDynamics,
    Problem,
    Sample,
)
from traindyn.problems.k_gmm import KGaussianMixture
from traindyn.problems.projection_model import ProjectionModel
from traindyn.problems.spiked import SpikedTensor
from traindyn.problems.two_layer import TwoLayerMixture

__all__ = [
    "MATRICES",
    "Block",
    "Dynamics",
    "Factors",
    "KGaussianMixture",
    "Kernel",
    "LimitDynamics",
    "Matrix",
    "NoisyDynamics",
    "Problem",
    "ProjectionModel",
    "Sample",
    "SpikedTensor",
    "TwoLayerMixture",
]
