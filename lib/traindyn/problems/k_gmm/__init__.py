"""k-Gaussian mixture with softmax regression: the problem, and what is known of it in closed form.

The problem itself is :class:`KGaussianMixture` in :mod:`~traindyn.problems.k_gmm.mixture`;
it alone is what the simulators and the spectra need. The other files hold results about it:

==============  ==================================================================
`population`    Hessian and G blocks at every precision (BGHJ Sections 3 and 7.1)
`limit`         infinite precision: scalar reduction, fixed point, energy
`printed`       formulas as the source prints them, to be rejected
==============  ==================================================================
"""

from traindyn.problems.k_gmm.mixture import KGaussianMixture, Moments, Point, Statistics

__all__ = ["KGaussianMixture", "Moments", "Point", "Statistics"]
