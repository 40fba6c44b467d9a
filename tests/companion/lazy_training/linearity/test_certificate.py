"""A bound on a whole ball: nothing found in the ball exceeds it, and it falls with the width."""

import numpy as np
import pytest

from companion.lazy_training.linearity.ball import hessian_ball, two_layer_supremum
from companion.lazy_training.linearity.certificate import hessian_bound
from traindyn import deep

TANH = {"slope": 1.0, "curvature": 4 / 27**0.5}

NETWORKS = {
    "fully connected": lambda rng: deep.fully_connected([4, 12, 12, 1]),
    "two outputs": lambda rng: deep.fully_connected([4, 12, 9, 2]),
    "half of the edges": lambda rng: deep.drop_edges(deep.densenet([4, 12, 12, 1]), 0.5, rng=rng),
    "residual": lambda rng: deep.residual([4, 12, 12, 12, 1]),
    "convolutional": lambda rng: deep.convolutional([1, 6, 6], positions=5),
}


def drawn(name, seed=3):
    """Return a network, weights, an input and the generator that drew them."""
    rng = np.random.default_rng(seed)
    network = NETWORKS[name](rng)
    return network, network.initial(rng=rng), rng.choice([-1.0, 1.0], network.inputs), rng


@pytest.mark.parametrize("name", NETWORKS)
def test_norms_in_the_ball_are_below_the_bound(name):
    """Random points, and those along the top eigenvector, at three radii."""
    network, w, x, rng = drawn(name)
    k = network.outputs - 1
    for radius in (0.0, 0.5, 3.0):
        bound = hessian_bound(network, w, x, radius, output=k, **TANH)
        top = deep.hessian_norms(network, w, x, outputs=[k], vectors=True, rng=rng).vectors
        found = hessian_ball(
            network, w, x, radius, points=4, along=top, outputs=[k], tolerance=1e-3, rng=rng
        )
        assert found.maximum[0] <= bound.norm
    small = hessian_bound(network, w, x, 1.0, output=k, **TANH)
    assert np.all(small.derivatives <= bound.derivatives) and small.norm < bound.norm


@pytest.mark.parametrize("name", ["fully connected", "half of the edges", "residual"])
def test_form_bounds_second_derivatives_along_every_direction(name):
    """The form at the lengths of the parts, not only its largest eigenvalue."""
    network, w, x, rng = drawn(name)
    bound = hessian_bound(network, w, x, 0.0, **TANH)
    for _ in range(20):
        direction = rng.standard_normal(w.size)
        second = direction @ deep.hessian_product(network, w, x, direction)
        lengths = np.array([np.linalg.norm(part) for part in network.split(direction)])
        assert abs(second) <= lengths @ bound.form @ lengths


def test_two_layers_are_near_the_supremum():
    """The supremum over the ball is known for two layers."""
    rng = np.random.default_rng(0)
    network = deep.fully_connected([10, 300, 1])
    for radius in (0.0, 1.0, 3.0):
        w, x = network.initial(rng=rng), rng.choice([-1.0, 1.0], 10)
        top = two_layer_supremum(network, w, x, radius)[0]
        assert 1 <= hessian_bound(network, w, x, radius, **TANH).norm / top < 1.35


def test_linear_network_has_the_closed_form_of_two_layers():
    """The Hessian of v U x / sqrt(m d) has the norm |x| / sqrt(m d) everywhere."""
    network = deep.fully_connected([5, 16, 1], activation="identity")
    w = network.initial(rng=1)
    bound = hessian_bound(network, w, np.ones(5), 7.0, slope=1.0, curvature=0.0)
    assert bound.norm == pytest.approx(1 / 4, rel=1e-12)


def test_moves_are_attained_in_the_first_layer():
    """All of the radius in one neuron, along the input."""
    network, w, x, _ = drawn("fully connected")
    moved = w[:48].copy()
    moved[:4] += 2.0 * x / np.linalg.norm(x)
    sums = [network.head(1).values(one, x[None])[0] for one in (w[:48], moved)]
    bound = hessian_bound(network, w, x, 2.0, **TANH)
    assert np.linalg.norm(sums[1] - sums[0]) == pytest.approx(bound.moves[0], rel=1e-10)


def test_bound_falls_with_the_width():
    """Sixteen times the width: a root alone would be a factor 4, with the logarithm it is 3.1."""
    bounds = []
    for m in (64, 1024):
        network = deep.fully_connected([10, m, m, 1])
        bounds.append(hessian_bound(network, network.initial(rng=m), np.ones(10), 1.0, **TANH).norm)
    assert bounds[1] < bounds[0] / 2.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": -1.0}, "radius"),
        ({"slope": 0.0}, "slope"),
        ({"curvature": -1.0}, "curvature"),
        ({"output": 1}, "output"),
    ],
)
def test_bad_input(options, message):
    """The message names the argument."""
    network, w, x, _ = drawn("fully connected")
    arguments = {"radius": 1.0, **TANH, **options}
    with pytest.raises(ValueError, match=message):
        hessian_bound(network, w, x, arguments.pop("radius"), **arguments)
