"""Misprints used as controls, against the displays of the source (BGJ), transcribed here.

A check that confirms a correction must reject the formula that the source prints, not another
wrong one. Every formula below is written from the source's text, without the library's.
"""

import numpy as np
import pytest

from companion.effective_dynamics.pca.printed import (
    printed_diverging_equator,
    printed_double,
    printed_drift,
    printed_hessian,
    printed_informative,
    printed_ridge_equator,
    printed_volatility,
)
from traindyn.problems.spiked import Point, SpikedTensor, Statistics

M, R2, SIGNAL, RIDGE = 0.6, 0.8, 1.7, 0.3

SQUARE = M**2 + R2


def statistics(m=M, r2=R2):
    """Return statistics of spiked PCA."""
    return Statistics(np.asarray(m), np.asarray(r2))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_drift_with_ridge(k):
    """Display before (7.3)."""
    found = printed_drift(SpikedTensor(k, 9, SIGNAL, RIDGE), statistics(), c_delta=0.7)
    pull = 2 * M * (SIGNAL * k * M ** (k - 2) - k * SQUARE ** (k - 1) - RIDGE)
    radius = -(4 * R2 - 4 * 0.7) * k * SQUARE ** (k - 1) - 2 * RIDGE * R2
    np.testing.assert_allclose([found.m, found.r2], [pull, radius], rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_volatility(k):
    """BGJ (7.3), with R^2 - m^2 for the R^2 - m that is typeset."""
    rest, factor = SQUARE - M**2, 4 * k * (k - 1) * SQUARE ** (k - 2)
    first = factor * M**2 + 4 * k * SQUARE ** (k - 1)
    expected = [[first, factor * M * rest], [factor * M * rest, factor * rest**2]]
    found = printed_volatility(SpikedTensor(k, 9, SIGNAL), statistics())
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_hessian(k):
    """Display of BGJ Section 7.2: half the Hessian of the population loss."""
    x = np.array([0.5, 0.3, -0.7, 0.2])
    square, v = x @ x, np.eye(4)[0]
    grad_r2 = 2 * (x - x[0] * v)
    outer, radial = np.outer, k * (k - 1) * square ** (k - 2)
    half = (k * square ** (k - 1) - SIGNAL * k * (k - 1) * x[0] ** (k - 2)) * outer(v, v)
    half += radial * outer(2 * x[0] * v + grad_r2, v)
    half += radial * (2 * x[0] * outer(v, grad_r2) + outer(grad_r2, grad_r2))
    half += 0.5 * k * square ** (k - 1) * 2 * (np.eye(4) - outer(v, v))
    found = printed_hessian(SpikedTensor(k, 4, SIGNAL), Point(x))
    np.testing.assert_allclose(found, 2 * half, rtol=1e-12, atol=1e-14)


def test_informative_points():
    """BGJ Proposition 3.2 (2) with (7.5): both signs of both roots of the equation for R^2."""
    signal = 4.0
    found = printed_informative(SpikedTensor(3, 9, signal), c_delta=1.0)
    roots = np.roots([signal**-2, 0, 0, -1, 1])  # rho^4 / lambda^2 - rho + 1
    rho = np.sort(roots[np.abs(roots.imag) < 1e-12].real)
    m = np.sqrt(rho - 1)
    np.testing.assert_allclose(sorted(u.m for u in found), np.sort(np.r_[m, -m]), rtol=1e-8)
    assert all(u.r2 == pytest.approx(1) for u in found)


def test_ridge_on_the_equator():
    """BGJ Section 7.1: u2 = c - alpha/2."""
    assert printed_ridge_equator(c_delta=0.9, ridge=0.4).r2 == pytest.approx(0.9 - 0.2)


@pytest.mark.parametrize("k", [3, 4])
def test_diverging_signal(k):
    """BGJ (3.3): a drift linear in m."""
    law = printed_diverging_equator(SpikedTensor(k, 9, 1.0), 0.4)
    m, r2 = 1.3, 0.8
    drift = [2 * m * (k * 0.4 - k * r2 ** (k - 1)), -4 * k * r2 ** (k - 1) * (r2 - 1)]
    np.testing.assert_allclose(law.drift(np.array([m, r2])), drift, rtol=1e-12)
    noise = law.factor(np.array([m, r2]))
    np.testing.assert_allclose(noise[:, 0], [2 * (k * r2 ** (k - 1)) ** 0.5, 0], rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_double_blow_up(k):
    """BGJ (3.5), the same as BGJ (7.8)."""
    law, m, r = printed_double(SpikedTensor(k, 9, SIGNAL)), 1.3, -0.4
    drift = [2 * k * (SIGNAL * (k == 2) * m ** (k - 1) - 1), -4 * k**2 * r]
    np.testing.assert_allclose(law.drift(np.array([m, r])), drift, rtol=1e-12)
    noise = np.diag([2 * k**0.5, 2 * (k * (k - 1)) ** 0.5])
    np.testing.assert_allclose(law.factor(np.array([m, r])), noise, rtol=1e-12)
