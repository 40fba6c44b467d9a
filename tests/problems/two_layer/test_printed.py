"""Misprints used as controls, against the displays of the source (BGJ), transcribed here.

A check that confirms a correction must reject the formula that the source prints, not another
wrong one. Every formula below is written from the source's text, without the library's.
"""

import numpy as np

from traindyn.problems.two_layer import Statistics as TwoLayer
from traindyn.problems.two_layer import TwoLayerMixture
from traindyn.problems.two_layer import printed as printed_two_layer
from traindyn.problems.two_layer.equilibria import FixedSet

HERE = TwoLayer(np.array([1.0, -0.7]), np.array([[1.0], [0.8]]), np.array([[0.7, 0.2], [0.2, 0.5]]))


def binary(precision=np.inf, ridge=0.1):
    """Return the binary mixture."""
    return TwoLayerMixture.binary(2, 100, precision=precision, ridge=ridge)


def test_preactivations():
    """BGJ Lemma 8.1: m_i (1 + Z_i) + Z_i,perp with independent Z_i, and (8.1)."""
    expected = np.array([[1.0 + 0.7, 0.2], [0.2, 0.64 + 0.5]]) / 2.0
    found = printed_two_layer.printed_covariance(HERE, precision=2.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_diffusion_on_the_circle():
    """BGJ Proposition 4.3: plus sign before the sum; rank-one noise."""
    problem, ridge = binary(), 0.1
    size = np.log(1 - 2 * ridge) - np.log(2 * ridge)
    a = np.sqrt(size) * np.array([0.6, 0.8])
    base = FixedSet(problem, (0, 0)).at(a)
    law = printed_two_layer.printed_around(problem, base)
    same = (ridge - 2 * ridge**2) * np.tile(np.outer(a, a), (2, 2))
    swap = ridge * np.kron([[-1, 1], [1, -1]], np.eye(2))
    np.testing.assert_allclose(law.matrix, swap + same, rtol=1e-10)
    np.testing.assert_allclose(law.noise, ridge**2 * np.tile(np.outer(a, a), (2, 2)), rtol=1e-10)
