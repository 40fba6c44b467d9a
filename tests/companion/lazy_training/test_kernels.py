"""Random features: the limit of their kernel, its rate, its standard error."""

from typing import NamedTuple

import numpy as np
import pytest

from companion.lazy_training.kernels import (
    circle_coefficients,
    gaussian_feature_scale,
    random_features,
    ridgeless_variance,
    term_variance,
)
from traindyn.activations import ERF, IDENTITY, RELU
from traindyn.kernels import infinite_width

X = np.random.default_rng(5).standard_normal((6, 4))


class Drawn(NamedTuple):
    """A kernel of random features and the standard error of each entry."""

    kernel: np.ndarray
    error: np.ndarray


def feature_kernel(x, count, **options):
    """Kernel of random features with its errors, from the spread over the features."""
    phi = random_features(x, count, **options)
    kernel = phi @ phi.T
    spread = count * np.square(phi) @ np.square(phi).T - np.square(kernel)
    return Drawn(kernel, np.sqrt(spread / (count - 1)))


@pytest.mark.parametrize("activation", [RELU, ERF], ids=lambda a: a.name)
def test_limit_and_error(activation):
    """Within the standard errors it reports, which are those seen over replicas."""
    limit = infinite_width(X, depth=2, activation=activation, bias=0.5).nngp - 0.25
    draws = [
        feature_kernel(X, 600, activation=activation, bias=0.5, rng=child)
        for child in np.random.default_rng(0).spawn(60)
    ]
    kernels = np.stack([each.kernel for each in draws])
    claimed = np.mean([each.error for each in draws], axis=0)
    spread = kernels.std(axis=0, ddof=1)
    assert np.all(np.abs(kernels.mean(axis=0) - limit) < 5.5 * spread / 60**0.5)
    # The deviation of a deviation over 60 replicas is 9 %; six of them, and some for the claim's.
    np.testing.assert_allclose(claimed, spread, rtol=0.6)
    assert np.abs(np.log(claimed / spread).mean()) < 0.1
    wrong = infinite_width(X, depth=2, activation=activation, bias=0.0).nngp
    assert np.max(np.abs(kernels.mean(axis=0) - wrong) * 60**0.5 / spread) > 20


def test_rate():
    """The error of the kernel of m random features falls like m^{-1/2} (MDL Section 8.3.1)."""
    limit = infinite_width(X, depth=2, activation=RELU).nngp
    counts = np.array([50, 200, 800, 3200])
    rng = np.random.default_rng(1)
    gaps = [
        np.mean(
            [
                np.linalg.norm(feature_kernel(X, int(m), activation=RELU, rng=rng).kernel - limit)
                for _ in range(40)
            ]
        )
        for m in counts
    ]
    assert np.polyfit(np.log(counts), np.log(gaps), 1)[0] == pytest.approx(-0.5, abs=0.08)


def test_refusals():
    """Each message names the argument."""
    with pytest.raises(ValueError, match="count must be an integer >= 1"):
        random_features(X, 0, activation=RELU, rng=0)
    with pytest.raises(ValueError, match="x must have shape"):
        random_features(X[0], 5, activation=RELU, rng=0)


@pytest.mark.parametrize("activation", [RELU, ERF, IDENTITY], ids=lambda a: a.name)
def test_term_variance(activation):
    """Against the spread that the kernel of many features reports, and Isserlis' formula."""
    exact = term_variance(X, activation=activation, bias=0.5)
    seen = feature_kernel(X, 400_000, activation=activation, bias=0.5, rng=4)
    # The relative error of a variance of heavy tails (a normal to the fourth power), 400 000 draws.
    np.testing.assert_allclose(seen.error**2 * 400_000, exact, rtol=0.05)
    if activation is IDENTITY:
        gram = X @ X.T / 4 + 0.25
        np.testing.assert_allclose(
            exact, np.outer(gram.diagonal(), gram.diagonal()) + gram**2, rtol=1e-12
        )


