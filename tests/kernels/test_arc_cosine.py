"""Vector code for the moments of rectifiers: to rounding, and the recursion to its layers."""

import numpy as np

from traindyn.activations import RELU
from traindyn.kernels import dual_moments, infinite_width
from traindyn.kernels.arc_cosine import fill

R = np.concatenate([np.linspace(-1, 1, 20_001), [0.5, -0.5, np.nextafter(0.5, 1), 1e-300]])


def test_moments_to_rounding():
    """Against the library's arc cosine, within 4e-16."""
    value, slope = np.empty((2, 1, R.size))
    fill(False, np.ones(1), np.ones(R.size), R[None].copy(), value, slope)
    share = (np.pi - np.arccos(R)) / (2 * np.pi)
    np.testing.assert_allclose(slope[0], share, atol=4e-16)
    assert slope[0, 0] == 0.0 and slope[0, 20_000] == 0.5
    exact = np.sqrt((1 - R) * (1 + R)) / (2 * np.pi) + share * R
    np.testing.assert_allclose(value[0], exact, atol=4e-16)


def test_recursion_in_place_is_the_recursion():
    """Of one set and of two, with biases and a zero input, against one layer at a time."""
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((9, 4)), rng.standard_normal((5, 4))
    x[3] = 0.0
    for second, bias in ((None, 0.0), (None, 0.7), (other, 0.0), (other, 0.3)):
        right = x if second is None else second
        nngp = x @ right.T / 4 + bias**2
        a, b = ((each**2).sum(axis=1) / 4 + bias**2 for each in (x, right))
        ntk = nngp.copy()
        for _ in range(4):
            moments = dual_moments(RELU, nngp, a, None if second is None else b)
            nngp = moments.value + bias**2
            ntk = ntk * moments.slope + nngp
            a, b = a / 2 + bias**2, b / 2 + bias**2
        found = infinite_width(x, second, depth=5, activation=RELU, bias=bias)
        np.testing.assert_allclose(found.nngp, nngp, atol=1e-14)
        np.testing.assert_allclose(found.ntk, ntk, atol=1e-14)
        if second is None:
            np.testing.assert_array_equal(found.ntk, found.ntk.T)
