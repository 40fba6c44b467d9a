"""Closed forms of BGHJ Lemmas 3.1-3.3 against quadrature over the whole noise vector."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from companion.alignment.population_matrices import direct_block
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
    direct = direct_block(problem, "hessian", point, block, rule=FINE)
    assert _gap(population.hessian_block(problem, point, block, rule=FINE), direct) < TOLERANCE
    printed = population.hessian_block(problem, point, block, rule=FINE, printed=True)
    assert _gap(printed, direct) > 0.01


@pytest.mark.parametrize("block", PAIRS)
def test_g_blocks_match_direct_quadrature(block: Block) -> None:
    """BGHJ Lemma 3.3, corrected; the printed signs are off by per cents."""
    problem, point = _problem(), _point()
    direct = direct_block(problem, "g_matrix", point, block, rule=FINE)
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
        direct = direct_block(problem, matrix, point, block, rule=FINE)
        exact = population.population_block(problem, matrix, point, block, rule=FINE)
        assert _gap(exact, direct) < (1e-9 if precision < 1 else TOLERANCE)


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
        direct_block(_problem(dimension=4), "hessian", _point(0, 4), (0, 0), rule=FINE)
    with pytest.raises(ValueError, match="matrix must be one of 'hessian', 'g_matrix'"):
        population.population_block(problem, "gradient", point, (0, 0), rule=FINE)  # type: ignore[arg-type]
