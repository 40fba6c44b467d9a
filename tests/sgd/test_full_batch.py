"""Full-batch gradient descent: the recursion, restarts, workers, null branch."""

import os
from dataclasses import replace

import numpy as np
import pytest

from traindyn.activations import GELU, IDENTITY, QUADRATIC, RELU, TANH, softplus
from traindyn.gaussian import gauss_hermite
from traindyn.problems.multi_index import (
    SQUARED,
    Data,
    MultiIndex,
    cauchy,
    half_spaces,
    log_cosh,
    logistic,
    pseudo_huber,
    two_layer_teacher,
)
from traindyn.sgd import full_batch

ACTIVATIONS = (GELU, QUADRATIC, TANH, IDENTITY, RELU, softplus(3.0))
LOSSES = (SQUARED, pseudo_huber(0.7), log_cosh(), cauchy(), logistic())

WIDE = MultiIndex(
    two_layer_teacher((1.0, -0.5)),
    activation=TANH,
    loss=pseudo_huber(0.7),
    second_layer=(1.0, -2.0, 0.5),
    biases=(0.3, 0.0, -0.2),
)


def written_out(problem, data, theta, steps, eta):
    """The recursion by one difference quotient per step and coordinate."""

    def risk(point):
        hidden = problem.activation.value(data.inputs @ point + problem.biases)
        predictions = hidden @ problem.second_layer / problem.width
        return problem.loss.value(data.labels, predictions).mean()

    for _ in range(steps):
        gradient = np.empty_like(theta)
        for index in np.ndindex(theta.shape):
            shift = np.zeros_like(theta)
            shift[index] = 1e-5
            gradient[index] = (risk(theta + shift) - risk(theta - shift)) / 2e-5
        theta = theta - eta * gradient
    return theta


@pytest.mark.parametrize(
    "problem", [MultiIndex(), WIDE, MultiIndex(half_spaces(2), loss=logistic())]
)
def test_steps_descend_the_mean_loss(problem):
    """Against difference quotients of the risk; the sum instead of the mean is rejected."""
    data, theta = problem.sample(40, 5, rng=0), problem.initial(5, rng=1)
    found = full_batch.run(problem, data, theta, [0.0, 2.0], step_size=0.5)
    expected = written_out(problem, data, theta, 4, 0.5)
    np.testing.assert_allclose(found.neurons, expected, atol=1e-8)
    assert np.abs(written_out(problem, data, theta, 4, 0.5 * 40) - found.neurons).max() > 0.1
    assert found.step == 4


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_compiled_loop_equals_matrix_products(activation, loss):
    """Every pair of functions, 8 k + 3 rows, several neurons; unknown functions go by NumPy."""
    problem = MultiIndex(
        half_spaces(2),
        activation=activation,
        loss=loss,
        second_layer=(1.0, -2.0, 0.5),
        biases=(0.3, 0.0, -0.2),
    )
    custom = replace(problem, activation=replace(activation, kind=""))
    data, theta = problem.sample(515, 9, rng=0), problem.initial(9, rng=1)
    ends = []
    for each in (problem, custom):
        run = full_batch.run(each, data, theta, [0.5, 1.0], step_size=0.5)
        ends.append((run.neurons, run.trajectory.statistics.train_loss))
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-11)


def test_many_neurons_go_by_matrix_products():
    """More neurons than the loop takes: one step against the formula."""
    problem = MultiIndex(second_layer=np.ones(12))
    data, theta = problem.sample(50, 6, rng=0), problem.initial(6, rng=1)
    force = problem.force(data.inputs @ theta, data.labels)[1]
    found = full_batch.run(problem, data, theta, [0.5], step_size=0.5).neurons
    np.testing.assert_allclose(found, theta - 0.5 / 50 * data.inputs.T @ force, atol=1e-15)


def test_statistics_are_those_of_the_neurons():
    """Overlaps, products and both losses at every recorded time."""
    data, theta = WIDE.sample(100, 8, rng=0), WIDE.initial(8, rng=1)
    rule = gauss_hermite(5, 6)
    found = full_batch.run(
        WIDE, data, theta, [0.0, 1.0, 4.0], step_size=0.5, snapshots=True, rule=rule
    )
    path = found.trajectory
    neurons = path.snapshots.neurons
    np.testing.assert_array_equal(neurons[0], theta)
    np.testing.assert_array_equal(neurons[-1], found.neurons)
    for i, point in enumerate(neurons):
        np.testing.assert_allclose(path.statistics.overlap[i], point[:2].T)
        np.testing.assert_allclose(path.statistics.gram[i], point.T @ point)
        losses = WIDE.loss.value(data.labels, WIDE.predict(data.inputs @ point))
        assert path.statistics.train_loss[i] == pytest.approx(losses.mean())
        fresh = WIDE.population_loss(point.T @ point, point[:2].T, rule=rule)
        assert path.statistics.test_loss[i] == pytest.approx(fresh)
    assert path.step_size == 0.5 and path.stopped == np.inf


