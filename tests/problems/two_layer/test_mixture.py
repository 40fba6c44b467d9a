"""Two-layer mixtures: data, curvature, statistics, and SGD at three levels equal in law."""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.optimize import brentq

from traindyn.problems import chain
from traindyn.problems.base import Kernel, Problem
from traindyn.problems.two_layer import Point, Statistics, TwoLayerMixture
from traindyn.sgd import direct, reduced

FALSE_ALARM = 1e-6
REPLICAS = 10_000


def binary(dimension=12, width=2, **changes):
    """The binary mixture at strong noise."""
    options = {"precision": 2.0, "ridge": 0.3} | changes
    return TwoLayerMixture.binary(width, dimension, **options)


def xor(dimension=12, width=4, **changes):
    """The XOR mixture at moderate noise, centroids turned by an angle."""
    turned = {"mu": (0.8, 0.6), "nu": (-0.6, 0.8)}
    options = {"precision": 3.0, "ridge": 0.3} | turned | changes
    return TwoLayerMixture.xor(width, dimension, **options)


def some_point(problem, seed=0):
    """A point without structure, all neurons active now and then."""
    rng = np.random.default_rng(seed)
    shape = (problem.width, problem.dimension)
    return Point(rng.normal(size=problem.width), 0.6 * rng.normal(size=shape))


def flat(point):
    """Parameters as one vector."""
    return np.concatenate([point.v, np.ravel(point.W)])


def shaped(vector, problem):
    """Inverse of `flat`."""
    v, W = np.split(vector, [problem.width])
    return Point(v, W.reshape(problem.width, problem.dimension))


def differences(function, vector, width=1e-6):
    """Central differences of `function` in every coordinate, on the last axis."""
    shifts = width * np.eye(vector.size)
    pairs = [(function(vector + s) - function(vector - s)) / (2 * width) for s in shifts]
    return np.stack(pairs, axis=-1)


# ---------------------------------------------------------------------- data law


def test_problems_meet_the_protocol():
    """Every member is there, for the rooms above."""
    assert isinstance(binary(), Problem)
    assert isinstance(xor(), Problem)


def test_sources_mixtures():
    """Centroids, labels and initial variances of BGJ Sections 4 and 5."""
    two, four = binary(precision=4.0), TwoLayerMixture.xor(4, 9, precision=4.0, ridge=0.0)
    np.testing.assert_array_equal(two.centroids, [[1.0], [-1.0]])
    np.testing.assert_array_equal(two.labels, [1, 0])
    assert two.initial_variance == 0.25
    np.testing.assert_array_equal(four.centroids, [[1, 0], [-1, 0], [0, 1], [0, -1]])
    np.testing.assert_array_equal(four.labels, [1, 1, 0, 0])
    assert four.initial_variance == 1.0


def test_means_are_the_centroids_among_the_inputs():
    """The first coordinates, zero elsewhere."""
    problem = xor(6)
    np.testing.assert_array_equal(problem.means[:, :2], problem.centroids)
    np.testing.assert_array_equal(problem.means[:, 2:], 0.0)
    assert problem.means.shape == (4, 6)


def test_law_of_the_inputs():
    """Frequencies, and means and covariances class by class; false alarm 1e-6 each."""
    problem = TwoLayerMixture(
        centroids=np.array([[1.0, 0.5], [-0.3, 2.0]]),
        labels=np.array([0, 1]),
        weights=np.array([0.3, 0.7]),
        width=1,
        dimension=4,
        precision=2.5,
        ridge=0.0,
    )
    sample = problem.sample(40_000, rng=3)
    counts = np.bincount(sample.labels)
    assert stats.chisquare(counts, 40_000 * problem.weights).pvalue > FALSE_ALARM
    assert stats.chisquare(counts, [20_000, 20_000]).pvalue < FALSE_ALARM
    for index, centroid in enumerate(problem.centroids):
        noise = sample.inputs[sample.labels == index] - np.r_[centroid, 0.0, 0.0]
        scaled = math.sqrt(2.5) * noise
        squares = len(noise) * (scaled.mean(axis=0) ** 2).sum()
        assert stats.chi2(4).sf(squares) > FALSE_ALARM
        assert stats.kstest(scaled.ravel(), "norm").pvalue > FALSE_ALARM
        assert np.abs(np.cov(scaled.T) - np.eye(4)).max() < 6 * math.sqrt(2 / len(noise))


