"""Hessian norms over widths and balls, and where there is nothing or too much to find."""
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.linearity.ball import hessian_ball
from traindyn import deep


def start(network: deep.Network, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weights and an input."""
    rng = np.random.default_rng(seed)
    return network.initial(rng=rng), rng.standard_normal(network.inputs)


def slope(make: Callable[[int], deep.Network], widths: list[int]) -> float:
    """Exponent of the norm in the width, means of logarithms over six draws."""
    logs = []
    for m in widths:
        network = make(m)
        draws = []
        for seed in range(6):
            weights, x = start(network, seed)
            x *= np.sqrt(x.size) / np.linalg.norm(x)
            draws.append(np.log(deep.hessian_norms(network, weights, x).norms[0]))
        logs.append(np.mean(draws))
    return float(np.polyfit(np.log(widths), logs, 1)[0])


@pytest.mark.nightly
def test_wide_networks_become_linear_and_narrow_ones_do_not() -> None:
    """ZHU Theorem 2.3.6: -1/2; control: a last hidden layer of two neurons."""
    widths = [32, 64, 128, 256]
    assert abs(slope(lambda m: deep.fully_connected([6, m, m, 1]), widths) + 0.5) < 0.1
    assert slope(lambda m: deep.fully_connected([6, m, m, 2, 1]), widths) > -0.2


def test_ball() -> None:
    """Points, directions, maximum and reproducibility."""
    network = deep.fully_connected([5, 30, 30, 1])
    weights, x = start(network)
    gradient = deep.gradients(network, weights, x[None]).T
    ball = hessian_ball(network, weights, x, 2.0, points=3, along=gradient, rng=7)
    assert ball.norms.shape == (5, 1)
    assert ball.converged.all()
    np.testing.assert_array_equal(ball.distances[3:], 2.0)
    assert np.all(ball.distances[:3] <= 2.0)
    unit = gradient[:, 0] / np.linalg.norm(gradient)
    for row, sign in ((3, 1), (4, -1)):
        at = deep.hessian_norms(network, weights + sign * 2 * unit, x)
        np.testing.assert_allclose(ball.norms[row], at.norms, rtol=1e-10)
    assert ball.maximum[0] == max(ball.norms.max(), ball.centre.norms[0])
    assert np.ptp(ball.norms) > 1e-3 * ball.norms.max()  # the points do differ
    again = hessian_ball(network, weights, x, 2.0, points=3, along=gradient, rng=7)
    np.testing.assert_array_equal(again.norms, ball.norms)


def test_uniform_in_the_ball() -> None:
    """P(distance < r) = (r / R)^P: with two weights half of the points lie within R / sqrt 2."""
    network = deep.fully_connected([1, 1, 1])
    ball = hessian_ball(network, [0.5, 0.5], [1.0], 3.0, points=200, rng=0)
    inside = np.count_nonzero(ball.distances < 3 / 2**0.5)
    assert abs(inside - 100) < 5 * np.sqrt(200) / 2
    np.testing.assert_allclose(np.mean(ball.distances**2), 4.5, atol=5 * 9 / 12**0.5 / 200**0.5)


def test_no_hessian() -> None:
    """A linear network, and one that is dead at this input."""
    linear = deep.fully_connected([3, 2])
    weights, x = start(linear)
    found = deep.hessian_norms(linear, weights, x, vectors=True)
    np.testing.assert_array_equal(found.norms, 0)
    assert found.converged.all()
    dead = deep.fully_connected([2, 3, 3, 1], activation="relu")
    w = -np.ones(dead.parameters)
    found = deep.hessian_norms(dead, w, [1.0, 1.0])
    assert found.norms[0] == 0
    assert found.converged.all()


def test_gives_up_honestly() -> None:
    """Too few products must show in the result."""
    network = deep.fully_connected([5, 40, 40, 1])
    weights, x = start(network)
    found = deep.hessian_norms(network, weights, x, max_products=3)
    assert not found.converged[0]
    assert found.residuals[0] > 1e-6
    assert found.norms[0] < deep.hessian_norms(network, weights, x).norms[0]


def test_overflow_is_named() -> None:
    """No NaN may come back as a norm."""
    network = deep.fully_connected([2, 3, 3, 1], activation=jax.numpy.exp)
    with pytest.raises(FloatingPointError, match="must be finite"):
        deep.hessian_norms(network, np.full(network.parameters, 50.0), [9.0, 9.0])
