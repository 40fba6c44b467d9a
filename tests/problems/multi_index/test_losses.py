"""Losses: derivatives, bounds, limits."""

import numpy as np
import pytest

from traindyn.problems.multi_index import SQUARED, cauchy, log_cosh, logistic, pseudo_huber

ALL = (SQUARED, pseudo_huber(), pseudo_huber(0.3), log_cosh(), cauchy(), logistic())
STEP = 1e-5


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_derivatives_against_difference_quotients(loss):
    """Slope and curvature in the prediction, not in the label (the control: its sign)."""
    f = np.linspace(-3.0, 3.0, 41)
    y = np.full_like(f, 0.3)
    quotient = (loss.value(y, f + STEP) - loss.value(y, f - STEP)) / (2 * STEP)
    np.testing.assert_allclose(loss.slope(y, f), quotient, atol=1e-8)
    assert np.abs(-loss.slope(y, f) - quotient).max() > 0.1
    quotient = (loss.slope(y, f + STEP) - loss.slope(y, f - STEP)) / (2 * STEP)
    np.testing.assert_allclose(loss.curvature(y, f), quotient, atol=1e-8)
    narrow = f.astype(np.float32)
    for function in (loss.value, loss.slope, loss.curvature):
        assert function(narrow * 0, narrow).dtype == np.float32


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_bounded_slope(loss):
    """The flag that decides whether thresholds exist for unbounded labels."""
    y, f = np.full(2, 0.5), np.array([-1e6, 1e6])
    assert (np.abs(loss.slope(y, f)).max() < 10) == loss.bounded_slope
    assert np.all(np.isfinite(loss.value(y, f)))


def test_wide_pseudo_huber_is_the_squared_error():
    """Limit of large width, and no cancellation at small residuals."""
    y, f = np.zeros(3), np.array([1e-9, 0.1, 2.0])
    np.testing.assert_allclose(pseudo_huber(1e4).value(y, f), SQUARED.value(y, f), rtol=1e-6)
    with pytest.raises(ValueError, match=r"width must be positive, got -1\.0"):
        pseudo_huber(-1.0)
