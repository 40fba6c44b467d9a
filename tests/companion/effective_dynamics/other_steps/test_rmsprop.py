"""RMSprop: averages over the past against draws, its limits, a run, refusals."""

import numpy as np
import pytest

from companion.effective_dynamics.other_steps.adam import AdamStatistics, AdamSteps
from companion.effective_dynamics.other_steps.rmsprop import RmspropSteps
from traindyn.effective import ode
from traindyn.problems.clouds.laws import Law
from traindyn.problems.clouds.mixture import Mixture
from traindyn.problems.spiked import Statistics
from traindyn.sgd import direct

HERE = Statistics(np.array(0.8), np.array(0.6))


def spread(n):
    """Mean on all coordinates."""
    return np.full(n, n**-0.5)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("decay", [0.4, 0.8])
def test_averages_are_those_of_drawn_pasts(loss, decay):
    """The integrals over scales are the negative powers."""
    steps = RmspropSteps(Mixture(spread(100), precision=0.7, loss=loss), decay)
    rng, count = np.random.default_rng(0), 100_000
    weights = (1 - decay) * decay ** np.arange(60)
    off = np.sqrt(1.24 / 0.7) * rng.standard_normal((count, 60))
    f = steps.inputs.response(0.8 + off)
    squares = weights * f**2 * rng.standard_normal((count, 60)) ** 2
    q = squares.sum(axis=1)
    pull = f[:, 0] * (q - squares[:, 0]) / q**1.5
    drawn = (pull, pull * off[:, 0] / 1.24, squares[:, 0] / weights[0] / q)
    for found, draws in zip(steps.averages(HERE), drawn, strict=True):
        assert abs(found - draws.mean()) < 5 * draws.std() / np.sqrt(count)


def test_a_long_memory_is_that_of_slow_second_moments():
    """The equation of Adam where its second moments have caught up."""
    inputs = Mixture(spread(100), precision=0.7)
    long = RmspropSteps(inputs, 0.999).drift(HERE, c_delta=1.3)
    start = RmspropSteps(inputs, 0.999).place(HERE, rng=0)
    v = np.array(start.second[0])
    slow = AdamSteps(inputs).drift(AdamStatistics(*HERE, v), c_delta=1.3)
    np.testing.assert_allclose(long, slow[:2], rtol=1e-2)
    assert abs(slow.v) < 1e-9


def test_a_run_follows_the_equation():
    """With the second moments of a few steps."""
    steps = RmspropSteps(Mixture(spread(400), precision=1.5), 0.6)
    seen = direct.run_replicas(
        steps,
        [1.0],
        step_size=1.5 / 400,
        replicas=60,
        rng=0,
        start=lambda generator: steps.place(HERE, rng=generator),
    )
    limit = ode.solve(steps, HERE, [1.0], c_delta=1.5)
    for part, expected in zip(seen.statistics, limit.statistics, strict=True):
        assert abs(part.mean() - expected[0]) < 5 * part.std() / np.sqrt(60) + 0.01


def test_starts_with_settled_second_moments():
    """Their mean at a random start."""
    start = RmspropSteps(Mixture(spread(64)), 0.9).initial(rng=0)
    assert 0.2 < start.second[0] < 0.4
    assert np.ptp(start.second) == 0.0


@pytest.mark.parametrize(
    ("inputs", "decay", "match"),
    [
        (Mixture(spread(100)), 1.0, "decay must be less than 1"),
        (Mixture(spread(100)), 0.0, "decay"),
        (Mixture(np.eye(9)[0]), 0.5, "fourth powers"),
        (Mixture(spread(100), law=Law("signs")), 0.5, "normal noise"),
    ],
)
def test_refuses_bad_fields(inputs, decay, match):
    """The field is named."""
    with pytest.raises(ValueError, match=match):
        RmspropSteps(inputs, decay)


def test_weights_zero_have_no_averages():
    """Their margins do not vary."""
    with pytest.raises(ValueError, match="statistics"):
        RmspropSteps(Mixture(spread(100)), 0.5).averages(Statistics(np.array(0.0), np.array(0.0)))
