"""Predicted spectra against simulated blocks."""

import numpy as np
import pytest

from traindyn import gaussian
from traindyn.problems import two_layer
from traindyn.problems.k_gmm import KGaussianMixture, Point, Statistics
from traindyn.problems.projection_model import Local, ProjectionModel
from traindyn.problems.projection_model import Statistics as ModelStatistics
from traindyn.problems.two_layer import TwoLayerMixture, curvature
from traindyn.spectra import blocks, predict
from traindyn.trajectory import Trajectory

D, ALPHA = 300, 8.0
SETS = 12


@pytest.fixture(scope="module")
def problem():
    """Oblique means and unequal weights, so that no symmetry hides an exchanged index."""
    gram = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]])
    return KGaussianMixture(gram, np.array([0.25, 0.35, 0.4]), 12.0, 0.05, D)


@pytest.fixture(scope="module")
def point(problem):
    """A point with overlaps of order one, as after some training."""
    rng = np.random.default_rng(0)
    return Point(problem.initial(rng=rng).x + np.eye(3) @ problem.means)


@pytest.fixture(scope="module")
def spectra(problem, point):
    """Eigenvalues and squared overlaps with the parameter, by matrix, over test sets."""
    found = {}
    for matrix in ("hessian", "g_matrix"):
        pairs = []
        for stream in np.random.default_rng(1).spawn(SETS):
            sample = problem.sample(int(ALPHA * D), rng=stream)
            gram = blocks.operator(problem, matrix, (1, 1), point, sample).dense()
            values, vectors = np.linalg.eigh(gram)
            x = point.x[1] / np.linalg.norm(point.x[1])
            pairs.append((values[::-1], ((x @ vectors) ** 2)[::-1]))
        found[matrix] = [np.array(part) for part in zip(*pairs, strict=True)]
    return found


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_prediction_matches_simulation(problem, point, spectra, matrix):
    """Edges to d^(-2/3), outliers and alignment to their fluctuations; at an eighth it fails.

    Means over 12 test sets: outliers fluctuate by a few per cent each, so by 1 % in the
    mean; five such deviations are allowed (false alarm below 1e-6).
    """
    predicted = predict.block(
        problem, problem.statistics(point), matrix, (1, 1), sample_ratio=ALPHA
    )
    values, overlaps = spectra[matrix]
    count = predicted.outliers.size
    assert count >= 1

    def misses(other):
        edge_gap = np.abs(values[:, [count, -1]].mean(axis=0) / other.edges[::-1] - 1)
        top_gap = np.abs(values[:, 0].mean() / other.outliers[0] - 1)
        held = overlaps[:, :count].sum(axis=1).mean()
        return [edge_gap[0] > 0.05, top_gap > 0.05, abs(held - other.alignment**2) > 0.05]

    assert not any(misses(predicted))
    fewer = predict.block(
        problem, problem.statistics(point), matrix, (1, 1), sample_ratio=ALPHA / 8
    )
    assert all(misses(fewer))


def test_film_is_the_blocks_in_order_and_free_of_the_number_of_workers(problem, point):
    """Times, matrices and blocks must not be exchanged; missing outliers are NaN."""
    late = problem.statistics(point)
    early = problem.initial_statistics()
    path = Trajectory(
        np.array([0.0, 1.0]),
        Statistics(*(np.stack(pair) for pair in zip(early, late, strict=True))),
    )
    rule = gaussian.rule(6, size=2**10)
    options = dict(
        sample_ratio=ALPHA, rule=rule, blocks=[(2, 2), (0, 0)], matrices=["g_matrix", "hessian"]
    )
    film = predict.along(problem, path, **options)
    again = predict.along(problem, path, workers=2, **options)
    for matrix in ("hessian", "g_matrix"):
        np.testing.assert_array_equal(film.outliers[matrix], again.outliers[matrix])
        for n, statistics in enumerate((early, late)):
            for b, block in enumerate(film.blocks):
                one = predict.block(
                    problem, statistics, matrix, block, sample_ratio=ALPHA, rule=rule
                )
                outliers = film.outliers[matrix][n, b]
                np.testing.assert_array_equal(outliers[: one.outliers.size], one.outliers)
                assert np.isnan(outliers[one.outliers.size :]).all()
                assert (film.lower[matrix][n, b], film.upper[matrix][n, b]) == one.edges
                assert film.alignment[matrix][n, b] == one.alignment


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(sample_ratio=0.0), "sample_ratio must be positive"),
        (dict(matrix="fisher"), "matrix must be one of"),
        (dict(block=(0, 1)), "block must be one of"),
        (dict(rule=gaussian.gauss_hermite(2, 4)), "rule must have the dimension"),
    ],
)
def test_bad_arguments_are_named(problem, point, changes, message):
    """Each error names its argument."""
    options = dict(sample_ratio=ALPHA, matrix="hessian", block=(0, 0)) | changes
    matrix, block = options.pop("matrix"), options.pop("block")
    with pytest.raises(ValueError, match=message):
        predict.block(problem, problem.statistics(point), matrix, block, **options)


