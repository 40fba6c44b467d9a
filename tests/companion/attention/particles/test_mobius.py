"""Tokens at infinite temperature as one moving centre."""

import numpy as np
import pytest

from companion.attention.particles.attention import Attention, random_tokens
from companion.attention.particles.mobius import boost, centre_path, centre_velocity


def lengths(points):
    """Distances between all points."""
    return np.linalg.norm(points[:, None] - points, axis=2)


@pytest.mark.parametrize(("n", "d"), [(3, 2), (5, 3), (4, 6)])
def test_tokens_are_the_starts_seen_from_the_centre(n, d):
    """Distances along the flow of all tokens, by an integrator that knows no centre."""
    start, times = random_tokens(n, d, rng=4), [0.0, 0.7, 2.5]
    flow = Attention(0.0).flow(start, times, rtol=1e-11, atol=1e-13).tokens
    for tokens, w in zip(flow, centre_path(start, times)):
        assert np.abs(lengths(boost(w, start)) - lengths(tokens)).max() < 1e-9


def test_boosts_keep_the_sphere_and_undo_each_other():
    """A boost to the opposite centre is the inverse."""
    rng = np.random.default_rng(5)
    points = random_tokens(6, 4, rng=rng)
    w = np.array([0.3, -0.5, 0.1, 0.6])
    seen = boost(w, points)
    assert np.abs(np.linalg.norm(seen, axis=1) - 1).max() < 1e-12
    assert np.abs(boost(-w, seen) - points).max() < 1e-12


def test_the_centre_climbs_the_mean_of_the_busemann_functions():
    """Gradient in the hyperbolic metric, by central differences."""
    rng = np.random.default_rng(6)
    points, w, size = random_tokens(5, 3, rng=rng), np.array([0.2, 0.4, -0.3]), 1e-6

    def mean(at):
        return np.mean(np.log(np.sum((at - points) ** 2, axis=1) / (1 - at @ at)))

    slope = np.array([mean(w + size * e) - mean(w - size * e) for e in np.eye(3)]) / (2 * size)
    expected = (1 - w @ w) ** 2 / 4 * slope
    assert np.abs(centre_velocity(w, points) - expected).max() < 1e-8


def test_bad_input():
    """What is wrong is named."""
    points = np.eye(3)
    with pytest.raises(ValueError, match="centre must be inside the unit ball, got norm 1"):
        boost([1.0, 0.0, 0.0], points)
    with pytest.raises(ValueError, match="centre must have shape"):
        centre_velocity([0.0, 0.0], points)
    with pytest.raises(ValueError, match="times must increase from zero on"):
        centre_path(points, [1.0, 0.5])
    with pytest.raises(ValueError, match="times must increase from zero on"):
        centre_path(points, [])
