"""Gaussian mixtures with a two-layer network: the problem, and what is known of it.

The problem itself is :class:`TwoLayerMixture` in :mod:`~traindyn.problems.two_layer.mixture`,
the binary and the XOR mixture among its cases; it alone is what the simulators and the spectra
need. The other files:

====================  ============================================================
`forward`             blocks of the Hessian and the G-matrix on one sample
`alignment`           alignment of the layers with directions of the data, from statistics
`integrals`           Gaussian integrals of the effective dynamics at finite precision
`limit`               infinite precision: response, drift, loss, noise
`equilibria`          fixed points of the limit, their stability, the chance to reach the
                      good ones
`finite_equilibria`   fixed points at finite precision
`thresholds`          ridge and precision at which the origin loses its stability
`diffusive`           stochastic limits around fixed points
`learning`            how many classes fill, how each grows, how far it goes
`preactivation`       supporting estimates on the preactivations
`curvature`           population blocks of the Hessian and the G-matrix
`spectra`             their spectra at fixed points and at the start
`printed`             formulas as BGJ prints them, to be rejected
====================  ============================================================
"""

from traindyn.problems.two_layer.mixture import Point, Statistics, TwoLayerMixture

__all__ = ["Point", "Statistics", "TwoLayerMixture"]
