"""One sampled step against closed forms of its moments, in full dimension and reduced."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from companion.alignment.training_dynamics import dynamics
from companion.alignment.training_dynamics.printed import printed_drift
from companion.effective_dynamics.pca.printed import printed_volatility
from traindyn import gaussian
from traindyn.effective import one_step
from traindyn.problems import KGaussianMixture, SpikedTensor
from traindyn.problems.base import Kernel
from traindyn.problems.k_gmm import Point as Rows
from traindyn.problems.k_gmm import Statistics as Overlaps
from traindyn.problems.spiked import Statistics
from traindyn.problems.two_layer import TwoLayerMixture

FALSE_ALARM = 1e-6
PLACE = Statistics(np.array(0.6), np.array(0.8))


def p_value(estimate, expected):
    """Worst z-test over the entries that are random, Bonferroni."""
    random = estimate.error > 1e-6
    gap = np.abs(estimate.value - expected)
    assert np.all(gap[~random] < 1e-6)
    return random.sum() * 2 * stats.norm.sf((gap[random] / estimate.error[random]).max())


def spiked(order, level, *, dimension=500, samples=None, seed=0, scaling=1.0):
    """A tensor with ridge, and one step from the same statistics at either level."""
    problem = SpikedTensor(order, dimension, signal=1.7, ridge=0.3)
    start = problem.place(PLACE) if level == "direct" else PLACE
    samples = samples or (10_000 if level == "direct" else 100_000)
    size = 1.0 / dimension
    found = one_step.measure(
        problem, start, step_size=size, samples=samples, rng=seed, scaling=scaling
    )
    return problem, size, found


@pytest.mark.parametrize("level", ["direct", "reduced"])
@pytest.mark.parametrize("order", [2, 3])
def test_moments_of_the_spiked_tensor(order, level):
    """Every moment in closed form at finite n; false alarm 1e-6 each.

    Controls: the volatility printed in BGJ (7.3), and a mean without the corrector.
    """
    problem, size, found = spiked(order, level)
    exact = problem.step_moments(PLACE, step_size=size)
    drift = np.array(problem.drift(PLACE, c_delta=0.0))
    mean = (np.array(exact.mean) - np.array(PLACE)) / size
    assert p_value(found.drift, drift) > FALSE_ALARM
    assert p_value(found.corrector, mean - drift) > FALSE_ALARM
    assert p_value(found.mean, mean) > FALSE_ALARM
    assert p_value(found.mean, drift) < FALSE_ALARM
    volatility = problem.volatility(PLACE)
    assert p_value(found.diffusion, size * volatility) > FALSE_ALARM
    assert p_value(found.generalised, exact.covariance / size) > FALSE_ALARM
    printed = size * printed_volatility(problem, PLACE)
    assert p_value(found.diffusion, printed) < FALSE_ALARM
    # The first-order move is Gaussian here.
    assert p_value(found.fourth, 3 * np.diag(volatility) ** 2) > FALSE_ALARM


def test_second_order_of_the_spiked_tensor():
    """E Q^2 of r2 is four times the variance of the squared orthogonal gradient: order n.

    The last bound of BGJ Definition 2.1 is about this growth. At two sizes, so that an exponent
    is seen; m has no second order.
    """
    for dimension in (200, 20_000):
        problem, _, found = spiked(3, "reduced", dimension=dimension)
        m, r2 = PLACE
        square, k = m * m + r2, 3
        bulk = 4 * k * square ** (k - 1)
        along = bulk + 4 * k * (k - 1) * square ** (k - 2) * r2
        mean = (0.5 * bulk + problem.ridge) * math.sqrt(r2)
        variance = 2 * along**2 + 2 * (dimension - 2) * bulk**2 + 4 * mean**2 * along
        assert p_value(found.second_order, np.array([0.0, 4 * variance])) > FALSE_ALARM
        assert p_value(found.second_order, np.array([0.0, variance])) < FALSE_ALARM
        leading = 128 * k**2 * square ** (2 * k - 2) * dimension
        assert abs(4 * variance / leading - 1) < 25 / dimension


def mixture(dimension=30):
    """Three classes without any symmetry."""
    gram = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
    return KGaussianMixture(gram, np.array([0.2, 0.3, 0.5]), 1.5, 0.1, dimension)


def overlaps():
    """Statistics without structure."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    return Overlaps(0.5 * rng.normal(size=(3, 3)), 0.3 * root @ root.T)


