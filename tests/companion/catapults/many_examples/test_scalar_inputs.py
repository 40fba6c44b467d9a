"""Networks with one input each: the scale of the top eigenvalue."""

from __future__ import annotations

import numpy as np
import pytest

from companion.catapults.many_examples.scalar_inputs import top_kernel_scale


@pytest.mark.parametrize("inputs", [[2.0, -1.0, 1.0], [0.3, -2.0, -1.5, 0.1], [1.0, 2.0]])
def test_top_eigenvalue_of_a_wide_network(inputs):
    """The scale of ZHU Proposition B.11.2 could be that of all inputs, or half of it."""
    width, x = 40_000, np.array(inputs)
    first, second = np.random.default_rng(1).normal(size=(2, width))
    active = (x[:, None] * first > 0) * x[:, None]
    kernel = (
        (active * first) @ (active * first).T + (active * second) @ (active * second).T
    ) / width
    # Each entry is a mean over neurons of a variable with standard deviation sqrt(5) / 2 or so.
    error = 5 * 1.5 * np.sum(x**2) / np.sqrt(width)
    assert abs(np.linalg.eigvalsh(kernel)[-1] - top_kernel_scale(x)) < error
