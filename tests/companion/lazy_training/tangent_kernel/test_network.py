"""Finite networks: derivatives against difference quotients, the kernel against its limit."""

from itertools import pairwise

import numpy as np
import pytest

from companion.lazy_training.tangent_kernel.network import Network
from companion.lazy_training.tangent_kernel.printed import (
    printed_tangent_kernel,
    printed_weight_movement,
)
from traindyn.activations import ERF, GELU, RELU, TANH, Activation
from traindyn.kernels import infinite_width

X = np.random.default_rng(2).standard_normal((4, 3))
STEP = 1e-6


def jacobian_by_differences(net, theta, x):
    """Central differences, shape (n n_L, p)."""
    columns = []
    for direction in np.eye(theta.size) * STEP:
        columns.append(net.outputs(theta + direction, x) - net.outputs(theta - direction, x))
    return np.stack(columns, axis=1) / (2 * STEP)


@pytest.mark.parametrize("activation", [TANH, ERF, GELU, RELU], ids=lambda a: a.name)
@pytest.mark.parametrize("widths", [(3, 1), (3, 5, 1), (3, 4, 6, 2)], ids=str)
def test_pullback_and_kernel_against_differences(activation, widths):
    """Rows of the Jacobian; its product with itself (MDL Definition 8.5) on two sets of inputs."""
    net = Network(widths, activation, bias=0.7)
    theta = net.initial(rng=4)
    assert theta.size == net.size == sum(b * (a + 1) for a, b in pairwise(widths))
    jacobian = jacobian_by_differences(net, theta, X)
    outputs, pullback = net.vjp(theta, X)
    np.testing.assert_array_equal(outputs, net.outputs(theta, X))
    rows = np.stack([pullback(weights) for weights in np.eye(outputs.size)])
    np.testing.assert_allclose(rows, jacobian, atol=1e-8)
    kernel = net.tangent_kernel(theta, X)
    np.testing.assert_allclose(kernel, rows @ rows.T, atol=1e-12)
    other = net.tangent_kernel(theta, X[:3], X[1:])
    q = widths[-1]
    np.testing.assert_allclose(other, kernel[: 3 * q, q:], atol=1e-12)
    # Control: the network without biases has another Jacobian.
    assert np.abs(Network(widths, activation).tangent_kernel(theta, X) - kernel).max() > 0.1


def test_forward_pass_by_hand():
    """One hidden layer, written out (MDL chapter 8)."""
    net = Network((3, 2, 1), TANH, bias=0.5)
    theta = net.initial(rng=0)
    first, second = net.layers(theta)
    hidden = np.tanh(X @ first.weights.T / 3**0.5 + 0.5 * first.biases)
    expected = hidden @ second.weights.T / 2**0.5 + 0.5 * second.biases
    np.testing.assert_allclose(net.outputs(theta, X), expected[:, 0], atol=1e-15)
    first.weights[0, 0] = 7.0
    assert theta[0] == 7.0


def test_limit_of_the_kernel():
    """MDL Theorem 8.6: K times the identity, at rate width^{-1/2}; as printed it tends to zero."""
    widths, deviations, printed = (32, 128, 512), [], []
    limit = np.kron(infinite_width(X, depth=3, activation=RELU, bias=0.3).ntk, np.eye(2))
    for width in widths:
        net = Network((3, width, width, 2), RELU, bias=0.3)
        gaps, traces = [], []
        for seed in range(10):
            theta = net.initial(rng=seed)
            gaps.append(np.linalg.norm(net.tangent_kernel(theta, X) - limit))
            traces.append(np.trace(printed_tangent_kernel(net, theta, X)))
        deviations.append(np.mean(gaps) / np.linalg.norm(limit))
        printed.append(np.mean(traces) / np.trace(limit))
    slope = np.polyfit(np.log(widths), np.log(deviations), 1)[0]
    assert -0.7 < slope < -0.3
    assert deviations[-1] < 0.15
    assert np.all(np.array(printed) < 0.05)
    assert printed[0] > 3 * printed[1] > 9 * printed[2]


def test_printed_weight_movement_is_not_small():
    """The misprinted norm of MDL Lemma 8.8 is of the order of the root of the width at rest."""
    found = []
    for width in (50, 200):
        net = Network((3, width, width, 1), TANH)
        theta = net.initial(rng=1)
        found.append(printed_weight_movement(net, theta, theta)[0])
    assert found[1] > 1.8 * found[0] > 20


def test_memory_is_that_of_the_activations():
    """The Jacobian here would have 256 million entries; nothing near it is made."""
    import tracemalloc

    net = Network((10, 1000, 1000, 1), RELU)
    theta = net.initial(rng=0)
    x = np.random.default_rng(0).standard_normal((256, 10))
    tracemalloc.start()
    net.tangent_kernel(theta, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_refusals():
    """Each message names the argument."""
    with pytest.raises(ValueError, match=r"widths\[1\] must be an integer >= 1, got 0"):
        Network((3, 0, 1), TANH)
    with pytest.raises(ValueError, match="widths must hold at least two"):
        Network((3,), TANH)
    sign = Activation("sign", np.sign, None, None)
    with pytest.raises(ValueError, match="must have a derivative for training, got sign"):
        Network((3, 2, 1), sign)
    net = Network((3, 2, 1), TANH)
    with pytest.raises(ValueError, match=r"parameters must have shape \(11\), got \(10,\)"):
        net.outputs(np.zeros(10), X)
    with pytest.raises(ValueError, match=r"x must have shape \(any, 3\)"):
        net.tangent_kernel(np.zeros(11), X[:, :2])
