"""The closed forms against numerical integration and against the general law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from traindyn.laws import MarchenkoPastur, WeightedMarchenkoPastur

RATIOS = (0.1, 0.25, 1.0, 3.0)


def integral(law: MarchenkoPastur, function: object, upper: float | None = None) -> complex:
    """Integrate against the continuous part, with x = middle - half cos(t) taming the edges."""
    low, high = law.edges
    middle, half = (low + high) / 2, (high - low) / 2
    stop = np.pi if upper is None else np.arccos((middle - upper) / half)

    def integrand(t: float, part: str) -> float:
        x = middle - half * np.cos(t)
        value = function(x) * law.density(x) * half * np.sin(t)  # type: ignore[operator]
        return float(getattr(np.complex128(value), part))

    real = quad(integrand, 0, stop, args=("real",), epsabs=1e-11, limit=200)[0]
    imag = quad(integrand, 0, stop, args=("imag",), epsabs=1e-11, limit=200)[0]
    return complex(real, imag)


@pytest.mark.parametrize("ratio", RATIOS)
def test_density_cdf_and_stieltjes_agree(ratio: float) -> None:
    """Wrong branch, atom or normalisation would break one of mass, cdf, transform.

    The law is that of MDL Theorem 6.6, the transform that of MDL Section 6.3.1.
    """
    law = MarchenkoPastur(ratio, variance=0.7)
    low, high = law.edges
    assert integral(law, lambda x: 1.0).real == pytest.approx(1 - law.atom, abs=1e-9)
    assert integral(law, lambda x: x).real == pytest.approx(0.7, abs=1e-9)
    for share in (0.05, 0.5, 0.9):
        x = low + share * (high - low)
        expected = law.atom + integral(law, lambda x: 1.0, upper=x).real
        assert law.cdf(x) == pytest.approx(expected, abs=1e-9)
    assert law.cdf(high + 1) == pytest.approx(1, abs=1e-14)
    assert law.cdf(-1.0) == 0
    for z in (0.5 + 0.4j, -1.0 + 0j, 2 * high + 0j, 0.3 - 0.2j):
        expected_s = integral(law, lambda x, z=z: 1 / (x - z)) - law.atom / z
        assert law.stieltjes(z) == pytest.approx(expected_s, abs=1e-8)
    # Wrong variant: c inverted.
    wrong = MarchenkoPastur(1 / (ratio + 0.1), variance=0.7)
    assert abs(integral(law, lambda x: x**2).real - 0.49 * (1 + ratio)) < 1e-8
    assert abs(integral(law, lambda x: x**2).real - 0.49 * (1 + wrong.ratio)) > 1e-3


def test_density_outside_is_zero_and_singular_at_a_hard_edge() -> None:
    """c = 1 puts an inverse square root at zero; elsewhere the density ends at zero."""
    law = MarchenkoPastur(0.5)
    low, high = law.edges
    np.testing.assert_array_equal(law.density([low - 1e-3, high + 1e-3, 0.0, -1.0]), 0.0)
    assert MarchenkoPastur(1.0).density(0.0) == np.inf
    assert MarchenkoPastur(1.0).density(1e-6) == pytest.approx(1e3 / np.pi, rel=1e-3)


@pytest.mark.parametrize(("ratio", "spike"), [(0.1, 1.0), (0.5, 0.8), (2.0, 3.0), (0.25, -0.8)])
def test_spikes_match_the_general_law(ratio: float, spike: float) -> None:
    """The textbook formulas must come out of the determinant equation, below the bulk too."""
    law = MarchenkoPastur(ratio, variance=1.3)
    general = WeightedMarchenkoPastur([1.0], ratio, 1.3)
    found = general.outliers([[np.sqrt(1.3 * (1 + spike))]])
    assert law.is_supercritical(spike)
    np.testing.assert_allclose(found.values, [law.outlier(spike)], rtol=1e-12)
    np.testing.assert_allclose(found.overlaps, [law.overlap(spike)], rtol=1e-10)
    assert found.sides[0] == np.sign(spike)
    # Wrong variant: overlap without the second factor.
    assert abs((1 - ratio / spike**2) - found.overlaps[0]) > 1e-2


@pytest.mark.parametrize("spike", [0.0, 0.4, -0.4])
def test_subcritical_spikes_stick_to_the_edge(spike: float) -> None:
    """|spike| below sqrt(c) leaves no outlier and no overlap."""
    law = MarchenkoPastur(0.25)
    assert not law.is_supercritical(spike)
    assert law.outlier(spike) in law.edges
    assert law.overlap(spike) == 0
    general = WeightedMarchenkoPastur([1.0], 0.25)
    assert general.outliers([[np.sqrt(1 + spike)]]).values.size == 0


def test_bad_input_is_named() -> None:
    """Every refusal names the argument."""
    with pytest.raises(ValueError, match="ratio must be positive, got 0"):
        MarchenkoPastur(0.0)
    with pytest.raises(ValueError, match="variance must be positive"):
        MarchenkoPastur(1.0, -1.0)
    with pytest.raises(ValueError, match="spike must be at least -1"):
        MarchenkoPastur(1.0).outlier(-2.0)
    with pytest.raises(ValueError, match="z must be complex or outside the support"):
        MarchenkoPastur(0.5).stieltjes(1.0)
    with pytest.raises(ValueError, match="x must be finite"):
        MarchenkoPastur(0.5).density(np.nan)


@pytest.mark.parametrize("ratio", RATIOS)
def test_quantile_inverts_the_cdf(ratio: float) -> None:
    """Also next to the hard edge of ratio one, where the density is infinite."""
    law = MarchenkoPastur(ratio, variance=0.7)
    share = law.atom + (1 - law.atom) * np.array([1e-6, 0.02, 0.5, 0.97])
    np.testing.assert_allclose(law.cdf(law.quantile(share)), share, atol=1e-10)
    np.testing.assert_allclose(
        law.quantile([0.0, 1.0]), [0.0 if law.atom else law.edges[0], law.edges[1]], atol=1e-12
    )
    assert law.atom == 0 or law.quantile(law.atom / 2) == 0
    # Wrong variant: the quantile of the continuous part alone.
    if law.atom:
        assert abs(law.cdf(law.quantile(0.9 * (1 - law.atom))) - 0.9) > 0.05


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("z", [-0.4, 0.5 + 0.4j, 0.3 - 0.2j, 9.0])
def test_stieltjes_derivative_is_the_second_moment(ratio: float, z: complex) -> None:
    """Against quadrature, not against a difference of the closed form itself."""
    law = MarchenkoPastur(ratio, variance=0.7)
    expected = integral(law, lambda x: 1 / (x - z) ** 2) + law.atom / z**2
    assert law.stieltjes_derivative(z) == pytest.approx(expected, abs=1e-8)
    # Wrong variant: the square of the transform.
    assert abs(law.stieltjes(z) ** 2 - expected) > 1e-6


def test_stieltjes_at_zero_and_in_the_gap_below_the_bulk() -> None:
    """No cancellation where ridgeless regression needs the transform (MDL Section 7.2)."""
    assert MarchenkoPastur(0.4).stieltjes(0.0) == pytest.approx(1 / 0.6, rel=1e-14)
    small = 1e-12
    assert -small * MarchenkoPastur(4.0).stieltjes(small) == pytest.approx(0.75, rel=1e-10)
    assert MarchenkoPastur(4.0).norm_error == 8.0


@pytest.mark.parametrize("ratio", [3e-3, 1e-6, 1e-12, 1e-20, 300.0, 1e6])
def test_narrow_bulks_keep_their_distribution(ratio: float) -> None:
    """The closed form cancels: half of the mass was off by 5e-3 at a ratio of 1e-15.

    In the angle t with x = 1 + c + 2 sqrt(c) cos t the density has no cancellation.
    """
    law = MarchenkoPastur(ratio)
    root = np.sqrt(ratio)
    for t in (0.3, 1.2, 2.0, 3.0):
        expected, _ = quad(
            lambda u: np.sin(u) ** 2 / (1 + ratio + 2 * root * np.cos(u)) * 2 / np.pi,
            0,
            t,
            epsrel=1e-12,
        )
        # The points are only as exact as their distance to the middle.
        rounding = 1e-14 + 1e-15 / min(root, 1 / root)
        x = 1 + ratio + 2 * root * np.cos(t)
        assert 1 - law.cdf(x) == pytest.approx(expected, abs=rounding)
        assert law.quantile(1 - expected) == pytest.approx(x, abs=1e-6 * root + 4e-16 * x)


@pytest.mark.parametrize("scale", [1e-200, 1e-120, 1e120, 1e200])
def test_variance_is_the_unit(scale: float) -> None:
    """The density of small numbers vanished, as a product of two distances to the edges."""
    for ratio in (0.3, 2.0):
        law, scaled = MarchenkoPastur(ratio), MarchenkoPastur(ratio, scale)
        x = np.linspace(*law.edges, 20)[1:-1]
        np.testing.assert_allclose(scaled.density(scale * x) * scale, law.density(x), rtol=1e-12)
        np.testing.assert_allclose(scaled.cdf(scale * x), law.cdf(x), rtol=1e-12)
        z = np.array([-1.0, 0.5 + 0.1j, 1e-9j])
        np.testing.assert_allclose(scaled.stieltjes(scale * z) * scale, law.stieltjes(z), rtol=1e-6)
    third = MarchenkoPastur(0.3, 1e-120)
    expected = MarchenkoPastur(0.3).stieltjes_derivative(-1.0)
    found = third.stieltjes_derivative(-1e-120) * 1e-120 * 1e-120
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("variance", [1e-300, 1e-200, 1.0])
@pytest.mark.parametrize("z", [-1e160, 1e200, 1e300j, -1.7e308, 1.7e308 + 1.7e308j])
def test_stieltjes_far_from_the_bulk_is_minus_one_over_z(
    ratio: float, variance: float, z: complex
) -> None:
    """Products of such numbers overflow: the transform was NaN, with warnings."""
    assert MarchenkoPastur(ratio, variance).stieltjes(z) * z == pytest.approx(-1, rel=1e-12)


def test_stieltjes_that_is_no_finite_number_is_refused() -> None:
    """Next to the atom it is one over z, which no float holds; the derivative gave infinity."""
    with pytest.raises(ValueError, match=r"z must be where .* got 0\+4\.94066e-324j at variance 1"):
        MarchenkoPastur(2.0).stieltjes(5e-324j)
    with pytest.raises(ValueError, match=r"z must be where .* got -1e-300 at variance 1e-300"):
        MarchenkoPastur(0.5, 1e-300).stieltjes_derivative(-1e-300)
    for variance in (1e160, 1e200):
        for z in (-variance, [-1.0 * variance], variance * 1j):
            with pytest.raises(ValueError, match=r"z must be where the transform can be computed"):
                MarchenkoPastur(0.5, variance).stieltjes_derivative(z)
    exact = [MarchenkoPastur(0.5).stieltjes_derivative(each) for each in (-1.0, Fraction(-1))]
    assert exact[0] == exact[1]


@pytest.mark.filterwarnings("error")
def test_overlap_of_a_spike_whose_square_is_no_number():
    """Python raised an error of its own."""
    assert MarchenkoPastur(0.5).overlap(1e200) == 1.0
    assert MarchenkoPastur(1e300).overlap(2e150) == pytest.approx(1.5e-150, rel=1e-12)
