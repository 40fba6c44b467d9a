"""Tests of the matches between spikes and super-critical steps."""

import numpy as np
import pytest

from companion.catapults.sgd.matching import history, match, snapshots
from traindyn.catapults import TwoLayerModel, critical_step, train
from traindyn.catapults.batches import batch_order


@pytest.fixture(scope="module")
def problem():
    """Two dozen examples, and a network."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((24, 5))
    return x, np.sign(x[:, 0]), TwoLayerModel.initial(300, 5, rng=rng)


def recorded(problem, kind, ratio, steps=40, seed=7):
    """A run with its batches and its history."""
    x, y, start = problem
    model = TwoLayerModel(start, kind)
    eta = ratio * critical_step(model, start, model.prepare(x))
    run = train(model, start, x, y, step_size=eta, steps=steps, batch_size=6, track=True,
                leading=1, observe=snapshots(model, x, y), rng=seed)  # fmt: skip
    return run, batch_order(24, 6, steps, rng=seed), history(run)


def test_batches_are_those_that_training_draws(problem):
    """What training records itself comes out."""
    run, batches, found = recorded(problem, "network", 0.9)
    np.testing.assert_array_equal(run.batches, batches)
    np.testing.assert_allclose(found.critical_steps, run.critical_steps, rtol=1e-9)
    np.testing.assert_allclose(found.leading_losses, run.leading_losses, rtol=1e-8)
    np.testing.assert_allclose(found.kernel_norms, run.kernel_norms, rtol=1e-9)


def test_an_incomplete_batch_is_dropped():
    """An epoch has no example twice, and every batch is full."""
    order = batch_order(7, 3, 5, rng=0)
    for epoch in (order[:2], order[2:4]):
        assert len(set(epoch.ravel())) == 6
    assert order.shape == (5, 3)


def test_a_linear_model_does_what_is_predicted(problem):
    """And the loss of its batches rises in super-critical steps only."""
    _, _, found = recorded(problem, "linear", 0.75)
    np.testing.assert_allclose(found.predicted, found.losses[1:], rtol=1e-9)
    assert found.supercritical.any() and not found.supercritical.all()
    assert not (found.batch_spikes() & ~found.supercritical).any()
    assert (found.spikes() & ~found.supercritical).any()
    _, _, network = recorded(problem, "network", 1.2)
    assert np.abs(network.predicted / network.losses[1:] - 1).max() > 1e-3


def test_history_agrees_with_a_direct_count(problem):
    """Two steps of a network."""
    run, batches, found = recorded(problem, "network", 1.2)
    for t in (0, 17):
        residuals, kernel = run.observed[t][:, 0], run.observed[t][:, 1:]
        after = run.observed[t + 1][:, 0]
        assert found.batch_before[t] == pytest.approx(np.mean(residuals[batches[t]] ** 2))
        assert found.batch_after[t] == pytest.approx(np.mean(after[batches[t]] ** 2))
        top = np.linalg.eigh(kernel)[1][:, -1] @ residuals
        assert found.leading_losses[t] == pytest.approx(top**2 / residuals.size)
        rise = found.leading_losses[t + 1] - found.leading_losses[t]
        rest = found.losses[t + 1] - found.losses[t] - rise
        assert found.leading_shares([t])[0] == pytest.approx(rise / (abs(rise) + abs(rest)))
    ratios = found.kernel_ratios([0, 38], wait=3)
    norms = found.kernel_norms
    np.testing.assert_allclose(ratios, [norms[3] / norms[0], norms[40] / norms[38]])
    assert found.spikes(1.0).sum() >= found.spikes(1.5).sum()


def test_a_run_that_diverges_has_a_history(problem):
    """Up to the last step that led somewhere."""
    run, batches, found = recorded(problem, "linear", 9.0, steps=4000)
    assert run.diverged == len(run.batches) == len(run.losses)
    assert len(found.predicted) == run.diverged - 1
    np.testing.assert_allclose(found.predicted, run.losses[1:], rtol=1e-9)
    np.testing.assert_array_equal(run.batches, batches[: run.diverged])


def test_several_outputs_take_the_rows_of_their_input():
    """A linear model of two outputs."""

    class Two:
        """Two outputs, linear in the weights."""

        def prepare(self, inputs):
            """Nothing to prepare."""
            return (np.asarray(inputs, float),)

        def outputs(self, weights, batch):
            """Linear."""
            return batch[0] @ weights[0]

        def gradient(self, weights, batch, labels):
            """Of half the sum of squares."""
            residuals = self.outputs(weights, batch) - labels
            return residuals, (batch[0].T @ residuals,)

        def descend(self, weights, gradient, size):
            """Down the gradient."""
            return (weights[0] - size * gradient[0],)

        def tangent_kernel(self, weights, batch):
            """Constant."""
            return np.kron(batch[0] @ batch[0].T, np.eye(2))

    rng = np.random.default_rng(0)
    x, y, model = rng.standard_normal((12, 4)), rng.standard_normal((12, 2)), Two()
    run = train(model, (np.zeros((4, 2)),), x, y, step_size=0.3, steps=9, batch_size=3,
                track=True, observe=snapshots(model, x, y), rng=1)  # fmt: skip
    found = history(run, outputs=2)
    np.testing.assert_allclose(found.critical_steps, run.critical_steps, rtol=1e-9)
    np.testing.assert_allclose(found.predicted, found.losses[1:], rtol=1e-9)


def test_rates_of_nothing_are_not_numbers():
    """They are NaN."""
    none = match([False, False], [False, False])
    assert np.isnan(none.rate) and np.isnan(none.converse) and none.expected == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: match([True], [True, False]), "one length"),
        (lambda: match([], []), "at least 1"),
        (lambda: batch_order(3, 4, 1, rng=0), "size"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    """Each by its name."""
    with pytest.raises(ValueError, match=words):
        call()


def test_runs_recorded_otherwise_are_refused(problem):
    """Also factors below one."""
    run, batches, found = recorded(problem, "network", 0.5, steps=4)
    with pytest.raises(ValueError, match="a batch for every step"):
        history(run._replace(batches=batches[:0]))
    with pytest.raises(ValueError, match="outputs must be those of the run"):
        history(run, outputs=24)
    with pytest.raises(ValueError, match="recorded at every step"):
        history(run._replace(steps=2 * run.steps))
    with pytest.raises(ValueError, match="factor"):
        found.spikes(0.5)
