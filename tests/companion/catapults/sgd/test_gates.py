"""Tests of networks with a fixed second layer."""

import numpy as np
import pytest
from scipy import stats

from companion.catapults.sgd.gates import critical_probability, gate_orbit, train_one_by_one


def test_steps_agree_with_those_of_the_weights():
    """Gradient descent on the weights themselves."""
    rng = np.random.default_rng(0)
    x, y, order = rng.standard_normal((5, 3)), rng.standard_normal(5), [0, 3, 3, 1, 4, 0]
    run = train_one_by_one(x, y, order, width=40, step_size=0.6, rng=9)
    again = np.random.default_rng(9)
    w = again.standard_normal((40, 3))
    a = np.where(again.random(40) < 0.5, 1.0, -1.0)
    for t, j in enumerate([*order, 0]):
        z = x @ w.T
        residuals = np.maximum(z, 0) @ a / np.sqrt(40) - y
        assert run.losses[t] == pytest.approx(np.mean(residuals**2))
        kernel = [sum((a * (zi > 0)) ** 2) * (xi @ xi) / 40 for zi, xi in zip(z, x)]
        np.testing.assert_allclose(run.kernels[t], kernel)
        if t < len(order):
            gradient = 2 * residuals[j] * np.outer(a * (z[j] > 0), x[j]) / np.sqrt(40)
            w = w - 0.6 * gradient


def test_a_batch_is_super_critical_as_often_as_said():
    """Independent gates: the inputs are orthogonal."""
    kernels = np.concatenate([
        train_one_by_one(2 * np.eye(100), np.ones(100), [], width=25, step_size=1.0,
                         rng=seed).kernels[0]
        for seed in range(100)
    ])  # fmt: skip
    for eta in (0.4, 0.5, 0.6):
        expected = float(critical_probability(eta, width=25, square=4.0))
        hits = int(np.sum(eta * kernels > 1))
        assert stats.binomtest(hits, kernels.size, expected).pvalue > 1e-6


@pytest.mark.parametrize("eta", [1.2, 2.6, 4.0])
def test_wide_networks_follow_the_limit(eta):
    """To a few over the root of the width."""
    m = 400_000
    run = train_one_by_one([[1.0]], [-0.02 * m**0.5], [0] * 25, width=m, step_size=eta, rng=1)
    limit = gate_orbit(0.02, step_size=eta, steps=25)
    assert np.abs(run.kernels[:, 0] - limit.kernels).max() < 0.02
    assert np.all(np.diff(limit.kernels) <= 0)


def test_gates_close_until_the_step_is_below_the_critical_one():
    """Whatever the step size above two."""
    for eta in (2.2, 3.0, 4.0):
        assert gate_orbit(1e-3, step_size=eta, steps=300).kernels[-1] <= 1 / eta
    assert gate_orbit(1e-3, step_size=1.9, steps=300).kernels[-1] > 0.499


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: train_one_by_one(np.eye(2), [1, 1], [2], width=3, step_size=1, rng=0), "order"),
        (lambda: train_one_by_one(np.eye(2), [1], [0], width=3, step_size=1, rng=0), "labels"),
        (lambda: critical_probability([0.0], width=3, square=1), "step_size"),
        (lambda: gate_orbit(np.nan, step_size=1, steps=1), "residual"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    """Each by its name."""
    with pytest.raises(ValueError, match=words):
        call()


def test_a_loss_that_overflows_is_an_error():
    """Not a NaN."""
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(FloatingPointError):
        train_one_by_one([[1.0]], [1e200], [0], width=9, step_size=1.0, rng=0)
