"""Hessian and G-matrix of a problem: empirical, along training, in the mean, and predicted.

:mod:`~traindyn.spectra.blocks` makes operators of the blocks at a point,
:mod:`~traindyn.spectra.film` follows their leading eigenpairs along a trajectory,
:mod:`~traindyn.spectra.population` integrates their expectations,
:mod:`~traindyn.spectra.predict` predicts their spectra at finite sample size and
:mod:`~traindyn.spectra.counting` counts the outliers. :mod:`~traindyn.spectra.network` has the
Hessian of a multi-index network, :mod:`~traindyn.spectra.conditioning` what its inputs are like
given what training has seen of them.
"""

from traindyn.spectra import blocks, conditioning, counting, film, network, population, predict

__all__ = ["blocks", "conditioning", "counting", "film", "network", "population", "predict"]