def packed(statistics):
    """In the order of the estimates."""
    return np.r_[statistics.m.ravel(), statistics.R_perp[np.triu_indices(3)]]


@pytest.mark.parametrize("level", ["direct", "reduced"])
def test_moments_of_the_gaussian_mixture(level):
    """Drift and diffusion matrix, exact in any dimension; the printed drift is rejected.

    The errors of the rules stay below a fifth of the standard errors.
    """
    problem, start = mixture(), overlaps()
    point = start
    if level == "direct":
        _, small = problem.embed(start)
        point = Rows(np.pad(small.x, ((0, 0), (0, 30 - small.x.shape[1]))))
    samples = 8_000 if level == "direct" else 60_000
    found = one_step.measure(problem, point, step_size=0.02, samples=samples, rng=2)
    assert found.names[:4] == ("m[0,0]", "m[0,1]", "m[0,2]", "m[1,0]")
    assert found.names[9:11] == ("R_perp[0,0]", "R_perp[0,1]")
    rule = gaussian.gauss_hermite(3, 14)
    drift = packed(problem.drift(start, rule=rule, c_delta=0.0))
    assert p_value(found.drift, drift) > FALSE_ALARM
    printed = packed(printed_drift(problem, start, rule=rule, c_delta=0.0))
    assert p_value(found.drift, printed) < FALSE_ALARM
    pairs = gaussian.sobol(6, 2**15, rng=0)
    volatility = dynamics.volatility(problem, start, rule=pairs, c_delta=0.0)
    assert p_value(found.diffusion, 0.02 * volatility) > FALSE_ALARM
    assert p_value(found.diffusion, 0.02 * volatility * 1.3) < FALSE_ALARM


def test_corrector_and_second_order_of_the_gaussian_mixture_in_high_dimension():
    """At c_delta = 2 both survive for R_perp; without them the same tests reject.

    d = 10^6: corrections of order 1/d are far below the errors.
    """
    d, c_delta = 10**6, 2.0
    problem, start = mixture(d), overlaps()
    found = one_step.measure(
        problem, start, step_size=c_delta / d, samples=60_000, rng=3, scaling=math.sqrt(d)
    )
    pairs = gaussian.sobol(6, 2**15, rng=0)
    rule = gaussian.gauss_hermite(3, 14)
    drifts = [packed(problem.drift(start, rule=rule, c_delta=c)) for c in (0.0, c_delta)]
    wide = [dynamics.volatility(problem, start, rule=pairs, c_delta=c) for c in (0.0, c_delta)]
    root = math.sqrt(d)
    assert p_value(found.corrector, root * (drifts[1] - drifts[0])) > FALSE_ALARM
    assert p_value(found.mean, root * drifts[1]) > FALSE_ALARM
    assert p_value(found.mean, root * drifts[0]) < FALSE_ALARM
    assert p_value(found.diffusion, c_delta * wide[0]) > FALSE_ALARM
    assert p_value(found.generalised, c_delta * wide[1]) > FALSE_ALARM
    assert p_value(found.generalised, c_delta * wide[0]) < FALSE_ALARM


@njit
def cubic_step(state, constants, rng, step_size):
    """Not quadratic in the step."""
    state[0][0] += step_size * rng.standard_normal() + 100 * step_size**3


class CubicTensor(SpikedTensor):
    """A problem whose statistics are no quadratic functions of a point."""

    def reduced_kernel(self):
        """Replaced."""
        return Kernel(cubic_step, ())


def place(problem, level):
    """Statistics away from the start, or a point."""
    point = problem.initial(rng=0)
    return point if level == "direct" else problem.statistics(point)


