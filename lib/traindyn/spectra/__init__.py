"""Hessian and G-matrix of a problem: empirical, along training, in the mean, and predicted.

:mod:`~traindyn.spectra.blocks` makes operators of the blocks at a point,
:mod:`~traindyn.spectra.film` follows their leading eigenpairs along a trajectory,
:mod:`~traindyn.spectra.population` integrates their expectations and
:mod:`~traindyn.spectra.predict` predicts their spectra at finite sample size.
:mod:`~traindyn.spectra.density` estimates the whole spectrum of any operator, with errors.
:mod:`~traindyn.spectra.network` has the Hessian of a multi-index network.
:mod:`~traindyn.spectra.tails` bounds how improbable large deviations from the mean are.
"""

from traindyn.spectra import blocks, density, film, network, population, predict, tails

__all__ = ["blocks", "density", "film", "network", "population", "predict", "tails"]
