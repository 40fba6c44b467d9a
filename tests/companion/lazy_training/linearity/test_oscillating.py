"""The aligned point against a search, and the second derivative against its closed form."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from companion.lazy_training.linearity.oscillating import aligned, oscillating
from traindyn import deep


def test_activation() -> None:
    """Second derivative; control: without the cosine."""
    z = np.linspace(-2, 2, 41)
    second = jax.vmap(jax.grad(jax.grad(oscillating(9.0))))(z)
    slope = 1 - np.tanh(z) ** 2
    np.testing.assert_allclose(second, -2 * np.tanh(z) * slope + np.cos(9 * z), atol=1e-10)
    assert np.abs(second + 2 * np.tanh(z) * slope).max() > 0.9
    assert oscillating(9.0) is oscillating(9.0)


def test_aligned() -> None:
    """Signs, and no nearer point; control: the other sign."""
    rng = np.random.default_rng(0)
    weights, values, signs = rng.standard_normal((30, 5)), rng.standard_normal(5), np.ones(30)
    signs[::3] = -1
    moved = aligned(weights, values, signs, 11.0)
    before, after = (one @ values / np.sqrt(5) for one in (weights, moved))
    np.testing.assert_allclose(np.cos(11 * after), signs, atol=1e-12)
    assert np.abs(after - before).max() <= np.pi / 11
    length = np.linalg.norm(moved - weights, axis=1)
    np.testing.assert_allclose(length, np.abs(after - before) * np.sqrt(5 / (values @ values)))
    other = aligned(weights, values, -signs, 11.0) @ values / np.sqrt(5)
    np.testing.assert_allclose(np.abs(other - before) + np.abs(after - before), np.pi / 11)


def test_second_derivative() -> None:
    """Of the whole network along one weight of the first layer, term by term."""
    rng = np.random.default_rng(1)
    m, omega = 6, 20.0
    network = deep.fully_connected([3, m, m * m, 1])
    first, middle, last = network.layers
    network = replace(
        network, layers=(first, replace(middle, activations=(oscillating(omega),)), last)
    )
    x, w = np.ones(3), network.initial(rng=rng)
    inner, matrix, outer = network.unpack(w)
    f1 = np.tanh(inner @ x / np.sqrt(3))
    matrix = aligned(matrix, f1, outer[0], omega)
    w = np.concatenate([inner.ravel(), matrix.ravel(), outer.ravel()])
    direction = np.zeros(w.size)
    direction[:3] = x / np.sqrt(3)
    found = direction @ deep.hessian_product(network, w, x, direction)
    slope = 1 - f1[0] ** 2
    u, column = matrix @ f1 / np.sqrt(m), matrix[:, 0] / np.sqrt(m)
    bent = 1 - np.tanh(u) ** 2 + np.sin(omega * u) / omega
    curved = -2 * np.tanh(u) * (1 - np.tanh(u) ** 2) + np.sign(outer[0])
    expected = outer[0] @ (curved * (column * slope) ** 2 - bent * column * 2 * f1[0] * slope) / m
    assert found == pytest.approx(expected, rel=1e-9)


def test_refusals() -> None:
    """Each argument by its name."""
    with pytest.raises(ValueError, match="frequency"):
        oscillating(0.0)
    with pytest.raises(ValueError, match="zero"):
        aligned(np.ones((2, 2)), np.zeros(2), np.ones(2), 1.0)
    with pytest.raises(ValueError, match="signs"):
        aligned(np.ones((2, 2)), np.ones(2), np.ones(3), 1.0)
