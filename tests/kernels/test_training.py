"""Training beside its linearisation: steps by hand, conserved facts, rates in the width."""

import numpy as np
import pytest
from scipy.linalg import expm

from companion.lazy_training.tangent_kernel.ensembles import rectifier_drift, wide_ensemble
from companion.lazy_training.tangent_kernel.network import Network
from traindyn.activations import ERF, GELU, IDENTITY, RELU, TANH
from traindyn.kernels import KernelFlow, TwoLayer, compare, infinite_width

RNG = np.random.default_rng(9)
X = RNG.standard_normal((6, 5))
X *= 5**0.5 / np.linalg.norm(X, axis=1, keepdims=True)
Y, FRESH = RNG.standard_normal(6), RNG.standard_normal((3, 5))


def test_linear_model_is_its_own_linearisation():
    """One layer: both agree, by descent to rounding, by flow to the solver's tolerance."""
    net = Network((5, 1), IDENTITY, bias=0.5)
    theta = net.initial(rng=0)
    for step, tolerance in ((0.05, 1e-12), (None, 1e-7)):
        path = compare(net, theta, X, Y, [0.0, 1.0, 5.0], step_size=step, fresh=FRESH).statistics
        assert path.deviation.max() < tolerance
        np.testing.assert_allclose(path.outputs, path.linearised, atol=tolerance)
        np.testing.assert_allclose(path.fresh, path.linearised_fresh, atol=tolerance)
        np.testing.assert_allclose(path.distance, path.linearised_distance, atol=tolerance)
        assert path.distance[-1] > 0.1


def test_both_against_the_jacobian():
    """The linearised flow by the matrix exponential in parameter space; descent by hand."""
    net = TwoLayer(5, 8, TANH, scale=2.0)
    theta = net.initial(rng=1)
    before, pullback = net.vjp(theta, X)
    rows = np.stack([pullback(row) for row in np.eye(6)])
    path = compare(net, theta, X, Y, [0.0, 2.0], keep=True)
    hessian = rows.T @ rows / 6
    inverse = np.linalg.pinv(rows)
    moved = (np.eye(net.size) - expm(-2.0 * hessian)) @ inverse @ (Y - before)
    assert path.statistics.linearised_distance[1] == pytest.approx(np.linalg.norm(moved))
    np.testing.assert_allclose(path.statistics.linearised[1], before + rows @ moved, atol=1e-10)
    found = np.linalg.norm(path.snapshots.parameters[1] - theta - moved)
    assert path.statistics.deviation[1] == pytest.approx(found, rel=1e-6)

    steps = compare(net, theta, X, Y, [0.0, 0.1, 0.3], step_size=0.1, keep=True)
    current = theta
    for _ in range(3):
        outputs, pull = net.vjp(current, X)
        current = current + 0.1 / 6 * pull(Y - outputs)
    np.testing.assert_allclose(steps.snapshots.parameters[2], current, atol=1e-14)
    assert steps.step_size == 0.1 and steps.steps.tolist() == [0, 1, 3]


def test_descent_tends_to_the_flow():
    """First order in the step, for the network and for its linearisation."""
    net = TwoLayer(5, 8, ERF, scale=2.0)
    theta = net.initial(rng=1)
    flow = compare(net, theta, X, Y, [0.0, 2.0]).statistics
    gaps = []
    for step in (0.1, 0.05):
        descent = compare(net, theta, X, Y, [0.0, 2.0], step_size=step).statistics
        gaps.append(
            [np.abs(getattr(descent, f)[1] - getattr(flow, f)[1]).max() for f in
             ("outputs", "linearised")]
        )  # fmt: skip
    np.testing.assert_allclose(np.divide(*gaps), 2.0, rtol=0.15)


def test_loss_decreases_along_the_flow():
    """And its derivative at 0 is minus the squared gradient, |Df^T r|^2 / n^2."""
    net = Network((5, 30, 30, 1), GELU, bias=0.3)
    theta = net.initial(rng=2)
    times = np.array([0.0, 1e-4, 0.5, 1.0, 2.0])
    path = compare(net, theta, X, Y, times).statistics
    loss = np.square(path.outputs - Y).sum(axis=1) / 12
    assert np.all(np.diff(loss) < 0)
    outputs, pull = net.vjp(theta, X)
    speed = np.square(pull(Y - outputs)).sum() / 36
    assert (loss[0] - loss[1]) / 1e-4 == pytest.approx(speed, rel=1e-2)


def test_rates_in_the_width():
    """Smooth activation: kernel (MDL Theorem 8.7) and deviation ~ 1/n, weights ~ n^{-1/2}."""
    widths, rows = (32, 128, 512), []
    for width in widths:
        seen = []
        for seed in range(4):
            net = Network((5, width, width, 1), TANH, bias=0.3)
            theta = net.initial(rng=seed)
            path = compare(net, theta, X, Y, [0.0, 4.0], step_size=0.2, keep=True)
            last = path.snapshots.parameters[-1]
            kernels = [net.tangent_kernel(each, X) for each in (theta, last)]
            change = net.layers(last)[1].weights - net.layers(theta)[1].weights
            gap = path.statistics.outputs[-1] - path.statistics.linearised[-1]
            seen.append(
                [
                    np.linalg.norm(change, 2) / width**0.5,
                    np.linalg.norm(kernels[1] - kernels[0]) / np.linalg.norm(kernels[0]),
                    np.linalg.norm(gap),
                ]
            )
        rows.append(np.mean(seen, axis=0))
    slopes = np.polyfit(np.log(widths), np.log(rows), 1)[0]
    assert -0.65 < slopes[0] < -0.3
    assert -1.25 < slopes[1] < -0.75
    assert -1.4 < slopes[2] < -0.6