# ---------------------------------------------------------------------- two layers


@pytest.fixture(scope="module")
def network():
    """A two-layer network at d = 400 with overlaps as after some training, centroids turned."""
    problem = TwoLayerMixture.xor(5, 400, precision=10.0, ridge=0.05, mu=(0.8, 0.6), nu=(-0.6, 0.8))
    W = 0.7 * problem.initial(rng=0).W
    W[:4, :2] += 1.1 * problem.centroids
    return problem, two_layer.Point(np.array([1.2, 0.9, -1.1, -1.0, 0.3]), W)


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_first_layer_matches_simulation(network, matrix):
    """Half of the weights are zero: edges, outliers and alignment of a neuron's block.

    Means over 12 test sets. One set's outliers and squared alignment fluctuate by 3 % (their
    mean by 1 %), its edges by less; five such deviations are allowed (false alarm below 1e-6).
    A law without the inactive draws, or an eighth of the ratio, fails.
    """
    problem, point = network
    alpha, block = 8.0, (1, 1)
    predicted = predict.block(problem, problem.statistics(point), matrix, block, sample_ratio=alpha)
    assert predicted.outliers.size == 2
    unit = point.W[1] / np.linalg.norm(point.W[1])
    values, squares = [], []
    for stream in np.random.default_rng(1).spawn(12):
        sample = problem.sample(int(alpha * problem.dimension), rng=stream)
        gram = blocks.operator(problem, matrix, block, point, sample).dense()
        found, vectors = np.linalg.eigh(gram)
        values.append(found[[-1, -2, -3, 0]])
        squares.append(np.sum((unit @ vectors[:, -2:]) ** 2))
    means = np.mean(values, axis=0)

    def misses(other):
        wanted = [*other.outliers[:2], *other.edges[::-1]]
        gaps = np.abs(means / np.array(wanted) - 1) > 0.05
        return [*gaps, abs(np.mean(squares) - other.alignment**2) > 0.05]

    assert not any(misses(predicted))
    fewer = predict.block(problem, problem.statistics(point), matrix, block, sample_ratio=alpha / 8)
    assert fewer.outliers.size < 2 or all(misses(fewer)[:4])
    # Wrong variant: as many samples per dimension, but all of them active.
    law = predicted.law
    active = law._given != 0
    dense = type(law)(
        law._given[active],
        law.ratio,
        law.variance,
        probabilities=law._given_masses[active] / law._given_masses[active].sum(),
    )
    assert abs(means[2] / dense.edges[-1] - 1) > 0.2


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_second_layer_is_its_population_value(network, matrix):
    """Eigenvalues and alignment against the closed form with control variate; no bulk."""
    problem, point = network
    predicted = predict.block(problem, problem.statistics(point), matrix, (5, 5), sample_ratio=3.0)
    exact = curvature.population_block(problem, matrix, point, (5, 5)).dense()
    values, vectors = np.linalg.eigh(exact)
    assert predicted.law is None and np.isnan(predicted.edges).all()
    np.testing.assert_allclose(predicted.outliers, values[::-1], rtol=5e-3, atol=5e-5)
    squares = (vectors.T @ point.v)[::-1] ** 2 / np.sum(point.v**2)
    np.testing.assert_allclose(predicted.overlaps, squares, atol=5e-3)
    assert predicted.alignment == pytest.approx(np.sqrt(squares[:4].sum()), abs=1e-3)
    # Control: at half the noise the values are others.
    other = predict.block(
        TwoLayerMixture.xor(5, 400, precision=20.0, ridge=0.05),
        problem.statistics(point),
        matrix,
        (5, 5),
        sample_ratio=3.0,
    )
    assert np.abs(other.outliers[:4] / values[::-1][:4] - 1).min() > 0.02


