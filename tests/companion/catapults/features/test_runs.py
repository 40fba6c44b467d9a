"""Runs to the least validation loss: what is read off there."""

import numpy as np
import pytest

from companion.catapults.features.runs import Problem, fit, problem
from traindyn.catapults import TwoLayerModel, critical_step


@pytest.fixture(scope="module")
def small() -> tuple[TwoLayerModel, object, Problem]:
    """A network and its examples, in five dimensions."""
    start = TwoLayerModel.initial(32, 5, rng=1)
    return TwoLayerModel(start), start, problem("rank-2", 5, (40, 30, 20), rng=0)


def test_examples_are_independent_and_noisy():
    """Three sets that share no input; the noise has the variance of the source."""
    given = problem("rank-2", 4, (20_000, 10, 10), rng=3)
    assert [len(pairs.labels) for pairs in given[1:]] == [20_000, 10, 10]
    noise = given.inside.labels - given.goal.value(given.inside.inputs)
    assert np.std(noise) == pytest.approx(0.1, rel=0.05)
    assert not np.isin(given.held.inputs, given.inside.inputs).any()


def test_the_fit_is_where_the_validation_loss_is_least(small):
    """Test loss and outer product by their definitions, at the best weights."""
    model, start, given = small
    found = fit(model, start, given, 1.0, every=1, steps=60)
    best = found.run.best
    held = [np.mean((model.outputs(w, model.prepare(given.held.inputs)) - given.held.labels) ** 2)
            for w in (best, start)]  # fmt: skip
    assert held[0] == pytest.approx(np.nanmin(found.run.validation_losses)) and held[0] < held[1]
    x, y = given.unseen
    assert found.loss == pytest.approx(np.mean((model.outputs(best, model.prepare(x)) - y) ** 2))
    gradients = model.input_gradients(best, model.prepare(given.inside.inputs))
    np.testing.assert_allclose(found.agop, gradients.T @ gradients / 40, rtol=1e-10)


def test_batches_of_all_examples_are_gradient_descent_and_others_are_counted(small):
    """Every batch of a run far above its critical step size counts, in none far below."""
    model, start, given = small
    whole = fit(model, start, given, 0.5, batch_size=40, steps=20)
    plain = fit(model, start, given, 0.5, steps=20)
    np.testing.assert_array_equal(whole.run.losses, plain.run.losses)
    assert whole.over == 0
    top = critical_step(model, start, model.prepare(given.inside.inputs))
    below, above = (
        fit(model, start, given, rate, batch_size=4, every=1, steps=5, rng=2)
        for rate in (top / 100, 10 * top)
    )
    assert below.over == 0 and above.over == above.run.best_step
    assert fit(model, start, given, 10 * top, batch_size=4, steps=5, track=False, rng=2).over == 0


def test_refusals_name_the_argument(small):
    """Sizes of examples, and a model without gradients in its input."""
    with pytest.raises(ValueError, match="sizes must have shape"):
        problem("rank-2", 5, (3, 4), rng=0)
    with pytest.raises(ValueError, match="sizes"):
        problem("rank-2", 5, (3, 4, 0), rng=0)
    with pytest.raises((TypeError, ValueError), match="model must"):
        fit(object(), small[1], small[2], 1.0)
