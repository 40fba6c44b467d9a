"""Eigenpairs against LAPACK and closed forms; subspace measures against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from traindyn import linalg
from traindyn.linalg import DenseOperator, LambdaOperator, SymmetricOperator
from traindyn.spectra import density


def rotated(eigenvalues: np.ndarray, seed: int) -> np.ndarray:
    """A dense symmetric matrix with given eigenvalues and random eigenvectors."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((eigenvalues.size, eigenvalues.size)))[0]
    matrix = (basis * eigenvalues) @ basis.T
    return (matrix + matrix.T) / 2


def as_operator(matrix: np.ndarray) -> LambdaOperator:
    """Hide a matrix, so that the iteration is used whatever its size."""
    return LambdaOperator(len(matrix), lambda vectors: matrix @ vectors)


def wishart(n: int, samples: int, seed: int) -> np.ndarray:
    """A sample covariance: dense spectrum, top eigenvalues at a square-root edge."""
    data = np.random.default_rng(seed).standard_normal((samples, n))
    return data.T @ data / samples


@pytest.mark.parametrize("width", [1, 4, None])
def test_matches_lapack_on_a_merged_bulk(width: int | None) -> None:
    """Outliers merged with the bulk (gaps of a percent) could be missed or half converged."""
    matrix = wishart(400, 1600, seed=1)
    expected = np.linalg.eigvalsh(matrix)[::-1]
    assert expected[9] / expected[10] < 1.02
    expected = expected[:10]
    spectrum = linalg.top_eigenpairs(as_operator(matrix), 10, width=width)
    np.testing.assert_allclose(spectrum.eigenvalues, expected, rtol=1e-13)
    assert spectrum.converged.all()
    assert spectrum.residuals.max() <= 1e-8
    # The reported residuals are the true ones, not the iteration's estimate.
    gap = matrix @ spectrum.eigenvectors - spectrum.eigenvectors * spectrum.eigenvalues
    true = np.linalg.norm(gap, axis=0) / expected[0]
    np.testing.assert_allclose(spectrum.residuals, true, rtol=1e-3, atol=1e-15)
    np.testing.assert_allclose(
        spectrum.eigenvectors.T @ spectrum.eigenvectors, np.eye(10), atol=1e-13
    )


def test_sorts_by_magnitude_or_by_value() -> None:
    """E_k of the source is by absolute value: negative eigenvalues must compete."""
    values = np.concatenate([[5.0, -4.0, 3.0, -2.5], np.linspace(-1, 1, 296)])
    matrix = rotated(values, seed=2)
    for given in (matrix, as_operator(matrix)):
        by_magnitude = linalg.top_eigenpairs(given, 4).eigenvalues
        np.testing.assert_allclose(by_magnitude, [5, -4, 3, -2.5], rtol=1e-12)
        by_value = linalg.top_eigenpairs(given, 4, which="algebraic").eigenvalues
        np.testing.assert_allclose(by_value, np.sort(values)[::-1][:4], rtol=1e-12)


def test_finds_every_copy_of_a_degenerate_eigenvalue() -> None:
    """k - 1 outliers are exactly degenerate in population matrices: none may be lost."""
    values = np.concatenate([np.full(9, 2.0), [1.5], np.linspace(0, 1, 390)])
    matrix = rotated(values, seed=3)
    spectrum = linalg.top_eigenpairs(as_operator(matrix), 10)
    np.testing.assert_allclose(spectrum.eigenvalues, values[:10], rtol=1e-12)
    _, vectors = eigh(matrix)
    angles = subspace_angles(vectors[:, -9:], spectrum.eigenvectors[:, :9])
    assert angles.max() < 1e-7