def test_blocks_workers_and_precision(monkeypatch):
    """Workers change no bit; many blocks and single precision only the rounding."""
    problem, d, n = MultiIndex(), 60, 700
    data, theta = problem.sample(n, d, rng=0), problem.initial(d, rng=1)

    def end(given=data, workers=1):
        run = full_batch.run(problem, given, theta, [10.0], step_size=0.5, workers=workers)
        return run.neurons

    whole = end()
    monkeypatch.setattr(full_batch, "_BLOCK_BYTES", 100 * d * 8)
    blocked = end()
    np.testing.assert_array_equal(blocked, end(workers=3))
    np.testing.assert_allclose(blocked, whole, atol=1e-13)
    narrow = end(Data(data.inputs.astype(np.float32), data.labels.astype(np.float32)))
    assert 0 < np.abs(narrow - whole).max() < 2e-6


def test_runs_go_on_where_they_ended():
    """In two parts by hand: the same numbers as in one."""
    problem = MultiIndex()
    data, theta = problem.sample(200, 20, rng=0), problem.initial(20, rng=1)
    whole = full_batch.run(problem, data, theta, [2.0, 5.0, 10.0], step_size=0.5)
    first = full_batch.run(problem, data, theta, [2.0, 5.0], step_size=0.5)
    second = full_batch.run(
        problem, data, first.neurons, [10.0], step_size=0.5, first_step=first.step
    )
    np.testing.assert_array_equal(second.neurons, whole.neurons)
    assert second.step == whole.step == 20
    with pytest.raises(ValueError, match="times must not be before step 10, got step 4"):
        full_batch.run(problem, data, first.neurons, [2.0], step_size=0.5, first_step=10)


def test_interrupted_runs_resume_from_their_checkpoint(tmp_path):
    """Interrupted after 13 of 30 steps, resumed at 10, bit for bit; no temporary file left."""
    problem, store = MultiIndex(), tmp_path / "deep" / "state.npz"
    data, theta = problem.sample(200, 20, rng=0), problem.initial(20, rng=1)
    options = {"step_size": 0.5, "snapshots": True}
    times = [0.0, 2.0, 6.0, 15.0]
    whole = full_batch.run(problem, data, theta, times, **options)

    class Interrupted(Exception):
        pass

    def interrupt(done, total):
        if done == 13:
            raise Interrupted

    options.update(checkpoint=store, checkpoint_every=5)
    with pytest.raises(Interrupted):
        full_batch.run(problem, data, theta, times, progress=interrupt, **options)
    assert os.listdir(store.parent) == ["state.npz"]
    seen = []
    resumed = full_batch.run(
        problem, data, theta, times, progress=lambda done, total: seen.append(done), **options
    )
    assert seen[0] == 11
    np.testing.assert_array_equal(resumed.neurons, whole.neurons)
    for name in whole.trajectory.statistics._fields:
        np.testing.assert_array_equal(
            getattr(resumed.trajectory.statistics, name),
            getattr(whole.trajectory.statistics, name),
        )
    np.testing.assert_array_equal(
        resumed.trajectory.snapshots.neurons, whole.trajectory.snapshots.neurons
    )
    again = full_batch.run(problem, data, theta, times, **options)
    np.testing.assert_array_equal(again.neurons, whole.neurons)
    with pytest.raises(ValueError, match="checkpoint must belong to the same problem"):
        full_batch.run(problem, data, theta, times, step_size=0.25, checkpoint=store)


def test_null_branch_stays_null():
    """Hard components are zero for ever; the easy ones move as they would."""
    problem = MultiIndex(two_layer_teacher((1.0, 1.0)), second_layer=(1.0, 2.0))
    hard = np.array([[np.sqrt(0.5)], [-np.sqrt(0.5)]])
    data, theta = problem.sample(300, 30, rng=0), problem.initial(30, rng=1)
    found = full_batch.run(
        problem, data, theta, [0.0, 1.0, 5.0], step_size=0.5, null=hard, snapshots=True
    )
    overlap = found.trajectory.statistics.overlap
    assert np.abs(overlap @ hard).max() < 1e-14
    assert np.abs(overlap[-1] @ [1.0, 1.0]).min() > 0.3
    # One step is the projection of the free step.
    free = full_batch.run(
        problem, data, found.trajectory.snapshots.neurons[0], [0.5], step_size=0.5
    )
    free.neurons[:2] -= hard @ (hard.T @ free.neurons[:2])
    once = full_batch.run(problem, data, theta, [0.5], step_size=0.5, null=hard)
    np.testing.assert_allclose(once.neurons, free.neurons, atol=1e-14)


@pytest.mark.parametrize("null", [None, np.eye(2)[:, 1:]], ids=["free", "on a branch"])
def test_stretches_of_steps_are_those_steps(null):
    """Many steps in one call, to the last bit the steps of a run that records every one."""
    problem = WIDE
    data, theta = problem.sample(203, 12, rng=0), problem.initial(12, rng=1)
    options = {"step_size": 0.5, "null": null}
    far = full_batch.run(problem, data, theta, [0.0, 60.0, 75.0], **options)
    each = full_batch.run(problem, data, theta, np.arange(151) / 2, **options)
    np.testing.assert_array_equal(far.neurons, each.neurons)
    chosen = [0, 120, 150]
    for ours, theirs in zip(far.trajectory.statistics, each.trajectory.statistics, strict=True):
        np.testing.assert_array_equal(ours, theirs[chosen])
    assert np.abs(far.neurons - theta).max() > 0.1


