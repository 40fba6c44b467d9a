"""Integrals of the effective dynamics: three quadratures, closed forms, one step of SGD."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.integrate import dblquad
from scipy.linalg import solve_continuous_lyapunov
from scipy.special import expit

from traindyn.effective import find, ode
from traindyn.gaussian import gauss_hermite, sobol
from traindyn.problems.two_layer import Statistics, TwoLayerMixture, integrals
from traindyn.problems.two_layer.integrals import by_orthants, by_polar, by_rule, evaluate

FALSE_ALARM = 1e-6

TWO = Statistics(
    np.array([1.0, -0.7]), np.array([[0.5], [0.3]]), np.array([[0.7, 0.2], [0.2, 0.5]])
)
FOUR = Statistics(
    np.array([1.0, -0.6, 0.8, -1.2]),
    np.array([[0.3, 0.1], [-0.2, 0.1], [0.1, 0.4], [-0.1, -0.3]]),
    0.8 * np.eye(4) + 0.2 * np.eye(4)[[1, 0, 2, 3]] * np.array([1, 1, 0, 0]),
)


def binary(precision=2.0, width=2, ridge=0.1, dimension=50):
    """The binary mixture."""
    return TwoLayerMixture.binary(width, dimension, precision=precision, ridge=ridge)


def xor(precision=5.0, width=4, ridge=0.05, dimension=50):
    """The XOR mixture."""
    return TwoLayerMixture.xor(width, dimension, precision=precision, ridge=ridge)


def vector(statistics):
    """Statistics as one vector, upper triangle of R_perp."""
    v, m, R_perp = statistics
    return np.concatenate([v, np.ravel(m), R_perp[np.triu_indices(v.size)]])


def statistics_of(packed, like):
    """Inverse of `vector`."""
    K, d = like.m.shape
    R_perp = np.zeros((K, K))
    R_perp[np.triu_indices(K)] = packed[K + K * d :]
    R_perp = R_perp + np.triu(R_perp, 1).T
    return Statistics(packed[:K], packed[K : K + K * d].reshape(K, d), R_perp)


def assert_close(found, expected, tolerance):
    """All four integrals."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


# ---------------------------------------------------------------------- two neurons

ORACLES = {
    (2.0, -0.7): (
        [-0.20082614, -0.20829363],
        [[0.02920079, -0.00449488], [0.02486908, -0.00201712]],
        [0.10207906, 0.07089039, 0.10588947],
        0.6448809563,
    ),
    (10.0, -0.7): (
        [-0.21137191, -0.21411396],
        [[0.00654167, -0.00141176], [0.00637640, -0.00046303]],
        [0.09434541, 0.08198565, 0.09692833],
        0.6301103448,
    ),
    (2.0, 0.7): (
        [-0.1419456, -0.15088988],
        [[0.04363169, 0.02246173], [0.0335373, 0.03386561]],
        [0.07994681, 0.04875814, 0.08486938],
        0.5944536237,
    ),
}


@pytest.mark.parametrize(("precision", "second"), ORACLES)
def test_two_neurons_against_an_independent_quadrature(precision, second):
    """Eight digits from another integrator; polar converged to twelve, the others close."""
    A, A_perp, B, loss = ORACLES[precision, second]
    problem, u = binary(precision), TWO._replace(v=np.array([1.0, second]))
    found = by_polar(problem, u)
    np.testing.assert_allclose(found.A[:, 0], A, atol=6e-9)
    np.testing.assert_allclose(found.A_perp, A_perp, atol=6e-9)
    np.testing.assert_allclose(found.B[np.triu_indices(2)], B, atol=6e-9)
    np.testing.assert_allclose(found.loss, loss, atol=6e-11)
    assert_close(by_polar(problem, u, radial=130, angular=70), found, 1e-12)
    assert_close(by_orthants(problem, u, sobol(2, 2**12, rng=0)), found, 2e-5)
    assert_close(by_rule(problem, u, sobol(2, 2**14, rng=0)), found, 5e-4)
    assert_close(evaluate(problem, u), found, 0.0)


