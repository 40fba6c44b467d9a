"""Films against LAPACK on matrices formed one by one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse.linalg import LinearOperator

from traindyn import linalg
from traindyn.problems import two_layer
from traindyn.problems.base import Sample
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.problems.two_layer import TwoLayerMixture
from traindyn.sgd import direct
from traindyn.spectra import blocks, film
from traindyn.trajectory import Trajectory


@cache
def run() -> tuple[KGaussianMixture, Trajectory[Any], Sample]:
    """A mixture, a smooth path from a random point to the means, and test data."""
    problem = KGaussianMixture.orthonormal(3, 120, precision=5.0, ridge=0.05)
    start = problem.initial(rng=1).x
    shares = np.linspace(0, 1, 5)
    snapshots = Point(np.array([(1 - s) * start + 2 * s * problem.means for s in shares]))
    records = [problem.statistics(Point(x)) for x in snapshots.x]
    statistics = type(records[0])(*(np.array(field) for field in zip(*records)))
    path = Trajectory(shares, statistics, snapshots=snapshots)
    return problem, path, problem.sample(600, rng=2)


@pytest.mark.parametrize("dense_size", [2000, 0])
def test_film_matches_lapack(dense_size: int) -> None:
    """Every block at every time, formed or only multiplied: values, residuals, alignment."""
    problem, path, sample = run()
    seen = film.film(
        problem, path, sample, r=5, dense_size=dense_size, keep=[0, -1], directions=problem.means
    )
    assert seen.matrices == ("hessian", "g_matrix")
    assert seen.eigenvalues["hessian"].shape == (5, 3, 5)
    assert seen.overlaps["g_matrix"].shape == (5, 3, 5, 3)
    np.testing.assert_array_equal(seen.kept_times, [0, 1])
    for matrix in seen.matrices:
        assert seen.converged[matrix].all()
        assert seen.residuals[matrix].max() <= 1e-8
        for n in range(5):
            point = Point(path.snapshots.x[n])
            for j, block in enumerate(problem.blocks):
                gram = blocks.operator(problem, matrix, block, point, sample)
                values, vectors = np.linalg.eigh(gram.dense())
                values, vectors = values[::-1], vectors[:, ::-1]
                np.testing.assert_allclose(seen.eigenvalues[matrix][n, j], values[:5], rtol=1e-10)
                expected = linalg.alignment(point.x[j], vectors[:, :3])
                assert seen.alignment[matrix][n, j] == pytest.approx(float(expected), abs=1e-6)
                np.testing.assert_allclose(
                    seen.overlaps[matrix][n, j],
                    (vectors[:, :5].T @ problem.means.T) ** 2,
                    atol=1e-5,
                )
                if n == 4:
                    kept = seen.eigenvectors[matrix][j][1]
                    angles = subspace_angles(kept, vectors[:, :5])
                    assert angles.max() < 1e-5


def test_alignment_uses_the_outlier_count_only() -> None:
    """More eigenpairs than k must not raise alignment (BGHJ Theorem 2.3, MDL Theorem 13.3)."""
    problem, path, sample = run()
    narrow = film.film(problem, path, sample, r=3, matrices=("g_matrix",))
    wide = film.film(problem, path, sample, r=9, matrices=("g_matrix",), keep=range(5))
    np.testing.assert_allclose(narrow.alignment["g_matrix"], wide.alignment["g_matrix"], atol=1e-6)
    # Wrong variant: alignment with all nine kept eigenvectors.
    vectors = wide.eigenvectors["g_matrix"][0]
    wrong = [linalg.alignment(path.snapshots.x[n, 0], vectors[n]) for n in range(5)]
    assert np.max(np.abs(wrong - wide.alignment["g_matrix"][:, 0])) > 0.01


def test_workers_and_progress_change_nothing() -> None:
    """Same numbers, bit for bit, whatever the number of threads."""
    problem, path, sample = run()
    seen: list[tuple[int, int]] = []
    one = film.film(problem, path, sample, r=3, workers=1)
    two = film.film(
        problem,
        path,
        sample,
        r=3,
        workers=2,
        progress=lambda done, total: seen.append((done, total)),
    )
    for matrix in one.matrices:
        np.testing.assert_array_equal(one.eigenvalues[matrix], two.eigenvalues[matrix])
        np.testing.assert_array_equal(one.alignment[matrix], two.alignment[matrix])
    assert seen[-1] == (5, 5)


def test_some_blocks_only() -> None:
    """A choice of blocks keeps its order; nothing is kept unless asked for."""
    problem, path, sample = run()
    every = film.film(problem, path, sample, r=3, matrices=("hessian",))
    some = film.film(problem, path, sample, r=3, matrices=("hessian",), blocks=[(2, 2), (0, 0)])
    assert some.blocks == ((2, 2), (0, 0))
    np.testing.assert_allclose(
        some.eigenvalues["hessian"], every.eigenvalues["hessian"][:, [2, 0]], rtol=1e-10
    )
    assert some.eigenvectors["hessian"] == ()
    assert some.kept_times.size == 0


def test_unconverged_pairs_warn() -> None:
    """A tolerance below rounding cannot be met: say so, return the flags."""
    problem, path, sample = run()
    with pytest.warns(RuntimeWarning, match="did not reach the residual 1e-20"):
        seen = film.film(
            problem, path, sample, r=3, tolerance=1e-20, matrices=("hessian",), blocks=[(0, 0)]
        )
    assert not seen.converged["hessian"].all()
    assert seen.residuals["hessian"].max() < 1e-13


@cache
def layers() -> tuple[TwoLayerMixture, Trajectory[Any], Sample]:
    """A two-layer network with a short path, and test data."""
    problem = TwoLayerMixture.xor(5, 90, precision=8.0, ridge=0.05)
    times, rng = np.linspace(0, 1, 3), np.random.default_rng(3)
    start = problem.initial(rng=rng)
    target = np.zeros((5, 90))
    target[:4, :2] = problem.centroids
    snapshots = two_layer.Point(
        np.array([(1 - s) * start.v + s * np.array([1, 1, -1, -1, 0.3]) for s in times]),
        np.array([(1 - s) * start.W + s * target + 0.1 * start.W for s in times]),
    )
    records = [problem.statistics(two_layer.Point(*pair)) for pair in zip(*snapshots)]
    statistics = type(records[0])(*(np.array(field) for field in zip(*records)))
    path = Trajectory(times, statistics, snapshots=snapshots)
    return problem, path, problem.sample(700, rng=4)


@pytest.mark.parametrize("dense_size", [2000, 0])
def test_blocks_of_different_sizes(dense_size: int) -> None:
    """First and second layer in one film: every value against LAPACK, NaN where there is none."""
    problem, path, sample = layers()
    directions = np.eye(2, 90)
    seen = film.film(
        problem,
        path,
        sample,
        r=[3] * 5 + [5],
        dense_size=dense_size,
        keep=[2],
        directions=directions,
    )
    for matrix in seen.matrices:
        assert seen.eigenvalues[matrix].shape == (3, 6, 5)
        assert seen.converged[matrix].all()
        assert np.nanmax(seen.residuals[matrix]) <= 1e-8
        for n in range(3):
            point = two_layer.Point(path.snapshots.v[n], path.snapshots.W[n])
            for j, block in enumerate(problem.blocks):
                pairs, outliers = (5, 4) if j == 5 else (3, 2)
                gram = blocks.operator(problem, matrix, block, point, sample)
                values, vectors = np.linalg.eigh(gram.dense())
                values, vectors = values[::-1], vectors[:, ::-1]
                found = seen.eigenvalues[matrix][n, j]
                np.testing.assert_allclose(found[:pairs], values[:pairs], rtol=1e-9)
                assert np.isnan(found[pairs:]).all()
                own = point.v if j == 5 else point.W[j]
                expected = float(linalg.alignment(own, vectors[:, :outliers]))
                assert seen.alignment[matrix][n, j] == pytest.approx(expected, abs=1e-6)
                overlaps = seen.overlaps[matrix][n, j]
                if j == 5:
                    assert np.isnan(overlaps).all()
                else:
                    squared = (vectors[:, :3].T @ directions.T) ** 2
                    np.testing.assert_allclose(overlaps[:3], squared, atol=1e-5)
        assert [kept.shape for kept in seen.eigenvectors[matrix]] == 5 * [(1, 90, 3)] + [(1, 5, 5)]


def test_number_of_eigenpairs_by_default_and_for_all() -> None:
    """The outlier counts, or one number cut at the size of the smaller blocks."""
    problem, path, sample = layers()
    short = path.select([1])
    few = film.film(problem, short, sample, matrices=("hessian",))
    counts = np.count_nonzero(~np.isnan(few.eigenvalues["hessian"][0]), axis=1)
    np.testing.assert_array_equal(counts, [2, 2, 2, 2, 2, 4])
    many = film.film(problem, short, sample, r=7, matrices=("hessian",))
    counts = np.count_nonzero(~np.isnan(many.eigenvalues["hessian"][0]), axis=1)
    np.testing.assert_array_equal(counts, [7, 7, 7, 7, 7, 5])
    with pytest.raises(ValueError, match=r"r must be an integer in \[4, 5\], got 7"):
        film.film(problem, short, sample, r=7, blocks=[(5, 5)])


def test_silent_neurons_have_no_alignment() -> None:
    """A block that is exactly zero has no eigenspace: NaN, not a number by chance."""
    problem, path, sample = layers()
    v = path.snapshots.v.copy()
    v[:2, 1] = 0.0
    silenced = replace(path, snapshots=path.snapshots._replace(v=v))
    seen = film.film(problem, silenced, sample, directions=np.eye(1, 90))
    plain = film.film(problem, path, sample)
    for matrix in seen.matrices:
        np.testing.assert_array_equal(np.isnan(seen.alignment[matrix][:, 1]), [True, True, False])
        np.testing.assert_array_equal(seen.eigenvalues[matrix][:2, 1, :2], 0.0)
        assert np.isnan(seen.overlaps[matrix][:2, 1]).all()
        assert seen.converged[matrix].all()
        found, expected = (one.alignment[matrix][2, 1] for one in (seen, plain))
        assert found == pytest.approx(expected, abs=1e-6)
    W = path.snapshots.W.copy()
    W[1, 3] = 0.0
    dead = replace(path, snapshots=path.snapshots._replace(W=W))
    with pytest.raises(ValueError, match=r"parameter of block \(3, 3\) .* zero at time 0.5"):
        film.film(problem, dead, sample)
    film.film(problem, dead, sample, blocks=[(0, 0), (5, 5)])


def test_bad_input_is_named() -> None:
    """Every refusal names the argument and the allowed range."""
    problem, path, sample = run()
    bare = Trajectory(path.times, path.statistics)
    broken = Sample(np.full_like(sample.inputs, np.nan), sample.labels)
    few = Sample(sample.inputs[:3], sample.labels[:3])
    for arguments, changes, message in (
        ((problem, bare, sample), {}, "trajectory must be a single path with snapshots"),
        ((problem, path, sample), {"r": 2}, r"r must be at least 3, the largest .*got 2"),
        ((problem, path, sample), {"r": 121}, r"r must be an integer in \[3, 120\], got 121"),
        ((problem, path, sample), {"blocks": [(0, 1)]}, "blocks must be one of"),
        ((problem, path, sample), {"blocks": []}, "must not be empty"),
        ((problem, path, sample), {"matrices": ("fisher",)}, "matrices must be one of"),
        ((problem, path, sample), {"keep": [5]}, r"keep must be indices in \[-5, 4\], got 5"),
        ((problem, path, sample), {"keep": [0.5]}, "keep must be a list of time indices"),
        (
            (problem, path, sample),
            {"directions": np.eye(3)},
            r"directions must have .* \[120\], got 3",
        ),
        ((problem, path, sample), {"directions": np.zeros((1, 120))}, "directions must be non-z"),
        ((problem, path, sample), {"tolerance": 0.0}, "tolerance must be positive"),
        ((problem, path, broken), {}, "inputs must be finite"),
        ((problem, path, sample), {"r": [3, 3]}, "r must have one entry per block, 3, got 2"),
        ((problem, path, sample), {"r": [3, 2, 3]}, r"r\[1\] must be an integer in \[3, 120\]"),
        ((problem, path, few), {"r": 4}, "sample must have at least .* asked for, 4, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            film.film(*arguments, **{"r": 3, **changes})  # type: ignore[arg-type]


# ------------------------------------------------------------- operators that a training yields


def path(size: int, frames: int) -> list[np.ndarray]:
    """Symmetric matrices that change a little from one to the next, with three outliers."""
    rng = np.random.default_rng(5)
    noise, change = (each + each.T for each in rng.standard_normal((2, size, size)) / size)
    outliers = np.diag([3.0, -2.5, 2.0] + [0.0] * (size - 3))
    return [noise + (1 + t) * outliers + 0.3 * t * change for t in range(frames)]


@pytest.mark.parametrize("hidden", [False, True])
def test_follow_matches_lapack(hidden: bool) -> None:
    """Values, residuals, alignment and kept vectors, of arrays and of SciPy's operators."""
    matrices, vector = path(150, 4), np.random.default_rng(6).standard_normal(150)

    def given(matrix: np.ndarray) -> Any:
        return LinearOperator(matrix.shape, matvec=lambda v: matrix @ v) if hidden else matrix

    frames = [(2 * t, {"a": given(m), "b": given(-m)}, vector) for t, m in enumerate(matrices)]
    seen = film.follow(frames, 3, tolerance=1e-8, keep=True)
    np.testing.assert_array_equal(seen.times, [0, 2, 4, 6])
    assert seen.matrices == ("a", "b") and seen.blocks == ((0, 0),)
    for n, matrix in enumerate(matrices):
        values, vectors = np.linalg.eigh(matrix)
        order = np.argsort(-np.abs(values))[:3]
        expected = linalg.alignment(vector, vectors[:, order])
        for name, sign in (("a", 1), ("b", -1)):
            assert seen.converged[name].all() and seen.residuals[name].max() <= 1e-8
            found = seen.eigenvalues[name][n, 0]
            np.testing.assert_allclose(found, sign * values[order], rtol=1e-10)
            assert seen.alignment[name][n, 0] == pytest.approx(float(expected), abs=1e-6)
            kept = seen.eigenvectors[name][0][n]
            assert subspace_angles(kept, vectors[:, order]).max() < 1e-5
    assert film.follow(frames, 3).eigenvectors["a"] == ()


