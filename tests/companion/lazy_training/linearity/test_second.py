"""The two sums of the second derivative against automatic differentiation, term by term."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.linearity.second import second_derivative
from traindyn import deep

NETWORKS = {
    "fully connected": deep.fully_connected([3, 5, 4, 1]),
    "softplus output": deep.fully_connected([3, 5, 1], output_activation="softplus"),
    "dropped edges": deep.drop_edges(deep.densenet([4, 6, 6, 1]), 0.5, rng=0),
    "skips": deep.residual([3, 5, 5, 5, 1]),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_against_products(name: str) -> None:
    """Control: mixed terms once."""
    network, rng = NETWORKS[name], np.random.default_rng(1)
    w, x = network.initial(rng=rng), rng.standard_normal(network.inputs)
    for arrow in rng.standard_normal((3, w.size)):
        curved, mixed = second_derivative(network, w, x, arrow)
        product = arrow @ deep.hessian_product(network, w, x, arrow)
        assert curved + 2 * mixed == pytest.approx(product, rel=1e-9)
        assert abs(mixed) > 1e-3 * abs(product)


def test_linear_activations_have_no_curved_part() -> None:
    """Two layers of the identity: the product of the two directions."""
    network = deep.fully_connected([2, 3, 1], activation="identity")
    w, arrow = np.arange(1.0, 10.0), np.linspace(-1, 1, 9)
    curved, mixed = second_derivative(network, w, [1.0, -2.0], arrow)
    moved = arrow[:6].reshape(3, 2) @ [1.0, -2.0]
    assert curved == 0
    assert mixed == pytest.approx(arrow[6:] @ moved / np.sqrt(2 * 3))


def test_refusals() -> None:
    """Shapes, and layers that are not dense."""
    network = NETWORKS["fully connected"]
    w, x = network.initial(rng=0), np.ones(3)
    with pytest.raises(ValueError, match="direction"):
        second_derivative(network, w, x, w[1:])
    with pytest.raises(ValueError, match="dense"):
        convolutional = deep.convolutional([1, 2, 2], positions=4)
        weights = convolutional.initial(rng=0)
        second_derivative(convolutional, weights, np.ones(convolutional.inputs), weights)
