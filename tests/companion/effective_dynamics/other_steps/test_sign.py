"""Sign descent: averages over batches, drift against single steps, refusals."""

import numpy as np
import pytest
from steps import moved

from companion.effective_dynamics.other_steps.sign import SignSteps
from traindyn.problems.clouds.laws import Law
from traindyn.problems.clouds.mixture import Mixture
from traindyn.problems.spiked import Statistics

HERE = Statistics(np.array(0.8), np.array(0.6))


def spread(n):
    """Mean on all coordinates, with both signs."""
    return np.full(n, n**-0.5) * (-1.0) ** np.arange(n)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("batch", [2, 5])
def test_averages_are_those_of_drawn_batches(loss, batch):
    """The integral over scales is the root in the denominator."""
    steps = SignSteps(Mixture(spread(100), precision=0.7, loss=loss), batch)
    rng = np.random.default_rng(0)
    off = np.sqrt((0.64 + 0.6) / 0.7) * rng.standard_normal((400_000, batch))
    f = steps.inputs.response(0.8 + off)
    root = np.sqrt(np.sum(f**2, axis=1))
    for found, draws in zip(
        steps.averages(HERE),
        (f.sum(axis=1) / root, np.sum(f * off, axis=1) / root / 1.24),
        strict=True,
    ):
        assert abs(found - draws.mean()) < 5 * draws.std() / np.sqrt(400_000)


def test_averages_of_one_sample():
    """For the logistic loss there is nothing to average; for the square one, a sign."""
    one = SignSteps(Mixture(spread(100)))
    np.testing.assert_allclose(one.averages(HERE), [1.0, 0.0], atol=1e-6)
    pull, back = SignSteps(Mixture(spread(100), loss="square")).averages(HERE)
    z = 0.2 / np.sqrt(1.24)
    rng = np.random.default_rng(1)
    drawn = np.sign(z - rng.standard_normal(10**6))
    assert abs(pull - drawn.mean()) < 5e-3
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(back, -2 * density / np.sqrt(1.24), rtol=1e-6)


@pytest.mark.parametrize(
    ("law", "batch", "loss", "coordinates"),
    [
        (Law(), 1, "logistic", 400),
        (Law(), 3, "logistic", 400),
        (Law(), 2, "square", 400),
        (Law("student", 5), 1, "logistic", 400),
        (Law("sparse", 0.3), 1, "logistic", 100),
        (Law("signs"), 1, "logistic", 1),
    ],
)
def test_drift_of_one_step(law, batch, loss, coordinates):
    """Mean of a step on drawn inputs."""
    n, c = 400, 1.5
    mean = np.where(np.arange(n) < coordinates, coordinates**-0.5, 0.0) * (-1.0) ** np.arange(n)
    steps = SignSteps(Mixture(mean, law=law, precision=1.5, loss=loss), batch)
    moves = moved(steps, steps.place(HERE, rng=0), c / n, 20_000, 1) - np.array(HERE)
    moves *= n / c
    drift = np.array(steps.drift(HERE, c_delta=c))
    error = moves.std(axis=0) / np.sqrt(len(moves))
    assert np.all(np.abs(moves.mean(axis=0) - drift) <= 5 * error + 20 / n)


@pytest.mark.parametrize(
    ("inputs", "batch", "match"),
    [
        (Mixture(spread(100)), 0, "batch"),
        (Mixture(np.array([0.6, 0.8])), 1, "entries of one size"),
        (Mixture(np.eye(9)[0]), 2, "fourth powers"),
        (Mixture(spread(100), law=Law("signs")), 2, "normal noise"),
        (Mixture(spread(100), law=Law("bernoulli", 0.1)), 1, "symmetric"),
    ],
)
def test_refuses_inputs_without_a_limit(inputs, batch, match):
    """The field is named."""
    with pytest.raises(ValueError, match=match):
        SignSteps(inputs, batch)


def test_weights_zero_have_no_averages():
    """Their margins do not vary."""
    with pytest.raises(ValueError, match="statistics"):
        SignSteps(Mixture(spread(100)), 2).averages(Statistics(np.array(0.0), np.array(0.0)))
