"""Exact null law of the two-sample Kolmogorov–Smirnov distance."""

from __future__ import annotations

from functools import lru_cache
from math import gcd, log, sqrt

import numpy as np
from numpy.typing import NDArray


def _below(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many of either set of sorted samples are at most each of all of them."""
    points = np.concatenate([first, second])
    one, other = (np.searchsorted(x, points, side="right") for x in (first, second))
    return one, other


def distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> int:
    """Return ``n m sup|F_n - G_m|`` as an exact integer, for sorted samples (n,) and (m,)."""
    one, other = _below(first, second)
    return int(np.abs(one * second.size - other * first.size).max())


def shares(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[float, float]:
    """Return F_n and G_m where they differ most, for sorted samples (n,) and (m,)."""
    one, other = _below(first, second)
    at = int(np.argmax(np.abs(one * second.size - other * first.size)))
    return float(one[at] / first.size), float(other[at] / second.size)


def tail(height: int, n: int, m: int) -> float:
    """Probability that ``n m sup|F_n - G_m| >= height`` for one continuous law.

    The pooled order is a uniform lattice path from (0, 0) to (n, m), and the distance is
    reached when it leaves the band ``|i m - j n| < height``. Going back in time along a
    uniform path through (i, j), the last step was horizontal with probability i/(i+j), so

        Q(i, j) = i/(i+j) Q(i-1, j) + j/(i+j) Q(i, j-1)   inside the band, 1 outside.

    All terms are positive: small tails keep their relative precision. With ties the test
    that uses this law is conservative.

    Examples
    --------
    >>> from claimbook.smirnov import tail
    >>> tail(4, 2, 2)  # complete separation: 2 of the 6 orders
    0.3333333333333333
    """
    # A diagonal i + j = s is inside the band for i in [low, high]; beyond it Q is one.
    previous: NDArray[np.float64] = np.zeros(1)
    first = 0  # the value of i at previous[0]
    for s in range(1, n + m + 1):
        # |i m - (s - i) n| < height  <=>  s n - height < i (n + m) < s n + height
        low = max(0, s - m, (s * n - height) // (n + m) + 1)
        high = min(n, s, -((-s * n - height) // (n + m)) - 1)
        if low > high:
            return 1.0
        i = np.arange(low, high + 1)
        padded = np.ones(high - low + 2)  # Q(s-1) at i = low-1 .. high
        start, stop = max(first, low - 1), min(first + previous.size - 1, high)
        padded[start - low + 1 : stop - low + 2] = previous[start - first : stop - first + 1]
        previous = (i * padded[:-1] + (s - i) * padded[1:]) / s
        first = low
    return float(previous[0])


@lru_cache(maxsize=64)
def critical(level: float, n: int, m: int) -> int:
    """Return the smallest height whose tail is at most `level` (``n m + 1`` if none is)."""
    unit = gcd(n, m)  # the distance is a multiple of it
    most = n * m // unit
    # Bracket around the asymptotic value (from above, as a rule), bisect over the lattice.
    guess = sqrt(0.5 * log(2 / level) * (n + m) / (n * m)) * n * m / unit
    below, above = int(0.9 * guess), min(most, max(1, round(guess)))
    if below >= most or tail(below * unit, n, m) <= level:
        below = 0
    while above < most and tail(above * unit, n, m) > level:
        below, above = above, min(most, above + max(1, above // 8))
    if tail(above * unit, n, m) > level:
        return n * m + 1
    while above - below > 1:
        middle = (below + above) // 2
        if tail(middle * unit, n, m) > level:
            below = middle
        else:
            above = middle
    return above * unit
