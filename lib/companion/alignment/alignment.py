r"""Concentration of Hessian and G-matrix on a whole ball of parameters, with constants.

For the mixture of k Gaussians with :math:`\lambda\ge1` the quadratic form of the matrix of one
input at a unit vector :math:`u=(u_1,\dots,u_k)` is at most :math:`\kappa\sum_a\langle
u_a,Y\rangle^2`, and its derivative in the parameters has at most the length
:math:`\gamma|Y|\sum_a\langle u_a,Y\rangle^2`. So the distance of the mean of the matrices from its
expectation, as a function of the parameters, has a Lipschitz constant of at most
:math:`\gamma(S+\mathbb ES)`, with S the mean of :math:`|Y|^3`; by Minkowski's and Markov's
inequalities :math:`S\le e\,s_d` with :math:`s_d=(\mathbb E|Y|^{3d})^{1/d}`, except with probability
:math:`e^{-d}`, for any number of inputs. A net of the ball and :mod:`traindyn.spectra.tails` at
each of its points do the rest.
"""

from __future__ import annotations

from math import e, exp, log

import numpy as np
from scipy.special import gammaln

from traindyn import _validate
from traindyn.problems.base import MATRICES, Matrix
from traindyn.spectra import tails

#: Bound of the derivative of the form of one input in the parameters.
SLOPES: dict[Matrix, float] = {"hessian": 0.5**0.5, "g_matrix": 2.0**0.5}


def cube(dimension: int) -> float:
    r"""Return a bound of :math:`s_d=(\mathbb E|Y|^{3d})^{1/d}` for :math:`\lambda\ge1`.

    From :math:`|Y|\le1+|Z|`, :math:`(1+z)^p\le2^{p-1}(1+z^p)` and
    :math:`\mathbb E|Z|^{3d}=2^{3d/2}\Gamma(2d)/\Gamma(d/2)`; at most :math:`29\,d^{3/2}`.

    Parameters
    ----------
    dimension : int
        :math:`d`.

    Examples
    --------
    >>> from companion.alignment.alignment import cube
    >>> round(cube(100) / 100**1.5, 1)
    28.2
    """
    d = _validate.integer("dimension", dimension, least=1)
    moment = 1.5 * d * log(2) + gammaln(2 * d) - gammaln(d / 2)
    return exp(((3 * d - 1) * log(2) + np.logaddexp(0.0, moment)) / d)


def log_probability(
    t: float, *, matrix: Matrix, k: int, dimension: int, sample_ratio: float, radius: float
) -> float:
    r"""Bound the logarithm of the probability in BGHJ Lemma 8.1, with constants of our own.

    Parameters
    ----------
    t : float
        Positive: the distance :math:`\|A(x)-\mathbb EA(x)\|` that is exceeded for some
        :math:`|x|\le L`.
    matrix : {"hessian", "g_matrix"}
        All :math:`kd` rows of it.
    k, dimension : int
        Classes and :math:`d`.
    sample_ratio : float
        :math:`\alpha=M/d`, positive.
    radius : float
        :math:`L`, non-negative.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from companion.alignment.alignment import log_probability
    >>> options = {"matrix": "hessian", "k": 3, "dimension": 100, "radius": 5}
    >>> round(log_probability(0.5, sample_ratio=5e4, **options))
    -100
    """
    t, radius = _validate.positive("t", t), _validate.non_negative("radius", radius)
    _validate.choice("matrix", matrix, MATRICES)
    rows = _validate.integer("k", k, least=2) * _validate.integer("dimension", dimension, least=1)
    samples = _validate.positive("sample_ratio", sample_ratio) * dimension
    points = 1 + 4 * radius * SLOPES[matrix] * (e + 1) * cube(dimension) / t
    net = (
        log(2)
        + rows * log(9 * points)
        - samples * tails.exponent(t / 4, factor=tails.MIXTURE[matrix])
    )
    return min(float(np.logaddexp(net, -dimension)), 0.0)
