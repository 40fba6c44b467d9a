"""Bounds of large deviations against quadrature, exact laws and simulated matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from traindyn.spectra import tails

FORMS = [(0.5, 0.0), (2.0, 0.0), (1.0, 0.5), (4.5, 0.5)]


def _moment(theta: float, factor: float, offset: float, mean: float, deviation: float) -> float:
    """The same expectation for mean + deviation g in place of 1 + g, by quadrature."""

    def density(g: float) -> float:
        q = offset + factor * (mean + deviation * g) ** 2
        return float(q**2 * np.exp(theta * q - g * g / 2) / np.sqrt(2 * np.pi))

    return float(integrate.quad(density, -35, 35, limit=400, points=[0.0])[0])


@pytest.mark.parametrize(("factor", "offset"), FORMS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_moments_are_largest_at_the_largest_mean_and_noise(
    factor: float, offset: float, share: float
) -> None:
    """Equal to the quadrature there; smaller means and noises have smaller moments."""
    theta = share / (2 * factor)
    most = tails.second_moment(theta, factor=factor, offset=offset)
    assert most == pytest.approx(_moment(theta, factor, offset, 1.0, 1.0), rel=1e-7)
    values = [_moment(theta, factor, offset, m, s) for m in (0, 0.5, 1) for s in (0.2, 0.6, 1)]
    grid = np.reshape(values, (3, 3))
    assert np.all(np.diff(grid, axis=0) > 0) and np.all(np.diff(grid, axis=1) > 0)
    assert tails.second_moment(0.5 / factor, factor=factor) == np.inf


@pytest.mark.parametrize("samples", [30, 300])
def test_exact_probabilities_are_smaller_on_both_sides(samples: int) -> None:
    """The mean of (1 + g)^2 / 2 has a non-central chi-square law; half the factor is refused."""
    s = np.geomspace(0.02, 20, 40)
    centre = 2 * samples
    upper = stats.ncx2.logsf(centre * (1 + s), samples, samples)
    lower = stats.ncx2.logcdf(centre * (1 - s[s < 1]), samples, samples)
    bound = -samples * np.array([tails.exponent(each, factor=0.5) for each in s])
    assert np.all(upper <= bound) and np.all(lower <= bound[s < 1])
    wrong = -samples * np.array([tails.exponent(each, factor=0.25) for each in s])
    assert np.any(upper[np.isfinite(upper)] > wrong[np.isfinite(upper)])


@pytest.mark.parametrize(("factor", "offset"), FORMS)
def test_the_exponent_has_the_form_of_the_theorem(factor: float, offset: float) -> None:
    """BGHJ Theorems 6.1 and 6.2: above c (t and t^2), below what it approaches."""
    t = np.geomspace(1e-3, 1e3, 60)
    psi = np.array([tails.exponent(each / 2, factor=factor, offset=offset) for each in t])
    tail = tails.constants(factor=factor, offset=offset, rows=3)
    over = psi / np.minimum(t, t**2)
    assert np.all(over >= tail.rate) and np.any(over < 2 * tail.rate)
    assert np.all(psi <= t / (4 * factor))
    at_zero = tails.second_moment(0.0, factor=factor, offset=offset)
    np.testing.assert_allclose(psi[:5], t[:5] ** 2 / (8 * at_zero), rtol=0.05)
    assert tail.entropy == pytest.approx(3 * np.log(9) + np.log(2))


def test_scaling_the_matrices_scales_the_deviation() -> None:
    """Of forms without offset, whose exponent depends on s over the factor alone."""
    one, two = (tails.exponent(s, factor=factor) for s, factor in ((1.3, 0.5), (5.2, 2.0)))
    assert one == pytest.approx(two, rel=1e-9)


def test_simulated_matrices_stay_within_the_bound() -> None:
    """Means of w w^T Y Y^T with signs w, at sizes where the bound is about one in twenty."""
    rng = np.random.default_rng(4)
    d, samples, t = 2, 1500, 0.9
    bound = 2 * 9.0**d * np.exp(-samples * tails.exponent(t / 2, factor=1.0))
    assert 0.001 < bound < 0.1
    Y = rng.standard_normal((400, samples, d)) + np.array([1.0, 0.0])
    found = np.einsum("nsi,nsj->nij", Y, Y) / samples - np.diag([2.0, 1.0])
    norms = np.abs(np.linalg.eigvalsh(found)).max(axis=1)
    assert np.mean(norms > t) <= bound and norms.max() > 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tails.second_moment(-1.0, factor=1.0), "theta must be"),
        (lambda: tails.exponent(-1.0, factor=1.0), "s must be"),
        (lambda: tails.exponent(1.0, factor=0.0), "factor must be"),
        (lambda: tails.exponent(1.0, factor=1.0, offset=-1.0), "offset must be"),
        (lambda: tails.constants(factor=1.0, rows=0.0), "rows must be"),
    ],
)
def test_refusals(call, message: str) -> None:
    """Names of the arguments."""
    with pytest.raises(ValueError, match=message):
        call()
