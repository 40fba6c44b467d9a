"""Thresholds by simulation, with shifts that depend on the draw, as bad as the ball allows."""

from __future__ import annotations

import numpy as np
import pytest

from companion.lazy_training.linearity.tails import (
    columns_threshold,
    linear_threshold,
    product_supremum,
    vector_threshold,
)

DRAWS, P, R = 2000, 0.2, 6.0
MOST = DRAWS * P + 5 * np.sqrt(DRAWS * P)


def exceeded(norms: np.ndarray, threshold: float) -> int:
    """How often."""
    return int(np.count_nonzero(norms > threshold))


def test_form_and_vector() -> None:
    """ZHU Lemmas A.11.4 and A.11.7; controls: without the shift, without the mean."""
    rng = np.random.default_rng(0)
    b, a = rng.standard_normal(6), rng.standard_normal((DRAWS, 6))
    size = np.abs(a @ b) + R * np.linalg.norm(b)  # a shift along b
    assert exceeded(size, linear_threshold(b, R, P)) < MOST
    assert exceeded(size, linear_threshold(b, 0, P)) > MOST

    matrix = rng.standard_normal((5, 6))
    right = np.linalg.svd(matrix)[2]
    along = a @ right[0]
    shifted = a + R * np.sign(along)[:, None] * right[0]
    norms = np.linalg.norm(shifted @ matrix.T, axis=1)
    assert exceeded(norms, vector_threshold(matrix, R, P)) < MOST
    # Many rows of one size: the norm is close to the Frobenius norm, which may not be left out.
    norms = np.linalg.norm(rng.standard_normal((DRAWS, 40)), axis=1)
    assert exceeded(norms, vector_threshold(np.eye(40), 0, P)) < MOST
    assert exceeded(norms, np.sqrt(2 * np.log(1 / P))) > MOST


def test_columns() -> None:
    """ZHU Lemmas A.11.5 and A.11.6; control: without the part that grows with the columns."""
    rng = np.random.default_rng(1)
    matrices = rng.standard_normal((40, 5, 6)) / 3
    norm = max(np.linalg.norm(b, 2) for b in matrices)
    frobenius = max(np.linalg.norm(b) for b in matrices)
    noise = rng.standard_normal((DRAWS, 40, 6))
    columns = np.einsum("kij,rkj->rik", matrices, noise)
    norms = np.linalg.norm(columns, 2, axis=(1, 2)) + R * norm  # at most
    assert exceeded(norms, columns_threshold(matrices, R, P)) < MOST
    few = columns_threshold(matrices[:1], R, P)
    assert exceeded(norms, few - 4 / 3 * np.linalg.norm(matrices[0]) + 4 / 3 * frobenius) > MOST


def test_product_supremum() -> None:
    """Against a search over all shifts (ZHU Lemma A.11.2); control: shifts of half the length."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 30, 2))
    angles = np.linspace(0, np.pi / 2, 181)
    turns = np.exp(2j * np.pi * np.arange(180) / 180)
    for radius in (0.0, 0.5, 1.5, 4.0):
        found = product_supremum(a, b, radius)
        searched = [_search(one, other, radius, angles, turns) for one, other in zip(a, b)]
        assert np.all(found >= np.array(searched) - 1e-12)
        np.testing.assert_allclose(found, searched, atol=2e-3 * radius * (radius + 3))
    half = product_supremum(a, b, 2.0)
    assert np.all(half < found)
    with pytest.raises(ValueError, match="right must have shape"):
        product_supremum(a, b[:, :1], 1.0)


def _search(a, b, radius: float, angles: np.ndarray, turns: np.ndarray) -> float:
    """Largest modulus of the product: for a direction of one shift the other is explicit."""
    best = 0.0
    for angle in angles:
        first, second = radius * np.cos(angle), radius * np.sin(angle)
        moved = a + first * np.stack([turns.real, turns.imag], axis=1)
        best = max(best, np.max(np.abs(moved @ b) + second * np.linalg.norm(moved, axis=1)))
    return best


def test_bad_arguments() -> None:
    """Each error names what is wrong."""
    with pytest.raises(ValueError, match=r"probability must be in \(0, 1\)"):
        linear_threshold([1.0], 1.0, 1.0)
    with pytest.raises(ValueError, match="radius must be non-negative"):
        vector_threshold(np.eye(2), -1.0, 0.5)
    with pytest.raises(ValueError, match="matrices must not be empty"):
        columns_threshold([], 1.0, 0.5)
