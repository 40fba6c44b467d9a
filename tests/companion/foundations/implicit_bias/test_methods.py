"""Methods other than gradient descent."""

import numpy as np
import pytest
from scipy import linalg

from companion.foundations.implicit_bias.methods import descend
from traindyn.problems.regression import LeastSquares


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh for each test."""
    return np.random.default_rng(7)


def test_methods_fit_and_differ(rng: np.random.Generator) -> None:
    """Momentum ends as MDL Lemma 4.2 says, the others elsewhere; the mirror has its rule."""
    problem = LeastSquares(rng.standard_normal((4, 9)), 2 * rng.standard_normal(4))
    safe, shortest = problem.critical_step_size, problem.minimum_norm()
    ends = {}
    for method, size in (("momentum", 0.2), ("steepest", 0.1), ("mirror", 0.1)):
        ends[method] = descend(
            problem.gradient, np.zeros(9), step_sizes=np.full(6000, size * safe), method=method
        )[-1]
        assert problem.loss(ends[method]) < 1e-20
    for decaying in ("adam", "sign"):
        sizes = 0.03 * 0.998 ** np.arange(6000)
        run = descend(problem.gradient, np.zeros(9), step_sizes=sizes, method=decaying)
        assert problem.loss(run[-1]) < 1e-6
        assert np.linalg.norm(run[-1] - shortest) > 0.05
    kernel = linalg.null_space(problem.x)
    assert np.linalg.norm(ends["momentum"] - shortest) < 1e-9
    assert np.linalg.norm(ends["steepest"] - shortest) > 0.05
    assert np.abs(kernel.T @ np.arcsinh(ends["mirror"])).max() < 1e-9
    assert np.abs(kernel.T @ ends["mirror"]).max() > 1e-3


def test_methods_refuse() -> None:
    """Errors name the argument."""
    with pytest.raises(ValueError, match="step_sizes must be positive"):
        descend(lambda w: w, [1.0], step_sizes=[0.0])
    with pytest.raises(ValueError, match="record must be whole numbers up to 2"):
        descend(lambda w: w, [1.0], step_sizes=[0.1, 0.1], record=[3])
    with pytest.raises(ValueError, match="method must be one of"):
        descend(lambda w: w, [1.0], step_sizes=[0.1], method="newton")  # type: ignore[arg-type]
    with pytest.raises(FloatingPointError, match="gradient diverges"):
        descend(lambda w: 2 * w, [1.0], step_sizes=np.full(2000, 3.0))
