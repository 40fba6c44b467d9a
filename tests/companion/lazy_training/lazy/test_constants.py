"""The lazy-training bounds: sharp where they can be, true where measured, the misprints not."""

from dataclasses import replace

import numpy as np
import pytest

from companion.lazy_training.lazy.constants import (
    LazyConstants,
    QuadraticMap,
    linearisation_gap,
    measure,
    scales,
    sharp_bounds,
    theorem_bounds,
)
from companion.lazy_training.lazy.printed import printed_deviation_scale, printed_linearisation_gap
from traindyn.activations import GELU, TANH
from traindyn.kernels import TwoLayer, compare


def parabola(sigma, lipschitz):
    """One parameter, one output: the slowest flow."""
    return QuadraticMap([[sigma]], [[[-lipschitz]]])


def test_theorem_bounds_at_unequal_constants():
    """At constants of one, or equal ones, a wrong power would not be seen."""
    bounds = theorem_bounds(LazyConstants(3, 0.5, 2.0, 3.0, 0.25))
    assert (bounds.rate, bounds.distance) == pytest.approx((4 / 6, 0.5), rel=1e-14)
    assert bounds.deviation == pytest.approx(8 * 0.25 * 9 * 0.25 / 32, rel=1e-14)
    assert theorem_bounds(LazyConstants(3, 0.5, 2.0, 3.0, 4.0)).deviation == 0.75


def training(n, d, m, scale, seed, *, factor=1.0, times=None):
    """A paired two-layer network on Gaussian data: constants, times and path of its flow."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, d)), factor * rng.standard_normal(n)
    net = TwoLayer(d, m, TANH, scale=scale)
    theta = net.initial(paired=True, rng=rng)
    constants = measure(net, theta, x, y, lipschitz=net.lipschitz(x).upper)
    if times is None:
        times = np.linspace(0, 6, 25)
    grid = np.asarray(times) * n / constants.sigma_min**2
    path = compare(net, theta, x, y, grid, rtol=1e-9, atol=1e-12).statistics
    return constants, grid, y, path


@pytest.mark.parametrize("ratio", [0.05, 0.2, 0.45])
def test_bounds_are_attained_by_a_parabola(ratio):
    """Distance to 1e-7 and late rate to 1 %; the theorem's own are slack, also beyond 1/4."""
    s, lipschitz = 2.0, 0.5
    residual = ratio * s**2 / lipschitz
    constants = LazyConstants(1, residual, s, s, lipschitz)
    bounds, loose = sharp_bounds(constants), theorem_bounds(constants)
    model = parabola(s, lipschitz)
    assert measure(model, [0.0], [[0.0]], [residual], lipschitz=lipschitz) == constants
    times = np.array([0.0, 0.5, 14.0, 15.0, 80.0]) / bounds.rate
    path = compare(model, [0.0], [[0.0]], [residual], times, rtol=1e-11, atol=1e-13).statistics
    left = np.abs(residual - path.outputs[:, 0])
    assert path.distance[-1] == pytest.approx(bounds.distance, rel=1e-7)
    assert 2 * np.log(left[2] / left[3]) == pytest.approx(1.0, rel=0.01)
    assert np.all(left <= residual * np.exp(-bounds.rate * times / 2) + 1e-9)
    assert path.deviation.max() < bounds.deviation
    assert loose.distance > 1.01 * path.distance[-1]
    # The theorem's rate is safe under its hypothesis; far beyond it, it is false.
    loss = np.square(left / residual)[2]
    assert (loss < np.exp(-loose.rate * times[2])) == (ratio < 0.25)
    # Control: a bound two per cent smaller would be false.
    assert path.distance[-1] > 0.98 * bounds.distance


def test_deviation_of_a_parabola():
    """At the end (1 - kappa - h) sigma / L, half the bound at small h, a quarter near one half.

    The bound's expansion agrees with its closed form where they meet.
    """
    s, lipschitz = 2.0, 0.5
    for ratio in (1e-3, 0.1, 0.25, 0.49):
        constants = LazyConstants(1, ratio * s**2 / lipschitz, s, s, lipschitz)
        kappa = np.sqrt(1 - 2 * ratio)
        exact = s / lipschitz * (1 - kappa - ratio)
        bound = sharp_bounds(constants).deviation
        assert 0.25 * bound < exact < 0.51 * bound
        times = [0.0, 30.0 / sharp_bounds(constants).rate]
        path = compare(parabola(s, lipschitz), [0.0], [[0.0]], [constants.residual], times,
                       rtol=1e-11, atol=1e-13).statistics  # fmt: skip
        assert path.deviation[1] == pytest.approx(exact, rel=1e-3)
    sides = [
        sharp_bounds(LazyConstants(1, h, 1.0, 1.0, 1.0)).deviation / h**2
        for h in (0.9995e-3, 0.9996e-3)  # 1 - kappa crosses 1e-3
    ]
    assert sides[0] == pytest.approx(sides[1], rel=1e-6)
    assert sides[0] == pytest.approx(1.0, rel=2e-3)