def test_without_noise_inputs_are_centroids():
    """Infinite precision, also in the stream of a run."""
    problem = xor(precision=math.inf)
    for sample in (problem.sample(50, rng=1), problem.stream(50, rng=1)):
        np.testing.assert_array_equal(sample.inputs[:, :2], problem.centroids[sample.labels])
        np.testing.assert_array_equal(sample.inputs[:, 2:], 0.0)


# ---------------------------------------------------------------------- loss and curvature


@pytest.mark.parametrize("make", [binary, xor])
def test_loss_is_the_cross_entropy(make):
    """Written with the probability of the label; and far out, where exp overflows."""
    problem = make()
    point, sample = some_point(problem), problem.sample(30, rng=1)
    output = np.maximum(sample.inputs @ point.W.T, 0) @ point.v
    np.testing.assert_allclose(problem.outputs(point, sample.inputs), output)
    chance = 1 / (1 + np.exp(-output))
    y = problem.labels[sample.labels]
    expected = -np.log(np.where(y == 1, chance, 1 - chance))
    np.testing.assert_allclose(problem.loss(point, sample), expected)
    far = problem.loss(Point(1e4 * point.v, point.W), sample)
    linear = np.maximum((1 - 2 * y) * 1e4 * output, 0)
    np.testing.assert_allclose(far, linear, rtol=1e-9, atol=math.log(2) + 1e-12)


@pytest.mark.parametrize("make", [binary, xor])
def test_gradient_is_the_derivative_of_the_loss(make):
    """Both layers, away from kinks."""
    problem = make(dimension=5)
    point, sample = some_point(problem), problem.sample(7, rng=1)
    slopes = differences(lambda x: problem.loss(shaped(x, problem), sample).mean(), flat(point))
    np.testing.assert_allclose(flat(problem.gradient(point, sample)), slopes, atol=1e-8)


@pytest.mark.parametrize("make", [binary, xor])
def test_hessian_factors_are_the_derivative_of_the_gradient(make):
    """All blocks of two neurons and the block of the second layer (BGHJ (4.4))."""
    problem = make(dimension=5)
    K, N = problem.width, problem.dimension
    point, sample = some_point(problem), problem.sample(9, rng=1)
    assert (sample.inputs @ point.W.T > 0).mean(axis=0).min() > 0
    hessian = differences(lambda x: flat(problem.gradient(shaped(x, problem), sample)), flat(point))

    def assembled(block):
        weights, left, right = problem.factors("hessian", block, point, sample)
        return (left * weights[:, None]).T @ right / weights.size

    np.testing.assert_allclose(assembled((K, K)), hessian[:K, :K], atol=1e-8)
    first = hessian[K:, K:].reshape(K, N, K, N)
    for i in range(K):
        for j in range(K):
            np.testing.assert_allclose(assembled((i, j)), first[i, :, j], atol=1e-8)


@pytest.mark.parametrize("make", [binary, xor])
def test_g_matrix_factors_are_products_of_gradients(make):
    """One sample at a time."""
    problem = make(dimension=5)
    K = problem.width
    point, sample = some_point(problem), problem.sample(9, rng=1)
    singles = [
        sample._replace(inputs=sample.inputs[[n]], labels=sample.labels[[n]]) for n in range(9)
    ]
    gradients = [problem.gradient(point, single) for single in singles]
    for block in [*problem.blocks, (0, 1), (1, 0)]:
        weights, left, right = problem.factors("g_matrix", block, point, sample)
        found = (left * weights[:, None]).T @ right / 9
        parts = [[gradient.v if i == K else gradient.W[i] for gradient in gradients] for i in block]
        np.testing.assert_allclose(found, np.transpose(parts[0]) @ parts[1] / 9, atol=1e-13)
        assert (left is right) or block[0] != block[1]


def test_blocks_parameters_and_outliers():
    """Neurons first, the second layer last; the outliers that BGHJ Theorem 2.6 counts."""
    problem, narrow = xor(), binary(width=1)
    point = some_point(problem)
    assert problem.blocks == ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))
    np.testing.assert_array_equal(problem.parameter((2, 2), point), point.W[2])
    np.testing.assert_array_equal(problem.parameter((4, 4), point), point.v)
    assert [problem.outlier_count(block) for block in problem.blocks] == [2, 2, 2, 2, 4]
    assert [narrow.outlier_count(block) for block in narrow.blocks] == [1, 1]


