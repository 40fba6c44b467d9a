"""Closed Gaussian expectations of ReLU features against quadrature and their limits."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from traindyn import relu

LEGENDRE = np.polynomial.legendre.leggauss(200)


def on_interval(low, high):
    """Gauss-Legendre nodes and weights."""
    nodes, weights = LEGENDRE
    return low + 0.5 * (high - low) * (nodes + 1), 0.5 * (high - low) * weights


def cone_moments(u, v, mean, precision):
    """Moments on the cone of both positive, by polar coordinates in the plane."""
    angle = [np.arctan2(w[1], w[0]) for w in (u, v)]
    gap = (angle[1] - angle[0] + np.pi) % (2 * np.pi) - np.pi
    middle, half = angle[0] + gap / 2, (np.pi - abs(gap)) / 2
    angles, by_angle = on_interval(middle - half, middle + half)
    reach = np.linalg.norm(mean) + 10 / np.sqrt(precision)
    radii, by_radius = on_interval(0.0, reach)
    y = radii[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    density = precision / (2 * np.pi) * np.exp(-0.5 * precision * np.sum((y - mean) ** 2, axis=-1))
    mass = (by_radius * radii)[:, None] * by_angle * density
    z = y - mean
    return mass.sum(), np.einsum("ab,abi->i", mass, z), np.einsum("ab,abi,abj->ij", mass, y, y)


def gap(found, wanted):
    """Largest deviation over all three moments."""
    return max(np.abs(f - w).max() for f, w in zip(found, wanted, strict=True))


def test_bivariate_cdf_against_an_independent_algorithm():
    """Wrong quadrant of Owen's T or a lost sign; the control flips the correlation."""
    rng = np.random.default_rng(1)
    x, y = 2 * rng.standard_normal((2, 60))
    r = rng.uniform(-0.999, 0.999, 60)
    wanted = [multivariate_normal([0, 0], [[1, c], [c, 1]]).cdf([a, b]) for a, b, c in zip(x, y, r)]
    np.testing.assert_allclose(relu.bivariate_cdf(x, y, r), wanted, atol=1e-12)
    assert np.abs(relu.bivariate_cdf(x, y, -r) - wanted).max() > 0.05


def test_bivariate_cdf_in_the_limits():
    """Degenerate correlations, arguments on the axes and at infinity."""
    x = np.array([-1.3, 0.0, 0.4, 2.0])
    same = relu.bivariate_cdf(x[:, None], x, 1.0)
    np.testing.assert_allclose(same, norm.cdf(np.minimum(x[:, None], x)), atol=1e-15)
    opposite = relu.bivariate_cdf(x[:, None], x, -1.0)
    wanted = np.maximum(norm.cdf(x)[:, None] + norm.cdf(x) - 1, 0)
    np.testing.assert_allclose(opposite, wanted, atol=1e-15)
    r = np.linspace(-1, 1, 9)
    quadrant = 0.25 + np.arcsin(r) / (2 * np.pi)
    np.testing.assert_allclose(relu.bivariate_cdf(0.0, 0.0, r), quadrant, atol=1e-15)
    np.testing.assert_allclose(relu.bivariate_cdf(np.inf, x, 0.3), norm.cdf(x), atol=1e-15)
    np.testing.assert_allclose(relu.bivariate_cdf(x, -np.inf, 0.3), np.zeros(4), atol=1e-17)
    for tiny in (1e-300, -1e-300):  # continuous across the axes
        np.testing.assert_allclose(
            relu.bivariate_cdf(tiny, x, 0.6), relu.bivariate_cdf(0.0, x, 0.6), atol=1e-15
        )


@pytest.mark.parametrize("order", range(5))
def test_rectified_moments_against_quadrature(order):
    """A wrong step of the recursion; the control is the previous order."""
    for mean, deviation in ((0.7, 0.4), (-0.5, 1.3), (0.0, 2.0)):
        high = max(mean, 0.0) + 12 * deviation
        wanted = quad(
            lambda u, m=mean, s=deviation: u**order * norm.pdf(u, m, s), 0, high, epsabs=1e-13
        )[0]
        found = relu.rectified_moment(mean, deviation, order)
        assert found == pytest.approx(wanted, abs=1e-11)
        assert abs(relu.rectified_moment(mean, deviation, order + 1) - wanted) > 0.01
    constants = relu.rectified_moment([-1.0, 0.0, 2.0], 0.0, order)
    np.testing.assert_array_equal(constants, [0.0, 0.0, 2.0**order])


def test_pair_moment_against_conditional_quadrature():
    """All four terms, of which the last is not always small; the control flips r."""
    rng, felt = np.random.default_rng(2), []
    for _ in range(12):
        (m, n), (s, t), r = rng.normal(size=2), rng.uniform(0.2, 2, 2), rng.uniform(-0.95, 0.95)
        q = np.sqrt(1 - r**2)

        def integrand(u, m=m, n=n, s=s, t=t, r=r, q=q):
            given = relu.rectified_moment(n + r * t * (u - m) / s, t * q, 1)
            return u * given * norm.pdf(u, m, s)

        wanted = quad(integrand, 0, max(m, 0) + 12 * s, epsabs=1e-13, limit=200)[0]
        assert relu.pair_moment(m, n, s, t, r) == pytest.approx(wanted, abs=1e-11)
        last = s * t * q * norm.pdf(m / s) * norm.pdf((n / t - r * m / s) / q)
        felt.append([last, abs(relu.pair_moment(m, n, s, t, -r) - wanted)])
    assert np.max(felt, axis=0).min() > 0.01


