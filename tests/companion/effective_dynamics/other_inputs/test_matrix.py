"""Spiked matrices with any noise: mean and covariance of a step do not depend on the law."""

import numpy as np
import pytest

from companion.effective_dynamics.other_inputs.matrix import SpikedMatrix
from traindyn.problems import SpikedTensor
from traindyn.problems.clouds.laws import Law
from traindyn.problems.spiked import Statistics


@pytest.mark.parametrize("law", [Law("signs"), Law("bernoulli", 0.2)])
def test_moments_of_a_step(law):
    """Those of Gaussian matrices, with the spike on one coordinate."""
    n, step = 30, 0.4 / 30
    here = Statistics(np.array(0.9), np.array(0.7))
    problem, plain = SpikedMatrix(np.eye(n)[0], signal=1.5, law=law), SpikedTensor(2, n, signal=1.5)
    point, kernel = problem.place(here, rng=0), problem.direct_kernel()
    rng, seen = np.random.default_rng(1), []
    for _ in range(20_000):
        state = (np.array(point.w),)
        kernel.step(state, kernel.constants, rng, step)
        seen.append(problem.statistics(type(point)(*state)))
    seen = np.array(seen)
    moments = plain.step_moments(here, step_size=step)
    error = seen.std(axis=0) / np.sqrt(len(seen))
    assert np.all(np.abs(seen.mean(axis=0) - np.array(moments.mean)) <= 5 * error)
    np.testing.assert_allclose(np.cov(seen.T), moments.covariance, rtol=0.06, atol=1e-5)


def test_refuses_bad_fields():
    """Spike and signal are named."""
    with pytest.raises(ValueError, match="spike must be a unit vector"):
        SpikedMatrix(np.ones(4), signal=1.0)
    with pytest.raises(ValueError, match="signal"):
        SpikedMatrix(np.eye(4)[0], signal=-1.0)
    assert SpikedMatrix(np.eye(4)[0], signal=1.0).initial(rng=0).w.shape == (4,)
