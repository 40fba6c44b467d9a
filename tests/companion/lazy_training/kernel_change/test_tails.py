"""Thresholds by simulation, with shifts that depend on the draw, as bad as the ball allows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from companion.lazy_training.kernel_change.tails import (
    printed_series_threshold,
    series_threshold,
    series_variance,
)

DRAWS, P, R = 2000, 0.2, 6.0
MOST = DRAWS * P + 5 * np.sqrt(DRAWS * P)


def exceeded(norms: np.ndarray, threshold: float) -> int:
    """How often."""
    return int(np.count_nonzero(norms > threshold))


def test_series() -> None:
    """ZHU Lemma A.11.8, for a shift along the leading singular pair; as printed it is false."""
    rng = np.random.default_rng(2)
    matrices = rng.standard_normal((7, 4, 3)) / 20
    nu = series_variance(matrices)
    assert nu < 1
    gamma = rng.standard_normal((DRAWS, 7))
    left, values, right = np.linalg.svd(np.einsum("rk,kij->rij", gamma, matrices))
    slope = np.einsum("ri,kij,rj->rk", left[:, :, 0], matrices, right[:, 0])
    norms = values[:, 0] + R * np.linalg.norm(slope, axis=1)
    assert exceeded(norms, series_threshold(matrices, R, P)) < MOST
    assert exceeded(norms, printed_series_threshold(matrices, R, P)) > MOST
    both = [f(matrices, 0, P) for f in (series_threshold, printed_series_threshold)]
    assert both[0] == both[1]
    # Diagonal matrices with one entry each: the largest of independent variables.
    single = np.einsum("ki,kj->kij", np.eye(5), np.eye(5))
    np.testing.assert_allclose(series_variance(single), 1, rtol=1e-15)


def test_bad_arguments() -> None:
    """Each error names what is wrong."""
    with pytest.raises(ValueError, match=r"probability must be in \(0, 1\)"):
        series_threshold([np.eye(2)], 1.0, 1.0)
    with pytest.raises(ValueError, match="radius must be non-negative"):
        series_threshold([np.eye(2)], -1.0, 0.5)
    with pytest.raises(ValueError, match="matrices must have shape"):
        series_threshold(np.eye(2), 1.0, 0.5)
