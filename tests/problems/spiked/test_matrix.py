"""Spiked matrix PCA: the closed solution."""

import numpy as np
import pytest

from companion.effective_dynamics.pca.printed import as_printed
from traindyn.effective import ode
from traindyn.gaussian import gauss_hermite
from traindyn.problems.spiked import SpikedTensor, Statistics
from traindyn.problems.spiked.matrix import solution

NO_RULE = gauss_hermite(1, 1)
TIMES = np.linspace(0.0, 2.0, 21)


@pytest.mark.parametrize("signal", [0.4, 1.0, 1.5])
@pytest.mark.parametrize("c_delta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("ridge", [0.0, 0.3, 4.0])
def test_closed_solution_solves_the_effective_dynamics(signal, c_delta, ridge):
    """Against the adaptive solver, at every coincidence of rates, for both signs of m.

    With ridge the printed drift is rejected.
    """
    problem = SpikedTensor(2, 100, signal=signal, ridge=ridge)
    for m, r2 in ((0.3, 1.3), (-0.6, 1.0), (0.0, 0.2), (0.5, 0.0)):
        start = Statistics(np.array(m), np.array(r2))
        options = {"c_delta": c_delta, "rule": NO_RULE, "rtol": 1e-11, "atol": 1e-13}
        closed = solution(problem, start, TIMES, c_delta=c_delta)
        assert max(ode.solve(problem, start, TIMES, **options).sup_distance(closed)) < 1e-9
        printed = ode.solve(as_printed(problem), start, TIMES, **options).sup_distance(closed)
        assert (max(printed) > 1e-3) == (ridge > 0 and m != 0)


def test_closed_solution_against_its_expanded_form():
    """The formula by quotients, where it is regular (no ridge, three distinct rates)."""
    signal, c, p0, q0 = 1.7, 0.6, 0.09, 1.3
    found = solution(
        SpikedTensor(2, 100, signal=signal), Statistics(-0.3, q0), TIMES, c_delta=c
    ).statistics
    kappa = p0 / (q0 - c)
    slow, fast = np.exp(8 * c * TIMES), np.exp(8 * signal * TIMES)
    y = slow / (q0 - c) + (slow - 1) / c + kappa * (fast - slow) / (signal - c)
    np.testing.assert_allclose(found.r2, c + 1 / y, rtol=1e-10)
    np.testing.assert_allclose(found.m, -np.sqrt(kappa * fast / y), rtol=1e-10)


def test_closed_solution_at_late_times():
    """Exponentials of thousands cancel in the ratios."""
    problem = SpikedTensor(2, 100, signal=5.0)
    end = solution(problem, Statistics(1e-6, 1.0), [1e3], c_delta=1.0).statistics
    np.testing.assert_allclose(np.array(end)[:, 0], [2.0, 1.0])


def test_other_orders_are_refused():
    """The closed solution is that of order two."""
    with pytest.raises(ValueError, match="order"):
        solution(SpikedTensor(3, 9, signal=1.0), Statistics(0.3, 1.0), [1.0], c_delta=1.0)
