"""The closed form of the limit of infinite time."""

import numpy as np
import pytest

from traindyn.dmft import stable, stable_limit, stable_threshold
from traindyn.gaussian import gauss_hermite
from traindyn.laws import HardSubspace
from traindyn.problems.multi_index import (
    MultiIndex,
    delta_alg,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)
from traindyn.sgd import full_batch


def neuron(a):
    """A single GELU neuron on phase retrieval."""
    return MultiIndex(second_layer=[a])


@pytest.mark.parametrize(
    ("a", "expected"), [(5.0, 5.45), (6.0, 5.33), (7.0, 5.49), (8.0, 5.95), (10.0, 8.28)]
)
def test_table_of_thresholds(a, expected):
    """Reference values to 0.5 %; the criterion in its second form vanishes there."""
    found = stable_threshold(neuron(a), 10.0, rule=gauss_hermite(2, 61))
    assert found.sample_ratio == pytest.approx(expected, rel=5e-3)
    assert found.stable and found.residual < 1e-8
    assert found.sample_ratio > delta_alg(phase_retrieval()).threshold
    side = found.hessian
    assert side.end_parameter == pytest.approx(found.sample_ratio * found.kappa, rel=1e-4)
    assert side.outliers.values[0] == pytest.approx(0.0, abs=1e-5)


def test_overlap_jumps_at_a_positive_edge():
    """a = 8: the edge is at 0.95 and the squared overlap 0.65 where the outlier crosses zero."""
    side = stable_threshold(neuron(8.0), 10.0).hessian
    assert side.edge == pytest.approx(0.95, rel=0.02)
    assert side.outliers.overlaps[0] == pytest.approx(0.65, abs=0.015)


def test_reference_limits():
    """a = 8 at delta = 5 (outlier 0.22 below a positive edge) and 8 (negative outlier)."""
    below, above = stable_limit(neuron(8.0), 5.0), stable_limit(neuron(8.0), 8.0)
    assert below.q == pytest.approx(0.043, rel=0.01)
    assert below.hessian.edge == pytest.approx(0.62, rel=0.01)
    assert below.hessian.edge_statistic == pytest.approx(1.508, rel=0.01)
    assert below.hessian.outliers.values[0] == pytest.approx(0.22, rel=0.01)
    assert below.hessian.informative.values.size == 0
    assert above.q == pytest.approx(0.0199, rel=0.01)
    assert above.hessian.informative.values[0] == pytest.approx(-0.478, rel=0.01)
    assert above.hessian.informative.overlaps[0] == pytest.approx(0.818, rel=0.01)


def test_against_gradient_descent():
    """The null branch at a = 8, delta = 6, d = 200: norm, losses, edge at t = 15.

    Mean of 12 runs, within 10 standard errors (false alarm 4e-6 in all four, by Student's law)
    and an allowance of 0.002 for 1/d; delta = 8 (control) is rejected.
    """
    problem, d, delta, eta = neuron(8.0), 200, 6.0, 0.05
    rows = []
    for seed in range(12):
        data = problem.sample(int(d * delta), d, rng=seed, dtype=np.float32)
        found = full_batch.run(
            problem, data, problem.initial(d, rng=seed + 100), [15.0], step_size=eta, null=[[1.0]]
        )
        last = found.trajectory.statistics
        weights = problem.block_weights(data.inputs @ found.neurons, data.labels)[:, 0]
        edge = HardSubspace(weights, data.inputs[:, 0], delta).edge
        rows.append([last.gram[0, 0, 0], last.train_loss[0], last.test_loss[0], edge])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(12)

    def far(wanted):
        limit = stable_limit(problem, wanted)
        expected = [limit.q, limit.train_loss, limit.test_loss, limit.hessian.edge]
        return np.max(np.abs(mean - expected) / (10 * error + 2e-3))

    assert far(delta) < 1 < far(8.0)


def test_two_hard_directions_and_noise():
    """A degenerate pair of outliers for z_1^2 + z_2^2; noise raises the threshold."""
    pair = stable_limit(
        MultiIndex(polynomial({(2, 0): 1.0, (0, 2): 1.0}), second_layer=[8.0]), 10.0
    )
    values, overlaps = pair.hessian.outliers.values, pair.hessian.outliers.overlaps
    assert values.size == 2
    assert values[0] == pytest.approx(values[1]) and overlaps[0] == pytest.approx(overlaps[1])
    noisy = stable_threshold(MultiIndex(phase_retrieval(noise=0.5), second_layer=[8.0]), 10.0)
    assert noisy.sample_ratio > 6.2


def test_requests_that_make_no_sense_are_refused():
    """Arguments by name; iterations that fail by their last residual."""
    for call, message in (
        (lambda: stable_limit(neuron(8.0), 0.0), "sample_ratio must be positive"),
        (lambda: stable_limit(MultiIndex(second_layer=[1.0, 1.0]), 5.0), "one neuron, got 2"),
        (lambda: stable_limit(MultiIndex(two_layer_teacher()), 5.0), "hard directions only"),
        (lambda: stable_limit(neuron(8.0), 5.0, rule=gauss_hermite(3, 5)), "dimension 2, got 3"),
        (lambda: stable_threshold(neuron(8.0), 5.0), "start must be above the threshold"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    # Neurons that grow: the continuation has no stable start.
    with pytest.raises(FloatingPointError, match="residual of"):
        stable_limit(neuron(1.0), 8.0)
    with pytest.raises(FloatingPointError, match=r"sample_ratio E\[T\^2\] = 1\.\d+ >= 1"):
        stable_threshold(neuron(4.5), 10.0)


def test_the_descent_to_the_threshold_ends(monkeypatch):
    """Where the criterion stays above one there is no threshold to be found."""
    monkeypatch.setattr(stable, "_next", lambda problem, known, *rest: known)
    with pytest.raises(FloatingPointError, match=r"start must be near .* 1000 steps"):
        stable_threshold(neuron(8.0), 7.0)
