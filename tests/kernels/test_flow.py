"""Kernel gradient flow in closed form against integration, iteration and regression."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from companion.lazy_training.kernels import printed_kernel_flow, random_features
from traindyn.activations import ERF
from traindyn.kernels import KernelFlow, infinite_width

RNG = np.random.default_rng(6)
X, FRESH = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3))
Y, START, START_FRESH = (RNG.standard_normal(k) for k in (7, 7, 4))
ALL = infinite_width(np.concatenate([X, FRESH]), depth=3, activation=ERF, bias=0.1).ntk
KERNEL, CROSS = ALL[:7, :7], ALL[7:, :7]
TIMES = np.array([0.0, 0.5, 3.0, 40.0])


def test_flow_against_integration():
    """Outputs on and off the training set (MDL Example 8.3), by a Runge-Kutta solver on both."""
    flow = KernelFlow(KERNEL, Y, START)

    def field(_, f):
        return ALL[:, :7] @ (Y - f[:7]) / 7

    reference = solve_ivp(
        field, (0, 40), np.concatenate([START, START_FRESH]), t_eval=TIMES, rtol=1e-10, atol=1e-12
    ).y.T
    np.testing.assert_allclose(flow.outputs(TIMES), reference[:, :7], atol=1e-8)
    found = flow.elsewhere(TIMES, CROSS, START_FRESH)
    np.testing.assert_allclose(found, reference[:, 7:], atol=1e-8)
    loss = np.square(Y - reference[:, :7]).sum(axis=1) / 14
    np.testing.assert_allclose(flow.loss(TIMES), loss, atol=1e-9)
    # Control: MDL Example 8.3 as printed starts right and runs away.
    printed = printed_kernel_flow(KERNEL, Y, TIMES)
    assert np.linalg.norm(printed[0]) < 1e-12
    assert np.linalg.norm(printed[2] - Y) > np.linalg.norm(Y)
    assert np.linalg.norm(KernelFlow(KERNEL, Y).outputs(TIMES)[2] - Y) < np.linalg.norm(Y)


@pytest.mark.parametrize("share", [0.3, 1.7])
def test_descent_against_iteration(share):
    """A linear model on features, stepped by hand: outputs, coefficients and distance."""
    phi = random_features(X, 20, activation=ERF, rng=3)
    kernel = phi @ phi.T
    step = share * 7 / np.linalg.eigvalsh(kernel)[-1]
    flow = KernelFlow(kernel, Y, step_size=step)
    assert flow.critical_step == pytest.approx(2 * step / share)
    theta, path = np.zeros(20), []
    for _ in range(51):
        path.append(theta)
        theta = theta + step / 7 * phi.T @ (Y - phi @ theta)
    wanted = np.array([0, 1, 10, 50])
    thetas = np.stack(path)[wanted]
    times = wanted * step
    np.testing.assert_allclose(flow.outputs(times), thetas @ phi.T, atol=1e-12)
    np.testing.assert_allclose(flow.coefficients(times) @ phi, thetas, atol=1e-11)
    np.testing.assert_allclose(flow.distance(times), np.linalg.norm(thetas, axis=1), atol=1e-12)
    # Control: the flow itself is somewhere else.
    assert np.abs(KernelFlow(kernel, Y).outputs(times) - thetas @ phi.T).max() > 0.01


def test_beyond_the_critical_step():
    """Descent above it grows; just below it does not."""
    critical = KernelFlow(KERNEL, Y).critical_step
    losses = []
    for factor in (0.99, 1.01):
        step = factor * critical
        losses.append(KernelFlow(KERNEL, Y, step_size=step).loss([0.0, 2000 * step]))
    assert losses[0][1] < losses[0][0] < 1e-3 * losses[1][1]


def test_infinite_time():
    """Ridgeless regression; with a singular kernel the minimum-norm solution."""
    flow = KernelFlow(KERNEL, Y, START)
    weights = np.linalg.solve(KERNEL, Y - START)
    np.testing.assert_allclose(flow.coefficients([np.inf])[0], weights, rtol=1e-8)
    np.testing.assert_allclose(
        flow.elsewhere([1.0, np.inf], CROSS, START_FRESH)[1], START_FRESH + CROSS @ weights
    )
    np.testing.assert_allclose(flow.outputs([np.inf])[0], Y, atol=1e-10)
    np.testing.assert_allclose(flow.outputs([1e9])[0], Y, atol=1e-10)
    phi = random_features(X, 4, activation=ERF, rng=3)
    short = KernelFlow(phi @ phi.T, Y)
    theta = np.linalg.pinv(phi) @ Y
    np.testing.assert_allclose(short.coefficients([np.inf])[0] @ phi, theta, atol=1e-9)
    assert short.distance([np.inf])[0] == pytest.approx(np.linalg.norm(theta))
    # Along the null space the residual stays: its integral grows, and moves nothing.
    still = short.coefficients([100.0])[0]
    np.testing.assert_allclose(phi @ phi.T @ still, short.outputs([100.0])[0], atol=1e-12)
    assert short.loss([np.inf])[0] > 0.01


def test_several_outputs():
    """With two outputs per input, the n of the loss is that of the inputs."""
    double = KernelFlow(np.kron(KERNEL, np.eye(2)), np.repeat(Y, 2), samples=7)
    np.testing.assert_allclose(
        double.outputs(TIMES)[:, ::2], KernelFlow(KERNEL, Y).outputs(TIMES), atol=1e-12
    )


def test_refusals():
    """A kernel that is none is named by its eigenvalue."""
    with pytest.raises(ValueError, match=r"kernel must be positive semi-definite.*eigenvalue -1$"):
        KernelFlow([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"kernel must be positive semi-definite"):
        KernelFlow([[-1e-11, 0.0], [0.0, -1e-11]], [1.0, 1.0])
    with pytest.raises(ValueError, match="kernel must be symmetric"):
        KernelFlow([[1e-13, 5e-13], [0.0, 1e-13]], [1.0, 1.0])
    with pytest.raises(ValueError, match="kernel must be symmetric"):
        KernelFlow([[1.0, 2.0], [0.0, 1.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match=r"targets must have shape \(7\), got \(4,\)"):
        KernelFlow(KERNEL, START_FRESH)
    flow = KernelFlow(KERNEL, Y)
    with pytest.raises(ValueError, match=r"cross must have shape \(any, 7\)"):
        flow.elsewhere(TIMES, CROSS.T)
    with pytest.raises(ValueError, match="times must be strictly increasing"):
        flow.outputs([1.0, 0.5])
    with pytest.raises(ValueError, match="times must be finite"):
        flow.outputs([np.inf, np.inf])
