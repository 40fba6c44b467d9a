"""Steps at which the loss rises."""

import pytest

from companion.catapults.features.spikes import spikes


def test_spikes_are_rises_beyond_a_factor():
    """The factor itself is no rise; with factor one every increase counts."""
    losses = [1.0, 1.5, 3.1, 3.0, 3.2]
    assert spikes(losses, factor=1.5).tolist() == [1]
    assert spikes(losses, factor=1.0).tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match="factor must be at least 1"):
        spikes([1.0], factor=0.5)
