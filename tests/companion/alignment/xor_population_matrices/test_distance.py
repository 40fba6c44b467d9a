"""Distances of the matrices of a network from their expectations, against simulation."""

import numpy as np
import pytest

from companion.alignment.xor_population_matrices.distance import network_distance
from traindyn import gaussian
from traindyn.problems.base import MATRICES, Matrix
from traindyn.problems.two_layer import Point as Network
from traindyn.problems.two_layer import Statistics as NetworkStatistics
from traindyn.problems.two_layer import TwoLayerMixture


def _network(dimension: int, precision: float = 10.0) -> tuple[TwoLayerMixture, Network]:
    """Three neurons, each with a signal part and a part of its own."""
    weights = np.zeros((3, dimension))
    weights[:, :2] = [[0.8, 0.5], [0.4, -0.9], [-0.6, 0.7]]
    weights[:, 2:5] = 0.6 * np.eye(3)
    problem = TwoLayerMixture.xor(3, dimension, precision=precision, ridge=0.05)
    return problem, Network(np.array([1.0, -0.8, 1.2]), weights)


@pytest.mark.parametrize("precision", [1.0, 50.0])
def test_a_network_without_output_has_a_closed_form(precision: float) -> None:
    """One neuron of vanishing v: only the mixed block is left, an average of e 1 X of e = +-1/2.

    Its noise has the length ``sqrt(1 / (8 precision))`` and is an eigenvalue of either sign; the
    bulk is of the order of ``v^2``. The G-matrix is then of order v.
    """
    problem = TwoLayerMixture.xor(1, 50, precision=precision, ridge=0.1)
    still = NetworkStatistics(np.array([1e-4]), np.array([[0.0, 0.0]]), np.eye(1))
    found = network_distance(problem, still, "hessian")
    assert found.norm == pytest.approx(np.sqrt(0.125 / precision), rel=1e-3)
    assert found.bulk < 1e-8
    assert network_distance(problem, still, "g_matrix").norm < 1e-3 * found.norm


def _distances(matrix: Matrix, N: int, alpha: int, seed: int) -> tuple[float, float]:
    """Norms of full matrix and first layer without the 18 finite coordinates, times root alpha."""
    problem, point = _network(N)
    sample = problem.sample(alpha * N, rng=seed)
    z = sample.inputs @ point.W.T
    active, hidden = (z > 0).astype(float), np.maximum(z, 0.0)
    guess = 1 / (1 + np.exp(-hidden @ point.v))
    error = guess - problem.labels[sample.labels]
    weight = guess * (1 - guess) if matrix == "hessian" else error**2
    first = (point.v * active)[:, :, None] * sample.inputs[:, None]
    slopes = np.hstack([first.reshape(len(z), -1), hidden])
    gap = (slopes.T * weight) @ slopes / len(z)
    if matrix == "hessian":
        for j in range(3):
            mixed = (error * active[:, j]) @ sample.inputs / len(z)
            gap[3 * N + j, j * N : (j + 1) * N] += mixed
            gap[j * N : (j + 1) * N, 3 * N + j] += mixed
    # Off the span the expectation is W kron I, and the mixed blocks vanish.
    levels = np.einsum("n,ni,nj->ij", weight, point.v * active, point.v * active) / len(z) / 10
    gap -= np.pad(np.kron(levels, np.eye(N)), (0, 3))
    finite = [j * N + u for j in range(3) for u in range(5)] + [3 * N + j for j in range(3)]
    gap[np.ix_(finite, finite)] = 0
    norms = (np.linalg.norm(part, 2) for part in (gap, gap[: 3 * N, : 3 * N]))
    whole, alone = (float(norm * np.sqrt(alpha)) for norm in norms)
    return whole, alone


@pytest.mark.parametrize("matrix", MATRICES)
def test_simulated_distances_of_a_network(matrix: Matrix) -> None:
    """The constant of BGHJ Theorem 6.2 against the mean norm of 6 samples at N = 100, alpha = 64.

    The 5 span axes take 2.5 per cent, and the standard error is below 3 per cent. Without the
    mixed block the norm of the Hessian would be less than half as large, that of the G-matrix
    smaller by an eighth.
    """
    problem, point = _network(100)
    limit = network_distance(problem, problem.statistics(point), matrix)
    whole, alone = np.mean([_distances(matrix, 100, 64, seed) for seed in range(6)], axis=0)
    assert 0.85 < whole / limit.norm < 1.10
    assert alone < (0.5 if matrix == "hessian" else 0.92) * whole
    assert limit.norm > 1.5 * limit.bulk


def test_bad_input_is_named() -> None:
    """Rules and precisions that do not fit."""
    network, point = _network(12)
    with pytest.raises(ValueError, match=r"rule must have the dimension 5 of the .* got 3"):
        network_distance(
            network, network.statistics(point), "hessian", rule=gaussian.gauss_hermite(3, 4)
        )
    endless, point = _network(12, precision=np.inf)
    with pytest.raises(ValueError, match="precision must be finite"):
        network_distance(endless, endless.statistics(point), "hessian")
