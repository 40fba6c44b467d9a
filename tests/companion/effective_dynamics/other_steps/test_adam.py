"""Adam: its drift against single steps and momentum against a run, refusals."""

import numpy as np
import pytest
from steps import moved

from companion.effective_dynamics.other_steps.adam import AdamStatistics, AdamSteps
from traindyn.effective import ode
from traindyn.problems.clouds.laws import Law
from traindyn.problems.clouds.mixture import Mixture
from traindyn.sgd import direct

HERE = AdamStatistics(np.array(0.8), np.array(0.6), np.array(0.3))


def spread(n):
    """Mean on all coordinates."""
    return np.full(n, n**-0.5)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("law", [Law(), Law("signs")])
def test_drift_of_one_step(law, loss):
    """Mean of a step on drawn inputs, without momentum."""
    n, c = 500, 1.5
    inputs = Mixture(spread(n), law=law, precision=1.5, loss=loss)
    steps = AdamSteps(inputs, batch=2, forgetting=0.7)
    moves = moved(steps, steps.place(HERE, rng=0), c / n, 20_000, 1) - np.array(HERE)
    moves *= n / c
    drift = np.array(steps.drift(HERE, c_delta=c))
    error = moves.std(axis=0) / np.sqrt(len(moves))
    assert np.all(np.abs(moves.mean(axis=0) - drift) <= 5 * error + 20 / n)


def test_momentum_changes_nothing_in_the_limit():
    """Runs with it follow the equation that has none."""
    steps = AdamSteps(Mixture(spread(1000)), batch=2, momentum=0.8)
    seen = direct.run_replicas(
        steps,
        [1.0],
        step_size=1e-3,
        replicas=40,
        rng=0,
        start=lambda generator: steps.place(HERE, rng=generator),
    )
    limit = ode.solve(steps, HERE, [1.0], c_delta=1.0)
    for part, expected in zip(seen.statistics, limit.statistics, strict=True):
        assert abs(part.mean() - expected[0]) < 5 * part.std() / np.sqrt(40) + 0.01


def test_starts_at_rest():
    """First moments zero, second moments one."""
    start = AdamSteps(Mixture(spread(64))).initial(rng=0)
    assert np.all(start.first == 0.0)
    assert np.all(start.second == 1.0)
    assert 0.4 < np.sum(start.w**2) < 1.8


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"batch": 0}, "batch"),
        ({"momentum": 1.0}, "momentum must be less than 1"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"forgetting": 101.0}, "at most the dimension 100"),
        ({"inputs": Mixture(np.eye(9)[0])}, "fourth powers"),
    ],
)
def test_refuses_bad_fields(fields, match):
    """The field is named."""
    with pytest.raises(ValueError, match=match):
        AdamSteps(**{"inputs": Mixture(spread(100)), **fields})
