"""Gradients, tangent kernels and linearisations against differences, formulas and bounds."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from random_graphs import random_graph

from companion.lazy_training.beyond.graphs import from_graph
from companion.lazy_training.linearity import linearise
from traindyn import deep

NETWORKS: dict[str, Callable[[], deep.Network]] = {
    "dropped densenet": lambda: deep.drop_edges(deep.densenet([3, 8, 8, 2]), 0.5, rng=1),
    "residual": lambda: deep.residual([3, 6, 6, 6, 2]),
    "convolutional": lambda: deep.convolutional([2, 3, 3], positions=4, outputs=2),
    "graph": lambda: from_graph(random_graph([3, 5, 5, 2], [2, 4, 6], seed=3)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_and_kernel(name: str, reference: SimpleNamespace) -> None:
    """The kernel never sees a gradient (but on graphs); the gradients never see autodiff in W."""
    network = NETWORKS[name]()
    rng = np.random.default_rng(0)
    weights = network.initial(rng=rng)
    points = rng.standard_normal((3, network.inputs))
    for k in range(network.outputs):
        found = deep.gradients(network, weights, points, output=k)
        expected = np.array(
            [
                reference.differences(
                    lambda w, x=x: network.values(w, x[None])[0, k],  # noqa: B023
                    weights,
                )
                for x in points
            ]
        )
        np.testing.assert_allclose(found, expected, atol=1e-8)
        kernel = deep.tangent_kernel(network, weights, points, output=k)
        np.testing.assert_allclose(kernel, found @ found.T, rtol=1e-11, atol=1e-12)
        other = deep.tangent_kernel(network, weights, points, output=1 - k)
        assert np.abs(other - kernel).max() > 1e-3 * np.abs(kernel).max()


def test_mean_squared_gradient_of_relu() -> None:
    """L 2^(1 - L) |x|^2 / d at any widths, narrow ones included (ZHU Proposition 2.4.4)."""
    network = deep.fully_connected([5, 3, 7, 1], activation="relu")
    rng = np.random.default_rng(1)
    x = np.ones((1, 5))
    draws = np.array(
        [deep.tangent_kernel(network, network.initial(rng=rng), x)[0, 0] for _ in range(3000)]
    )
    error = draws.std() / np.sqrt(draws.size)
    assert abs(draws.mean() - 3 / 4) < 5 * error
    assert abs(draws.mean() - 3.0) > 20 * error  # with the factor 2 that is not there


def test_linearisation_is_the_first_order() -> None:
    """Against the Jacobian; what is left is v^T H v / 2."""
    network = deep.densenet([3, 10, 10, 2])
    rng = np.random.default_rng(0)
    origin, step = network.initial(rng=rng), network.initial(rng=rng)
    points = rng.standard_normal((4, 3))
    linear = linearise.linearise(network, origin)
    np.testing.assert_array_equal(linear.deviation(origin, points), 0)
    jacobian = np.stack([deep.gradients(network, origin, points, output=k) for k in range(2)])
    expected = network.values(origin, points) + (jacobian @ step).T
    np.testing.assert_allclose(linear.values(origin + step, points), expected, rtol=1e-11)
    # What is left is of second order: half of v^T H v, with an error of third order.
    half = 1e-3 * step
    second = [
        step @ deep.hessian_product(network, origin, x, step, output=k) / 2
        for x in points
        for k in range(2)
    ]
    found = linear.deviation(origin + half, points).reshape(-1) / 1e-6
    np.testing.assert_allclose(found, second, rtol=0.05, atol=1e-3)
    assert np.abs(second).max() > 0.1


def test_deviation_is_bounded_and_the_bound_is_sharp() -> None:
    """ZHU Corollary 2.3.7, along the top eigenvector of the Hessian."""
    network = deep.fully_connected([4, 64, 64, 1])
    rng = np.random.default_rng(3)
    weights, x = network.initial(rng=rng), rng.standard_normal(4)
    norms = deep.hessian_norms(network, weights, x, vectors=True)
    assert norms.vectors is not None
    linear = linearise.linearise(network, weights)
    ratios = {}
    for radius in (0.01, 1.0):
        step = radius * norms.vectors[:, 0]
        left = abs(linear.deviation(weights + step, x[None])[0, 0])
        segment = [
            deep.hessian_norms(network, weights + s * step, x).norms[0]
            for s in np.linspace(0, 1, 5)
        ]
        ratios[radius] = left / (radius**2 * norms.norms[0] / 2)
        assert left <= 1.001 * radius**2 * max(segment) / 2
    assert abs(ratios[0.01] - 1) < 0.01
    # Control: in a random direction the bound is far from sharp.
    u = rng.standard_normal(network.parameters)
    u *= 0.01 / np.linalg.norm(u)
    assert abs(linear.deviation(weights + u, x[None])[0, 0]) < 0.3 * 0.01**2 * norms.norms[0] / 2


def test_bad_arguments() -> None:
    """Each error names what is wrong."""
    network = deep.fully_connected([3, 4, 1])
    weights = network.initial(rng=0)
    with pytest.raises(ValueError, match="weights must have shape"):
        linearise.linearise(network, weights[1:])
    with pytest.raises(ValueError, match="weights must have shape"):
        linearise.linearise(network, weights).values(weights[1:], np.ones((1, 3)))
    with pytest.raises(ValueError, match="points must have shape"):
        deep.tangent_kernel(network, weights, np.ones(3))
    with pytest.raises(ValueError, match="output must be"):
        deep.gradients(network, weights, np.ones((1, 3)), output=1)


def test_a_kernel_beyond_the_numbers_is_told() -> None:
    """It was NaN without a word."""
    network = deep.fully_connected([2, 3, 1])
    with pytest.raises(FloatingPointError, match=r"^points and weights must .* points of up to 1e"):
        deep.tangent_kernel(network, network.initial(rng=0), np.full((2, 2), 1e200))
