"""The bidiagonal model against matrices, in law; moments of the entries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from traindyn.laws import ENTRIES, wishart_bidiagonal

REPLICAS = 3000


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_are_standardised(name: str) -> None:
    """Mean, variance and fourth moment."""
    law = ENTRIES[name]
    x = law.draw(np.random.default_rng(0), (400_000,))
    assert abs(x.mean()) < 0.01
    if np.isfinite(law.kurtosis):
        assert x.var() == pytest.approx(1, abs=0.02)
        assert np.mean(x**4) == pytest.approx(law.kurtosis, rel=0.15)


@pytest.mark.parametrize(("d", "n"), [(4, 7), (5, 5), (7, 4), (1, 3), (3, 1)])
def test_bidiagonal_has_the_law_of_the_matrix(d: int, n: int) -> None:
    """Extreme eigenvalues, trace of the inverse, weight of the first coordinate."""
    g = np.random.default_rng(1).standard_normal((REPLICAS, d, n))
    factor = wishart_bidiagonal(d, n, REPLICAS, rng=2)
    main, off = factor.tridiagonal()
    gram = g @ g.transpose(0, 2, 1)
    dense = np.zeros((REPLICAS, main.shape[1], main.shape[1]))
    index = np.arange(main.shape[1])
    dense[:, index, index] = main
    dense[:, index[1:], index[:-1]] = dense[:, index[:-1], index[1:]] = off

    def first(matrix: np.ndarray) -> np.ndarray:
        return np.linalg.inv(matrix + np.eye(matrix.shape[-1]))[:, 0, 0]

    pairs = [
        (np.linalg.eigvalsh(gram)[:, -1], factor.extreme_eigenvalues()),
        (first(gram), first(dense)),
    ]
    if d <= n:
        pairs.append((np.trace(np.linalg.inv(gram), axis1=1, axis2=2), factor.inverse_trace()))
        pairs.append((np.linalg.eigvalsh(gram)[:, 0], factor.extreme_eigenvalues(largest=False)))
    for matrix, reduced in pairs:
        assert ks_2samp(matrix, reduced).pvalue > 1e-5
    # Wrong variant: one degree of freedom too many.
    wrong = wishart_bidiagonal(d, n + 1, REPLICAS, rng=2).extreme_eigenvalues()
    assert ks_2samp(pairs[0][0], wrong).pvalue < 1e-5


def test_count_below_and_trace_agree_with_eigenvalues() -> None:
    """Both come from recursions."""
    factor = wishart_bidiagonal(30, 50, 5, rng=3)
    main, off = factor.tridiagonal()
    dense = [np.diag(a) + np.diag(b, 1) + np.diag(b, -1) for a, b in zip(main, off)]
    values = np.linalg.eigvalsh(dense)
    np.testing.assert_array_equal(factor.count_below(40.0), (values < 40).sum(axis=1))
    np.testing.assert_allclose(factor.inverse_trace(), (1 / values).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(factor.extreme_eigenvalues(), values[:, -1], rtol=1e-12)
    tall = wishart_bidiagonal(50, 30, 2, rng=3)
    # 31 rows: one eigenvalue is zero, up to rounding
    np.testing.assert_array_equal(tall.count_below(1e-9), 1)
    with pytest.raises(ValueError, match="the factor must be square"):
        tall.inverse_trace()