def test_ensemble_of_linear_models():
    """Depth one: gradient descent by hand on 4000 draws of the weights."""
    times, step = np.array([0.0, 0.6, 6.0]), 0.3
    found = wide_ensemble(
        X, Y, FRESH, times, depth=1, activation=IDENTITY, bias=0.5, step_size=step
    )
    rng = np.random.default_rng(3)
    inputs = np.concatenate([X / 5**0.5, np.full((6, 1), 0.5)], axis=1)
    others = np.concatenate([FRESH / 5**0.5, np.full((3, 1), 0.5)], axis=1)
    theta = rng.standard_normal((6, 4000))
    seen = []
    for k in range(21):
        if k in (0, 2, 20):
            seen.append((others @ theta).T)
        theta = theta + step / 6 * inputs.T @ (Y[:, None] - inputs @ theta)
    for row, drawn in enumerate(seen):
        error = np.sqrt(np.diag(found.covariance[row]) / 4000)
        assert np.all(np.abs(drawn.mean(axis=0) - found.mean[row]) < 5 * error)
        np.testing.assert_allclose(np.cov(drawn.T), found.covariance[row], atol=0.25)
    start = infinite_width(FRESH, depth=1, activation=IDENTITY, bias=0.5).nngp
    np.testing.assert_allclose(found.covariance[0], start, atol=1e-12)


def test_ensemble_of_the_last_layer_is_the_posterior():
    """Trained for ever, the last layer alone gives the Gaussian process conditioned on the data."""
    both = np.concatenate([X, FRESH])
    sigma = infinite_width(both, depth=3, activation=ERF, bias=0.3).nngp
    found = wide_ensemble(X, Y, FRESH, [np.inf], depth=3, activation=ERF, bias=0.3, last_layer=True)
    gain = np.linalg.solve(sigma[:6, :6], sigma[:6, 6:]).T
    np.testing.assert_allclose(found.mean[0], gain @ Y, atol=1e-9)
    np.testing.assert_allclose(found.covariance[0], sigma[6:, 6:] - gain @ sigma[:6, 6:], atol=1e-9)
    # Control: all layers trained leave another law.
    whole = wide_ensemble(X, Y, FRESH, [np.inf], depth=3, activation=ERF, bias=0.3)
    assert np.abs(whole.mean - found.mean).max() > 0.02
    assert np.abs(whole.covariance - found.covariance).max() > 0.01


def test_response_of_wide_networks():
    """Each network from its own start: the distance to the limit falls like n^{-1/2}."""
    limit = wide_ensemble(X, Y, FRESH, [4.0], depth=2, activation=ERF, bias=0.3, step_size=0.2)
    gaps = []
    for width in (100, 6400):
        seen = []
        for seed in range(24):
            net = Network((5, width, 1), ERF, bias=0.3)
            theta = net.initial(rng=seed)
            path = compare(net, theta, X, Y, [0.0, 4.0], step_size=0.2, fresh=FRESH).statistics
            expected = path.fresh[0] + limit.response[0] @ (Y - path.outputs[0])
            seen.append(np.linalg.norm(path.fresh[1] - expected))
        gaps.append(np.mean(seen))
    assert 4 < gaps[0] / gaps[1] < 16


def test_drift_of_rectifiers():
    """Two inputs with opposite targets, 300 networks of width 2000; tanh has no such term."""
    angles = np.array([-0.3, 0.3])
    x, y = 2**0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1), np.array([1.0, -1.0])
    limit = infinite_width(x, depth=2, activation=RELU, bias=0.3).ntk
    a = KernelFlow(limit, y, step_size=0.4).coefficients([4.0])[0, 0]
    own, cross = x[0] @ x.T / 2 + 0.09
    wanted = rectifier_drift(own, cross, a)
    drift = {}
    for activation in (RELU, TANH):
        net, seen = Network((2, 2000, 1), activation, bias=0.3), []
        for seed in range(300 if activation is RELU else 20):
            theta = net.initial(rng=seed)
            path = compare(
                net, theta, x, y + net.outputs(theta, x), [0.0, 4.0], step_size=0.4, keep=True
            )
            change = net.tangent_kernel(path.snapshots.parameters[1], x)
            change -= net.tangent_kernel(theta, x)
            seen.append([change[0, 0] + change[1, 1], 2 * change[0, 1]])
        drift[activation.name] = np.array(seen) * 2000**0.5 / 2
    error = drift["relu"].std(axis=0) / 300**0.5
    assert np.all(np.abs(drift["relu"].mean(axis=0) - wanted) < 4.5 * error + 0.02)
    assert drift["relu"].mean(axis=0)[1] > 0.25
    assert abs(drift["tanh"].mean(axis=0)[1]) < 0.1
    with pytest.raises(ValueError, match=r"cross must be in \[0, 1\), got 1"):
        rectifier_drift(1.0, 1.0, 1.0)


def test_refusals():
    """Each message names the argument; divergence is an error."""
    net = TwoLayer(5, 8, TANH, scale=50.0)
    theta = net.initial(rng=0)
    with pytest.raises(ValueError, match=r"y must have shape \(6\), got \(3,\)"):
        compare(net, theta, X, Y[:3], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"start must have shape \(40\)"):
        compare(net, theta[1:], X, Y, [0.0, 1.0])
    with pytest.raises(ValueError, match="at least one step apart"):
        compare(net, theta, X, Y, [0.0, 0.01], step_size=0.1)
    wild = Network((5, 20, 20, 1), IDENTITY)
    with pytest.raises(FloatingPointError, match=r"training must stay finite, .* step_size 50"):
        compare(wild, wild.initial(rng=0), X, Y, [0.0, 5000.0], step_size=50.0)
