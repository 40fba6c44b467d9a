"""Block operators against sums written out sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from traindyn import linalg
from traindyn.problems.base import MATRICES, Factors, Matrix, Sample
from traindyn.problems.k_gmm import KGaussianMixture, Point
from traindyn.spectra import blocks
from traindyn.spectra.blocks import WeightedGram


class TwoParameters:
    """A problem whose two parameters see different features, of different sizes."""

    blocks = ((0, 0), (1, 1))

    def factors(self, matrix: Matrix, block: Any, point: Any, sample: Sample) -> Factors:
        """Weights from the labels, features by parameter."""
        features = (sample.inputs, np.tanh(sample.inputs[:, :2]))
        weights = np.cos(sample.labels * (1 + block[0]) * (1 + block[1]))
        return Factors(weights, features[block[0]], features[block[1]])


def mixture(k: int = 3, d: int = 12, n: int = 50) -> tuple[KGaussianMixture, Point, Sample]:
    """A small mixture at a random point."""
    problem = KGaussianMixture.orthonormal(k, d, precision=2.0, ridge=0.1)
    return problem, problem.initial(rng=1), problem.sample(n, rng=2)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("block", [(0, 0), (2, 2), (0, 1), (2, 1)])
def test_block_is_the_mean_over_samples(matrix: Matrix, block: tuple[int, int]) -> None:
    """Normalisation, sign and transposition of every block, written out by hand."""
    problem, point, sample = mixture()
    pi = problem.probabilities(point, sample.inputs)
    b, c = block
    expected = np.zeros((12, 12))
    for p, y, label in zip(pi, sample.inputs, sample.labels):
        hessian = p[b] * (b == c) - p[b] * p[c]
        residual = p - np.eye(3)[label]
        weight = hessian if matrix == "hessian" else residual[b] * residual[c]
        expected += weight * np.outer(y, y) / 50
    gram = blocks.operator(problem, matrix, block, point, sample)
    np.testing.assert_allclose(gram.dense(), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(gram.matmat(np.eye(12)), expected, rtol=1e-12, atol=1e-15)
    assert isinstance(gram, linalg.SymmetricOperator)
    if b == c:
        assert gram.non_negative


@pytest.mark.parametrize("kind", ["positive", "mixed", "zeros", "negative", "all zero"])
@pytest.mark.parametrize("chunk", [1, 10**9])
def test_signed_and_zero_weights(kind: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are grouped by sign, gathered and chunked: none may be lost or doubled."""
    monkeypatch.setattr(blocks, "_GRAM_BYTES", chunk * 7 * 8 * 5)
    monkeypatch.setattr(blocks, "_CHUNK_BYTES", chunk * 7 * 8 * 5)
    monkeypatch.setattr(blocks, "_CHUNK_ROWS", 1)
    rng = np.random.default_rng(3)
    features = rng.standard_normal((33, 7))
    weights = {
        "positive": rng.random(33),
        "mixed": rng.standard_normal(33),
        "zeros": rng.standard_normal(33) * (rng.random(33) < 0.5),
        "negative": -rng.random(33),
        "all zero": np.zeros(33),
    }[kind]
    expected = (features.T * weights) @ features / 33
    gram = WeightedGram(weights, features)
    dense = gram.dense()
    np.testing.assert_allclose(dense, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(dense, dense.T)
    vectors = rng.standard_normal((7, 3))
    np.testing.assert_allclose(gram.matmat(vectors), expected @ vectors, rtol=1e-12, atol=1e-14)
    assert gram.non_negative == bool(np.all(weights >= 0))
    assert gram.zero == (kind == "all zero")


def test_samples_of_weight_zero_are_never_touched() -> None:
    """Features that are not numbers do no harm there, and all harm elsewhere."""
    rng = np.random.default_rng(6)
    features, weights = rng.standard_normal((40, 5)), rng.random(40)
    weights[::2] = 0.0
    expected = (features.T * weights) @ features / 40
    features[::2] = np.nan
    gram = WeightedGram(weights, features)
    np.testing.assert_allclose(gram.dense(), expected, rtol=1e-12)
    np.testing.assert_allclose(gram.matmat(np.eye(5)), expected, rtol=1e-12)
    weights[0] = 1e-9
    for spoilt in (WeightedGram(weights, features).dense(), gram.matmat(np.full((5, 1), np.nan))):
        assert np.isnan(spoilt).all()


class Counting:
    """A problem that counts its forward passes."""

    blocks = ((0, 0), (1, 1))
    passes = 0

    def forward(self, point: Any, sample: Sample) -> Any:
        """One pass for all blocks."""
        self.passes += 1
        return self

    def factors(self, matrix: Matrix, block: Any, *_: Any) -> Factors:
        """Weights by the block; features from the last pass."""
        inputs = np.ones((4, 3))
        return Factors(np.full(4, 1.0 + sum(block)), inputs, inputs)


def test_one_forward_pass_for_all_blocks() -> None:
    """A problem that shares its forward pass is asked for it once."""
    problem: Any = Counting()
    blocks.full(problem, "hessian", None, Sample(np.ones((4, 3)), np.zeros(4, dtype=np.int64)))
    assert problem.passes == 1


@pytest.mark.parametrize("matrix", MATRICES)
def test_full_matrix_is_a_sum_of_kronecker_products(matrix: Matrix) -> None:
    """``(1/n) sum W_i kron Y_i Y_i^T``, operator and dense, in many chunks of samples."""
    problem, point, sample = mixture()
    residual = problem.probabilities(point, sample.inputs)
    if matrix == "hessian":
        small = np.einsum("ib,bc->ibc", residual, np.eye(3)) - np.einsum(
            "ib,ic->ibc", residual, residual
        )
    else:
        residual = residual - np.eye(3)[sample.labels]
        small = np.einsum("ib,ic->ibc", residual, residual)
    expected = np.mean([np.kron(w, np.outer(y, y)) for w, y in zip(small, sample.inputs)], axis=0)
    full = blocks.full(problem, matrix, point, sample)
    assert full.size == 36
    np.testing.assert_allclose(full.dense(), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(full.matmat(np.eye(36)), expected, rtol=1e-12, atol=1e-15)
    top = linalg.top_eigenpairs(full, 4)
    np.testing.assert_allclose(top.eigenvalues, np.linalg.eigvalsh(expected)[::-1][:4], rtol=1e-11)
    # Wrong variant: the parameters interleaved instead of one after the other.
    order = np.arange(36).reshape(3, 12).T.ravel()
    assert not np.allclose(expected[np.ix_(order, order)], expected, atol=1e-3)


def test_full_matrix_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few samples give the same products."""
    problem, point, sample = mixture()
    full = blocks.full(problem, "g_matrix", point, sample)
    vectors = np.random.default_rng(4).standard_normal((36, 5))
    whole = full.matmat(vectors)
    monkeypatch.setattr(blocks, "_CHUNK_BYTES", 7 * 8 * 3 * 5)
    np.testing.assert_allclose(full.matmat(vectors), whole, rtol=1e-12, atol=1e-14)


def test_parameters_with_different_features() -> None:
    """Layers of different width give rectangular blocks off the diagonal."""
    rng = np.random.default_rng(5)
    sample = Sample(rng.standard_normal((40, 6)), rng.integers(0, 3, 40))
    problem: Any = TwoParameters()
    small = np.tanh(sample.inputs[:, :2])
    weights = np.cos(sample.labels * 2)
    cross = (sample.inputs.T * weights) @ small / 40
    full = blocks.full(problem, "hessian", None, sample)
    assert full.size == 8
    dense = full.dense()
    np.testing.assert_allclose(dense[:6, 6:], cross, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_allclose(full.matmat(np.eye(8)), dense, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match=r"block must be symmetric, got \(0, 1\)"):
        blocks.operator(problem, "hessian", (0, 1), None, sample)


def test_a_pair_with_features_of_its_own() -> None:
    """Where pairs of one group are missing, the blocks of other groups stay."""
    rng = np.random.default_rng(7)
    shared, own = rng.standard_normal((30, 3)), rng.standard_normal((30, 3))
    weights = rng.standard_normal((3, 30))
    factors = [
        [Factors(weights[0], shared, shared)],
        [Factors(weights[1], own, shared), Factors(weights[2], shared, shared)],
    ]
    expected = np.zeros((6, 6))
    expected[:3, :3] = (shared.T * weights[0]) @ shared / 30
    expected[3:, :3] = (own.T * weights[1]) @ shared / 30
    expected[:3, 3:] = expected[3:, :3].T
    expected[3:, 3:] = (shared.T * weights[2]) @ shared / 30
    full = blocks.FullMatrix(factors)
    np.testing.assert_allclose(full.dense(), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(full.matmat(np.eye(6)), expected, rtol=1e-12, atol=1e-15)


def test_parameters_follow_the_rows_of_the_full_matrix() -> None:
    """One parameter after the other."""
    problem, point, _ = mixture()
    np.testing.assert_array_equal(blocks.parameters(problem, point), point.x.ravel())


def test_too_large_matrices_are_refused() -> None:
    """A kd x kd matrix that does not fit must be refused with its size, not attempted."""
    problem, point, sample = mixture()
    full = blocks.full(problem, "hessian", point, sample)
    with pytest.raises(ValueError, match=r"at least 10368 bytes to form a matrix of size 36"):
        full.dense(memory_limit=10_000)
    with pytest.raises(ValueError, match="memory_limit must be at least"):
        blocks.operator(problem, "hessian", (0, 0), point, sample).dense(memory_limit=100)


def test_bad_input_is_named() -> None:
    """Every refusal names the argument."""
    problem, point, sample = mixture()
    with pytest.raises(ValueError, match="matrix must be one of"):
        blocks.operator(problem, "fisher", (0, 0), point, sample)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"block\[0\] must be"):
        blocks.operator(problem, "hessian", (7, 7), point, sample)
    with pytest.raises(ValueError, match="weights must have shape"):
        WeightedGram(np.ones(3), np.ones((4, 2)))
    with pytest.raises(ValueError, match="weights must be finite"):
        WeightedGram(np.array([np.nan]), np.ones((1, 2)))
    with pytest.raises(ValueError, match="features must have shape"):
        WeightedGram(np.ones(0), np.ones((0, 2)))
    inputs = sample.inputs
    short = [[Factors(np.ones(50), inputs, inputs)], [Factors(np.ones(50), inputs, inputs[:, :3])]]
    short[1].append(Factors(np.ones(50), inputs, inputs))
    with pytest.raises(ValueError, match=r"factors\[1\]\[0\] must have features of shapes"):
        blocks.FullMatrix(short)