def test_stretches_of_steps_stop_in_time():
    """At the step at which a criterion of the caller, asked at every step, stops the run."""
    data, theta = MultiIndex().sample(1200, 60, rng=0), MultiIndex().initial(60, rng=1)

    def asked(overlap, gram):
        return bool(np.any((overlap**2).sum(axis=1) > 0.25 * np.diag(gram)))

    found, expected, later = (
        full_batch.run(MultiIndex(), data, theta, [0.0, 150.0], step_size=0.5, stop=stop)
        for stop in (full_batch.learnt(), asked, full_batch.learnt(0.6))
    )
    assert 1 < found.step < 300
    assert found.step == expected.step < later.step
    np.testing.assert_array_equal(found.neurons, expected.neurons)


def test_stopped_replicas_repeat_what_they_had():
    """Success at delta = 20 and failure at delta = 1.5, and the time of success."""
    options = {"dimension": 60, "step_size": 0.5, "replicas": 8, "rng": 0}
    times = [0.0, 50.0, 150.0]
    runs = full_batch.run_replicas(
        MultiIndex(), times, samples=1200, stop=full_batch.learnt(), **options
    )
    cosines = runs.statistics.overlap[:, -1, 0, 0] ** 2 / runs.statistics.gram[:, -1, 0, 0]
    stopped = np.isfinite(runs.stopped)
    assert stopped.sum() >= 7
    assert np.all((cosines > 0.25) == stopped)
    assert np.all(cosines[stopped] < 0.5)
    few = full_batch.run_replicas(
        MultiIndex(), times, samples=90, stop=full_batch.learnt(), workers=2, **options
    )
    assert np.isfinite(few.stopped).sum() <= 3
    alone = full_batch.run_replicas(
        MultiIndex(), times, samples=90, stop=full_batch.learnt(), **options
    )
    np.testing.assert_array_equal(few.statistics.gram, alone.statistics.gram)


def test_gradients_lie_in_the_span_of_the_inputs():
    """X^T F is n times the difference of iterates: the identity behind MW, Gaussian conditioning.

    P_F X P_Theta^perp vanishes, with F the forces so far and Theta the iterates and directions.
    """
    problem, d, n, eta = MultiIndex(), 40, 160, 0.5
    data, theta = problem.sample(n, d, rng=0), problem.initial(d, rng=1)
    path = full_batch.run(
        problem, data, theta, eta * np.arange(5), step_size=eta, snapshots=True
    ).trajectory
    points = path.snapshots.neurons[:, :, 0].T
    forces = np.stack(
        [problem.force(data.inputs @ p[:, None], data.labels)[1][:, 0] for p in points.T[:-1]], 1
    )
    theta_space = np.linalg.qr(np.hstack([points, np.eye(d)[:, :1]]))[0]
    force_space = np.linalg.qr(forces)[0]
    inside = force_space.T @ data.inputs
    rest = inside - inside @ theta_space @ theta_space.T
    assert np.linalg.norm(rest) < 1e-10 < 1 < np.linalg.norm(inside)
    # The control: without the last iterate the identity fails.
    short = np.linalg.qr(np.hstack([points[:, :-1], np.eye(d)[:, :1]]))[0]
    assert np.linalg.norm(inside - inside @ short @ short.T) > 0.1


def test_divergence_names_the_step_size():
    """Where a record falls, and where none does."""
    problem = MultiIndex(activation=QUADRATIC, loss=SQUARED)
    data, theta = problem.sample(100, 10, rng=0), problem.initial(10, rng=1)
    for times in ([20.0 * i for i in range(20)], [4000.0]):
        with pytest.raises(FloatingPointError, match=r"step_size must be small enough .* got 2"):
            full_batch.run(problem, data, theta, times, step_size=2.0)


def test_requests_that_make_no_sense_are_refused():
    """Each message names the argument."""
    problem = MultiIndex()
    data, theta = problem.sample(20, 4, rng=0), problem.initial(4, rng=1)

    def call(given=data, start=theta, **changes):
        return full_batch.run(problem, given, start, [1.0], **{"step_size": 0.5, **changes})

    for request, message in (
        (lambda: call(step_size=0.0), "step_size must be positive"),
        (lambda: call(start=theta[:3]), r"start must have shape \(4, 1\), got \(3, 1\)"),
        (lambda: call(null=[[2.0]]), "null must have orthonormal columns"),
        (lambda: call(workers=0), "workers must be an integer >= 1"),
        (lambda: call(Data(data.inputs, data.labels[:-1])), r"labels \(n,\)"),
        (lambda: call(Data(data.inputs, data.labels.astype("f4"))), "throughout, got float64 and"),
        (lambda: call(Data(data.inputs, data.labels * np.nan)), "data.labels must be finite"),
        (lambda: full_batch.learnt(1.0), "level must be below 1"),
    ):
        with pytest.raises(ValueError, match=message):
            request()
