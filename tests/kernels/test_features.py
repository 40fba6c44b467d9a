"""Random features: the limit of their kernel, its rate, its standard error."""

import numpy as np
import pytest

from traindyn.activations import ERF, RELU
from traindyn.kernels import feature_kernel, infinite_width, random_features

X = np.random.default_rng(5).standard_normal((6, 4))


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
    """Error of the kernel ~ m^{-1/2}."""
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


def test_features_are_the_kernel():
    """The same draw, once as features and once as a kernel; blocks of 512 change nothing."""
    phi = random_features(X, 300, activation=ERF, bias=0.2, rng=9)
    np.testing.assert_allclose(
        phi @ phi.T, feature_kernel(X, 300, activation=ERF, bias=0.2, rng=9).kernel, atol=1e-14
    )
    many = feature_kernel(X, 1300, activation=ERF, rng=2)
    assert np.linalg.eigvalsh(many.kernel)[0] > 0
    np.testing.assert_allclose(
        many.kernel, infinite_width(X, depth=2, activation=ERF).nngp, atol=6 * many.error.max()
    )


def test_refusals():
    """Each message names the argument."""
    with pytest.raises(ValueError, match="count must be an integer >= 2"):
        feature_kernel(X, 1, activation=RELU, rng=0)
    with pytest.raises(ValueError, match="x must have shape"):
        random_features(X[0], 5, activation=RELU, rng=0)
