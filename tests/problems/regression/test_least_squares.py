"""Least squares in closed form."""

import numpy as np
import pytest
from scipy import optimize

from companion.foundations.implicit_bias.methods import descend
from traindyn.problems.regression import LeastSquares


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh for each test."""
    return np.random.default_rng(7)


@pytest.mark.parametrize("shape", [(5, 12), (12, 5)])
def test_closed_form_is_the_run(shape: tuple[int, int], rng: np.random.Generator) -> None:
    """In both regimes the path is that of descent taken step by step."""
    problem = LeastSquares(rng.standard_normal(shape), rng.standard_normal(shape[0]))
    start = rng.standard_normal(shape[1])
    step = 0.8 * problem.critical_step_size
    steps = [0, 1, 2, 30]
    run = descend(problem.gradient, start, step_sizes=np.full(30, step), record=steps)
    closed = problem.descend(steps, step_size=step, start=start)
    np.testing.assert_allclose(closed.statistics.parameters, run, atol=1e-12)
    np.testing.assert_allclose(closed.statistics.loss, problem.loss(run), rtol=1e-10)
    slowest, fastest = (np.abs(1 - 2 * s * problem.curvatures).max() for s in (step, step / 0.79))
    assert slowest < 1 < fastest


def test_projection_solves_the_constrained_problem(rng: np.random.Generator) -> None:
    """Against SciPy's solver of: nearest solution to the start; from zero that of MDL Lemma 4.2."""
    problem = LeastSquares(rng.standard_normal((3, 6)), rng.standard_normal(3))
    start = rng.standard_normal(6)
    found = optimize.minimize(
        lambda p: ((p - start) ** 2).sum(),
        np.zeros(6),
        constraints={"type": "eq", "fun": lambda p: problem.x @ p - problem.y},
        options={"ftol": 1e-14},
    ).x
    np.testing.assert_allclose(problem.project(start), found, atol=1e-6)
    np.testing.assert_allclose(problem.project(np.zeros(6)), problem.minimum_norm(), atol=1e-12)
    assert np.linalg.norm(problem.minimum_norm() - found) > 0.1


def test_rank_deficient_design() -> None:
    """A repeated row neither divides by zero nor changes the solution."""
    problem = LeastSquares([[3.0, 4.0], [3.0, 4.0]], [5.0, 5.0])
    assert problem.curvatures.size == 1
    np.testing.assert_allclose(problem.minimum_norm(), [0.6, 0.8])


def test_least_squares_refuses(rng: np.random.Generator) -> None:
    """Errors name the argument."""
    with pytest.raises(ValueError, match="x must not be zero"):
        LeastSquares(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match=r"y must have shape \(2\)"):
        LeastSquares(np.ones((2, 3)), np.zeros(3))
    problem = LeastSquares(rng.standard_normal((3, 6)), rng.standard_normal(3))
    with pytest.raises(ValueError, match="steps must be whole"):
        problem.descend([0.5], step_size=0.1)
    with pytest.raises(FloatingPointError, match=r"step_size = .* diverges"):
        problem.descend([10**6], step_size=2 * problem.critical_step_size)
