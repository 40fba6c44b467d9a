"""Moments of BGHJ Section 3 and orders of Section 7, against quadrature over the whole noise."""

from __future__ import annotations

import numpy as np
import pytest

from companion.alignment.population_matrices import (
    direct_moment,
    label_moment,
    leading_order,
    noise_mean,
    noise_moment,
    pair_moment,
)
from traindyn import gaussian
from traindyn.problems.base import Block, Matrix
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.k_gmm.population import population_block
from traindyn.problems.population_block import PopulationBlock

GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
FINE = gaussian.gauss_hermite(3, 40)
TOLERANCE = 1e-12


def _problem(precision: float = 1.7, dimension: int = 3) -> KGaussianMixture:
    return KGaussianMixture(GRAM, np.array([0.2, 0.3, 0.5]), precision, 0.1, dimension)


def _point(seed: int = 1, dimension: int = 3) -> Point:
    return Point(np.random.default_rng(seed).standard_normal((3, dimension)))


def _gap(block: PopulationBlock, dense: np.ndarray) -> float:
    return float(np.abs(block.dense() - dense).max())


@pytest.mark.parametrize(("index", "label"), [(0, 1), (2, 2), (1, 0)])
def test_stein_identities(index: int, label: int) -> None:
    """BGHJ (3.13) and (3.14): moments of the noise against pi, given one class."""
    problem, point = _problem(), _point()

    def weight(pi: np.ndarray, given: int) -> np.ndarray:
        return pi[:, index] * (given == label) / problem.weights[label]

    direct = direct_moment(problem, point, weight, rule=FINE, noise=True)
    exact = noise_moment(problem, point, label, index, rule=FINE)
    assert _gap(exact, direct) < TOLERANCE
    printed = noise_moment(problem, point, label, index, rule=FINE, printed=True)
    assert _gap(printed, direct) > 0.005

    z = FINE.nodes / np.sqrt(problem.precision)
    pi = problem.probabilities(point, problem.means[label] + z)[:, index]
    mean = noise_mean(problem, point, label, index, rule=FINE)
    np.testing.assert_allclose(mean, FINE.expect(pi[:, None] * z), atol=TOLERANCE)
    assert np.abs(problem.precision * mean - FINE.expect(pi[:, None] * z)).max() > 0.01  # control


@pytest.mark.parametrize("block", [(0, 1), (2, 2), (1, 0)])
def test_label_and_pair_moments(block: Block) -> None:
    """BGHJ (3.18) and (3.10); (3.18) prints a spurious 2 and loses the class weight."""
    problem, point = _problem(), _point()
    b, c = block

    def label_weight(pi: np.ndarray, label: int) -> np.ndarray:
        return pi[:, b] * (label == c)

    direct = direct_moment(problem, point, label_weight, rule=FINE)
    assert _gap(label_moment(problem, point, block, rule=FINE), direct) < TOLERANCE
    printed = label_moment(problem, point, block, rule=FINE, printed=True)
    assert _gap(printed, direct) > 0.01

    def pair_weight(pi: np.ndarray, label: int) -> np.ndarray:
        return pi[:, b] * pi[:, c]

    direct = direct_moment(problem, point, pair_weight, rule=FINE)
    assert _gap(pair_moment(problem, point, block, rule=FINE), direct) < TOLERANCE


@pytest.mark.parametrize(
    ("matrix", "block"),
    [("hessian", (0, 1)), ("hessian", (1, 1)), ("g_matrix", (1, 1)), ("g_matrix", (0, 1))],
    ids=["7.1", "7.2", "7.7", "7.8"],
)
def test_leading_order_remainder_is_one_over_lambda(matrix: Matrix, block: Block) -> None:
    """BGHJ (7.1), (7.2), (7.7), (7.8): operator-norm remainder with slope -1 in lambda."""
    point = _point()
    rule = gaussian.gauss_hermite(3, 16)
    precisions = 10.0 ** np.arange(1.5, 4.1, 0.5)

    def remainders(printed: bool) -> np.ndarray:
        gaps = []
        for precision in precisions:
            problem = _problem(precision)
            exact = population_block(problem, matrix, point, block, rule=rule)
            leading = leading_order(problem, matrix, point, block, rule=rule, printed=printed)
            gaps.append(np.linalg.norm(exact.dense() - leading.dense(), 2))
        return np.array(gaps)

    gaps = remainders(printed=False)
    slope = np.polyfit(np.log(precisions), np.log(gaps), 1)[0]
    assert abs(slope + 1) < 0.1
    if matrix == "hessian" and block[0] != block[1]:
        assert remainders(printed=True)[-1] > 0.05  # (7.1) misprints the sign
    else:
        np.testing.assert_array_equal(remainders(printed=True), gaps)


def test_leading_coefficients_agree_with_the_printed_sums() -> None:
    """(7.7) and (7.8) written out term by term from the expectations."""
    problem, point = _problem(), _point()
    rule = gaussian.gauss_hermite(3, 16)
    noise = rule.nodes @ gaussian.symmetric_sqrt(point.x @ point.x.T / problem.precision)
    pi = []
    for mean in problem.means:
        exponentials = np.exp(point.x @ mean + noise)
        pi.append(exponentials / exponentials.sum(axis=1, keepdims=True))
    p, E = problem.weights, rule.expect
    diagonal = [p[0] * E((1 - pi[0][:, 0]) ** 2), *(p[i] * E(pi[i][:, 0] ** 2) for i in (1, 2))]
    off = [
        -p[0] * E(pi[0][:, 1] * (1 - pi[0][:, 0])),
        -p[1] * E(pi[1][:, 0] * (1 - pi[1][:, 1])),
        p[2] * E(pi[2][:, 0] * pi[2][:, 1]),
    ]
    for block, wanted in (((0, 0), diagonal), ((0, 1), off)):
        found = leading_order(problem, "g_matrix", point, block, rule=rule)
        np.testing.assert_allclose(np.diag(found.core), wanted, atol=1e-14)
    assert min(off) < 0 < max(off)  # indefinite for k > 2
    # (7.8) holds for distinct classes only
    assert np.abs(np.array(diagonal) - off).max() > 0.01
