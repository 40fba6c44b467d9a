"""Mean-field kernels against reference values, simulations and each other."""

import numpy as np
import pytest

from traindyn.activations import QUADRATIC, RELU, TANH
from traindyn.dmft import solve
from traindyn.problems.multi_index import (
    SQUARED,
    MultiIndex,
    half_spaces,
    parity,
    phase_retrieval,
    two_layer_teacher,
)
from traindyn.sgd import full_batch

STEPS = [1, 2, 5, 10, 20]


@pytest.fixture(scope="module")
def references():
    """A single GELU neuron on phase retrieval, 20 steps of 0.5."""
    return {
        delta: solve(MultiIndex(), 20, sample_ratio=delta, step_size=0.5, rng=0, keep=[5, 10, 20])
        for delta in (4.0, 8.0)
    }


@pytest.mark.parametrize(
    ("delta", "norms", "criteria", "edges", "train", "test"),
    [
        (
            4.0,
            [0.933, 0.902, 0.944, 1.188, 1.722],
            [1.288, 1.048, 0.753],
            [-0.333, -0.261, -0.183],
            [0.609, 0.523, 0.477, 0.428],
            [0.608, 0.608, 0.616, 0.642],
        ),
        (
            8.0,
            [0.928, 0.879, 0.831, 0.916, 1.200],
            [1.986, 1.798, 1.490],
            [-0.229, -0.190, -0.134],
            [0.609, 0.559, 0.531, 0.499],
            [0.608, 0.604, 0.605, 0.616],
        ),
    ],
)
def test_reference_values(references, delta, norms, criteria, edges, train, test):
    """Independent solutions, to their own accuracy: norms 1 %, P 0.06, edges 2 %, losses 1 %.

    The two deltas are each other's control.
    """
    found = references[delta]
    statistics = found.trajectory().statistics
    np.testing.assert_allclose(statistics.gram[STEPS, 0, 0], norms, rtol=0.01)
    np.testing.assert_allclose(statistics.train_loss[[0, 5, 10, 20]], train, rtol=0.01)
    np.testing.assert_allclose(statistics.test_loss[[0, 5, 10, 20]], test, rtol=0.01)
    for step, criterion, edge in zip((5, 10, 20), criteria, edges):
        assert found.statistic(step).value == pytest.approx(criterion, abs=0.06)
        assert found.hard_subspace(step).edge == pytest.approx(edge, rel=0.02)
    other = references[12.0 - delta].trajectory().statistics
    assert not np.allclose(other.gram[STEPS[2:], 0, 0], norms[2:], rtol=0.03)


def test_errors_are_small_and_returned(references):
    """Seed-to-seed errors of the norm below 0.5 %, of the criterion below 0.03."""
    found = references[8.0]
    assert found.errors is not None
    relative = found.errors.correlation[20, 20, 0, 0] / found.kernels.correlation[20, 20, 0, 0]
    assert 0 < relative < 0.005
    assert found.statistic(20).error < 0.03
    assert found.conditional_variance > 0
    alone = solve(MultiIndex(), 1, sample_ratio=2.0, step_size=0.5, rng=0, paths=1024, replicas=1)
    assert alone.errors is None and alone.trajectory().errors is None


def test_kernels_have_their_structure(references):
    """Causality, symmetry, no overlap with hard ones (MW, Hard directions), exact moments."""
    kernels = references[4.0].kernels
    c, r, r_f = (x[:, :, 0, 0] for x in (kernels[0], kernels[2], kernels[4]))
    np.testing.assert_allclose(c, c.T)
    assert np.all(np.triu(r) == 0) and np.all(np.triu(r_f, 1) == 0)
    np.testing.assert_allclose(np.diag(r, -1), 1.0)
    assert np.abs(kernels.overlap).max() < 0.01
    assert np.linalg.eigvalsh(c)[0] > -1e-6


def test_large_delta_is_gradient_flow_of_the_population():
    """No memory: V = W, and C(t, t) follows steps on the population loss.

    For one hard direction the step multiplies the neuron by 1 - eta E[G]; delta = 4 is the
    control.
    """
    problem, eta = MultiIndex(), 0.5
    steps = solve(problem, 6, sample_ratio=1e6, step_size=eta, rng=1).trajectory().statistics
    norm, expected = 1.0, [1.0]
    for _ in range(6):
        # The derivative of the loss in the squared norm is half of E[G].
        up, down = (problem.population_loss([[norm + h]], [[0.0]]) for h in (1e-4, -1e-4))
        norm *= (1 - eta * (up - down) / 1e-4) ** 2
        expected.append(norm)
    np.testing.assert_allclose(steps.gram[:, 0, 0], expected, rtol=2e-3)
    np.testing.assert_allclose(steps.train_loss, steps.test_loss, rtol=1e-3)
    control = solve(problem, 6, sample_ratio=4.0, step_size=eta, rng=1).trajectory().statistics
    assert not np.allclose(control.gram[:, 0, 0], expected, rtol=2e-2)


