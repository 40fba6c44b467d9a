"""Averages of pixels."""

import numpy as np
import pytest

from traindyn.data import pooled


def test_blocks_are_averaged():
    """Neighbouring pixels are averaged, and pixels that never vary are dropped."""
    images = np.arange(32.0).reshape(2, 16)
    np.testing.assert_allclose(pooled(images, side=4)[0], [2.5, 4.5, 10.5, 12.5])
    assert pooled(np.ones((3, 16)), side=4).shape == (3, 0)


def test_refuses_bad_inputs():
    """Odd sides, and images of another size."""
    with pytest.raises(ValueError, match="side must be even"):
        pooled(np.ones((2, 9)), side=3)
    with pytest.raises(ValueError, match="inputs must have shape"):
        pooled(np.ones((2, 9)), side=4)
