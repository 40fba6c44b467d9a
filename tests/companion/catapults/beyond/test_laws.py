"""Products, series, phases and angle tripling of the one-example map."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.polynomial import polynomial
from scipy import integrate

from companion.catapults.beyond.laws import (
    DEPARTURE_RATE,
    LYAPUNOV_EXPONENT,
    final_kernel_series,
    peak_series,
    periodic_angles,
    phase_effect,
    phase_ends,
    threshold_slope,
    triple_exactly,
)
from traindyn.catapults import limit_orbits, reduced_step


def values(series, at):
    """Sum a series."""
    return polynomial.polyval(at, [float(each) for each in series])


def test_final_kernel_series_against_the_map():
    """Error of order k is the next coefficient times the power, at an excess of 1/100."""
    (end,) = phase_ends(0.01, phases=1, digits=60)
    series = final_kernel_series(9)
    assert series[:4] == (2, -1, Fraction(-2, 3), Fraction(-4, 9))
    delta = Fraction(1, 100)
    for k in range(1, 8):
        partial = sum(c * delta**i for i, c in enumerate(series[: k + 1]))
        left = (Fraction(end) - partial) / delta ** (k + 1)
        assert float(left) == pytest.approx(float(series[k + 1]), abs=0.02)


@pytest.mark.parametrize("delta", [0.05, 0.1, 0.2])
def test_peak_series_are_the_edges_of_the_band(delta):
    """Order eight to the resolution of 2000 phases; exchanged, they are off by delta^4 / 8."""
    peaks, _ = limit_orbits(delta, phases=2000)
    lower, upper = peak_series(8)
    assert peaks.min() == pytest.approx(values(lower, delta), rel=3e-5)
    assert peaks.max() == pytest.approx(values(upper, delta), rel=3e-6)
    assert values(upper, delta) - values(lower, delta) == pytest.approx(delta**4 / 8, rel=0.3)


def test_shorter_series_are_the_beginning_of_longer_ones():
    """Also after a longer one was computed."""
    assert final_kernel_series(8)[:4] == final_kernel_series(3)
    assert peak_series(9).upper[:5] == peak_series(4).upper


def test_invariant_is_kept_by_the_map():
    """The level on which the series rest: what one step changes is of the order beyond them."""
    from companion.catapults.beyond.laws import _invariant

    def level(p, u, order):
        return sum(float(c) * p**i * u**j for (i, j), c in _invariant(order).items())

    for order in (4, 7):
        changes = []
        for size in (0.08, 0.04):
            p, u = 0.7 * size, 0.6 * size**2
            after = reduced_step(u, 2 + p)
            changes.append(abs(level(after.v - 2, after.u, order) - level(p, u, order)))
        assert np.log2(changes[0] / changes[1]) == pytest.approx(order + 2, abs=0.3)


def test_phases_matter_beyond_all_orders():
    """Half the excess squares the difference, up to its prefactor."""
    spread = []
    for delta in (0.1, 0.05):
        ends = phase_ends(delta, phases=4, digits=120)
        spread.append(float((max(ends) - min(ends)).ln()))
    assert spread[1] - spread[0] == pytest.approx(-(np.pi**2) * 10 + np.log(2), abs=0.3)


def test_phase_effect_is_that_of_double_precision_where_it_is_visible():
    """Mean and first harmonic of the ends of 64 phases at an excess of one half."""
    _, ends = limit_orbits(0.5, phases=64, start=1e-18)
    found = phase_effect(0.5, phases=8)
    assert found.mean == pytest.approx(ends.mean(), abs=1e-10)
    amplitude = 2 * abs(np.fft.rfft(ends)[1]) / 64
    assert np.exp(found.log_amplitude) == pytest.approx(amplitude, rel=1e-5)
    assert phase_effect(0.1).mean == pytest.approx(values(final_kernel_series(8), 0.1), abs=1e-9)


def test_precision_of_the_caller_is_left_alone():
    """Decimal's context is local; starts are refused where runs diverge."""
    before = Decimal(1) / 3
    phase_ends(0.5, phases=2, digits=40)
    assert Decimal(1) / 3 == before
    with pytest.raises(ValueError, match="below 2"):
        phase_ends(2.0, phases=1, digits=40)


def test_exact_tripling_is_the_map_of_the_losses():
    """Against the map in double precision while its errors are small, and its long period."""
    x = triple_exactly(3**80 % 2**128, bits=128, steps=400)
    u = 4 * np.sin(np.pi * x) ** 2
    np.testing.assert_allclose(reduced_step(u[:-1], 4.0).u, u[1:], atol=1e-13)
    for t in range(8):
        u[t + 1] = reduced_step(u[t], 4.0).u
    assert u[8] == pytest.approx(4 * np.sin(np.pi * x[8]) ** 2, abs=1e-10)
    assert np.unique(x).size == 401


@pytest.mark.parametrize("period", [1, 2, 5])
def test_periodic_angles_are_all_there_are(period):
    """As many as the degree of the iterate; each comes back."""
    angles = periodic_angles(period)
    assert len(set(angles)) == 3**period
    for x in angles:
        end = 3**period * x % 1
        assert end in (x % 1, -x % 1)


def test_exponents_are_means_under_the_arcsine_law():
    """Quadrature over the angle; the slope by differences."""
    u = lambda t: 4 * np.sin(t) ** 2  # noqa: E731
    grow, _ = integrate.quad(lambda t: np.log1p(u(t)) / np.pi, 0, np.pi)
    assert grow == pytest.approx(DEPARTURE_RATE, abs=1e-10)
    points = [np.pi / 6, np.pi / 3, np.pi / 2]
    stretch, _ = integrate.quad(
        lambda t: 2 * np.log(abs(threshold_slope(u(t)))) / np.pi, 0, np.pi / 2, points=points
    )
    assert stretch == pytest.approx(LYAPUNOV_EXPONENT, abs=1e-6)
    at, h = np.array([0.3, 1.7, 3.6]), 1e-6
    slope = (reduced_step(at + h, 4.0).u - reduced_step(at - h, 4.0).u) / (2 * h)
    np.testing.assert_allclose(threshold_slope(at), slope, rtol=1e-8)


@pytest.mark.parametrize(
    "call",
    [
        lambda: final_kernel_series(0),
        lambda: peak_series(1),
        lambda: periodic_angles(0),
        lambda: triple_exactly(1, bits=32, steps=1),
        lambda: triple_exactly(-1, bits=64, steps=1),
        lambda: phase_ends(0.1, phases=1, digits=5),
        lambda: phase_effect(0.1, phases=2),
        lambda: threshold_slope(np.nan),
    ],
)
def test_arguments_out_of_range(call):
    """Each is refused."""
    with pytest.raises(ValueError, match="must"):
        call()
