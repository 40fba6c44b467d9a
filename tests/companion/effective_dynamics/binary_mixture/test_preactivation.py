"""Law of the preactivations against samples, quadrature and differences; misprints rejected."""

import math

import numpy as np
from scipy import stats
from scipy.integrate import quad

from companion.effective_dynamics.binary_mixture.preactivation import (
    FOURTH_MOMENT_CONSTANT,
    exponential_moment,
    exponential_moment_bound,
    fourth_moment,
    negative_probability,
    negative_probability_bound,
)
from companion.effective_dynamics.binary_mixture.printed import printed_exponential_moment_bound
from companion.effective_dynamics.xor_mixture import (
    gram_gradient,
    penalty,
    printed_gram_gradient,
    printed_penalty,
)
from traindyn.problems.two_layer import Point, TwoLayerMixture
from traindyn.problems.two_layer.preactivation import covariance
from traindyn.problems.two_layer.printed import printed_covariance

PROBLEM = TwoLayerMixture.xor(3, 12, precision=4.0, ridge=0.1)
SIZE = 200_000


def random_point(rng):
    """A point in general position."""
    return Point(rng.normal(size=3), rng.normal(size=(3, 12)) / 2)


def test_covariance_of_samples():
    """Products of deviations within 5.6 errors (false alarm 1e-7 for each of six entries).

    Independent signal noise for each neuron, as BGJ Lemmas 8.1 and 9.1 print it, is rejected.
    """
    rng = np.random.default_rng(0)
    point = random_point(rng)
    sample = PROBLEM.sample(SIZE, rng=rng)
    z = sample.inputs @ point.W.T
    here = PROBLEM.statistics(point)
    z -= (here.m @ PROBLEM.centroids.T).T[sample.labels]
    products = z[:, :, None] * z[:, None, :]
    error = products.std(axis=0) / math.sqrt(SIZE)
    found = covariance(here, precision=4.0)
    assert np.all(np.abs(products.mean(axis=0) - found) < 5.6 * error)
    printed = printed_covariance(here, precision=4.0)
    assert np.any(np.abs(products.mean(axis=0) - printed) > 20 * error)


def test_exponential_moment():
    """Numerical integrals; our bound holds everywhere, BGJ Fact 8.1 fails for m < 0 < slope."""
    rng = np.random.default_rng(1)
    broken = 0
    for _ in range(200):
        slope, m = rng.normal(size=2) * 2
        square, precision = m**2 + rng.uniform(0.01, 2.0), rng.uniform(0.2, 20.0)
        sd = math.sqrt(square / precision)

        def integrand(x, slope=slope, m=m, sd=sd):
            return math.exp(slope * max(m + sd * x, 0.0) - 0.5 * x * x) / math.sqrt(2 * math.pi)

        top = max(abs(slope) * sd, 0.0) + 10.0
        cut = min(max(-m / sd, -top), top)
        expected = (
            quad(integrand, -top, cut, epsabs=0.0)[0] + quad(integrand, cut, top, epsabs=0.0)[0]
        )
        found = exponential_moment(slope, m, square, precision=precision)
        assert math.isclose(found, expected, rel_tol=1e-7)
        assert found <= exponential_moment_bound(slope, m, square, precision=precision)
        printed = printed_exponential_moment_bound(slope, m, square, precision=precision)
        broken += found > printed
    assert broken > 50
    assert exponential_moment(2.0, -1.0, 1.0, precision=100.0) >= 1.0
    assert printed_exponential_moment_bound(2.0, -1.0, 1.0, precision=100.0) < 0.2


def test_probability_of_no_answer():
    """Normal tail (BGJ Lemma 8.3); below the bound with which BGJ Lemma 10.2 equates it."""
    for m, square, precision in ((0.5, 1.0, 4.0), (1.0, 1.5, 10.0), (-0.3, 1.0, 2.0)):
        expected = stats.norm.cdf(0.0, loc=m, scale=math.sqrt(square / precision))
        found = negative_probability(m, square, precision=precision)
        assert math.isclose(found, expected, rel_tol=1e-12)
        if m > 0:
            bound = negative_probability_bound(m, square, precision=precision)
            assert found <= bound and abs(bound - expected) > 1e-2 * expected


def test_gradient_of_the_gram_matrix():
    """Central differences in W; indices exchanged as in BGJ (9.3) are wrong off the diagonal."""
    rng = np.random.default_rng(2)
    point = random_point(rng)
    parts = point.W.copy()
    parts[:, :2] = 0.0
    for j, k in ((0, 1), (2, 1), (1, 1)):
        slopes = np.zeros_like(point.W)
        for place in np.ndindex(point.W.shape):
            values = []
            for sign in (1, -1):
                W = point.W.copy()
                W[place] += sign * 1e-5
                values.append(PROBLEM.statistics(point._replace(W=W)).R_perp[j, k])
            slopes[place] = (values[0] - values[1]) / 2e-5
        np.testing.assert_allclose(gram_gradient(parts, j, k), slopes, atol=1e-8)
        wrong = np.abs(printed_gram_gradient(parts, j, k) - slopes).max()
        assert (wrong > 0.1) == (j != k)


def test_penalty():
    """Squared norm of the parameters; without |m|^2, as in BGJ Lemma 9.1, it is too small."""
    point = random_point(np.random.default_rng(3))
    expected = np.square(point.v).sum() + np.square(point.W).sum()
    here = PROBLEM.statistics(point)
    assert math.isclose(penalty(here), expected, rel_tol=1e-13)
    assert printed_penalty(here) < expected - 0.1


def test_fourth_moment():
    """Integrals, exact to rounding; the least constant of the bound of BGJ Lemmas 8.2 and 10.1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    rng = np.random.default_rng(4)
    ratios = []
    for m, square, precision in np.c_[rng.normal(size=500), rng.exponential(size=(500, 2))]:
        found = fourth_moment(m, square, precision=precision)
        spread = square / precision
        assert math.isclose(found, weights @ (m + math.sqrt(spread) * nodes) ** 4, rel_tol=1e-12)
        ratios.append(found / (m**4 + spread**2))
    assert max(ratios) <= FOURTH_MOMENT_CONSTANT
    assert max(ratios) > 0.999 * FOURTH_MOMENT_CONSTANT
