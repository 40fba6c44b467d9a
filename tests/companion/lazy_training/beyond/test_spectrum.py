"""The law of the Hessian's eigenvalues for two layers, against drawn networks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("jax", reason="JAX is not installed (extra 'deep')")

from companion.lazy_training.beyond.spectrum import TwoLayerSpectrum
from traindyn import deep

X = np.array([2.0, -1.0, 0.5])
SQUARE = float(X @ X) / 3


@pytest.mark.parametrize("activation", ["tanh", "softplus"])
@pytest.mark.parametrize("signs", [False, True])
def test_law(activation: str, signs: bool) -> None:
    """All blocks of one wide network: upper eigenvalues, and lower ones with their sign turned."""
    m = 3000
    network = deep.fully_connected([3, m, 1], activation=activation)
    weights = network.initial(rng=1)
    if signs:
        weights[-m:] = np.sign(weights[-m:])
    found = np.sqrt(m) * deep.two_layer_eigenvalues(network, weights, X)
    law = TwoLayerSpectrum(activation, SQUARE, signs=signs)
    for sample in (found[:m], -found[m:]):
        assert stats.kstest(sample, law.cdf).pvalue > 1e-6
    # Control: an input of another length.
    other = TwoLayerSpectrum(activation, 1.3 * SQUARE, signs=signs)
    assert stats.kstest(found[:m], other.cdf).pvalue < 1e-9
    assert np.abs(found).max() <= law.bound * (1 + 1e-9)


def test_bound() -> None:
    """Nearly attained by many neurons; of normal weights there is none."""
    law = TwoLayerSpectrum("tanh", SQUARE, signs=True)
    assert law.cdf([law.bound * 1.0001])[0] == pytest.approx(1, abs=1e-12)
    assert law.cdf([law.bound * 0.99])[0] < 1
    assert TwoLayerSpectrum("tanh", SQUARE).bound == np.inf
    assert TwoLayerSpectrum("identity", SQUARE).bound == pytest.approx(SQUARE**0.5)
    assert law.cdf([-1.0, 0.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("signs", [False, True])
def test_atom_at_zero(signs: bool) -> None:
    """Half of the rectified units have neither slope nor curvature: their eigenvalues are zero."""
    law = TwoLayerSpectrum("relu", SQUARE, signs=signs)
    below, atom, beside = law.cdf([-1e-9, 0.0, 1e-9])
    assert below == 0.0
    assert atom == beside == pytest.approx(0.5, abs=1e-3)


def test_refusals() -> None:
    """Each message names the argument."""
    with pytest.raises(ValueError, match="square must be positive"):
        TwoLayerSpectrum("tanh", 0.0)
    with pytest.raises(ValueError, match="activation must be one of"):
        TwoLayerSpectrum("cosh")
