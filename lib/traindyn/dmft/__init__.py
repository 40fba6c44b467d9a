"""Dynamical mean field theory of full-batch gradient descent, and the thresholds it predicts."""

from traindyn.dmft.bounds import Price, price
from traindyn.dmft.kernels import Kernels, MeanField, Moments, Paths, solve
from traindyn.dmft.many_samples import ManySamples, many_samples
from traindyn.dmft.measured import Measured, measure
from traindyn.dmft.overlap import OverlapLaw, overlap_law
from traindyn.dmft.stable import StableLimit, stable_limit, stable_threshold
from traindyn.dmft.thresholds import (
    Threshold,
    Thresholds,
    crossing,
    delta_star,
    extrapolate,
    half_point,
    initial_threshold,
    threshold_curve,
)

__all__ = [
    "Kernels",
    "ManySamples",
    "MeanField",
    "Measured",
    "Moments",
    "OverlapLaw",
    "Paths",
    "Price",
    "StableLimit",
    "Threshold",
    "Thresholds",
    "crossing",
    "delta_star",
    "extrapolate",
    "half_point",
    "initial_threshold",
    "many_samples",
    "measure",
    "overlap_law",
    "price",
    "solve",
    "stable_limit",
    "stable_threshold",
    "threshold_curve",
]
