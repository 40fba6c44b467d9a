"""The one-example map against gradient descent on weights, and its laws."""

import numpy as np
import pytest

from companion.catapults.one_example import equilibria, jacobian, reduced, subcritical_drift
from traindyn import catapults
from traindyn.catapults import TwoLayerModel, Weights


def descend(width, steps, step_size, label, seed=0):
    """Gradient descent on the weights of a frozen-gate network, one input in five dimensions."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((1, 5))
    weights = TwoLayerModel.initial(width, 5, rng=rng)
    model = TwoLayerModel(weights, "quadratic")
    batch, labels = model.prepare(x), np.array([label])
    residuals, kernels = [], []
    for _ in range(steps + 1):
        kernels.append(model.tangent_kernel(weights, batch)[0, 0])
        residual, gradient = model.gradient(weights, batch, labels)
        residuals.append(residual[0])
        weights = Weights(
            weights.first - step_size / kernels[0] * gradient.first,
            weights.second - step_size / kernels[0] * gradient.second,
        )
    coupling = float(x[0] @ x[0]) / (5 * width)
    return np.array(residuals), np.array(kernels), step_size / kernels[0], coupling


@pytest.mark.parametrize("relative", [0.7, 2.4, 3.6])
def test_two_numbers_are_the_whole_dynamics(relative):
    """Residual and kernel of the weights (ZHU (3.11), (3.12)) to 1e-9, relative to the largest.

    Without the label in g the map is another.
    """
    residuals, kernels, eta, coupling = descend(2000, 60, relative, label=0.5)
    options = dict(step_size=eta, coupling=coupling, steps=60)
    orbit = catapults.iterate(residuals[0], kernels[0], label=0.5, **options)
    np.testing.assert_allclose(orbit.residuals, residuals, atol=1e-9 * np.abs(residuals).max())
    np.testing.assert_allclose(orbit.kernels, kernels, rtol=1e-9)
    control = catapults.iterate(residuals[0], kernels[0], label=0.0, **options)
    assert np.abs(control.kernels - kernels).max() > 1e-5 * kernels[0]


def test_reduced_variables_follow_the_same_orbit():
    """One step of u, v, w against u, v, w of one step."""
    options = dict(step_size=2.7, coupling=3e-4, label=-0.8)
    orbit = catapults.iterate(0.9, 1.0, steps=40, **options)
    u, v, w = reduced(orbit.residuals, orbit.kernels, **options)
    ahead = catapults.reduced_step(u[:-1], v[:-1], w[:-1])
    for got, want in zip(ahead, (u[1:], v[1:], w[1:])):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-15)


def test_fate_is_the_end_of_the_orbit():
    """Peak, its step, final kernel and the step of divergence, for three regimes at once."""
    options = dict(coupling=1e-5, label=0.3)
    found = catapults.fate(0.5, 1.0, step_size=[1.2, 2.9, 4.4], **options)
    assert found.converged.tolist() == [True, True, False]
    for i, eta in enumerate((1.2, 2.9, 4.4)):
        orbit = catapults.iterate(0.5, 1.0, step_size=eta, steps=int(found.steps[i]), **options)
        if found.diverged[i] < 0:
            assert found.peak[i] == orbit.losses.max()
            assert found.peak_step[i] == orbit.losses.argmax()
            assert found.kernel[i] == orbit.kernels[-1]
        else:
            assert orbit.diverged == found.diverged[i] == orbit.losses.size
            assert np.isinf(found.peak[i]) and np.isnan(found.kernel[i])


def test_kernel_identity_without_label():
    """At y = 0 the factor by which 4 - v grows is 1 + u, at every step."""
    orbit = catapults.iterate(0.2, 1.0, step_size=2.8, coupling=1e-3, steps=200)
    u, v, _ = reduced(orbit.residuals, orbit.kernels, step_size=2.8, coupling=1e-3)
    np.testing.assert_allclose(4 - v[1:], (4 - v[:-1]) * (1 + u[:-1]), rtol=1e-12)
    assert (4 - v[-1]) / (4 - v[0]) == pytest.approx(np.prod(1 + u[:-1]), rel=1e-11)
    assert np.all(u <= v**2 / 4)


def test_divergence_is_sharp_at_four():
    """At y = 0 all runs come down below v = 4 (ZHU Lemma 3.3.3), none above (ZHU Theorem B.7.1)."""
    starts = np.geomspace(1e-4, 1e-2, 30)
    below = catapults.fate(starts, 1.0, step_size=3.999, coupling=1e-3)
    above = catapults.fate(starts, 1.0, step_size=4.001, coupling=1e-3)
    assert below.converged.all()
    assert (above.diverged > 0).all()


@pytest.mark.parametrize("v", [0.3, 1.0, 1.7])
def test_subcritical_drift(v):
    """The drift of ZHU Theorem B.3.1 to 1e-4; without the label's term it is off by 15 %."""
    width = 1e8
    g, y = 0.7, -0.4
    orbit = catapults.iterate(g - y, v, step_size=1.0, coupling=1 / width, label=y, steps=400)
    u, w = (g - y) ** 2 / width, (g - y) * y / width
    change = orbit.kernels[-1] - v
    assert change == pytest.approx(subcritical_drift(u, v, w), rel=1e-4)
    assert abs(change / subcritical_drift(u, v) - 1) > 0.15