def test_deviation_of_a_turning_gradient():
    """The bound over root two at small h; the Jacobian's Lipschitz constant is L exactly."""
    s, lipschitz = 2.0, 0.5
    bend = lipschitz * np.array([[[0, 0, 1], [0, 0, 0], [1, 0, 0]], np.diag([1, 0, -1])])
    model, rng = QuadraticMap(s * np.eye(2, 3), bend), np.random.default_rng(0)
    for direction in rng.standard_normal((20, 3)):
        largest = np.linalg.norm(bend @ direction, 2)
        assert largest == pytest.approx(lipschitz * np.hypot(*direction[[0, 2]]))
    weights, theta = rng.standard_normal(2), rng.standard_normal(3)
    ahead, behind = (
        [weights @ model.outputs(theta + step * axis, np.zeros((2, 1))) for axis in np.eye(3)]
        for step in (0.5, -0.5)
    )
    pulled = model.vjp(theta, np.zeros((2, 1)))[1](weights)
    np.testing.assert_allclose(np.subtract(ahead, behind), pulled, rtol=1e-12)
    ratio = 1e-3
    constants = LazyConstants(2, ratio * s**2 / lipschitz, s, s, lipschitz)
    path = compare(model, np.zeros(3), np.zeros((2, 1)), [constants.residual, 0.0], [0.0, 20.0],
                   rtol=1e-11, atol=1e-13).statistics  # fmt: skip
    bound = sharp_bounds(constants).deviation
    assert path.deviation[-1] / bound == pytest.approx(0.5**0.5, rel=0.01)


def test_deviation_needs_no_condition_number():
    """Stretched inputs at the same h: the theorem's bound grows by sigma_max^2, ours does not."""
    found = []
    for stretch in (1.0, 4.0):
        rng = np.random.default_rng(4)
        x = rng.standard_normal((6, 20)) + (stretch - 1) * rng.standard_normal(20)
        y = rng.standard_normal(6)
        net = TwoLayer(20, 200, GELU)
        theta = net.initial(paired=True, rng=rng)
        lipschitz = net.lipschitz(x).upper
        constants = measure(net, theta, x, y, lipschitz=lipschitz)
        y *= 0.2 / constants.ratio
        constants = measure(net, theta, x, y, lipschitz=lipschitz)
        assert constants.ratio == pytest.approx(0.2)
        times = np.linspace(0, 8, 9) * 6 / constants.sigma_min**2
        path = compare(net, theta, x, y, times).statistics
        ours = sharp_bounds(constants).deviation
        assert path.deviation.max() < ours
        loose = 8 * constants.ratio * constants.residual * constants.sigma_max**2
        found.append(loose / constants.sigma_min**3 / ours)
    assert found[1] > 5 * found[0]


def test_the_hypothesis_cannot_be_weakened():
    """Above one half the parabola does not reach its target, and the bounds say so."""
    s, lipschitz, residual = 2.0, 0.5, 0.51 * 4 / 0.5
    path = compare(parabola(s, lipschitz), [0.0], [[0.0]], [residual], [0.0, 500.0]).statistics
    assert path.outputs[-1, 0] < 0.99 * residual
    with pytest.raises(ValueError, match=r"must be below 1/2, got 0\.51"):
        sharp_bounds(LazyConstants(1, residual, s, s, lipschitz))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_network_obeys_every_bound(seed):
    """Under the hypothesis of MDL Theorem 9.1, with the proved Lipschitz constant."""
    constants, times, y, path = training(8, 20, 400, 8.0, seed)
    assert constants.ratio < 0.25
    left = np.linalg.norm(y - path.outputs, axis=1)
    gap = np.linalg.norm(path.outputs - path.linearised, axis=1)
    for bounds in (theorem_bounds(constants), sharp_bounds(constants)):
        assert np.all(left <= (1 + 1e-6) * left[0] * np.exp(-bounds.rate * times / 2) + 1e-8)
        assert path.distance.max() < bounds.distance
        assert path.deviation.max() < bounds.deviation
    assert np.all(gap[1:] < linearisation_gap(constants, times)[1:])
    # The quantity of MDL's proof, and the sharper one with the distance for the path length.
    plain = left + constants.sigma_min / 2 * path.distance
    assert np.all(np.diff(plain) < 1e-8)
    bent = constants.sigma_min * path.distance - constants.lipschitz * path.distance**2 / 2
    assert np.all(left + bent <= left[0] + 1e-8)
    # Control: faster than every direction of the kernel allows, or half as far as it goes.
    assert left[-1] > left[0] * np.exp(-3 * constants.sigma_max**2 / constants.samples * times[-1])
    assert path.distance.max() > constants.residual / constants.sigma_max / 2


