"""The network's Hessian against differences of its gradient and of its loss, and its spectrum."""

import numpy as np
import pytest

from companion.phase_transitions.hessian.limit import limit_resolvent, limit_share, residue
from traindyn.activations import RELU, TANH
from traindyn.dmft import solve
from traindyn.laws import WeightedMarchenkoPastur
from traindyn.problems.multi_index import (
    Data,
    MultiIndex,
    half_spaces,
)
from traindyn.spectra import network


def gradient(problem, data, theta):
    """Its gradient, one neuron after the other."""
    force = problem.force(data.inputs @ theta, data.labels)[1]
    return (data.inputs.T @ force / len(data.labels)).T.ravel()


def test_hessian_is_the_derivative_of_the_gradient(small_network):
    """Column by column; without the factor m, or in another order of parameters, it is not."""
    problem, d, m = small_network, 5, small_network.width
    data, theta = problem.sample(30, d, rng=0), problem.initial(d, rng=1)
    found = network.hessian(problem, data, theta)
    columns = []
    for index in range(m * d):
        move = np.zeros(m * d)
        move[index] = 1e-5
        move = move.reshape(m, d).T
        up, down = (gradient(problem, data, theta + sign * move) for sign in (1, -1))
        columns.append(m * (up - down) / 2e-5)
    np.testing.assert_allclose(found, np.array(columns), atol=1e-8)
    np.testing.assert_array_equal(found, found.T)
    if m > 1:
        swapped = found.reshape(m, d, m, d).transpose(1, 0, 3, 2).reshape(m * d, m * d)
        assert np.abs(swapped - np.array(columns)).max() > 0.01


def test_hessian_is_the_second_difference_of_the_loss(small_network, mean_loss):
    """u^T H u, along a random direction."""
    problem, d, m = small_network, 6, small_network.width
    data = problem.sample(40, d, rng=0)
    theta, u = problem.initial(d, rng=1), problem.initial(d, rng=2)
    values = [mean_loss(problem, data, theta + sign * 1e-4 * u) for sign in (1, 0, -1)]
    quotient = m * (values[0] - 2 * values[1] + values[2]) / 1e-8
    flat = u.T.ravel()
    form = flat @ network.hessian(problem, data, theta) @ flat
    assert form == pytest.approx(quotient, rel=1e-5)
    # The control: the proof's matrix without 1/n.
    assert abs(40 * form / quotient - 1) > 1


def test_block_of_a_single_neuron_is_the_hessian(three_neurons):
    """Of several it is the second-derivative part, sign included, written out."""
    problem = MultiIndex(second_layer=[-2.0], biases=[0.4])
    data, theta = problem.sample(30, 5, rng=0), problem.initial(5, rng=1)
    np.testing.assert_allclose(
        network.block(problem, data, theta), network.hessian(problem, data, theta), atol=1e-14
    )
    problem = three_neurons
    data, theta = problem.sample(30, 5, rng=0), problem.initial(5, rng=1)
    u = data.inputs @ theta + problem.biases
    slope = problem.loss.slope(data.labels, TANH.value(u) @ problem.second_layer / 3)
    for j in range(3):
        g = problem.second_layer[j] * slope * TANH.curvature(u[:, j])
        expected = np.einsum("n,na,nb->ab", g, data.inputs, data.inputs) / 30
        np.testing.assert_allclose(network.block(problem, data, theta, j), expected, atol=1e-14)
        np.testing.assert_allclose(network.weights(problem, data, theta, j)[0], g, atol=1e-15)


