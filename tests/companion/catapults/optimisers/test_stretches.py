"""Many steps of an optimiser against single ones."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")

from companion.catapults.optimisers.rules import OPTIMISERS, optimiser
from companion.catapults.optimisers.stretches import train_with
from traindyn.catapults import train
from traindyn.deep import perceptron

X = np.random.default_rng(0).standard_normal((12, 3))
Y = np.random.default_rng(1).standard_normal(12)
MODEL = perceptron([3, 8, 8, 1])
START = MODEL.initial(rng=2)
STEPS = {"step_size": 0.02, "steps": 30, "every": 10, "rng": 3}


@pytest.mark.parametrize("rule", list(OPTIMISERS))
@pytest.mark.parametrize("size", [None, 4])
def test_runs_are_those_of_single_steps(rule, size):
    """Losses and weights of either loop, at the end and where the validation loss is least."""
    given = {**STEPS, "batch_size": size, "validation": (X[::-1], Y[::-1] + 1)}
    single = train(MODEL, START, X, Y, optimiser=optimiser(rule), **given)
    run = train_with(rule, MODEL, START, X, Y, **given)
    np.testing.assert_allclose(run.losses, single.losses, rtol=1e-9)
    assert run.best_step == single.best_step
    for found, expected in zip(run.weights + run.best, single.weights + single.best, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    # A step size one part in a hundred larger is seen.
    other = train_with(rule, MODEL, START, X, Y, **{**given, "step_size": 0.0202})
    assert np.abs(other.losses / single.losses - 1).max() > 1e-5


def test_a_run_that_diverges_stops():
    """It says where, within the first stretch."""
    run = train_with("gd", MODEL, START, X, Y, step_size=1e3, steps=40, every=20)
    assert run.diverged is not None and run.diverged < 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "lion"}, "rule must be one of 'gd'"),
        ({"every": 1}, "every must be an integer >= 2"),
        ({"step_size": lambda state: 0.1}, "step_size must be given before the run"),
        ({"model": perceptron([3, 8, 2])}, "model must have one output"),
        ({"batch_size": 13}, "batch_size must be"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    """Messages name the argument."""
    given = {"rule": "gd", "model": MODEL, "start": START, "inputs": X, "labels": Y, **STEPS}
    with pytest.raises(ValueError, match=message):
        train_with(**{**given, **change})
