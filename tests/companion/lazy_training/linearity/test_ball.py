"""The supremum of the Hessian norm of two layers over a ball, and its law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.linearity.ball import (
    hessian_ball,
    two_layer_exceedance,
    two_layer_supremum,
)
from traindyn import deep


def start(width, seed, inputs=6):
    """A network of two layers, its weights and an input of signs."""
    rng = np.random.default_rng(seed)
    network = deep.fully_connected([inputs, width, 1])
    return network, network.initial(rng=rng), rng.choice([-1.0, 1.0], inputs)


def norm(network, weights, x):
    """Hessian norm by the closed form."""
    return np.abs(deep.two_layer_eigenvalues(network, weights, x)).max()


def test_supremum_is_attained_in_the_ball():
    """The weights returned lie in the ball and have the norm returned."""
    network, w, x = start(20, 1)
    for radius in (0.0, 0.5, 3.0):
        top, where = two_layer_supremum(network, w, x, radius)
        assert np.linalg.norm(where - w) <= radius + 1e-12
        assert norm(network, where, x) == pytest.approx(top, rel=1e-12)


def test_no_weights_of_the_ball_exceed_the_supremum():
    """A general optimiser over all weights of a small network finds the same supremum."""
    network, w, x = start(3, 2, inputs=1)
    radius, rng = 1.5, np.random.default_rng(3)
    top, _ = two_layer_supremum(network, w, x, radius)

    def lacking(shift):
        shift = shift * min(1.0, radius / np.linalg.norm(shift))
        return -norm(network, w + shift, x)

    found = max(
        -optimize.minimize(lacking, rng.standard_normal(6), method="Nelder-Mead").fun
        for _ in range(20)
    )
    assert found <= top * (1 + 1e-4)
    assert found == pytest.approx(top, rel=1e-3)


def test_points_of_the_ball_lie_below():
    """Norms at drawn points do not exceed it."""
    network, w, x = start(12, 4)
    top, _ = two_layer_supremum(network, w, x, 2.0)
    assert hessian_ball(network, w, x, 2.0, points=20, rng=5).maximum[0] <= top


def test_law_of_the_supremum():
    """Drawn suprema have the law; that of a smaller ball is rejected."""
    width, radius = 30, 2.0
    tops = []
    for seed in range(150):
        network, w, x = start(width, seed)
        tops.append(two_layer_supremum(network, w, x, radius)[0])
    levels = 1 - two_layer_exceedance("tanh", width, radius, tops)
    assert stats.kstest(levels, "uniform").pvalue > 1e-6
    wrong = 1 - two_layer_exceedance("tanh", width, 0.75 * radius, tops)
    assert stats.kstest(wrong, "uniform").pvalue < 1e-6


def test_law_without_a_ball_is_that_of_the_start():
    """A ball of radius zero has the known law."""
    law = deep.TwoLayerNorm("swish", 50)
    norms = law.quantile(0.3) * np.array([0.9, 1.0, 1.3])
    found = two_layer_exceedance("swish", 50, 0.0, norms)
    assert found == pytest.approx(law.exceedance(norms), abs=1e-9)


def test_exceedance_grows_with_the_radius():
    """Larger balls have larger suprema."""
    found = [float(two_layer_exceedance("tanh", 100, radius, 0.3)) for radius in (0, 0.5, 1, 2)]
    assert np.all(np.diff(found) > 0)


@pytest.mark.parametrize(
    ("width", "radius", "norms", "message"),
    [(0.5, 1, 1, "width"), (10, -1, 1, "radius"), (10, 1, 0, "norms")],
)
def test_exceedance_rejects(width, radius, norms, message):
    """Numbers out of range."""
    with pytest.raises(ValueError, match=message):
        two_layer_exceedance("tanh", width, radius, norms)


def test_supremum_rejects_other_networks():
    """Networks with more than two layers."""
    network = deep.fully_connected([3, 4, 4, 1])
    with pytest.raises(ValueError, match="network must be"):
        two_layer_supremum(network, network.initial(rng=0), np.ones(3), 1.0)
