"""Closed forms at the origin."""

import numpy as np
import pytest

from companion.alignment.beyond.initial import (
    g_threshold,
    hessian_law,
    hessian_spike,
    hessian_threshold,
)
from traindyn.laws import WeightedMarchenkoPastur


def outliers_at_origin(matrix, k, precision, alpha):
    """The general law with the exact two-point weights and second moments of each class."""
    weights = np.where(np.arange(k) == 0, (1 - 1 / k) ** 2, 1 / k**2)
    if matrix == "hessian":
        weights = np.full(k, (1 - 1 / k) / k)
    # symmetric points: E[u u^T] = mu mu^T + I / precision exactly
    noise = np.sqrt(k / precision) * np.vstack([np.eye(k), -np.eye(k)])
    features = (np.eye(k)[:, None, :] + noise).reshape(-1, k)
    law = WeightedMarchenkoPastur(
        np.repeat(weights, len(noise)), ratio=1 / alpha, variance=1 / precision
    )
    return law, law.outliers(features)


@pytest.mark.parametrize("alpha", [2.0, 10.0])
def test_hessian_law_agrees_with_the_general_law(alpha):
    """Edges, outlier and overlap of two independent routes; alpha inverted is far off."""
    law, found = outliers_at_origin("hessian", 3, 10.0, alpha)
    closed, spike = hessian_law(3, 10.0, alpha), hessian_spike(3, 10.0)
    np.testing.assert_allclose(law.edges, closed.edges, rtol=1e-10)
    np.testing.assert_allclose(found.values, np.full(3, closed.outlier(spike)), rtol=1e-9)
    np.testing.assert_allclose(found.overlaps, np.full(3, closed.overlap(spike)), rtol=1e-9)
    inverted = hessian_law(3, 10.0, 1 / alpha)
    assert abs(inverted.outlier(spike) / found.values[0] - 1) > 0.1


@pytest.mark.parametrize("k, precision", [(3, 2.0), (10, 10.0), (4, 0.5)])
def test_hessian_outliers_appear_at_the_threshold(k, precision):
    """None just below, k just above."""
    threshold = hessian_threshold(k, precision)
    counts = [
        outliers_at_origin("hessian", k, precision, factor * threshold)[1].values.size
        for factor in (0.97, 1.03)
    ]
    assert counts == [0, k]


@pytest.mark.parametrize(
    "k, precision, expected",
    [(10, 10, 809), (10, 30, 121), (10, 100, 19), (3, 3, 10.9), (3, 10, 1.86), (3, 30, 0.46)],
)
def test_small_g_outliers_appear_at_the_threshold(k, precision, expected):
    """The threshold separates one outlier from k in the general law."""
    threshold = g_threshold(k, precision)
    assert threshold == pytest.approx(expected, rel=0.02)
    counts = [
        outliers_at_origin("g_matrix", k, float(precision), factor * threshold)[1].values.size
        for factor in (0.97, 1.03)
    ]
    assert counts == [1, k]


def test_bad_arguments_are_named():
    """Two classes have no small outliers; sizes must be positive."""
    with pytest.raises(ValueError, match="k must be"):
        g_threshold(2, 10.0)
    with pytest.raises(ValueError, match="precision must be positive"):
        hessian_spike(3, -1.0)
    with pytest.raises(ValueError, match="sample_ratio must be positive"):
        hessian_law(3, 1.0, 0.0)
