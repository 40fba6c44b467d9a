"""Eigenvalues of sample covariances, and their distance from a law."""

import numpy as np
import pytest

from companion.foundations.random_matrices.spectra import (
    sample_covariance_eigenvalues,
    spectral_distance,
)
from traindyn.laws import MarchenkoPastur


@pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
def test_eigenvalues_of_a_sample_covariance(shape: tuple[int, int]) -> None:
    """From either Gram matrix, with exact zeros."""
    x = np.random.default_rng(4).standard_normal(shape)
    found = sample_covariance_eigenvalues(x)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(x.T @ x / shape[0]), atol=1e-12)
    assert np.count_nonzero(found == 0) == max(0, shape[1] - shape[0])
    with pytest.raises(ValueError, match="samples must not be empty"):
        sample_covariance_eigenvalues(np.zeros((0, 3)))


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_spectral_distance(ratio: float) -> None:
    """Quantiles are half a step away; the inverted ratio and a shift of the atom are seen."""
    law, d = MarchenkoPastur(ratio), 40
    share = (np.arange(d) + 0.5) / d
    assert spectral_distance(law.quantile(share), law) == pytest.approx(0.5 / d, abs=1e-9)
    assert spectral_distance(law.quantile(share), MarchenkoPastur(1 / ratio)) > 0.2
    assert spectral_distance(law.quantile(share) + 0.1, law) > 0.05
    with pytest.raises(ValueError, match="eigenvalues must be non-negative"):
        spectral_distance([-1.0], law)
