"""Heavy ball and weight decay on one example, against weights."""

import numpy as np
import pytest

from companion.catapults.beyond.momentum import critical_kernel, heavy_ball, heavy_ball_fate
from traindyn.catapults import TwoLayerModel, Weights, fate, iterate


def descend(relative, momentum, decay, label=0.4, width=500, steps=60):
    """Train the weights of a frozen-gate network, one input in five dimensions."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 5))
    weights = TwoLayerModel.initial(width, 5, rng=rng)
    model = TwoLayerModel(weights, "quadratic")
    batch = model.prepare(x)
    eta = relative / model.tangent_kernel(weights, batch)[0, 0]
    before, states = weights, []
    for _ in range(steps + 1):
        e, gradient = model.gradient(weights, batch, np.array([label]))
        states.append((e[0], model.tangent_kernel(weights, batch)[0, 0]))
        after = Weights(
            *(
                w + momentum * (w - old) - eta * (slope + decay * w)
                for w, old, slope in zip(weights, before, gradient)
            )
        )
        before, weights = weights, after
    options = dict(step_size=eta, coupling=float(x[0] @ x[0]) / (5 * width), label=label)
    return np.array(states).T, options


@pytest.mark.parametrize(
    "relative, momentum, decay",
    [(2.6, 0.3, 0.0), (3.3, 0.5, 0.0), (2.5, 0.0, 0.02), (1.5, 0.9, 0.1)],
)
def test_four_numbers_are_the_whole_dynamics(relative, momentum, decay):
    """Residuals and kernels of the weights; with other momentum they differ."""
    (residuals, kernels), options = descend(relative, momentum, decay)
    found = heavy_ball(
        residuals[0], kernels[0], momentum=momentum, decay=decay, steps=60, **options
    )
    np.testing.assert_allclose(found.residuals, residuals, atol=1e-9 * np.abs(residuals).max())
    np.testing.assert_allclose(found.kernels, kernels, rtol=1e-9)
    other = heavy_ball(
        residuals[0], kernels[0], momentum=momentum + 0.01, decay=decay, steps=60, **options
    )
    assert np.abs(other.kernels - kernels).max() > 1e-4


def test_without_momentum_it_is_the_map():
    """Orbits and fates of the reduced map, with a label, and divergence at the same step."""
    options = dict(coupling=1e-5, label=0.5)
    for eta in (1.4, 2.8, 4.6):
        ours = heavy_ball(0.3, 1.0, step_size=eta, steps=80, **options)
        theirs = iterate(0.3, 1.0, step_size=eta, steps=80, **options)
        assert ours.diverged == theirs.diverged
        np.testing.assert_allclose(ours.residuals, theirs.residuals, rtol=1e-6, atol=1e-9)
    ends = [f(0.3, 1.0, step_size=[1.4, 2.8, 4.6], **options) for f in (heavy_ball_fate, fate)]
    assert ends[0].converged.tolist() == ends[1].converged.tolist() == [True, True, False]
    assert ends[0].diverged.tolist() == ends[1].diverged.tolist()
    np.testing.assert_allclose(ends[0].kernel[:2], ends[1].kernel[:2], rtol=1e-6)
    np.testing.assert_allclose(ends[0].peak[:2], ends[1].peak[:2], rtol=1e-9)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_critical_kernel_with_momentum(momentum):
    """Small residuals grow above it and not below; 2 is not it."""
    v = critical_kernel(momentum=momentum) * np.array([0.97, 1.03])
    found = heavy_ball_fate(1e-6, 1.0, step_size=v, coupling=1e-12, momentum=momentum)
    rise = found.peak / 0.5e-12
    assert rise[0] < 30 < 1e6 < rise[1]


def test_critical_kernel_with_decay():
    """The factor of a small residual is minus one there."""
    v = critical_kernel(decay=0.3)
    for by, grows in ((0.99, False), (1.01, True)):
        orbit = heavy_ball(1e-9, by * v, step_size=1.0, coupling=1e-6, decay=0.3, steps=1)
        assert (abs(orbit.residuals[1]) > 1e-9) == grows
    with pytest.raises(ValueError, match="decay"):
        critical_kernel(momentum=0.5, decay=0.1)
    with pytest.raises(ValueError, match="decay"):
        critical_kernel(decay=0.6, step_size=2.0)


@pytest.mark.parametrize("momentum", [0.0, 0.2, 0.6])
def test_second_order_of_catapults_with_momentum(momentum):
    """Peak and end of the kernel: the same correction, (2/3)(1+4b+b^2)/((1+b)(1-b)^2)."""
    b, delta = momentum, 0.004 * (1 - momentum) ** 2
    found = heavy_ball_fate(
        1e-10, 1.0, step_size=2 * (1 + b) + delta, coupling=1.0, momentum=b, most_steps=10**7
    )
    eta = 2 * (1 + b) + delta
    second = 2 / 3 * (1 + 4 * b + b * b) / ((1 + b) * (1 - b) ** 2)
    peak = (2 * found.peak * eta**2 / (delta**2 / 2) - 1) / delta
    end = (2 * (1 + b) - delta - found.kernel * eta) / delta**2
    assert peak == pytest.approx(second, rel=0.01)
    assert end == pytest.approx(second, rel=0.01)


@pytest.mark.parametrize(
    "call",
    [
        lambda: heavy_ball(1.0, 1.0, step_size=1.0, coupling=1.0, steps=1),
        lambda: heavy_ball(0.1, 1.0, step_size=1.0, coupling=0.1, momentum=1.0, steps=1),
        lambda: heavy_ball(0.1, 1.0, step_size=-1.0, coupling=0.1, steps=1),
        lambda: heavy_ball(0.1, 1.0, step_size=1.0, coupling=0.1, decay=-1.0, steps=1),
        lambda: heavy_ball_fate(0.1, 1.0, step_size=[1.0, 0.0], coupling=0.1),
        lambda: heavy_ball_fate(0.1, 1.0, step_size=1.0, coupling=0.1, momentum=[0.5, -0.1]),
        lambda: critical_kernel(momentum=-0.1),
    ],
)
def test_arguments_out_of_range(call):
    """Each is refused; a kernel must be at least twice the output, over the root of the width."""
    with pytest.raises(ValueError, match="must"):
        call()
