"""Identity-plus-finite-rank matrices."""

from __future__ import annotations

import numpy as np
import pytest

from traindyn.problems.population_block import PopulationBlock


def _dependent(rng: np.random.Generator) -> PopulationBlock:
    """Basis with dependent, non-orthogonal columns: rank 3 out of 5."""
    basis = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 5))
    half = rng.standard_normal((5, 5))
    return PopulationBlock(0.7, basis, half + half.T)


def test_eigenvalues_and_products_match_the_dense_matrix() -> None:
    """Treating the basis as orthonormal, or losing the bulk, changes the spectrum."""
    rng = np.random.default_rng(0)
    block = _dependent(rng)
    dense = block.dense()
    direct = np.linalg.eigvalsh(dense)
    direct = direct[np.argsort(-np.abs(direct), kind="stable")]
    np.testing.assert_allclose(block.eigenvalues(), direct, atol=1e-11)
    assert np.sum(np.abs(block.eigenvalues() - 0.7) < 1e-10) == 12 - 3
    vectors = rng.standard_normal((12, 4))
    np.testing.assert_allclose(block.matmat(vectors), dense @ vectors, atol=1e-12)
    assert block.size == 12 and block.dtype == np.float64
    naive = 0.7 + np.linalg.eigvalsh(block.core)
    assert np.abs(naive).max() < 0.9 * np.abs(direct).max()  # control


def test_span_pairs_are_eigenpairs() -> None:
    """Vectors must be orthonormal eigenvectors of the whole matrix, in the order of values."""
    block = _dependent(np.random.default_rng(1))
    values, vectors = block.on_span()
    assert values.shape == (3,)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(block.dense() @ vectors, vectors * values, atol=1e-11)
    assert np.all(np.diff(np.abs(values)) <= 0)
    empty = PopulationBlock(0.3, np.zeros((4, 2)), np.eye(2))
    np.testing.assert_array_equal(empty.eigenvalues(), np.full(4, 0.3))


def test_bad_shapes_are_named() -> None:
    """A core of another size or an asymmetric one is an error, not a broadcast."""
    with pytest.raises(ValueError, match=r"core must have shape \(2, 2\)"):
        PopulationBlock(0.0, np.ones((3, 2)), np.eye(3))
    with pytest.raises(ValueError, match="core must be symmetric"):
        PopulationBlock(0.0, np.ones((3, 2)), np.array([[0.0, 1.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="shift must be finite"):
        PopulationBlock(np.nan, np.ones((3, 2)), np.eye(2))
