"""Critical weight of the second neuron: against the dynamics at finite precision."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from companion.effective_dynamics.binary_mixture import basin
from companion.effective_dynamics.binary_mixture.basin import critical_weight, success_slope
from traindyn.effective import ode
from traindyn.problems.two_layer import TwoLayerMixture


def final_side(precision, leader, weight, ridge=0.1):
    """Where the second neuron of the full dynamics ends, started at weight / precision."""
    problem = TwoLayerMixture.binary(2, 50, precision=precision, ridge=ridge)
    start = problem.initial_statistics([leader, weight / precision])
    end = ode.solve(problem, start, [8 / ridge], c_delta=1.0, rtol=1e-5, atol=1e-8 / precision)
    return float(end.statistics.v[0, 1] + end.statistics.m[0, 1, 0])


@pytest.mark.nightly
@pytest.mark.parametrize(("leader", "ridge"), [(2.0, 0.1), (1.0, 0.15)])
def test_separates_the_full_dynamics(leader, ridge):
    """Starts a relative 1 / lambda below and above it part, at lambda = 100."""
    critical = critical_weight(leader, ridge)
    assert final_side(100.0, leader, 0.99 * critical, ridge) < 0
    assert final_side(100.0, leader, 1.01 * critical, ridge) > 0


def test_limits():
    """Weaker leaders and larger ridges turn fewer; the accuracy is what is asked for."""
    found = [critical_weight(1.0, ridge) for ridge in (0.02, 0.05, 0.1, 0.2, 0.249)]
    assert np.all(np.diff(found) < 0)
    rough, fine = (critical_weight(1.0, 0.1, accuracy=a) for a in (1e-3, 1e-7))
    assert abs(rough - fine) < 1e-3
    assert critical_weight(0.01, 0.1) < 0.05 * 0.01


@pytest.mark.nightly
def test_slope_is_the_mean_over_leaders():
    """Simpson's rule; half of it, for one neuron only, is told apart."""
    leaders = np.linspace(0.1, 5.1, 41)
    critical = [critical_weight(v, 0.1, accuracy=1e-4) for v in leaders]
    mean = integrate.simpson(2 * stats.norm.pdf(leaders) * critical, x=leaders)
    mean += 2 * stats.norm.pdf(0) * 0.5 * 0.1 * critical[0]
    found = success_slope(0.1)
    assert abs(found - 2 * mean / math.sqrt(2 * math.pi)) < 3e-4
    assert abs(found - mean / math.sqrt(2 * math.pi)) > 0.03


def test_infeasible_requests_are_refused():
    """Nothing is learned from ridge 1/4 on; the leader sets the sign."""
    for function in (success_slope, lambda ridge: critical_weight(1.0, ridge)):
        with pytest.raises(ValueError, match=r"ridge must be below 0\.25"):
            function(0.25)
    with pytest.raises(ValueError, match="leader must be positive"):
        critical_weight(-1.0, 0.1)
    with pytest.raises(ValueError, match="accuracy must be positive"):
        critical_weight(1.0, 0.1, accuracy=0.0)
    with pytest.raises(ValueError, match=r"leader must be at most 1e\+08, got 1e\+16"):
        critical_weight(1e16, 0.1)
    assert np.isfinite(success_slope(0.2))


def test_every_search_ends(monkeypatch):
    """Bisection stops at neighbouring numbers, doubling where nothing is found."""
    fine = critical_weight(1.0, 0.1, accuracy=1e-7)
    assert critical_weight(1.0, 0.1, accuracy=1e-30) == pytest.approx(fine, abs=1e-7)
    monkeypatch.setattr(basin, "_follows", lambda *given: False)
    with pytest.raises(FloatingPointError, match="leader must be followed from some weight"):
        critical_weight(1.0, 0.1)
