"""Kernels of a run against difference quotients, against theory, and their structure."""

import numpy as np
import pytest

from companion.phase_transitions.mean_field import measure
from traindyn.activations import RELU, TANH
from traindyn.dmft import solve
from traindyn.problems.multi_index import MultiIndex, pseudo_huber, two_layer_teacher
from traindyn.sgd import full_batch

PAIR = MultiIndex(two_layer_teacher((1.0, 1.0)), second_layer=(1.0, 2.0))
WIDE = MultiIndex(
    two_layer_teacher((1.0, -0.5)),
    activation=TANH,
    loss=pseudo_huber(0.7),
    second_layer=(1.0, -2.0, 0.5),
    biases=(0.3, 0.0, -0.2),
)


@pytest.fixture(scope="module")
def wide():
    """Three neurons in 40 dimensions, and what is measured on them."""
    data, start = WIDE.sample(120, 40, rng=0), WIDE.initial(40, rng=1)
    return data, start, measure(WIDE, data, start, 5, step_size=0.7, probes=[0, 2], rng=2)


def test_the_run_is_gradient_descent(wide):
    """Products of neurons and averages of forces, from the independent simulator."""
    data, start, found = wide
    times = 0.7 * np.arange(6)
    run = full_batch.run(WIDE, data, start, times, step_size=0.7, snapshots=True)
    path = run.trajectory.snapshots.neurons
    np.testing.assert_allclose(found.correlation[4, 1], path[4].T @ path[1], atol=1e-12)
    np.testing.assert_allclose(found.overlap, run.trajectory.statistics.overlap, atol=1e-12)
    np.testing.assert_allclose(found.preactivations[3], data.inputs @ path[3], atol=1e-12)
    force = WIDE.force(data.inputs @ path[5], data.labels)[1]
    np.testing.assert_allclose(found.force_correlation[5, 5], force.T @ force / 120, atol=1e-12)


def test_responses_are_those_of_pushed_runs(wide):
    """Central differences of whole runs, to 1e-7; the other probe is the control."""
    data, start, found = wide
    generator = np.random.default_rng(2)
    fields = generator.choice([-1.0, 1.0], size=(120, 2, 3))
    pushes = generator.choice([-1.0, 1.0], size=(40, 2, 3)) / np.sqrt(40)
    step = 1e-5

    def forces_and_neurons(probe, size, of_neurons):
        theta, forces, path = start.copy(), [], []
        for t in range(6):
            u = data.inputs @ theta
            if t == (0, 2)[probe] and not of_neurons:
                u = u + size * fields[:, probe]
            force = WIDE.force(u, data.labels)[1]
            forces.append(force)
            path.append(theta)
            theta = theta - 0.7 / 120 * data.inputs.T @ force
            if t == (0, 2)[probe] and of_neurons:
                theta = theta + size * pushes[:, probe]
        return np.array(forces), np.array(path)

    for probe in (0, 1):
        up, down = (forces_and_neurons(probe, e, False)[0] for e in (step, -step))
        quotient = (up - down) / (2 * step)
        expected = np.einsum("tnj,nl->tjl", quotient, fields[:, probe]) / 120
        np.testing.assert_allclose(found.force_response[:, probe], expected, atol=1e-7)
        assert not np.allclose(found.force_response[:, 1 - probe], expected, atol=1e-2)
        up, down = (forces_and_neurons(probe, e, True)[1] for e in (step, -step))
        expected = np.einsum("tdj,dl->tjl", (up - down) / (2 * step), pushes[:, probe])
        np.testing.assert_allclose(found.response[:, probe], expected, atol=1e-7)
        assert not np.allclose(found.response[:, 1 - probe], expected, atol=1e-2)


def test_against_theory():
    """Two neurons, d = 300: mean of 20 runs, as in the test of the recursion itself.

    Kernels are averages over samples and over coordinates (MW, Law of the preactivations).
    Each entry within 8 standard errors and an allowance of 0.02 for 1/d; half the delta
    (control) is rejected.
    """
    d, delta, eta, steps = 300, 4.0, 1.0, 5
    runs = []
    for seed in range(20):
        data, start = PAIR.sample(int(delta * d), d, rng=seed), PAIR.initial(d, rng=100 + seed)
        runs.append(measure(PAIR, data, start, steps, step_size=eta, probes=[0, 2], rng=seed))

    def far(wanted):
        theory = solve(PAIR, steps, sample_ratio=wanted, step_size=eta, rng=0, paths=8192).kernels
        worst = 0.0
        for name in ("correlation", "force_correlation", "response", "force_response"):
            values = np.array([getattr(run, name) for run in runs])
            expected = getattr(theory, name)
            if "response" in name:
                expected = expected[:, [0, 2]]
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            gap = np.abs(values.mean(axis=0) - expected)
            worst = max(worst, np.max(gap / (8 * error + 0.02)))
        return worst

    assert far(delta) < 1
    assert far(delta / 2) > 1


def test_structure(wide):
    """Causality, and what the first response after a push is."""
    data, start, found = wide
    assert not found.response[:3, 1].any() and not found.force_response[:2, 1].any()
    np.testing.assert_allclose(np.diagonal(found.response[3, 1]), 1.0)
    alone = MultiIndex()
    single = measure(
        alone, alone.sample(90, 30, rng=3), start[:30, :1], 2, step_size=0.5, probes=[1], rng=4
    )
    weights = alone.hessian_weights(single.preactivations[1], alone.sample(90, 30, rng=3).labels)
    np.testing.assert_allclose(single.force_response[1, 0], weights.mean(axis=0))
    bare = measure(WIDE, data, start, 5, step_size=0.7)
    assert bare.response.shape == (6, 0, 3, 3)
    np.testing.assert_array_equal(bare.correlation, found.correlation)


def test_requests_that_make_no_sense_are_refused(wide):
    """Each message names the argument and the allowed range."""
    data, start, _ = wide
    good = {"step_size": 0.5}

    def call(problem=WIDE, begin=start, steps=2, **changes):
        return measure(problem, data, begin, steps, **{**good, **changes})

    kinked = MultiIndex(activation=RELU)
    for request, message in (
        (lambda: call(steps=-1), "steps must be an integer"),
        (lambda: call(step_size=0.0), "step_size must be positive"),
        (lambda: call(probes=[1]), "rng must be given with probes"),
        (lambda: call(probes=[2]), r"probes must be an integer in \[0, 1\], got 2"),
        (lambda: call(begin=start[:5]), "start must have shape"),
        (lambda: call(kinked, start[:, :1], probes=[0], rng=0), "second derivative for responses"),
    ):
        with pytest.raises(ValueError, match=message):
            request()
    assert measure(kinked, data, start[:, :1], 1, step_size=0.5).overlap.shape == (2, 1, 1)
