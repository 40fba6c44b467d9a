"""Gaussian mixtures with a two-layer network: the problem, and what is known of it.

The problem itself is :class:`TwoLayerMixture` in :mod:`~traindyn.problems.two_layer.mixture`,
the binary and the XOR mixture among its cases; it alone is what the simulators and the spectra
need. The other files hold results about it:

==============  ==================================================================
`integrals`     Gaussian integrals of the effective dynamics at finite precision
`limit`         infinite precision: response, drift, loss, noise
`equilibria`    fixed points, their stability, the chance to reach the good ones
`thresholds`    ridge and precision at which the origin loses its stability
`diffusive`     stochastic limits around fixed points
`printed`       formulas as the source prints them, to be rejected
==============  ==================================================================
"""

from traindyn.problems.two_layer.mixture import Point, Statistics, TwoLayerMixture

__all__ = ["Point", "Statistics", "TwoLayerMixture"]