def test_second_layer_of_a_film(network):
    """Blocks with and without a bulk side by side: all eigenvalues of the second, no edges."""
    problem, point = network
    late = problem.statistics(point)
    path = Trajectory(np.array([0.0]), type(late)(*(field[None] for field in late)))
    film = predict.along(problem, path, sample_ratio=4.0, blocks=[(5, 5), (0, 0)], workers=2)
    outliers = film.outliers["hessian"][0]
    assert np.isfinite(outliers[0]).all() and outliers.shape == (2, 5)
    assert np.isnan(film.upper["hessian"][0, 0]) and np.isfinite(film.upper["hessian"][0, 1])
    one = predict.block(problem, late, "hessian", (0, 0), sample_ratio=4.0)
    np.testing.assert_array_equal(outliers[1, : one.outliers.size], one.outliers)
    assert np.isnan(outliers[1, one.outliers.size :]).all()


def test_silent_neurons_and_exact_data_are_refused(network):
    """Nothing to predict without weights, without a parameter, or without noise."""
    problem, point = network
    u = problem.statistics(point)
    silent = u._replace(v=np.where(np.arange(5) == 1, 0.0, u.v))
    dead = problem.statistics(point._replace(W=point.W * (np.arange(5) != 1)[:, None]))
    for statistics, block, message in (
        (silent, (1, 1), r"block \(1, 1\) .* got zero weights"),
        (dead, (1, 1), r"block \(1, 1\) .* got zero weights"),
        (u._replace(v=np.zeros(5)), (5, 5), r"block \(5, 5\) .* got a zero parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            predict.block(problem, statistics, "hessian", block, sample_ratio=4.0)
    exact = TwoLayerMixture.xor(5, 400, precision=np.inf, ridge=0.05)
    with pytest.raises(ValueError, match=r"problem\.precision must be finite"):
        predict.block(exact, u, "hessian", (0, 0), sample_ratio=4.0)


def test_outliers_in_a_gap_of_the_bulk_are_not_leading():
    """The origin of ten classes, G block, alpha = 3: one outlier above the bulk, nine in its gap.

    The bulk part of the own class, about ``0.1 * 3 * d`` eigenvalues, comes before the nine. At
    ten samples per dimension the gap has closed; far above its threshold of 809 all ten lead.
    """
    problem = KGaussianMixture.orthonormal(10, 600, precision=10.0, ridge=0.1)
    start = problem.initial_statistics()
    origin = start._replace(R_perp=1e-12 * start.R_perp)
    for alpha, outer, inner in ((3.0, 1, 9), (10.0, 1, 0), (2000.0, 10, 0)):
        found = predict.block(problem, origin, "g_matrix", (0, 0), sample_ratio=alpha)
        assert (found.outliers.size, found.inner.size) == (outer, inner)
        assert found.overlaps.size == outer
        assert np.all(found.outliers > found.edges[1]) and np.all(found.inner < found.edges[1])
    np.testing.assert_allclose(
        predict.block(problem, origin, "g_matrix", (0, 0), sample_ratio=3.0).inner,
        0.0021,
        rtol=0.05,
    )


def _phase_retrieval() -> ProjectionModel:
    """The loss ``(h^2 - u^2)^2 / 4``, whose curvature ``3 h^2 - u^2`` has no bound."""
    local = Local(
        lambda z, u, label: (z[0] ** 2 - u[0] ** 2) ** 2 / 4,
        lambda z, u, label: np.array([(z[0] ** 2 - u[0] ** 2) * z[0]]),
        lambda z, u, label: np.array([[3 * z[0] ** 2 - u[0] ** 2]]),
    )
    return ProjectionModel(local, [[0.0]], [1.0], precision=1.0, dimension=200)


def _noisy_labels() -> ProjectionModel:
    """Logistic regression in which a tenth of the labels is wrong."""
    local = Local(
        lambda z, u, label: np.log1p(np.exp(-(1 - 2 * (label % 2)) * z[0])),
        lambda z, u, label: np.array(
            [-(1 - 2 * (label % 2)) / (1 + np.exp((1 - 2 * (label % 2)) * z[0]))]
        ),
        lambda z, u, label: np.array([[1 / (1 + np.exp(z[0])) / (1 + np.exp(-z[0]))]]),
    )
    centres, weights = [[1.0], [1.0], [-1.0], [-1.0]], [0.45, 0.05, 0.05, 0.45]
    return ProjectionModel(local, centres, weights, precision=4.0, dimension=200)


HERE = ModelStatistics(np.array([[0.6]]), np.array([[0.8]]), np.zeros(0))


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_default_rule_returns_for_models_of_ones_own(matrix):
    """Its masses down to 1e-97 once put a pole on the edge and kept the search going for ever."""
    for model, bounded in ((_phase_retrieval(), False), (_noisy_labels(), True)):
        found = predict.block(model, HERE, matrix, (0, 0), sample_ratio=2.0)
        assert found.bounded is bounded
        assert np.isfinite(found.edge_errors[1]) == bounded
        assert np.isfinite(found.outliers).all() and np.isfinite(found.outlier_errors).all()


def test_errors_cover_the_differences_of_rules():
    """Outliers of an unbounded block by three rules, each within the errors of the others."""
    rules = [gaussian.sobol(2, 2**9, rng=0), gaussian.sobol(2, 2**13, rng=0)]
    rules.append(gaussian.gauss_hermite(2, 10))
    model = _phase_retrieval()
    found = [
        predict.block(model, HERE, "hessian", (0, 0), sample_ratio=2.0, rule=rule) for rule in rules
    ]
    tops = [(each.outliers[0], each.outlier_errors[0]) for each in found if each.outliers.size]
    assert len(tops) >= 2
    for value, error in tops:
        for other, its in tops:
            assert abs(value - other) <= error + its


@pytest.mark.parametrize("matrix", ["hessian", "g_matrix"])
def test_errors_of_random_rules_cover_the_true_ones(matrix):
    """Of twelve rules none agrees with its coarser ones by chance: one of them did.

    The upper edge of the G-matrix belongs to weights so far out that only Gauss-Hermite has some.
    """
    model, setting = _noisy_labels(), (matrix, (0, 0))
    truth = gaussian.gauss_hermite(2, 64)
    exact = predict.block(model, HERE, *setting, sample_ratio=2.0, rule=truth)
    for seed in range(1, 13):
        rule = gaussian.sobol(2, 2**11, rng=seed)
        found = predict.block(model, HERE, *setting, sample_ratio=2.0, rule=rule)
        assert np.all(np.abs(np.subtract(found.edges, exact.edges)) <= found.edge_errors)
        assert abs(found.outliers[0] - exact.outliers[0]) <= found.outlier_errors[0]
        assert abs(found.alignment - exact.alignment) <= found.alignment_error


def test_errors_of_an_exact_rule_vanish():
    """Bounded and smooth: Gauss-Hermite agrees with itself, and Sobol within its error."""
    model = _noisy_labels()
    fine = predict.block(model, HERE, "hessian", (0, 0), sample_ratio=2.0)
    assert fine.outlier_errors[0] < 1e-6
    rough = predict.block(
        model,
        HERE,
        "hessian",
        (0, 0),
        sample_ratio=2.0,
        rule=gaussian.sobol(2, 2**9, rng=0),
    )
    assert abs(rough.outliers[0] - fine.outliers[0]) < rough.outlier_errors[0] < 1e-2
