r"""Thresholds along training: their curve, its limit, and where success reaches one half.

:math:`\delta^*(t)` is the least sample ratio at which the Hessian after t steps has an informative
negative eigenvalue: the largest eigenvalue of :math:`P(a_{end})` of
:class:`~traindyn.laws.hard_subspace.HardSubspace` reaches one. It is smooth and increasing in
the sample ratio, so a quadratic through a few values finds it; all ratios share their random
numbers, and every replica has its own root, which gives the error.
:math:`\delta_{NN} = \lim_{t \to \infty} \min_j \delta_j^*(t)` (MW, Main result, restricted to
eigenvalues below min(0, edge)).

The cost of the mean-field equations grows like the cube of the number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares, minimize
from scipy.special import expit

from traindyn import _validate
from traindyn._types import RNG, Array
from traindyn.dmft.kernels import hard_basis, solve
from traindyn.gaussian import Estimate
from traindyn.problems.multi_index import MultiIndex

__all__ = [
    "Thresholds",
    "crossing",
    "crossing_window",
    "extrapolate",
    "half_point",
    "local_crossing",
    "threshold_curve",
]


@dataclass(frozen=True)
class Thresholds:
    """Thresholds at several steps.

    Attributes
    ----------
    steps : ndarray of int, shape (S,)
    values, errors : ndarray, shape (S,)
        NaN where the sample_ratios given do not bracket the threshold.
    sample_ratios : ndarray, shape (D,)
    statistics : ndarray, shape (D, S, replicas)
    """

    steps: Array
    values: Array
    errors: Array
    sample_ratios: Array
    statistics: Array


def threshold_curve(
    problem: MultiIndex,
    steps: Sequence[int],
    sample_ratios: ArrayLike,
    *,
    step_size: float,
    rng: RNG,
    neuron: int | None = None,
    hard: ArrayLike | None = None,
    paths: int = 2**14,
    replicas: int = 4,
    workers: int | None = None,
) -> Thresholds:
    r"""Thresholds at several steps, from one solution per sample ratio (MW, Main result).

    The threshold :math:`\delta_{NN}` of training is the limit of the least of them at late times
    (:func:`extrapolate`).

    Parameters
    ----------
    problem : MultiIndex
        Its activation must have a second derivative.
    steps : sequence of int
        Numbers of gradient steps after which the Hessian is taken, at least one of them; 0 is
        the start.
    sample_ratios : array_like, shape (D,)
        Increasing, at least three; a step whose threshold they do not bracket is NaN.
    step_size : float
        Learning rate of the risk (for wide networks, of order m).
    rng : int, SeedSequence or Generator
        The same numbers are used at every sample ratio.
    neuron : int, optional
        Which block. Default: the least threshold over all neurons.
    hard : array_like, shape (k, r), optional
        Orthonormal basis of the hard subspace. Default: computed from the target.
    paths, replicas, workers
        As for :func:`~traindyn.dmft.kernels.solve`.

    Raises
    ------
    ValueError
        If an argument is out of range, or the weights are unbounded below.
    FloatingPointError
        As for :func:`~traindyn.dmft.kernels.solve`.
    """
    grid = _grid(sample_ratios)
    basis = hard_basis(problem, hard)
    problem.require_bounded_curvature()
    listed = _validate.listed("steps", steps)
    if not listed:
        raise ValueError("steps must not be empty")
    wanted = [_validate.integer("steps", each, least=0) for each in listed]
    entropy = _seed(rng)
    statistics = np.array(
        [
            _table(
                problem,
                wanted,
                float(d),
                step_size,
                entropy,
                neuron,
                basis,
                paths,
                replicas,
                workers,
            )
            for d in grid
        ]
    )
    values, errors = np.full((2, len(wanted)), np.nan)
    for i in range(len(wanted)):
        columns = statistics[:, i].T
        if np.all(columns[:, 0] < 1) and np.all(columns[:, -1] > 1):
            roots = np.array([local_crossing(grid, column) for column in columns])
            values[i], errors[i] = roots.mean(), _error(roots)
    return Thresholds(np.array(wanted), values, errors, grid, statistics)


def half_point(sample_ratios: ArrayLike, successes: ArrayLike, trials: ArrayLike) -> Estimate:
    r"""Where a success probability that rises with the ratio is one half, by logistic regression.

    Maximises the likelihood of :math:`p = 1 / (1 + \exp(-b(\delta - \delta_{1/2})))` with
    Jeffreys' prior, which keeps estimates finite where no sample ratio has both outcomes.

    Parameters
    ----------
    sample_ratios : array_like, shape (D,)
        Increasing, at least two.
    successes, trials : array_like of int, shape (D,)
        How many of how many at each sample ratio; at least one trial each.

    Returns
    -------
    Estimate
        Its standard error is that of the likelihood's curvature.

    Raises
    ------
    ValueError
        If shapes disagree or the frequencies do not rise.

    Examples
    --------
    >>> from traindyn.dmft.curve import half_point
    >>> found = half_point([4, 5, 6, 7], [1, 6, 14, 19], [20, 20, 20, 20])
    >>> print(f"{found.value:.2f} {found.error:.2f}")
    5.50 0.17
    """
    grid = _validate.increasing("sample_ratios", sample_ratios)
    hits = _validate.finite("successes", successes, shape=(grid.size,))
    total = _validate.finite("trials", trials, shape=(grid.size,))
    if grid.size < 2 or np.any(hits < 0) or np.any(hits > total) or np.any(total < 1):
        raise ValueError(
            f"successes must lie between 0 and trials at two sample_ratios or more, got {hits} of "
            f"{total}"
        )
    centre, scale = grid.mean(), grid.std()
    rows = np.stack([np.ones(grid.size), (grid - centre) / scale], axis=1)

    def information(b: Array) -> Array:
        p = expit(rows @ b)
        return np.asarray(rows.T @ (rows * (total * p * (1 - p))[:, None]))

    def loss(b: Array) -> float:
        margin = rows @ b
        likelihood = hits @ margin - total @ np.logaddexp(0, margin)
        return -float(likelihood + np.linalg.slogdet(information(b))[1] / 2)

    options = {
        "initial_simplex": [[0.0, 1.0], [1.0, 1.0], [0.0, 2.0]],
        "xatol": 1e-8,
        "fatol": 1e-12,
        "maxiter": 2000,
    }
    b = minimize(loss, np.zeros(2), method="Nelder-Mead", options=options).x
    if b[1] <= 0:
        raise ValueError(f"successes must rise with sample_ratio, got frequencies {hits / total}")
    root = -b[0] / b[1]
    gradient = np.array([-1.0, -root]) / b[1]
    variance = gradient @ np.linalg.solve(information(b), gradient)
    return Estimate(np.asarray(centre + scale * root), np.asarray(scale * np.sqrt(variance)))


def crossing(sample_ratios: ArrayLike, statistics: ArrayLike) -> float:
    """Where a smooth increasing function of the sample ratio reaches one, by a quadratic fit.

    Parameters
    ----------
    sample_ratios : array_like, shape (D,)
        Increasing, at least three.
    statistics : array_like, shape (D,)
        Values of the function at the sample_ratios; noise is smoothed by the fit.

    Raises
    ------
    ValueError
        If the fit does not reach one near the sample_ratios.

    Examples
    --------
    >>> from traindyn.dmft.curve import crossing
    >>> round(crossing([1.0, 2.0, 3.0, 4.0], [0.5, 0.8, 1.2, 1.7]), 9)
    2.531128874
    """
    grid = _validate.increasing("sample_ratios", sample_ratios)
    values = _validate.finite("statistics", statistics, shape=(grid.size,))
    if grid.size < 3:
        raise ValueError(f"sample_ratios must be at least three, got {grid.size}")
    middle, half = (grid[0] + grid[-1]) / 2, (grid[-1] - grid[0]) / 2
    fit = np.polynomial.Polynomial.fit(grid, values, 2, domain=[grid[0], grid[-1]])
    roots = (fit - 1).roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    rising = real[fit.deriv()(real) > 0]
    if rising.size == 0 or abs(rising[0] - middle) > 2 * half:
        raise ValueError(
            f"statistics must reach one near the sample_ratios {grid[0]:g} to {grid[-1]:g}, got "
            f"{values.min():.4g} to {values.max():.4g}"
        )
    return float(rising[0])


def local_crossing(sample_ratios: ArrayLike, statistics: ArrayLike) -> float:
    """Where a function of the ratio reaches one, from the four values around its last change.

    Parameters
    ----------
    sample_ratios : array_like, shape (D,)
        Increasing, at least three.
    statistics : array_like, shape (D,)
        Below one somewhere.

    Raises
    ------
    ValueError
        As :func:`crossing`, or if no value is below one.
    """
    grid = _validate.increasing("sample_ratios", sample_ratios)
    values = _validate.finite("statistics", statistics, shape=(grid.size,))
    near = crossing_window(values)
    return crossing(grid[near], values[near])


def crossing_window(statistics: ArrayLike) -> slice:
    """Find the four values around the last one below one.

    Parameters
    ----------
    statistics : array_like, shape (D,)
        Values of a function that rises through one, in the order of the sample ratios.

    Returns
    -------
    slice
        Of length four, or all if there are fewer values.

    Raises
    ------
    ValueError
        If no value is below one.

    Examples
    --------
    >>> from traindyn.dmft.curve import crossing_window
    >>> crossing_window([0.2, 0.5, 0.8, 1.1, 1.3, 1.4])
    slice(1, 5, None)
    """
    values = _validate.finite("statistics", statistics, shape=(None,))
    if values.size == 0:
        raise ValueError("statistics must not be empty")
    below = np.flatnonzero(values < 1)
    if below.size == 0:
        raise ValueError(f"statistics must be below one somewhere, got at least {values.min():.4g}")
    first = int(np.clip(below[-1] - 1, 0, max(values.size - 4, 0)))
    return slice(first, first + 4)


def extrapolate(times: ArrayLike, values: ArrayLike, errors: ArrayLike | None = None) -> Estimate:
    r"""Limit of infinite time of thresholds that approach it like a power.

    Fits :math:`v(t) = v_\infty - A t^{-p}` by weighted least squares.

    Parameters
    ----------
    times : array_like, shape (T,)
        Increasing, positive, at least four.
    values : array_like, shape (T,)
        Thresholds at these times.
    errors : array_like, shape (T,), optional
        Standard errors.

    Returns
    -------
    Estimate
        The error is the larger of the fit's own and the change when the first time is left
        out: the form of the approach is empirical.

    Raises
    ------
    ValueError
        If there are too few times or the shapes disagree.
    """
    t = _validate.increasing("times", times)
    v = _validate.finite("values", values, shape=(t.size,))
    if t.size < 4 or t[0] <= 0:
        raise ValueError(f"times must be at least four positive numbers, got {t}")
    e = np.ones(t.size) if errors is None else _validate.finite("errors", errors, shape=(t.size,))
    if np.any(e <= 0):
        raise ValueError(f"errors must be positive, got {e.min():g}")

    def fit(part: slice) -> tuple[float, float]:
        time, value, error = t[part] / t[-1], v[part], e[part]

        def misfit(p: Array) -> Array:
            return np.asarray((value - p[0] + p[1] * time ** -np.exp(p[2])) / error)

        guess = np.array([value[-1], value[-1] - value[-2], -0.5])
        found = least_squares(
            misfit, guess, bounds=([-np.inf, -np.inf, -3.0], [np.inf, np.inf, 2.0])
        )
        covariance = np.linalg.pinv(found.jac.T @ found.jac)
        spread = 1.0 if errors is not None else 2 * found.cost / max(time.size - 3, 1)
        return float(found.x[0]), float(np.sqrt(covariance[0, 0] * spread))

    whole, own = fit(slice(None))
    change = abs(fit(slice(1, None))[0] - whole)
    return Estimate(np.asarray(whole), np.asarray(max(own, change)))


def _table(
    problem: MultiIndex,
    steps: list[int],
    sample_ratio: float,
    step_size: float,
    entropy: np.random.SeedSequence,
    neuron: int | None,
    basis: Array,
    paths: int,
    replicas: int,
    workers: int | None,
) -> Array:
    """Criterion at one ratio, shape (steps, replicas); the largest over neurons by default."""
    found = solve(
        problem,
        max(steps),
        sample_ratio=sample_ratio,
        step_size=step_size,
        # A fresh copy: spawning changes it.
        rng=np.random.SeedSequence(entropy.entropy, spawn_key=entropy.spawn_key),
        paths=paths,
        replicas=replicas,
        keep=steps,
        workers=workers,
    )
    neurons = range(problem.width) if neuron is None else (neuron,)
    return np.array(
        [
            [
                max(
                    found.hard_subspace(step, neuron=j, hard=basis, replica=replica).statistic
                    for j in neurons
                )
                for replica in range(replicas)
            ]
            for step in steps
        ]
    )


def _grid(sample_ratios: ArrayLike) -> Array:
    grid = _validate.increasing("sample_ratios", sample_ratios)
    if grid.size < 3 or grid[0] <= 0:
        raise ValueError(f"sample_ratios must be at least three positive numbers, got {grid}")
    return _validate.frozen(grid)


def _seed(rng: RNG) -> np.random.SeedSequence:
    """Return a seed sequence of its own for common random numbers."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence([int(each) for each in rng.integers(2**32, size=4)])
    _validate.generator("rng", rng)
    return np.random.SeedSequence(rng)


def _error(roots: Array) -> float:
    return float(roots.std(ddof=1) / np.sqrt(roots.size)) if roots.size > 1 else float("nan")