def test_pair_moment_in_the_limits():
    """Equal and opposite variables, one or two constants, and nearly degenerate pairs."""
    m, s = np.array([-0.4, 0.0, 0.9]), 0.6
    np.testing.assert_allclose(
        relu.pair_moment(m, m, s, s, 1.0), relu.rectified_moment(m, s, 2), atol=1e-15
    )
    np.testing.assert_array_equal(relu.pair_moment(m, -m, s, s, -1.0), np.zeros(3))
    first = relu.rectified_moment(m, s, 1)
    for mean in (-1.0, 0.0, 2.0):
        wanted = max(mean, 0.0) * first
        np.testing.assert_allclose(relu.pair_moment(mean, m, 0.0, s, 0.7), wanted, atol=1e-15)
        np.testing.assert_allclose(relu.pair_moment(m, mean, s, 0.0, 0.7), wanted, atol=1e-15)
    assert relu.pair_moment(2.0, 3.0, 0.0, 0.0, 0.0) == 6.0
    for r in (1.0, -1.0):
        near = relu.pair_moment(m, m, s, s, r * (1 - 1e-12))
        np.testing.assert_allclose(near, relu.pair_moment(m, m, s, s, r), atol=1e-11)
    # Price's theorem: the derivative in the covariance is the probability of both positive.
    step = 1e-5
    slope = relu.pair_moment(m, 0.2, s, s, 0.3 + step) - relu.pair_moment(m, 0.2, s, s, 0.3 - step)
    both = relu.bivariate_cdf(m / s, 0.2 / s, 0.3)
    np.testing.assert_allclose(slope / (2 * step * s**2), both, atol=1e-9)


@pytest.mark.parametrize("precision", [0.7, 5.0, 200.0])
def test_half_space_against_quadrature(precision):
    """The cone of two equal neurons is the half space; the control loses its last term."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        w, mean = rng.standard_normal((2, 2))
        found = relu.half_space(w, mean, precision)
        assert gap(found, cone_moments(w, w, mean, precision)) < 1e-11
    w, mean = np.array([1.0, 0.5]), np.array([0.7, 0.3]) / np.sqrt(precision)
    found, unit = relu.half_space(w, mean, precision), w / np.linalg.norm(w)
    height = np.sqrt(precision) * unit @ mean
    last = height * norm.pdf(height) / precision * np.outer(unit, unit)
    without = found._replace(second=found.second + last)
    assert gap(without, cone_moments(w, w, mean, precision)) > 0.1 / precision


@pytest.mark.parametrize("precision", [0.7, 5.0, 200.0])
def test_wedge_against_quadrature(precision):
    """Both edges and the corner, in the plane and turned within four dimensions."""
    rng = np.random.default_rng(4)
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    for _ in range(6):
        u, v, mean = rng.standard_normal((3, 2))
        mean = mean / np.sqrt(precision)  # close to the corner, where every term counts
        probability, noise, second = cone_moments(u, v, mean, precision)
        assert gap(relu.wedge(u, v, mean, precision), (probability, noise, second)) < 1e-11
        beside = rng.standard_normal(2)
        lifted = [np.append(each, [0.0, 0.0]) @ rotation for each in (u, v)]
        found = relu.wedge(*lifted, np.append(mean, beside) @ rotation, precision)
        turned = rotation @ found.second @ rotation.T
        np.testing.assert_allclose(turned[:2, :2], second, atol=1e-11)
        np.testing.assert_allclose(
            turned[2:, 2:],
            probability * (np.outer(beside, beside) + np.eye(2) / precision),
            atol=1e-11,
        )
        across = np.outer(noise + probability * mean, beside)
        np.testing.assert_allclose(turned[:2, 2:], across, atol=1e-11)
    # Control: opposite orientation of one neuron.
    assert gap(relu.wedge(u, -v, mean, precision), (probability, noise, second)) > 1e-4


def test_wedges_add_up_to_half_spaces():
    """Both sides of v together, at any dimension, precision and angle, parallel included."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        n, precision = int(rng.integers(1, 6)), 10 ** rng.uniform(-2, 6)
        u, v, mean = rng.standard_normal((3, n))
        if rng.random() < 0.3:
            v = rng.uniform(-2, 2) * u + 10 ** rng.uniform(-16, -3) * v
        half = relu.half_space(u, mean, precision)
        one, other = (relu.wedge(u, s * v, mean, precision) for s in (1, -1))
        # The unit vectors carry rounding errors, felt on the scale of the noise.
        allowed = 1e-13 * (1 + np.sqrt(precision)) * (1 + 1 / precision) * (1 + mean @ mean)
        assert gap([a + b for a, b in zip(one, other)], half) < allowed
        assert gap(relu.wedge(u, 3 * u, mean, precision), half) < allowed
        assert gap(relu.wedge(u, -2 * u, mean, precision), [0 * h for h in half]) < allowed
        noise_left = relu.half_space(-u, mean, precision)
        np.testing.assert_allclose(half.noise, -noise_left.noise, atol=1e-15)


