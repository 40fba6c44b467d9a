"""Misalignment of two neurons of one class: from a point, and kept up by the dynamics."""

import numpy as np
import pytest

from companion.effective_dynamics.binary_mixture.misalignment import misalignment, sustained
from companion.effective_dynamics.binary_mixture.ring import ring
from traindyn.effective import ode
from traindyn.problems.two_layer import Point, TwoLayerMixture


def binary(precision, **options):
    """Binary mixture with two neurons."""
    return TwoLayerMixture.binary(2, 50, precision=precision, **({"ridge": 0.1} | options))


def test_is_a_distance_of_vectors():
    """Against the vectors themselves; leading axes allowed."""
    rng = np.random.default_rng(0)
    problem = binary(2.0)
    points = [Point(rng.normal(size=2), rng.normal(size=(2, 50))) for _ in range(3)]
    rows = [problem.statistics(point) for point in points]
    stacked = type(rows[0])(*(np.stack(parts) for parts in zip(*rows, strict=True)))
    direct = [np.linalg.norm(p.W[0] / p.v[0] - p.W[1] / p.v[1]) for p in points]
    np.testing.assert_allclose(misalignment(stacked), direct, rtol=1e-12)


@pytest.mark.parametrize(("precision", "c_delta", "ridge"), [(5.0, 3.0, 0.1), (4.0, 1.0, 0.15)])
def test_is_what_the_dynamics_keeps(precision, c_delta, ridge):
    """A start with independent neurons ends there, up to the next order in it.

    The exponent without its factor 1/2 is far off.
    """
    problem = binary(precision, ridge=ridge)
    start = problem.initial_statistics([1.2, 0.5])
    end = ode.solve(problem, start, [16 / ridge], c_delta=c_delta, rtol=1e-6, atol=1e-9)
    found = float(misalignment(end.statistics)[0])
    expected = sustained(problem, c_delta=c_delta)
    assert abs(found / expected - 1) < max(expected, 1e-3)
    merged = ring(problem, c_delta=c_delta).statistics
    cosine = np.sum(merged.m**2) / (np.sum(merged.m**2) + np.trace(merged.R_perp))
    assert found > 3 * expected * np.exp(-0.5 * precision * cosine)


def test_needs_the_corrector():
    """Below the critical step size neurons align; infeasible requests are refused."""
    assert sustained(binary(2.0), c_delta=0.0) == 0.0
    with pytest.raises(ValueError, match="c_delta must be non-negative"):
        sustained(binary(2.0), c_delta=-1.0)
    with pytest.raises(ValueError, match="precision must be finite"):
        sustained(binary(np.inf), c_delta=1.0)
    with pytest.raises(ValueError, match=r"ridge must be below 0\.25"):
        sustained(binary(2.0, ridge=0.3), c_delta=1.0)
