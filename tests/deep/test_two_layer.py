"""The law of the Hessian norm of two layers against norms, by another quadrature, and far out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, special, stats

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")
pytest.importorskip("networkx", reason="networkx is not installed (extra 'deep')")

from traindyn import deep


def test_law_of_sampled_norms() -> None:
    """Kolmogorov-Smirnov at level 1e-6, a skewed input; control: the law for another input."""
    network = deep.fully_connected([3, 40, 1], activation="tanh")
    x = np.array([0.5, -1.0, 2.0])
    rng = np.random.default_rng(0)
    norms = [
        np.abs(deep.two_layer_eigenvalues(network, network.initial(rng=rng), x)).max()
        for _ in range(400)
    ]
    law = deep.TwoLayerNorm("tanh", 40, square=float(x @ x) / 3)
    assert stats.kstest(norms, law.cdf).pvalue > 1e-6
    assert stats.kstest(norms, deep.TwoLayerNorm("tanh", 40).cdf).pvalue < 1e-6


def test_single_neuron_by_adaptive_quadrature() -> None:
    """Integrate over v instead of z: P(norm > t) for one tanh neuron, by nested integrals."""
    t, s = 1.6, 1.3

    def given(z: float) -> float:
        slope = 1 / np.cosh(z) ** 2
        curvature = 2 * abs(np.tanh(z)) * slope
        density = np.exp(-(z**2) / (2 * s)) / np.sqrt(2 * np.pi * s)
        if curvature == 0:
            return 0.0
        least = (t**2 - s * slope**2) / (t * s * curvature)
        return float(density * special.erfc(least / np.sqrt(2)))

    expected = 2 * integrate.quad(given, 0, 12, epsabs=1e-13)[0]
    law = deep.TwoLayerNorm("tanh", 1, square=s)
    np.testing.assert_allclose(law.exceedance(t), expected, rtol=1e-9)
    np.testing.assert_allclose(law.cdf(t), 1 - expected, rtol=1e-9)


def test_quantiles_invert_and_grow_with_the_logarithm() -> None:
    """The median over its limit tends to one; ReLU has no second derivative and no logarithm."""
    largest = 4 / 27**0.5  # of the second derivative of tanh
    ratios = []
    for width in (1e2, 1e10, 1e50, 1e290):
        law = deep.TwoLayerNorm("tanh", width)
        median = law.quantile(0.5)
        np.testing.assert_allclose(law.cdf(median), 0.5, rtol=1e-8)
        ratios.append(median * np.sqrt(width) / largest / np.sqrt(2 * np.log(width)))
    assert np.all(np.diff(ratios) > 0)
    assert abs(ratios[-1] - 1) < 0.01
    flat = deep.TwoLayerNorm("relu", 1e4, square=4.0)
    np.testing.assert_allclose(flat.quantile(0.5), 0.02, rtol=1e-9)
    np.testing.assert_array_equal(flat.cdf([0.0199, 0.0201]), [0.0, 1.0])


def test_far_out() -> None:
    """Small probabilities keep their digits: the tail is m times that of one neuron."""
    wide, single = deep.TwoLayerNorm("tanh", 1e6), deep.TwoLayerNorm("tanh", 1)
    tail = single.exceedance(12.0)
    assert 0 < tail < 1e-40
    np.testing.assert_allclose(wide.exceedance(12.0e-3), 1e6 * tail, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deep.TwoLayerNorm("tanh", 0.5), "width must be in"),
        (lambda: deep.TwoLayerNorm("tanh", 10, square=0.0), "square must be in"),
        (lambda: deep.TwoLayerNorm("step", 10), "activation must be one of"),
        (lambda: deep.TwoLayerNorm("tanh", 10).cdf([1.0, 0.0]), "norms must be positive"),
        (lambda: deep.TwoLayerNorm("tanh", 10).quantile(1.0), "probability must be below 1"),
    ],
)
def test_bad_arguments(call: Callable[[], object], message: str) -> None:
    """Each error names what is wrong."""
    with pytest.raises(ValueError, match=message):
        call()
