"""Memory of single samples: exact cases, and training data of SGD in full dimension."""

from __future__ import annotations

import numpy as np
import pytest

from companion.alignment.xor_train_matrices import propagators, training_block
from traindyn.effective import ode
from traindyn.problems.two_layer import Point, TwoLayerMixture
from traindyn.sgd import direct
from traindyn.spectra import blocks

V = np.array([1.2, -0.9])


def mixture(dimension=100, precision=4.0):
    """XOR mixture with two neurons, whose integrals are exact to many digits."""
    return TwoLayerMixture.xor(2, dimension, precision=precision, ridge=0.05)


def solved(c_delta, *, end=4.0, steps=40):
    """Effective dynamics from a start with some overlap and correlated neurons."""
    problem = mixture()
    start = problem.initial_statistics(v=V)
    start.m[:] = [[0.4, 0.1], [0.2, -0.5]]
    start.R_perp[0, 1] = start.R_perp[1, 0] = 0.3
    return problem, ode.solve(problem, start, np.linspace(0, end, steps + 1), c_delta=c_delta)


@pytest.mark.nightly
def test_propagator_carries_the_gram_matrix():
    """Without corrector R_perp(T) = Phi R_perp(t) Phi^T exactly, for all t.

    The control leaves out the ridge; with a corrector the difference is fed, and positive.
    """
    problem, path = solved(0.0, steps=200)
    flow = propagators(problem, path.times, path.statistics)
    R = path.statistics.R_perp
    np.testing.assert_allclose(flow @ R @ flow.transpose(0, 2, 1), R[-1:].repeat(201, 0), atol=1e-5)
    wrong = flow[0] * np.exp(0.05 * path.times[-1])
    assert np.abs(wrong @ R[0] @ wrong.T - R[-1]).max() > 0.05
    problem, fed = solved(1.0)
    flow = propagators(problem, fed.times, fed.statistics)
    rest = fed.statistics.R_perp[-1] - flow[0] @ fed.statistics.R_perp[0] @ flow[0].T
    assert np.linalg.eigvalsh(rest)[0] > 0.01


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_no_step_no_memory(matrix):
    """With steps of smaller order nothing is kept of a sample, and fresh ones are the population's.

    Six standard deviations of 41 times 8192 draws.
    """
    problem, path = solved(0.0)
    trained, fresh = training_block(
        problem, path.times, path.statistics, matrix, c_delta=0.0, rng=1
    )
    np.testing.assert_array_equal(trained, fresh)
    end = type(path.statistics)(*(part[-1] for part in path.statistics))
    small, point = problem.embed(end)
    sample = small.sample(2**18, rng=2)
    exact = blocks.operator(small, matrix, (2, 2), point, sample).dense()
    np.testing.assert_allclose(fresh, exact, atol=6 * exact.max() * np.sqrt(6 / 2**18))


@pytest.mark.nightly
def test_training_data_of_sgd():
    """Trace of the training block over that of fresh samples, in full dimension.

    Thirty-two runs at d = 200; false-alarm probability 1e-6 by 6.1 standard errors (t with 31
    degrees of freedom) beside 2 / d. No memory (a ratio of one) is rejected.
    """
    c_delta, end, size = 1.0, 4.0, 200
    problem, path = solved(c_delta)
    large = mixture(size)
    traces = {}
    for matrix in ("hessian", "g_matrix"):
        pair = training_block(
            problem, path.times, path.statistics, matrix, c_delta=c_delta, rng=3, draws=2**15
        )
        traces[matrix] = np.trace(pair[0]) / np.trace(pair[1])
    found = []
    for stream in np.random.default_rng(4).spawn(32):
        seed = int(stream.integers(2**32))
        base = large.place(type(path.statistics)(*(part[0] for part in path.statistics)))
        run = direct.run(
            large, Point(V, base.W), [end], step_size=c_delta / size, rng=seed, snapshots=True
        )
        point = Point(*(part[0] for part in run.snapshots))
        used = large.stream(int(end * size), rng=seed)
        fresh = large.sample(4 * used.labels.size, rng=stream)
        found.append(
            [
                np.trace(blocks.operator(large, m, (2, 2), point, used).dense())
                / np.trace(blocks.operator(large, m, (2, 2), point, fresh).dense())
                for m in traces
            ]
        )
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(32)
    expected = np.array(list(traces.values()))
    assert np.all(np.abs(mean - expected) < 6.1 * error + 2 / size)
    assert 1 - mean[1] > 6.1 * error[1] + 2 / size


def test_refused():
    """Arguments out of range are named."""
    problem, path = solved(0.0, steps=4)
    times, statistics = path.times, path.statistics
    with pytest.raises(ValueError, match="statistics must have 3 rows"):
        propagators(problem, times[:3], statistics)
    with pytest.raises(ValueError, match="times must start at 0"):
        training_block(problem, times + 1, statistics, "hessian", c_delta=1.0, rng=0)
    with pytest.raises(ValueError, match="c_delta"):
        training_block(problem, times, statistics, "hessian", c_delta=-1.0, rng=0)
    with pytest.raises(ValueError, match="draws"):
        training_block(problem, times, statistics, "hessian", c_delta=1.0, rng=0, draws=0)
    with pytest.raises(ValueError, match="matrix"):
        training_block(problem, times, statistics, "curvature", c_delta=1.0, rng=0)
