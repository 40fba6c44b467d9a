"""Gradient outer products: closed forms against sampling, gradients against differences."""

import numpy as np
import pytest

from traindyn import catapults
from traindyn.activations import GELU, RELU
from traindyn.catapults import TwoLayerModel, Weights
from traindyn.catapults.agop import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_gradients_of_targets(name):
    """Central differences."""
    target = catapults.target(name, 12)
    x = np.random.default_rng(0).standard_normal((5, 12))
    step = 1e-6
    quotient = np.stack(
        [
            (target.value(x + step * row) - target.value(x - step * row)) / (2 * step)
            for row in np.eye(12)
        ],
        axis=1,
    )
    np.testing.assert_allclose(target.gradient(x), quotient, atol=1e-7)


@pytest.mark.parametrize("name", TARGETS)
def test_expected_outer_products(name):
    """Monte Carlo: every entry within six of its standard errors (false alarm 3e-7 in all).

    The control, the closed form plus a tenth on its largest entry, is rejected.
    """
    target = catapults.target(name, 11)
    x = np.random.default_rng(1).standard_normal((200_000, 11))
    rows = target.gradient(x)
    mean = catapults.agop(rows)
    error = np.sqrt(np.maximum((rows**2).T @ rows**2 / len(x) - mean**2, 0) / len(x)) + 1e-14
    scores = np.abs(mean - target.egop) / error
    assert scores.max() < 6
    at = np.unravel_index(np.argmax(target.egop), mean.shape)
    assert 0.1 * target.egop[at] / error[at] > 6


@pytest.mark.parametrize(
    ("kind", "activation"),
    [("network", RELU), ("network", GELU), ("linear", RELU), ("quadratic", RELU)],
    ids=repr,
)
def test_input_gradients(kind, activation):
    """Central differences of the network and of its Taylor models, away from their start."""
    start, change = (TwoLayerModel.initial(9, 4, rng=seed) for seed in (2, 4))
    weights = Weights(*(w + 0.3 * step for w, step in zip(start, change)))
    model = TwoLayerModel(start, kind, activation)
    x = np.random.default_rng(3).standard_normal((6, 4))
    step = 1e-6
    quotient = np.stack(
        [
            (
                model.outputs(weights, model.prepare(x + step * row))
                - model.outputs(weights, model.prepare(x - step * row))
            )
            / (2 * step)
            for row in np.eye(4)
        ],
        axis=1,
    )
    exact = model.input_gradients(weights, model.prepare(x))
    np.testing.assert_allclose(exact, quotient, atol=1e-8)


def test_alignment_and_messages():
    """One for multiples, zero for orthogonal matrices."""
    a = np.diag([1.0, 2.0])
    assert catapults.alignment(a, 3 * a) == pytest.approx(1)
    assert catapults.alignment(np.diag([1.0, 0.0]), np.diag([0.0, 1.0])) == 0
    for call, message in (
        (lambda: catapults.alignment(a, np.eye(3)), "second must have shape"),
        (lambda: catapults.alignment(a, 0 * a), "must not be zero"),
        (lambda: catapults.target("rank-5", 3), "name must be"),
        (lambda: catapults.target("rank-3", 9), "dimension must be an integer >= 10"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
