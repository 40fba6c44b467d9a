"""Predicted spectra against simulated blocks."""

import numpy as np
import pytest

from traindyn import gaussian
from traindyn.problems.k_gmm import KGaussianMixture, Point, Statistics
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
    """Edges to d^(-2/3), outliers and alignment to their fluctuations; an eighth of alpha fails.

    Means over 12 test sets: outliers fluctuate by a few per cent each, so by 1 % in the
    mean; five such deviations are allowed (false alarm below 1e-6).
    """
    predicted = predict.block(problem, problem.statistics(point), matrix, (1, 1), alpha=ALPHA)
    values, overlaps = spectra[matrix]
    count = predicted.outliers.size
    assert count >= 1

    def misses(other):
        edge_gap = np.abs(values[:, [count, -1]].mean(axis=0) / other.edges[::-1] - 1)
        top_gap = np.abs(values[:, 0].mean() / other.outliers[0] - 1)
        held = overlaps[:, :count].sum(axis=1).mean()
        return [edge_gap[0] > 0.05, top_gap > 0.05, abs(held - other.alignment**2) > 0.05]

    assert not any(misses(predicted))
    fewer = predict.block(problem, problem.statistics(point), matrix, (1, 1), alpha=ALPHA / 8)
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
        alpha=ALPHA, rule=rule, blocks=[(2, 2), (0, 0)], matrices=["g_matrix", "hessian"]
    )
    film = predict.along(problem, path, **options)
    again = predict.along(problem, path, workers=2, **options)
    for matrix in ("hessian", "g_matrix"):
        np.testing.assert_array_equal(film.outliers[matrix], again.outliers[matrix])
        for n, statistics in enumerate((early, late)):
            for b, block in enumerate(film.blocks):
                one = predict.block(problem, statistics, matrix, block, alpha=ALPHA, rule=rule)
                outliers = film.outliers[matrix][n, b]
                np.testing.assert_array_equal(outliers[: one.outliers.size], one.outliers)
                assert np.isnan(outliers[one.outliers.size :]).all()
                assert (film.lower[matrix][n, b], film.upper[matrix][n, b]) == one.edges
                assert film.alignment[matrix][n, b] == one.alignment


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(alpha=0.0), "alpha must be positive"),
        (dict(matrix="fisher"), "matrix must be one of"),
        (dict(block=(0, 1)), "block must be one of"),
        (dict(rule=gaussian.gauss_hermite(2, 4)), "rule must have the dimension"),
    ],
)
def test_bad_arguments_are_named(problem, point, changes, message):
    """Each error names its argument."""
    options = dict(alpha=ALPHA, matrix="hessian", block=(0, 0)) | changes
    matrix, block = options.pop("matrix"), options.pop("block")
    with pytest.raises(ValueError, match=message):
        predict.block(problem, problem.statistics(point), matrix, block, **options)
