r"""Whether two measurements of the same runs go together: Kendall's pairs, with their exact law.

Runs come in groups (one problem, several ways to train); within a group every pair of runs is
ordered by either measurement, and one counts the pairs on which the orders agree. If within each
group one order said nothing about the other, all orders being equally likely, the count of a
group of k would be a sum of independent uniform variables on {0, ..., j - 1}, j = 1, ..., k, and
counts of groups add up.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traindyn import _validate
from traindyn._types import Array

__all__ = ["Association", "association", "relabelled"]


class Association(NamedTuple):
    """How two orders agree.

    Attributes
    ----------
    tau : float
        Kendall's: share of pairs that agree less share of pairs that disagree.
    p_value : float
        Probability, without any relation, of at least as many pairs as claimed.
    """

    tau: float
    p_value: float


def association(first: ArrayLike, second: ArrayLike, *, increasing: bool) -> Association:
    """Test that two measurements increase together, or against each other, within groups.

    Parameters
    ----------
    first, second : array_like, shape (k,) or (groups, k)
        At least two runs in a group; ``first`` may be one row for all groups.
    increasing : bool
        What is claimed: that they rise together (True), or that one falls as the other rises.

    Returns
    -------
    Association
        Pairs with a tie count as against the claim in the p-value, which is then too large
        rather than too small, and as neither in tau.

    Raises
    ------
    ValueError
        If shapes do not match or a group has fewer than two runs.

    Examples
    --------
    Three runs in the claimed order, in either of two groups: one in 36.

    >>> from companion.catapults.optimisers.association import association
    >>> found = association([1, 2, 3], [[5.0, 4.0, 1.0], [0.3, 0.2, 0.1]], increasing=False)
    >>> found.tau, round(1 / found.p_value)
    (-1.0, 36)
    """
    x, y = _groups(first, second)
    groups, k = y.shape
    i, j = np.triu_indices(k, 1)
    signs = np.sign((x[:, i] - x[:, j]) * (y[:, i] - y[:, j]))
    agree = int(np.sum(signs == (1 if increasing else -1)))
    law = np.ones(1)
    for _ in range(groups):
        for size in range(2, k + 1):
            law = np.convolve(law, np.full(size, 1 / size))
    return Association(float(signs.mean()), float(law[agree:].sum()))


def relabelled(first: ArrayLike, second: ArrayLike, *, increasing: bool) -> int:
    """Count the ways to exchange the columns of one measurement that relate as well as what is.

    The columns are ways to train, the same in every group. Where some always have the larger of
    either measurement, groups are no independent evidence on whether the two go together among ways
    to train; exchanging whole columns keeps what groups have in common. Over the factorial of k the
    count is an exact p-value if all columns were exchangeable.

    Parameters
    ----------
    first, second : array_like, shape (k,) or (groups, k)
        Two to eight runs in a group; ``first`` may be one row for all groups.
    increasing : bool
        As in :func:`association`.

    Returns
    -------
    int
        Of the k! permutations of the columns of `first` those, with the identity among them, under
        which the sum over groups of Kendall's tau is at least as far on the claimed side.

    Raises
    ------
    ValueError
        If shapes do not match, or a group has fewer than two or more than eight runs.

    Examples
    --------
    In either of two groups the order of three is opposite: one in six, not one in 36.

    >>> from companion.catapults.optimisers.association import relabelled
    >>> relabelled([1, 2, 3], [[5.0, 4.0, 1.0], [0.3, 0.2, 0.1]], increasing=False)
    1
    """
    x, y = _groups(first, second)
    if y.shape[1] > 8:
        raise ValueError(f"second must have at most eight runs in a group, got {y.shape[1]}")
    signs = (np.sign(each[:, :, None] - each[:, None, :]) for each in np.broadcast_arrays(x, y))
    # Entry (i, j, k, l): over the groups, pair (i, j) of the first with pair (k, l) of the second.
    together = np.einsum("gij,gkl->ijkl", *signs) * (1 if increasing else -1)
    orders = np.array(list(permutations(range(y.shape[1]))))
    i, j = np.triu_indices(y.shape[1], 1)
    sums = together[orders[:, i], orders[:, j], i, j].sum(axis=1)
    return int(np.sum(sums >= sums[0]))


def _groups(first: ArrayLike, second: ArrayLike) -> tuple[Array, Array]:
    """Return both as tables with a row for each group, the first perhaps with one for all."""
    y = np.atleast_2d(_validate.finite("second", second))
    x = np.atleast_2d(_validate.finite("first", first))
    if y.ndim != 2 or x.shape not in (y.shape, (1, y.shape[1])):
        raise ValueError(
            "first and second must have shape (k,) or (groups, k) and match, "
            f"got {np.shape(first)} and {np.shape(second)}"
        )
    if y.shape[1] < 2:
        raise ValueError(f"second must have at least two runs in a group, got {y.shape[1]}")
    return x, y
