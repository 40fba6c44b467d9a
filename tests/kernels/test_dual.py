"""Gaussian moments of activations: closed forms against quadrature and against each other."""

import numpy as np
import pytest

from traindyn import relu
from traindyn.activations import (
    ERF,
    GELU,
    IDENTITY,
    QUADRATIC,
    RELU,
    TANH,
    Activation,
    largest_curvature,
    softplus,
)
from traindyn.gaussian import gauss_hermite
from traindyn.kernels import dual_moments, hermite_coefficients, own_moments

A = np.array([0.3, 1.0, 1.7])
B = np.array([0.5, 1.2])
R = np.array([[-0.9, 0.0], [0.35, -0.4], [0.8, 0.6]])
C = R * np.sqrt(np.outer(A, B))
PLAIN_ERF = Activation("plain", ERF.value, ERF.slope, None)
PLAIN_IDENTITY = Activation("plain", IDENTITY.value, IDENTITY.slope, None)


def by_tensor_rule(function, a, b, c, order=90):
    """Average over a two-dimensional tensor rule, the pair written out by Cholesky."""
    rule = gauss_hermite(2, order)
    u = np.sqrt(a) * rule.nodes[:, 0]
    v = c / np.sqrt(a) * rule.nodes[:, 0] + np.sqrt(b - c * c / a) * rule.nodes[:, 1]
    return rule.expect(function(u) * function(v))


@pytest.mark.parametrize("activation", [ERF, TANH, GELU, QUADRATIC, IDENTITY], ids=lambda a: a.name)
def test_against_a_two_dimensional_rule(activation):
    """Both moments to 1e-8; the control, a covariance 2 % off, is seen."""
    found = dual_moments(activation, C, A, B)
    for i, j in np.ndindex(C.shape):
        arguments = A[i], B[j], C[i, j]
        value = by_tensor_rule(activation.value, *arguments)
        slope = by_tensor_rule(activation.slope, *arguments)
        assert found.value[i, j] == pytest.approx(value, abs=1e-8)
        assert found.slope[i, j] == pytest.approx(slope, abs=2e-7)
    off = dual_moments(activation, 0.98 * C, A, B)
    assert np.abs(off.value - found.value).max() > 1e-3


def test_relu_against_the_bivariate_distribution_function():
    """Owen's T function knows nothing of arc-cosine kernels; opposite and equal ones included."""
    r = np.array([[-1.0, -0.5, 0.0, 0.3, 0.999, 1.0]])
    c = 2.0 * 0.5 * r
    found = dual_moments(RELU, c, [4.0], np.full(6, 0.25))
    np.testing.assert_allclose(found.value, relu.pair_moment(0, 0, 2.0, 0.5, r), atol=1e-15)
    np.testing.assert_allclose(found.slope, relu.bivariate_cdf(0, 0, r), atol=1e-15)
    # Control: the factor of sqrt(2) that other conventions put in front of the rectifier.
    assert np.abs(2 * found.value - relu.pair_moment(0, 0, 2.0, 0.5, r)).max() > 0.1


def test_expansion_against_closed_forms():
    """The route for all other activations, where a closed form judges it."""
    closed, expanded = dual_moments(ERF, C, A, B), dual_moments(PLAIN_ERF, C, A, B)
    np.testing.assert_allclose(expanded.value, closed.value, atol=1e-11)
    np.testing.assert_allclose(expanded.slope, closed.slope, atol=1e-10)
    coarse = dual_moments(PLAIN_ERF, C, A, B, order=12)
    assert np.abs(coarse.value - closed.value).max() > 1e-6
    linear = dual_moments(PLAIN_IDENTITY, C, A, B)
    np.testing.assert_allclose(linear.value, C, atol=1e-13)
    np.testing.assert_allclose(linear.slope, 1.0, atol=1e-13)


