"""Problems: one data law, network and loss per file, with their summary statistics.

The rooms above are written against the protocol of :mod:`traindyn.problems.base`; a new
problem is one new file.
"""

from traindyn.problems.base import MATRICES, Block, Factors, Kernel, Matrix, Problem, Sample
from traindyn.problems.k_gmm import KGaussianMixture, Moments, Point, Statistics

__all__ = [
    "MATRICES",
    "Block",
    "Factors",
    "KGaussianMixture",
    "Kernel",
    "Matrix",
    "Moments",
    "Point",
    "Problem",
    "Sample",
    "Statistics",
]
