"""Kendall's test in groups: against enumeration, an independent library, and its level."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from companion.catapults.optimisers.association import association, relabelled


@pytest.mark.parametrize("increasing", [True, False])
def test_one_group(increasing):
    """SciPy's exact test of Kendall's tau."""
    x, y = np.random.default_rng(0).standard_normal((2, 9))
    found = association(x, y, increasing=increasing)
    side = "greater" if increasing else "less"
    other = stats.kendalltau(x, y, alternative=side, method="exact")
    np.testing.assert_allclose(found, [other.statistic, other.pvalue], rtol=1e-12)


def test_two_groups():
    """All pairs of orders of four runs."""
    orders = [np.array(order) for order in permutations(range(4))]
    x = np.array([[0, 1, 2, 3], [2, 0, 1, 3]])
    taus = [association(x, pair, increasing=True).tau for pair in product(orders, orders)]
    y = [orders[3], orders[10]]
    found = association(x, y, increasing=True)
    share = np.mean(np.array(taus) >= found.tau - 1e-12)
    assert found.p_value == pytest.approx(share, rel=1e-12)


def test_ties_count_against_the_claim():
    """Neither claim gains from a tie; tau leaves it out."""
    x, y = [1.0, 2.0, 3.0], [1.0, 1.0, 2.0]
    up = association(x, y, increasing=True)
    assert up.tau == pytest.approx(2 / 3)
    assert up.p_value == pytest.approx(3 / 6)
    assert association(x, y, increasing=False).p_value == pytest.approx(1.0)


def test_level():
    """Without a relation the p-value falls below a level at most as often as the level says."""
    rng = np.random.default_rng(1)
    values = [
        association(*rng.standard_normal((2, 3, 4)), increasing=True).p_value for _ in range(2000)
    ]
    below = int(np.sum(np.array(values) <= 0.1))
    assert stats.binom.sf(below - 1, 2000, 0.1) > 1e-6
    assert below > 100


def test_one_row_for_all_groups():
    """A common order is repeated."""
    y = np.random.default_rng(2).standard_normal((3, 5))
    once = association(np.arange(5), y, increasing=True)
    assert once == association(np.tile(np.arange(5), (3, 1)), y, increasing=True)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], "must have shape"),
        (np.zeros((2, 3)), np.zeros((3, 3)), "must have shape"),
        (np.zeros((1, 3)), np.zeros((1, 3, 1)), "must have shape"),
        ([1.0], [1.0], "at least two runs"),
        ([1.0, np.nan], [1.0, 2.0], "first must be finite"),
    ],
)
def test_wrong_arguments(first, second, message):
    """Errors name the argument."""
    with pytest.raises(ValueError, match=message):
        association(first, second, increasing=True)


def test_relabelled_is_an_exact_test_of_whole_columns():
    """Against every order of the columns in turn, whatever the groups have in common."""
    rng = np.random.default_rng(3)
    x = np.arange(4) + 0.5 * rng.standard_normal((3, 4))
    y = -np.arange(4) + 2 * rng.standard_normal((3, 4))
    seen = association(x, y, increasing=False).tau
    every = [association(x[:, list(o)], y, increasing=False).tau for o in permutations(range(4))]
    assert relabelled(x, y, increasing=False) == int(np.sum(np.array(every) <= seen + 1e-12))
    assert 1 < relabelled(x, y, increasing=False) < 24


def test_more_groups_of_one_order_are_no_more_columns():
    """Twenty groups with one order are one column order in six, whatever their joint p-value."""
    y = np.tile([3.0, 2.0, 1.0], (20, 1))
    assert relabelled(np.arange(3), y, increasing=False) == 1
    assert association(np.arange(3), y, increasing=False).p_value < 1e-12


def test_relabelled_refuses_many_columns():
    """Nine columns have too many orders."""
    with pytest.raises(ValueError, match="at most eight runs"):
        relabelled(np.arange(9.0), np.arange(9.0), increasing=True)
    with pytest.raises(ValueError, match="at least two runs"):
        relabelled([1.0], [1.0], increasing=True)