def test_polar_from_weak_to_strong_noise():
    """Refinement moves nothing, from noise far above the signal to far below it.

    At the first precision logits reach a hundred.
    """
    for precision in (1e-3, 0.1, 1.0, 30.0, 1e3, 1e6):
        tolerance = 1e-6 if precision < 0.01 else 1e-11
        for m in ([[0.5], [0.3]], [[0.5], [-0.3]], [[0.0], [0.6]]):
            problem, u = binary(precision), TWO._replace(m=np.array(m))
            fine = by_polar(problem, u, radial=200, angular=100)
            for a, b in zip(by_polar(problem, u), fine, strict=True):
                scale = max(1.0, np.abs(b).max())
                np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


def test_one_neuron_against_a_double_integral():
    """K = 1 by SciPy over the signal noise and the orthogonal noise; XOR, m off the axes."""
    problem = xor(precision=3.0, width=1)
    u = Statistics(np.array([1.3]), np.array([[0.4, -0.7]]), np.array([[0.6]]))
    length, beside = np.linalg.norm(u.m), math.sqrt(0.6)
    along = u.m[0] / length
    A, A_perp, B, loss = np.zeros(2), 0.0, 0.0, 0.0
    for centroid, y in zip(problem.centroids, problem.labels, strict=True):

        def moment(f, centroid=centroid, y=y):
            """Integrate f(a, b, o) with a, b the noise along m and W_perp."""

            def integrand(b, a):
                z = u.m[0] @ centroid + (length * a + beside * b) / math.sqrt(3.0)
                weight = math.exp(-0.5 * (a * a + b * b)) / (2 * math.pi)
                return weight * f(a, b, z)

            def kink(a):
                edge = -(u.m[0] @ centroid * math.sqrt(3.0) + length * a) / beside
                return min(max(edge, -9.0), 9.0)

            options = {"epsabs": 1e-11, "epsrel": 1e-11}
            upper = dblquad(integrand, -9, 9, kink, lambda a: 9.0, **options)[0]
            return upper, y

        def error(z, y=y):
            return expit(1.3 * z) - y

        mean = moment(lambda a, b, z: error(z))[0]
        A += 0.25 * mean * centroid
        A += 0.25 * moment(lambda a, b, z: error(z) * a)[0] * along / math.sqrt(3.0)
        A_perp += 0.25 * moment(lambda a, b, z: error(z) * b)[0] * beside / math.sqrt(3.0)
        B += 0.25 * moment(lambda a, b, z: error(z) ** 2)[0]
        excess = moment(lambda a, b, z, y=y: np.logaddexp(0, 1.3 * z) - y * 1.3 * z - math.log(2))
        loss += 0.25 * (excess[0] + math.log(2))
    found = by_polar(problem, u)
    np.testing.assert_allclose(found.A[0], A, atol=1e-9)
    np.testing.assert_allclose([found.A_perp[0, 0], found.B[0, 0]], [A_perp, B], atol=1e-9)
    np.testing.assert_allclose(found.loss, loss, atol=1e-9)


# ---------------------------------------------------------------------- exact facts


@pytest.mark.parametrize("precision", [0.3, 2.0, 50.0])
def test_exact_values_without_overlap_or_second_layer(precision):
    """m = 0 gives A^mu = -1/4 whatever v and R_perp, v = 0 gives A = -mu / 4 whatever W."""
    blind = TWO._replace(m=np.zeros((2, 1)))
    empty = TWO._replace(v=np.zeros(2))
    problem = binary(precision)
    for quadrature in (by_polar, lambda p, u: by_orthants(p, u, sobol(2, 256, rng=0))):
        np.testing.assert_allclose(quadrature(problem, blind).A, -0.25, atol=1e-12)
    np.testing.assert_allclose(by_polar(problem, empty).A, -0.25, atol=1e-12)
    np.testing.assert_allclose(by_polar(problem, empty).A_perp, 0.0, atol=1e-12)
    np.testing.assert_allclose(by_polar(problem, empty).loss, math.log(2), atol=1e-12)
    # Remark 7 of the source claims A = 0 where m = 0.
    drift = problem.drift(blind, c_delta=1.0)
    np.testing.assert_allclose(drift.m[:, 0], blind.v / 4, atol=1e-12)
    wide = replace(problem, width=4)
    still = Statistics(np.zeros(4), FOUR.m[:, :1], FOUR.R_perp)
    np.testing.assert_allclose(evaluate(wide, still).A, -0.25, atol=2e-4)


