"""Gaussian conditioning on a trajectory: exact at every size, so tested at small ones."""

import numpy as np
import pytest
from scipy import stats

from companion.phase_transitions.hessian import conditioning
from traindyn.problems.multi_index import Data, MultiIndex, half_spaces
from traindyn.sgd import full_batch
from traindyn.spectra import network

PROBLEMS = (MultiIndex(), MultiIndex(half_spaces(), second_layer=(1.0, -1.0)))


def train(problem, seed, n=90, d=30, steps=4, null=None):
    """Data, all neurons and what was seen."""
    data = problem.sample(n, d, rng=seed)
    found = full_batch.run(
        problem,
        data,
        problem.initial(d, rng=1000 + seed),
        range(steps + 1),
        step_size=1.0,
        null=null,
        snapshots=True,
    )
    path = found.trajectory.snapshots.neurons
    return data, path, conditioning.seen(problem, data, path)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("on_branch", [False, True])
def test_what_was_seen(problem, on_branch):
    """Bases, projections; a term that vanishes with all steps (MW, Gaussian conditioning)."""
    null = np.eye(problem.k)[:, :1] if on_branch else None
    data, path, known = train(problem, 0, null=null)
    m = problem.width
    assert known.directions.shape == (30, problem.k + 5 * m) and known.samples.shape == (90, 4 * m)
    for basis in (known.directions, known.samples):
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    rest = known.beyond(data.inputs)
    np.testing.assert_allclose(rest @ path[-1], 0, atol=1e-10)
    np.testing.assert_allclose(rest[:, : problem.k], 0, atol=1e-12)
    force = problem.force(data.inputs @ path[2], data.labels)[1]
    np.testing.assert_allclose(force.T @ rest, 0, atol=1e-9)
    assert np.abs(known.crossed(data.inputs)).max() < 1e-9
    forgetful = conditioning.Seen(
        conditioning.seen(problem, data, path[:-1]).directions, known.samples
    )
    assert np.abs(forgetful.crossed(data.inputs)).max() > 1e-3


def test_next_force_meets_fresh_inputs():
    """|rest of X^T F(t)|^2 / |rest of F(t)|^2 is chi-squared, exactly; not so with all of F(t)."""
    problem, seeds = PROBLEMS[0], range(300)
    ratios, naive = [], []
    for seed in seeds:
        data, path, known = train(problem, seed)
        force = problem.force(data.inputs @ path[-1], data.labels)[1][:, 0]
        rest = force - known.samples @ (known.samples.T @ force)
        size = np.sum((known.beyond(data.inputs).T @ force) ** 2)
        ratios.append(size / np.sum(rest**2))
        naive.append(np.sum((data.inputs.T @ force) ** 2) / np.sum(force**2))
    law = stats.chi2(30 - known.directions.shape[1])
    assert stats.kstest(ratios, law.cdf).pvalue > 1e-4
    assert stats.kstest(naive, stats.chi2(30).cdf).pvalue < 1e-12


def test_resampled_and_freed_inputs():
    """The first keep what was seen, the second nothing of it; both change the rest or keep it."""
    problem = PROBLEMS[1]
    data, path, known = train(problem, 3)
    again = known.resampled(data.inputs, rng=0)
    for theta in path:
        np.testing.assert_allclose(again @ theta, data.inputs @ theta, atol=1e-10)
    for theta in path[:-1]:
        force = problem.force(data.inputs @ theta, data.labels)[1]
        np.testing.assert_allclose(again.T @ force, data.inputs.T @ force, atol=1e-9)
    # The trajectory is the same on the new inputs: it is all that was seen.
    repeated = full_batch.run(
        problem, Data(again, data.labels), path[0], [4.0], step_size=1.0, snapshots=True
    )
    np.testing.assert_allclose(repeated.neurons, path[-1], atol=1e-9)
    assert np.abs(again - data.inputs).max() > 1
    free = known.freed(data.inputs, rng=0)
    np.testing.assert_allclose(known.beyond(free), known.beyond(data.inputs), atol=1e-12)
    assert np.linalg.matrix_rank(free - data.inputs, tol=1e-8) == known.rank // 2
    assert np.abs(free @ path[0] - data.inputs @ path[0]).max() > 0.1


def test_hessian_is_a_fresh_one_plus_finite_rank():
    """Rank at most that of what was seen (MW, Finite-rank perturbation); one step's weights."""
    problem = PROBLEMS[0]
    data, path, known = train(problem, 5)
    g, _ = network.weights(problem, data, path[-1])
    free = known.freed(data.inputs, rng=1)
    difference = network.block(problem, data, path[-1]) - (free.T * g) @ free / len(g)
    values = np.abs(np.linalg.eigvalsh(difference))
    assert known.rank == 2 * (6 + 4)
    assert np.sum(values > 1e-10) <= known.rank < 30
    unrelated = np.random.default_rng(0).standard_normal(free.shape)
    difference = network.block(problem, data, path[-1]) - (unrelated.T * g) @ unrelated / len(g)
    assert np.linalg.matrix_rank(difference, tol=1e-10) == 30


def test_arguments_are_checked():
    """By name."""
    problem = PROBLEMS[0]
    data, path, known = train(problem, 0)
    with pytest.raises(ValueError, match="path must have shape"):
        conditioning.seen(problem, data, path[0])
    with pytest.raises(ValueError, match="path must hold"):
        conditioning.seen(problem, data, path[:0])
    with pytest.raises(ValueError, match="inputs must have shape"):
        known.beyond(data.inputs[1:])
    start = conditioning.seen(problem, data, path[:1])
    assert start.samples.shape == (90, 0)
    assert np.abs(start.crossed(data.inputs)).max() == 0
