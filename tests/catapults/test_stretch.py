"""Many steps in one call are the steps that single calls make."""

import numpy as np
import pytest

from traindyn import deep
from traindyn.activations import TANH
from traindyn.catapults import TwoLayerModel, critical_step, train
from traindyn.deep.taylor import TaylorModel

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 10)), RNG.standard_normal(60)
START = TwoLayerModel.initial(32, 10, rng=1)
#: Fewer examples than inputs: steps are made in combinations of the examples.
WIDE, SIGNS = RNG.standard_normal((30, 200)), RNG.standard_normal(30)
FAR = TwoLayerModel.initial(32, 200, rng=2)
DEEP, TEN = deep.perceptron([10, 16, 16, 1]), deep.perceptron([10, 16, 3])
WEIGHTS = DEEP.initial(rng=0)
MODELS = {
    "network": (TwoLayerModel(START), START, X, Y),
    "quadratic": (TwoLayerModel(START, "quadratic"), START, X, Y),
    "network, few examples": (TwoLayerModel(FAR), FAR, WIDE, SIGNS),
    "quadratic, few examples": (TwoLayerModel(FAR, "quadratic"), FAR, WIDE, SIGNS),
    "deep": (DEEP, WEIGHTS, X, Y),
    "several outputs": (TEN, TEN.initial(rng=3), X, RNG.standard_normal((60, 3))),
    "Taylor": (TaylorModel(DEEP, WEIGHTS), WEIGHTS, X, Y),
}


class Single:
    """A model without the call for many steps."""

    descend_many = None

    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        return getattr(self.model, name)


def both(name, ratio, **options):
    """Train with and without stretches, the step size falling on the way."""
    model, start, inputs, labels = MODELS[name]
    top = critical_step(model, start, model.prepare(inputs))
    schedule = [(0, ratio * top), (22, 0.7 * ratio * top)]
    return [
        train(each, start, inputs, labels, step_size=schedule, steps=53, every=5,
              validation=(inputs[:9], labels[:9]), **options)
        for each in (model, Single(model))
    ]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", [None, 7])
def test_the_same_as_single_steps(name, batch):
    """Losses, weights, step sizes and batches; 53 is no multiple of 5."""
    ours, theirs = both(name, 0.5, batch_size=batch, track=batch is not None, rng=4)
    np.testing.assert_array_equal(ours.steps, theirs.steps)
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-9)
    np.testing.assert_allclose(ours.validation_losses, theirs.validation_losses, rtol=1e-9)
    np.testing.assert_allclose(ours.critical_steps, theirs.critical_steps, rtol=1e-9)
    np.testing.assert_array_equal(ours.step_sizes, theirs.step_sizes)
    np.testing.assert_array_equal(ours.batches, theirs.batches)
    assert ours.best_step == theirs.best_step and ours.step_sizes.size == 53
    assert ours.critical_steps.size == (0 if batch is None else 53)
    for one, other in zip(ours.weights, theirs.weights):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", [None, 7])
def test_divergence_ends_at_the_same_step(name, batch):
    """Between two records, with finite weights."""
    ours, theirs = both(name, 60.0, batch_size=batch, track=True, rng=4)
    assert ours.diverged == theirs.diverged and 0 < ours.diverged < 5
    assert ours.step_sizes.size == ours.critical_steps.size == ours.diverged
    for one, other in zip(ours.weights, theirs.weights):
        assert np.all(np.isfinite(one))
        np.testing.assert_allclose(one, other, rtol=1e-8)


@pytest.mark.parametrize("kind", ["network", "quadratic"])
def test_an_example_may_occur_twice_in_a_batch(kind):
    """Its part of the gradient counts twice."""
    model = TwoLayerModel(FAR, kind)
    batch, sizes = model.prepare(WIDE), np.full(20, 0.01)
    rows = np.random.default_rng(5).integers(0, 4, (20, 7))
    ours, made, _ = model.descend_many(FAR, batch, SIGNS, sizes, rows=rows)
    now = FAR
    for chosen, size in zip(rows, sizes):
        part = type(batch)(*(None if field is None else field[chosen] for field in batch))
        now = model.descend(now, model.gradient(now, part, SIGNS[chosen])[1], size)
    assert made == 20
    for one, other in zip(ours, now):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_the_weights_given_are_left_alone():
    """Those at the start are the caller's."""
    for name, (_, start, _, _) in MODELS.items():
        before = [np.array(w) for w in start]
        both(name, 0.5)
        for one, other in zip(start, before):
            np.testing.assert_array_equal(one, other)


def test_models_without_the_call():
    """A linear model, a smooth unit: single steps."""
    assert TwoLayerModel(START, "linear").descend_many is None
    assert TwoLayerModel(START, "network", TANH).descend_many is None
    assert TwoLayerModel(START).descend_many is not None


def test_a_dead_network_has_no_critical_step_size():
    """All gates closed and a zero second layer: the kernel is zero."""
    closed = type(START)(np.zeros_like(START.first), np.zeros_like(START.second))
    _, made, critical = TwoLayerModel(START).descend_many(
        closed, TwoLayerModel(START).prepare(X), Y, np.array([0.1]), track=True
    )
    assert made == 1 and np.all(np.isinf(critical))
