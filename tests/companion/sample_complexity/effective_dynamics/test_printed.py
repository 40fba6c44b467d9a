"""The printed radius of spiked matrix PCA."""

import numpy as np

from companion.sample_complexity.effective_dynamics.printed import printed_radius
from traindyn.problems.spiked import SpikedTensor, Statistics
from traindyn.problems.spiked.matrix import solution


def test_printed_radius_solves_the_printed_equation_and_not_the_right_one():
    """Its slope by differences, and the closed solution at m = 0 (MDL Section 12.4.2)."""
    h, times = 1e-6, np.linspace(0.01, 0.4, 9)
    for start in (0.4, 1.3):
        q = printed_radius(start, times)
        slope = (printed_radius(start, times + h) - printed_radius(start, times - h)) / (2 * h)
        assert np.abs(slope + 8 * q * (q**2 - 1)).max() < 1e-7
        begin = Statistics(np.zeros(()), np.array(start))
        right = solution(SpikedTensor(2, 100, signal=0.5), begin, times, c_delta=1.0)
        slope = -8 * right.statistics.r2 * (right.statistics.r2 - 1)
        drift = SpikedTensor(2, 100, signal=0.5).drift(right.statistics, c_delta=1.0).r2
        assert np.abs(slope - drift).max() < 1e-12
        assert np.abs(q - right.statistics.r2).max() > 0.05
