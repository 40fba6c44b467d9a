"""Random-matrix laws as objects: density, edges, outliers, overlaps."""

from traindyn.laws.ensembles import ENTRIES, Bidiagonal, EntryLaw, wishart_bidiagonal
from traindyn.laws.hard_subspace import HardSubspace
from traindyn.laws.marchenko_pastur import MarchenkoPastur
from traindyn.laws.sample_covariance import SampleCovariance
from traindyn.laws.weighted import TRACY_WIDOM_MEAN, Outliers, WeightedMarchenkoPastur

__all__ = [
    "ENTRIES",
    "TRACY_WIDOM_MEAN",
    "Bidiagonal",
    "EntryLaw",
    "HardSubspace",
    "MarchenkoPastur",
    "Outliers",
    "SampleCovariance",
    "WeightedMarchenkoPastur",
    "wishart_bidiagonal",
]
