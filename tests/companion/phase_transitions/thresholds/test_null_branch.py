"""Thresholds of gradient descent on the null branch, against mean-field theory."""

import numpy as np
import pytest

from companion.phase_transitions.thresholds.null_branch import null_branch_curve
from traindyn.problems.multi_index import SQUARED, MultiIndex


def test_null_branch_agrees_with_the_mean_field_equations():
    """eta t = 0 and 5, d = 300: 10 %, for O(1/d) and the error; a later time is NaN."""
    options = {"step_size": 0.5, "rng": 3}
    found = null_branch_curve(
        MultiIndex(), [0, 10, 40], [1.2, 1.6, 2.2, 3.4, 4.4, 5.5], dimension=300, **options
    )
    assert found.values[0] == pytest.approx(1.693, rel=0.1)
    assert found.values[1] == pytest.approx(3.84, rel=0.1)
    assert np.all(found.errors[:2] > 0) and np.all(found.errors[:2] < 0.3)
    assert np.isnan(found.values[2])
    # The same whatever the number of workers, and whichever deltas are asked for.
    again = null_branch_curve(
        MultiIndex(), [0], [1.2, 1.6, 2.2], dimension=300, workers=2, **options
    )
    np.testing.assert_array_equal(again.statistics[:, 0], found.statistics[:3, 0])


@pytest.mark.parametrize(
    ("loss", "deltas", "message"),
    [
        (None, [1.0, 2.0], "sample_ratios must be at least three"),
        (SQUARED, [1.0, 2.0, 3.0], "no left edge"),
    ],
)
def test_bad_input_is_refused(loss, deltas, message):
    """The argument is named, with what is allowed."""
    problem = MultiIndex() if loss is None else MultiIndex(loss=loss)
    with pytest.raises(ValueError, match=message):
        null_branch_curve(problem, [1], deltas, dimension=20, step_size=0.1, rng=0)
