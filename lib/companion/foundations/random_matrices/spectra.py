"""Eigenvalues of sample covariances, and how far they are from a law."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["sample_covariance_eigenvalues", "spectral_distance"]


def sample_covariance_eigenvalues(samples: ArrayLike) -> Array:
    r"""All eigenvalues of :math:`\frac1n X^T X`, increasing, from the smaller Gram matrix.

    Parameters
    ----------
    samples : array_like, shape (n, d)
        One sample per row.

    Returns
    -------
    ndarray, shape (d,)
        At least ``d - n`` exact zeros if there are fewer samples than dimensions.
    """
    x = _validate.finite("samples", samples, shape=(None, None))
    n, d = x.shape
    if min(n, d) == 0:
        raise ValueError(f"samples must not be empty, got shape {x.shape}")
    gram = (x @ x.T if n < d else x.T @ x) / n
    values = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    return np.concatenate([np.zeros(d - values.size), values])


def spectral_distance(eigenvalues: ArrayLike, law: Any) -> float:
    r"""Kolmogorov distance of a spectral measure from a law, :math:`\sup_x |F_d(x) - F(x)|`.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Zeros must be exact where the law has an atom there.
    law : object
        With a method ``cdf``, continuous but for an atom at zero, on non-negative numbers.

    Examples
    --------
    >>> from companion.foundations.random_matrices.spectra import spectral_distance
    >>> from traindyn.laws import MarchenkoPastur
    >>> round(spectral_distance([0.0, 0.0, 4.0, 8.0], MarchenkoPastur(2.0)), 3)
    0.441
    """
    values = np.sort(_validate.finite("eigenvalues", eigenvalues, shape=(None,)))
    if values.size == 0 or values[0] < 0:
        raise ValueError("eigenvalues must be non-negative, and there must be at least one")
    _validate.providing("law", law, "cdf")
    share = np.arange(values.size + 1) / values.size
    expected = law.cdf(values)
    zeros = int(np.count_nonzero(values == 0))
    at_zero = abs(share[zeros] - float(law.cdf(0.0)))
    gaps = np.abs(np.stack([expected - share[1:], expected - share[:-1]]))[:, zeros:]
    return float(max(at_zero, gaps.max(initial=0.0)))
