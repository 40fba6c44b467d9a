"""The outlier of the whole Hessian of several neurons."""

import numpy as np
import pytest

from companion.phase_transitions.generality import joint
from companion.phase_transitions.generality.joint import joint_outlier
from traindyn.laws import HardSubspace

S = np.random.default_rng(5).standard_normal(3000)


WEIGHTS = [1 - S**2 / (1 + S**2), np.cos(S) - 0.3, 0.2 + np.cos(2 * S) ** 2]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("delta", [2.0, 12.0])
def test_one_neuron_is_the_scalar_law(weights, delta):
    """Edges of either sign, with an outlier and without."""
    side = HardSubspace(weights, S, delta)
    found = joint_outlier(weights[:, None, None], S, delta)
    assert found.edge == pytest.approx(side.edge, abs=1e-7)
    assert found.statistic == pytest.approx(side.statistic, rel=1e-5, abs=1e-5)
    if side.outliers.values.size:
        assert found.value == pytest.approx(side.outliers.values[0], abs=1e-7)
        assert found.overlap == pytest.approx(side.outliers.overlaps[0], abs=1e-6)
    else:
        assert found.value is None and found.overlap is None


def test_neurons_that_do_not_interact():
    """Turned in the space of neurons, two scalar laws are still the lower of the two."""
    low, high = np.cos(S) - 1, 1 + np.cos(S)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    diagonal = np.zeros((S.size, 2, 2))
    diagonal[:, 0, 0], diagonal[:, 1, 1] = low, high
    found, one = joint_outlier(turn @ diagonal @ turn.T, S, 9.0), HardSubspace(low, S, 9.0)
    assert found.edge == pytest.approx(one.edge, abs=1e-7)
    assert found.statistic == pytest.approx(one.statistic, rel=1e-5)


def test_against_a_matrix():
    """Lowest eigenvalue and hard part of a matrix with interacting weights."""
    rng, d, delta = np.random.default_rng(7), 150, 12.0
    n = round(delta * d)
    x = rng.standard_normal((n, d))

    def weights(first, noise):
        pair = np.stack([np.cos(first) + noise, 0.5 * first**2 - 1.0], axis=1)
        return pair[:, :, None] * pair[:, None, :] - (first**2 * np.exp(-(first**2) / 8))[
            :, None, None
        ] * np.array([[1.0, 0.6], [0.6, 0.8]])

    g = weights(x[:, 0], rng.standard_normal(n) / 4)
    matrix = np.einsum("nij,na,nb->iajb", g, x, x, optimize=True).reshape(2 * d, 2 * d) / n
    values, vectors = np.linalg.eigh(matrix)
    found = joint_outlier(weights(S, rng.standard_normal(S.size) / 4), S, delta)
    assert values[0] == pytest.approx(found.value, abs=0.12)
    assert np.sum(vectors[:, 0].reshape(2, d)[:, 0] ** 2) == pytest.approx(found.overlap, abs=0.1)
    assert found.value < found.edge - 0.2


def test_a_step_past_the_edge_is_taken_back(monkeypatch):
    """Beyond the edge Newton finds other solutions; here a whole step would end on one."""
    rng = np.random.default_rng(113)
    hard, (x, y) = rng.standard_normal(400), rng.standard_normal((400, 2)).T
    one, both, other = np.cos(2 * x) + 0.9 * np.exp(x), 3 * x * y, -3 * np.exp(0.8 * y)
    weights = np.stack([one, both, both, other], axis=1).reshape(-1, 2, 2)
    found = joint_outlier(weights, hard, 16.0)
    monkeypatch.setattr(joint, "_GROWTH", 1.02)
    assert found.edge == pytest.approx(joint_outlier(weights, hard, 16.0).edge, rel=1e-7)


@pytest.mark.parametrize(
    ("weights", "features", "ratio", "words"),
    [
        (np.ones((4, 2)), np.ones(4), 1.0, "weights must have shape"),
        (np.arange(16.0).reshape(4, 2, 2), np.ones(4), 1.0, "symmetric"),
        (np.ones((4, 1, 1)), np.ones(3), 1.0, "features must have shape"),
        (np.ones((4, 1, 1)), np.ones(4), 0.0, "sample_ratio"),
    ],
)
def test_refusals(weights, features, ratio, words):
    """Each message names its argument."""
    with pytest.raises(ValueError, match=words):
        joint_outlier(weights, features, ratio)
