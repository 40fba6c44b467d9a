"""One-sided statistical checks: a random quantity lies on the claimed side of a bound.

Such a claim has no margin of its own, so no test can both confirm it and be sure never to
fail it. The checks here take the burden of proof: one passes only where a one-sided
confidence bound lies strictly on the claimed side, that is where the opposite of the claim
is rejected at a level (1e-6 unless said otherwise) shared among all elements compared
(Bonferroni). The three numbers of the evidence then say

`false_pass`
    the probability that the check *passes* although the claim is false for some element: the
    chance of a wrong verdict, at most the level however near the truth is to the bound (for
    t-tests the level that they have on samples of the skewness found, see
    :mod:`claimbook.student`);
`false_alarm`
    the chance that a repetition with fresh randomness *fails*, estimated by taking what was
    observed as the truth: only the number of replicas makes it small, so plan for a margin well
    beyond the one needed;
`resolution`
    the distance beyond the bound at which the check passes with probability at least 0.99
    (for each element). A claim that is true by less may fail.

The method names the confidence bound, the margin found and the margin needed. The argument
`false_alarm` of the checks is the nominal level at which the opposite must be rejected.

A control must fail to show what the claim says: it is rejected as soon as its confidence
bound is not on the claimed side. The chance that a repetition does not reject it is added to
`false_alarm`: the level, or an estimate from what was observed where that is beyond the bound by
more than noise.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from claimbook import _validate, student
from claimbook._validate import Array
from claimbook.evidence import (
    Control,
    Evidence,
    Outcome,
    check_counts,
    common_shape,
    level,
    real_array,
    simultaneous,
    spared_one_sided,
    weigh,
)
from claimbook.statistical import FALSE_ALARM

_MISS = 0.01  # 1 - power at the reported detectable distance


def mean_exceeds(
    check: str,
    *,
    samples: ArrayLike,
    bound: ArrayLike,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that the mean of independent samples exceeds a bound: one-sided t-test.

    Passes if ``mean - q s.e. > bound`` for every element, with q the quantile of Student's t
    with n - 1 degrees of freedom at level `false_alarm` over the number of elements. Exact
    for Gaussian samples; the level reported is that of gamma samples with the skewness found.
    Any dependence *between* elements is
    allowed. At a level of 1e-6 q is 28 for n = 6, 9.6 for 12, 6.7 for 20, 5.5 for 40.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    samples : array_like, shape (n, ...)
        n >= 2 replicas along the first axis, independent and of one law.
    bound : array_like, shape (...) or scalar
        For each element, or one for all.
    false_alarm : float
        Level at which the opposite must be rejected.
    reason : str
        Where the bound comes from.
    control : Control
        May replace `samples` or `bound`.

    Returns
    -------
    Evidence
        Of the element with the smallest margin in standard errors: `observed` is its mean,
        `expected` its bound, `error` its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from claimbook import Control, mean_exceeds
    >>> x = 1 + np.random.default_rng(1).normal(size=100)
    >>> evidence = mean_exceeds("mean", samples=x, bound=0, control=Control("-1", samples=x - 1))
    >>> evidence.passed, evidence.control.rejected
    (True, True)
    >>> print(evidence.method)
    one-sided t, 99 degrees of freedom: lower bound 0.494; margin 10.8 s.e., 5.05 needed
    """
    return _mean(check, 1, samples, bound, false_alarm, reason, control)


