"""Many single steps from one point, to be compared with a drift."""

from __future__ import annotations

from typing import Any

import numpy as np

from traindyn._types import Array


def moved(problem: Any, point: Any, step_size: float, count: int, seed: int) -> Array:
    """Statistics after one step in full dimension from the same point, of many draws."""
    kernel, rng = problem.direct_kernel(), np.random.default_rng(seed)
    seen = []
    for _ in range(count):
        state = tuple(np.array(part) for part in point)
        kernel.step(state, kernel.constants, rng, step_size)
        found = problem.statistics(type(point)(*state))
        seen.append(np.concatenate([np.ravel(part) for part in found]))
    return np.array(seen)
