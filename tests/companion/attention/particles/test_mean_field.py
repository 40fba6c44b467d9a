"""Densities on the circle, residual networks, and the time two groups take."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from companion.attention.particles.attention import Attention, FeedForward
from companion.attention.particles.laws import growth_rate, pair_time
from companion.attention.particles.mean_field import circle_flow, poisson_order
from companion.attention.particles.residual import euler_error, neural_ode, residual_network

SIZE = 512
ANGLES = 2 * np.pi * np.arange(SIZE) / SIZE


def order(density):
    """First Fourier coefficient."""
    return np.abs((density * np.exp(1j * ANGLES)).mean(axis=-1)) * 2 * np.pi


def test_poisson_kernels():
    """They stay what they are at infinite temperature, and only there."""
    times = np.array([0.0, 0.5, 1.5])
    r = 0.4
    start = (1 - r**2) / (1 - 2 * r * np.cos(ANGLES) + r**2) / (2 * np.pi)
    flow = circle_flow(start, times, inverse_temperature=0.0)
    np.testing.assert_allclose(order(flow), poisson_order(r, times), atol=1e-8)
    last = poisson_order(r, 1.5)
    kernel = (1 - last**2) / (1 - 2 * last * np.cos(ANGLES) + last**2) / (2 * np.pi)
    np.testing.assert_allclose(flow[-1], kernel, atol=1e-7)
    warm = circle_flow(start, times, inverse_temperature=1.0)
    assert abs(order(warm)[-1] - last) > 1e-2


@pytest.mark.parametrize("beta", [0.0, 2.0, 8.0])
def test_small_perturbations_grow_at_their_rates(beta):
    """Of the flat density, in modes one to three; the rate of the next mode is another."""
    rates = growth_rate(np.arange(1, 5), dimension=2, inverse_temperature=beta)
    for mode in (1, 2, 3):
        start = (1 + 1e-5 * np.cos(mode * ANGLES)) / (2 * np.pi)
        flow = circle_flow(start, [0.0, 1.0], inverse_temperature=beta)
        grown = np.log(np.ptp(flow[1]) / np.ptp(flow[0]))
        assert grown == pytest.approx(rates[mode - 1], abs=2e-5)
        if mode == 1 or beta:
            assert grown != pytest.approx(rates[mode], abs=1e-2)


def test_density_of_many_particles():
    """Tokens at quantiles of the density follow it (MDL Chapter 14, Equation 2.4)."""
    beta, n = 2.0, 800
    start = (1 + 0.5 * np.cos(ANGLES)) / (2 * np.pi)
    flow = circle_flow(start, [0.0, 2.0], inverse_temperature=beta)
    cells = np.linspace(-np.pi, np.pi, 20_001)
    mass = (cells + 0.5 * np.sin(cells) + np.pi) / (2 * np.pi)
    angles = np.interp((np.arange(n) + 0.5) / n, mass, cells)
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    later = Attention(beta).flow(x, [0.0, 2.0]).tokens[-1]
    assert np.linalg.norm(later.mean(axis=0)) == pytest.approx(order(flow)[1], abs=1e-4)


@pytest.mark.parametrize(("beta", "masses"), [(0.0, (0.2, 0.8)), (5.0, (0.5, 0.5))])
def test_pair_time(beta, masses):
    """Against two tokens in the dynamics."""
    x = np.array([[1.0, 0.0], [-0.8, 0.6]])
    time = pair_time(-0.8, inverse_temperature=beta, masses=masses, tolerance=1e-4)
    later = Attention(beta).flow(x, [0.0, time], masses=masses).tokens[-1]
    assert 1 - later[0] @ later[1] == pytest.approx(1e-4, rel=1e-4)


def turning(t):
    """Layers that change with depth."""
    c, s = np.cos(t), np.sin(t)
    return FeedForward([[c, s, 1.0], [-s, c, 0.5]], np.ones((3, 2)) * t - 0.5, [0.1, t, -1], "tanh")


def test_neural_ode():
    """Against SciPy on MDL Chapter 14, Equation 1.2; the network converges to it as predicted."""
    x = np.array([0.5, -1.0])

    def field(t, y):
        w, a, b, _ = turning(t)
        return np.array(w) @ np.tanh(np.array(a) @ y + b)

    solved = solve_ivp(field, (0, 1.5), x, rtol=1e-10, atol=1e-12, method="LSODA").y[:, -1]
    limit = neural_ode(turning, x, horizon=1.5)
    np.testing.assert_allclose(limit, solved, atol=1e-8)
    predicted = euler_error(turning, x, horizon=1.5)
    gaps = [depth * (residual_network(turning, x, depth=depth, horizon=1.5) - limit)
            for depth in (500, 1000)]  # fmt: skip
    extrapolated = 2 * gaps[1] - gaps[0]
    np.testing.assert_allclose(extrapolated, predicted, atol=1e-5)
    # A layer frozen in depth has another error.
    frozen = euler_error(turning(0.0), x, horizon=1.5)
    assert np.abs(frozen - predicted).max() > 1e-2


def test_network_as_printed():
    """Without a horizon the steps are one."""
    layer = FeedForward(np.eye(2), np.eye(2), np.zeros(2))
    np.testing.assert_allclose(residual_network(layer, [1.0, -1.0], depth=3), [8.0, -1.0])


def test_messages():
    """Each names the argument."""
    flat = np.full(32, 1 / (2 * np.pi))
    for call, message in (
        (lambda: circle_flow(flat * 2, [0.0, 1.0], inverse_temperature=1.0), "integral one"),
        (lambda: circle_flow(-flat, [0.0, 1.0], inverse_temperature=1.0), "must be non-negative"),
        (lambda: circle_flow(flat, [0.0, 1.0], inverse_temperature=-1.0), "inverse_temperature"),
        (lambda: poisson_order(1.0, [0.0]), "order must be below 1"),
        (lambda: pair_time(1.0, inverse_temperature=1.0), "product must be in"),
        (lambda: pair_time(0.0, inverse_temperature=-1.0), "inverse_temperature must be non-neg"),
        (lambda: neural_ode(turning, [1.0], horizon=1.0), "inner must have shape"),
        (lambda: neural_ode(turning, [1.0, 0.0], horizon=0.0), "horizon must be positive"),
        (lambda: residual_network(turning, [1.0, 0.0], depth=0), "depth must be an integer"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_narrow_densities_are_refused():
    """On a grid that cannot resolve them."""
    start = (1 + 0.5 * np.cos(ANGLES[::8])) / (2 * np.pi)
    with pytest.raises(FloatingPointError, match="too narrow"):
        circle_flow(start, [0.0, 10.0], inverse_temperature=1.0)