def test_warm_start_saves_products_and_changes_nothing_else() -> None:
    """A warm start that is ignored, or that biases the result, would go unnoticed."""
    matrix = wishart(400, 1600, seed=4)
    nearby = matrix + 1e-3 * wishart(400, 1600, seed=5)
    warm = linalg.top_eigenpairs(as_operator(nearby), 10).eigenvectors
    for width in (4, None):
        cold_run = linalg.top_eigenpairs(as_operator(matrix), 10, width=width)
        warm_run = linalg.top_eigenpairs(as_operator(matrix), 10, width=width, start=warm)
        assert warm_run.products < 0.9 * cold_run.products
        np.testing.assert_allclose(warm_run.eigenvalues, cold_run.eigenvalues, rtol=1e-12)


@pytest.mark.parametrize("width", [3, None])
def test_start_in_a_wrong_invariant_subspace_is_no_trap(width: int | None) -> None:
    """Exact eigenvectors of the 2nd to 11th eigenvalue have zero residual from the first step."""
    values = np.concatenate([[1.3], np.linspace(1.2, 1.1, 10), np.linspace(0, 1, 389)])
    matrix = rotated(values, seed=6)
    vectors = eigh(matrix)[1][:, ::-1]
    spectrum = linalg.top_eigenpairs(as_operator(matrix), 10, start=vectors[:, 1:11], width=width)
    np.testing.assert_allclose(spectrum.eigenvalues, values[:10], rtol=1e-12)


