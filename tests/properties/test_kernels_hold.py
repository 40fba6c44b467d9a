"""Kernels of wide networks, at inputs that nobody chose."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from traindyn.activations import ERF, RELU, TANH, Activation
from traindyn.kernels import KernelFlow, dual_moments, infinite_width, own_moments

few = settings(max_examples=10, derandomize=True, deadline=None)
seeds = st.integers(0, 2**32)
activations = st.sampled_from([ERF, RELU, TANH])


def _smallest(matrix: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(matrix)[0] / np.trace(matrix))


@few
@given(seeds, activations, st.integers(1, 5), st.floats(0.1, 3.0))
def test_dual_moments_are_gram_matrices(
    seed: int, activation: Activation, size: int, scale: float
) -> None:
    """Symmetric, positive, within Cauchy and Schwarz; bounded where the activation is."""
    root = scale * np.random.default_rng(seed).standard_normal((size, size + 1))
    covariance = root @ root.T
    variance = np.diag(covariance).copy()
    found, own = dual_moments(activation, covariance, variance), own_moments(activation, variance)
    for matrix, diagonal in zip(found, own):
        np.testing.assert_array_equal(matrix, matrix.T)
        assert _smallest(matrix) > -1e-9
        assert np.all(np.abs(matrix) <= np.sqrt(np.outer(diagonal, diagonal)) * (1 + 1e-9))
    if activation.high == 1:
        assert np.all(np.abs(found.value) <= 1)
    if activation is RELU:
        assert np.all((found.slope >= 0) & (found.slope <= 0.5))
        assert np.all(found.value >= 0)


@few
@given(seeds, activations, st.integers(1, 4), st.floats(0.0, 1.0))
def test_kernels_of_wide_networks(
    seed: int, activation: Activation, depth: int, bias: float
) -> None:
    """Both positive, the tangent kernel the larger; inputs may be rotated and listed anyhow."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4, 3))
    options = {"depth": depth, "activation": activation, "bias": bias}
    nngp, ntk = infinite_width(x, **options)
    for matrix in (nngp, ntk):
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12)
        assert _smallest(matrix) > -1e-7
    assert _smallest(ntk - nngp + 1e-12 * np.eye(4)) > -1e-7
    order = rng.permutation(4)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    moved = infinite_width(x[order] @ turn, **options)
    np.testing.assert_allclose(moved.ntk, ntk[np.ix_(order, order)], rtol=1e-6)
    np.testing.assert_allclose(moved.nngp, nngp[np.ix_(order, order)], rtol=1e-6)


@few
@given(seeds, st.integers(1, 4), st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_rectifiers_are_homogeneous(seed: int, depth: int, a: float, b: float) -> None:
    """Without bias, both kernels are of degree one in either argument, on positive factors."""
    x, y = np.random.default_rng(seed).standard_normal((2, 3, 4))
    plain = infinite_width(x, y, depth=depth, activation=RELU)
    scaled = infinite_width(a * x, b * y, depth=depth, activation=RELU)
    np.testing.assert_allclose(scaled.nngp, a * b * plain.nngp, rtol=1e-9)
    np.testing.assert_allclose(scaled.ntk, a * b * plain.ntk, rtol=1e-9, atol=1e-12)
    other = infinite_width(a * x, b * y, depth=depth, activation=RELU, bias=1.0)
    biased = infinite_width(x, y, depth=depth, activation=RELU, bias=1.0)
    assert abs(a * b - 1) < 0.1 or not np.allclose(other.ntk, a * b * biased.ntk, rtol=1e-3)


@few
@given(seeds, st.floats(0.01, 20.0), st.floats(0.01, 20.0))
def test_training_with_a_kernel_may_be_interrupted(seed: int, first: float, then: float) -> None:
    """A flow restarted where it was goes on; its loss falls and its distance grows."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 3))  # one direction in which nothing moves
    kernel, targets, start = root @ root.T, *rng.standard_normal((2, 4))
    flow = KernelFlow(kernel, targets, start)
    times = [0.0, first, first + then]
    middle = flow.outputs(times)
    restarted = KernelFlow(kernel, targets, middle[1]).outputs([then])[0]
    np.testing.assert_allclose(restarted, middle[2], atol=1e-9)
    assert np.all(np.diff(flow.loss(times)) <= 1e-12)
    assert np.all(np.diff(flow.distance(times)) >= -1e-12)