@pytest.mark.parametrize("excess", [0.02, 0.05, 0.1])
def test_wide_limit_against_its_series(excess):
    """Peak and end of the catapult (ZHU Theorem 3.3.1) to second order, and at a finite width."""
    peaks, ends = catapults.limit_orbits(excess, phases=16)
    assert peaks.mean() / (excess**2 / 2) == pytest.approx(1 + 2 / 3 * excess, abs=0.3 * excess**2)
    assert ends.mean() == pytest.approx(2 - excess - 2 / 3 * excess**2, abs=0.6 * excess**3)
    wide = catapults.fate(1.0, 1.0, step_size=2 + excess, coupling=1e-10)
    scale = 2 * 1e-10 * (2 + excess) ** 2
    assert wide.peak * scale == pytest.approx(peaks.mean(), rel=0.02 * excess)
    assert wide.kernel * (2 + excess) == pytest.approx(ends.mean(), rel=1e-3)


def test_peak_comes_after_a_logarithm_of_the_width():
    """Ten thousand times the width costs log(1e4) / 2 log(1 + delta) steps, to one."""
    found = catapults.fate(1.0, 1.0, step_size=2.1, coupling=[1e-5, 1e-9])
    later = found.peak_step[1] - found.peak_step[0]
    assert abs(later - np.log(1e4) / (2 * np.log(1.1))) <= 1


def test_equilibria_are_fixed():
    """All four; eigenvalues by differences; only v < 2 is stable (ZHU Theorem 3.3.4)."""
    options = dict(step_size=2.5, coupling=1e-3, label=0.7)
    found = equilibria(kernel=0.6, **options)
    assert [each.unstable for each in found] == [False, True, True, True]
    for each in found:
        orbit = catapults.iterate(each.residual, max(each.kernel, 0), steps=1, **options)
        assert orbit.residuals[1] == pytest.approx(each.residual, abs=1e-12)
        assert orbit.kernels[1] == pytest.approx(each.kernel, abs=1e-12)
    assert equilibria(kernel=0.81, **options)[0].unstable
    step = 1e-6
    columns = []
    for de, dk in ((step, 0.0), (0.0, step)):
        ends = [catapults.iterate(0.4 + s * de, 0.9 + s * dk, steps=1, **options) for s in (1, -1)]
        columns.append([(ends[0][i][1] - ends[1][i][1]) / (2 * step) for i in (0, 1)])
    np.testing.assert_allclose(jacobian(0.4, 0.9, **options), np.array(columns).T, atol=1e-8)


def test_angle_tripling_at_the_threshold():
    """On the line v = 4, y = 0: u = 4 sin^2 and the angle triples."""
    angle = np.linspace(0.01, 1.5, 40)
    u = 4 * np.sin(angle) ** 2
    ahead = catapults.reduced_step(u, np.full(40, 4.0))
    np.testing.assert_allclose(ahead.u, 4 * np.sin(3 * angle) ** 2, atol=1e-12)
    np.testing.assert_array_equal(ahead.v, 4.0)


def test_messages():
    """Each names the argument, what was given and what is allowed."""
    options = dict(step_size=1.0, coupling=1.0)
    for call, message in (
        (
            lambda: catapults.iterate(1, 1, step_size=0, coupling=1, steps=1),
            "step_size must",
        ),
        (lambda: catapults.iterate(1, -1, steps=1, **options), "kernel must be non-negative"),
        (lambda: catapults.iterate(1, 1, steps=-1, **options), "steps must be an integer >= 0"),
        (lambda: catapults.fate(1, 1, step_size=1, coupling=[1, -1]), "coupling must be positive"),
        (lambda: catapults.fate([1, 2], [1, 2, 3], **options), "shapes that broadcast"),
        (lambda: catapults.fate(1, -1, **options), "kernel must be non-negative"),
        (lambda: catapults.limit_orbits(2.0), "excess must be below 2"),
        (lambda: subcritical_drift(1, 2.0), r"v must be in \(0, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