def test_wide_gaps_save_products_and_hide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two outliers at three times the bulk, the first missed by an otherwise exact start.

    The bulk has not settled when the wanted pairs have, so that the gap answers for the missed
    vector. The control believes every gap at once, and misses it.
    """
    rng = np.random.default_rng(11)
    levels = np.concatenate([[3.1, 3.0, 2.9], rng.uniform(-1, 1, 997)])
    basis = np.linalg.qr(rng.standard_normal((1000, 1000)))[0]
    matrix = (basis * levels) @ basis.T
    operator = linalg.LambdaOperator(1000, lambda vectors: matrix @ vectors)
    for noise in (0.0, 1e-9, 1e-2):
        start = basis[:, 1:3] + noise * rng.standard_normal((1000, 2)) / np.sqrt(1000)
        found = linalg.top_eigenpairs(operator, 2, start=start, width=4)
        np.testing.assert_allclose(found.eigenvalues, [3.1, 3.0], rtol=1e-10)
        assert found.converged.all()
    cold = linalg.top_eigenpairs(operator, 3, width=4)
    np.testing.assert_allclose(cold.eigenvalues, levels[:3], rtol=1e-10)
    warm = linalg.top_eigenpairs(operator, 3, start=cold.eigenvectors, width=4)
    monkeypatch.setattr(linalg, "_AMPLIFICATION", np.inf)
    slow = linalg.top_eigenpairs(operator, 3, start=cold.eigenvectors, width=4)
    assert warm.products < 0.7 * slow.products
    np.testing.assert_allclose(warm.eigenvalues, slow.eigenvalues, rtol=1e-12)
    monkeypatch.setattr(linalg, "_AMPLIFICATION", 1e-300)
    monkeypatch.setattr(linalg, "_LOOK_COLUMNS", 1)
    missed = linalg.top_eigenpairs(operator, 2, start=basis[:, 1:3], width=4)
    assert missed.eigenvalues[0] < 3.05


def test_degenerate_starts() -> None:
    """Zero, repeated, badly scaled or too many columns of a start must do no harm."""
    matrix = wishart(300, 600, seed=7)
    expected = np.linalg.eigvalsh(matrix)[::-1][:3]
    column = np.random.default_rng(8).standard_normal((300, 1))
    for start in (
        np.zeros((300, 3)),
        np.repeat(column, 3, axis=1),
        column * np.array([[1e-200, 1.0, 1e150]]),
        np.random.default_rng(9).standard_normal((300, 40)),
    ):
        found = linalg.top_eigenpairs(as_operator(matrix), 3, start=start)
        np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-12)


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_low_rank_operators(rank: int) -> None:
    """The Krylov space of a low-rank operator is exhausted at once: fill up, do not stop."""
    values = np.concatenate([np.arange(1.0, rank + 1)[::-1], np.zeros(300 - rank)])
    spectrum = linalg.top_eigenpairs(as_operator(rotated(values, seed=10)), 4)
    np.testing.assert_allclose(spectrum.eigenvalues, values[:4], atol=1e-13)
    assert spectrum.converged.all()
    np.testing.assert_allclose(
        spectrum.eigenvectors.T @ spectrum.eigenvectors, np.eye(4), atol=1e-12
    )


@pytest.mark.parametrize(("size", "r"), [(1, 1), (3, 3), (50, 50), (70, 2), (90, 12), (200, 60)])
def test_sizes_near_the_number_of_pairs(size: int, r: int) -> None:
    """Operators hardly larger than the basis exercise the last, narrow blocks."""
    matrix = wishart(size, 2 * size, seed=11)
    expected = np.linalg.eigvalsh(matrix)[::-1][:r]
    for given in (matrix, as_operator(matrix)):
        spectrum = linalg.top_eigenpairs(given, r)
        np.testing.assert_allclose(spectrum.eigenvalues, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-100, 1e-30, 1e30, 1e100, 1e160, 1e300])
@pytest.mark.parametrize("hidden", [False, True])
def test_scale_of_the_operator_does_not_matter(scale: float, hidden: bool) -> None:
    """Tolerances are relative, and no square of a residual may under- or overflow.

    At 1e-160 the residuals of a start were zero in floating point, and its values were returned as
    converged.
    """
    matrix = wishart(300, 600, seed=12)
    given = as_operator if hidden else np.asarray
    reference = linalg.top_eigenpairs(given(matrix), 5)
    scaled = linalg.top_eigenpairs(given(scale * matrix), 5)
    assert scaled.converged.all()
    np.testing.assert_allclose(scaled.eigenvalues / scale, reference.eigenvalues, rtol=1e-12)
    np.testing.assert_allclose(scaled.residuals, reference.residuals, rtol=1e-3, atol=1e-14)
    basis = np.random.default_rng(1).standard_normal((300, 6))
    expected = linalg.subspace_error(matrix, basis)
    assert linalg.subspace_error(given(scale * matrix), basis) == pytest.approx(expected, rel=1e-6)


def test_a_power_of_two_changes_no_digit() -> None:
    """Rescaling would otherwise be a source of rounding of its own."""
    matrix = wishart(300, 600, seed=12)
    reference = linalg.top_eigenpairs(as_operator(matrix), 5)
    for exponent in (-700, 700):
        found = linalg.top_eigenpairs(as_operator(np.ldexp(matrix, exponent)), 5)
        np.testing.assert_array_equal(found.eigenvectors, reference.eigenvectors)
        expected = np.ldexp(reference.eigenvalues, exponent)
        np.testing.assert_array_equal(found.eigenvalues, expected)


def test_a_small_warm_start_does_not_set_the_scale() -> None:
    """The first product may be tiny where the operator is not."""
    values = np.concatenate([[1e120, 1e119], np.full(298, 1e-120)])
    start = np.eye(300)[:, 5:8]
    operator = LambdaOperator(300, lambda vectors: values[:, None] * vectors)
    found = linalg.top_eigenpairs(operator, 2, start=start, width=3)
    np.testing.assert_allclose(found.eigenvalues, values[:2], rtol=1e-12)
    assert found.converged.all()


class Foreign:
    """An operator of another library: a shape, and products under one name."""

    def __init__(self, matrix: np.ndarray, **products: Any) -> None:
        self.shape = matrix.shape
        vars(self).update(products)


def read_only(matrix: np.ndarray) -> Any:
    """Multiply as JAX does, whose arrays must not be written to."""

    def product(vectors: np.ndarray) -> np.ndarray:
        image = matrix @ vectors
        image.flags.writeable = False
        return image

    return product


FOREIGN: dict[str, Any] = {
    "scipy": lambda a: LinearOperator(a.shape, matvec=lambda v: a @ v, matmat=lambda v: a @ v),
    "scipy, matvec": lambda a: LinearOperator(a.shape, matvec=lambda v: a @ v),
    "scipy, of an array": aslinearoperator,
    "sparse": csr_array,
    "matmat": lambda a: Foreign(a, matmat=read_only(a)),
    "matvec": lambda a: Foreign(a, matvec=read_only(a)),
    "matvec, a column": lambda a: Foreign(a, matvec=lambda v: a @ v[:, None]),
    # curvlinops has products of tensors under the operator @ alone.
    "to_scipy": lambda a: Foreign(a, to_scipy=lambda: aslinearoperator(a)),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_operators_of_other_libraries_are_taken_as_they_are(make: Any) -> None:
    """They were refused for want of an attribute."""
    matrix = wishart(200, 400, seed=19)
    expected = linalg.top_eigenpairs(as_operator(matrix), 3)
    found = linalg.top_eigenpairs(make(matrix), 3)
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, rtol=1e-12)
    assert found.converged.all()
    assert linalg.as_operator(make(matrix)).matmat(np.eye(200)[:, :2]).shape == (200, 2)
    basis = np.random.default_rng(20).standard_normal((200, 6))
    error = linalg.subspace_error(matrix, basis)
    assert linalg.subspace_error(make(matrix), basis) == pytest.approx(error, rel=1e-6)


def kept(product: Any) -> Any:
    """Return one array again and again, whatever its values are by then."""
    buffers: dict[tuple[int, ...], np.ndarray] = {}

    def into(vectors: np.ndarray) -> np.ndarray:
        buffer = buffers.setdefault(vectors.shape, np.empty(vectors.shape))
        buffer[...] = product(vectors)
        return buffer

    return into


def in_place(product: Any) -> Any:
    """Write the product over what is multiplied."""

    def over(vectors: np.ndarray) -> np.ndarray:
        vectors[...] = product(vectors)
        return vectors

    return over


class Own:
    """An operator that has all that the protocol asks for."""

    dtype = np.dtype(np.float64)

    def __init__(self, size: int, matmat: Any) -> None:
        self.size, self.matmat = size, matmat


@pytest.mark.parametrize("sharing", [kept, in_place])
@pytest.mark.parametrize(
    "make",
    [
        lambda a, product: Foreign(a, matvec=product),
        lambda a, product: Foreign(a, matmat=product),
        lambda a, product: LambdaOperator(len(a), product),
        lambda a, product: Own(len(a), product),
    ],
    ids=["matvec", "matmat", "function", "protocol"],
)
def test_operators_may_share_their_memory(make: Any, sharing: Any) -> None:
    """Products of one buffer were all the last one, and vectors changed while in use."""
    matrix = np.diag(np.arange(300.0))
    expected = linalg.top_eigenpairs(as_operator(matrix), 2)
    operator = make(matrix, sharing(lambda vectors: matrix @ vectors))
    found = linalg.top_eigenpairs(operator, 2)
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, rtol=1e-12)
    np.testing.assert_allclose(found.residuals, expected.residuals, atol=1e-12)
    assert found.converged.all()
    nodes = [density.estimate(each, probes=2, steps=20).nodes for each in (matrix, operator)]
    np.testing.assert_allclose(nodes[1], nodes[0], rtol=1e-9, atol=1e-9)
    basis = np.eye(300)[:, :299]
    assert linalg.subspace_error(operator, basis) == pytest.approx(1.0)


@pytest.mark.filterwarnings("default")  # those of other libraries are not ours
def test_operators_of_tensors_are_taken_as_they_are() -> None:
    """As hessian-eigenthings has them, in single precision."""
    torch = pytest.importorskip("torch")
    matrix = wishart(200, 400, seed=19)

    class Curvature:
        size, device, dtype = 200, torch.device("cpu"), torch.float32

        def matvec(self, vector: Any) -> Any:
            return torch.tensor(matrix, dtype=torch.float32) @ vector

    found = linalg.top_eigenpairs(Curvature(), 3, tolerance=1e-5)
    expected = linalg.top_eigenpairs(matrix, 3).eigenvalues
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-5)
    assert found.converged.all()


def test_running_out_of_products_is_reported() -> None:
    """Unconverged pairs must say so; the control is the same call with enough products."""
    operator = as_operator(wishart(400, 1600, seed=13))
    short = linalg.top_eigenpairs(operator, 10, max_products=60)
    assert not short.converged.all()
    assert short.products <= 60
    assert short.residuals.max() > 1e-8
    assert linalg.top_eigenpairs(operator, 10).converged.all()


def test_same_seed_same_pairs() -> None:
    """Results must be reproducible to the last bit."""
    operator = as_operator(wishart(300, 600, seed=14))
    first, second = (linalg.top_eigenpairs(operator, 4, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.eigenvectors, second.eigenvectors)
    other = linalg.top_eigenpairs(operator, 4, rng=6)
    assert not np.array_equal(first.eigenvectors, other.eigenvectors)


def test_operators_satisfy_the_protocol() -> None:
    """Film and notebooks rely on the protocol being checkable at run time."""
    assert isinstance(DenseOperator(np.eye(2)), SymmetricOperator)
    assert isinstance(as_operator(np.eye(2)), SymmetricOperator)
    assert not isinstance(np.eye(2), SymmetricOperator)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: linalg.as_operator(Foreign(np.eye(3), matvec=None, shape=None)),
            "operator must be square, got shape None",
        ),
        (
            lambda: linalg.as_operator(Foreign(np.eye(3), matvec=None, shape=("a", "a"))),
            r"operator.shape\[0\] must be an integer >= 1, got 'a'",
        ),
        (lambda: linalg.top_eigenpairs(np.eye(3), 4), r"r must be an integer in \[1, 3\], got 4"),
        (lambda: linalg.top_eigenpairs(as_operator(np.eye(3)), 4), r"integer in \[1, 3\], got 4"),
        (lambda: linalg.top_eigenpairs(np.eye(3), 0), "r must be"),
        (lambda: linalg.top_eigenpairs(np.ones((2, 3)), 1), "operator must be square"),
        (lambda: linalg.top_eigenpairs(np.array([[0.0, 1.0], [0.0, 0.0]]), 1), "symmetric"),
        (lambda: linalg.top_eigenpairs(np.full((2, 2), np.nan), 1), "operator must be finite"),
        (lambda: linalg.top_eigenpairs(np.eye(3), 1, tolerance=0.0), "tolerance must be positive"),
        (lambda: linalg.top_eigenpairs(np.eye(3), 1, which="top"), "which must be one of"),
        (
            lambda: linalg.top_eigenpairs(as_operator(np.eye(3)), 1, start=np.ones((2, 1))),
            "start must have shape",
        ),
        (lambda: linalg.alignment(np.zeros(3), np.eye(3)), "vectors must be non-zero"),
        (lambda: linalg.alignment(np.ones(2), np.eye(3)), "vectors must have last axis 3"),
        (lambda: linalg.subspace_error(np.zeros((3, 3)), np.eye(3)), "matrix must be non-zero"),
        (lambda: linalg.subspace_error(np.eye(3), np.eye(2)), "basis must have 3 rows"),
        (lambda: linalg.alignment(np.ones(2), np.zeros((2, 1))), "basis must not be zero"),
        (
            lambda: linalg.top_eigenpairs(1e-13 * np.array([[1.0, 5.0], [0.0, 1.0]]), 1),
            "operator must be symmetric, got asymmetry 5e-13",
        ),
        (
            lambda: linalg.top_eigenpairs(aslinearoperator(np.ones((3, 2))), 1),
            r"operator must be square, got shape \(3, 2\)",
        ),
        (
            lambda: linalg.top_eigenpairs(aslinearoperator(1j * np.eye(3)), 1),
            "operator must be real, got products of type complex128",
        ),
        (
            lambda: linalg.top_eigenpairs(as_operator(1j * np.eye(3)), 1),
            "operator.matmat must be real, got products of type complex128",
        ),
        (
            lambda: linalg.top_eigenpairs(Foreign(np.eye(3), matvec=lambda v: v[:2]), 1),
            r"operator.matmat must return shape \(3, 3\), got \(2, 3\)",
        ),
        (
            lambda: linalg.subspace_error(aslinearoperator(np.ones((3, 2))), np.eye(3)),
            "matrix must be square",
        ),
        (lambda: linalg.subspace_error(as_operator(np.eye(3)), np.eye(2)), "must have 3 rows"),
        (lambda: linalg.as_operator(lambda v: v), "operator must be numeric, got <function"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    """Every refusal names the argument and the allowed range."""
    with pytest.raises(ValueError, match=message):
        call()


def test_products_that_are_not_finite_are_refused() -> None:
    """NaN data must not come back as plausible eigenvalues."""
    broken = wishart(300, 600, seed=15)
    broken[3, 4] = np.nan
    with pytest.raises(FloatingPointError, match=r"operator\.matmat must be finite"):
        linalg.top_eigenpairs(as_operator(broken), 2)


def test_alignment_is_the_definition() -> None:
    """A basis that is not orthonormal, or has dependent columns, spans the same space."""
    rng = np.random.default_rng(16)
    basis = rng.standard_normal((20, 4))
    vectors = rng.standard_normal((3, 5, 20))
    projector = basis @ np.linalg.pinv(basis)
    expected = np.linalg.norm(vectors @ projector, axis=-1) / np.linalg.norm(vectors, axis=-1)
    np.testing.assert_allclose(linalg.alignment(vectors, basis), expected, rtol=1e-12)
    doubled = np.concatenate([basis, basis @ rng.standard_normal((4, 3))], axis=1)
    np.testing.assert_allclose(linalg.alignment(vectors, doubled), expected, rtol=1e-12)
    # Wrong variant: inner products with the raw columns, as if they were orthonormal.
    wrong = np.linalg.norm(vectors @ basis, axis=-1) / np.linalg.norm(vectors, axis=-1)
    assert not np.allclose(wrong, expected, rtol=0.1)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_alignment_does_not_depend_on_the_scale(scale: float) -> None:
    """A short gradient was called zero, and a long one had no norm."""
    vector, basis = np.random.default_rng(21).standard_normal((2, 20, 3))
    expected = linalg.alignment(vector.T, basis)
    np.testing.assert_array_less(0.01, expected)
    np.testing.assert_allclose(linalg.alignment(scale * vector.T, basis), expected, rtol=1e-12)
    np.testing.assert_allclose(linalg.alignment(vector.T, scale * basis), expected, rtol=1e-12)


def test_subspace_error_is_minimal() -> None:
    """BGHJ Definition 2.2 asks for the best N; (I - P) A attains it, random N do not beat it."""
    rng = np.random.default_rng(17)
    matrix = rotated(rng.standard_normal(30), seed=18)
    basis = np.linalg.qr(rng.standard_normal((30, 6)))[0]
    error = linalg.subspace_error(matrix, basis)
    norm = np.linalg.norm(matrix, 2)
    rejected = matrix - basis @ (basis.T @ matrix)
    np.testing.assert_allclose(error, np.linalg.norm(rejected, 2) / norm, rtol=1e-12)
    for _ in range(20):
        other = rejected + basis @ rng.standard_normal((6, 30))
        assert np.linalg.norm(other, 2) / norm >= error - 1e-12
    operator = linalg.subspace_error(as_operator(matrix), basis)
    np.testing.assert_allclose(operator, error, rtol=1e-6)
    assert linalg.subspace_error(basis @ basis.T, basis) < 1e-14