# ---------------------------------------------------------------------- summary statistics


@pytest.mark.parametrize("make", [binary, xor])
def test_place_and_embed_have_the_statistics(make):
    """Back and forth, also where R_perp is singular or zero; embedding in fewest dimensions."""
    problem = make()
    u = problem.statistics(some_point(problem))
    root = np.ones(problem.width)
    for R_perp in (u.R_perp, np.outer(root, root), np.zeros_like(u.R_perp)):
        wanted = u._replace(R_perp=R_perp)
        small, point = problem.embed(wanted)
        assert small.dimension == problem.signal + np.linalg.matrix_rank(R_perp)
        for found in (problem.statistics(problem.place(wanted)), small.statistics(point)):
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-13)


def test_embedding_keeps_silent_neurons_silent():
    """A neuron without weights answers no input, not even by a rounding error."""
    problem = xor(30)
    point = some_point(problem)
    point.W[2] = 0.0
    small, inside = problem.embed(problem.statistics(point))
    np.testing.assert_array_equal(inside.W[2], 0.0)
    weights = small.factors("hessian", (2, 2), inside, small.sample(50, rng=0)).weights
    np.testing.assert_array_equal(weights, 0.0)


def test_start_has_the_law_of_the_point():
    """Statistics of `initial` against those drawn at once: Kolmogorov-Smirnov, 1e-6 each.

    With one degree of freedom too many they differ.
    """
    problem, rng = TwoLayerMixture.xor(2, 6, precision=3.0, ridge=0.0), np.random.default_rng(0)

    def table(draws):
        rows = [np.concatenate([u.v, u.m.ravel(), u.R_perp.ravel()[[0, 1, 3]]]) for u in draws]
        return np.array(rows).T

    full = table([problem.statistics(problem.initial(rng=rng)) for _ in range(6000)])
    drawn = table([problem.draw_initial_statistics(rng=rng) for _ in range(6000)])
    for a, b in zip(full, drawn, strict=True):
        assert stats.ks_2samp(a, b).pvalue > FALSE_ALARM
    assert stats.kstest(6 * drawn[-1], stats.chi2(4).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(6 * drawn[-1], stats.chi2(5).cdf).pvalue < FALSE_ALARM


def test_start_has_the_stated_limit():
    """All but the second layer concentrates; it may be given."""
    problem = binary(10**8, precision=4.0)
    limit, drawn = problem.initial_statistics(v=[1.0, -2.0]), problem.draw_initial_statistics(rng=0)
    np.testing.assert_array_equal(limit.v, [1.0, -2.0])
    np.testing.assert_array_equal(problem.initial_statistics().v, 0.0)
    np.testing.assert_allclose(drawn.m, limit.m, atol=1e-3)
    np.testing.assert_allclose(drawn.R_perp, limit.R_perp, atol=1e-3)
    # Fewer dimensions than neurons beside the signal space: R_perp is singular.
    tight = binary(2).draw_initial_statistics(rng=0).R_perp
    assert np.linalg.matrix_rank(tight, tol=1e-12) == 1


# ---------------------------------------------------------------------- SGD in full dimension


@pytest.mark.parametrize("precision", [2.0, math.inf])
@pytest.mark.parametrize("make", [binary, xor])
def test_run_descends_its_stream(make, precision):
    """The jitted steps are those of the gradient on `stream`, ridge included."""
    problem = make(precision=precision)
    point, step_size, steps = some_point(problem), 0.05, 60
    path = direct.run(
        problem, point, [steps * step_size], step_size=step_size, rng=5, snapshots=True
    )
    sample, x = problem.stream(steps, rng=5), flat(point)
    for n in range(steps):
        single = sample._replace(inputs=sample.inputs[[n]], labels=sample.labels[[n]])
        slope = flat(problem.gradient(shaped(x, problem), single))
        x = x - step_size * (slope + problem.ridge * x)
    found = Point(path.snapshots.v[0], path.snapshots.W[0])
    np.testing.assert_allclose(flat(found), x, rtol=1e-11, atol=1e-12)
    assert np.abs(x - flat(point)).max() > 0.1


def test_proportional_neurons_act_as_one():
    """Pathwise homogeneity: v_i = a_i s, W_i = a_i w with |a| = 1 keeps a and moves (s, w).

    The reduced chain draws other numbers but keeps the proportions, its R_perp being of
    rank one; groups with |a| other than 1 do not follow the single neuron.
    """
    one, three = xor(30, width=1), xor(30, width=3)
    a = np.array([2.0, 3.0, 6.0]) / 7.0
    single = some_point(one)
    options = {"step_size": 0.03, "rng": 2, "snapshots": True}
    (s, w) = direct.run(one, single, [6.0], **options).snapshots
    for scale, same in ((1.0, True), (1.2, False)):
        start = Point(scale * a * single.v, scale * a[:, None] * single.W)
        (v, W) = direct.run(three, start, [6.0], **options).snapshots
        assert np.allclose(v[0], scale * a * s[0], rtol=1e-10) == same
        assert np.allclose(W[0], scale * a[:, None] * w[0], rtol=1e-9, atol=1e-12) == same
    u = three.statistics(Point(a * single.v, a[:, None] * single.W))
    end = reduced.run(three, u, [6.0], step_size=0.03, rng=2).statistics
    # The root of a Gram matrix of rank one is exact to the root of the rounding error, 1e-8.
    half = 1e-7
    np.testing.assert_allclose(end.v[0] / a, end.v[0, 0] / a[0], rtol=half)
    np.testing.assert_allclose(
        end.R_perp[0] / np.outer(a, a), end.R_perp[0, 0, 0] / a[0] ** 2, rtol=10 * half
    )


# ---------------------------------------------------------------------- three levels


@njit
def plain_step(state, constants, rng, step_size):
    """The recursion on (v, m, R) as one writes it down, with mistakes on request.

    mistake 1: independent signal noise for each neuron (BGJ Lemmas 8.1 and 9.1 as printed);
    mistake 2: the squared length of the noise outside signal and neurons left out (with all of
    the orthogonal noise left out R loses its sign); mistake 3: one degree of freedom too many.
    """
    v, m, R = state
    cumulative, centroids, signs, deviation, ridge, freedom, mistake = constants
    K, d = m.shape
    label = 0
    uniform = rng.random()
    while label < cumulative.size - 1 and uniform >= cumulative[label]:
        label += 1
    s, z, across, C = np.empty(d), np.zeros(K), np.zeros(K), np.zeros((K, K))
    for n in range(d):
        s[n] = centroids[label, n] + deviation * rng.standard_normal()
    square = 0.0 if mistake == 2 else rng.chisquare(freedom + (1.0 if mistake == 3 else 0.0))
    for j in range(K):
        zeta = rng.standard_normal()
        square += zeta * zeta
        for i in range(j, K):  # column j of the Cholesky factor of R
            C[i, j] = R[i, j]
            for k in range(j):
                C[i, j] -= C[i, k] * C[j, k]
            C[i, j] = math.sqrt(C[i, j]) if i == j else C[i, j] / C[j, j]
            across[i] += deviation * C[i, j] * zeta
    output = 0.0
    for i in range(K):
        z[i] = across[i]
        for n in range(d):
            own = centroids[label, n] + deviation * rng.standard_normal()
            z[i] += m[i, n] * (own if mistake == 1 else s[n])
        output += v[i] * max(z[i], 0.0)
    error = signs[label] / (1.0 + math.exp(-signs[label] * output))
    keep = 1.0 - step_size * ridge
    q = deviation * deviation * square
    for i in range(K):
        vi = v[i] * error if z[i] > 0.0 else 0.0
        for n in range(d):
            m[i, n] = keep * m[i, n] - step_size * vi * s[n]
        for j in range(K):
            vj = v[j] * error if z[j] > 0.0 else 0.0
            pull = keep * step_size * (vj * across[i] + vi * across[j])
            R[i, j] = keep * keep * R[i, j] - pull + step_size * step_size * q * vi * vj
    for i in range(K):
        v[i] = keep * v[i] - step_size * max(z[i], 0.0) * error


@njit
def ends(step, constants, start, vector, state, rng, step_size, pauses, replicas):
    """States at two times over many replicas, as rows; `state` looks into `vector`."""
    found = np.empty((replicas, 2, start.size))
    for r in range(replicas):
        vector[:] = start
        for pause in range(2):
            for _ in range(pauses[pause]):
                step(state, constants, rng, step_size)
            found[r, pause] = vector
    return found


def batch(chain, read, seed, *, step_size, pauses):
    """Vectors of statistics of replicas of a chain, shape (replicas, 2, n)."""
    vector, state = chain.state()
    step, constants = chain.kernel
    rng, start = np.random.default_rng(seed), vector.copy()
    options = (rng, step_size, np.array(pauses), REPLICAS)
    rows = ends(step, constants, start, vector, state, *options)
    v, m, R_perp = read(chain.arrays(rows))
    upper = np.triu_indices(v.shape[-1])
    parts = [v, m.reshape(*m.shape[:2], -1), R_perp[..., upper[0], upper[1]]]
    return np.concatenate(parts, axis=2)


def direct_batch(problem, u, seed, **options):
    """In full dimension."""

    def read(arrays):
        v, W = arrays
        beside = W[..., problem.signal :]
        return v, W[..., : problem.signal], beside @ np.swapaxes(beside, -1, -2)

    return batch(chain.direct(problem, problem.place(u)), read, seed, **options)


def reduced_batch(problem, u, seed, **options):
    """On the statistics."""
    return batch(chain.reduced(problem, u), problem.reduced_statistics, seed, **options)


def plain_batch(problem, u, seed, mistake=0, **options):
    """On the statistics by the recursion written down, right or wrong."""
    constants = (*problem.reduced_kernel().constants, mistake)
    plain = chain.Chain(Kernel(plain_step, constants), problem.ridge, tuple(u), tuple)
    return batch(plain, tuple, seed, **options)


def same_law_p_value(first, second):
    """Least p-value of two tests, times two.

    Kolmogorov-Smirnov on every statistic at both times (Bonferroni), and chi-square on all
    means and second moments within a time (Bonferroni over normal scores). Rounded, because
    a neuron that has never been active leaves an atom, blurred by rounding errors only.
    """
    first, second = first.round(9), second.round(9)
    marginal, scores = [], []
    for t in range(2):
        a, b = first[:, t], second[:, t]
        columns = zip(a.T, b.T, strict=True)
        marginal += [stats.ks_2samp(x, y, method="asymp").pvalue for x, y in columns]
        centre = (a.mean(axis=0) + b.mean(axis=0)) / 2
        moments = [moments_of(x - centre) for x in (a, b)]
        gap = moments[0][0] - moments[1][0]
        scores.append(gap / np.sqrt(moments[0][1] + moments[1][1]))
    scores = np.abs(np.concatenate(scores))
    return 2 * min(len(marginal) * min(marginal), 2 * scores.size * stats.norm.sf(scores.max()))


def moments_of(x):
    """Means and second moments of rows, and the variances of these estimates."""
    n, upper = len(x), np.triu_indices(x.shape[1])
    second = (x.T @ x / n)[upper]
    fourth = ((x**2).T @ x**2 / n)[upper]
    mean = x.mean(axis=0)
    variances = np.concatenate([x.var(axis=0), fourth - second**2]) / n
    return np.concatenate([mean, second]), variances


LEVELS = {
    "binary, 5": (binary(5, precision=1.0), {"step_size": 0.3, "pauses": (2, 6)}),
    "binary, 60": (binary(60, precision=1.0), {"step_size": 0.03, "pauses": (5, 25)}),
    "xor, 8": (xor(8, precision=1.0), {"step_size": 0.25, "pauses": (2, 6)}),
    "xor, 50": (xor(50, precision=1.0), {"step_size": 0.04, "pauses": (5, 20)}),
}


def start_of(problem):
    """Statistics that feel every term: short neurons, a strong second layer of both signs."""
    K, d = problem.width, problem.signal
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(K, K + 2))
    v = np.resize([1.5, -1.2, 1.0, -0.8], K)
    return Statistics(v, 0.4 * rng.normal(size=(K, d)), 0.02 * factor @ factor.T)


