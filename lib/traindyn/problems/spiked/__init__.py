"""Spiked matrix and tensor PCA: the problem, and what is known of it in closed form.

The problem itself is :class:`SpikedTensor` in :mod:`~traindyn.problems.spiked.tensor`; it
alone is what the simulators need. The other files hold results about it:

==============  ==================================================================
`equilibria`    fixed points of the effective dynamics, their stability, thresholds
`matrix`        order two: closed solution, escape from a random start
`diffusive`     stochastic limits around the equator and around fixed points
`printed`       formulas as the source prints them, to be rejected
==============  ==================================================================
"""

from traindyn.problems.spiked.tensor import Point, SpikedTensor, Statistics, StepMoments

__all__ = ["Point", "SpikedTensor", "Statistics", "StepMoments"]