PAIR = MultiIndex(two_layer_teacher((1.0, 1.0)), second_layer=(1.0, 2.0))


def test_integration_by_parts_equals_the_derivative():
    """Response to the directions by two estimators, within 6 standard errors of 8 seeds.

    They are the two forms of MW, Response to the target's directions. The control, without the
    correction for overlaps, is far off.
    """
    options = {"sample_ratio": 4.0, "step_size": 1.0, "rng": 2, "paths": 4096, "replicas": 8}
    parts, gradient = (solve(PAIR, 5, star=star, **options) for star in ("parts", "gradient"))
    assert parts.errors is not None and gradient.errors is not None
    spread = np.hypot(parts.errors.force_star, gradient.errors.force_star) + 1e-4
    gap = parts.kernels.force_star - gradient.kernels.force_star
    assert np.all(np.abs(gap) < 6 * spread)
    kernels = parts.kernels
    dropped = np.einsum("tsij,sjk->tik", kernels.force_response, kernels.overlap)
    assert np.abs(dropped[5]).max() > 20 * spread[5].max()


@pytest.mark.parametrize(
    ("problem", "delta", "eta", "steps"),
    [
        (PAIR, 4.0, 1.0, 8),
        (MultiIndex(half_spaces(2), activation=TANH, second_layer=(2.0, 3.0), biases=(0.5, -0.2)),
         3.0, 1.0, 8),
        (MultiIndex(phase_retrieval(noise=1.0), loss=SQUARED, activation=TANH), 3.0, 0.4, 8),
    ],
)  # fmt: skip
def test_against_gradient_descent(problem, delta, eta, steps):
    """Two neurons, easy directions (MW, Easy directions), jumps, noise: d = 300, mean of 24 runs.

    Overlaps, products and losses (MW, Training and test loss) are those of the recursion (MW,
    Dynamical mean field equations).

    Each of at most 90 entries within 8 standard errors (false alarm 4e-6 in all, by Student's
    law) and an allowance of 0.01 for 1/d; half the delta (control) is rejected.
    """
    d, replicas = 300, 24
    times = eta * np.arange(steps + 1)
    runs = full_batch.run_replicas(
        problem,
        times,
        dimension=d,
        samples=int(delta * d),
        step_size=eta,
        replicas=replicas,
        rng=5,
    )

    def far(wanted):
        theory = solve(problem, steps, sample_ratio=wanted, step_size=eta, rng=0, paths=8192)
        mean, error = runs.mean().statistics, runs.standard_error()
        worst = 0.0
        for name in ("overlap", "gram", "train_loss", "test_loss"):
            gap = getattr(mean, name) - getattr(theory.trajectory().statistics, name)
            worst = max(worst, np.max(np.abs(gap) / (8 * getattr(error, name) + 0.01)))
        return worst

    assert far(delta) < 1
    assert far(delta / 2) > 1


def test_fresh_samples_at_every_step():
    """One-pass descent, d = 300, mean of 40 runs; the theory of one data set is the control.

    Each entry within 8 standard errors and an allowance of 0.01 for 1/d.
    """
    d, delta, eta, steps = 300, 4.0, 1.0, 8

    def one(seed):
        rng = np.random.default_rng(seed)
        theta, records = PAIR.initial(d, rng=rng), []
        for _ in range(steps + 1):
            x, y = PAIR.sample(int(delta * d), d, rng=rng)
            prediction, force = PAIR.force(x @ theta, y)
            loss = PAIR.loss.value(y, prediction).mean()
            records.append(np.r_[(theta.T @ theta).ravel(), theta[:2].T.ravel(), loss])
            theta = theta - eta / len(y) * x.T @ force
        return np.array(records)

    runs = np.array([one(seed) for seed in range(40)])
    allowance = 8 * runs.std(axis=0, ddof=1) / np.sqrt(40) + 0.01

    def far(fresh):
        found = solve(
            PAIR, steps, sample_ratio=delta, step_size=eta, rng=0, paths=8192, fresh=fresh
        )
        u = found.trajectory().statistics
        columns = [u.gram.reshape(-1, 4), u.overlap.reshape(-1, 4), u.train_loss[:, None]]
        return np.max(np.abs(runs.mean(axis=0) - np.hstack(columns)) / allowance)

    assert far(True) < 1
    assert far(False) > 1
    found = solve(
        PAIR, 2, sample_ratio=delta, step_size=eta, rng=0, paths=1024, fresh=True, moments=True
    )
    np.testing.assert_array_equal(found.kernels.train_loss, found.kernels.test_loss)
    assert not found.kernels.force_response[2, :2].any()
    assert found.moments is not None and not found.moments.force_correlation[2, 0].any()


