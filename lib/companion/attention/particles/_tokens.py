r"""The checks that tokens and their masses are put to."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["group_masses", "unit_tokens"]

_UNIT = 1e-8


def unit_tokens(tokens: ArrayLike, *, dimension: int | None = None, least: int = 0) -> Array:
    """Return tokens as a finite array of unit vectors, shape (n, d), at least so many."""
    x = np.ascontiguousarray(_validate.finite("tokens", tokens, shape=(None, dimension)))
    if len(x) < least:
        raise ValueError(f"tokens must be at least {least}, got {len(x)}")
    worst = float(np.abs(np.linalg.norm(x, axis=1) - 1).max(initial=0.0))
    if worst > _UNIT:
        raise ValueError(f"tokens must have norm one, got one that is off by {worst:.3g}")
    return x


def group_masses(masses: ArrayLike | None, count: int) -> Array:
    """Return positive masses of sum one, a copy, shape (count,); None stands for equal ones."""
    if masses is None:
        return np.full(count, 1 / count)
    share = _validate.probability_vector("masses", masses).copy()
    if share.size != count:
        raise ValueError(f"masses must have shape ({count},), got {share.shape}")
    return share
