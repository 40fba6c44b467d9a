"""Statistical checks: each states its null law and the level that it has.

If the claim is true, a check here fails with probability at most its level, whatever the number
of elements compared: simultaneous comparisons are Bonferroni-corrected, so each of m elements is
tested at the nominal level (default 1e-6) divided by m. Exact tests have the nominal level;
t-tests have the level that :mod:`claimbook.student` finds for samples of the skewness
observed, which for few skewed samples is much larger, and the evidence reports that one. For
such samples the level of :func:`median_equals` is fixed in advance.
`resolution` is a discrepancy that fails the check with probability at least 0.99. It is what the
check is worth.
The wrong variant must fail. The chance that a repetition does not reject it is estimated by taking
as the truth what was observed of it, and added to the level in `false_alarm`: a control that is
near, of a check that resolves little, is rejected by luck.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, stats

from claimbook import _validate, smirnov, student
from claimbook._validate import Array
from claimbook.evidence import (
    Control,
    Departure,
    Evidence,
    Outcome,
    check_counts,
    common_shape,
    level,
    real_array,
    real_number,
    simultaneous,
    weigh,
)

FALSE_ALARM = 1e-6
_MISS = 0.01  # 1 - power at the reported detectable discrepancy


def _detectable_in_standard_errors(each: float, freedom: int) -> float:
    """Shift, in standard errors, that a two-sided t-test at level `each` detects.

    With T = (Z + shift)/sqrt(V/freedom): Z is above its 0.5 % quantile and V below its
    99.5 % quantile except with probability 1 %, and then T exceeds the critical value.
    """
    critical = stats.t.isf(each / 2, freedom)
    spread = sqrt(stats.chi2.isf(_MISS / 2, freedom) / freedom)
    return float(stats.norm.isf(_MISS / 2) + critical * spread)


def mean_equals(
    check: str,
    *,
    samples: ArrayLike,
    expected: ArrayLike,
    tolerance: float = 0.0,
    standard_deviation: float | None = None,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Test that the mean of independent samples equals a value: t-test, elementwise.

    Null law: ``(mean - mu)/s.e.`` follows Student's t with n - 1 degrees of freedom, exactly
    so for Gaussian samples. The level reported is that of gamma samples with the skewness
    found. With a known `standard_deviation` the null law is N(0, 1). Any dependence *between*
    elements is allowed.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    samples : array_like, shape (n, ...)
        n >= 2 replicas along the first axis, independent and of one law.
    expected : array_like, shape (...) or scalar
        For each element, or one for all.
    tolerance : float
        Allowed ``|mu - expected|``, e.g. a finite-size correction. The level holds for
        every mean within it.
    standard_deviation : float, optional
        Of one sample, if known.
    false_alarm : float
        Nominal level.
    reason : str
        Where the tolerance comes from.
    control : Control
        May replace `samples` or `expected`.

    Returns
    -------
    Evidence
        Of the element with the smallest p-value: `observed` is its mean, `error` its
        standard error. `resolution` takes the (estimated) standard deviation as true.

    Examples
    --------
    >>> import numpy as np
    >>> from claimbook import Control, mean_equals
    >>> x = np.random.default_rng(1).normal(size=1000)
    >>> mean_equals("mean", samples=x, expected=0, control=Control("shift", expected=1)).passed
    True
    """
    alarm = level("false_alarm", false_alarm)
    allowed = real_number("tolerance", tolerance, least=0.0)

    def judge(samples: ArrayLike, expected: ArrayLike) -> Outcome:
        data = real_array("samples", samples)
        if data.ndim < 1 or len(data) < 2:
            raise ValueError(f"samples must have at least two replicas, got shape {data.shape}")
        n, m = len(data), data[0].size
        mean, want = common_shape(
            samples=data.mean(axis=0), expected=real_array("expected", expected)
        )
        if mean.shape != data.shape[1:]:
            raise ValueError(
                f"expected must have shape {data.shape[1:]} or be a number, got {want.shape}"
            )
        if standard_deviation is None:
            scale = data.std(axis=0, ddof=1)
            null: stats.rv_frozen = stats.t(n - 1)
            factor = _detectable_in_standard_errors(alarm / m, n - 1)
            freedom = n - 1.0
            critical = float(stats.t.isf(alarm / m / 2, freedom))
            skew = student.skewness(data)
            risk = min(1.0, max(alarm, m * sum(student.tail(n, critical, skew))))
        else:
            known = real_number("standard_deviation", standard_deviation)
            if known <= 0:
                raise ValueError(f"standard_deviation must be positive, got {known:g}")
            scale = np.full(mean.shape, known)
            null = stats.norm()
            freedom = np.inf
            critical = float(stats.norm.isf(alarm / m / 2))
            factor = critical + float(stats.norm.isf(_MISS))
            risk = alarm
        error = np.asarray(scale / sqrt(n))
        if not error.any():
            raise ValueError("samples do not vary: compare them with identity")
        excess = np.maximum(np.abs(mean - want) - allowed, 0.0)
        # An element that never varies has no noise: any excess refutes it.
        quotient = np.divide(excess, error, out=np.where(excess > 0, np.inf, 0.0), where=error > 0)
        p_values = np.asarray(2 * null.sf(quotient))
        worst = np.unravel_index(int(np.argmax(quotient)), quotient.shape)
        p_value = min(1.0, float(p_values[worst]) * m)
        return Outcome(
            observed=float(mean[worst]),
            expected=float(want[worst]),
            error=float(error[worst]),
            n=n,
            passed=p_value > alarm,
            method=("t" if standard_deviation is None else "z")
            + f"-test, two-sided{simultaneous(m)}"
            + (f", nominal level {alarm:.0e}, skewness {skew:.2g}" if risk > alarm else ""),
            sampling="random",
            false_alarm=risk,
            p_value=p_value,
            resolution=allowed + factor * float(error.max()),
            scale=float(np.abs(want).max()),
            spared=student.below(critical, freedom, float(quotient[worst])),
        )

    return weigh(
        check, "statistical", judge, control, reason=reason, samples=samples, expected=expected
    )