def test_sharp_bounds_improve_on_the_theorem():
    """Over the whole range of the theorem, and tend to those of the linear flow."""
    base = LazyConstants(10, 1.0, 1.0, 3.0, 0.0)
    for ratio in np.linspace(1e-3, 0.2499, 12):
        constants = replace(base, lipschitz=float(ratio))
        assert constants.ratio == pytest.approx(ratio)
        sharp, loose = sharp_bounds(constants), theorem_bounds(constants)
        assert sharp.rate > 1.9 * loose.rate
        assert sharp.distance < 0.6 * loose.distance
        assert sharp.deviation < loose.deviation
    linear = sharp_bounds(base)
    assert linear.rate == pytest.approx(0.2) and linear.distance == pytest.approx(1.0)
    assert linear.deviation == 0
    near = linearisation_gap(replace(base, lipschitz=1e-9), [1.0, 5.0])
    np.testing.assert_allclose(near, 6e-9 * np.array([1.0, 5.0]) / 10 * np.exp([-0.1, -0.5]))


def test_printed_inequality_does_not_scale():
    """Outputs and targets times a million: the printed bound stays, the gap does not."""
    for factor in (1.0, 1e6):
        constants, times, _, path = training(8, 20, 400, 8.0 * factor, 0, factor=factor)
        gap = np.linalg.norm(path.outputs - path.linearised, axis=1)
        assert np.all(gap[1:] < linearisation_gap(constants, times)[1:])
        printed = printed_linearisation_gap(constants, times, factor=1.0)
        assert np.all(gap[1:] < printed[1:]) == (factor == 1.0)


def test_scales_of_the_second_theorem():
    """Measured over sizes, the constants keep within a factor; the deviation falls as printed not.

    The scales are those of MDL Theorem 9.2. With n fixed and d growing, ours falls like
    d^{-1/2} and the printed one like d^{-3/2}.
    """
    ours, printed, ratios, sizes = [], [], [], (20, 40, 80, 160)
    for d in sizes:
        deviations = []
        for seed in range(3):
            constants, _, _, path = training(10, d, 400, 1.0, seed, times=[0.0, 12.0])
            deviations.append(path.deviation[-1])
            wanted = scales(10, d, 400, 1.0)
            ratios.append(
                [
                    constants.residual / wanted.residual,
                    constants.sigma_min / wanted.sigma_min,
                    constants.sigma_max / wanted.sigma_max,
                    constants.lipschitz / wanted.lipschitz,
                ]
            )
        ours.append(np.mean(deviations) / scales(10, d, 400, 1.0).deviation)
        printed.append(np.mean(deviations) / printed_deviation_scale(10, d, 400))
    assert np.ptp(np.log(ratios), axis=0).max() < np.log(4)
    assert np.ptp(np.log(ours)) < np.log(3)
    assert np.polyfit(np.log(sizes), np.log(printed), 1)[0] > 0.6


def test_scale_of_the_output_needs_paired_neurons():
    """Distance ~ 1/alpha and deviation ~ 1/alpha^2 when paired, and neither otherwise."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((8, 20)), rng.standard_normal(8)
    found = {}
    for paired in (True, False):
        for scale in (1.0, 16.0):
            net = TwoLayer(20, 200, TANH, scale=scale)
            theta = net.initial(paired=paired, rng=5)
            end = 15 * 8 / np.linalg.eigvalsh(net.tangent_kernel(theta, x))[0]
            path = compare(net, theta, x, y, [0.0, end]).statistics
            found[paired, scale] = path.distance[-1] * scale, path.deviation[-1] * scale**2
    np.testing.assert_allclose(found[True, 16.0], found[True, 1.0], rtol=0.05)
    assert found[False, 16.0][0] > 3 * found[False, 1.0][0]
    assert found[False, 16.0][1] > 10 * found[False, 1.0][1]


def test_refusals():
    """Each message names the argument."""
    with pytest.raises(ValueError, match="sigma_max must be at least sigma_min = 2"):
        LazyConstants(1, 1.0, 2.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="curvature must be symmetric"):
        QuadraticMap([[1.0, 0.0]], [[[0.0, 1.0], [0.0, 0.0]]])
    with pytest.raises(ValueError, match=r"parameters must have shape \(1\)"):
        parabola(1.0, 1.0).outputs([0.0, 1.0], [[0.0]])
    with pytest.raises(ValueError, match="sigma_min must be positive"):
        LazyConstants(1, 1.0, 0.0, 1.0, 1.0)
    net = TwoLayer(2, 2, TANH)
    x = np.random.default_rng(0).standard_normal((9, 2))
    with pytest.raises(ValueError, match="Jacobian must have full row rank"):
        measure(net, net.initial(rng=0), x, np.zeros(9), lipschitz=1.0)
    with pytest.raises(ValueError, match="samples must be an integer >= 1"):
        scales(0, 1, 1, 1.0)
