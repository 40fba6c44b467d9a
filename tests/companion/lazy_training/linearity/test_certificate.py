"""A bound on a whole ball: nothing found in the ball exceeds it, and it falls with the width."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from companion.lazy_training.beyond.graphs import from_graph
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


CHAINS = {
    "plain": lambda: deep.fully_connected([1, 1, 1, 1, 1], activation="identity"),
    "skips": lambda: deep.residual([1, 1, 1, 1, 1], activation="identity"),
    "reads all": lambda: deep.densenet([1, 1, 1, 1], activation="identity"),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_single_linear_neurons_attain_every_step(name):
    """Positive weights, all moved by the radius: the steps hold for each layer moved on its own."""
    network, radius = CHAINS[name](), 0.4
    w = np.linspace(0.5, 1.2, network.parameters)
    bound = hessian_bound(network, w, [1.0], radius, slope=1.0, curvature=0.0)
    # Each layer by the radius, along what it reads after the move: forwards and backwards attained.
    arrays = [np.array(one) for one in network.unpack(w)]
    values, start = [1.0], [1.0]
    for layer, matrix in zip(network.layers, arrays):
        before = np.array([start[source] for source in layer.sources])
        start.append(float(matrix[0] @ before) + (before[-1] if layer.skips is not None else 0.0))
        after = np.array([values[source] for source in layer.sources])
        matrix[0] += radius * after / np.linalg.norm(after)
        values.append(float(matrix[0] @ after) + (after[-1] if layer.skips is not None else 0.0))
    moved = np.concatenate([one.ravel() for one in arrays])
    for depth in range(1, network.depth + 1):
        part = network.head(depth)
        sums = [part.values(one[: part.parameters], [[1.0]])[0, 0] for one in (w, moved)]
        # Lengths add up where a layer reads one other; where it reads several they need not.
        low = 1 - 1e-12 if name != "reads all" else 0.75
        assert low <= (sums[1] - sums[0]) / bound.moves[depth - 1] <= 1 + 1e-12
    steps = 1e-6 * np.eye(network.parameters)
    with_probe = [network.values(moved + e, [[1.0]])[0, 0] for e in steps]
    slopes = (np.array(with_probe) - network.values(moved, [[1.0]])[0, 0]) / 1e-6
    ends = np.cumsum([layer.connection.parameters for layer in network.layers])
    for n in range(network.depth - 1):  # dy/dw = (dy/df) f of the layer below
        reads = values[network.layers[n].sources[-1]]
        share = slopes[ends[n] - 1] / reads / bound.derivatives[n]
        assert (0.0 if name == "reads all" else 1 - 1e-5) <= share <= 1 + 1e-5


@pytest.mark.parametrize("name", ["plain", "skips"])
def test_chains_attain_the_form_at_three_layers_and_more(name):
    """Mixed second derivatives where all weights are larger by the radius."""
    network, radius = CHAINS[name](), 0.4
    w = np.linspace(0.5, 1.2, network.parameters)
    bound = hessian_bound(network, w, [1.0], radius, slope=1.0, curvature=0.0)
    hessian = deep.hessian_product(network, w + radius, [1.0], np.eye(w.size))
    np.testing.assert_allclose(bound.form, hessian, rtol=1e-10, atol=1e-12)


def test_layers_of_other_kinds_are_refused():
    """A graph keeps its edges in lists."""
    network = from_graph(nx.DiGraph([("x", "u"), ("u", "v"), ("v", "f")]), activation="tanh")
    with pytest.raises(ValueError, match="matrices or convolutions"):
        hessian_bound(network.head(2), np.ones(2), [1.0], 1.0, **TANH)


def test_taps_of_a_convolution_move_together():
    """One channel: the same move of three taps, on inputs that are nearly constant."""
    network = deep.convolutional([1, 1], positions=101, kernel=3)
    w, x, radius = np.zeros(network.parameters), np.ones(101), 0.5
    w[3:] = 1.0
    moved = w.copy()
    moved[:3] = radius / 3**0.5
    bound = hessian_bound(network, w, x, radius, slope=1.0, curvature=0.0)
    sums = [network.head(1).values(one[:3], x[None])[0] for one in (w, moved)]
    assert 0.99 <= np.linalg.norm(sums[1] - sums[0]) / bound.moves[0] <= 1


def test_several_neurons_may_add_one_value():
    """Four neurons that are the same value of the first layer, by skip connections alone."""
    plain = deep.fully_connected([4, 4, 4, 1], activation="identity")
    skips = np.arange(4), np.zeros(4, dtype=np.int64)
    second = replace(plain.layers[1], skips=skips)
    network = deep.Network(4, (plain.layers[0], second, plain.layers[2]))
    radius, x = 0.5, np.array([[1.0, 0.0, 0.0, 0.0]])
    w = np.zeros(network.parameters)
    w[-4:] = 1.0
    moved = w.copy()
    moved[0] = radius
    bound = hessian_bound(network, w, x[0], radius, slope=1.0, curvature=0.0)
    change = (network.values(moved, x) - network.values(w, x))[0, 0]
    assert change == pytest.approx(radius)  # a quarter of a unit, four times, over the root of 4
    assert bound.moves[2] >= change
    moved[-4:] += radius / 2
    derivative = deep.gradients(network, moved, x)[0][0] * 2  # in the value: weight times x / 2
    assert derivative == pytest.approx(2.5)
    assert bound.derivatives[0] >= derivative


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
