"""Closed forms of BGHJ Lemmas 3.1-3.3 against quadrature over the whole noise vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from traindyn import gaussian
from traindyn.problems.base import Block, Matrix
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.k_gmm import population as population
from traindyn.problems.population_block import PopulationBlock

GRAM = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
PAIRS = [(b, c) for b in range(3) for c in range(3)]

# Gauss-Hermite of order 40 leaves 1e-13 for logits of standard deviation up to about 2.
FINE = gaussian.gauss_hermite(3, 40)
TOLERANCE = 1e-12


def _problem(precision: float = 1.7, dimension: int = 3) -> KGaussianMixture:
    return KGaussianMixture(GRAM, np.array([0.2, 0.3, 0.5]), precision, 0.1, dimension)


def _point(seed: int = 1, dimension: int = 3) -> Point:
    return Point(np.random.default_rng(seed).standard_normal((3, dimension)))


def _gap(block: PopulationBlock, dense: np.ndarray) -> float:
    return float(np.abs(block.dense() - dense).max())


@pytest.mark.parametrize("block", PAIRS)
def test_hessian_blocks_match_direct_quadrature(block: Block) -> None:
    """BGHJ Lemmas 3.1 and 3.2, corrected; the printed sign and brackets are off by per cents."""
    problem, point = _problem(), _point()
    direct = population.direct_block(problem, "hessian", point, block, rule=FINE)
    assert _gap(population.hessian_block(problem, point, block, rule=FINE), direct) < TOLERANCE
    printed = population.hessian_block(problem, point, block, rule=FINE, printed=True)
    assert _gap(printed, direct) > 0.01


@pytest.mark.parametrize("block", PAIRS)
def test_g_blocks_match_direct_quadrature(block: Block) -> None:
    """BGHJ Lemma 3.3, corrected; the printed signs are off by per cents."""
    problem, point = _problem(), _point()
    direct = population.direct_block(problem, "g_matrix", point, block, rule=FINE)
    assert _gap(population.g_block(problem, point, block, rule=FINE), direct) < TOLERANCE
    printed = population.g_block(problem, point, block, rule=FINE, printed=True)
    assert _gap(printed, direct) > 0.01


@pytest.mark.parametrize(("seed", "precision"), [(5, 0.9), (6, 30.0)])
@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_closed_forms_hold_at_every_precision(matrix: Matrix, seed: int, precision: float) -> None:
    """The formulas are exact, not expansions: they hold at small precision too.

    At precision 0.9 the logits vary more and order 40 of the rule leaves about 4e-10.
    """
    problem, point = _problem(precision), _point(seed)
    for block in ((0, 0), (0, 2), (2, 1)):
        direct = population.direct_block(problem, matrix, point, block, rule=FINE)
        exact = population.population_block(problem, matrix, point, block, rule=FINE)
        assert _gap(exact, direct) < (1e-9 if precision < 1 else TOLERANCE)


@pytest.mark.parametrize(("index", "label"), [(0, 1), (2, 2), (1, 0)])
def test_stein_identities(index: int, label: int) -> None:
    """BGHJ (3.13) and (3.14): moments of the noise against pi, given one class."""
    problem, point = _problem(), _point()

    def weight(pi: np.ndarray, given: int) -> np.ndarray:
        return pi[:, index] * (given == label) / problem.weights[label]

    direct = population.direct_moment(problem, point, weight, rule=FINE, noise=True)
    exact = population.noise_moment(problem, point, label, index, rule=FINE)
    assert _gap(exact, direct) < TOLERANCE
    printed = population.noise_moment(problem, point, label, index, rule=FINE, printed=True)
    assert _gap(printed, direct) > 0.005

    z = FINE.nodes / np.sqrt(problem.precision)
    pi = problem.probabilities(point, problem.means[label] + z)[:, index]
    mean = population.noise_mean(problem, point, label, index, rule=FINE)
    np.testing.assert_allclose(mean, FINE.expect(pi[:, None] * z), atol=TOLERANCE)
    assert np.abs(problem.precision * mean - FINE.expect(pi[:, None] * z)).max() > 0.01  # control


@pytest.mark.parametrize("block", [(0, 1), (2, 2), (1, 0)])
def test_label_and_pair_moments(block: Block) -> None:
    """BGHJ (3.18) and (3.10); (3.18) prints a spurious 2 and loses the class weight."""
    problem, point = _problem(), _point()
    b, c = block

    def label_weight(pi: np.ndarray, label: int) -> np.ndarray:
        return pi[:, b] * (label == c)

    direct = population.direct_moment(problem, point, label_weight, rule=FINE)
    assert _gap(population.label_moment(problem, point, block, rule=FINE), direct) < TOLERANCE
    printed = population.label_moment(problem, point, block, rule=FINE, printed=True)
    assert _gap(printed, direct) > 0.01

    def pair_weight(pi: np.ndarray, label: int) -> np.ndarray:
        return pi[:, b] * pi[:, c]

    direct = population.direct_moment(problem, point, pair_weight, rule=FINE)
    assert _gap(population.pair_moment(problem, point, block, rule=FINE), direct) < TOLERANCE


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
            exact = population.population_block(problem, matrix, point, block, rule=rule)
            leading = population.leading_order(
                problem, matrix, point, block, rule=rule, printed=printed
            )
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
        found = population.leading_order(problem, "g_matrix", point, block, rule=rule)
        np.testing.assert_allclose(np.diag(found.core), wanted, atol=1e-14)
    assert min(off) < 0 < max(off)  # indefinite for k > 2
    # (7.8) holds for distinct classes only
    assert np.abs(np.array(diagonal) - off).max() > 0.01


def test_structure_is_identity_plus_rank_at_most_2k_minus_1() -> None:
    """In dimension 40 the bulk eigenvalue has multiplicity d - (2k - 1) = 35, not d - 2k."""
    problem, point = _problem(dimension=40), _point(3, 40)
    rule = gaussian.gauss_hermite(3, 12)
    for make in (population.hessian_block, population.g_block):
        for block in ((0, 0), (1, 2)):
            found = make(problem, point, block, rule=rule)
            levels = np.linalg.eigvalsh(found.dense())
            bulk = np.sum(np.abs(levels - found.shift) < 1e-12)
            assert bulk == 40 - 5
            sign = 1 if block[0] == block[1] else -1
            if make is population.hessian_block:
                assert np.sign(found.shift) == sign


def test_weights_of_the_bulk() -> None:
    """The shift is E[weight] / lambda: H minibulk pi(1 - pi), G bulk (y - pi)(y - pi)."""
    problem, point = _problem(), _point()

    def mean_weight(weight: Callable[[np.ndarray, int], np.ndarray]) -> float:
        total = 0.0
        for label, mean in enumerate(problem.means):
            y = mean + FINE.nodes / np.sqrt(problem.precision)
            total += problem.weights[label] * FINE.expect(
                weight(problem.probabilities(point, y), label)
            )
        return total

    hessian = population.hessian_block(problem, point, (1, 1), rule=FINE).shift
    wanted = mean_weight(lambda pi, label: pi[:, 1] * (1 - pi[:, 1]))
    assert problem.precision * hessian == pytest.approx(wanted, abs=TOLERANCE)
    g = population.g_block(problem, point, (0, 1), rule=FINE).shift
    wanted = mean_weight(lambda pi, label: ((label == 0) - pi[:, 0]) * ((label == 1) - pi[:, 1]))
    assert problem.precision * g == pytest.approx(wanted, abs=TOLERANCE)
    assert abs(g - wanted) > 1e-3  # control: without 1 / lambda


def test_bad_input_is_named() -> None:
    """Blocks, points and rules that do not fit the problem."""
    problem, point = _problem(), _point()
    with pytest.raises(ValueError, match=r"block\[1\] must be an integer in \[0, 2\], got 3"):
        population.hessian_block(problem, point, (0, 3), rule=FINE)
    with pytest.raises(ValueError, match=r"point\.x must have shape \(3, 3\), got \(3, 4\)"):
        population.g_block(problem, Point(np.zeros((3, 4))), (0, 0), rule=FINE)
    with pytest.raises(ValueError, match="rule must have the dimension k = 3 of the logits, got 2"):
        population.hessian_block(problem, point, (0, 0), rule=gaussian.rule(2))
    with pytest.raises(ValueError, match="rule must have the dimension d = 4 of the inputs"):
        population.direct_block(_problem(dimension=4), "hessian", _point(0, 4), (0, 0), rule=FINE)
    with pytest.raises(ValueError, match="matrix must be one of 'hessian', 'g_matrix'"):
        population.population_block(problem, "gradient", point, (0, 0), rule=FINE)  # type: ignore[arg-type]