def mean_below(
    check: str,
    *,
    samples: ArrayLike,
    bound: ArrayLike,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that the mean of independent samples stays below a bound: one-sided t-test.

    Parameters and result as in :func:`mean_exceeds`.

    Examples
    --------
    >>> import numpy as np
    >>> from claimbook import Control, mean_below
    >>> x = np.random.default_rng(1).normal(size=100)
    >>> mean_below("mean", samples=x, bound=1, control=Control("+1", samples=x + 1)).passed
    True
    """
    return _mean(check, -1, samples, bound, false_alarm, reason, control)


def share_exceeds(
    check: str,
    *,
    successes: ArrayLike,
    trials: ArrayLike,
    bound: ArrayLike,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that a probability exceeds a bound: exact binomial test.

    Passes if the lower end of the one-sided Clopper–Pearson interval exceeds the bound, for
    every element.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    successes, trials : array_like of int
        Equal shapes, or one of them a scalar.
    bound : array_like
        In (0, 1).
    false_alarm : float
        Level at which the opposite must be rejected.
    reason : str
        Where the bound comes from.
    control : Control
        May replace `successes`, `trials` or `bound`.

    Returns
    -------
    Evidence
        Of the element with the largest p-value of the opposite: `observed` is its frequency,
        `expected` its bound, `error` the standard deviation of the frequency at the bound.

    Raises
    ------
    ValueError
        If the trials are so few that no outcome could pass.

    Examples
    --------
    >>> from claimbook import Control, share_exceeds
    >>> print(share_exceeds("heads", successes=80, trials=100, bound=0.5,
    ...     control=Control("fair coin", successes=52)).method)
    one-sided Clopper-Pearson: lower bound 0.569; 74 of 100 needed
    """
    return _share(check, 1, successes, trials, bound, false_alarm, reason, control)


def share_below(
    check: str,
    *,
    successes: ArrayLike,
    trials: ArrayLike,
    bound: ArrayLike,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that a probability stays below a bound: exact binomial test.

    Parameters and result as in :func:`share_exceeds`.

    Examples
    --------
    >>> from claimbook import Control, share_below
    >>> share_below("heads", successes=10, trials=100, bound=0.5,
    ...     control=Control("fair coin", successes=48)).passed
    True
    """
    return _share(check, -1, successes, trials, bound, false_alarm, reason, control)


def estimate_exceeds(
    check: str,
    *,
    estimate: ArrayLike,
    error: ArrayLike,
    bound: ArrayLike,
    freedom: ArrayLike | None = None,
    n: int | None = None,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that an estimated quantity exceeds a bound, from its standard error.

    For estimates that are no plain means (a fitted midpoint, a crossing, a difference).
    Passes if ``estimate - q error > bound`` for every element. The caller answers for the
    estimate being Gaussian with the standard error given, or, with `freedom`, for an error
    estimated with that many degrees of freedom.

    Parameters
    ----------
    check : str
        What is compared, in a few words.
    estimate : array_like
        Gaussian about the true values, of any shape.
    error : array_like
        Standard error of each element (a scalar for all), positive.
    bound : array_like
        For each element, or one for all.
    freedom : array_like, optional
        Degrees of freedom of the errors, at least 1: q is then a quantile of Student's t,
        otherwise of the normal law (4.75 at a level of 1e-6).
    n : int, optional
        Number of independent units behind the estimates, for the record. Default: the degrees
        of freedom and one, or the number of elements.
    false_alarm : float
        Level at which the opposite must be rejected.
    reason : str
        Where the bound and the error come from.
    control : Control
        May replace `estimate`, `error` or `bound`.

    Returns
    -------
    Evidence
        Of the element with the smallest margin beyond the one needed, in standard errors.

    Examples
    --------
    >>> from claimbook import Control, estimate_exceeds
    >>> estimate_exceeds("midpoint", estimate=2.0, error=0.1, bound=1.0,
    ...     control=Control("other network", estimate=1.1)).passed
    True
    """
    return _estimate(check, 1, estimate, error, bound, freedom, n, false_alarm, reason, control)


def estimate_below(
    check: str,
    *,
    estimate: ArrayLike,
    error: ArrayLike,
    bound: ArrayLike,
    freedom: ArrayLike | None = None,
    n: int | None = None,
    false_alarm: float = FALSE_ALARM,
    reason: str = "",
    control: Control,
) -> Evidence:
    """Check that an estimated quantity stays below a bound, from its standard error.

    Parameters and result as in :func:`estimate_exceeds`.

    Examples
    --------
    >>> from claimbook import Control, estimate_below
    >>> estimate_below("midpoint", estimate=2.0, error=0.1, bound=3.0, freedom=50,
    ...     control=Control("other network", estimate=2.9)).passed
    True
    """
    return _estimate(check, -1, estimate, error, bound, freedom, n, false_alarm, reason, control)


def _mean(
    check: str,
    sign: int,
    samples: ArrayLike,
    bound: ArrayLike,
    false_alarm: float,
    reason: str,
    control: Control,
) -> Evidence:
    alarm = level("false_alarm", false_alarm)

    def judge(samples: ArrayLike, bound: ArrayLike) -> Outcome:
        data = real_array("samples", samples)
        if data.ndim < 1 or len(data) < 2:
            raise ValueError(f"samples must have at least two replicas, got shape {data.shape}")
        limit = real_array("bound", bound)
        if limit.ndim and limit.shape != data.shape[1:]:
            raise ValueError(
                f"bound must have shape {data.shape[1:]} or be a number, got {limit.shape}"
            )
        error = np.asarray(data.std(axis=0, ddof=1) / sqrt(len(data)))
        if not error.any():
            raise ValueError("samples do not vary: compare them with exceeds or below")
        return _studentised(
            data.mean(axis=0),
            error,
            limit,
            np.asarray(len(data) - 1.0),
            sign,
            alarm,
            n=len(data),
            false_pass=_level(data, sign, alarm),
        )

    return weigh(check, "statistical", judge, control, reason=reason, samples=samples, bound=bound)


def _estimate(
    check: str,
    sign: int,
    estimate: ArrayLike,
    error: ArrayLike,
    bound: ArrayLike,
    freedom: ArrayLike | None,
    n: int | None,
    false_alarm: float,
    reason: str,
    control: Control,
) -> Evidence:
    alarm = level("false_alarm", false_alarm)
    degrees = np.array(np.inf) if freedom is None else real_array("freedom", freedom)
    if np.any(degrees < 1):
        raise ValueError(f"freedom must be at least 1, got {degrees.min():g}")
    units = None if n is None else _validate.integer("n", n, least=1)

    def judge(estimate: ArrayLike, error: ArrayLike, bound: ArrayLike) -> Outcome:
        value, spread, limit, _ = common_shape(
            estimate=real_array("estimate", estimate),
            error=real_array("error", error),
            bound=real_array("bound", bound),
            freedom=degrees,
        )
        if np.any(spread <= 0):
            raise ValueError(f"error must be positive, got {spread.min():g}")
        most = float(degrees.min())
        count = units or (round(most) + 1 if np.isfinite(most) else value.size)
        return _studentised(value, spread, limit, degrees, sign, alarm, n=count, false_pass=alarm)

    return weigh(
        check,
        "statistical",
        judge,
        control,
        reason=reason,
        estimate=estimate,
        error=error,
        bound=bound,
    )


def _studentised(
    value: Array,
    error: Array,
    bound: Array,
    freedom: Array,
    sign: int,
    alarm: float,
    *,
    n: int,
    false_pass: float,
) -> Outcome:
    """Judge ``sign (value - bound)`` against a t quantile (normal if `freedom` is infinite)."""
    value, error, bound, freedom = np.broadcast_arrays(value, error, bound, freedom)
    m = value.size
    needed = np.asarray(stats.t.isf(alarm / m, freedom))
    gap = sign * (value - bound)
    # An element that never varies has no noise: it is on its side of the bound.
    sure = np.where(gap > 0, np.inf, -np.inf)
    margin = np.divide(gap, error, out=sure, where=error > 0)
    worst = np.unravel_index(int(np.argmin(margin - needed)), margin.shape)
    one, quantile = float(margin[worst]), float(needed[worst])
    noisy = error > 0
    fails = [*map(student.below, needed[noisy], freedom[noisy], margin[noisy])]
    # A control is let pass only if every element is.
    p_value = float(stats.t.sf(margin[noisy], freedom[noisy]).max())
    spared = spared_one_sided(p_value, 1 - max(fails), false_pass)
    reach = error * (needed * _inflation(freedom) + stats.norm.isf(_MISS / 2))
    end = float(value[worst] - sign * quantile * error[worst])
    degrees = float(freedom[worst])
    law = f"t, {degrees:.4g} degrees of freedom" if np.isfinite(degrees) else "normal"
    return Outcome(
        observed=float(value[worst]),
        expected=float(bound[worst]),
        error=float(error[worst]),
        n=n,
        passed=one > quantile,
        method=f"one-sided {law}{simultaneous(m)}: {_end(sign)} {end:.3g}; "
        f"margin {one:.3g} s.e., {quantile:.3g} needed",
        sampling="random",
        false_alarm=min(float(sum(fails)), 1 - 1e-9),
        false_pass=false_pass,
        resolution=float(reach.max()),
        departure="side",
        spared=spared if np.all(gap[~noisy] > 0) else 0.0,
    )


def _level(data: Array, sign: int, alarm: float) -> float:
    """Level of the one-sided t-tests on samples of the skewness found, over all elements."""
    n, m = len(data), data[0].size
    critical = float(stats.t.isf(alarm / m, n - 1))
    low, high = student.tail(n, critical, student.skewness(data))
    third = np.mean((data - data.mean(axis=0)) ** 3, axis=0)
    # A mean seems too large where the samples have their long tail below it.
    heavy = bool(np.any(sign * third < 0)) or n < student.FEW
    return float(min(1.0, max(alarm, m * (low if heavy else high))))


def _inflation(freedom: Array) -> Array:
    """Factor that an estimated standard error exceeds with probability `_MISS` / 2."""
    finite = np.where(np.isfinite(freedom), freedom, 1.0)
    factor = np.sqrt(stats.chi2.isf(_MISS / 2, finite) / finite)
    return np.where(np.isfinite(freedom), factor, 1.0)


def _share(
    check: str,
    sign: int,
    successes: ArrayLike,
    trials: ArrayLike,
    bound: ArrayLike,
    false_alarm: float,
    reason: str,
    control: Control,
) -> Evidence:
    alarm = level("false_alarm", false_alarm)

    def judge(successes: ArrayLike, trials: ArrayLike, bound: ArrayLike) -> Outcome:
        hits, total, limit = common_shape(
            successes=real_array("successes", successes),
            trials=real_array("trials", trials),
            bound=real_array("bound", bound),
        )
        check_counts(hits, total)
        if np.any((limit <= 0) | (limit >= 1)):
            raise ValueError(f"bound must be in (0, 1), got {limit.min():g} to {limit.max():g}")
        # Of failures, if successes must be few.
        count, rare = (hits, limit) if sign > 0 else (total - hits, 1 - limit)
        each = alarm / count.size
        if np.any(rare**total >= each):
            raise ValueError(f"trials are too few for any outcome to pass at {alarm:g}")
        least = _least_count(total, rare, each)
        p_values = stats.binom.sf(count - 1, total, rare)
        worst = np.unravel_index(int(np.argmax(p_values)), p_values.shape)
        k, n, p = float(count[worst]), float(total[worst]), float(limit[worst])
        end = float(stats.beta.ppf(each, k, n - k + 1)) if k else 0.0
        guess = (count + 0.5) / (total + 1)  # Jeffreys: never 0 or 1
        fails = stats.binom.cdf(least - 1, total, guess)
        passes = float(1 - np.max(fails))
        # P(X >= least) as a function of p is the distribution function of Beta.
        reach = stats.beta.ppf(1 - _MISS, least, total - least + 1) - rare
        bar = least[worst] if sign > 0 else n - least[worst]
        return Outcome(
            observed=float(hits[worst] / n),
            expected=p,
            error=sqrt(p * (1 - p) / n),
            n=int(total.sum()),
            passed=bool(np.all(count >= least)),
            method=f"one-sided Clopper-Pearson{simultaneous(count.size)}: {_end(sign)} "
            f"{end if sign > 0 else 1 - end:.3g}; {bar:g} of {n:g} needed",
            sampling="random",
            false_alarm=min(float(np.sum(fails)), 1 - 1e-9),
            false_pass=alarm,
            resolution=float(reach.max()),
            departure="side",
            spared=spared_one_sided(float(p_values[worst]), passes, alarm),
        )

    return weigh(
        check,
        "statistical",
        judge,
        control,
        reason=reason,
        successes=successes,
        trials=trials,
        bound=bound,
    )


def _least_count(trials: Array, bound: Array, each: float) -> Array:
    """Least k with P(X >= k) < each at the bound: the Clopper–Pearson interval is beyond it."""
    least = stats.binom.isf(each, trials, bound) + 1
    enough = stats.binom.sf(least - 1, trials, bound) < each
    return np.asarray(np.where(enough, least, least + 1))


def _end(sign: int) -> str:
    return "lower bound" if sign > 0 else "upper bound"