def circle(angles):
    """Inputs whose products are two cosines of the differences."""
    return np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_circle_coefficients():
    """By the fast Fourier transform; the odd frequencies from three on are missing."""
    angles = 2 * np.pi * np.arange(4096) / 4096
    kernel = infinite_width(circle(angles[:1]), circle(angles), depth=2, activation=RELU).nngp[0]
    found = np.fft.rfft(kernel).real[:40] * 2 / 4096
    found[0] /= 2
    # Folded frequencies add c_4096 of size 1e-15.
    np.testing.assert_allclose(circle_coefficients(np.arange(40)), found, atol=1e-14)
    assert circle_coefficients([3, 5, 7]).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="frequencies must be non-negative integers"):
        circle_coefficients([0.5])


TRAIN = circle(np.array([0.3, 0.9, 1.6, 2.4]))
FRESH = circle(np.array([0.6, 1.2, 3.0]))
Y = np.array([1.0, -1.0, 0.5, 2.0])


def fits(draw, count, replicas, rng):
    """Outputs of minimum-norm regression at the fresh inputs, over redrawn features."""
    found = []
    for _ in range(replicas):
        phi = draw(count, rng)
        found.append(phi[4:] @ np.linalg.lstsq(phi[:4], Y, rcond=None)[0])
    return np.array(found)


def kernels():
    """All entries, then those of the training set, across, and of the fresh inputs."""
    joint = infinite_width(np.concatenate([TRAIN, FRESH]), depth=2, activation=RELU).nngp
    return joint, joint[:4, :4], joint[4:, :4], joint.diagonal()[4:]


def test_gaussian_features():
    """Mean and variance b^2 / (m - n - 1), at a small m."""
    joint, kernel, cross, own = kernels()
    root = np.linalg.cholesky(joint)
    found = fits(
        lambda m, rng: root @ rng.standard_normal((7, m)), 30, 20_000, np.random.default_rng(0)
    )
    limit = cross @ np.linalg.solve(kernel, Y)
    scale = gaussian_feature_scale(kernel, cross, own, Y) / 25**0.5
    assert np.all(np.abs(found.mean(axis=0) - limit) < 5 * scale / 20_000**0.5)
    np.testing.assert_allclose(found.std(axis=0), scale, rtol=0.03)
    # Control: the count of features in place of the degrees of freedom.
    assert np.all(np.abs(found.std(axis=0) / scale / (25 / 30) ** 0.5 - 1) > 0.06)


def test_ridgeless_variance():
    """Neurons at large m, where the Gaussian formula is wrong by up to a factor."""
    _, kernel, cross, own = kernels()
    angles = 2 * np.pi * (np.arange(20_000) + 0.5) / 20_000
    # Four ReLUs in the expectation, and E |w|^4 = 8 in the plane.
    neurons = 8**0.25 * circle(angles) / 2**0.5
    nodes = [np.maximum(inputs @ neurons.T / 2**0.5, 0) for inputs in (TRAIN, FRESH)]
    variance = ridgeless_variance(kernel, cross, Y, *nodes)
    weighted = ridgeless_variance(kernel, cross, Y, *nodes, weights=np.full(20_000, 1 / 20_000))
    np.testing.assert_allclose(weighted, variance, rtol=1e-12)
    both = np.concatenate([TRAIN, FRESH])
    found = fits(
        lambda m, rng: random_features(both, m, activation=RELU, rng=rng),
        2000, 4000, np.random.default_rng(1),
    )  # fmt: skip
    limit = cross @ np.linalg.solve(kernel, Y)
    # Five standard errors of a variance, and the next order in 1 / m.
    np.testing.assert_allclose(
        2000 * np.square(found - limit).mean(axis=0), variance, rtol=5 * (2 / 4000) ** 0.5 + 0.02
    )
    gaussian = gaussian_feature_scale(kernel, cross, own, Y) ** 2
    assert np.max(np.abs(np.log(gaussian / variance))) > 0.5


def test_regression_refusals():
    """Each message names the argument."""
    _, kernel, cross, own = kernels()
    with pytest.raises(ValueError, match="kernel must be positive definite"):
        gaussian_feature_scale(np.zeros((4, 4)), cross, own, Y)
    with pytest.raises(ValueError, match="own must be variances"):
        gaussian_feature_scale(kernel, cross, own - 1, Y)
    with pytest.raises(ValueError, match="fresh must have shape"):
        ridgeless_variance(kernel, cross, Y, np.ones((4, 5)), np.ones((3, 6)))
