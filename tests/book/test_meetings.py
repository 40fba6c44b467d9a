"""What the prose says where two sources meet, beyond the claims of their chapters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from companion.sample_complexity.information_exponent.model import Statistics
from companion.sample_complexity.information_exponent.models import OnlinePCA
from companion.sample_complexity.information_exponent.population import critical_step
from traindyn.laws import MarchenkoPastur


def final_overlap(signal: float, delta: float) -> float:
    """Squared overlap at which the effective dynamics of online PCA ends."""
    problem = OnlinePCA(1000, signal)

    def drift(m: float) -> float:
        return float(np.asarray(problem.drift(Statistics(np.array(m)), c_delta=delta).m))

    return float(brentq(drift, 1e-3, 1 - 1e-9)) ** 2


@pytest.mark.parametrize(("signal", "delta"), [(2.0, 0.5), (1.3, 1.0), (0.7, 0.2), (5.0, 4.0)])
def test_online_pca_is_the_spectrum_of_the_samples_it_remembers(
    signal: float, delta: float
) -> None:
    """At step size delta/N SGD ends with the overlap of N/(delta lambda) samples."""
    law = MarchenkoPastur(ratio=delta * signal)
    assert final_overlap(signal, delta) == pytest.approx(law.overlap(signal), rel=1e-6)
    # With as many samples as the step size alone suggests the two differ.
    other = MarchenkoPastur(ratio=delta)
    assert abs(other.overlap(signal) - law.overlap(signal)) > 1e-2


@pytest.mark.parametrize("signal", [0.4, 1.0, 3.0])
def test_both_lose_the_spike_at_the_same_step_size(signal: float) -> None:
    """The largest step size of SGD is that at which the outlier joins the bulk."""
    delta = critical_step(OnlinePCA(1000, signal))
    assert MarchenkoPastur(ratio=0.999 * delta * signal).is_supercritical(signal)
    assert not MarchenkoPastur(ratio=1.001 * delta * signal).is_supercritical(signal)
