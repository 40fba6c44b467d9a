"""Single-index models learnt by one-pass SGD on the sphere, and their sample complexity.

==============  ==================================================================
`links`         scalar functions for NumPy and numba, Hermite coefficients
`model`         what all models share: the exact chain of the overlap, moments, kernels
`models`        online PCA, a binary mixture, teacher and student, phase retrieval
`population`    information exponent, consistency, equator, critical step size
==============  ==================================================================
"""
