"""Random-matrix laws as objects: density, edges, outliers, overlaps."""

from traindyn.laws.hard_subspace import HardSubspace
from traindyn.laws.marchenko_pastur import MarchenkoPastur
from traindyn.laws.weighted import TRACY_WIDOM_MEAN, Outliers, WeightedMarchenkoPastur

__all__ = [
    "TRACY_WIDOM_MEAN",
    "HardSubspace",
    "MarchenkoPastur",
    "Outliers",
    "WeightedMarchenkoPastur",
]
