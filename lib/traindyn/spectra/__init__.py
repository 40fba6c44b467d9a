"""Hessian and G-matrix of a problem: empirical, along training, in the mean, and predicted.

:mod:`~traindyn.spectra.blocks` makes operators of the blocks at a point,
:mod:`~traindyn.spectra.film` follows their leading eigenpairs along a trajectory,
:mod:`~traindyn.spectra.population` integrates their expectations,
:mod:`~traindyn.spectra.predict` predicts their spectra at finite sample size and
:mod:`~traindyn.spectra.counting` counts the outliers.
"""

from traindyn.spectra import blocks, counting, film, population, predict

__all__ = ["blocks", "counting", "film", "population", "predict"]
