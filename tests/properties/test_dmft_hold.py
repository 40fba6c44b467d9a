"""Mean-field kernels and thresholds, at arguments that nobody chose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from companion.phase_transitions.thresholds.bounds import price
from traindyn.dmft import solve
from traindyn.dmft.curve import crossing, half_point
from traindyn.problems.multi_index import MultiIndex

few = settings(max_examples=8, derandomize=True, deadline=None)
seeds = st.integers(0, 2**32)


@few
@given(st.floats(0.5, 20.0), st.floats(0.05, 1.5), seeds)
def test_kernels_are_covariances_and_causal(delta: float, step_size: float, seed: int) -> None:
    """Positive in time and neurons together; nothing answers a push before it."""
    found = solve(
        MultiIndex(), 3, sample_ratio=delta, step_size=step_size, rng=seed, paths=256, replicas=1
    )
    kernels = found.kernels
    for kernel in (kernels.correlation, kernels.force_correlation):
        matrix = kernel[:, :, 0, 0]
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-9 * np.trace(matrix)
    assert np.all(np.triu(kernels.response[:, :, 0, 0]) == 0)
    assert np.all(np.triu(kernels.force_response[:, :, 0, 0], 1) == 0)
    np.testing.assert_allclose(np.diagonal(kernels.response[:, :, 0, 0], -1), 1)
    assert np.all(kernels.train_loss >= 0)
    assert kernels.train_loss[0] == pytest.approx(kernels.test_loss[0])


@few
@given(st.floats(1.0, 9.0), st.floats(0.2, 5.0), st.floats(0.1, 3.0), st.floats(0.01, 1.0))
def test_crossings_follow_their_axis(root: float, unit: float, slope: float, bend: float) -> None:
    """Of any quadratic through one, in any unit of delta; larger values cross earlier."""
    grid = np.linspace(root - 0.4, root + 0.6, 5)
    values = 1 + slope * (grid - root) + bend * slope * (grid - root) ** 2
    assert crossing(grid, values) == pytest.approx(root)
    assert crossing(unit * grid, values) == pytest.approx(unit * root)
    assert crossing(grid, values + 0.05 * slope) < crossing(grid, values)


@few
@given(st.lists(st.integers(1, 29), min_size=5, max_size=5), st.floats(0.2, 5.0))
def test_half_points_follow_their_axis(hits: list[int], unit: float) -> None:
    """Scaled, or turned around with failures for successes; falling frequencies are refused."""
    successes, trials = np.sort(hits) + np.arange(5), np.full(5, 40)
    grid = np.arange(1.0, 6.0)
    found = half_point(grid, successes, trials)
    assert found.error > 0
    moved = half_point(unit * grid, successes, trials)
    assert moved.value == pytest.approx(float(unit * found.value), rel=1e-4)
    mirrored = half_point(6 - grid[::-1], (trials - successes)[::-1], trials)
    assert mirrored.value == pytest.approx(6 - float(found.value), abs=1e-3)
    assert mirrored.error == pytest.approx(float(found.error), rel=1e-3)
    with pytest.raises(ValueError, match="successes must rise"):
        half_point(grid, successes[::-1], trials)


@few
@given(seeds, st.floats(0.3, 8.0))
def test_prices_are_shares(seed: int, delta: float) -> None:
    """Each factor is at most one, and all together give the criterion."""
    rng = np.random.default_rng(seed)
    s = rng.standard_normal(60)
    labels, weights = np.round(s**2), rng.standard_normal(60) - s**2
    found = price(weights, s, labels, delta)
    assert 0 <= found.stability <= 1 + 1e-9
    assert 0 <= found.share <= 1 + 1e-9
    assert 0 <= found.alignment <= 1 + 1e-9
    assert found.information > 0
