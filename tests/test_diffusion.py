"""Linear stochastic equations against independent routes."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from traindyn.diffusion import LinearDiffusion, van_loan

MATRIX = np.array([[-0.5, 1.0, 0.0], [-1.0, -0.2, 0.3], [0.0, 0.4, -1.0]])
ROOT = np.array([[0.5, 0.0], [0.1, 0.2], [-0.7, 0.3]])
LINE = LinearDiffusion(("x", "y", "z"), MATRIX, ROOT @ ROOT.T)
START = np.diag([1.0, 0.0, 2.0])


def integrated(noise, time):
    """Covariance by its differential equation."""

    def slope(_, flat):
        covariance = flat.reshape(3, 3)
        return (MATRIX @ covariance + covariance @ MATRIX.T + noise).ravel()

    found = solve_ivp(slope, (0, time), START.ravel(), rtol=1e-11, atol=1e-13)
    return found.y[:, -1].reshape(3, 3)


def test_covariance_solves_its_equation():
    """Against an integration; without the noise it is not that."""
    for time, found in zip([0.0, 0.3, 2.0], LINE.covariance([0.0, 0.3, 2.0], START), strict=True):
        np.testing.assert_allclose(found, integrated(LINE.noise, time), atol=1e-9)
    quiet = integrated(np.zeros((3, 3)), 2.0)
    assert np.abs(LINE.covariance([2.0], START)[0] - quiet).max() > 0.1


def test_stationary_covariance_stays_and_attracts():
    """Also where the noise has lower rank than the space."""
    stationary = LINE.stationary()
    np.testing.assert_allclose(LINE.covariance([5.0], stationary)[0], stationary, atol=1e-12)
    assert np.abs(LINE.covariance([5.0], 2 * stationary)[0] - stationary).max() > 1e-3


def test_van_loan_for_many_times():
    """Transition and noise, with any leading axes of the times."""
    times = np.array([[0.1, 0.2], [0.4, 3.0]])
    transition, noise = van_loan(MATRIX, LINE.noise, times)
    assert transition.shape == noise.shape == (2, 2, 3, 3)
    np.testing.assert_allclose(transition[1, 0], expm(0.4 * MATRIX), atol=1e-13)
    one = van_loan(MATRIX, LINE.noise, np.array(0.2))
    np.testing.assert_allclose(one[0], transition[0, 1], atol=1e-13)
    # Two intervals in a row.
    step, kick = transition[0, 1], noise[0, 1]
    np.testing.assert_allclose(step @ kick @ step.T + kick, noise[1, 0], atol=1e-13)


def test_van_loan_at_long_times():
    """The plain exponential of the block overflows all digits: 1e37 here after 60 times."""
    fast = np.diag([-1.0, -24.0])
    noise = np.array([[2.0, 1.0], [1.0, 3.0]])
    rates = np.add.outer(np.diag(fast), np.diag(fast))
    times = np.array([0.0, 1e-3, 0.5, 3.0, 100.0])
    transition, found = van_loan(fast, noise, times)
    closed = np.expm1(times[:, None, None] * rates) / rates * noise
    np.testing.assert_allclose(found, closed, rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(transition, axis1=1, axis2=2)[:, 0], np.exp(-times))
    assert np.abs(LINE.covariance([60.0], START)[0] - LINE.stationary()).max() < 1e-9


def test_factor_form_has_the_same_coefficients():
    """Drift and squared factor, with leading axes."""
    u = np.random.default_rng(0).normal(size=(4, 2, 3))
    given = LINE.diffusion()
    assert given.names == LINE.names
    np.testing.assert_allclose(given.drift(u)[1, 1], MATRIX @ u[1, 1])
    factor = given.factor(u)
    assert factor.shape == (4, 2, 3, 3)
    np.testing.assert_allclose(factor[2, 0] @ factor[2, 0].T, LINE.noise, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("matrix", "noise", "said"),
    [
        (1.0, 1e308, "up to 1, of noise up to 1e\\+308"),
        (1e3, 1.0, "up to 1e\\+03"),
        (-1e200, 1.0, "up to"),
    ],
)
def test_what_is_beyond_the_numbers_is_told(matrix, noise, said):
    """It was NaN, or an error of Python."""
    with pytest.raises(FloatingPointError, match=f"^matrix, noise and times must .* matrix {said}"):
        van_loan(matrix * np.eye(2), noise * np.eye(2), np.array([1.0, 2.0]))


def test_noise_near_the_largest_number_keeps_its_digits():
    """It was refused, though the covariance is a number."""
    _, covariances = van_loan(-np.eye(2), 1e308 * np.eye(2), np.array([1.0, 2.0]))
    expected = -np.expm1([-2.0, -4.0]) / 2
    np.testing.assert_allclose(covariances[:, 0, 0] / 1e308, expected, rtol=1e-14)


def test_bad_requests_are_named():
    """No stationary law, a start that is no covariance."""
    growing = LinearDiffusion(("x",), np.array([[0.1]]), np.array([[1.0]]))
    with pytest.raises(ValueError, match=r"negative real parts .* got 0\.1"):
        growing.stationary()
    with pytest.raises(ValueError, match="start must be positive semi-definite"):
        LINE.covariance([1.0], -START)
    with pytest.raises(ValueError, match="start must be positive semi-definite"):
        LINE.covariance([1.0], -1e-11 * np.eye(3))
    with pytest.raises(ValueError, match=r"start must have shape \(3, 3\)"):
        LINE.covariance([1.0], np.eye(2))
