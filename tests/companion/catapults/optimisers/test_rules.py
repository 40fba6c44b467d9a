"""Optimisers against their updates written out."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")

from companion.catapults.optimisers.rules import optimiser
from traindyn import catapults
from traindyn.catapults import TwoLayerModel

X = np.random.default_rng(0).standard_normal((4, 16))
Y = np.random.default_rng(1).standard_normal(4)

RULES = {
    "gd": lambda g, s: (-g, s),
    "momentum": lambda g, s: (-(s := 0.9 * s + g), s),
    "rmsprop": lambda g, s: (-g / (np.sqrt(s := 0.99 * s + 0.01 * g**2) + 1e-8), s),
    "adagrad": lambda g, s: (-g / (np.sqrt(s := s + g**2) + 1e-10), s),
}


@pytest.mark.parametrize("name", list(RULES))
def test_optimisers_with_one_memory(name):
    """Against the update written out, over several steps (PyTorch's small number apart)."""
    check_optimiser(name, RULES[name], 0.0)


def test_optimisers_with_two_memories():
    """Adadelta and Adam, written out; Adam also counts its steps."""

    def adadelta(g, state):
        v, u = state
        v = 0.9 * v + 0.1 * g**2
        change = -g * np.sqrt((u + 1e-6) / (v + 1e-6))
        return change, (v, 0.9 * u + 0.1 * change**2)

    def adam(g, state):
        t, m, v = state
        t, m, v = t + 1, 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        return -(m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8), (t, m, v)

    check_optimiser("adadelta", adadelta, (0.0, 0.0))
    check_optimiser("adam", adam, (0, 0.0, 0.0))


def check_optimiser(name, rule, memory):
    """Follow some gradients; another optimiser does not follow."""
    made, other = optimiser(name), optimiser("gd" if name != "gd" else "adam")
    weights = (np.zeros(5),)
    state, wrong_state = made.init(weights), other.init(weights)
    rng, apart = np.random.default_rng(12), 0.0
    for _ in range(6):
        g = rng.standard_normal(5)
        expected, memory = rule(g, memory)
        change, state = made.update((g,), state, weights)
        wrong, wrong_state = other.update((g,), wrong_state, weights)
        np.testing.assert_allclose(change[0], expected, rtol=1e-7)
        apart = max(apart, float(np.abs(np.asarray(wrong[0]) - expected).max()))
    assert apart > 1e-2


def test_training_with_an_optimiser():
    """Adam on a two-layer model in NumPy keeps NumPy's weights, and fits."""
    start = TwoLayerModel.initial(30, 16, rng=13)
    run = catapults.train(
        TwoLayerModel(start),
        start,
        X,
        Y,
        step_size=0.05,
        steps=150,
        optimiser=optimiser("adam"),
    )
    assert isinstance(run.weights.first, np.ndarray)
    assert run.losses[-1] < 1e-2 * run.losses[0] and np.array_equal(
        run.weights.first.shape, (30, 16)
    )


def test_unknown_names_are_refused():
    """The message names the argument."""
    with pytest.raises(ValueError, match="name must be one of 'gd'"):
        optimiser("lion")
