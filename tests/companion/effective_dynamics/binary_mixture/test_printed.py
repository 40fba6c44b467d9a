"""Misprints used as controls, against the displays of the source (BGJ), transcribed here.

A check that confirms a correction must reject the formula that the source prints, not another
wrong one. Every formula below is written from the source's text, without the library's.
"""

import numpy as np
import pytest
from scipy.special import expit

from companion.effective_dynamics.binary_mixture.preactivation import negative_probability_bound
from companion.effective_dynamics.binary_mixture.printed import (
    printed_exponential_moment_bound,
    printed_gradient_covariance,
    printed_kink_response,
    printed_loss,
)
from traindyn.problems.two_layer import Statistics as TwoLayer
from traindyn.problems.two_layer import TwoLayerMixture, limit
from traindyn.problems.two_layer.equilibria import FixedSet

HERE = TwoLayer(np.array([1.0, -0.7]), np.array([[1.0], [0.8]]), np.array([[0.7, 0.2], [0.2, 0.5]]))


def binary(precision=np.inf, ridge=0.1):
    """Return the binary mixture."""
    return TwoLayerMixture.binary(2, 100, precision=precision, ridge=ridge)


def test_exponential_bounds():
    """BGJ Fact 8.1, exp(theta v m + theta^2 v^2 R / (2 lambda)); the proof of BGJ Lemma 10.2."""
    theta, v, m, gram, precision = 1.4, -0.6, 0.3, 0.5, 2.0
    bound = np.exp(theta * v * m + theta**2 * v**2 * gram / (2 * precision))
    found = printed_exponential_moment_bound(theta * v, m, m**2 + gram, precision=precision)
    assert found == pytest.approx(bound)
    missed = np.exp(-(m**2) * precision / (2 * (m**2 + gram)))
    found = negative_probability_bound(m, m**2 + gram, precision=precision)
    assert found == pytest.approx(missed)


def test_losses():
    """BGJ Section 8.2: the three values of the loss at fixed points."""
    ridge = 0.1
    size = np.log(1 - 2 * ridge) - np.log(2 * ridge)
    tail = np.log1p(np.exp(-size))
    values = [np.log(2), 0.5 * (np.log(2) + tail + ridge * size), tail + 2 * ridge * size]
    found = [printed_loss(FixedSet(binary(), s)) for s in ((-1, -1), (0, 0), (0, 1))]
    np.testing.assert_allclose(found, values, rtol=1e-12)


@pytest.mark.parametrize("m", [[1.0, 0.8], [1.0, -0.8], [-0.5, 0.3]])
def test_second_moments(m):
    """BGJ Section 8.3: V between the second-layer weights at infinite precision."""
    u = HERE._replace(m=np.array(m)[:, None])
    v, m = HERE.v, np.array(m)
    own = expit(-v * m)
    share = np.outer(own, own) if m.prod() < 0 else np.full((2, 2), expit(-v @ m) ** 2)
    found = printed_gradient_covariance(binary(), u)[:2, :2]
    np.testing.assert_allclose(found, np.outer(m, m) / 4 * share, rtol=1e-12)


def test_kink():
    """BGJ Remark 7: the response of a neuron with m_i = 0 vanishes."""
    u = HERE._replace(m=np.array([[0.0], [0.8]]))
    found = printed_kink_response(binary(), u)
    assert found[0, 0] == 0
    assert found[1, 0] == pytest.approx(limit.response(binary(), u)[1, 0])
