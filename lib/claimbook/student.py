"""The level that a t-test has on skewed samples.

Student's law is exact for Gaussian samples. On skewed ones a test at a nominal level of 1e-6
rejects true means far more often: at n = 24 and chi-square samples with one degree of freedom,
in 1 of 400 tests. The checks of the ledger therefore report the level that their test has when
the samples follow a *gamma law* with the skewness found. For gamma samples the sum is
independent of the proportions, so that the probability given the proportions is a value of the
gamma distribution function, and its mean over a few thousand proportions is accurate far below
the smallest level used.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

import numpy as np
from scipy import special, stats

from claimbook._validate import Array

_DRAWS = 1000
_MOST = 500  # samples; more of them only make the level more nearly nominal
_STEP = 0.25  # skewness is rounded up to multiples of it
_STEEPEST = 6.0
FEW = 8  # fewer samples do not show their skewness
_LEAST = 1.0  # skewness assumed of so few


def skewness(data: Array) -> float:
    """Skewness of independent samples along the first axis, pooled over elements.

    Root mean square over the elements of the adjusted Fisher-Pearson coefficient, and 3/sqrt(n)
    of it more, for few samples of a skewed law show less than its skewness; at least 1 where
    fewer than 8 samples cannot show it.

    Examples
    --------
    >>> import numpy as np
    >>> from claimbook.student import skewness
    >>> x = np.random.default_rng(1).standard_exponential((5000, 3))
    >>> 1.8 < skewness(x) < 2.4
    True
    """
    n = len(data)
    columns = data.reshape(n, -1)
    # Third powers are in range in a unit of the samples' own, by a power of two: no digit changes.
    columns = np.ldexp(columns, -np.frexp(np.abs(columns).max(initial=0.0))[1])
    varying = columns[:, columns.std(axis=0) > 1e-12 * np.abs(columns).max(axis=0)]
    if n < 3 or varying.size == 0:
        return _LEAST
    found = stats.skew(varying, axis=0, bias=False)
    pooled = float(np.sqrt(np.mean(found**2))) * (1 + 3 / sqrt(n))
    return max(pooled, _LEAST) if n < FEW else pooled


def tail(n: int, critical: float, skew: float) -> tuple[float, float]:
    """Probabilities that Student's ratio of gamma samples is below -critical, above critical.

    Parameters
    ----------
    n : int
        Number of samples, at least 2.
    critical : float
        Positive.
    skew : float
        Skewness of the samples, non-negative (for negative skewness exchange the two).

    Returns
    -------
    tuple of float

    Examples
    --------
    Nearly Gaussian samples have nearly the nominal level, skewed ones a hundred times it:

    >>> from scipy import stats
    >>> from claimbook.student import tail
    >>> critical = stats.t.isf(1e-4, 23)
    >>> low, high = tail(24, critical, 0.0)
    >>> 0.5e-4 < low < 2e-4 and 0.5e-4 < high < 2e-4
    True
    >>> tail(24, critical, 2.0)[0] > 2e-3
    True
    """
    steps = min(np.ceil(skew / _STEP - 1e-9), _STEEPEST / _STEP)
    return _tail(min(n, _MOST), float(critical), float(steps * _STEP))


def below(critical: float, freedom: float, margin: float) -> float:
    """Probability that (Z + margin) / sqrt(V / freedom) stays at or below `critical`.

    Z is normal and V chi-squared: the ratio is Student's, of samples whose mean is off by `margin`
    standard errors. Integrates over the quantiles of the noise Z; the tail in V is a regularised
    gamma function, accurate where it is tiny.

    Parameters
    ----------
    critical : float
        Positive.
    freedom : float
        Degrees of freedom; infinite if the standard error is known.
    margin : float
        In standard errors, infinite ones included.

    Returns
    -------
    float

    Examples
    --------
    >>> from claimbook.student import below
    >>> round(below(5.0, 1000.0, 5.0), 2), below(5.0, 1000.0, 12.0) < 1e-9
    (0.5, True)
    """
    if not np.isfinite(margin):
        return float(margin < 0)
    if not np.isfinite(freedom):
        return float(stats.norm.cdf(critical - margin))
    z, weights = _NOISE
    shifted = np.maximum(z + margin, 0.0)
    probabilities = special.chdtrc(freedom, freedom * (shifted / critical) ** 2)
    return min(1.0, float(weights @ probabilities))


def _normal_rule(half: float, order: int) -> tuple[Array, Array]:
    """Gauss–Legendre rule on [-half, half], weighted with the normal density."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return half * nodes, half * weights * stats.norm.pdf(half * nodes)


_NOISE = _normal_rule(12.0, 400)  # leaves out a mass of 4e-33


@lru_cache(maxsize=4096)
def _tail(n: int, critical: float, skew: float) -> tuple[float, float]:
    if skew == 0.0:
        one = float(stats.t.sf(critical, n - 1))
        return one, one
    shape = 4 / skew**2
    proportions = np.random.default_rng(0).standard_gamma(shape, (_DRAWS, n))
    proportions /= proportions.sum(axis=1, keepdims=True)
    # (S/n - shape) / (S sd(p) / sqrt n) beyond the critical value, as a condition on the sum S.
    spread = critical * proportions.std(axis=1, ddof=1) / sqrt(n)
    nominal = float(stats.t.sf(critical, n - 1))
    low = special.gammainc(n * shape, shape / (1 / n + spread))
    room = 1 / n - spread
    high = np.where(
        room > 0, special.gammaincc(n * shape, shape / np.where(room > 0, room, 1.0)), 0.0
    )
    # Of few samples, proportions that decide a tiny level are too rare to be drawn.
    least = nominal if n < FEW else 0.0
    return max(nominal, float(low.mean())), max(least, float(high.mean()))