def test_departures():
    """Without memory V = W; less noise lowers the first product of neurons by its share."""
    options = {"sample_ratio": 4.0, "step_size": 0.5, "rng": 0, "paths": 1024}
    right, deaf, quiet = (
        solve(MultiIndex(), 2, **options, **departure).kernels
        for departure in ({}, {"memory": 0.0}, {"noise": 0.9})
    )
    np.testing.assert_array_equal(deaf.train_loss, deaf.test_loss)
    assert right.train_loss[1] < right.test_loss[1]
    lost = right.correlation[1, 1, 0, 0] - quiet.correlation[1, 1, 0, 0]
    share = 0.1 * 0.5**2 / 4.0 * right.force_correlation[0, 0, 0, 0]
    np.testing.assert_allclose(lost, share, rtol=1e-9)


def test_same_seed_same_numbers():
    """Whatever the number of workers; other seeds give other numbers."""
    options = {"sample_ratio": 4.0, "step_size": 0.5, "paths": 1024}
    first = solve(MultiIndex(), 3, rng=3, **options).kernels
    second = solve(MultiIndex(), 3, rng=3, workers=2, **options).kernels
    third = solve(MultiIndex(), 3, rng=4, **options).kernels
    np.testing.assert_array_equal(first.correlation, second.correlation)
    assert not np.array_equal(first.correlation, third.correlation)


def test_requests_that_make_no_sense_are_refused():
    """Each message names the argument and the allowed range."""
    problem = MultiIndex()
    good = {"sample_ratio": 4.0, "step_size": 0.5, "rng": 0, "paths": 512}

    def call(given=problem, steps=2, **changes):
        return solve(given, steps, **{**good, **changes})

    for request, message in (
        (lambda: call(sample_ratio=0.0), r"sample_ratio must be positive, got 0\.0"),
        (lambda: call(sample_ratio=-1.0), "sample_ratio must be positive"),
        (lambda: call(step_size=0.0), "step_size must be positive"),
        (lambda: call(paths=8), "paths must be an integer in"),
        (lambda: call(keep=[3]), r"keep must be an integer in \[0, 2\], got 3"),
        (lambda: call(star="both"), "star must be one of"),
        (lambda: call(MultiIndex(parity(2)), star="gradient"), "star must be 'parts' for parity"),
        (lambda: call(MultiIndex(activation=RELU)), "second derivative for the mean-field"),
        (lambda: call(steps=4000, paths=2**20), "GiB"),
        (lambda: call().hard_subspace(1), r"step must be one of those kept, \[2\], got 1"),
        (lambda: call().hard_subspace(2, neuron=1), "neuron must be an integer in"),
        (lambda: call().hard_subspace(2, hard=[[2.0]]), "hard must have orthonormal columns"),
        (lambda: call(MultiIndex(loss=SQUARED)).statistic(2), "no left edge"),
    ):
        with pytest.raises(ValueError, match=message):
            request()


def test_divergence_names_the_step_size():
    """Blow-up of a quadratic activation."""
    problem = MultiIndex(activation=QUADRATIC, loss=SQUARED, second_layer=[5.0])
    with pytest.raises(
        FloatingPointError, match=r"step_size must be .* got 3 at sample_ratio 0\.5: dive"
    ):
        solve(problem, 60, sample_ratio=0.5, step_size=3.0, rng=0, paths=512, replicas=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"memory": 1e200}, r"sample_ratio 4 and memory 1e\+200"),
        ({"sample_ratio": 1e-200}, "sample_ratio 1e-200"),
    ],
)
def test_a_last_step_that_is_not_finite_is_told(given, said):
    """Its losses were NaN without a word."""
    common = {"sample_ratio": 4.0, "step_size": 0.5, "rng": 0, "paths": 64, "replicas": 1}
    with pytest.raises(FloatingPointError, match=f"got 0.5 at {said}: divergence at step 1"):
        solve(MultiIndex(), 1, **{**common, **given})
