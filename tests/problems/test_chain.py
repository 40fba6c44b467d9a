"""States as vectors."""

import numpy as np
import pytest

from traindyn.problems import KGaussianMixture, SpikedTensor, chain
from traindyn.problems.spiked import Point


def test_a_state_is_one_vector():
    """Kernels write to the arrays, recorders read the vector: both must be the same memory."""
    problem = KGaussianMixture.orthonormal(3, 20, precision=5.0, ridge=0.1)
    begin = chain.reduced(problem, problem.initial_statistics())
    vector, state = begin.state()
    assert vector.size == sum(array.size for array in begin.start)
    for array, source in zip(state, begin.start, strict=True):
        assert np.shares_memory(array, vector) and array.flags.c_contiguous
        np.testing.assert_array_equal(array, source)
    vector += 1.0
    for array, source in zip(state, begin.start, strict=True):
        np.testing.assert_array_equal(array, source + 1.0)  # and the start is left alone


def test_many_states_are_seen_one_by_one():
    """Statistics of stacked states, at both levels."""
    problem = KGaussianMixture.orthonormal(3, 20, precision=5.0, ridge=0.1)
    point = problem.initial(rng=0)
    for begin in (
        chain.direct(problem, point),
        chain.reduced(problem, problem.statistics(point)),
    ):
        vector, _ = begin.state()
        seen = begin.observe(begin.arrays(np.stack([vector, 2 * vector])))
        for i, scale in enumerate((1.0, 2.0)):
            expected = problem.statistics(type(point)(scale * point.x))
            np.testing.assert_allclose(seen.m[i], expected.m, atol=1e-12)
            np.testing.assert_allclose(seen.R_perp[i], expected.R_perp, atol=1e-12)


def test_bad_starts_are_refused():
    """Before any step."""
    problem = SpikedTensor(2, 5, signal=1.0)
    with pytest.raises(ValueError, match=r"point\.x must have shape \(5\), got \(4,\)"):
        chain.direct(problem, Point(np.zeros(4)))
    with pytest.raises(ValueError, match="dimension must be greater than 2"):
        chain.reduced(SpikedTensor(2, 2, signal=1.0), problem.initial_statistics())