@pytest.mark.parametrize(
    "activation", [RELU, ERF, TANH, softplus(2.0), IDENTITY], ids=lambda a: a.name
)
def test_one_set_is_the_pairs_of_two(activation):
    """With one set of variables: symmetric, semi-definite, and the own moments on the diagonal."""
    x = np.random.default_rng(0).standard_normal((70, 4))
    c, a = x @ x.T / 4, np.square(x).sum(axis=1) / 4
    one, two = dual_moments(activation, c, a), dual_moments(activation, c, a, a)
    own = own_moments(activation, a)
    for field in ("value", "slope"):
        mine = getattr(one, field)
        np.testing.assert_array_equal(mine, mine.T)
        np.testing.assert_allclose(mine, getattr(two, field), atol=1e-7)
        np.testing.assert_array_equal(np.diag(mine), getattr(own, field))
        assert np.linalg.eigvalsh(mine)[0] > -1e-8
    spoilt = dual_moments(activation, np.tril(c), a)
    np.testing.assert_array_equal(spoilt.value, one.value)


def test_zero_variance():
    """A variable that is zero: the rectifier's moments vanish, those of erf are elementary."""
    found = dual_moments(RELU, [[0.0]], [0.0], [1.0])
    assert found.value[0, 0] == 0
    assert dual_moments(ERF, [[0.0]], [0.0], [1.5]).slope[0, 0] == pytest.approx(2 / np.pi)
    assert dual_moments(TANH, [[0.0]], [0.0]).value[0, 0] == pytest.approx(0, abs=1e-30)


def test_hermite_coefficients():
    """Parseval, and which vanish: tanh and GELU fail the assumption of MDL chapter 9 at k = 3."""
    z = gauss_hermite(1, 60)
    for activation in (TANH, GELU):
        coefficients = hermite_coefficients(activation, 60, variance=0.4)
        square = z.expect(activation.value(np.sqrt(0.4) * z.nodes[:, 0]) ** 2)
        assert np.square(coefficients).sum() == pytest.approx(square, abs=1e-8)
    assert np.abs(hermite_coefficients(TANH, 8)[::2]).max() < 1e-14
    assert np.abs(hermite_coefficients(GELU, 8)[3::2]).max() < 1e-14
    assert np.abs(hermite_coefficients(GELU, 8)[[0, 1, 2, 4]]).min() > 0.01


def test_largest_curvature():
    """Of tanh: 4 / (3 sqrt 3) where tanh^2 = 1/3. A cubic has none, a rectifier no curvature."""
    point, value = largest_curvature(TANH)
    assert value == pytest.approx(4 / 27**0.5, abs=1e-12)
    assert abs(np.tanh(point)) == pytest.approx(3**-0.5, abs=1e-6)
    assert largest_curvature(QUADRATIC)[1] == 2.0
    cubic = Activation("cubic", lambda v: v**3, lambda v: 3 * v**2, lambda v: 6 * v)
    with pytest.raises(ValueError, match="bounded second derivative, that of cubic grows"):
        largest_curvature(cubic)
    with pytest.raises(ValueError, match=r"second derivative for the Lipschitz.*got relu"):
        largest_curvature(RELU)


def test_refusals():
    """Each message names the argument."""
    with pytest.raises(ValueError, match=r"covariance must have shape \(3, 2\), got \(2, 3\)"):
        dual_moments(ERF, C.T, A, B)
    with pytest.raises(ValueError, match=r"variance must be non-negative.*-1"):
        dual_moments(ERF, C, [-1.0, 1.0, 1.0], B)
    for activation in (RELU, ERF, TANH):
        with pytest.raises(ValueError, match="positive semi-definite, got a correlation of size 2"):
            dual_moments(activation, [[2.0]], [1.0], [1.0])
    sign = Activation("sign", np.sign, None, None)
    with pytest.raises(ValueError, match=r"must have a derivative .*, got sign"):
        dual_moments(sign, C, A, B)
    with pytest.raises(ValueError, match=r"order must be an integer in \[2, 180\]"):
        own_moments(TANH, A, order=500)
    with pytest.raises(ValueError, match="count must be an integer"):
        hermite_coefficients(TANH, 61)
