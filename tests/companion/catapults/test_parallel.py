"""Rectified networks in a ball of weights."""

import numpy as np
import pytest
from scipy.optimize import minimize

from companion.catapults.parallel import farthest, farthest_limit
from traindyn.catapults import TwoLayerModel, Weights


def changed_gates(moves, z, v):
    """Sum that the changed gates make."""
    return np.sum(v * np.maximum(np.abs(moves) - np.abs(z), 0.0))


@pytest.mark.parametrize("reach", [0.3, 1.0, 3.0])
def test_no_moves_make_more(reach):
    """Against a search from many starts, and the bound against what is attained."""
    rng = np.random.default_rng(1)
    z, v = rng.standard_normal((2, 6))
    found = farthest(z, v, reach)
    assert np.linalg.norm(found.moves) <= reach * (1 + 1e-12)
    assert found.attained == pytest.approx(changed_gates(found.moves, z, np.maximum(v, 0)))
    assert found.attained <= found.bound * (1 + 1e-12)

    def minus(free):
        size = np.linalg.norm(free)
        return -changed_gates(free * min(1, reach / size) if size else free, z, np.maximum(v, 0))

    best = max(
        -minimize(minus, reach * rng.standard_normal(6), method="Nelder-Mead").fun
        for _ in range(40)
    )
    assert best <= found.bound + 1e-9
    # The sets tried are nested, so that the best of all sets can be missed by a little.
    assert best <= found.attained * 1.1 + 1e-9


def test_the_network_attains_it():
    """Formula against the network at the moved weights."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, 3))
    x *= np.sqrt(3) / np.linalg.norm(x)
    start = TwoLayerModel.initial(500, 3, signs=False, rng=rng)
    found = farthest(start.first @ x[0] / np.sqrt(3), start.second, 0.7)
    there = Weights(start.first + np.outer(found.moves, x[0] / np.sqrt(3)), start.second)
    network, linear = (TwoLayerModel(start, kind) for kind in ("network", "linear"))
    gap = network.outputs(there, network.prepare(x)) - linear.outputs(there, linear.prepare(x))
    assert gap[0] * np.sqrt(500) == pytest.approx(found.attained, rel=1e-10)
    assert np.linalg.norm(there.first - start.first) == pytest.approx(0.7, rel=1e-12)


def test_the_limit_is_approached():
    """At a million neurons of random signs both bounds are within two hundredths of the law."""
    rng = np.random.default_rng(3)
    m = 10**6
    z, v = rng.standard_normal(m), rng.choice([-1.0, 1.0], m)
    for radius in (1.0, 2.0):
        found = farthest(z, v, radius)
        for value in (found.attained, found.bound):
            assert value * m ** (-1 / 3) == pytest.approx(farthest_limit(radius), rel=0.02)


def test_the_bound_is_nearly_attained_with_any_weights():
    """It is attained if the best set is that of the bound, from which it differs by a neuron."""
    rng = np.random.default_rng(4)
    for m in (10**3, 10**5):
        found = farthest(rng.standard_normal(m), rng.standard_normal(m), 1.0)
        changed = np.count_nonzero(found.moves)
        assert found.attained <= found.bound * (1 + 1e-12)
        assert found.bound <= found.attained * (1 + 1 / changed)


def test_bad_input():
    """What is wrong is named."""
    with pytest.raises(ValueError, match="preactivations must not be zero"):
        farthest([0.0, 1.0], [1.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="second must have a positive weight"):
        farthest([1.0], [-1.0], 1.0)
    with pytest.raises(ValueError, match="second must have shape"):
        farthest([1.0, 2.0], [1.0], 1.0)
    with pytest.raises(ValueError, match="reach must be positive"):
        farthest([1.0], [1.0], 0.0)
    with pytest.raises(ValueError, match="radius must be positive"):
        farthest_limit(-1.0)