def test_follow_looks_before_training_goes_on() -> None:
    """A model that is changed in place would show its last state at all times."""
    weights = np.array([4.0, 1.0, 0.5])

    def training() -> Any:
        for time in range(3):
            yield time, {"hessian": LinearOperator((3, 3), lambda v: weights * v.ravel())}, None
            weights[1] += 3.0

    seen = film.follow(training(), 1)
    np.testing.assert_allclose(seen.eigenvalues["hessian"][:, 0, 0], [4, 4, 7])
    assert np.isnan(seen.alignment["hessian"]).all()


def test_follow_says_where_no_direction_is() -> None:
    """A gradient or a matrix that vanishes has no alignment, and must not end a run."""
    frames = [(0, {"a": np.eye(3)}, np.zeros(3)), (1, {"a": np.zeros((3, 3))}, np.ones(3))]
    seen = film.follow(frames, 1)
    assert np.isnan(seen.alignment["a"]).all()
    np.testing.assert_array_equal(seen.eigenvalues["a"][:, 0, 0], [1, 0])


def test_follow_warns_of_what_did_not_converge() -> None:
    """Products in single precision cannot reach a small residual."""
    matrix = path(200, 1)[0]
    rough = LinearOperator((200, 200), lambda v: (matrix @ v).astype(np.float32))
    with pytest.warns(RuntimeWarning, match="3 of 3 eigenpairs of a did not reach"):
        film.follow([(0, {"a": rough}, None)], 3, tolerance=1e-13)
    assert film.follow([(0, {"a": rough}, None)], 3, tolerance=1e-5).converged["a"].all()


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "frames must not be empty"),
        ([(0, np.eye(2))], r"frames\[0\] must be a tuple of time, operators and vector"),
        ([(0, np.eye(2), None)], r"frames\[0\]\[1\] must map names to operators"),
        ([(0, {"a": np.ones((2, 3))}, None)], "operator must be square"),
        ([(0, {"a": np.eye(2)}, np.ones(3))], r"frames\[0\]\[2\] must have size 2, got 3"),
        ([(0, {"a": np.eye(2)}, None)] * 2, "increasing times, got 0 after 0"),
        (
            [(0, {"a": np.eye(2)}, None), (1, {"b": np.eye(2)}, None)],
            r"same operators at all times, \['a'\], got \['b'\] at time 1",
        ),
        (
            [(0, {"a": np.eye(2)}, None), (1, {"a": np.eye(3)}, None)],
            "same sizes at all times, got 'a' of size 3 after 2",
        ),
    ],
)
def test_follow_names_bad_frames(frames: Any, message: str) -> None:
    """A training that ran for an hour must be told which of its frames is wrong."""
    with pytest.raises(ValueError, match=message):
        film.follow(frames, 1)


def test_the_whole_matrices_along_a_run():
    """Top eigenvalues are those of the dense matrices at every snapshot."""
    problem = KGaussianMixture.orthonormal(3, 20, precision=10.0, ridge=0.05)
    start = problem.initial(rng=0)
    run = direct.run(problem, start, [0, 1, 3], step_size=0.05, rng=1, snapshots=True)
    sample = problem.sample(150, rng=2)
    found = film.whole(problem, run, sample, r=4)
    for n in range(3):
        point = type(start)(run.snapshots.x[n])
        for matrix in ("hessian", "g_matrix"):
            values = np.linalg.eigvalsh(blocks.full(problem, matrix, point, sample).dense())
            top = values[np.argsort(-np.abs(values))][:4]
            np.testing.assert_allclose(found.eigenvalues[matrix][n], top, rtol=1e-7)
            assert found.converged[matrix][n].all()
    with pytest.raises(ValueError, match="r must be an integer in"):
        film.whole(problem, run, sample, r=61)