@pytest.mark.parametrize(("other", "expected"), [(0.6, -0.2102), (-0.6, -0.2898)])
def test_overlap_zero_of_one_neuron_takes_the_mean_of_both_sides(other, expected):
    """lim A_1 at m_1 = 0 is -(sigma(-v_2 g(m_2)) + sigma(v_2 g(-m_2))) / 4."""
    u = Statistics(np.array([1.0, 1.1]), np.array([[0.0], [other]]), np.eye(2))
    found = by_polar(binary(1e8), u).A[0, 0]
    exact = -(expit(-1.1 * max(other, 0)) + expit(1.1 * max(-other, 0))) / 4
    assert abs(found - exact) < 1e-4
    assert abs(found - expected) < 2e-4


@pytest.mark.parametrize(
    ("m", "constants"), [((0.5, 0.3), (0.046, 0.093)), ((0.5, -0.3), (0.045, 0.082))]
)
def test_distance_to_infinite_precision(m, constants):
    """BGHJ Corollary 5.17: errors of order 1 / precision away from m_i = 0, in A and A_perp."""
    u = Statistics(np.array([1.0, 0.7]), np.array(m)[:, None], TWO.R_perp)
    limit = evaluate(binary(math.inf), u)
    gaps = [
        [precision * np.abs(x - y).max() for x, y in zip(found[:2], limit[:2], strict=True)]
        for precision in (1e3, 1e4, 1e5)
        for found in [by_polar(binary(precision), u)]
    ]
    np.testing.assert_allclose(gaps[-1], constants, atol=6e-4)
    np.testing.assert_allclose(gaps[1], gaps[2], rtol=0.01)


