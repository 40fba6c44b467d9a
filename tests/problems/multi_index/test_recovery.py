"""The algorithmic threshold against closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import k0, k1

from traindyn.problems.multi_index import (
    Target,
    delta_alg,
    half_spaces,
    parity,
    phase_retrieval,
    polynomial,
    two_layer_teacher,
)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (phase_retrieval(), 0.5),
        (phase_retrieval(modulus=True), 0.5),
        (phase_retrieval(noise=0.3), 0.5164),
        (phase_retrieval(noise=0.5), 0.5416),
        (phase_retrieval(noise=1.0), 0.6466),
        (phase_retrieval(noise=2.0), 1.055),
        (parity(2), np.pi**2 / 4),
        (polynomial({(2, 0): 1.0, (0, 2): 1.0}), 1.0),
    ],
    ids=repr,
)
def test_table_of_values(target, expected):
    """Closed forms and quadratures of the conditional second moment."""
    found = delta_alg(target)
    assert found.threshold == pytest.approx(expected, rel=3e-4)
    assert found.error < 1e-3 * found.threshold
    assert np.linalg.norm(found.direction) == pytest.approx(1.0)


def test_product_of_two_coordinates():
    """E[z_1^2 | y] = |y| K_1 / K_0; the best direction is (1, +-1): 1 / E[(g_11 + g_12)^2]."""

    def integrand(y: float) -> float:
        size = abs(y)
        ratio = size * k1(size) / k0(size)
        return (ratio - 1 + y) ** 2 * k0(size) / np.pi

    expected = 1 / sum(quad(integrand, *ends)[0] for ends in ((-60, 0), (0, 60)))
    assert expected == pytest.approx(0.59375, abs=1e-4)
    found = delta_alg(polynomial({(1, 1): 1.0}))
    assert found.threshold == pytest.approx(expected, rel=3e-3)
    # The control: the diagonal part alone, E[g_11^2].
    control = 1 / (2 * quad(lambda y: integrand(y) - (y * y) * k0(y) / np.pi, 0, 60)[0])
    assert abs(control / expected - 1) > 0.05


def test_noise_against_direct_integration():
    """E[g^2] for z^2 + noise from the posterior of z, by integrals on a line."""
    noise = 0.7
    z = np.linspace(-9, 9, 4001)
    prior = np.exp(-z * z / 2)
    y = np.linspace(-6 * noise, 60, 6001)
    joint = np.exp(-(((y[:, None] - z**2) / noise) ** 2) / 2) * prior
    evidence = joint.sum(axis=1)
    g = joint @ (z * z) / np.maximum(evidence, 1e-300) - 1
    expected = evidence.sum() / np.sum(evidence * g * g)
    assert delta_alg(phase_retrieval(noise=noise)).threshold == pytest.approx(expected, rel=1e-3)


def test_hard_directions_given_easy_ones():
    """Half-spaces given the sum e: |s| < e if y = 1, so that g is known in closed form."""
    e = np.linspace(-9, 9, 20_001)
    weight = np.exp(-e * e / 2) / np.sqrt(2 * np.pi) * (e[1] - e[0])
    inside = np.where(e > 0, np.vectorize(lambda x: quad(_phi, -max(x, 0), max(x, 0))[0])(e), 0)
    # E[s^2 - 1; |s| < e] = -2 e phi(e), and its negative outside.
    gap = np.where(e > 0, -2 * e * _phi(e), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.where(e > 1e-6, gap**2 * (1 / inside + 1 / (1 - inside)), 0.0)
    expected = 1 / np.sum(weight[e < 5] * square[e < 5])
    found = delta_alg(half_spaces(2))
    assert found.threshold == pytest.approx(expected, rel=0.02)
    # The control: without knowing the sum, E[s^2 - 1; y = 1] = -1 / (2 pi).
    control = 1 / ((2 * np.pi) ** -2 * (4 + 4 / 3))
    assert control > 2 * found.threshold


def _phi(x):
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def test_requests_that_make_no_sense_are_refused():
    """Nothing hard, no second moment, a basis that is none."""
    for call, message in (
        (lambda: delta_alg(polynomial({(3,): 1.0})), "must have a hard direction"),
        (lambda: delta_alg(parity(3)), "generative exponent of two"),
        (lambda: delta_alg(parity(2), hard=[[1.0], [1.0]]), "hard must have orthonormal"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    constant = Target("constant", 1, lambda z: 0 * z[:, 0])
    with pytest.raises(ValueError, match="delta_alg is infinite"):
        delta_alg(constant)
    assert delta_alg(two_layer_teacher((1.0, 1.0))).hard.shape == (2, 1)
