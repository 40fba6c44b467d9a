"""Step sizes that change on the way."""

import numpy as np
import pytest

from companion.catapults.gradient_descent import RepeatedCatapults
from companion.catapults.sgd.schedules import triangular
from traindyn import catapults
from traindyn.catapults import TrainingState, TwoLayerModel, Weights, step_sizes

X = np.random.default_rng(0).standard_normal((6, 4))
Y = np.random.default_rng(1).standard_normal(6)


def named(step_size, steps=4):
    """Step sizes that a description names, step by step."""
    rule = step_sizes(step_size, steps)
    return [rule(TrainingState(t, [], [], None)) for t in range(steps)]


def test_descriptions_agree():
    """A constant, a list, an array and a rule of the same step sizes."""
    assert named(0.5) == named([(0, 0.5)]) == named(np.full(4, 0.5)) == [0.5] * 4
    assert named([(0, 1.0), (3, 2.0)]) == [1.0, 1.0, 1.0, 2.0]
    assert named(lambda state: 1.0 + state.step) == [1.0, 2.0, 3.0, 4.0]
    assert named(np.float64(0.5)) == [0.5] * 4


def test_triangle():
    """Piecewise linear, of the period, between the bounds."""
    rates = triangular(0.5, 2.0, period=10, steps=35)
    assert rates.min() == 0.5 and rates.max() == 2.0
    np.testing.assert_allclose(rates[10:30], rates[:20], atol=1e-15)
    np.testing.assert_allclose(np.abs(np.diff(rates)), 0.3, atol=1e-12)


def test_repeated_catapults_of_a_network():
    """Three spikes, each at a larger step size; the last one diverges from the start."""
    start = TwoLayerModel.initial(2000, 4, rng=2)
    model = TwoLayerModel(start)
    rule = RepeatedCatapults(3, ratio=1.5, wait=20)
    run = catapults.train(model, start, X, Y, step_size=rule, steps=600, leading=1)
    assert run.diverged is None
    rates, at = np.unique(run.step_sizes, return_index=True)
    assert len(rates) == 3 and np.all(np.diff(at) > 20)
    for begin, end in zip(at, [*at[1:], 600]):
        part = run.losses[begin:end]
        assert part.max() > 2 * part[0] and part[-1] < part[0]
    direct = catapults.train(model, start, X, Y, step_size=rates[-1] * 1.5, steps=600)
    assert direct.diverged is not None


def test_rule_waits_and_ends():
    """Not before the wait is over, capped, and down after the last catapult."""
    rule = RepeatedCatapults(2, ratio=1.5, wait=2, most_increase=1.2, end=0.5)
    losses = [1.0, 5.0, 0.9, 0.8, 0.7]
    assert rule(TrainingState(3, losses[:4], [6.0] * 3, 7.0)) == 6.0
    assert rule(TrainingState(4, losses, [6.0] * 4, 7.0)) == pytest.approx(7.2)
    assert rule(TrainingState(4, [1.0, 5.0, 0.9, 1.1, 0.7], [6.0] * 4, 7.0)) == 6.0
    assert rule(TrainingState(4, [1.0, 1.5, 0.9, 0.8, 0.7], [6.0] * 4, 7.0)) == 6.0
    later = [*losses, 9.0, 0.6, 0.5, 0.4]
    assert rule(TrainingState(8, later, [6.0] * 4 + [7.2] * 4, 8.0)) == 4.0
    ended = [*later, 0.3, 0.2, 9.0, 0.1, 0.1, 0.1]
    assert rule(TrainingState(14, ended, [6.0] * 4 + [7.2] * 4 + [4.0] * 6, 9.0)) == 4.0


def test_observations():
    """What is observed stands at the steps of the losses."""
    start = TwoLayerModel.initial(20, 4, rng=3)
    run = catapults.train(
        TwoLayerModel(start), start, X, Y, step_size=0.1, steps=10, every=5,
        observe=lambda weights: [weights.second.sum(), 1.0],
    )  # fmt: skip
    assert run.observed.shape == (3, 2)
    assert run.observed[0, 0] == start.second.sum()
    assert run.observed[-1, 0] == run.weights.second.sum()


def test_closed_gates():
    """A network whose gates are all closed has no critical step size, and does not move."""
    first = -np.abs(TwoLayerModel.initial(20, 4, rng=5).first)
    start = Weights(first, np.ones(20))
    model = TwoLayerModel(start)
    rates = []
    options = dict(steps=2, leading=1, track=True)
    run = catapults.train(
        model, start, np.abs(X), Y, step_size=lambda now: rates.append(now.critical_step) or 1.0,
        **options,
    )  # fmt: skip
    assert rates == [np.inf, np.inf] and run.critical_steps.tolist() == rates
    np.testing.assert_array_equal(run.weights.first, first)


def test_divergence_names_its_step():
    """Also between two records, and without warnings."""
    start = TwoLayerModel.initial(20, 4, rng=4)
    run = catapults.train(TwoLayerModel(start), start, X, Y, step_size=50.0, steps=100, every=50)
    assert run.diverged is not None and 0 < run.diverged < 50
    assert run.steps.tolist() == [0] and np.all(np.isfinite(run.losses))
    assert len(run.step_sizes) == run.diverged


def test_messages():
    """Each names the argument."""
    for call, message in (
        (lambda: named(np.ones(3)), r"step_size must have shape \(4\)"),
        (lambda: named(np.array([1.0, 1.0, 0.0, 1.0])), "step_size must be positive"),
        (lambda: named([(0, 1.0), (0, 2.0)]), "go on in order"),
        (lambda: named(lambda state: -1.0), "step_size must be positive"),
        (lambda: triangular(1.0, 0.5, period=4, steps=2), "high must be at least low = 1"),
        (lambda: triangular(1.0, 2.0, period=1, steps=2), "period must be an integer >= 2"),
        (lambda: RepeatedCatapults(0), "catapults must be an integer >= 1"),
        (lambda: RepeatedCatapults(1, ratio=1.0), "ratio must be above 1"),
        (lambda: RepeatedCatapults(1)(TrainingState(1, [1.0], [1.0], None)), "needs the kernel"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
