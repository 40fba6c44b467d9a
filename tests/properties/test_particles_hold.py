"""Symmetries of attention as particles, at arguments that nobody chose."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from companion.attention.particles.attention import (
    Attention,
    FeedForward,
    Head,
    energy,
    energy_growth,
    random_tokens,
)
from companion.attention.particles.clusters import linkage
from companion.attention.particles.ensembles import random_head

few = settings(max_examples=8, derandomize=True, deadline=None)
seeds = st.integers(0, 2**32)
temperatures = st.floats(0.0, 9.0)


def _attention(beta: float, dimension: int, rng: np.random.Generator) -> Attention:
    """One head of random matrices, one of identities, and a layer of two neurons."""
    outer, inner = rng.standard_normal((2, dimension, 2))
    layer = FeedForward(outer, inner.T, rng.standard_normal(2), "tanh")
    return Attention(beta, (random_head("A", dimension, rng=rng), Head()), layer)


@few
@given(seeds, temperatures, st.integers(1, 6), st.integers(2, 4))
def test_velocities_are_tangent_and_attention_a_mean(
    seed: int, beta: float, count: int, dimension: int
) -> None:
    """Norms stay one; weights are positive and sum to one; tokens may be listed in any order."""
    rng = np.random.default_rng(seed)
    x, attention = random_tokens(count, dimension, rng=rng), _attention(beta, dimension, rng)
    velocity = attention.velocity(x)
    assert np.abs(np.sum(velocity * x, axis=1)).max() < 1e-12 * (1 + np.abs(velocity).max())
    weights = attention.weights(x)
    assert np.all(weights > 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    order = rng.permutation(count)
    np.testing.assert_allclose(attention.velocity(x[order]), velocity[order], atol=1e-12)


@few
@given(seeds, temperatures, st.integers(2, 6), st.integers(2, 4))
def test_rotations_and_the_energy(seed: int, beta: float, count: int, dimension: int) -> None:
    """With identity matrices a rotated start is a rotated flow, and the energy only grows."""
    rng = np.random.default_rng(seed)
    x, attention = random_tokens(count, dimension, rng=rng), Attention(beta)
    turn = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    times = [0.0, 0.3, 1.0, 3.0]
    flow = attention.flow(x, times).tokens
    np.testing.assert_allclose(attention.flow(x @ turn, times).tokens, flow @ turn, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(flow, axis=2), 1, atol=1e-12)
    energies = [energy(tokens, beta) for tokens in flow]
    assert np.all(np.diff(energies) >= -1e-9 * energies[-1])
    assert energy_growth(x, beta) >= 0
    assert 0 < energies[0] <= energies[-1] <= energy(np.tile(x[:1], (count, 1)), beta) * (1 + 1e-9)


@few
@given(seeds, st.integers(1, 8), st.integers(2, 4))
def test_heights_of_mergers(seed: int, count: int, dimension: int) -> None:
    """In order, between zero and two, whatever the order or the frame of the tokens."""
    rng = np.random.default_rng(seed)
    x = random_tokens(count, dimension, rng=rng)
    heights = linkage(x)
    assert heights.shape == (count - 1,)
    assert np.all((heights >= 0) & (heights <= 2))
    assert np.all(np.diff(heights) >= 0)
    turn = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    np.testing.assert_allclose(linkage(rng.permutation(x) @ turn), heights, atol=1e-9)
