"""Points with a marked direction."""

import numpy as np
import pytest

from traindyn.problems.clouds.direction import Marked, unit
from traindyn.problems.spiked import Statistics


class Slanted(Marked):
    """A model of which the direction is all that matters."""

    direction = unit("direction", np.array([0.6, 0.0, 0.8]))


def test_a_placed_point_has_its_statistics():
    """There and back."""
    wanted = Statistics(np.array(-0.4), np.array(1.3))
    found = Slanted().statistics(Slanted().place(wanted, rng=0))
    np.testing.assert_allclose(found, wanted)


def test_a_start_is_as_long_as_one_on_average():
    """Entries of variance 1 / n."""
    squares = [np.sum(Slanted().initial(rng=seed).w ** 2) for seed in range(2000)]
    assert abs(np.mean(squares) - 1.0) < 5 * np.sqrt(2 / 3 / 2000)


def test_a_longer_vector_is_refused():
    """By its name and length."""
    with pytest.raises(ValueError, match="spike must be a unit vector, got length 5"):
        unit("spike", [3.0, 4.0])