def median_equals(
    check: str,
    *,
    samples: ArrayLike,
    expected: ArrayLike,
    tolerance: float = 0.0,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Test that the median of independent samples equals a value: sign test, elementwise.

    Null law: each sample is above a median with probability at most one half, and likewise
    below it, so that the number of samples above ``expected + tolerance``, and of those below
    ``expected - tolerance``, is at most binomial. This holds for every law of the samples,
    however skewed and with ties. Any dependence *between* elements is allowed.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    samples : array_like, shape (n, ...)
        Replicas along the first axis, independent and of one law.
    expected : array_like, shape (...) or scalar
        For each element, or one for all.
    tolerance : float
        Allowed distance of the median from `expected`, e.g. a finite-size correction.
    false_alarm : float
        Level of the test of all elements together, in (0, 0.5].
    reason : str
        Where the tolerance comes from.
    control : Control
        May replace `samples` or `expected`.

    Returns
    -------
    Evidence
        Of the element with the smallest p-value: `observed` is the median of its samples,
        `error` half the width of its confidence interval. `resolution` is by how much the
        probability of a sample beyond the tolerance on one side exceeds one half.

    Raises
    ------
    ValueError
        If the samples are so few that no outcome could fail.

    Examples
    --------
    >>> import numpy as np
    >>> from claimbook import Control, median_equals
    >>> x = np.random.default_rng(1).standard_cauchy(1000)
    >>> median_equals("median", samples=x, expected=0, control=Control("1", expected=1)).passed
    True
    """
    alarm = level("false_alarm", false_alarm)
    allowed = real_number("tolerance", tolerance, least=0.0)

    def judge(samples: ArrayLike, expected: ArrayLike) -> Outcome:
        data = real_array("samples", samples)
        if data.ndim < 1 or data.size == 0:
            raise ValueError(f"samples must have replicas along the first axis, got {data.shape}")
        n, m = len(data), data[0].size
        median, want = common_shape(
            samples=np.median(data, axis=0), expected=real_array("expected", expected)
        )
        if median.shape != data.shape[1:]:
            raise ValueError(
                f"expected must have shape {data.shape[1:]} or be a number, got {want.shape}"
            )
        each = alarm / m
        resolution = _detectable_probability(np.array(0.5), np.array(n), each)
        if resolution is None:
            raise ValueError(f"samples are too few for any outcome to fail at {alarm:g}")
        beyond = np.maximum(
            np.sum(data > want + allowed, axis=0), np.sum(data < want - allowed, axis=0)
        )
        first = int(np.argmax(beyond))
        worst = np.unravel_index(first, beyond.shape)
        p_value = min(1.0, 2 * m * float(stats.binom.sf(beyond[worst] - 1, n, 0.5)))
        # The median is between two order statistics but for the level.
        low = max(int(stats.binom.ppf(each / 2, n, 0.5)) - 1, 0)
        own = np.sort(data.reshape(n, m)[:, first])
        share = _share_beyond(own, float(want[worst]), allowed, int(beyond[worst]))
        return Outcome(
            observed=float(median[worst]),
            expected=float(want[worst]),
            error=float(own[n - 1 - low] - own[low]) / 2,
            n=n,
            passed=p_value > alarm,
            method=f"sign test, exact, two-sided{simultaneous(m)}",
            sampling="random",
            false_alarm=alarm,
            p_value=p_value,
            resolution=resolution,
            departure="share",
            spared=float(stats.binom.cdf(_accepted(0.5, n, each)[1], n, share)),
        )

    return weigh(
        check, "statistical", judge, control, reason=reason, samples=samples, expected=expected
    )


def _share_beyond(samples: Array, expected: float, allowed: float, count: int) -> float:
    """Probability of a further sample beyond the tolerance on the side where `count` samples are.

    Of few samples, all of which are there, counts say only that it is near one, and Student's law
    says more. Otherwise it is no larger than counts say, for samples need not be Gaussian.
    """
    n, spread = len(samples), float(samples.std(ddof=1))
    counted = (count + 0.5) / (n + 1) if count < n else 1.0  # Jeffreys
    excess = abs(float(samples.mean()) - expected) - allowed
    if spread == 0:
        return float(excess > 0)
    return min(counted, float(stats.t.cdf(excess / (spread * sqrt(1 + 1 / n)), n - 1)))


def _columns(name: str, value: ArrayLike) -> Array:
    data = real_array(name, value)
    if data.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (n,) or (n, m), got {data.shape}")
    return np.sort(data.reshape(len(data), -1), axis=0)


def equal_laws(
    check: str,
    *,
    samples: ArrayLike,
    reference: ArrayLike,
    false_alarm: float = FALSE_ALARM,
    control: Control,
) -> Evidence:
    """Test that two sets of samples have one law: two-sample Kolmogorov–Smirnov test.

    Null law: exact for continuous laws at any two sample sizes (lattice paths),
    conservative with ties. Columns are compared one by one.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    samples : array_like, shape (n,) or (n, m)
        Independent draws along the first axis.
    reference : array_like, shape (n',) or (n', m)
        The same of what may have another law, and independent of `samples`.
    false_alarm : float
        Level of the test of all columns together, in (0, 0.5].
    control : Control
        May replace `samples` or `reference`.

    Returns
    -------
    Evidence
        `observed` is the largest distance ``sup|F_n - G_n'|``, `expected` 0, `error` the
        critical distance, `resolution` a distance between the true laws.

    Raises
    ------
    ValueError
        If the samples are so few that no outcome could fail.
    """
    alarm = level("false_alarm", false_alarm)

    def judge(samples: ArrayLike, reference: ArrayLike) -> Outcome:
        first, second = _columns("samples", samples), _columns("reference", reference)
        if first.shape[1] != second.shape[1]:
            raise ValueError(
                "samples and reference must have equally many columns, got "
                f"{first.shape[1]} and {second.shape[1]}"
            )
        (n, m), k = first.shape, len(second)
        heights = [smirnov.distance(first[:, j], second[:, j]) for j in range(m)]
        height = max(heights)
        share, other = smirnov.shares(*(x[:, int(np.argmax(heights))] for x in (first, second)))
        critical = smirnov.critical(alarm / m, n, k)
        if critical > n * k:
            raise ValueError(f"samples must be more than {n} and {k} to reject at {alarm:g}")
        threshold = critical / (n * k)
        # At the point where the laws differ most, Hoeffding's inequality bounds the noise.
        noise = sqrt(0.5 * log(1 / _MISS) * (1 / n + 1 / k))
        return Outcome(
            observed=height / (n * k),
            expected=0.0,
            error=threshold,
            n=n + k,
            passed=height < critical,
            method=f"two-sample Kolmogorov-Smirnov, exact{simultaneous(m)}",
            sampling="random",
            false_alarm=alarm,
            p_value=min(1.0, smirnov.tail(height, n, k) * m) if height else 1.0,
            resolution=min(1.0, threshold + noise),
            departure="law",
            spared=_spared_distance(height / (n * k) - threshold, (share, n), (other, k)),
        )

    return weigh(check, "statistical", judge, control, samples=samples, reference=reference)


def follows_law(
    check: str,
    *,
    samples: ArrayLike,
    cdf: Callable[[Array], ArrayLike],
    false_alarm: float = FALSE_ALARM,
    control: Control,
) -> Evidence:
    """Test that independent samples follow a law: one-sample Kolmogorov–Smirnov test.

    Null law: exact at every n for a continuous distribution function.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    samples : array_like, shape (n,)
        Independent draws.
    cdf : callable
        Continuous distribution function, vectorised.
    false_alarm : float
        Level of the test, in (0, 0.5].
    control : Control
        May replace `samples` or `cdf`.

    Returns
    -------
    Evidence
        `observed` is ``sup|F_n - F|``, `expected` 0, `error` the critical distance,
        `resolution` a distance between the true law and `cdf`.
    """
    alarm = level("false_alarm", false_alarm)

    def judge(samples: ArrayLike, cdf: Callable[[Array], ArrayLike]) -> Outcome:
        data = np.sort(real_array("samples", samples, ndim=1))
        n = data.size
        values = real_array("cdf(samples)", cdf(data), ndim=1)
        if values.shape != data.shape or np.any((values < 0) | (values > 1)):
            raise ValueError("cdf must return one probability per sample")
        if np.any(np.diff(values) < -1e-12):
            raise ValueError("cdf must be non-decreasing")
        steps = np.arange(n + 1) / n
        gaps = np.stack([steps[1:] - values, values - steps[:-1]])
        observed = float(gaps.max())
        side, at = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
        share = float(steps[at + 1 - side])
        threshold = _critical_distance(alarm, n)
        return Outcome(
            observed=observed,
            expected=0.0,
            error=threshold,
            n=n,
            passed=observed < threshold,
            method="one-sample Kolmogorov-Smirnov, exact",
            sampling="random",
            false_alarm=alarm,
            p_value=float(stats.kstwo.sf(observed, n)),
            resolution=min(1.0, threshold + sqrt(0.5 * log(1 / _MISS) / n)),
            departure="law",
            spared=_spared_distance(observed - threshold, (share, n)),
        )

    return weigh(check, "statistical", judge, control, samples=samples, cdf=cdf)


def _spared_distance(excess: float, *shares: tuple[float, int]) -> float:
    """Chance that the distance is below the critical one where it was largest, nearly normal.

    There the empirical distribution functions are the shares of so many samples.
    """
    guesses = [((share * n + 0.5) / (n + 1), n) for share, n in shares]  # Jeffreys: never 0 or 1
    return float(stats.norm.sf(excess / sqrt(sum(p * (1 - p) / n for p, n in guesses))))


def _room(width: float, allowed: float, error: float, critical: float) -> float:
    """Factor by which the variance found may grow before a rate is inconclusive."""
    return (max(width - allowed, 0.0) / (error * critical)) ** 2


@lru_cache(maxsize=64)
def _critical_distance(alarm: float, n: int) -> float:
    """Exact critical distance of the one-sample test; slow enough to keep."""
    return float(stats.kstwo.isf(alarm, n))


def binomial(
    check: str,
    *,
    successes: ArrayLike,
    trials: ArrayLike,
    expected: ArrayLike,
    false_alarm: float = FALSE_ALARM,
    control: Control,
) -> Evidence:
    """Test that a number of successes is binomial with given probability: exact, two-sided.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    successes, trials : array_like of int
        Equal shapes, or one of them a scalar.
    expected : array_like
        Probability of success, in [0, 1].
    false_alarm : float
        Level of the test of all elements together, in (0, 0.5].
    control : Control
        May replace `successes`, `trials` or `expected`.

    Returns
    -------
    Evidence
        `observed` is the frequency of the element with the smallest p-value, `error` its
        standard deviation under the claim.

    Raises
    ------
    ValueError
        If the trials are so few that no outcome could fail.
    """
    alarm = level("false_alarm", false_alarm)

    def judge(successes: ArrayLike, trials: ArrayLike, expected: ArrayLike) -> Outcome:
        hits, total, p = common_shape(
            successes=real_array("successes", successes),
            trials=real_array("trials", trials),
            expected=real_array("expected", expected),
        )
        check_counts(hits, total)
        if np.any((p < 0) | (p > 1)):
            raise ValueError(f"expected must be in [0, 1], got {p.min():g} to {p.max():g}")
        each = alarm / hits.size
        p_values = np.minimum(
            1.0, 2 * np.minimum(stats.binom.cdf(hits, total, p), stats.binom.sf(hits - 1, total, p))
        )
        worst = np.unravel_index(int(np.argmin(p_values)), p_values.shape)
        resolution = _detectable_probability(p, total, each)
        if resolution is None:
            raise ValueError(f"trials are too few for any outcome to fail at {alarm:g}")
        p_value = min(1.0, float(p_values[worst]) * hits.size)
        low, high = _accepted(float(p[worst]), int(total[worst]), each)
        again = stats.binom(total[worst], (hits[worst] + 0.5) / (total[worst] + 1))
        return Outcome(
            observed=float(hits[worst] / total[worst]),
            expected=float(p[worst]),
            error=sqrt(float(p[worst] * (1 - p[worst]) / total[worst])),
            n=int(total.sum()),
            passed=p_value > alarm,
            method=f"binomial, exact{simultaneous(hits.size)}",
            sampling="random",
            false_alarm=alarm,
            p_value=p_value,
            resolution=resolution,
            departure="share",
            spared=float(again.cdf(high) - again.cdf(low - 1)),
        )

    return weigh(
        check,
        "statistical",
        judge,
        control,
        successes=successes,
        trials=trials,
        expected=expected,
    )


def _accepted(p: float, trials: int, each: float) -> tuple[int, int]:
    """Least and largest numbers of successes that a two-sided test does not reject."""
    high = int(stats.binom.isf(each / 2, trials, p))
    low = int(stats.binom.ppf(each / 2, trials, p))
    while high < trials and stats.binom.sf(high, trials, p) > each / 2:
        high += 1
    while low > 0 and stats.binom.cdf(low - 1, trials, p) > each / 2:
        low -= 1
    return low, high


def _detectable_probability(p: Array, trials: Array, each: float) -> float | None:
    """Shift of a probability seen with 99 % power, in every direction that can be seen."""
    shifts = []
    for prob, n in zip(p.ravel(), trials.ravel(), strict=True):
        low, high = _accepted(prob, int(n), each)
        if high < n:
            # P(X > high) as a function of p is the distribution function of Beta(high+1, n-high).
            shifts.append(float(stats.beta.isf(_MISS, high + 1, n - high)) - prob)
        if low > 0:
            shifts.append(prob - float(stats.beta.ppf(_MISS, low, n - low + 1)))
        if high == n and low == 0:
            return None
    return max(shifts)


def covariance_equals(
    check: str,
    *,
    samples: ArrayLike,
    expected: ArrayLike,
    false_alarm: float = FALSE_ALARM,
    control: Control,
) -> Evidence:
    """Test that Gaussian samples have a given covariance: exact Bartlett test.

    Whitened by the expected covariance, the scatter matrix about the sample mean is
    Wishart with n - 1 degrees of freedom, and its Cholesky factor has independent
    entries: chi with n - 1 - i degrees of freedom on the diagonal (i = 0, 1, ...), N(0, 1)
    below. Each of the p(p+1)/2 entries is tested two-sided at ``false_alarm`` divided by
    their number. Exact for Gaussian samples only; for others test the products with
    :func:`mean_equals`.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    samples : array_like, shape (n, p)
        n > p independent draws.
    expected : array_like, shape (p, p)
        Symmetric positive definite.
    false_alarm : float
        Level of the test of all entries together, in (0, 0.5].
    control : Control
        May replace `samples` or `expected`.

    Returns
    -------
    Evidence
        `observed` is the sample covariance's entry that deviates most in standard errors,
        `error` its standard error under the claim; `resolution` is a variance added to any
        one coordinate as independent noise.
    """
    alarm = level("false_alarm", false_alarm)

    def judge(samples: ArrayLike, expected: ArrayLike) -> Outcome:
        data = real_array("samples", samples, ndim=2)
        sigma = real_array("expected", expected, ndim=2)
        n, p = data.shape
        if sigma.shape != (p, p):
            raise ValueError(f"expected must have shape ({p}, {p}), got {sigma.shape}")
        if n <= p:
            raise ValueError(f"samples must be more than {p} draws, got {n}")
        if np.abs(sigma - sigma.T).max() > 1e-10 * np.abs(sigma).max():
            raise ValueError("expected must be symmetric")
        try:
            root = linalg.cholesky(sigma, lower=True)
            centred = data - data.mean(axis=0)
            white = linalg.solve_triangular(root, centred.T, lower=True)
            factor = linalg.cholesky(white @ white.T, lower=True)
        except linalg.LinAlgError as error:
            raise ValueError(f"expected and samples must be non-degenerate: {error}") from error
        freedom = n - 1 - np.arange(p)
        squares = np.diag(factor) ** 2
        diagonal = 2 * np.minimum(stats.chi2.cdf(squares, freedom), stats.chi2.sf(squares, freedom))
        entries = np.tril_indices(p, -1)
        sizes = np.abs(factor[entries])
        p_values = np.concatenate([diagonal, 2 * stats.norm.sf(sizes)])
        # If what was found is the truth, the factor of a repetition is `truth` times one under the
        # claim: chi on the diagonal, of variance nearly 1/2, and N(0, 1) below.
        part = alarm / p_values.size / 2
        truth = (factor / np.sqrt(freedom)) ** 2
        noise = np.sqrt(np.cumsum(truth[:, ::-1], axis=1)[:, ::-1] - truth / 2)[entries]
        low, high = stats.chi2.ppf(part, freedom), stats.chi2.isf(part, freedom)
        spared = np.concatenate(
            [
                stats.chi2.cdf(high / np.diag(truth), freedom)
                - stats.chi2.cdf(low / np.diag(truth), freedom),
                stats.norm.cdf((stats.norm.isf(part) - sizes) / noise),
            ]
        )
        p_value = min(1.0, float(p_values.min()) * p_values.size)
        got = centred.T @ centred / (n - 1)
        error_ = np.sqrt((np.outer(np.diag(sigma), np.diag(sigma)) + sigma**2) / (n - 1))
        deviation = np.abs(got - sigma) / error_
        worst = np.unravel_index(int(np.argmax(deviation)), deviation.shape)
        least = int(freedom[-1])
        ratio = stats.chi2.isf(alarm / p_values.size / 2, least) / stats.chi2.ppf(_MISS, least)
        return Outcome(
            observed=float(got[worst]),
            expected=float(sigma[worst]),
            error=float(error_[worst]),
            n=n,
            passed=p_value > alarm,
            method=f"Bartlett factor of the whitened scatter{simultaneous(p_values.size)}",
            sampling="random",
            false_alarm=alarm,
            p_value=p_value,
            resolution=float((ratio - 1) * np.diag(sigma).max()),
            scale=float(np.diag(sigma).max()),
            departure="variance",
            spared=float(spared.min()),
        )

    return weigh(check, "statistical", judge, control, samples=samples, expected=expected)


def statistic_below(
    check: str,
    *,
    statistic: float,
    threshold: float,
    false_alarm: float,
    how: str,
    n: int,
    resolution: float | None = None,
    departure: Departure = "value",
    reason: str = "",
    control: Control,
) -> Evidence:
    """Test that a statistic with a known null law stays below its critical value.

    For tests not offered here; the caller answers for the level.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    statistic : float
        What the data gave; it passes strictly below the threshold.
    threshold : float
        The true claim exceeds it with probability at most `false_alarm`.
    false_alarm : float
        Level that the threshold has under the null law, in (0, 0.5].
    how : str
        The statistic and its null law.
    n : int
        Number of independent samples behind it.
    resolution : float, optional
        A departure from the claim, in its own units, at which the statistic exceeds the
        threshold with probability at least 0.99, derived or found by putting one in.
    departure : str
        What `resolution` is a departure of, see `Evidence`.
    reason : str
        Where the threshold comes from.
    control : Control
        May replace `statistic`.

    Returns
    -------
    Evidence
        `expected` is the threshold, `error` 0.
    """
    alarm = level("false_alarm", false_alarm)
    critical = real_number("threshold", threshold)
    if not isinstance(how, str) or not how.strip():
        raise ValueError(f"how must name the statistic and its null law, got {how!r}")
    count = _validate.integer("n", n, least=1)
    worth = None if resolution is None else real_number("resolution", resolution, least=0.0)

    def judge(statistic: float) -> Outcome:
        value = real_number("statistic", statistic)
        return Outcome(
            observed=value,
            expected=critical,
            error=0.0,
            n=count,
            passed=value < critical,
            method=how,
            sampling="random",
            false_alarm=alarm,
            resolution=worth,
            departure=departure,
        )

    return weigh(check, "statistical", judge, control, reason=reason, statistic=statistic)


def rate(
    check: str,
    *,
    sizes: ArrayLike,
    values: ArrayLike,
    exponent: float,
    tolerance: float | None = None,
    pooled: bool = False,
    resolution: float = 0.25,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Test that a quantity scales as a power of size: log-log slope over at least 4 sizes.

    With replicas, the slope of each replica is a linear statistic of its logarithms, and
    the replicas are independent: their mean is tested against `exponent` with a t-test on
    r - 1 degrees of freedom, exact for log-normal values and valid when the sizes share
    random numbers. Without replicas the slope itself is compared.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    sizes : array_like, shape (s,)
        At least 4 distinct positive sizes.
    values : array_like, shape (s,) or (r, s)
        Positive. With two axes: r >= 3 independent replicas.
    exponent : float
        The slope claimed: values grow like sizes to this power.
    tolerance : float, optional
        Allowed deviation of the true slope over these sizes (finite-size curvature).
        Required without replicas; 0 by default with them.
    pooled : bool
        Also take the sizes as independent and the spread of the logarithms as the same at
        every size: s (r - 1) degrees of freedom, which few replicas need.
    resolution : float
        Largest half-width of the confidence interval, tolerance included, that still says
        something.
    false_alarm : float
        One minus the level of the confidence interval.
    reason : str
        Where the tolerance comes from.
    control : Control
        May replace `sizes`, `values` or `exponent`.

    Returns
    -------
    Evidence
        `observed` is the slope, `error` the half-width of its confidence interval plus the
        tolerance.

    Raises
    ------
    ValueError
        If the sizes or values are not of this kind, or the tolerance of values without
        replicas exceeds `resolution`.

    Notes
    -----
    Where the half-width found from replicas exceeds `resolution` the data are inconclusive: the
    check fails, and a control for which it does is not rejected. The chance of this is part of
    the level reported.

    Examples
    --------
    >>> import numpy as np
    >>> from claimbook import Control, rate
    >>> d = np.array([100, 200, 400, 800])
    >>> evidence = rate("remainder", sizes=d, values=3 / d + 1 / d**2, exponent=-1,
    ...     tolerance=0.02, control=Control("root", exponent=-0.5))
    >>> round(evidence.observed, 3)
    -1.001
    """
    alarm = level("false_alarm", false_alarm)
    width = real_number("resolution", resolution, least=0.0)

    def judge(sizes: ArrayLike, values: ArrayLike, exponent: float) -> Outcome:
        scale = real_array("sizes", sizes, ndim=1)
        data = real_array("values", values)
        want = real_number("exponent", exponent)
        if np.unique(scale).size < 4 or np.any(scale <= 0):
            raise ValueError(f"sizes must be at least 4 distinct positive numbers, got {scale}")
        if data.ndim not in (1, 2) or data.shape[-1] != scale.size:
            raise ValueError(
                f"values must have shape ({scale.size},) or (r, {scale.size}), got {data.shape}"
            )
        if np.any(data <= 0):
            raise ValueError(f"values must be positive, got {data.min():g}")
        x = np.log(scale) - np.log(scale).mean()
        weights = x / (x @ x)
        slopes = np.log(data) @ weights
        slope = float(np.mean(slopes))
        if data.ndim == 1:
            if tolerance is None:
                raise ValueError("tolerance must be given when values have no replicas")
            allowed = real_number("tolerance", tolerance, least=0.0)
            half, risk, p_value, spared = allowed, 0.0, None, 0.0
            found = allowed + abs(slope - want)
            passed = abs(slope - want) <= allowed
            method = f"least-squares slope over {scale.size} sizes"
        else:
            r = len(data)
            if r < 3:
                raise ValueError(f"values must have at least 3 replicas, got {r}")
            allowed = real_number("tolerance", tolerance or 0.0, least=0.0)
            if pooled:
                freedom = scale.size * (r - 1)
                variance = np.log(data).var(axis=0, ddof=1).mean() * (weights @ weights)
            else:
                freedom = r - 1
                variance = slopes.var(ddof=1)
            skew = student.skewness(slopes[:, np.newaxis])
            error = sqrt(float(variance) / r)
            if error == 0:
                raise ValueError("values do not vary over replicas: pass one row and a tolerance")
            half = allowed + error * float(stats.t.isf(alarm / 2, freedom))
            excess = max(abs(slope - want) - allowed, 0.0)
            p_value = float(2 * stats.t.sf(excess / error, freedom))
            passed = p_value > alarm
            critical = float(stats.t.isf(alarm / 2, freedom))
            risk = min(1.0, max(alarm, sum(student.tail(freedom + 1, critical, skew))))
            # The slope is also known to no better than `half`, or the check is inconclusive.
            blur = float(stats.chi2.sf(freedom * _room(width, allowed, error, critical), freedom))
            risk += blur
            spared = min(1.0, student.below(critical, freedom, excess / error) + blur)
            found = allowed + error * _detectable_in_standard_errors(alarm, freedom)
            method = f"t-test of the slope over {scale.size} sizes, {freedom} degrees of freedom"
        vague = half > width
        if vague:
            method = (
                f"inconclusive: the slope is known only within {half:.2g}, tolerance included, "
                f"more than resolution = {width:g}; take more replicas or wider sizes"
            )
            if data.ndim == 1:
                raise ValueError(method)
        return Outcome(
            observed=slope,
            expected=want,
            error=half,
            n=int(data.size),
            passed=passed and not vague,
            method=method,
            sampling="random" if risk else "none",
            false_alarm=min(risk, 1 - 1e-9),
            p_value=p_value,
            resolution=found,
            departure="exponent",
            spared=spared,
            inconclusive=vague,
        )

    return weigh(
        check,
        "rate",
        judge,
        control,
        reason=reason,
        sizes=sizes,
        values=values,
        exponent=exponent,
    )