@pytest.mark.parametrize("level", ["direct", "reduced"])
@pytest.mark.parametrize(
    "problem",
    [
        SpikedTensor(3, 50, signal=1.7, ridge=0.3),
        mixture(50),
        TwoLayerMixture.xor(4, 50, precision=5.0, ridge=0.1),
    ],
    ids=["spiked", "k_gmm", "two_layer"],
)
def test_both_orders_do_not_depend_on_the_step(problem, level):
    """Every kernel must be quadratic in the step and accept a negative one.

    On the same samples, drift and corrector per step size are the same at any step size; a
    cubic kernel is seen.
    """

    def orders(problem, start, size):
        found = one_step.measure(problem, start, step_size=size, samples=100, rng=1)
        return found.drift.value, found.corrector.value / size

    start = place(problem, level)
    for a, b in zip(orders(problem, start, 0.01), orders(problem, start, 0.03), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    cubic = CubicTensor(3, 50, signal=1.7)
    drifts = [orders(cubic, PLACE, size)[0] for size in (0.01, 0.03)]
    assert np.abs(drifts[0] - drifts[1]).max() > 0.01


def test_parts_add_up_and_scale():
    """Mean = drift + corrector; the scaling multiplies vectors and, on both sides, matrices."""
    _, size, plain = spiked(2, "reduced", samples=500)
    scaling = np.array([3.0, 0.5])
    _, _, scaled = spiked(2, "reduced", samples=500, scaling=scaling)
    np.testing.assert_allclose(plain.drift.value + plain.corrector.value, plain.mean.value)
    for name, factor in (
        ("drift", scaling),
        ("mean", scaling),
        ("diffusion", np.outer(scaling, scaling)),
        ("generalised", np.outer(scaling, scaling)),
        ("fourth", scaling**4),
    ):
        for a, b in zip(getattr(plain, name), getattr(scaled, name), strict=True):
            np.testing.assert_allclose(b, factor * a, rtol=1e-9)
    assert (plain.step_size, plain.samples) == (size, 500)


def test_errors_are_standard_errors():
    """Spread of 200 repetitions of 200 samples against the errors they state, within 30 %."""
    runs = [spiked(2, "reduced", samples=200, seed=seed)[2] for seed in range(200)]
    for name in ("drift", "mean", "diffusion", "generalised"):
        values, errors = (np.array(x) for x in zip(*(getattr(r, name) for r in runs), strict=True))
        np.testing.assert_allclose(values.std(axis=0), errors.mean(axis=0), rtol=0.3)


def test_batches_change_nothing(monkeypatch):
    """Memory is bounded by batches, which must keep both streams together."""
    whole = spiked(3, "direct", samples=50)[2]
    monkeypatch.setattr(one_step, "_ENTRIES", 500 * 7)
    for a, b in zip(whole.mean, spiked(3, "direct", samples=50)[2].mean, strict=True):
        np.testing.assert_array_equal(a, b)


def test_start_is_left_alone_and_streams_are_reproduced():
    """Same seed, same numbers; the point given is not moved."""
    problem = SpikedTensor(2, 50, signal=1.7)
    point = problem.initial(rng=0)
    before = point.x.copy()
    runs = [
        one_step.measure(problem, point, step_size=0.02, samples=20, rng=rng).mean.value
        for rng in (1, np.random.default_rng(1), 2)
    ]
    np.testing.assert_array_equal(point.x, before)
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.all(runs[0] != runs[2])


@njit
def uneven_step(state, constants, rng, step_size):
    """Draws one number more when stepped back."""
    state[0][0] += step_size * rng.standard_normal()
    if step_size < 0:
        rng.standard_normal()


class UnevenTensor(SpikedTensor):
    """A problem whose kernel breaks the method."""

    def reduced_kernel(self):
        """Replaced."""
        return Kernel(uneven_step, ())


def test_bad_requests_are_named():
    """Wrong sizes, a step that overflows, a kernel that draws by the step size."""
    problem = SpikedTensor(3, 50, signal=1.7)
    options = {"step_size": 0.02, "samples": 10, "rng": 0}
    with pytest.raises(ValueError, match=r"step_size must be positive, got -0\.1"):
        one_step.measure(problem, PLACE, **options | {"step_size": -0.1})
    with pytest.raises(ValueError, match="samples must be an integer >= 2, got 1"):
        one_step.measure(problem, PLACE, **options | {"samples": 1})
    with pytest.raises(ValueError, match=r"scaling must have shape \(\) or \(2,\), got \(3,\)"):
        one_step.measure(problem, PLACE, **options, scaling=np.ones(3))
    with pytest.raises(ValueError, match="r2 must be non-negative"):
        one_step.measure(problem, Statistics(0.0, -1.0), **options)
    with pytest.raises(ValueError, match="draws do not depend on the step size"):
        one_step.measure(UnevenTensor(3, 50, signal=1.7), PLACE, **options)
    far = Statistics(np.array(1e60), np.array(1.0))
    with pytest.raises(FloatingPointError, match=r"step_size = 0\.02 makes one step leave"):
        one_step.measure(problem, far, **options)