def test_infinite_precision_and_vanishing_weights():
    """The kink's value where the preactivation is surely zero, and the limit towards it."""
    mean = np.array([0.0, 1.0])
    for w, wanted in (([1.0, 2.0], 1.0), ([1.0, -2.0], 0.0), ([1.0, 0.0], 0.0), ([0.0, 0.0], 0.0)):
        found = relu.half_space(w, mean, np.inf)
        assert found.probability == wanted
        np.testing.assert_array_equal(found.second, wanted * np.outer(mean, mean))
    half = relu.half_space([1.0, 0.0], mean, np.inf, kink=0.5)
    assert gap(relu.half_space([1.0, 0.0], mean, 1e12), half) < 1e-5
    u, v = np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 2.0])
    at_corner = relu.wedge(u, v, [0.0, 1.0, 0.0], np.inf, kink=0.5)
    assert gap(relu.wedge(u, v, [0.0, 1.0, 0.0], 1e12), at_corner) < 1e-5
    assert relu.wedge(u, v, [0.0, 1.0, 0.0], np.inf).probability == 0
    gone = relu.wedge(u, 0 * v, [0.3, 1.0, 0.0], 2.0)
    assert gap(gone, [0 * each for each in gone]) == 0
    shared = relu.wedge(u, 0 * v, [0.3, 1.0, 0.0], 2.0, kink=0.5)
    whole = relu.half_space(u, [0.3, 1.0, 0.0], 2.0)
    assert gap(shared, [0.5 * each for each in whole]) < 1e-15


def test_second_moment_agrees_with_wedges():
    """Entry (i, j) is W_i . E[1_i 1_j X X^T] W_j, for a singular Gram matrix too."""
    rng = np.random.default_rng(6)
    W = rng.standard_normal((5, 3))
    W[4] = -0.5 * W[3]
    mean, precision = rng.standard_normal(3), 3.0
    found = relu.second_moment(W @ mean, W @ W.T / precision)
    moments = relu.wedge(W[:, None], W, mean, precision).second
    np.testing.assert_allclose(found, np.einsum("ia,ijab,jb->ij", W, moments, W), atol=1e-12)
    assert found[3, 4] == 0
    batch = relu.second_moment(np.stack([W @ mean, -W @ mean]), np.stack([W @ W.T / precision] * 2))
    np.testing.assert_allclose(batch[0], found, atol=1e-15)
    assert np.abs(batch[1] - found).max() > 0.1  # control


def test_bad_input_is_named():
    """Correlations, deviations, precisions and shapes out of range."""
    with pytest.raises(ValueError, match=r"correlation must lie in \[-1, 1\]"):
        relu.bivariate_cdf(0.0, 0.0, 1.5)
    with pytest.raises(ValueError, match="x must not be NaN"):
        relu.bivariate_cdf(np.nan, 0.0, 0.5)
    with pytest.raises(ValueError, match="deviation_u must be non-negative, got -1"):
        relu.pair_moment(0.0, 0.0, -1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="order must be an integer >= 0"):
        relu.rectified_moment(0.0, 1.0, -1)
    with pytest.raises(ValueError, match="got a correlation of 2"):
        relu.second_moment([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="covariance must have shape"):
        relu.second_moment([0.0, 0.0], [[1.0]])
    with pytest.raises(ValueError, match="precision must be positive"):
        relu.half_space([1.0], [1.0], 0.0)
    with pytest.raises(ValueError, match="weight_v and mean must be vectors of the same length"):
        relu.wedge([1.0], [1.0, 2.0], [1.0], 1.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_weights_of_any_scale_have_the_same_half_space(size):
    """The square of their length is beyond the numbers, or nothing."""
    weight, other, mean = np.array([1.0, -2.0]), np.array([0.5, 1.0]), np.array([0.3, 0.4])
    for found, expected in (
        (relu.half_space(size * weight, mean, 2.0), relu.half_space(weight, mean, 2.0)),
        (
            relu.wedge(size * weight, other / size, mean, 2.0),
            relu.wedge(weight, other, mean, 2.0),
        ),
    ):
        for one, same in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, same, rtol=1e-13)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "call",
    [
        lambda: relu.half_space([1.0, 0.0], [1e200, 1.0], 1.0),
        lambda: relu.wedge([1.0, 0.0], [0.0, 1.0], [1e200, 1.0], 1.0),
        lambda: relu.rectified_moment(1e150, 1.0, 3),
    ],
)
def test_moments_beyond_the_numbers_are_told(call):
    """They were infinite, with a warning."""
    with pytest.raises(FloatingPointError, match=r"^mean and .* must have finite moments"):
        call()