def test_infinite_precision_is_a_sum_over_centroids():
    """Responses at the centroids, and nothing where z = 0; any rule gives the same."""
    problem = xor(math.inf)
    u = FOUR._replace(m=FOUR.m * np.array([[1, 1], [1, 0], [0, 0], [1, 1]]))
    z = u.m @ problem.centroids.T
    errors = expit(u.v @ np.maximum(z, 0)) - problem.labels
    A = ((z > 0) * errors / 4) @ problem.centroids
    found = evaluate(problem, u)
    np.testing.assert_allclose(found.A, A, atol=1e-15)
    np.testing.assert_array_equal(found.A_perp, 0.0)
    assert_close(evaluate(problem, u, gauss_hermite(4, 2)), found, 1e-15)
    noisy = problem.drift(u, c_delta=3.0)
    np.testing.assert_array_equal(noisy.m[2], 0.0)
    np.testing.assert_allclose(noisy.R_perp, -2 * problem.ridge * u.R_perp, atol=1e-15)
    for a, b in zip(noisy, xor(7.0).limit_drift(u), strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------------- singular statistics


def test_proportional_and_dead_neurons_reduce_to_one():
    """W_i = a_i w, v_i = a_i s with |a| = 1, or a zero neuron: the integrals of one neuron."""
    one, s, m, r = xor(width=1), 1.3, np.array([[0.4, -0.7]]), 0.8
    alone = by_polar(one, Statistics(np.array([s]), m, np.array([[r]])))
    for a, tolerance in (([0.6, 0.8], 1e-12), ([0.0, 1.0], 1e-12), ([2 / 7, 3 / 7, 6 / 7], 2e-4)):
        a = np.array(a)
        u = Statistics(a * s, a[:, None] * m, r * np.outer(a, a))
        found = evaluate(replace(one, width=a.size), u)
        on = a > 0
        np.testing.assert_allclose(found.A, on[:, None] * alone.A, atol=tolerance)
        np.testing.assert_allclose(found.A_perp, np.outer(on, a) * alone.A_perp, atol=tolerance)
        np.testing.assert_allclose(found.B, np.outer(on, on) * alone.B, atol=tolerance)
        np.testing.assert_allclose(found.loss, alone.loss, atol=tolerance)


@pytest.mark.parametrize("width", [2, 4])
def test_vanishing_gram_matrix_is_approached_continuously(width):
    """More neurons than signal directions and R_perp -> 0: no jump, nothing undefined."""
    problem = xor(width=width)
    start = Statistics(FOUR.v[:width], FOUR.m[:width], FOUR.R_perp[:width, :width])
    zero = evaluate(problem, start._replace(R_perp=np.zeros((width, width))))
    # Hyperplanes that cut a plane of rank two apart leave the Sobol points a step function.
    rounding = 5e-5 if width == 2 else 1e-3
    for scale, tolerance in ((1e-4, 5e-3), (1e-8, rounding), (1e-12, rounding)):
        found = evaluate(problem, start._replace(R_perp=scale * start.R_perp))
        assert_close(found, zero, tolerance)
    nothing = Statistics(start.v, 0 * start.m, 0 * start.R_perp)
    assert_close(evaluate(problem, nothing), [0, 0, 0, math.log(2)], 1e-12)


# ---------------------------------------------------------------------- any width


@pytest.mark.parametrize("precision", [5.0, 100.0])
def test_four_neurons_by_three_ways(precision):
    """Orthants converge faster than the rule as it is; default nodes to 1e-4."""
    problem = xor(precision)
    fine = by_orthants(problem, FOUR, sobol(4, 2**14, rng=7))
    assert_close(evaluate(problem, FOUR), fine, 1.5e-4)
    assert_close(evaluate(problem, FOUR, sobol(4, 2**10, rng=0)), evaluate(problem, FOUR), 0.0)
    rules = [sobol(4, 2**12, rng=seed) for seed in range(8)]
    plain = np.array([np.r_[by_rule(problem, FOUR, r).A.ravel()] for r in rules])
    error = plain.std(axis=0, ddof=1) / math.sqrt(8)
    assert (np.abs(plain.mean(axis=0) - fine.A.ravel()) < 12 * error + 2e-5).all()
    orthant = np.array(
        [by_orthants(problem, FOUR, sobol(4, 2**8, rng=s)).A.ravel() for s in range(8)]
    )
    assert np.median(orthant.std(axis=0)) < np.median(plain.std(axis=0))


@pytest.mark.parametrize("problem", [xor(2.0, dimension=7), xor(2.0, width=9, dimension=12)])
def test_drift_is_minus_the_population_gradient(problem):
    """Means over draws in full dimension: 200 000 gradients, false alarm 1e-6 each entry.

    The integrals make the drift of BGJ Propositions 4.1 and 9.1. Nine neurons take the rule as
    it is. The integrals for noise that is independent from neuron to neuron, as the source prints
    it, are rejected.
    """
    K, d = problem.width, problem.signal
    rng = np.random.default_rng(3)
    u = Statistics(np.resize(FOUR.v, K), 0.4 * rng.normal(size=(K, d)), 0.1 * np.eye(K) + 0.05)
    point, sample = problem.place(u), problem.sample(200_000, rng=4)
    z = sample.inputs @ point.W.T
    error = expit(problem.outputs(point, sample.inputs)) - problem.labels[sample.labels]
    c = (z > 0) * error[:, None]
    beside = sample.inputs[:, d:] @ point.W[:, d:].T
    samples = np.hstack(
        [
            (c[:, :, None] * sample.inputs[:, None, :d]).reshape(len(c), -1),
            (c[:, :, None] * beside[:, None, :]).reshape(len(c), -1),
            (c[:, :, None] * c[:, None, :]).reshape(len(c), -1),
            problem.loss(point, sample)[:, None],
        ]
    )
    mean, error = samples.mean(axis=0), samples.std(axis=0) / math.sqrt(len(samples))
    bar = stats.norm.isf(FALSE_ALARM / 2 / mean.size) * error + 5e-4 * (K > 8)

    def off(found):
        return np.abs(np.concatenate([np.ravel(each) for each in found]) - mean)

    assert (off(evaluate(problem, u)) < bar).all()
    if K == 4:
        # Independent noise is that of neurons with orthogonal m: more dimensions of signal.
        apart = np.zeros((K, K * d))
        for i in range(K):
            apart[i, i * d : (i + 1) * d] = u.m[i]
        split = replace(problem, centroids=np.tile(problem.centroids, K), dimension=99)
        A, A_perp, B, loss = evaluate(split, u._replace(m=apart))
        A = np.stack([A[i, i * d : (i + 1) * d] for i in range(K)])
        assert (off((A, A_perp, B, loss)) > 2 * bar).any()


@pytest.mark.parametrize(
    ("problem", "u", "tolerance"), [(binary(), TWO, 2e-9), (xor(), FOUR, 3e-4)]
)
def test_drift_without_corrector_descends_the_population_loss(problem, u, tolerance):
    """dv = -dPhi/dv, dm = -dPhi/dm and dR = -2 (G R + R G) with G the derivative in R_perp.

    A ridge of the wrong size is rejected.
    """
    packed, width = vector(u), 1e-5
    slopes = np.array(
        [
            (
                problem.population_loss(statistics_of(packed + shift, u))
                - problem.population_loss(statistics_of(packed - shift, u))
            )
            / (2 * width)
            for shift in width * np.eye(packed.size)
        ]
    )
    gradient = statistics_of(slopes, u)
    # A step in an off-diagonal entry moves two entries.
    G = np.where(np.eye(u.v.size, dtype=bool), gradient.R_perp, gradient.R_perp / 2)
    drift = problem.drift(u, c_delta=0.0)
    np.testing.assert_allclose(drift.v, -gradient.v, atol=tolerance)
    np.testing.assert_allclose(drift.m, -gradient.m, atol=tolerance)
    flow = -2 * (G @ u.R_perp + u.R_perp @ G)
    np.testing.assert_allclose(drift.R_perp, flow, atol=4 * tolerance)
    other = replace(problem, ridge=problem.ridge + 0.01).drift(u, c_delta=0.0)
    assert np.abs(other.v + gradient.v).max() > 5 * tolerance


def test_default_drift_is_smooth_and_a_plain_rule_is_not():
    """Difference quotients of two widths agree, as Newton's method needs (K = 2 and 4)."""

    def quotients(drift, u):
        packed = vector(u)
        columns = []
        for width in (1e-6, 2e-6):
            shift = width * np.eye(packed.size)[u.v.size]
            ahead, behind = drift(packed + shift), drift(packed - shift)
            columns.append((ahead - behind) / (2 * width))
        return np.abs(columns[0] - columns[1]).max()

    for problem, u in ((binary(), TWO), (xor(), FOUR)):
        smooth = quotients(
            lambda x, p=problem, u=u: vector(p.drift(statistics_of(x, u), c_delta=1.0)), u
        )
        assert smooth < 1e-7
    rule = sobol(4, 2**14, rng=0)
    steps = quotients(lambda x: by_rule(xor(), statistics_of(x, FOUR), rule).B.ravel(), FOUR)
    assert steps > 1e-2 or steps == 0.0


# ---------------------------------------------------------------------- one step of SGD


@njit
def one_steps(step, constants, start, vector, state, rng, step_size, count):
    """States after one step from the same start, as rows."""
    found = np.empty((count, start.size))
    for n in range(count):
        vector[:] = start
        step(state, constants, rng, step_size)
        found[n] = vector
    return found


def increments(problem, u, step_size, count, seed):
    """Changes of the statistics in one step of the reduced chain, per unit of step size."""
    kernel = problem.reduced_kernel()
    arrays = problem.reduced_state(u)
    start = np.concatenate([array.ravel() for array in arrays])
    moved, pieces, begin = start.copy(), [], 0
    for array in arrays:
        pieces.append((begin, begin + array.size, array.shape))
        begin += array.size
    state = tuple(moved[a:b].reshape(shape) for a, b, shape in pieces)
    rng = np.random.default_rng(seed)
    rows = one_steps(kernel.step, kernel.constants, start, moved, state, rng, step_size, count)
    after = problem.reduced_statistics(
        tuple(rows[:, a:b].reshape(-1, *shape) for a, b, shape in pieces)
    )
    upper = np.triu_indices(problem.width)
    table = np.hstack([after.v, after.m.reshape(count, -1), after.R_perp[:, upper[0], upper[1]]])
    return (table - vector(u)) / step_size


def scores(samples, mean, covariance):
    """Largest normal score of means and of covariances against the stated ones."""
    n = len(samples)
    centred = samples - mean
    first = np.abs(centred.mean(axis=0)) / centred.std(axis=0)
    found = centred.T @ centred / n
    spread = np.sqrt((centred**2).T @ centred**2 / n - found**2)
    return math.sqrt(n) * first.max(), math.sqrt(n) * (np.abs(found - covariance) / spread).max()


@pytest.mark.parametrize(("problem", "u"), [(binary(), TWO), (xor(2.0), FOUR)])
def test_one_step_has_the_drift_and_the_volatility(problem, u):
    """The drift of BGHJ Proposition 5.15 and its noise, from 10^5 steps at N = 10^6, c = 2.

    False alarm 1e-6 for means and covariances each, by Bonferroni over entries. A drift without
    corrector and a volatility without its second order are rejected (BGJ Remark 2).
    """
    size, c, count = 10**6, 2.0, 100_000
    large = replace(problem, dimension=size)
    samples = increments(large, u, c / size, count, seed=1)
    drift = vector(problem.drift(u, c_delta=c))
    noise = problem.volatility(u, c_delta=c)
    bar = stats.norm.isf(FALSE_ALARM / 2 / noise.size)
    first, second = scores(samples, drift, noise)
    assert first < bar
    assert second < bar
    without = problem.volatility(u, c_delta=c, second_order=False)
    still = vector(problem.drift(u, c_delta=0.0))
    assert scores(samples, still, noise)[0] > 2 * bar
    assert scores(samples, drift, without)[1] > 2 * bar
    np.testing.assert_array_equal(without, problem.volatility(u, c_delta=0.0))
    assert np.linalg.eigvalsh(noise)[0] > -1e-12


def test_volatility_of_a_singular_point_and_without_noise():
    """Rank one R_perp against sampled steps; at infinite precision a sum over centroids."""
    problem = replace(binary(), dimension=10**6)
    a = np.array([0.6, 0.8])
    u = Statistics(a, 0.5 * a[:, None], 0.3 * np.outer(a, a))
    samples = increments(problem, u, 1e-6, 100_000, seed=2)
    drift, noise = vector(problem.drift(u, c_delta=1.0)), problem.volatility(u, c_delta=1.0)
    bar = stats.norm.isf(FALSE_ALARM / 2 / noise.size)
    assert max(scores(samples, drift, noise)) < bar
    still = xor(math.inf)
    steps = []
    for centroid, y in zip(still.centroids, still.labels, strict=True):
        z = FOUR.m @ centroid
        c = (z > 0) * (expit(FOUR.v @ np.maximum(z, 0)) - y)
        steps.append(np.r_[-z * c, -np.outer(FOUR.v * c, centroid).ravel(), np.zeros(10)])
    np.testing.assert_allclose(
        still.volatility(FOUR, c_delta=1.0), np.cov(np.transpose(steps), bias=True), atol=1e-15
    )


def test_fluctuations_around_the_good_point():
    """Fixed point and Lyapunov covariance at precision 2, c = 2, and simulated variances."""
    problem = binary()
    start = Statistics(np.array([0.96, -0.96]), np.array([[0.98], [-0.98]]), 0.1 * np.eye(2))
    point = find(problem, start, c_delta=2.0)
    expected = [0.9585, -0.9585, 0.9948, -0.9948, 0.1775, -0.0221, 0.1775]
    np.testing.assert_allclose(vector(point.statistics), expected, atol=2e-4)

    def variances(second_order):
        noise = problem.volatility(point.statistics, c_delta=2.0, second_order=second_order)
        return np.diag(solve_continuous_lyapunov(point.jacobian, -2.0 * noise))

    # Simulated at N = 4000, up to 3 %; without the second order R_perp varies too much.
    simulated = [0.113, 0.113, 0.1095, 0.1095, 0.0675, 0.031, 0.0675]
    np.testing.assert_allclose(variances(True), simulated, rtol=0.03)
    assert np.abs(variances(False) / simulated - 1).max() > 0.07


# ---------------------------------------------------------------------- effective dynamics


def test_binary_end_points():
    """From another integrator, with the corrector and without."""
    start = Statistics(
        np.array([1.0, -0.6]), np.array([[0.1], [0.2]]), np.array([[0.8, 0.2], [0.2, 0.8]])
    )
    for c, radii in ((1.0, [0.1436, 0.1540]), (0.0, [0.0516, 0.1028])):
        end = ode.solve(binary(), start, [10.0], c_delta=c).statistics
        np.testing.assert_allclose(np.diag(end.R_perp[0]), radii, atol=2e-4)
        if c:
            np.testing.assert_allclose(end.v[0], [0.9105, -0.6043], atol=2e-4)
            np.testing.assert_allclose(end.m[0, :, 0], [0.8837, -0.5747], atol=2e-4)


def test_xor_end_points():
    """Four neurons with the default nodes, with the corrector and without."""
    end = ode.solve(xor(), FOUR, [10.0], c_delta=2.0).statistics
    np.testing.assert_allclose(end.v[0], [0.670, -0.393, 0.399, -0.773], atol=2e-3)
    m = [[0.538, -0.033], [0.004, 0.300], [0.088, 0.022], [0.038, -0.582]]
    np.testing.assert_allclose(end.m[0], m, atol=2e-3)
    np.testing.assert_allclose(np.diag(end.R_perp[0]), [0.296, 0.312, 0.362, 0.303], atol=2e-3)
    still = ode.solve(xor(), FOUR, [10.0], c_delta=0.0).statistics
    np.testing.assert_allclose(still.v[0], [0.704, -0.408, 0.412, -0.818], atol=2e-3)
    np.testing.assert_allclose(np.diag(still.R_perp[0]), [0.156, 0.250, 0.280, 0.117], atol=2e-3)


# ---------------------------------------------------------------------- refusals


def test_bad_arguments_are_refused():
    """Shapes, indefinite R_perp, rules of another dimension, widths and noise out of range."""
    two, four, rule = binary(), xor(), sobol(3, 8, rng=0)
    cases = [
        (lambda: by_polar(four, FOUR), "width must be at most 2 for by_polar, got 4"),
        (lambda: by_polar(two, TWO, radial=0), "radial must be an integer >= 1"),
        (lambda: by_polar(two, TWO, angular=0), "angular must be an integer >= 1"),
        (lambda: by_polar(binary(math.inf), TWO), "precision must be finite for by_polar"),
        (lambda: by_rule(two, TWO, rule), "rule must have dimension 2, got 3"),
        (lambda: by_orthants(two, TWO, rule), "rule must have dimension 2, got 3"),
        (lambda: evaluate(binary(math.inf), TWO, rule), "rule must have dimension 2, got 3"),
        (
            lambda: by_orthants(binary(math.inf), TWO, sobol(2, 8, rng=0)),
            "precision must be finite for by_orthants",
        ),
        (lambda: evaluate(two, FOUR), r"statistics.v must have shape \(2\)"),
        (lambda: evaluate(two, TWO._replace(m=np.full((2, 1), np.nan))), "m must be finite"),
        (lambda: evaluate(two, TWO._replace(R_perp=-np.eye(2))), "positive semi-definite"),
        (lambda: two.drift(TWO, c_delta=-1.0), "c_delta must be non-negative"),
        (lambda: two.volatility(TWO, c_delta=math.nan), "c_delta must be finite"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    assert integrals.__all__ == sorted(integrals.__all__)