def test_lowest_eigenvalue_of_a_wide_network():
    """Between the lowest block and O(1/m) above, with the signs (MW, Sign of the output weight)."""
    signs = np.where(np.arange(8) % 2, -1.0, 1.0)
    problem = MultiIndex(second_layer=signs)
    data, theta = problem.sample(120, 20, rng=3), problem.initial(20, rng=4) / 2
    lowest = np.linalg.eigvalsh(network.hessian(problem, data, theta))[0]
    blocks = [network.extreme(problem, data, theta, 1, neuron=j).values[0] for j in range(8)]
    assert min(blocks) <= lowest <= min(blocks) + 3 / 8
    unsigned = [
        np.linalg.eigvalsh(sign * network.block(problem, data, theta, j))[0]
        for j, sign in enumerate(signs)
    ]
    assert min(unsigned) != pytest.approx(min(blocks), rel=1e-3)


@pytest.mark.parametrize("side", ["left", "right"])
def test_extreme_eigenpairs(side, monkeypatch):
    """Formed or multiplied only, against a full diagonalisation; overlaps by hand."""
    problem = MultiIndex(half_spaces(), second_layer=(1.0, -1.0))
    data, theta = problem.sample(900, 150, rng=0), problem.initial(150, rng=1)
    values, vectors = np.linalg.eigh(network.block(problem, data, theta, 1))
    order = slice(0, 3) if side == "left" else slice(-1, -4, -1)
    hard = np.array([1.0, -1.0]) / np.sqrt(2)
    for formed in (2000, 0):
        monkeypatch.setattr(network, "_FORMED", formed)
        found = network.extreme(problem, data, theta, 3, neuron=1, side=side)
        np.testing.assert_allclose(found.values, values[order], rtol=1e-6)
        np.testing.assert_allclose(
            np.abs(np.sum(found.vectors * vectors[:, order], axis=0)), 1, atol=1e-6
        )
        np.testing.assert_allclose(found.overlaps, (hard @ found.vectors[:2]) ** 2, atol=1e-12)
        whole = network.extreme(problem, data, theta, 3, neuron=1, side=side, hard=np.eye(2))
        np.testing.assert_allclose(whole.overlaps, (found.vectors[:2] ** 2).sum(axis=0))


def test_outlier_is_the_predicted_one():
    """Initial Hessian above its threshold (MW, Main theorem): values and overlap; none below."""
    problem, d = MultiIndex(), 600
    predicted = solve(problem, 0, sample_ratio=6.0, step_size=0.5, rng=0).hard_subspace(0)
    found = []
    for seed in range(4):
        data = problem.sample(6 * d, d, rng=seed)
        found.append(network.extreme(problem, data, problem.initial(d, rng=100 + seed), 2))
    values = np.mean([each.values for each in found], axis=0)
    overlap = np.mean([each.overlaps[0] for each in found])
    assert values[0] == pytest.approx(predicted.outliers.values[0], abs=0.01)
    assert values[1] == pytest.approx(predicted.edge, abs=0.02)
    assert overlap == pytest.approx(predicted.outliers.overlaps[0], abs=0.05)
    below = solve(problem, 0, sample_ratio=1.0, step_size=0.5, rng=0).hard_subspace(0)
    assert below.outliers.values.size == 0
    data = problem.sample(d, d, rng=9)
    assert network.extreme(problem, data, problem.initial(d, rng=8), 1).overlaps[0] < 0.1


def test_single_precision_data_lose_nothing_in_the_sums():
    """The same numbers as for the same inputs in double precision."""
    problem = MultiIndex()
    narrow = problem.sample(500, 20, rng=0, dtype=np.float32)
    wide = Data(narrow.inputs.astype(float), narrow.labels.astype(float))
    theta = problem.initial(20, rng=1)
    np.testing.assert_array_equal(
        network.block(problem, narrow, theta), network.block(problem, wide, theta)
    )


