"""Multi-index targets learnt by two-layer networks: targets, hardness, data, curvature."""

from traindyn.problems.multi_index.hardness import Decomposition, decompose
from traindyn.problems.multi_index.losses import (
    SQUARED,
    Loss,
    cauchy,
    log_cosh,
    logistic,
    pseudo_huber,
)
from traindyn.problems.multi_index.model import Data, MultiIndex, Statistics
from traindyn.problems.multi_index.recovery import Recovery, delta_alg
from traindyn.problems.multi_index.targets import (
    Target,
    half_spaces,
    orthonormal,
    parity,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)

__all__ = [
    "SQUARED",
    "Data",
    "Decomposition",
    "Loss",
    "MultiIndex",
    "Recovery",
    "Statistics",
    "Target",
    "cauchy",
    "decompose",
    "delta_alg",
    "half_spaces",
    "log_cosh",
    "logistic",
    "orthonormal",
    "parity",
    "phase_retrieval",
    "polynomial",
    "pseudo_huber",
    "two_layer_teacher",
]
