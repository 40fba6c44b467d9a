"""Dynamical mean field theory of full-batch gradient descent, and the thresholds it predicts."""

from traindyn.dmft.kernels import Kernels, MeanField, Paths, TargetMoments, solve
from traindyn.dmft.overlap import OverlapLaw, overlap_law
from traindyn.dmft.proximal import proximal
from traindyn.dmft.stable import StableLimit, stable_limit, stable_threshold
from traindyn.dmft.thresholds import initial_threshold

__all__ = [
    "Kernels",
    "MeanField",
    "OverlapLaw",
    "Paths",
    "StableLimit",
    "TargetMoments",
    "initial_threshold",
    "overlap_law",
    "proximal",
    "solve",
    "stable_limit",
    "stable_threshold",
]