def test_residue_is_the_projector():
    """Of the eigenvalues inside (MW, Residue formula), for a matrix and an entry of a limit law."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((7, 7))
    matrix = matrix + matrix.T
    values, vectors = np.linalg.eigh(matrix)
    gap = values[2] - values[1]
    centre, radius = (values[0] + values[1]) / 2, (values[1] - values[0]) / 2 + gap / 2
    found = residue(lambda z: np.linalg.inv(matrix - z * np.eye(7)), centre, radius, points=400)
    inside = np.abs(values - centre) < radius
    np.testing.assert_allclose(found, vectors[:, inside] @ vectors[:, inside].T, atol=1e-8)
    assert np.abs(found - vectors[:, :1] @ vectors[:, :1].T).max() > 0.1
    # A spike of a Marchenko-Pastur law: its overlap is the residue of one entry.
    law = WeightedMarchenkoPastur([1.0], 0.25)
    outlier = law.outliers([[2.0]])

    def entry(z):
        s = complex(law.stieltjes(np.array(z)))
        return 1 / (4 / (1 + 0.25 * s) - z)

    assert residue(entry, outlier.values[0], 0.5) == pytest.approx(outlier.overlaps[0])


def test_limit_resolvent_and_shares():
    """Poles and residues are outliers and overlaps; shares are those of a large matrix."""
    problem, d, delta = MultiIndex(), 500, 6.0
    field = solve(problem, 0, sample_ratio=delta, step_size=0.5, rng=0, paths=2**12, replicas=1)
    side = field.hard_subspace(0)
    paths = field.paths[0]
    g = problem.block_weights(paths.preactivations[0], paths.labels)[:, 0]
    s = paths.coordinates[:, 0]
    value, overlap = side.outliers.values[0], side.outliers.overlaps[0]

    def entry(z):
        return limit_resolvent(g, s, delta, z)[0, 0]

    radius = (side.edge - value) / 2
    assert residue(entry, value, radius) == pytest.approx(overlap, rel=1e-8)
    assert residue(entry, value - 3 * radius, radius) == pytest.approx(0, abs=1e-12)
    levels = np.array([value - radius, value + radius, 0.0, 0.1, 0.3, 2.0])
    shares = limit_share(g, s, delta, levels)
    np.testing.assert_allclose(shares[[0, 1, -1]], [0, overlap, 1], atol=1e-4)
    found = []
    for seed in range(4):
        data = problem.sample(int(delta * d), d, rng=seed)
        w, v = np.linalg.eigh(network.block(problem, data, problem.initial(d, rng=50 + seed)))
        found.append([np.sum(v[0, w <= x] ** 2) for x in levels[2:5]])
    np.testing.assert_allclose(np.mean(found, axis=0), shares[2:5], atol=0.03)
    # Weights that forget the coordinate leave each eigenvector its equal share.
    shuffled = np.random.default_rng(0).permutation(s)
    equal = limit_share(g, shuffled, delta, levels[2:5])
    np.testing.assert_allclose(equal, side.law.cdf(levels[2:5]), atol=0.03)
    assert np.abs(equal - shares[2:5]).max() > 0.1
    # Two directions: the trace.
    pair = np.stack([s, shuffled], axis=1)
    both = limit_share(g, pair, delta, levels[3:4])
    assert both[0] == pytest.approx(shares[3] + equal[1], abs=0.02)


def test_arguments_are_checked():
    """By name."""
    problem = MultiIndex()
    data, theta = problem.sample(30, 5, rng=0), problem.initial(5, rng=1)
    with pytest.raises(ValueError, match="neurons must have shape"):
        network.hessian(problem, data, theta[:4])
    with pytest.raises(ValueError, match="neuron must be"):
        network.block(problem, data, theta, 1)
    with pytest.raises(ValueError, match="side must be"):
        network.extreme(problem, data, theta, 1, side="up")
    with pytest.raises(ValueError, match=r"data.inputs must have shape"):
        network.block(problem, Data(data.inputs[0], data.labels), theta)
    with pytest.raises(ValueError, match="second derivative"):
        network.block(MultiIndex(activation=RELU), data, theta)
    with pytest.raises(ValueError, match="points must be even"):
        residue(lambda z: z, 0.0, 1.0, points=3)
