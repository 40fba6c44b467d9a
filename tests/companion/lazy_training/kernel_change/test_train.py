"""Gradient descent against a plain loop, and what the kernel says about it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.kernel_change.train import descend
from traindyn import deep

NETWORKS: dict[str, Callable[[], deep.Network]] = {
    "dropped densenet": lambda: deep.drop_edges(deep.densenet([3, 12, 12, 2]), 0.5, rng=1),
    "convolutional": lambda: deep.convolutional([1, 4, 4], positions=3, outputs=2),
}


def data(network: deep.Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, four points and their labels."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((4, network.inputs))
    return network.initial(rng=rng), points, np.array([1.0, -1.0, 1.0, -1.0])


@pytest.mark.nightly
@pytest.mark.parametrize("name", NETWORKS)
def test_against_a_plain_loop(name: str) -> None:
    """Absent edges must stay absent, and the other output untouched by the choice."""
    network = NETWORKS[name]()
    weights, x, y = data(network)
    found = descend(network, weights, x, y, step_size=0.2, steps=7, every=3, output=1)
    losses, w = [], weights
    for _ in range(8):
        errors = network.values(w, x)[:, 1] - y
        losses.append(errors @ errors / 2)
        last, w = w, w - 0.2 * errors @ deep.gradients(network, w, x, output=1)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-11)
    np.testing.assert_allclose(found.weights, last, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(found.steps, [0, 3, 6, 7])
    kernel = deep.tangent_kernel(network, last, x, output=1)
    np.testing.assert_allclose(found.kernels[-1], kernel, rtol=1e-11, atol=1e-13)
    assert found.kernel_changes[0] == 0
    assert not found.converged
    assert found.losses[-1] < 0.9 * found.losses[0]


def test_wide_network_follows_its_kernel() -> None:
    """Errors shrink by I - eta K at every step; the wider, the closer (ZHU Section 2.4)."""
    gaps, changes = [], []
    for m in (64, 1024):
        network = deep.fully_connected([3, m, m, 1])
        weights, x, y = data(network)
        kernel = deep.tangent_kernel(network, weights, x)
        eta = 1 / np.linalg.eigvalsh(kernel)[-1]
        found = descend(network, weights, x, y, step_size=eta, steps=10)
        errors = network.values(weights, x)[:, 0] - y
        expected = np.linalg.matrix_power(np.eye(4) - eta * kernel, 10) @ errors
        actual = network.values(found.weights, x)[:, 0] - y
        gaps.append(np.linalg.norm(actual - expected) / np.linalg.norm(errors))
        changes.append(found.kernel_changes.max())
    assert gaps[1] < 0.5 * gaps[0]
    assert gaps[1] < 0.02
    assert changes[1] < 0.5 * changes[0]


def test_stops_and_diverges() -> None:
    """Beyond twice the reciprocal of the top eigenvalue the loss grows at once."""
    network = deep.fully_connected([3, 64, 1], activation="relu")
    weights, x, y = data(network)
    top = np.linalg.eigvalsh(deep.tangent_kernel(network, weights, x))[-1]
    found = descend(network, weights, x, y, step_size=1 / top, steps=5000, stop=1e-2)
    assert found.converged
    assert found.losses[-1] <= 1e-2 * found.losses[0] < found.losses[-11]
    fast = descend(network, weights, x, y, step_size=3 / top, steps=8)
    assert fast.losses.max() > 1.2 * fast.losses[0] == 1.2 * found.losses.max()
    with pytest.raises(FloatingPointError, match=r"after \d+ steps"):
        descend(network, weights, x, y, step_size=100 / top, steps=200)


def test_bad_arguments() -> None:
    """Each error names what is wrong."""
    network = deep.fully_connected([3, 4, 1])
    weights, x, y = data(network)
    with pytest.raises(ValueError, match="labels must have shape"):
        descend(network, weights, x, y[1:], step_size=1.0, steps=1)
    with pytest.raises(ValueError, match="start must have shape"):
        descend(network, weights[1:], x, y, step_size=1.0, steps=1)
    with pytest.raises(ValueError, match="step_size must be positive"):
        descend(network, weights, x, y, step_size=0.0, steps=1)
    with pytest.raises(ValueError, match="steps must be"):
        descend(network, weights, x, y, step_size=1.0, steps=0)
