"""Activations: derivatives, types, refusals."""

import numpy as np
import pytest

from traindyn.activations import ERF, GELU, IDENTITY, QUADRATIC, RELU, TANH, Activation, softplus

SMOOTH = (ERF, GELU, QUADRATIC, TANH, IDENTITY, softplus(3.0))
GRID = np.linspace(-4.0, 4.0, 81)
STEP = 1e-5


@pytest.mark.parametrize("activation", SMOOTH, ids=repr)
def test_derivatives_against_difference_quotients(activation):
    """Slope and curvature to 1e-8; the control, a slope 1 % too large, is off by more."""
    quotient = (activation.value(GRID + STEP) - activation.value(GRID - STEP)) / (2 * STEP)
    slope = activation.slope(GRID)
    np.testing.assert_allclose(slope, quotient, atol=1e-8)
    assert np.abs(1.01 * slope - quotient).max() > 1e-3
    curvature = activation.second("a test")(GRID)
    quotient = (activation.slope(GRID + STEP) - activation.slope(GRID - STEP)) / (2 * STEP)
    np.testing.assert_allclose(curvature, quotient, atol=1e-8)


@pytest.mark.parametrize("activation", [*SMOOTH, RELU], ids=repr)
def test_single_precision_is_kept(activation):
    """A silent promotion to double would halve the speed of training."""
    narrow = GRID.astype(np.float32)
    for function in (activation.value, activation.slope, activation.curvature):
        if function is not None:
            assert function(narrow).dtype == np.float32
            np.testing.assert_allclose(function(narrow), function(GRID), atol=3e-5)
    value, slope = activation.value_and_slope(GRID)
    np.testing.assert_array_equal(value, activation.value(GRID))
    np.testing.assert_array_equal(slope, activation.slope(GRID))


@pytest.mark.parametrize("activation", [*SMOOTH, RELU], ids=repr)
def test_bounds_hold(activation):
    """Bounds on values feed the check that the curvature is bounded."""
    values = activation.value(np.linspace(-30.0, 30.0, 20_001))
    assert activation.low <= values.min() and values.max() <= activation.high


def test_curvature_range():
    """Extremes of (2 - v^2) phi(v): 2 phi(0), and at v = 2."""
    low, high = GELU.curvature_range
    assert high == pytest.approx(2 / np.sqrt(2 * np.pi))
    assert low == pytest.approx(-2 * np.exp(-2) / np.sqrt(2 * np.pi))


def test_a_jump_has_no_derivative():
    """It can be evaluated; the message names what the derivative was for."""
    sign = Activation("sign", np.sign, None, None)
    assert sign.value(-2.0) == -1.0
    with pytest.raises(ValueError, match="a derivative for training, got sign"):
        sign.first("training")
    with pytest.raises(ValueError, match="got sign"):
        sign.value_and_slope(GRID)


def test_a_kink_has_no_curvature():
    """The message names the activation and the way out."""
    with pytest.raises(ValueError, match=r"second derivative for the Hessian, got relu.*softplus"):
        RELU.second("the Hessian")
    with pytest.raises(ValueError, match="sharpness must be positive, got 0"):
        softplus(0)