@pytest.fixture(scope="module")
def simulated():
    """Full-dimensional runs of every case."""
    return {
        name: direct_batch(problem, start_of(problem), 1, **options)
        for name, (problem, options) in LEVELS.items()
    }


@pytest.mark.parametrize("name", LEVELS)
def test_three_levels_are_equal_in_law(simulated, name):
    """Joint law of the statistics at two times: full dimension, reduced chain, recursion.

    False alarm 1e-6 each. A mean off by .14 standard deviations is rejected with probability
    1 - 1e-6 (asserted for the most tests); the next test shows the rejection of mistakes.
    """
    problem, options = LEVELS[name]
    u = start_of(problem)
    size = simulated[name].shape[2]
    threshold = stats.norm.isf(FALSE_ALARM / 2 / (2 * 2 * (size + size * (size + 1) // 2)))
    shift = brentq(lambda s: stats.norm.cdf(threshold - s) - 1e-6, 0, 100)
    assert shift * math.sqrt(2 / REPLICAS) < 0.17
    assert same_law_p_value(reduced_batch(problem, u, 2, **options), simulated[name]) > FALSE_ALARM
    assert same_law_p_value(plain_batch(problem, u, 3, **options), simulated[name]) > FALSE_ALARM


@pytest.mark.parametrize("name", ["binary, 5", "xor, 8"])
@pytest.mark.parametrize("mistake", [1, 2, 3])
def test_mistakes_are_rejected_by_the_same_test(simulated, name, mistake):
    """Independent signal noise as printed, no squared length, wrong degrees of freedom."""
    problem, options = LEVELS[name]
    found = plain_batch(problem, start_of(problem), 3, mistake, **options)
    assert same_law_p_value(found, simulated[name]) < FALSE_ALARM


@pytest.mark.parametrize("make", [binary, xor])
def test_levels_agree_path_by_path_without_noise(make):
    """At infinite precision both draw one uniform a step; R_perp only decays.

    Coordinates that are exactly zero stay so: the derivative of the ReLU is 0 at 0.
    """
    problem = make(precision=math.inf)
    point = some_point(problem)
    point.W[0, : problem.signal] = 0.0
    options = {"step_size": 0.02, "rng": 4}
    times = [0.0, 1.0, 5.0]
    full = direct.run(problem, point, times, **options).statistics
    short = reduced.run(problem, problem.statistics(point), times, **options).statistics
    for a, b in zip(full, short, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    decay = (1 - 0.02 * problem.ridge) ** (2 * np.array([0, 50, 250]))
    np.testing.assert_allclose(short.R_perp, decay[:, None, None] * short.R_perp[0], rtol=1e-11)
    np.testing.assert_array_equal(short.m[:, 0], 0.0)


def test_reduced_chain_bears_singular_gram_matrices():
    """R_perp zero, of rank one, or shrinking to 1e-300: finite, positive, exact where known."""
    problem = xor(10**4)
    u = problem.statistics(some_point(problem))
    flat_start = u._replace(R_perp=np.zeros((4, 4)))
    once = reduced.run(problem, flat_start, [1e-4], step_size=1e-4, rng=1).statistics
    # After one step from zero, R_perp = step^2 |X_perp|^2 (v c)(v c)^T.
    assert np.linalg.matrix_rank(once.R_perp[0], tol=1e-18) == 1
    active = np.diag(once.R_perp[0]) > 0
    assert active.any()
    np.testing.assert_allclose(
        np.sqrt(np.diag(once.R_perp[0])[active]) / 1e-4 / np.abs(u.v[active]),
        np.sqrt(once.R_perp[0].max()) / 1e-4 / np.abs(u.v[np.diag(once.R_perp[0]).argmax()]),
        rtol=1e-6,
    )
    times = np.linspace(0, 2, 9)
    aligned = u._replace(R_perp=np.outer(u.v, u.v))
    for start in (flat_start, aligned):
        path = reduced.run(problem, start, times, step_size=1e-4, rng=1).statistics
        lowest = np.linalg.eigvalsh(path.R_perp)[:, 0]
        assert lowest.min() > -1e-15
    quiet = TwoLayerMixture.binary(2, 100, precision=1e300, ridge=0.9)
    shrunk = reduced.run(
        quiet, quiet.initial_statistics(v=[1.0, -1.0]), [300.0], step_size=0.5, rng=1
    ).statistics
    assert np.isfinite(shrunk.R_perp).all()


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: binary(precision=0.0), "precision must be positive"),
        (lambda: binary(precision=math.nan), "precision must be finite"),
        (lambda: binary(precision=-math.inf), "precision must be finite"),
        (lambda: binary(ridge=-0.1), "ridge must be non-negative"),
        (lambda: binary(width=0), "width must be an integer >= 1"),
        (lambda: binary(width=2.0), "width must be an integer >= 1"),
        (lambda: xor(1), "dimension must be an integer >= 2"),
        (lambda: binary(mu=(2.0,)), "mu must be a unit vector"),
        (lambda: xor(mu=(1.0, 0.0), nu=(0.6, 0.8)), "mu and nu must be orthonormal"),
        (lambda: xor(mu=(1.0, 0.0, 0.0)), r"mu must have shape \(2\)"),
        (lambda: general(centroids=np.zeros((2, 0))), "centroids must have at least one"),
        (lambda: general(centroids=[[np.inf], [0.0]]), "centroids must be finite"),
        (lambda: general(labels=[0, 2]), "labels must be 2 numbers 0 or 1"),
        (lambda: general(labels=[0]), "labels must be 2 numbers 0 or 1"),
        (lambda: general(weights=[0.5, 0.6]), "weights must sum to one"),
        (lambda: general(weights=[1.0]), "weights must have 2 entries"),
        (lambda: general(initial_variance=-1.0), "initial_variance must be non-negative"),
    ],
)
def test_bad_problems_are_refused(build, message):
    """The argument is named, with what was given or is allowed."""
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.filterwarnings("error")
def test_few_neurons_are_warned_about():
    """Three neurons cannot answer four centroids; four can, silently."""
    with pytest.warns(UserWarning, match="width is 3, below 4"):
        xor(width=3)
    xor(width=4)


def general(**changes):
    """Two centroids on a line, field by field."""
    fields = {
        "centroids": [[1.0], [-1.0]],
        "labels": [1, 0],
        "weights": [0.5, 0.5],
        "width": 2,
        "dimension": 5,
        "precision": 1.0,
        "ridge": 0.1,
    }
    return TwoLayerMixture(**fields | changes)


def test_bad_points_and_samples_are_refused():
    """Shapes, NaN, labels that are no centroid, blocks that are none."""
    problem = binary(5)
    point, sample = some_point(problem), problem.sample(4, rng=0)
    cases = [
        (lambda: problem.loss(point._replace(v=np.zeros(3)), sample), r"point.v must have shape"),
        (lambda: problem.loss(point._replace(W=np.zeros((2, 4))), sample), r"point.W must have"),
        (lambda: problem.loss(point._replace(v=[np.nan, 0]), sample), "point.v must be finite"),
        (
            lambda: problem.loss(point._replace(W=np.inf + point.W), sample),
            "point.W must be finite",
        ),
        (lambda: problem.loss(point, sample._replace(inputs=np.zeros((4, 3)))), "inputs must have"),
        (
            lambda: problem.loss(point, sample._replace(inputs=np.full((4, 5), np.nan))),
            "inputs must be finite",
        ),
        (
            lambda: problem.loss(point._replace(W=1e308 * point.W), sample),
            "inputs @ point.W.T must be finite",
        ),
        (lambda: problem.loss(point, sample._replace(labels=np.full(4, 2))), r"lie in \[0, 1\]"),
        (lambda: problem.loss(point, sample._replace(labels=np.zeros(4))), "one integer per input"),
        (lambda: problem.loss(point, sample._replace(labels=sample.labels[:3])), "one integer per"),
        (lambda: problem.outlier_count((0, 2)), "join two neurons"),
        (lambda: problem.factors("hessian", (3, 3), point, sample), r"integer in \[0, 2\]"),
        (lambda: problem.factors("fisher", (0, 0), point, sample), "matrix must be one of"),
        (lambda: problem.parameter((0, 1), point), "block must be diagonal"),
        (lambda: problem.sample(0, rng=0), "n must be an integer >= 1"),
        (lambda: problem.statistics(point._replace(v=[np.nan, 0])), "point.v must be finite"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()


def test_bad_statistics_are_refused():
    """Shapes, indefinite R_perp, too few dimensions for the chain or the point."""
    problem = binary(4)
    u = Statistics(np.ones(2), np.ones((2, 1)), np.eye(2))
    with pytest.raises(ValueError, match="R_perp must be positive semi-definite"):
        problem.reduced_state(u._replace(R_perp=np.diag([1.0, -1.0])))
    with pytest.raises(ValueError, match=r"statistics.m must have shape \(2, 1\)"):
        problem.place(u._replace(m=np.ones(2)))
    with pytest.raises(ValueError, match="dimension must be at least 3 for these statistics"):
        binary(2).place(u)
    with pytest.raises(
        ValueError, match=r"greater than d \+ K = 3 for the reduced dynamics, got 3"
    ):
        binary(3).reduced_kernel()
    with pytest.raises(ValueError, match=r"v must have shape \(2\)"):
        problem.initial_statistics(v=[1.0])
    assert problem.reduced_kernel().constants[-1] == 1.0
